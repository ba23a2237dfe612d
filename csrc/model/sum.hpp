// Sums: two values with a sticky bit (Fma, Add), and many on a common grid (Fused, Exact).
#pragma once
#include "special.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

template <class W>
struct Exactly {
    W magnitude;
    i64 exponent;
    bool negative;
};

// Sign of a zero sum; `down` where the Encode that follows rounds towards minus infinity.
MMAPROBE_HD bool zero_sign(bool down, bool all_negative, bool any_negative) {
    return all_negative || (down && any_negative);
}

// x + y for non-zero x and y of at most width - 4 bits: exact, or with every bit lost below the
// lowest kept one gathered in that one; at least width - 5 leading bits are right.
template <class W>
MMAPROBE_HD Exactly<W> add_two(Exactly<W> x, Exactly<W> y) {
    constexpr int top = Traits<W>::width - 2;
    const int up_x = top - length(x.magnitude), up_y = top - length(y.magnitude);
    x.magnitude = shl(x.magnitude, up_x);
    y.magnitude = shl(y.magnitude, up_y);
    x.exponent -= up_x;
    y.exponent -= up_y;
    if (x.exponent < y.exponent) {
        const Exactly<W> t = x;
        x = y;
        y = t;
    }
    const int down = int(smaller(x.exponent - y.exponent, top + 1));
    const bool lost = any_below(y.magnitude, down);
    y.magnitude = shr(y.magnitude, down);
    if (lost && !(low(y.magnitude) & 1)) y.magnitude = y.magnitude + make<W>(1);
    if (x.negative == y.negative) {
        x.magnitude = x.magnitude + y.magnitude;
    } else {
        x.magnitude = x.magnitude - y.magnitude;
        if (is_negative(x.magnitude)) {
            x.magnitude = make<W>(0) - x.magnitude;
            x.negative = !x.negative;
        }
    }
    return x;
}

// What a sum of many terms gathers for each vector.
template <class W, int V>
struct Gathered {
    W sum[V];        // two's complement, in units of 2^grid
    i64 largest[V];  // label
    u64 special[V];  // all special flags
    u64 kept[V];     // not zero where a term is not zero after cutting
    u64 all_negative[V], any_negative[V];
};

constexpr i64 UNCUT = i64(1) << 32;  // fraction_bits of a term that is not cut
constexpr i64 NEVER = i64(1) << 32;  // cutoff of a term that is never dropped

template <class W, int V>
MMAPROBE_HD void start_sum(Gathered<W, V>& g, int count) {
    for (int i = 0; i < count; ++i) {
        g.sum[i] = make<W>(0);
        g.largest[i] = NO_LABEL;
        g.special[i] = g.kept[i] = g.any_negative[i] = 0;
        g.all_negative[i] = NEGATIVE;
    }
}

template <class W, int V>
MMAPROBE_HD void see_label(Gathered<W, V>& g, const Register<W, V>& x, const TermRow& t, int count) {
    const i64 zero_exponent = t[TermRow::zero_exponent];
    for (int i = 0; i < count; ++i)
        g.largest[i] = larger(g.largest[i], x.label[i] == NO_LABEL ? zero_exponent : x.label[i]);
}

// Adds one term, cut, on the grid 2^(anchored ? grid : largest label - grid).
template <class W, int V>
MMAPROBE_HD void add_term(Gathered<W, V>& g, const Register<W, V>& x, const TermRow& t, bool anchored, i64 grid,
                          int count) {
    constexpr int most = Traits<W>::width - 1;
    const i64 fraction_bits = t[TermRow::fraction_bits], cutoff = t[TermRow::cutoff];
    const u64 table = u64(t[TermRow::table]);
    for (int i = 0; i < count; ++i) {
        const i64 largest = g.largest[i], floor = largest - fraction_bits;
        const i64 exponent = larger(floor, x.exponent[i]), down = exponent - x.exponent[i];
        const i64 up = exponent - (anchored ? grid : largest - grid);
        const u64 flags = x.flags[i];
        W m = x.magnitude[i];
        if (cutoff != NEVER && x.label[i] < largest - cutoff) m = make<W>(0);
        if (table == 0)
            m = shr(m, int(smaller(down, most)));
        else if (down > 0)
            m = round_right(m, down, flags & NEGATIVE, table);
        m = shl(m, int(smaller(larger(up, 0), most)));
        g.kept[i] |= u64(!is_zero(m));
        g.sum[i] = flags & NEGATIVE ? g.sum[i] - m : g.sum[i] + m;
        g.special[i] |= flags & ANY_SPECIAL;
        g.all_negative[i] &= flags;
        g.any_negative[i] |= flags & NEGATIVE;
    }
}

MMAPROBE_HD u64 special_sum(u64 special) {
    if ((special & NOT_NUMBER) || (special & ANY_INFINITE) == ANY_INFINITE) return NOT_NUMBER;
    return special & MINUS_INFINITE ? MINUS_INFINITE | NEGATIVE : PLUS_INFINITE;
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
