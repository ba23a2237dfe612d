// Steps of decoded lanes for kernels without a decoding of their own: rows and vectors as they are, columns spread.
#pragma once
#include "cpu/kernels/floats.hpp"
#include "cpu/kernels/fused_exact.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace items {

constexpr int MOST_K = 64;
constexpr i64 NO_OVERFLOW = 1 << 20;  // an exponent above all

// What such a kernel knows of every datapath.
struct Rules {
    Reading a, b, c, carry;
    int k, step;
    i32 overflow;
    Writing to;

    Rules(const i64* program, const Header& h, i64 step_length, i64 carry_row)
        : a(OperandRow{program + h[Header::a]}), b(OperandRow{program + h[Header::b]}),
          c(OperandRow{program + (h[Header::c] == ABSENT ? carry_row : h[Header::c])}),
          carry(OperandRow{program + carry_row}), k(int(h[Header::k])), step(int(step_length)),
          overflow(i32(smaller(h[Header::overflow_exponent], NO_OVERFLOW))),
          to(EncodeRow{program + h[Header::d]}, u32(h[Header::nan_code])) {}
};

// Significands, exponents and signs of one operand's lanes.
struct Operand {
    Item<U32s> item[MOST_K];
    U32s special[MOST_K];  // of each step: whether a lane of it is a NaN or an infinity

    void put(int k, int step, const Item<U32s>& x) {
        item[k] = x;
        put_special(k, step, x.nan | x.infinite);
    }
    void put_special(int k, int step, U32s is_special) {
        special[k / step] = (k % step ? special[k / step] : U32s{}) | is_special;
    }
};

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
    return unless_special<u32>(r.to, 0, mask_of(nan), mask_of(plus), mask_of(minus));
}

// A zero sum is negative where all products and c are negative zeros.
template <class A, class B>
u32 zero_code(const Rules& r, const A& a, const B& b, int first, int i) {
    for (int k = first; k < first + r.step; ++k)
        if ((a(k).significand[i] && b(k).significand[i]) || !(a(k).negative[i] ^ b(k).negative[i])) return 0;
    return u32(1) << 31;
}

// The sum d of a step, with what its specials make of the flagged lanes and the sign of zero sums, one by one.
template <class A, class B>
MMAPROBE_HD U32s with_specials(const Rules& r, const A& a, const B& b, const Item<U32s>& c, int first, U32s d,
                               U32s flagged) {
    const U32s none = splat<U32s>(0), zeros = equal(d << 1, none) & equal(c.significand, none) & c.negative;
    if (any(flagged | zeros))
        for (int i = 0; i < LANES; ++i) {
            const u32 code = flagged[i] ? special_code(r, a, b, c, first, i) : 0;
            d[i] = code ? code : d[i] | (zeros[i] ? zero_code(r, a, b, first, i) : 0);
        }
    return d;
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

// A register of results at a time, by a kernel's step(rules, a, b, specials, c, first), step after step; the rows of one
// are decoded once for all its columns.
template <class R, class Step>
struct Lanes {
    const LayoutCall& call;
    const R& r;
    const Step& step;
    const int a_bytes = bytes(Header::a), b_bytes = bytes(Header::b);
    const i64 strips = call.n ? (call.m + STRIP - 1) / STRIP : 1;
    Operand a, b;
    Column column;
    i64 rows = -1;  // the first of those decoded

    Lanes(const LayoutCall& c, const R& rules, const Step& s) : call(c), r(rules), step(s) {}

    int bytes(Header::Column name) const {
        return int(OperandRow{call.program + Header{call.program}[name]}[OperandRow::bytes]);
    }
    void read_lanes(const Reading& reading, int width, const void* base, i64 first, int part, Operand& to) const {
        for (int k = 0; k < r.k; ++k)
            to.put(k, r.step, read_item<U32s>(reading, fused::load_codes(width, base, (first + k) * STRIP + part)));
    }
    void read_rows(i64 strip, int part) {
        if (rows == strip * STRIP + part) return;
        rows = strip * STRIP + part;
        read_lanes(r.a, a_bytes, call.a, strip * r.k, part, a);
    }
    template <class B>
    void run(i64 at, const B& other) const {
        U32s d = call.c ? fused::load_codes<u32>(call.c, at) : U32s{};
        const auto at_a = [&](int k) { return a.item[k]; };
        for (int first = 0; first < r.k; first += r.step)
            d = step(r, at_a, other, a.special[first / r.step] | b.special[first / r.step], d, first);
        memcpy(static_cast<u32*>(call.d) + at, &d, sizeof d);
    }
    void run_group(i64 group, int part) {
        read_rows(group, part);
        read_lanes(r.b, b_bytes, call.b, group * r.k, part, b);
        run(group * STRIP + part, [&](int k) { return b.item[k]; });
    }
    void run_column(i64 strip, int part, i64 n) {
        read_rows(strip, part);
        column.read(r.b, b_bytes, call.b, (strip / strips * call.n + n) * r.k, r.k);
        for (int k = 0; k < r.k; ++k) b.put_special(k, r.step, splat<U32s>(column.nan[k] | column.infinite[k]));
        run((strip * call.n + n) * STRIP + part, column);
    }
    void run_all() {
        for (i64 strip = 0; strip < call.count * strips; ++strip)
            for (int part = 0; part < STRIP; part += LANES) {
                if (!call.n) run_group(strip, part);
                for (i64 n = 0; n < call.n; ++n) run_column(strip, part, n);
            }
    }
};

// Runs a kernel's step over all tiles or groups of a call; its rules R are made of the program's row of that kind.
template <class R, class Row, class Step>
bool sweep(const LayoutCall& call, const Step& step) {
    const Header header{call.program};
    const Environment environment;
    const R r(call.program, header, Row{call.program + header[Header::rules]});
    Lanes<R, Step>(call, r, step).run_all();
    return true;
}

}  // namespace items
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
