// The kernel of sums in two stages: the products among themselves, then their sum and C, rounded twice.
//
//   s = sum_k trunc(a_k b_k, P - F), P the largest label of a non-zero product (two parts: even and odd k each alone,
//       then floored to the larger P - F and added);
//   E = max(P, label of c);  v = floor(s, E - F - 8) + floor(c, E - F);
//   d = RNE(floor(v, floor(log2 |v|) - first_bits)), in binary32.
#pragma once
#include "cpu/floats.hpp"
#include "cpu/fused_exact.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace two_stage {

constexpr int MOST_K = 64, BELOW = 8;  // fraction bits that the products' sum keeps more than C

struct Rules {
    Reading a, b, c, carry;
    int k, step, parts, fraction_bits, first_bits;
    i32 c_zero, cutoff, overflow;
    u32 nan;

    Rules(const i64* program, const Header& h, const TwoStageRow& r)
        : a(OperandRow{program + h[Header::a]}), b(OperandRow{program + h[Header::b]}),
          c(OperandRow{program + (h[Header::c] == ABSENT ? r[TwoStageRow::carry] : h[Header::c])}),
          carry(OperandRow{program + r[TwoStageRow::carry]}), k(int(h[Header::k])), step(int(r[TwoStageRow::step])),
          parts(int(r[TwoStageRow::parts])), fraction_bits(int(r[TwoStageRow::fraction_bits])),
          first_bits(int(r[TwoStageRow::first_bits])), c_zero(i32(r[TwoStageRow::c_zero_exponent])),
          cutoff(i32(smaller(r[TwoStageRow::cutoff], 1 << 20))),
          overflow(i32(smaller(h[Header::overflow_exponent], 1 << 20))), nan(u32(h[Header::nan_code])) {}
};

// Significands, exponents and signs of one operand's lanes.
struct Operand {
    Item<U32s> item[MOST_K];
    U32s special[MOST_K];  // of each step: whether a lane of it is a NaN or an infinity

    void put(int k, int step, const Item<U32s>& x) {
        item[k] = x;
        special[k / step] = (k % step ? special[k / step] : U32s{}) | x.nan | x.infinite;
    }
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

// What the specials of a step make of one lane: its code, by the items alone.
template <class A, class B>
u32 special_code(const Rules& r, const A& a, const B& b, const Item<U32s>& c, int first, int i) {
    bool nan = c.nan[i], plus = c.infinite[i] && !c.negative[i], minus = c.infinite[i] && c.negative[i];
    for (int k = first; k < first + r.step; ++k) {
        const Item<U32s> x = a(k), y = b(k);
        const u64 product = u64(x.significand[i]) * y.significand[i];
        const bool infinite = x.infinite[i] || y.infinite[i];
        const bool zero = (!x.significand[i] && !x.infinite[i]) || (!y.significand[i] && !y.infinite[i]);
        const i64 top = 63 - __builtin_clzll(product | 1) - r.a.fraction_bits - r.b.fraction_bits;
        const bool beyond = product && top + i32(x.exponent[i]) + i32(y.exponent[i]) >= r.overflow;
        nan |= x.nan[i] || y.nan[i] || (infinite && zero);
        if (infinite || beyond) (x.negative[i] ^ y.negative[i] ? minus : plus) = true;
    }
    if (nan || (plus && minus)) return r.nan;
    return plus || minus ? 0x7F800000 | u32(minus) << 31 : 0;
}

// A zero sum is negative where all products and c are negative zeros.
template <class A, class B>
u32 zero_code(const Rules& r, const A& a, const B& b, int first, int i) {
    for (int k = first; k < first + r.step; ++k)
        if ((a(k).significand[i] && b(k).significand[i]) || !(a(k).negative[i] ^ b(k).negative[i])) return 0;
    return u32(1) << 31;
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
    U32s d = join(out[0], out[1]);
    const U32s flagged = special | c.nan | c.infinite | less_signed(splat<U32s>(u32(r.overflow - 2)), label);
    const U32s zeros = equal(d << 1, splat<U32s>(0)) & none & c.negative;
    if (any(flagged | zeros))
        for (int i = 0; i < LANES; ++i) {
            const u32 code = flagged[i] ? special_code(r, a, b, c, first, i) : 0;
            d[i] = code ? code : d[i] | (zeros[i] ? zero_code(r, a, b, first, i) : 0);
        }
    return d;
}

template <class A, class B>
U32s run_lanes(const Rules& r, const A& a, const B& b, const U32s* special_a, const U32s* special_b, U32s c) {
    for (int first = 0; first < r.k; first += r.step)
        c = run_step(r, a, b, special_a[first / r.step] | special_b[first / r.step], c, first);
    return c;
}

// A column's codes, decoded in whole registers.
struct Column {
    u32 significand[MOST_K + LANES], exponent[MOST_K + LANES], negative[MOST_K + LANES], nan[MOST_K + LANES],
        infinite[MOST_K + LANES];

