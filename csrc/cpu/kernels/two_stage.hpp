// The kernel of sums in two stages: the products among themselves, then their sum and C, rounded twice.
//
//   s = sum_k trunc(a_k b_k, P - F), P the largest label of a non-zero product (two parts: even and odd k each alone,
//       then floored to the larger P - F and added);
//   E = max(P, label of c);  v = floor(s, E - F - 8) + floor(c, E - F);
//   d = RNE(floor(v, floor(log2 |v|) - first_bits)), in binary32.
#pragma once
#include "cpu/kernels/items.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace two_stage {

using namespace items;

constexpr int BELOW = 8;  // fraction bits that the products' sum keeps more than C

struct Rules : items::Rules {
    int parts, fraction_bits, first_bits;
    i32 c_zero, cutoff;

    Rules(const i64* program, const Header& h, const TwoStageRow& r)
        : items::Rules(program, h, r[TwoStageRow::step], r[TwoStageRow::carry]), parts(int(r[TwoStageRow::parts])),
          fraction_bits(int(r[TwoStageRow::fraction_bits])), first_bits(int(r[TwoStageRow::first_bits])),
          c_zero(i32(r[TwoStageRow::c_zero_exponent])), cutoff(i32(smaller(r[TwoStageRow::cutoff], NEVER_REACHED))) {}
};

// The products' sum of one part in units of 2^(label - fraction bits).
struct Part {
    U32s sum, label;
};

template <class A, class B>
MMAPROBE_HD Part sum_part(const Rules& r, const A& a, const B& b, int first) {
    const int up = r.fraction_bits - r.a.fraction_bits - r.b.fraction_bits;
    U32s labels[MOST_K], label = splat<U32s>(u32(2 * NO_EXPONENT)), sum{};
    int n = 0;
    for (int k = first; k < first / r.step * r.step + r.step; k += r.parts, ++n) {
        labels[n] = a(k).exponent + b(k).exponent;
        label = larger_signed(label, labels[n]);
    }
    n = 0;
    for (int k = first; k < first / r.step * r.step + r.step; k += r.parts, ++n) {
        const U32s negative = a(k).negative ^ b(k).negative;
        sum += (cut<U32s>(a(k).significand * b(k).significand, up, label - labels[n]) ^ negative) - negative;
    }
    return {sum, label};
}

// floor(x / 2^n) of signed lanes, n >= 0.
MMAPROBE_HD U32s floor_shift(U32s x, U32s n) {
    const U32s most = splat<U32s>(31), by = pick(less(most, n), most, n);
    return U32s(I32s(x) >> I32s(by));
}

template <class A, class B>
MMAPROBE_HD Part sum_products(const Rules& r, const A& a, const B& b, int first) {
    const Part even = sum_part(r, a, b, first);
    if (r.parts == 1) return even;
    const Part odd = sum_part(r, a, b, first + 1);
    const U32s label = larger_signed(even.label, odd.label);
    return {floor_shift(even.sum, label - even.label) + floor_shift(odd.sum, label - odd.label), label};
}

template <class A, class B>
MMAPROBE_HD U32s run_step(const Rules& r, const A& a, const B& b, U32s special, U32s c_code, int first) {
    const Reading& reading = first ? r.carry : r.c;
    const Item<U32s> c = read_item<U32s>(reading, c_code);
    const U32s none = equal(c.significand, splat<U32s>(0));
    const U32s c_label = pick(none, splat<U32s>(u32(r.c_zero)), c.exponent);
    const Part products = sum_products(r, a, b, first);
    const U32s label = larger_signed(products.label, c_label), far = label - products.label;
    const U32s gap = label - c_label, dropped = less_signed(splat<U32s>(u32(r.cutoff)), gap);
    const U32s signed_c = (c.significand ^ c.negative) - c.negative;
    const U32s addend = floor_shift(signed_c << (r.fraction_bits - 23), gap) & ~dropped;
    const U32s most = splat<U32s>(200), distance = splat<U32s>(BELOW) - pick(less(most, far), most, far);
    const U32s unit = label - u32(r.fraction_bits + BELOW);
    I32h out[2];
    for (int part = 0; part < 2; ++part) {
        const F64s s = floored(scaled(to_doubles(half(products.sum, part)), half(distance, part)));
        const F64s sum = s + to_doubles(half(addend, part)) * broadcast(F64s{}, 1 << BELOW);
        out[part] = nearest_floats(floored_below(scaled(sum, half(unit, part)), r.first_bits, -126));
    }
    const U32s flagged = special | c.nan | c.infinite | less_signed(splat<U32s>(u32(r.overflow - 2)), label);
    return with_specials(r, a, b, c, first, join(out[0], out[1]), flagged);
}

inline bool evaluate(const LayoutCall& call) {
    return sweep<Rules, TwoStageRow>(
        call, [](const Rules& r, const auto& a, const auto& b, U32s special, U32s c, int first) {
            return run_step(r, a, b, special, c, first);
        });
}

}  // namespace two_stage
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
