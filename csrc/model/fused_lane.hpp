// The fused dot product of matrix units, lane by lane (docs/datapath.md, node `fused` over the products and C):
//
//   E = largest label of a_k b_k and c;  d = encode(sum_k trunc(a_k b_k, E - F) + trunc(c, E - F)),
//
// step after step along K. Exact for every value of every format, in 32-bit integers.
#pragma once
#include "lanes.hpp"
#include "program.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

// How codes of a format are read (an OperandRow in 32 bits).
struct Reading {
    int padding, fraction_bits, sign;
    u32 is_signed, magnitude, fractions, hidden, low, nan_above, nan_exact, infinity;
    i32 bias;
    bool normalised = false;  // exponents are those of subnormals' leading bits

    MMAPROBE_HD constexpr explicit Reading(const OperandRow& o)
        : padding(int(o[OperandRow::padding])), fraction_bits(int(o[OperandRow::fraction_bits])),
          sign(int(o[OperandRow::bits]) - 1), is_signed(u32(o[OperandRow::is_signed])),
          magnitude(~u32(0) >> (31 - sign + int(is_signed))), fractions((u32(1) << fraction_bits) - 1),
          hidden(u32(1) << fraction_bits), low(o[OperandRow::subnormal] ? hidden : 0),
          nan_above(u64(o[OperandRow::nan_above]) > magnitude ? magnitude : u32(o[OperandRow::nan_above])),
          nan_exact(o[OperandRow::nan_exact] == ABSENT ? 0 : u32(o[OperandRow::nan_exact])),
          infinity(o[OperandRow::infinity] == ABSENT ? ~u32(0) : u32(o[OperandRow::infinity])),
          bias(i32(o[OperandRow::bias])) {}
};

constexpr i32 NO_EXPONENT = -(1 << 20);  // below every label; the sum of two of them as well

// (-1)^negative significand 2^(exponent - fraction bits); negative, nan and infinite are masks.
// A zero has the exponent NO_EXPONENT, a special value significand 0 and any exponent.
template <class U>
struct Item {
    U significand, exponent, negative, nan, infinite;
};

template <class U>
MMAPROBE_HD Item<U> read_item(const Reading& r, U code) {
    const U value = code >> r.padding, absolute = value & r.magnitude, sign = value >> r.sign & r.is_signed;
    U nan = less(splat<U>(r.nan_above), absolute);
    if (r.nan_exact) nan |= equal(absolute, splat<U>(0)) & equal(sign, splat<U>(1));
    const U infinite = equal(absolute, splat<U>(r.infinity)), small = less(absolute, splat<U>(r.low));
    U significand = (absolute & r.fractions) | (splat<U>(r.hidden) & ~small);
    U exponent = (absolute >> r.fraction_bits) + (small & 1) - u32(r.bias);
    if (r.normalised) {
        const U left = leading_zeros<U>(significand) - u32(31 - r.fraction_bits);
        significand <<= left;
        exponent -= left;
    }
    const U zero = equal(significand, splat<U>(0));
    return {significand & ~(nan | infinite), pick(zero, splat<U>(u32(NO_EXPONENT)), exponent), U(0 - sign), nan,
            infinite};
}

template <class U>
MMAPROBE_HD Item<U> spread(const Item<u32>& x) {
    return {splat<U>(x.significand), splat<U>(x.exponent), splat<U>(x.negative), splat<U>(x.nan), splat<U>(x.infinite)};
}

// How a sum becomes a code (an EncodeRow in 32 bits), and the NaN.
struct Writing {
    int fraction_bits, sign, padding;
    i32 min_exponent;
    u32 table, largest, beyond, infinity, nan, underflow_sign, most_field;

    MMAPROBE_HD constexpr Writing(const EncodeRow& e, u32 nan_code)
        : fraction_bits(int(e[EncodeRow::fraction_bits])), sign(int(e[EncodeRow::bits]) - 1),
          padding(int(e[EncodeRow::padding])), min_exponent(i32(e[EncodeRow::min_exponent])),
          table(u32(e[EncodeRow::table])), largest(u32(e[EncodeRow::largest])),
          beyond(e[EncodeRow::beyond_positive] == INFINITE ? u32(e[EncodeRow::infinity]) : largest),
          infinity(u32(e[EncodeRow::infinity])), nan(nan_code),
          underflow_sign(e[EncodeRow::underflow_positive] ? 0 : ~u32(0)),
          most_field(u32(e[EncodeRow::max_exponent] - e[EncodeRow::min_exponent]) + 2) {}
};

struct FusedRules {
    Reading a, b, c, carry;  // carry: the result of a step as operand C of the next
    Writing to;
    int k, step, fraction_bits;
    i32 zero_exponent;
    bool has_c;

    MMAPROBE_HD FusedRules(const i64* program, const Header& h, const FusedRow& f)
        : a(OperandRow{program + h[Header::a]}), b(OperandRow{program + h[Header::b]}),
          c(OperandRow{program + (h[Header::c] == ABSENT ? f[FusedRow::carry] : h[Header::c])}),
          carry(OperandRow{program + f[FusedRow::carry]}),
          to(EncodeRow{program + f[FusedRow::encode]}, u32(h[Header::nan_code])), k(int(h[Header::k])),
          step(int(f[FusedRow::step])), fraction_bits(int(f[FusedRow::fraction_bits])),
          zero_exponent(i32(f[FusedRow::zero_exponent])), has_c(h[Header::c] != ABSENT) {
        a.normalised = b.normalised = h[Header::label] == OPERANDS;
    }
};

// A sum in units of 2^(E - F): 65536 high + low.
template <class U>
struct FusedSum {
    U high, low, nan, plus, minus;

