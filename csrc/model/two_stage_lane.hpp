// The second stage of a sum in two stages, lane by lane. The sum s of a step's products, in units of 2^(P - F) with P
// their largest label, and C make
//
//   E = max(P, label of c);  v = floor(s, E - F - 8) + floor(c, E - F);
//   d = RNE(floor(v, floor(log2 |v|) - first_bits)), in binary32.
//
// C and labels are 32-bit lanes. v has more bits: it is binary64 on a CPU, which few have 64-bit shifts for, and an integer
// on a GPU, where it takes fewer registers.
#pragma once
#include "fused_lane.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace two_stage {

constexpr int BELOW = 8;  // fraction bits that the products' sum keeps more than C
constexpr i32 NEVER_REACHED = 1 << 20;  // above every label

MMAPROBE_HD constexpr i32 at_most_never(i64 x) { return i32(x < NEVER_REACHED ? x : NEVER_REACHED); }

struct SecondStage {
    int fraction_bits, first_bits;
    i32 c_zero, cutoff;

    MMAPROBE_HD constexpr explicit SecondStage(const TwoStageRow& r)
        : fraction_bits(int(r[TwoStageRow::fraction_bits])), first_bits(int(r[TwoStageRow::first_bits])),
          c_zero(i32(r[TwoStageRow::c_zero_exponent])), cutoff(at_most_never(r[TwoStageRow::cutoff])) {}
};

// floor(x / 2^n) of signed lanes, n >= 0.
template <class U>
MMAPROBE_HD U floor_shift(U x, U n) {
    using I = typename Signed<U>::type;
    const U most = splat<U>(31), by = pick(less(most, n), most, n);
    return U(I(x) >> I(by));
}

// Codes of d, garbage where c is special, and E.
template <class U>
struct Staged {
    U code, label;
};

// Wide: how the processor holds s and v. Wide::rounded(r, sum, far, addend, label) is d of
// v = floor(sum 2^8 / 2^far) + addend 2^8, in units of 2^(label - F - 8).
template <class Wide, class U>
MMAPROBE_HD Staged<U> second_stage(const SecondStage& r, U sum, U sum_label, const Item<U>& c) {
    const U none = equal(c.significand, splat<U>(0)), c_label = pick(none, splat<U>(u32(r.c_zero)), c.exponent);
    const U label = larger_signed(sum_label, c_label), gap = label - c_label;
    const U signed_c = (c.significand ^ c.negative) - c.negative, dropped = less_signed(splat<U>(u32(r.cutoff)), gap);
    const U addend = floor_shift<U>(signed_c << (r.fraction_bits - 23), gap) & ~dropped;
    return {Wide::rounded(r, sum, label - sum_label, addend, label), label};
}

}  // namespace two_stage
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
