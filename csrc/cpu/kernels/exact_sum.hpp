// The kernel of exact sums: every step rounds the sum of its products and C once, to nearest even in binary32.
//
//   H + L = sum_k a_k b_k exactly, in two binary64 numbers; d = RNE(H + L + c).
//
// With few products H and L are a sum and its error; with more, multiples of 2^grid and what lies below.
#pragma once
#include "cpu/kernels/items.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace exact_sum {

using namespace items;

struct Rules : items::Rules {
    bool pair;  // at most two products
    double grid, inverse;

    Rules(const i64* program, const Header& h, const ExactRow& r)
        : items::Rules(program, h, r[ExactRow::step], r[ExactRow::carry]), pair(step <= 2),
          grid(ldexp(1, int(r[ExactRow::grid]))), inverse(1 / grid) {}
};

// value + error = x + y exactly.
struct Sum {
    F64s value, error;
};
MMAPROBE_HD Sum two_sum(F64s x, F64s y) {
    const F64s value = x + y, other = value - x;
    return {value, (x - (value - other)) + (y - other)};
}

// high + low, |low| at most half a unit in the last place of high, to the one of the two neighbours that is odd.
MMAPROBE_HD F64s to_odd(F64s high, F64s low) {
    const I64s bits = I64s(high), away = I64s((bits ^ I64s(low)) >= 0) & 2;  // 2 where the signs are equal
    const I64s inexact = I64s(low != 0), even = I64s((bits & 1) == 0);
    return F64s(bits + (inexact & even & (away - 1)));
}

template <class A, class B>
MMAPROBE_HD Sum sum_products(const Rules& r, const A& a, const B& b, int first, int part) {
    F64s high{}, low{};
    const int point = r.a.fraction_bits + r.b.fraction_bits;
    for (int k = first; k < first + r.step; ++k) {
        const Item<U32s> x = a(k), y = b(k);
        const U32s negative = x.negative ^ y.negative, product = x.significand * y.significand;
        const U32s least = splat<U32s>(u32(-900)), up = larger_signed(x.exponent + y.exponent - u32(point), least);
        const F64s p = scaled(to_doubles(half((product ^ negative) - negative, part)), half(up, part));
        if (r.pair) {
            const Sum sum = two_sum(high, p);
            high = sum.value;
            low = sum.error;
        } else {
            const F64s whole = truncated(p * broadcast(F64s{}, r.inverse)) * broadcast(F64s{}, r.grid);
            high += whole;
            low += p - whole;
        }
    }
    return {high, low};
}

template <class A, class B>
MMAPROBE_HD U32s run_step(const Rules& r, const A& a, const B& b, U32s special, U32s c_code, int first) {
    const Item<U32s> c = read_item<U32s>(first ? r.carry : r.c, c_code);
    I32h out[2];
    for (int part = 0; part < 2; ++part) {
        const Sum products = sum_products(r, a, b, first, part);
        const Sum whole = two_sum(products.value, products.error);
        const Sum with_c = two_sum(whole.value, float_values(half(c_code, part)));
        const Sum rest = two_sum(with_c.error, whole.error);
        const Sum all = two_sum(with_c.value, rest.value);
        out[part] = nearest_floats(to_odd(all.value, all.error + rest.error));
    }
    const U32s flagged = special | c.nan | c.infinite;
    return with_specials(r, a, b, c, first, join(out[0], out[1]), flagged);
}

inline bool evaluate(const LayoutCall& call) {
    return sweep<Rules, ExactRow>(call, [](const Rules& r, const auto& a, const auto& b, U32s special, U32s c,
                                           int first) { return run_step(r, a, b, special, c, first); });
}

}  // namespace exact_sum
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
