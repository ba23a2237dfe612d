// Every other datapath: the interpreter on one vector, its codes kept as they are put.
#pragma once
#include "compiled_program.hpp"
#include "machine.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace compiled {

template <int WIDTH>
struct Wide {
    using type = Limbs<WIDTH / 64>;
};
template <>
struct Wide<64> {
    using type = u64;
};
template <>
struct Wide<128> {
    using type = u128;
};

MMAPROBE_HD constexpr int bytes_of(Header::Column name) {
    return HEADER[name] == ABSENT ? 1 : int(of_operand(name, OperandRow::bytes));
}

struct Interpreted : OneByOne<Interpreted> {
    template <Header::Column NAME>
    using Code = typename Container<bytes_of(NAME)>::type;
    using Sum = typename Wide<int(header(Header::width))>::type;

    struct Row {
        Code<Header::a> code[LIVE];
        Code<Header::scale> scale[at_least_one(GROUPS)];
        Meets meets;
    };
    struct Column {
        Code<Header::b> code[K];
        Code<Header::scale> scale[at_least_one(GROUPS)];
    };

    MMAPROBE_HD static void put_a(Row& row, int k, u64 code) { row.code[k] = Code<Header::a>(code); }
    MMAPROBE_HD static void put_b(Column& column, int k, u64 code) { column.code[k] = Code<Header::b>(code); }
    MMAPROBE_HD static void put_scale_a(Row& row, int g, u64 code) { row.scale[g] = Code<Header::scale>(code); }
    MMAPROBE_HD static void put_scale_b(Column& column, int g, u64 code) {
        column.scale[g] = Code<Header::scale>(code);
    }
    MMAPROBE_HD static void put_metadata(Row& row, int chunk, u32 item) { row.meets.put(chunk, item); }
    MMAPROBE_HD static void seal(Row&) {}
    MMAPROBE_HD static void seal(Column&) {}

    MMAPROBE_CALL static u64 evaluate(const Row& row, const Column& column, u64 c) {
        constexpr int registers_needed = int(header(Header::registers)), bytes = result_bytes();
        Register<Sum, 1> registers[registers_needed];
        Code<Header::b> met[LIVE];
        for (int k = 0; k < LIVE; ++k) met[k] = column.code[row.meets[k]];
        const Code<Header::c> addend = Code<Header::c>(c);
        const Sources sources = {{row.code, LIVE},
                                 {met, LIVE},
                                 {HAS_C ? &addend : nullptr, 1},
                                 {SCALED ? row.scale : nullptr, GROUPS},
                                 {SCALED ? column.scale : nullptr, GROUPS}};
        const Context<Sum, 1> context{PROGRAM, {PROGRAM}, sources, registers, 0, 1};
        typename Container<bytes>::type d = 0;
        run(context, &d, bytes);
        return d;
    }
};

}  // namespace compiled
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
