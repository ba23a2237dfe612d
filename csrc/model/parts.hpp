// Operands in parts of a narrower format (docs/datapath.md section 2).
#pragma once
#include "encode.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

// The part of a finite value that a format of the same range holds, rounded; what it leaves stays in x.
struct Rest {
    u64 magnitude;
    i64 last;  // exponent of its lowest bit
    u64 negative;
};
struct Part {
    u64 significand;
    i64 exponent;
    u64 flags;
};
MMAPROBE_HD Part cut_part(const SplitRow& s, Rest& x) {
    const i64 bits = s[SplitRow::fraction_bits];
    const i64 top = larger(x.last + count_bits(x.magnitude) - 1, s[SplitRow::min_exponent]);
    const i64 shift = smaller(top - bits - x.last, 62);
    Part part = {0, top - bits, x.negative};
    if (shift <= 0) {
        part.significand = x.magnitude << -shift;
        x = {0, x.last, 0};
        return part;
    }
    const u64 kept = x.magnitude >> shift, half = x.magnitude >> (shift - 1) & 1;
    const u64 below = (x.magnitude & low_bits(shift - 1)) != 0;
    const u64 up = u64(s[SplitRow::table]) >> (x.negative << 3 | (kept & 1) << 2 | half << 1 | below) & 1;
    part.significand = kept + up;
    const u64 taken = part.significand << shift;
    const bool over = taken > x.magnitude;
    x.magnitude = over ? taken - x.magnitude : x.magnitude - taken;
    x.negative = x.magnitude ? (over ? x.negative ^ NEGATIVE : x.negative) : 0;
    if (part.significand >> (bits + 1)) part.significand >>= 1, ++part.exponent;
    if (part.exponent + bits > s[SplitRow::max_exponent]) {
        part.significand = 0;
        part.flags |= part.flags ? u64(MINUS_INFINITE) : u64(PLUS_INFINITE);
    }
    return part;
}

// Part `index` of each operand in its place: what an infinite part leaves is an infinity of the other sign.
template <int V>
MMAPROBE_HD void take_part(const SplitRow& s, i64 index, Decoded<V>& x, int count) {
    for (int i = 0; i < count; ++i) {
        Part part = {x.significand[i], x.exponent[i], x.flags[i]};
        Rest rest = {x.significand[i], x.exponent[i], x.flags[i] & NEGATIVE};
        for (i64 n = 0; n <= index && !(part.flags & NOT_NUMBER); ++n) {
            if (n == 0 && (part.flags & ANY_INFINITE)) continue;
            if (part.flags & ANY_INFINITE)
                part.flags ^= NEGATIVE | ANY_INFINITE;
            else
                part = cut_part(s, rest);
        }
        x.significand[i] = part.significand;
        x.exponent[i] = part.exponent;
        x.flags[i] = part.flags;
    }
}

// The factors of product `number` of a lane in the place of its operands.
template <int V>
MMAPROBE_CALL void take_parts(const SplitRow& s, i64 number, Decoded<V>& a, Decoded<V>& b, int count) {
    const i64* pair = s.at + SplitRow::SIZE + 2 * number;
    u64 special[V];
    if (s[SplitRow::whole]) {
        Decoded<V> first = a, second = b;
        take_part(s, 0, first, count);
        take_part(s, 0, second, count);
        MMAPROBE_EACH(i, count) special[i] = (first.flags[i] | second.flags[i]) & ANY_SPECIAL;
    }
    take_part(s, pair[0], a, count);
    take_part(s, pair[1], b, count);
    if (!s[SplitRow::whole] || (pair[0] == 0 && pair[1] == 0)) return;
    MMAPROBE_EACH(i, count) {
        a.significand[i] = special[i] ? 0 : a.significand[i];
        b.significand[i] = special[i] ? 0 : b.significand[i];
        a.flags[i] = special[i] ? 0 : a.flags[i];
        b.flags[i] = special[i] ? 0 : b.flags[i];
    }
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
