// Sums by pairs in binary32 (csrc/cpu/kernels/pairs.hpp, pairs_lane.hpp): subnormal operands are read as +0.
#pragma once
#include "compiled_program.hpp"
#include "pairs_lane.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace compiled {

constexpr u32 FIELD = 0x7F800000;

// A rounded result, flushed; what asks for its bits keeps the compiler from merging its operation with the next.
struct Singles {
    using Number = float;
    MMAPROBE_HD static float settled(float x) {
        const u32 code = __builtin_bit_cast(u32, x);
        return __builtin_bit_cast(float, code& FIELD ? code : code & ~(FIELD | 0x7FFFFF));
    }
};

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

    MMAPROBE_HD static u64 evaluate(const Row& row, const Column& column, u64 c) {
        const auto a = [&](int k) MMAPROBE_INLINED { return __builtin_bit_cast(float, row.item[k]); };
        const auto b = [&](int k) MMAPROBE_INLINED { return __builtin_bit_cast(float, column.item[row.meets[k]]); };
        const float start = __builtin_bit_cast(float, HAS_C&& u32(c) & FIELD ? u32(c) : 0);
        const float sum = pairs::sum_steps<Singles, STEP>(start, LIVE, a, b);
        return sum == sum ? __builtin_bit_cast(u32, sum) : u32(header(Header::nan_code));
    }
};

}  // namespace compiled
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
