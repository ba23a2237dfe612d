// Chains of fused multiply-adds, d = fma(a_K-1, b_K-1, .. fma(a_0, b_0, c)): the processor's own operation is the rule.
#pragma once
#include "chain_nans.hpp"
#include "compiled_rounding.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace compiled {

template <class Float, class Code>
struct Chain : OneByOne<Chain<Float, Code>> {
    struct Row {
        Code code[LIVE];
        Meets meets;
    };
    struct Column {
        Code code[K];
    };
    static constexpr Mode ROUNDING = Mode(int(ChainRow{PROGRAM + RULES}[ChainRow::rounding]));

    MMAPROBE_HD static void put_a(Row& row, int k, u64 code) { row.code[k] = Code(code); }
    MMAPROBE_HD static void put_b(Column& column, int k, u64 code) { column.code[k] = Code(code); }
    MMAPROBE_HD static void put_scale_a(Row&, int, u64) {}
    MMAPROBE_HD static void put_scale_b(Column&, int, u64) {}
    MMAPROBE_HD static void put_metadata(Row& row, int chunk, u32 item) { row.meets.put(chunk, item); }
    MMAPROBE_HD static void seal(Row&) {}
    MMAPROBE_HD static void seal(Column&) {}

    MMAPROBE_HD static u64 evaluate(const Row& row, const Column& column, u64 c) {
        Float sum = HAS_C ? __builtin_bit_cast(Float, Code(c)) : Float(0);
        MMAPROBE_UNROLLED
        for (int k = 0; k < LIVE; ++k)
            sum = multiply_add<ROUNDING>(__builtin_bit_cast(Float, row.code[k]),
                                         __builtin_bit_cast(Float, column.code[row.meets[k]]), sum);
        if (sum == sum) return __builtin_bit_cast(Code, sum);
        if (header(Header::nan) != LOCAL) return Code(header(Header::nan_code));
        const Float nan = nan_of_chain<Code, Code>(
            HEADER, LIVE, [&](int k) { return __builtin_bit_cast(Float, row.code[k]); },
            [&](int k) { return __builtin_bit_cast(Float, column.code[row.meets[k]]); },
            HAS_C ? __builtin_bit_cast(Float, Code(c)) : Float(0),
            [](Float x, Float y, Float z) { return multiply_add<ROUNDING>(x, y, z); });
        return __builtin_bit_cast(Code, nan);
    }
};

template <int BYTES>
struct Chains {
    using type = Chain<double, u64>;
};
template <>
struct Chains<4> {
    using type = Chain<float, u32>;
};

}  // namespace compiled
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