    void read(const Reading& reading, int bytes, const void* base, i64 at, int k) {
        u32 codes[MOST_K + LANES];
        for (int i = 0; i < k; ++i) codes[i] = fused::load_code(bytes, base, at + i);
        for (int i = 0; i < k; i += LANES) {
            const Item<U32s> x = read_item<U32s>(reading, fused::load_codes<u32>(codes, i));
            memcpy(significand + i, &x.significand, sizeof(U32s));
            memcpy(exponent + i, &x.exponent, sizeof(U32s));
            memcpy(negative + i, &x.negative, sizeof(U32s));
            memcpy(nan + i, &x.nan, sizeof(U32s));
            memcpy(infinite + i, &x.infinite, sizeof(U32s));
        }
    }
    Item<U32s> operator()(int k) const {
        return {splat<U32s>(significand[k]), splat<U32s>(exponent[k]), splat<U32s>(negative[k]), splat<U32s>(nan[k]),
                splat<U32s>(infinite[k])};
    }
};

inline bool evaluate(const LayoutCall& call) {
    const Header header{call.program};
    const Rules r(call.program, header, TwoStageRow{call.program + header[Header::rules]});
    const auto bytes = [&](Header::Column c) { return int(OperandRow{call.program + header[c]}[OperandRow::bytes]); };
    const int a_bytes = bytes(Header::a), b_bytes = bytes(Header::b);
    const Environment environment;
    const i64 strips = call.n ? (call.m + STRIP - 1) / STRIP : 1;
    Operand a, b;
    Column column;
    const auto at_a = [&](int k) { return a.item[k]; };
    const auto store = [&](i64 to, U32s d) { memcpy(static_cast<u32*>(call.d) + to, &d, sizeof d); };
    const auto addend = [&](i64 at) { return call.c ? fused::load_codes<u32>(call.c, at) : U32s{}; };
    for (i64 strip = 0; strip < call.count * strips; ++strip)
        for (int part = 0; part < STRIP; part += LANES) {
            for (int k = 0; k < r.k; ++k) {
                const i64 at = (strip * r.k + k) * STRIP + part;
                a.put(k, r.step, read_item<U32s>(r.a, fused::load_codes(a_bytes, call.a, at)));
                if (!call.n) b.put(k, r.step, read_item<U32s>(r.b, fused::load_codes(b_bytes, call.b, at)));
            }
            if (!call.n) {
                const i64 at = strip * STRIP + part;
                const auto at_b = [&](int k) { return b.item[k]; };
                store(at, run_lanes(r, at_a, at_b, a.special, b.special, addend(at)));
            }
            for (i64 n = 0; n < call.n; ++n) {
                const i64 at = (strip * call.n + n) * STRIP + part;
                column.read(r.b, b_bytes, call.b, (strip / strips * call.n + n) * r.k, r.k);
                for (int k = 0; k < r.k; ++k) {
                    const u32 special = column.nan[k] | column.infinite[k];
                    b.special[k / r.step] = (k % r.step ? b.special[k / r.step] : U32s{}) | splat<U32s>(special);
                }
                store(at, run_lanes(r, at_a, column, a.special, b.special, addend(at)));
            }
        }
    return true;
}

}  // namespace two_stage
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