    MMAPROBE_HD FusedSum() : high(splat<U>(0)), low(high), nan(high), plus(high), minus(high) {}

    MMAPROBE_HD void add(U term, U negative) {
        low += ((term & 0xFFFF) ^ negative) - negative;
        high += ((term >> 16) ^ negative) - negative;
    }
    MMAPROBE_HD void add_special(U is_nan, U infinite, U negative) {
        nan |= is_nan;
        plus |= infinite & ~negative;
        minus |= infinite & negative;
    }
};

// trunc(significand 2^up / 2^distance); up may be negative, distance is not.
template <class U>
MMAPROBE_HD U cut(U significand, int up, U distance) {
    return up >= 0 ? shift_right<U>(significand << up, distance) : shift_right<U>(significand, distance - u32(up));
}

// The code of rounded 2^(base - fraction bits), base no less than the lowest exponent; of a value that is not zero where
// `some`.
template <class U>
MMAPROBE_HD U code_of(const Writing& w, U rounded, U base, U negative, U some) {
    const U zero = equal(rounded, splat<U>(0)), field = base - u32(w.min_exponent), limit = splat<U>(w.most_field);
    const U code = ((pick(less(field, limit), field, limit) << w.fraction_bits) + rounded) & ~zero;
    const U size = pick(less(splat<U>(w.largest), code), splat<U>(w.beyond), code);
    const U sign = negative & (~zero | (some & w.underflow_sign));
    return (size | (sign & (u32(1) << w.sign))) << w.padding;
}

// The code of a sum with these NaNs and infinities among its terms; `code` where there are none.
template <class U>
MMAPROBE_HD U unless_special(const Writing& w, U code, U nan, U plus, U minus) {
    const U infinity = (splat<U>(w.infinity) | (minus & (u32(1) << w.sign))) << w.padding;
    return pick(nan | (plus & minus), splat<U>(w.nan), pick(plus | minus, infinity, code));
}

// The code of a sum whose largest label is `label`.
template <class U>
MMAPROBE_HD U write_sum(const Writing& w, const FusedSum<U>& s, U label, int fraction_bits) {
    const U carried = s.high + shift_signed(s.low, 16), negative = shift_signed(carried, 31);
    U low = s.low & 0xFFFF;
    low = ((low ^ negative) - negative) & 0xFFFF;
    const U high = pick(negative, ~carried + (equal(low, splat<U>(0)) & 1), carried);
    // the leading bit to bit 31; what falls out below is rest
    const U none = equal(high, splat<U>(0)), left = leading_zeros<U>(pick(none, low, high));
    const U moved = low << 16, aligned = pick(none, low, high);
    const U at_top = aligned << (left & 31);
    const U top = pick(none, at_top, at_top | shift_right<U>(moved, 32 - left));
    const U rest = ~none & ~equal(moved << (left & 31), splat<U>(0)), some = ~equal(top, splat<U>(0));
    const U exponent = label - u32(fraction_bits) + pick(none, splat<U>(31), splat<U>(47)) - left;
    const U lowest = splat<U>(u32(w.min_exponent)), base = larger_signed(exponent, lowest);
    const U drop = base - exponent + u32(31 - w.fraction_bits);  // 8 or more; above 32 even the half bit is zero
    const U far = less(splat<U>(32), drop);
    const U kept = shift_right<U>(top, drop), half = shift_right<U>(top, drop - 1) & 1;
    const U below = (rest | far | ~equal(top << ((33 - drop) & 31), splat<U>(0))) & some & 1;
    const U row = (negative & 8) | (kept & 1) << 2 | half << 1 | below;
    const U rounded = kept + (shift_right<U>(splat<U>(w.table), row) & 1);
    return unless_special(w, code_of(w, rounded, base, negative, some), s.nan, s.plus, s.minus);
}

// One vector a lane: a(k), b(k) give Items, scale(k) the exponent of both scales and whether one is NaN.
template <class U, class A, class B, class Scale>
MMAPROBE_HD U fused_lanes(const FusedRules& r, const A& a, const B& b, const Scale& scale, U c_code) {
    const int up = r.fraction_bits - r.a.fraction_bits - r.b.fraction_bits;
    U d = c_code;
    for (int first = 0; first < r.k; first += r.step) {
        const Reading& reading = first ? r.carry : r.c;
        const Item<U> c = read_item<U>(reading, d);
        U label = larger_signed(c.exponent, splat<U>(u32(r.zero_exponent)));
        FusedSum<U> sum;
        sum.add_special(c.nan, c.infinite, c.negative);
        for (int k = first; k < first + r.step; ++k) {
            const Item<U> x = a(k), y = b(k);
            label = larger_signed(label, x.exponent + y.exponent + scale.exponent(k));
        }
        sum.add(cut<U>(c.significand, r.fraction_bits - reading.fraction_bits, label - c.exponent), c.negative);
        for (int k = first; k < first + r.step; ++k) {
            const Item<U> x = a(k), y = b(k);
            const U negative = x.negative ^ y.negative, infinite = x.infinite | y.infinite;
            const U zero = splat<U>(u32(NO_EXPONENT));
            const U invalid = infinite & (equal(x.exponent, zero) | equal(y.exponent, zero));
            const U nan = x.nan | y.nan | invalid | scale.nan(k);
            sum.add_special(nan, infinite & ~nan, negative);
            const U distance = label - x.exponent - y.exponent - scale.exponent(k);
            sum.add(cut<U>(x.significand * y.significand, up, distance), negative);
        }
        d = write_sum<U>(r.to, sum, label, r.fraction_bits);
    }
    return d;
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
