// One build of the engine; CMake compiles this file once for each instruction set (MMAPROBE_BUILD names it).
#include "cpu/kernels/engine.hpp"

#include <stdlib.h>

#include "model/integer_dot.hpp"
#include "model/machine.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

static bool same_row(const i64* x, const i64* y, Header::Column at, int size) {
    const i64 from = Header{x}[at];
    if (from != Header{y}[at]) return false;
    for (int i = 0; from != ABSENT && i < size; ++i)
        if (x[from + i] != y[from + i]) return false;
    return true;
}

// Whether two programs form the products of the same operands alike.
static bool products_alike(const i64* x, const i64* y) {
    constexpr Header::Column numbers[] = {Header::k,
                                          Header::scale_size,
                                          Header::scale_where,
                                          Header::label,
                                          Header::overflow_exponent,
                                          Header::nan,
                                          Header::nan_code,
                                          Header::quiet,
                                          Header::signalling_first,
                                          Header::product_order,
                                          Header::multiply,
                                          Header::missing_columns,
                                          Header::products};
    for (const Header::Column number : numbers)
        if (Header{x}[number] != Header{y}[number]) return false;
    return same_row(x, y, Header::a, OperandRow::SIZE) && same_row(x, y, Header::b, OperandRow::SIZE) &&
           same_row(x, y, Header::split, SplitRow::SIZE + 2 * int(Header{x}[Header::products])) &&
           same_row(x, y, Header::scale, OperandRow::SIZE) && same_row(x, y, Header::d, EncodeRow::SIZE) &&
           same_row(x, y, Header::product_encode, EncodeRow::SIZE);
}

constexpr i64 MOST_SHARED = 512;  // products that are kept between programs

// Programs begin .. end - 1, all of one width.
template <class W, int V>
static bool evaluate_as(const EngineCall& call, i64 begin, i64 end) {
    using Values = Register<W, V>;
    i64 registers = 0, products = 0;
    for (i64 n = begin; n < end; ++n) {
        const Header h{call.programs[n]};
        registers = larger(registers, h[Header::registers]);
        products = larger(products, h[Header::k] * h[Header::products]);
    }
    const i64 kept = end - begin > 1 && products <= MOST_SHARED ? products : 0;
    const i64 bytes = (registers + kept) * i64(sizeof(Values)) + kept * i64(sizeof(bool));
    auto* values = static_cast<Values*>(aligned_alloc(64, size_t((bytes + 63) / 64 * 64)));
    if (!values) return false;
    Values* const shared = kept ? values + registers : nullptr;
    bool* const formed = reinterpret_cast<bool*>(values + registers + kept);
    const Sources sources{{call.base[0], call.row[0]}, {call.base[1], call.row[1]}, {call.base[2], call.row[2]},
                          {call.base[3], call.row[3]}, {call.base[4], call.row[4]}, {call.base[5], call.row[5]}};
    for (i64 first = 0; first < call.vectors; first += V) {
        const int count = int(smaller(V, call.vectors - first));
        for (i64 n = begin; n < end; ++n) {
            const i64* const program = call.programs[n];
            if (n == begin || !products_alike(call.programs[n - 1], program))
                for (i64 number = 0; number < kept; ++number) formed[number] = false;
            run(Context<W, V>{program, {program}, sources, values, first, count, shared, formed}, call.outs[n],
                call.out_bytes);
        }
    }
    free(values);
    return true;
}

static bool of_integers(const i64* program) {
    const i64 kernel = Header{program}[Header::kernel];
    return kernel == INTEGER_WRAPS || kernel == INTEGER_SATURATES;
}

static bool integer_dot(const EngineCall& call, i64 n) {
    const Header header{call.programs[n]};
    const IntegerDot dots{
        call.base[0], call.base[1],           header[Header::c] == ABSENT ? nullptr : call.base[2], call.outs[n],
        call.vectors, int(header[Header::k]), header[Header::kernel] == INTEGER_SATURATES};
    return run_integer_dot(call.programs[n], dots, call.out_bytes);
}

bool evaluate(const EngineCall& call) {
    bool memory = true;
    for (i64 begin = 0, end; begin < call.count; begin = end) {
        const i64 width = Header{call.programs[begin]}[Header::width];
        end = begin + 1;
        if (of_integers(call.programs[begin])) {
            if (integer_dot(call, begin)) continue;
        } else {
            while (end < call.count && Header{call.programs[end]}[Header::width] == width &&
                   !of_integers(call.programs[end]))
                ++end;
        }
        switch (width) {
            case 64: memory = evaluate_as<u64, 64>(call, begin, end) && memory; break;
            case 128: memory = evaluate_as<u128, 32>(call, begin, end) && memory; break;
            case 320: memory = evaluate_as<Limbs<5>, 16>(call, begin, end) && memory; break;
            default: memory = evaluate_as<Limbs<10>, 16>(call, begin, end) && memory; break;
        }
    }
    return memory;
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
