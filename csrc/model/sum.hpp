// Sums: two values with a sticky bit (Fma, Add), and many on a common grid (Fused, Exact).
#pragma once
#include "special.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

// Sign of a zero sum; `down` where the Encode that follows rounds towards minus infinity.
MMAPROBE_HD u64 zero_sign(u64 down, u64 all_negative, u64 any_negative) { return all_negative | (down & any_negative); }

MMAPROBE_HD u64 special_sum(u64 special) {
    const u64 infinity = special & MINUS_INFINITE ? MINUS_INFINITE | NEGATIVE : special & PLUS_INFINITE;
    const bool clash = (special & ANY_INFINITE) == ANY_INFINITE;
    return (special & NOT_NUMBER) || clash ? u64(NOT_NUMBER) : infinity;
}

// to = x + y, where both have at most width - 4 bits: exact, or with every bit lost below the lowest
// kept one gathered in that one; at least width - 5 leading bits are right. Specials included.
template <class W, int V>
MMAPROBE_CALL void add_registers(const Register<W, V>& x, const Register<W, V>& y, Register<W, V>& to, u64 down,
                                 int count) {
    constexpr int top = Traits<W>::width - 2;
    i64 length_x[V], length_y[V];
    lengths(x.magnitude, length_x, count);
    lengths(y.magnitude, length_y, count);
    MMAPROBE_EACH(i, count) {
        const i64 up_x = top - length_x[i], up_y = top - length_y[i];
        const u64 fx = x.flags[i], fy = y.flags[i], special = (fx | fy) & ANY_SPECIAL;
        const W mx = shl(x.magnitude[i], up_x), my = shl(y.magnitude[i], up_y);
        const i64 ex = length_x[i] ? x.exponent[i] - up_x : NO_LABEL;
        const i64 ey = length_y[i] ? y.exponent[i] - up_y : NO_LABEL;
        const bool swap = ex < ey;
        const W big = swap ? my : mx, small = swap ? mx : my;
        const i64 exponent = swap ? ey : ex, apart = exponent - (swap ? ex : ey);
        const i64 shift = smaller(apart, top + 1);
        const W moved = shr(small, shift);
        const W sticky = moved + make<W>(any_below(small, shift) & ~low(moved));
        const u64 nx = fx & NEGATIVE, ny = fy & NEGATIVE, first = swap ? ny : nx;
        const W sum = nx == ny ? big + sticky : big - sticky;
        const u64 turned = is_negative(sum);
        const i64 both_zero = length_x[i] | length_y[i];
        const u64 sign_of_zero = both_zero == 0 ? zero_sign(down, nx & ny, nx | ny) : down;
        const W magnitude = turned ? make<W>(0) - sum : sum;
        const u64 sign = is_zero(sum) ? sign_of_zero : first ^ turned;
        to.magnitude[i] = special ? make<W>(0) : magnitude;
        to.exponent[i] = exponent;
        to.flags[i] = special ? special_sum(special) : sign;
    }
}

// What a sum of many terms gathers for each vector.
template <class W, int V>
struct alignas(64) Gathered {
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
    MMAPROBE_EACH(i, count) {
        g.sum[i] = make<W>(0);
        g.largest[i] = NO_LABEL;
        g.special[i] = g.kept[i] = g.any_negative[i] = 0;
        g.all_negative[i] = NEGATIVE;
    }
}

template <class W, int V>
MMAPROBE_HD void see_label(Gathered<W, V>& g, const Register<W, V>& x, const TermRow& t, int count) {
    const i64 zero_exponent = t[TermRow::zero_exponent], offset = t[TermRow::label_offset];
    MMAPROBE_EACH(i, count)
    g.largest[i] = larger(g.largest[i], x.label[i] == NO_LABEL ? zero_exponent : x.label[i] + offset);
}

// How a term is added.
enum class Cut { TOWARDS_ZERO, BY_TABLE, RARE };

