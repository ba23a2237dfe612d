// Sums in two stages in floating point and 32 bits: the operands, labels and cut products of fused sums (fused_fast.hpp)
// without C, and the second stage of model/two_stage_lane.hpp for a register of lanes at once.
//
// With whole = floor(s / 2^(E - P)) + floor(c) and the 8 bits `below` of s under it, v = whole + below / 2^8 in units of
// 2^(E - F). It is shifted left until 31 bits have its leading one, or until their unit is 2^-156, where 2^-126 has 31
// bits; what first_bits leaves of the rest makes the last bit odd, so that the conversion to a binary32 rounds as of all
// of v. What this cannot do it names: wide products far below the largest of their row and column, and zeros whose sign
// or size it does not know.
#pragma once
#include "cpu/kernels/fused_operands.hpp"
#include "cpu/kernels/two_stage.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace two_stage {

using fused::Mode;

constexpr i32 NO_PRODUCT = -(1 << 14);  // the label of a sum without products
constexpr i32 LOWEST_UNIT = 156;  // 2^-156 is the least unit of a shifted v

// What the fast way needs of a datapath.
struct Fast : fused::Fast {
    bool holds = false;
    i32 c_zero = 0, cutoff = 0;
    i32 most_left = 0;  // with the label: how far v is shifted left at most
    i32 kept = 0, rest = 0;  // bits of a shifted v, and of what is below it, that first_bits leaves
    i32 back = 0;  // wide: with both offsets the power of two that makes scaled products what they are
    u32 nan = 0;
};

inline Fast plan_fast(const i64* program, const Rules& r) {
    const Header h{program};
    const SecondStage& second = r.second;
    Fast f;
    f.a = Decoding(OperandRow{program + h[Header::a]});
    f.b = Decoding(OperandRow{program + h[Header::b]});
    f.step = r.step;
    f.k = r.k;
    f.fraction_bits = second.fraction_bits;
    f.wide = f.a.way == Way::TOP;
    f.bias = f.a.bias + f.b.bias + (f.wide ? 2 * NORMAL_LABEL : 0);
    f.product_field = (f.wide ? 9 : 157) + second.fraction_bits;
    f.c_zero = second.c_zero;
    f.cutoff = second.cutoff;
    f.most_left = LOWEST_UNIT - second.fraction_bits;
    const int more = second.first_bits - 30;  // than a shifted v has below its leading bit
    f.kept = more < 0 ? i32(~u32(0) << -more) : -1;
    f.rest = more > 0 ? INT32_MAX & ~(INT32_MAX >> more) : 0;
    f.back = -2 * (127 + TOP_EXPONENT + NORMAL_LABEL) - f.product_field;
    f.nan = r.to.nan;
    const bool pairs = ((r.k & (r.k - 1)) == 0 || r.k % HALVES == 0) && r.step % 2 == 0 && r.parts == 1;
    f.holds = f.a.way != Way::NONE && f.a.way == f.b.way && r.a.fraction_bits + r.b.fraction_bits <= 22 &&
              f.c_zero + f.most_left >= 0 && (!f.wide || (pairs && r.overflow == 128));
    return f;
}

// --- the products ---------------------------------------------------------------------------------------------------

// A register of sums of cut products, in units of 2^(label - F).
struct Sums {
    I32s sum, label;
    Mask none;  // lanes without products

    void join(const Sums& other) {
        const I32s most = larger(label, other.label);
        sum = shift_down(sum, most - label) + shift_down(other.sum, most - other.label);
        label = most;
        none &= other.none;
    }
};

// The scale of products by their largest field or label; wide: negative where it is too far from `offset`.
template <Mode MODE>
MMAPROBE_HD I32s align(const Fast& f, I32s fields, I32s offset, fused::Aligned& x, Sums& s) {
    constexpr bool WIDE = MODE == Mode::WIDE;
    s.none = where_less(fields, splat_int(WIDE ? LEAST_PRODUCT : 0));
    s.label = choose(s.none, splat_int(NO_PRODUCT), fields - f.bias);
    const I32s field = WIDE ? choose(s.none, I32s{}, offset - fields) : f.product_field - fields;
    x.scale = power_of_two(field);
    return WIDE ? (f.fraction_bits + fused::FARTHEST) - field : I32s{};
}

// --- the second stage ------------------------------------------------------------------------------------------------

