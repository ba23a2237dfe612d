// Sums by pairs in binary32 (csrc/cpu/kernels/pairs.hpp): d = c + ((a0 b0 + a1 b1) + (a2 b2 + a3 b3)), step after step, each
// product and sum to nearest even, subnormal operands read as +0, subnormal results as zeros of their sign.
#pragma once
#include "compiled_program.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace compiled {

constexpr u32 FIELD = 0x7F800000;

// A rounded result, flushed; what asks for its bits keeps the compiler from merging its operation with the next.
MMAPROBE_HD float settled(float x) {
    const u32 code = __builtin_bit_cast(u32, x);
    return __builtin_bit_cast(float, code & FIELD ? code : code & ~(FIELD | 0x7FFFFF));
}

// A 16-bit item as binary32: binary16 (or bfloat16, the top of one), subnormals +0.
template <Header::Column NAME>
MMAPROBE_HD u32 as_single(u64 given) {
    const u32 code = u32(given) & 0xFFFF;
    if constexpr (of_operand(NAME, OperandRow::exponent_bits) == 8) return code & 0x7F80 ? code << 16 : 0;
    const u32 size = (code & 0x7FFF) << 13, raised = size + ((code & 0x7C00) == 0x7C00 ? 224u << 23 : 112u << 23);
    return code & 0x7C00 ? raised | (code & 0x8000) << 16 : 0;
}

template <class Any>  // so that only a datapath of pairs makes it
struct Pairs : OneByOne<Pairs<Any>> {
    static constexpr int STEP = int(PairsRow{PROGRAM + RULES}[PairsRow::step]);
    struct Row {
        u32 item[LIVE];
        Meets meets;
    };
    struct Column {
        u32 item[K];
    };

    MMAPROBE_HD static void put_a(Row& row, int k, u64 code) { row.item[k] = as_single<Header::a>(code); }
    MMAPROBE_HD static void put_b(Column& column, int k, u64 code) { column.item[k] = as_single<Header::b>(code); }
    MMAPROBE_HD static void put_scale_a(Row&, int, u64) {}
    MMAPROBE_HD static void put_scale_b(Column&, int, u64) {}
    MMAPROBE_HD static void put_metadata(Row& row, int chunk, u32 item) { row.meets.put(chunk, item); }
    MMAPROBE_HD static void seal(Row&) {}
    MMAPROBE_HD static void seal(Column&) {}

    template <int COUNT>
    MMAPROBE_HD static float sum_products(const Row& row, const Column& column, int first) {
        if constexpr (COUNT == 1)
            return settled(__builtin_bit_cast(float, row.item[first]) *
                           __builtin_bit_cast(float, column.item[row.meets[first]]));
        else
            return settled(sum_products<COUNT / 2>(row, column, first) +
                           sum_products<COUNT / 2>(row, column, first + COUNT / 2));
    }
    MMAPROBE_HD static u64 evaluate(const Row& row, const Column& column, u64 c) {
        float sum = __builtin_bit_cast(float, HAS_C && u32(c) & FIELD ? u32(c) : 0);
        MMAPROBE_UNROLLED
        for (int first = 0; first < LIVE; first += STEP) sum = settled(sum + sum_products<STEP>(row, column, first));
        return sum == sum ? __builtin_bit_cast(u32, sum) : u32(header(Header::nan_code));
    }
};

}  // namespace compiled
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