// Adds one term on the grid 2^(ANCHORED ? grid : largest label - grid), cut by its rounding table.
// RARE: it is shifted by shift_limit at most, its rounding looks at sticky_bits bits, and with a frame one of another
// sign than the frame's is one unit of the grid larger.
template <bool ANCHORED, Cut CUT, class W, int V>
MMAPROBE_HD void add_cut(Gathered<W, V>& g, const Register<W, V>& x, const TermRow& t, i64 grid, const u64* frame,
                         int count) {
    constexpr int most = Traits<W>::width - 1;
    const i64 fraction_bits = t[TermRow::fraction_bits], cutoff = t[TermRow::cutoff], offset = t[TermRow::label_offset];
    const i64 sticky_bits = t[TermRow::sticky_bits], shift_limit = t[TermRow::shift_limit];
    const u64 table = u64(t[TermRow::table]);
    MMAPROBE_EACH(i, count) {
        const i64 largest = g.largest[i], short_by = largest - shift_limit - (x.label[i] + offset);
        const bool shown = x.label[i] != NO_LABEL;
        const i64 own = x.exponent[i] + (CUT == Cut::RARE && shown ? larger(short_by, 0) : 0);
        const i64 exponent = larger(largest - fraction_bits, own), down = exponent - own;
        const i64 up = exponent - (ANCHORED ? grid : largest - grid);
        const u64 flags = x.flags[i], negative = flags & NEGATIVE;
        W whole = x.label[i] + offset < largest - cutoff ? make<W>(0) : x.magnitude[i];
        if (CUT == Cut::RARE) {
            const i64 unseen = smaller(larger(down - sticky_bits, 0), most);
            whole = shl(shr(whole, unseen), unseen);
        }
        const W cut = CUT == Cut::TOWARDS_ZERO ? shr(whole, smaller(down, most))
                                               : round_right(whole, down, negative, table);
        W m = shl(cut, smaller(larger(up, 0), most));
        if (CUT == Cut::RARE && frame)
            m = m + make<W>(negative != (frame[i] & NEGATIVE) && largest != NO_LABEL ? 1 : 0);
        g.kept[i] |= is_zero(m) ? 0 : 1;
        g.sum[i] = negative ? g.sum[i] - m : g.sum[i] + m;
        g.special[i] |= flags & ANY_SPECIAL;
        g.all_negative[i] &= flags;
        g.any_negative[i] |= negative;
    }
}

template <class W, int V>
MMAPROBE_CALL void add_term(Gathered<W, V>& g, const Register<W, V>& x, const TermRow& t, bool anchored, i64 grid,
                            const u64* frame, int count) {
    const bool towards_zero = t[TermRow::table] == 0;
    const bool limited = t[TermRow::sticky_bits] != UNCUT || t[TermRow::shift_limit] != NEVER;
    if (anchored && limited)  // a term keeps every bit: there is no last place, and no frame
        add_cut<true, Cut::RARE>(g, x, t, grid, nullptr, count);
    else if (anchored && towards_zero)
        add_cut<true, Cut::TOWARDS_ZERO>(g, x, t, grid, frame, count);
    else if (anchored)
        add_cut<true, Cut::BY_TABLE>(g, x, t, grid, frame, count);
    else if (frame || limited)
        add_cut<false, Cut::RARE>(g, x, t, grid, frame, count);
    else if (towards_zero)
        add_cut<false, Cut::TOWARDS_ZERO>(g, x, t, grid, frame, count);
    else
        add_cut<false, Cut::BY_TABLE>(g, x, t, grid, frame, count);
}

// Sums in two's complement with magnitudes of so many bits: beyond them they wrap, or saturate.
template <class W, int V>
MMAPROBE_CALL void carry_sum(Gathered<W, V>& g, i64 bits, bool saturates, int count) {
    const i64 free = Traits<W>::width - 1 - bits;
    if (bits < 0 || free <= 0) return;  // no sum is so large
    const W most = shl(make<W>(1), bits) - make<W>(1), one = make<W>(1);
    MMAPROBE_EACH(i, count) {
        const W sum = g.sum[i];
        const W wrapped = shl(sum, free);  // its lowest bits, the sign on top
        const bool negative = is_negative(wrapped);
        const W size = shr(negative ? make<W>(0) - wrapped : wrapped, free);
        const W held = negative ? make<W>(0) - size : size;
        const bool below = is_negative(sum);
        const W limit = below ? make<W>(0) - most - one : most;
        g.sum[i] = saturates && !is_zero(sum - held) ? limit : held;
    }
}

// The sum as a value on its grid.
template <class W, int V>
MMAPROBE_CALL void finish_sum(const Gathered<W, V>& g, Register<W, V>& to, bool anchored, i64 grid, u64 down,
                              int count) {
    MMAPROBE_EACH(i, count) {
        const u64 special = g.special[i], turned = is_negative(g.sum[i]);
        const u64 zeros = zero_sign(down, g.all_negative[i] & NEGATIVE, g.any_negative[i]);
        const u64 sign_of_zero = g.kept[i] ? down : zeros;
        const W magnitude = turned ? make<W>(0) - g.sum[i] : g.sum[i];
        to.magnitude[i] = special ? make<W>(0) : magnitude;
        to.exponent[i] = anchored ? grid : g.largest[i] - grid;
        to.label[i] = g.largest[i];
        to.flags[i] = special ? special_sum(special) : is_zero(g.sum[i]) ? sign_of_zero : turned;
    }
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