// v = whole + below / 2^31, in units of 2^(label - F).
struct Value {
    I32s whole, below, label;
};

MMAPROBE_HD Value add_c(const Fast& f, const Sums& s, F32s c) {
    const I32s size = I32s(c) & 0x7FFFFFFF, sign = I32s(c) >> 31, field = larger(size >> 23, splat_int(1));
    const I32s c_label = choose(where_set(size), field - 127, splat_int(f.c_zero));
    const I32s label = larger(s.label, c_label), gap = label - c_label;
    const I32s significand = ((size - ((field - 1) << 23)) ^ sign) - sign;
    const I32s addend = shift_down(significand << (f.fraction_bits - 23), gap);
    const I32s counts = choose(where_less(splat_int(f.cutoff), gap), I32s{}, addend);
    const I32s far = label - s.label, past = larger(far - 24, I32s{}), near = far - past;
    const I32s sum = shift_down(s.sum, past);
    return {(sum >> near) + counts, ((sum << 7) << (24 - near)) & 0x7F800000, label};
}

// Codes of a v that is subnormal, shifted to its least unit.
MMAPROBE_HD F32s subnormal_codes(I32s shifted) {
    const I32s nearest = (shifted + 63 + ((shifted >> 7) & 1)) >> 7, sign = nearest >> 31;
    return F32s(((nearest ^ sign) - sign) | (shifted & i32(0x80000000)));
}

// d; `doubtful` are lanes of zeros that may be others.
MMAPROBE_HD F32s rounded(const Fast& f, const Value& v, Mask none, F32s c, Mask& doubtful) {
    const I32s left = zeros_above(v.whole ^ (v.whole >> 31)) - 1, most = v.label + f.most_left;
    const I32s by = smaller(left, most);
    const I32s kept = ((v.whole << by) | (v.below >> (31 - by))) & f.kept;
    const I32s shifted = choose(where_set((v.below << by) & f.rest), kept | 1, kept);
    const F32s value = times_power(__builtin_convertvector(shifted, F32s), (v.label - f.fraction_bits) - by);
    const Mask small = where_less(most, left), zero = where_less(I32s(value) & 0x7FFFFFFF, splat_int(1));
    doubtful = Mask{};
    if (!any_lane(small | zero)) return value;
    const Mask minus = where_less(I32s(c), splat_int(i32(0x80000001)));  // C is -0
    doubtful = zero & ((where_set(shifted) & ~small) | (none & minus));
    return choose(small, subnormal_codes(shifted), value);
}

// --- infinities and NaNs ---------------------------------------------------------------------------------------------

// Negative where only with_specials knows: C infinite or NaN, or a product that may be infinite.
template <Mode MODE>
MMAPROBE_HD I32s trouble_of(const Rules& r, const Sums& s, F32s c) {
    const I32s special = splat_int(0x7F7FFFFF) - (I32s(c) & 0x7FFFFFFF);
    return MODE == Mode::WIDE ? special | ((r.overflow - 2) - s.label) : special;
}

// What the infinities and NaNs of a step make of one register; the lanes that have them are not doubtful. Finite products
// are added 2^-8 times: their sums are finite.
template <Mode MODE, int STEP>
MMAPROBE_HD F32s with_specials(const Fast& f, F32s value, F32s c, const float* a, const float* b, bool columns_of_b,
                               I32s offset, Mask& doubtful) {
    const int step = STEP ? STEP : f.step;
    const I32s top = splat_int(0x7F7FFFFF);
    F32s sum = {};
#pragma GCC unroll 1
    for (int i = 0; i < step; ++i) {
        const F32s y = columns_of_b ? splat_float(b[i]) : load<F32s>(b + i * ROWS);
        const F32s product = load<F32s>(a + i * ROWS) * y;
        sum = multiply_add(MODE == Mode::WIDE ? times_power(product, offset + f.back) : product, splat_float(0x1p-8f),
                           sum);
    }
    const Mask special = where_less(top, I32s(sum) & 0x7FFFFFFF) | where_less(top, I32s(c) & 0x7FFFFFFF);
    doubtful &= ~special;
    const F32s made = sum + c;
    const Mask nan = where_less(splat_int(0x7F800000), I32s(made) & 0x7FFFFFFF);
    return choose(special, choose(nan, F32s(splat_int(i32(f.nan))), made), value);
}

}  // namespace two_stage
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
