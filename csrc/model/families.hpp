// The floating families: what each vector aims at.  Each is a record made from the vector's words v[0..11], with the
// aim of a lane (from its word `role`) and of C.  The rules are told in mmaprobe/generators/families_float.py, which
// this file repeats bit for bit.
#pragma once
#include "operands.hpp"

// The families and the versions of their rules; Python has the same list (VERSIONS of generators/families.py) and
// refuses a module that has another.
// clang-format off
#define MMAPROBE_FAMILIES(X)                                                                      \
    X(UNIFORM, 1) X(CLUSTERED, 3) X(CANCEL, 1) X(ULP, 1) X(TIE, 1) X(ZLAD, 1) X(TINY, 1)          \
    X(SUBNORMALS, 1) X(EXTREMES, 1) X(CONLY, 1) X(ZEROS, 1) X(SPECIALS, 1)                        \
    X(CODES, 1) X(MULTIPLIER, 1) X(CARRIES, 1)
// clang-format on

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {

#define MMAPROBE_NAME(name, version) name,
enum Family : i32 { MMAPROBE_FAMILIES(MMAPROBE_NAME) };
#undef MMAPROBE_NAME

// Tables of four small entries, by two random bits.
MMAPROBE_HD u32 choose(u32 bits, u32 e0, u32 e1, u32 e2, u32 e3) {
    return (e0 | e1 << 4 | e2 << 8 | e3 << 12) >> 4 * (bits & 3) & 15;
}
MMAPROBE_HD u32 density(u32 bits) { return 32 * choose(bits, 1, 2, 6, 8); }
MMAPROBE_HD u32 fillers(u32 bits) { return choose(bits, POW2, FULL, FULL, TOP2); }
MMAPROBE_HD u32 tops(u32 bits) { return choose(bits, ONES, FULL, POW2, TOP2); }

MMAPROBE_HD i32 anchor(const Space& s, u32 word, u32 near_top) {
    const i32 count = s.anchor_top - s.anchor_low + 1;
    return s.anchor_top - pick(word, near_top ? smaller(count, 8) : count);
}

MMAPROBE_HD i32 wrap(i32 lane, i32 count) { return lane >= count ? lane - count : lane; }

struct Three {
    i32 i, j, third;
    MMAPROBE_HD Three(u32 word, u32 extra, i32 count)
        : i(pick16(word >> 16, count)), j(wrap(i + 1 + pick16(word, count - 1), count)),
          third(wrap(j + 1 + pick16(extra, count - 1), count)) {}
};

MMAPROBE_HD Lane simple(i32 exponent, u32 negative, u32 zero, u32 pattern) {
    return {exponent, negative, zero, pattern, pattern, 0, 0, 0, 0};
}
MMAPROBE_HD Addend plain(i32 exponent, u32 negative, u32 zero, u32 pattern) {
    return {exponent, negative, zero, pattern, -1, 0};
}

struct Clustered {
    i32 m, width;
    u32 some_zero;
    MMAPROBE_HD Clustered(const Domain& t, const u32* v)
        : m(anchor(t.space, v[1], 0)), width((pick(v[0], 46) >> (v[3] & 3)) + 1), some_zero(v[3] >> 2 & 1) {}
    MMAPROBE_HD Lane lane(const Domain&, i32, u32 role, u32) const {
        return simple(m - pick(role, width), role & 1, some_zero & u32((role >> 1 & 31) == 0), FULL);
    }
    MMAPROBE_HD Addend addend(const Domain&, const u32* v) const {
        return plain(m - pick(v[10], width), v[10] & 1, (v[10] >> 1 & 15) == 0, FULL);
    }
};

struct Cancel {
    u32 style, alive, tiny, first, pair, filler;
    Three at;
    i32 m, t0, near, product_low;
    MMAPROBE_HD Cancel(const Domain& t, const u32* v)
        : style(v[0]), alive(density(style >> 3)), tiny(style >> 7 & 1), first(style >> 8 & 1),
          pair(t.space.live + t.c.present == 2 ? choose(style >> 5, POW2, FULL, FULL, FULL)
                                               : choose(style >> 5, POW2, POW2, FULL, TOP2)),
          filler(fillers(style >> 9)), at(v[2], 0, t.space.live + t.c.present),
          m(style >> 21 & 7 ? anchor(t.space, v[1], style >> 16 & 1)
                            : clamp(t.space.d_normal + pick16(v[7], 6), t.space.anchor_low, t.space.anchor_top)),
          t0(pick(v[3], 45)), near(t.space.d_fraction + 1), product_low(t.space.product_low) {}
    MMAPROBE_HD i32 below(u32 word) const {
        const i32 jitter = pick16(word >> 16, 5) - 2, far = pick16(word >> 16, 43);
        const u32 mode = style & 3;
        return mode == 0 ? far : mode == 1 ? t0 + jitter : mode == 2 ? t0 : near + jitter;
    }
    MMAPROBE_HD u32 sign(u32 word) const { return (style & 4 ? style >> 13 : word >> 8) & 1; }
    MMAPROBE_HD Lane lane(const Domain&, i32 k, u32 role, u32) const {
        const u32 second = k == at.j, anchored = u32(k == at.i) | second, live = (role & 255) < alive;
        const u32 residue = second & u32(pair == FULL) & (style >> 20);
        Lane out = simple(anchored ? m
                          : live   ? m - below(role)
                                   : product_low,
                          anchored ? first ^ second : sign(role), !anchored & !live & !tiny,
                          anchored ? (residue ? u32(UPPER) : pair) : filler);
        out.shared = anchored;
        return out;
    }
    MMAPROBE_HD Addend addend(const Domain& t, const u32* v) const {
        const u32 c = v[10], move = style >> 17 & 7;
        const i32 mirror = at.i == t.space.live ? at.j : at.j == t.space.live ? at.i : -1;
        return {m - below(c), sign(c), (c & 255) >= alive, filler, mirror, move == 6 ? 1 : move == 7 ? -1 : 0};
    }
};

struct Ulp {
    u32 style, alive, c_big, large;
    i32 t0, m, i;
    MMAPROBE_HD Ulp(const Domain& t, const u32* v)
        : style(v[0]), alive(density(style >> 3)), c_big(style & u32(t.c.present)),
          large(choose(style >> 8, POW2, FULL, ONES, LOWBIT)),
          t0(style & 2 ? t.space.d_fraction + 1 : 1 + pick(v[3], 44)), m(anchor(t.space, v[1], 0)),
          i(c_big ? -1 : pick16(v[2], t.space.live)) {
        if (c_big & (style >> 2)) m = smaller(m + t0, t.space.c_top);
    }
    MMAPROBE_HD i32 small(u32 word) const { return m - t0 - pick16(word >> 16, 5) + 2; }
    MMAPROBE_HD u32 sign(u32 word) const { return (style & 32 ? style >> 6 : word >> 8) & 1; }
    MMAPROBE_HD u32 fine(u32 word) const { return word >> 9 & 1 ? FULL : POW2; }
    MMAPROBE_HD Lane lane(const Domain&, i32 k, u32 role, u32) const {
        const u32 big = k == i, live = (role & 255) < alive;
        Lane out = simple(big ? m : small(role), big ? style >> 7 & 1 : sign(role), !big & !live,
                          big ? large : fine(role));
        out.pattern_b = big & (style >> 10) ? u32(POW2) : out.pattern_b;
        return out;
    }
    MMAPROBE_HD Addend addend(const Domain&, const u32* v) const {
        const u32 c = v[10];
        return plain(c_big ? m : small(c), c_big ? style >> 7 & 1 : sign(c), !c_big & ((c & 255) >= alive),
                     c_big ? large : fine(c));
    }
};

struct Tie {
    u32 style, c_big, quarters, own, big_pattern;
    Three at;
    i32 half, m, sticky;
    MMAPROBE_HD Tie(const Domain& t, const u32* v) : style(v[0]), at(v[2], v[3], t.space.live) {
        const Space& s = t.space;
        const u32 narrow = u32(s.product_top - s.d_fraction - 1 < s.product_low) | u32(s.live == 1);
        c_big = ((style | style >> 1 | narrow) & 1) *
                u32(t.c.present);  // a product, so that compilers see no condition
        const i32 low = larger(s.product_low, s.d_low - 1), high = smaller(s.product_top, s.c_top - s.d_fraction - 1);
        const i32 all = larger(high - low + 1, 1);
        const i32 half_c = low + pick(v[1], style & 0x70 ? all : smaller(all, 3));
        const i32 m_lane = anchor(s, v[1], style >> 16 & 1);
        half = c_big ? half_c : larger(m_lane, s.d_normal) - s.d_fraction - 1;
        m = c_big ? half_c + 1 + s.d_fraction : m_lane;
        if (c_big && half_c < s.d_low) m = s.d_low + pick16(v[10], s.d_fraction + 1);
        quarters = style >> 7 & u32(s.live + i32(c_big) >= 3);
        sticky = half - 1 - pick(v[7], style & 0x100 ? 34 : 8);
        own = style >> 9 & 3 ? POW2 : style >> 11 & 1 ? LOWBIT : ONES;
        big_pattern = t.a.fraction > s.d_fraction ? UPPER : FULL;
    }
    MMAPROBE_HD Lane lane(const Domain&, i32 k, u32, u32) const {
        const u32 big = u32(k == at.i) & !c_big;
        const u32 at_half = u32(c_big ? k == at.i : k == at.j) & !big;
        const u32 other = u32(c_big ? k == at.j : k == at.third) & !big & !at_half;
        const i32 exponent = big       ? m
                             : at_half ? half - i32(quarters) - i32(own == ONES)
                                       : (quarters ? half - 1 : sticky);
        const u32 sign = big ? style >> 14 : at_half | (quarters & other) ? style >> 12 : style >> 13;
        Lane out = simple(exponent, sign & 1, !big & !at_half & !(other & (quarters | (style >> 15 & 1))),
                          big       ? big_pattern
                          : at_half ? own
                                    : u32(POW2));
        out.pattern_b = POW2;
        return out;
    }
    MMAPROBE_HD Addend addend(const Domain& t, const u32*) const {
        const u32 c_sticky = (style >> 17 & 3) == 0;
        return plain(c_big ? m : sticky, style >> 14 & 1, !c_big & !c_sticky,
                     !c_big                               ? POW2
                     : t.c.fraction <= t.space.d_fraction ? FULL
                                                          : UPPER);
    }
};

struct Zlad {
    u32 style, plain_terms, tiny, pattern;
    Three at;
    i32 last, second_last, ladder, m, product_low;
    MMAPROBE_HD Zlad(const Domain& t, const u32* v)
        : style(v[0]), plain_terms((style & 3) == 0), tiny(style >> 4 & 1), pattern(plain_terms ? FULL : POW2),
          at(v[2], v[3], t.space.live), last(t.space.d_low - 1 + pick16(v[1], 3)),
          second_last(t.space.d_low - 1 + pick16(v[1] >> 16, 3)),
          ladder(style & 8 ? t.space.d_normal - 26 - pick16(v[7], 5) - pick16(v[7] >> 16, 6)
                           : t.space.d_normal - pick(v[7], 64)),
          m(anchor(t.space, v[1], 0)), product_low(t.space.product_low) {}
    MMAPROBE_HD Lane lane(const Domain&, i32 k, u32 role, u32) const {
        const u32 first = k == at.i, second = u32(k == at.j) & (style >> 2);
        const u32 used = first | second | u32(k == at.third);
        const i32 low = !used ? product_low : first ? last : second ? second_last : ladder;
        const u32 zero = plain_terms ? (role & 7) != 0 : !used & !tiny;
        return simple(plain_terms ? m - pick16(role >> 16, 30) : low, role >> 8 & 1, zero, pattern);
    }
    MMAPROBE_HD Addend addend(const Domain& t, const u32* v) const {
        const u32 c = v[10];
        return plain(plain_terms ? m - pick16(c, 30) : t.space.d_low + pick16(c, 3), c >> 16 & 1, (c >> 17 & 3) != 0,
                     pattern);
    }
};

struct Tiny {
    u32 style, edge, graze, lane_edge, pattern_a, pattern_b, pattern;
    Three at;
    i32 beside, product_low;
    MMAPROBE_HD Tiny(const Domain& t, const u32* v)
        : style(v[0]), edge(u32((style >> 4 & 3) == 0) & u32(t.space.live + t.c.present >= 2)),
          graze(edge & u32((style >> 9 & 3) == 0)), lane_edge(!t.c.present & !graze), pattern_a(graze       ? GRAZE_A
                                                                                                : style & 8 ? FULL
                                                                                                            : POW2),
          pattern_b(graze       ? GRAZE_B
                    : style & 8 ? FULL
                                : POW2),
          pattern(style & 8 ? FULL : POW2), at(v[2], v[3], t.space.live),
          beside(graze ? t.space.d_normal - 1 : t.space.d_low - 1 - pick16(v[7], 3)), product_low(t.space.product_low) {
    }
    MMAPROBE_HD Lane lane(const Domain& t, i32 k, u32 role, u32) const {
        const u32 first = k == at.i, second = k == at.j;
        const u32 used = (first | (second & style) | (u32(k == at.third) & (style >> 1))) & 1;
        const u32 edge_lane = first | (second & lane_edge);
        const i32 near = t.space.d_low - 2 + pick16(role >> 16, t.space.d_fraction + 5);
        const i32 edge_exponent = first ? beside : t.space.d_normal;
        const u32 sign = edge ? style >> 6 ^ (first & style >> 7) : role;
        Lane out = simple(edge & edge_lane ? edge_exponent
                          : used           ? near
                                           : product_low,
                          sign & 1, edge ? !edge_lane : (!used & !(style >> 2 & 1)), pattern_a);
        out.pattern_b = pattern_b;
        return out;
    }
    MMAPROBE_HD Addend addend(const Domain& t, const u32* v) const {
        const u32 c = v[10], below = style >> 8 & 1;
        return plain(edge ? t.space.d_normal - i32(below) : t.space.d_low + pick16(c >> 16, t.space.d_fraction + 4),
                     (edge ? style >> 6 : c) & 1, graze | (!edge & ((c & 6) == 0)), edge ? below * ONES : pattern);
    }
};

struct Subnormals {
    u32 style;
    i32 m;
    MMAPROBE_HD Subnormals(const Domain& t, const u32* v)
        : style(v[0]), m(style & 1 ? t.space.d_low + pick(v[1], t.space.d_fraction + 6) : anchor(t.space, v[1], 0)) {}
    MMAPROBE_HD Lane lane(const Domain& t, i32, u32 role, u32 rest) const {
        const i32 aim = style & 2 ? m - pick16(role >> 16, 12) : m;
        const u32 side = style & 4 ? role & 3 : style >> 3 & 3;
        const i32 sub_a = t.a.low + pick16(role >> 2, t.a.fraction);
        const i32 sub_b = t.b.low + pick16(rest >> 16, t.b.fraction);
        const u32 zero = style & 4 ? u32((role >> 4 & 3) == 0) : 0;
        return {aim,
                role >> 15 & 1,
                zero,
                FULL,
                FULL,
                0,
                side != 3,
                side == 1 ? aim - sub_b : sub_a,
                side == 0 ? aim - sub_a : sub_b};
    }
    MMAPROBE_HD Addend addend(const Domain& t, const u32* v) const {
        const u32 c = v[10], kind = c & 3;
        const i32 lowest = t.c.low + pick16(c >> 16, larger(t.c.fraction, 1));
        const bool is_lowest = ((kind + 1) & 2) == 0;  // 0 or 3
        return plain(is_lowest ? lowest : m - pick16(c >> 16, 12), c >> 2 & 1, kind == 1, FULL);
    }
};

struct Extremes {
    u32 style, alive, paired, pair_a, pair_b;
    Three at;
    i32 top, pair_exponent;
    MMAPROBE_HD Extremes(const Domain& t, const u32* v)
        : style(v[0]), alive(density(style >> 2)), paired(style >> 1 & 1),
          pair_a((style >> 10 & 3) == 0 ? u32(GRAZE_A) : tops(style >> 6)),
          pair_b((style >> 10 & 3) == 0 ? u32(GRAZE_B) : tops(style >> 6)), at(v[2], 0, t.space.live),
          top(style & 1 ? t.space.product_top : smaller(t.space.product_top, t.space.d_top + 1)),
          pair_exponent(top - pick16(v[3], 3)) {}
    MMAPROBE_HD Lane lane(const Domain&, i32 k, u32 role, u32) const {
        const u32 second = k == at.j, first = k == at.i, pair = first | (second & paired);
        const u32 live = pair | u32((role & 255) < alive);
        const u32 sign = second ? ~(style >> 5) : first ? style >> 5 : style & 16 ? style >> 5 : role >> 8;
        const i32 high = pair ? pair_exponent : style & 0x100 ? top : top - pick16(role >> 16, 4);
        Lane out = simple(live ? high : top - 20 - pick16(role >> 16, 20), sign & 1, (style >> 9 & 1) & !live,
                          pair ? pair_a : tops(role >> 9));
        out.pattern_b = pair ? pair_b : out.pattern_b;
        out.shared = pair;
        return out;
    }
    MMAPROBE_HD Addend addend(const Domain& t, const u32* v) const {
        const u32 c = v[10];
        return {t.c.top - pick16(c >> 16, 4), c & 1, (c & 6) == 0, tops(c >> 4), (c >> 8 & 3) == 0 ? at.i : -1, 0};
    }
};

struct Conly {
    u32 style;
    MMAPROBE_HD Conly(const Domain&, const u32* v) : style(v[0]) {}
    MMAPROBE_HD Lane lane(const Domain& t, i32, u32 role, u32) const {
        return simple(t.space.product_low, (style & 1 ? style >> 1 : role) & 1, 1, FULL);
    }
    MMAPROBE_HD Addend addend(const Domain& t, const u32* v) const {
        const u32 c = v[10], kind = c & 7;
        const Space& s = t.space;
        const i32 count = kind < 2    ? larger(t.c.fraction, 1)
                          : kind == 3 ? 4
                          : kind == 6 ? s.d_fraction + 6
                          : kind == 7 ? 2
                                      : t.c.top - t.c.low + 1;
        const i32 drawn = pick(v[1], count);
        const i32 exponent = kind == 2   ? t.c.normal
                             : kind == 3 ? t.c.top - drawn
                             : kind == 6 ? smaller(s.d_low - 2 + drawn, t.c.top)
                             : kind == 7 ? smaller(s.d_top + 1, t.c.top) - drawn
                                         : t.c.low + drawn;
        return plain(exponent, c >> 3 & 1, (c & 7) == 5, choose(c >> 4, FULL, POW2, ONES, LOWBIT));
    }
};

struct Zeros {
    u32 style, all_negative;
    i32 i, sub_a, sub_b;
    MMAPROBE_HD Zeros(const Domain& t, const u32* v)
        : style(v[0]), all_negative(pick(style, 10) < 4), i((style & 3) == 0 ? pick16(v[2], t.space.live) : -1),
          sub_a(t.a.low + pick16(v[3], 3)), sub_b(t.b.low + pick16(v[3] >> 16, 3)) {}
    MMAPROBE_HD Lane lane(const Domain& t, i32 k, u32 role, u32) const {
        const u32 under = k == i;
        return {t.space.product_low, all_negative | (role & 1), !under, POW2, POW2, 0, under, sub_a, sub_b};
    }
    MMAPROBE_HD Addend addend(const Domain& t, const u32* v) const {
        const u32 c = v[10];
        return plain(t.c.low, style & 4 ? all_negative : c & 1, (c & 6) != 0, POW2);
    }
};

}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
