// The kernel of sums in two stages: the products among themselves, then their sum and C, rounded twice.
//
//   s = sum_k trunc(a_k b_k, P - F), P the largest label of a non-zero product (two parts: even and odd k each alone,
//       then floored to the larger P - F and added);
//
// The second stage: model/two_stage_lane.hpp.
#pragma once
#include "cpu/kernels/items.hpp"
#include "model/two_stage_lane.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace two_stage {

using namespace items;

struct Rules : items::Rules {
    int parts;
    SecondStage second;

    Rules(const i64* program, const Header& h, const TwoStageRow& r)
        : items::Rules(program, h, r[TwoStageRow::step], r[TwoStageRow::carry]), parts(int(r[TwoStageRow::parts])),
          second(r) {}
};

// v as two registers of binary64 numbers, where all but d is exact.
struct Doubles {
    MMAPROBE_HD static U32s rounded(const SecondStage& r, U32s sum, U32s far, U32s addend, U32s label) {
        const U32s most = splat<U32s>(200), distance = splat<U32s>(BELOW) - pick(less(most, far), most, far);
        const U32s unit = label - u32(r.fraction_bits + BELOW);
        I32h out[2];
#pragma GCC unroll 2
        for (int part = 0; part < 2; ++part) {
            const F64s s = floored(scaled(to_doubles(half(sum, part)), half(distance, part)));
            const F64s v = s + to_doubles(half(addend, part)) * broadcast(F64s{}, 1 << BELOW);
            out[part] = nearest_floats(floored_below(scaled(v, half(unit, part)), r.first_bits, -126));
        }
        return join(out[0], out[1]);
    }
};

// The products' sum of one part in units of 2^(label - fraction bits).
struct Part {
    U32s sum, label;
};

template <class A, class B>
MMAPROBE_HD Part sum_part(const Rules& r, const A& a, const B& b, int first) {
    const int up = r.second.fraction_bits - r.a.fraction_bits - r.b.fraction_bits;
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

template <class A, class B>
MMAPROBE_HD Part sum_products(const Rules& r, const A& a, const B& b, int first) {
    const Part even = sum_part(r, a, b, first);
    if (r.parts == 1) return even;
    const Part odd = sum_part(r, a, b, first + 1);
    const U32s label = larger_signed(even.label, odd.label);
    return {floor_shift<U32s>(even.sum, label - even.label) + floor_shift<U32s>(odd.sum, label - odd.label), label};
}

template <class A, class B>
MMAPROBE_HD U32s run_step(const Rules& r, const A& a, const B& b, U32s special, U32s c_code, int first) {
    const Reading& reading = first ? r.carry : r.c;
    const Item<U32s> c = read_item<U32s>(reading, c_code);
    const Part products = sum_products(r, a, b, first);
    const Staged<U32s> made = second_stage<Doubles>(r.second, products.sum, products.label, c);
    const U32s flagged = special | c.nan | c.infinite | less_signed(splat<U32s>(u32(r.overflow - 2)), made.label);
    return with_specials(r, a, b, c, first, made.code, flagged);
}

// The step as a type, for the lanes of items.hpp.
struct Step {
    template <class A, class B>
    MMAPROBE_HD U32s operator()(const Rules& r, const A& a, const B& b, U32s special, U32s c, int first) const {
        return run_step(r, a, b, special, c, first);
    }
};

}  // namespace two_stage
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
