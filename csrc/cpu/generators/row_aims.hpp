// What whole tiles aim at: rows aim, columns are flat.  The rules are told in generators/families_tile.py; here for the 16
// rows of a strip at once, in lanes of 16 bits.  Conditions are masks, 0 or -1.
#pragma once
#include "cpu/generators/tile.hpp"
#include "cpu/generators/vectors.hpp"
#include "model/families.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {
namespace {

// A strip's rows (16) as items of one kind.
template <class Item>
using Of16 = Vector<Item, int(STRIP * sizeof(Item))>;
using Half = Of16<uint16_t>;
using Short = Of16<int16_t>;
using Word = Of16<u32>;
using Int = Of16<i32>;
using Wide = Of16<u64>;

MMAPROBE_HD Short fill(i32 x) { return Short{} + int16_t(x); }
MMAPROBE_HD Short hold(Short x, Short low, Short high) { return least_of(most_of(x, low), high); }

// 16 bits of each row to 32 and back: zeros above, or signs, or what is above cut off.
MMAPROBE_HD Word to_words(Half x) {
#if defined(__AVX512F__)
    return Word(_mm512_cvtepu16_epi32(__m256i(x)));
#else
    return converted<Word>(x);
#endif
}
MMAPROBE_HD Int to_ints(Short x) {
#if defined(__AVX512F__)
    return Int(_mm512_cvtepi16_epi32(__m256i(x)));
#else
    return converted<Int>(x);
#endif
}
MMAPROBE_HD Half to_halves(const Word& x) {
#if defined(__AVX512F__)
    return Half(_mm512_cvtepi32_epi16(__m512i(x)));
#elif defined(__AVX2__)
    const Word low = x & 0xFFFF;
    return Half(_mm256_permute4x64_epi64(_mm256_packus_epi32(__m256i(low.low), __m256i(low.high)), 0xD8));
#else
    return converted<Half>(x & 0xFFFF);
#endif
}

// 64 bits of each row out of 32 or 16, signs kept, and the lower 32.
#if defined(__AVX512F__)
MMAPROBE_HD Wide wide(Word x) {
    return {Wide::Register(_mm512_cvtepu32_epi64(_mm512_castsi512_si256(__m512i(x)))),
            Wide::Register(_mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(__m512i(x), 1)))};
}
MMAPROBE_HD Wide wide(Short x) {
    return {Wide::Register(_mm512_cvtepi16_epi64(_mm256_castsi256_si128(__m256i(x)))),
            Wide::Register(_mm512_cvtepi16_epi64(_mm256_extracti128_si256(__m256i(x), 1)))};
}
MMAPROBE_HD Word low_word(const Wide& x) {
    const __m512i lower = _mm512_castsi256_si512(_mm512_cvtepi64_epi32(__m512i(x.low)));
    return Word(_mm512_inserti64x4(lower, _mm512_cvtepi64_epi32(__m512i(x.high)), 1));
}
#elif defined(__AVX2__)
MMAPROBE_HD Wide wide(const Word& x) {
    const auto eight = [](U32 part) {
        return Wide::Register{U64(_mm256_cvtepu32_epi64(_mm256_castsi256_si128(__m256i(part)))),
                              U64(_mm256_cvtepu32_epi64(_mm256_extracti128_si256(__m256i(part), 1)))};
    };
    return {eight(x.low), eight(x.high)};
}
MMAPROBE_HD Wide wide(Short x) {
    const auto eight = [](__m128i part) {
        return Wide::Register{U64(_mm256_cvtepi16_epi64(part)), U64(_mm256_cvtepi16_epi64(_mm_srli_si128(part, 8)))};
    };
    return {eight(_mm256_castsi256_si128(__m256i(x))), eight(_mm256_extracti128_si256(__m256i(x), 1))};
}
MMAPROBE_HD Word low_word(const Wide& x) {
    const auto eight = [](const Wide::Register& part) {
        const __m256 lower = _mm256_shuffle_ps(__m256(part.low), __m256(part.high), 0x88);
        return U32(_mm256_permute4x64_epi64(__m256i(lower), 0xD8));
    };
    return {eight(x.low), eight(x.high)};
}
#else
MMAPROBE_HD Wide wide(const Word& x) { return converted<Wide>(x); }
MMAPROBE_HD Wide wide(Short x) { return Wide(converted<Of16<i64> >(x)); }
MMAPROBE_HD Word low_word(const Wide& x) { return converted<Word>(x & 0xFFFFFFFF); }
#endif
// The lower bits of 64 as items of another kind.
template <class Item>
MMAPROBE_HD Of16<Item> narrowed(const Wide& x) {
    if constexpr (sizeof(Item) == 8)
        return x;
    else if constexpr (sizeof(Item) == 2)
        return to_halves(low_word(x));
    else
        return low_word(x);
}
// What a table of 16 has at numbers.
template <class V>
MMAPROBE_HD V looked_up(const V& table, const V& number) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    if constexpr (sizeof(V) == 32) return V(_mm256_permutexvar_epi16(__m256i(number), __m256i(table)));
    if constexpr (sizeof(V) == 64) return V(_mm512_permutexvar_epi32(__m512i(number), __m512i(table)));
    if constexpr (sizeof(V) == 128) {
        const __m512i low = __m512i(table.low), high = __m512i(table.high);
        return {typename V::Register(_mm512_permutex2var_epi64(low, __m512i(number.low), high)),
                typename V::Register(_mm512_permutex2var_epi64(low, __m512i(number.high), high))};
    }
#elif defined(__AVX2__)
    const V upper = V((number & 8) != 0);  // of the table, which two registers hold
    if constexpr (sizeof(V) == 32) {
        const __m256i places = __m256i((number & 7) * 0x0202 + 0x0100);
        const auto eight = [&](int quarters) {
            const __m256i items = quarters ? _mm256_permute4x64_epi64(__m256i(table), 0xEE)
                                           : _mm256_permute4x64_epi64(__m256i(table), 0x44);
            return V(_mm256_shuffle_epi8(items, places));
        };
        return chosen(upper, eight(1), eight(0));
    }
    if constexpr (sizeof(V) == 64) {
        const auto eight = [&](const auto& items) {
            return V(U32(_mm256_permutevar8x32_epi32(__m256i(items), __m256i(number.low))),
                     U32(_mm256_permutevar8x32_epi32(__m256i(items), __m256i(number.high))));
        };
        return chosen(upper, eight(table.high), eight(table.low));
    }
    if constexpr (sizeof(V) == 128) {
        const Word numbers = low_word(number), low = low_word(table), high = low_word(table >> 32);
        return wide(looked_up(low, numbers)) | wide(looked_up(high, numbers)) << 32;
    }
#else
    typename Parts<V>::Item items[STRIP], numbers[STRIP], found[STRIP];
    store(table, items);
    store(number, numbers);
    for (int i = 0; i < STRIP; ++i) found[i] = items[numbers[i] % STRIP];
    return load<V>(found);
#endif
}
// The numbers of the rows.
MMAPROBE_HD Short row_numbers() { return Short{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}; }

// A number below count.
MMAPROBE_HD Short below(Half word, Short count) { return Short(upper_products(word, Half(count))); }
MMAPROBE_HD Short below(Half word, i32 count) { return below(word, fill(count)); }

// Aims of the rows of a strip: generators/families_tile.py, Rows.
struct Rows {
    Short lane[3] = {fill(-1), fill(-1), fill(-1)};  // first, second, third
    Short exponent[3] = {}, negative[3] = {}, pattern[3] = {};
    Short base{}, spread = fill(1), density{}, others = fill(FULL), vary = fill(1), sign{}, zero = fill(-1), dead{};
    Short mirror{}, delta{}, c{}, c_spread = fill(1), c_density = fill(256), c_pattern{}, c_vary{}, c_sign{};
    Short alternate = fill(-1), dropped = fill(-1);
    Wide given{}, c_given{};
};

// The product exponents that rows may ask for and all lanes reach, the highest that all lanes reach, the tile's own;
// its number in the counting of pairs, random bits of it, its rows and columns, and the first of the rows here.
struct Reach {
    i32 low, high, top, aim;
    u64 turn;
    u32 word;
    i32 m, n, first;

    bool counts(const Domain& t) const { return (turn & 3) == 1 && t.a.fraction + t.b.fraction <= COUNTED; }
};

// Where a tile's products lie: generators/families_tile.py, TileTarget.
struct Target {
    i32 low, high, a_low, a_high, b_low, b_high;
    u32 columns[4];
    i32 drift, rows_low, rows_high;
    bool turns, hollow, subnormal;
};

// Words of the rows, 16 bits each.
struct RowWords {
    Half r[8];

    Short bit(int place) const { return Short(r[0] >> place & 1); }
    Short is(int place) const { return bit(place) != 0; }
    Short two(int place) const { return Short(r[0] >> place & 3); }
    Short three(int place) const { return Short(r[0] >> place & 7); }
    Short late_three() const { return Short(r[7] & 7); }
    Word third_word() const { return to_words(r[4]) | to_words(r[5]) << 16; }
};

MMAPROBE_HD Short pick_of(Short bits, i32 e0, i32 e1, i32 e2, i32 e3) {
    const Short odd = (bits & 1) != 0;
    return (bits & 2) != 0 ? (odd ? fill(e3) : fill(e2)) : (odd ? fill(e1) : fill(e0));
}
MMAPROBE_HD Short densities(Short bits) { return pick_of(bits, 32, 64, 192, 256); }
MMAPROBE_HD Short filler_patterns(Short bits) { return pick_of(bits, POW2, FULL, FULL, TOP2); }
MMAPROBE_HD Short top_patterns(Short bits) { return pick_of(bits, ONES, FULL, POW2, TOP2); }

MMAPROBE_HD Short after(Short lane, Half word, i32 count) {
    const Short found = lane + 1 + below(word, count - 1);
    return found >= int16_t(count) ? found - int16_t(count) : found;
}
struct ThreeLanes {
    Short i, j, third;
    ThreeLanes(const RowWords& w, i32 count)
        : i(below(w.r[2], count)), j(after(i, w.r[3], count)), third(after(j, w.r[4], count)) {}
};

constexpr i32 MORE_OF_GROUPS = 11;  // binades that sums of scaled groups keep more than others
constexpr i32 NARROW = 40;  // binades: products that span fewer leave little room below

Short more_of_groups(const Domain& t, const RowWords& w) {
    return Short(w.r[7] >> 4 & 1) * fill(t.space.groups ? MORE_OF_GROUPS : 0);
}

i32 most_drift(const Domain& t) { return smaller(3, (t.b.top - t.b.normal) / 4); }

Short anchors(const Domain& t, const RowWords& w, const Reach& reach) {
    const Short kind = Short(w.r[1] & 7), count = fill(reach.high - reach.low + 1);
    const Short low = hold(fill(t.space.d_normal) + below(w.r[1], 6), fill(reach.low), fill(reach.high));
    const Short high = fill(reach.high) - below(w.r[1], kind == 1 ? least_of(count, fill(8)) : count);
    return kind == 0 ? low : high;
}

Target at_anchor(const Domain& t, u32 e0, u32 e1, u32 e2, u32 e3) {
    const Space& s = t.space;
    const i32 drift = most_drift(t);
    const bool narrow = s.product_top - s.product_low < NARROW;
    const i32 low = narrow ? s.anchor_top - (s.anchor_top - s.anchor_low) / 3 : s.anchor_low;
    return {low,
            s.anchor_top,
            t.a.normal,
            t.a.top,
            t.b.normal + drift,
            t.b.top,
            {e0, e1, e2, e3},
            drift,
            s.anchor_low,
            s.anchor_top,
            true,
            false,
            false};
}
Target near_to(const Domain& t, i32 low, i32 high, u32 e0, u32 e1, u32 e2, u32 e3) {
    const bool deep = low < t.a.normal + t.b.normal;
    return {low,
            high,
            deep ? t.a.low : t.a.normal,
            t.a.top,
            deep ? t.b.low : t.b.normal,
            t.b.top,
            {e0, e1, e2, e3},
            0,
            low,
            high,
            true,
            false,
            false};
}
Target anywhere_in(const Domain& t, i32 low, i32 high, u32 e0, u32 e1, u32 e2, u32 e3) {
    return {low, high, t.a.low, t.a.top, t.b.low, t.b.top, {e0, e1, e2, e3}, 0, low, high, true, false, false};
}

struct CancelRows {
    static Target target(const Domain& t, u32) { return at_anchor(t, POW2, FULL, FULL, TOP2); }
    static Rows rows(const Domain& t, const RowWords& w, const Reach& reach) {
        const i32 live = t.space.live, count = live + t.c.present;
        const ThreeLanes at(w, count);
        const Short m = anchors(t, w, reach), distance = below(w.r[7], 45), kind = w.two(0);
        const Short lowest = fill(t.space.d_fraction - 1) + more_of_groups(t, w);
        const Short offset = (kind & 2) != 0 ? ((kind & 1) != 0 ? lowest : distance)
                                             : ((kind & 1) != 0 ? distance - 2 : Short{});
        const Short pair = count == 2 ? pick_of(w.two(5), POW2, FULL, FULL, FULL)
                                      : pick_of(w.two(5), POW2, POW2, FULL, TOP2);
        const Short upper = ((pair == int16_t(FULL)) & w.is(14)) ? fill(UPPER) : pair;
        const Short sign = w.bit(8), turned = 1 - sign, last = at.i == int16_t(live);
        const Short mirror = last | (at.j == int16_t(live)), delta = w.three(11);
        Rows x;
        x.lane[0] = last ? at.j : at.i;
        x.lane[1] = mirror ? fill(-1) : at.j;
        x.exponent[0] = x.exponent[1] = m;
        x.negative[0] = last ? turned : sign;
        x.negative[1] = turned;
        x.pattern[0] = last ? upper : pair;
        x.pattern[1] = upper;
        x.base = x.c = m - offset;
        x.spread = x.c_spread = pick_of(kind, 43, 5, 1, 5);
        x.density = x.c_density = densities(w.two(3));
        x.others = x.c_pattern = filler_patterns(w.two(9));
        x.vary = x.c_vary = 1 - w.bit(2);
        x.sign = x.c_sign = w.bit(15);
        x.zero = ~w.is(7);
        x.dead = fill(t.space.product_low);
        x.mirror = mirror;
        x.delta = delta == 6 ? fill(1) : delta == 7 ? fill(-1) : Short{};
        return x;
    }
};

struct UlpRows {
    static Target target(const Domain& t, u32) { return at_anchor(t, POW2, POW2, FULL, ONES); }
    static Rows rows(const Domain& t, const RowWords& w, const Reach& reach) {
        const Space& s = t.space;
        const Short anchor = anchors(t, w, reach), c_big = w.is(0) & fill(-i32(t.c.present != 0));
        const Short last = fill(s.d_fraction + 1) + more_of_groups(t, w);
        const Short distance = w.is(1) ? last : 1 + below(w.r[7], 44);
        const Short m = (c_big & w.is(2)) ? least_of(anchor + distance, fill(s.c_top)) : anchor;
        const Short large = pick_of(w.two(8), POW2, FULL, ONES, LOWBIT), fine = w.is(11) ? fill(FULL) : fill(POW2);
        Rows x;
        x.lane[0] = c_big ? fill(-1) : below(w.r[2], s.live);
        x.exponent[0] = m;
        x.negative[0] = w.bit(7);
        x.pattern[0] = large;
        x.base = m - distance + 2;
        x.spread = fill(5);
        x.density = densities(w.two(3));
        x.others = fine;
        x.vary = 1 - w.bit(5);
        x.sign = w.bit(6);
        x.c = c_big ? m : x.base;
        x.c_spread = c_big ? fill(1) : fill(5);
        x.c_density = c_big ? fill(256) : x.density;
        x.c_pattern = c_big ? large : fine;
        x.c_vary = c_big ? Short{} : x.vary;
        x.c_sign = c_big ? w.bit(7) : x.sign;
        return x;
    }
};

struct TieRows {
    static i32 lowest(const Space& s) { return larger(s.product_low, s.d_low - 1); }
    static Target target(const Domain& t, u32) {
        Target x = at_anchor(t, POW2, POW2, POW2, POW2);
        x.low = x.rows_low = smaller(lowest(t.space), t.space.anchor_low);
        x.a_low = t.a.low;
        return x;
    }
    static Rows rows(const Domain& t, const RowWords& w, const Reach& reach) {
        const Space& s = t.space;
        const ThreeLanes at(w, s.live);
        const i32 low = lowest(s), high = larger(low, smaller(s.product_top, s.c_top - s.d_fraction - 1));
        const bool narrow = s.product_top - s.d_fraction - 1 < s.product_low || s.live == 1 || s.groups == 1;
        const Short in_blocks = (Short(w.r[7] >> 3 & 1) != 0) & fill(-i32(s.groups > 0));
        const i32 bottom = clamp(reach.low, low, high), room = clamp(reach.high, low, high) - bottom + 1;
        const Short c_big = ((w.two(0) != 0) | fill(-i32(narrow)) | in_blocks) & fill(-i32(t.c.present != 0));
        const Short half_c = fill(bottom) + below(w.r[1], w.late_three() == 0 ? fill(smaller(room, 3)) : fill(room));
        const Short ordinary = hold(anchors(t, w, reach), fill(s.anchor_low), fill(s.anchor_top));
        const Short lane_m = most_of(ordinary, fill(smaller(reach.high, reach.low + s.d_fraction + 3)));
        const Short half = c_big ? half_c : most_of(lane_m, fill(s.d_normal)) - int16_t(s.d_fraction + 1);
        const Short high_c = half_c < int16_t(s.d_low) ? fill(s.d_low) + below(w.r[4], s.d_fraction + 1)
                                                       : half_c + int16_t(1 + s.d_fraction);
        const Short m = c_big ? high_c : lane_m;
        const Short quarters = w.is(7) & (fill(s.live) - c_big >= 3);
        const Short sticky = half - 1 - below(w.r[7], w.is(8) ? fill(34) : fill(8));
        const Short own = w.two(9) != 0 ? fill(POW2) : w.is(11) ? fill(LOWBIT) : fill(ONES);
        Rows x;
        x.lane[0] = c_big ? fill(-1) : at.i;
        x.lane[1] = c_big ? at.i : at.j;
        x.lane[2] = (quarters | w.is(15)) ? (c_big ? at.j : at.third) : fill(-1);
        x.exponent[0] = m;
        x.exponent[1] = half + quarters + (own == int16_t(ONES));
        x.exponent[2] = quarters ? half - 1 : sticky;
        x.negative[0] = w.bit(14);
        x.negative[1] = w.bit(12);
        x.negative[2] = quarters ? w.bit(12) : w.bit(13);
        x.pattern[0] = fill(t.a.fraction > s.d_fraction ? UPPER : FULL);
        x.pattern[1] = own;
        x.c = c_big ? m : sticky;
        x.c_density = c_big ? fill(256) : fill(64);
        x.c_sign = w.bit(14);
        x.c_pattern = c_big ? fill(t.c.fraction <= s.d_fraction ? FULL : UPPER) : Short{};
        return x;
    }
};

struct ZladRows {
    static Target target(const Domain& t, u32 style) {
        const Space& s = t.space;
        Target x = near_to(t, s.d_low - 1, s.d_low + 1, POW2, POW2, POW2, FULL);
        x.rows_low = s.anchor_low;
        x.rows_high = s.anchor_top;
        x.hollow = (style & 7) == 0;
        return x;
    }
    static Rows rows(const Domain& t, const RowWords& w, const Reach& reach) {
        const Space& s = t.space;
        const ThreeLanes at(w, s.live);
        const Short plain = w.two(0) == 0, m = anchors(t, w, reach);
        Rows x;
        x.lane[0] = plain ? fill(-1) : at.i;
        x.lane[1] = (plain | ~w.is(2)) ? fill(-1) : at.j;
        x.lane[2] = (plain | (at.third == at.i)) ? fill(-1) : at.third;
        x.exponent[0] = fill(s.d_low - 1) + below(w.r[1], 3);
        x.exponent[1] = fill(s.d_low - 1) + below(w.r[7] << 3, 3);
        const Short guess = fill(s.d_normal - 26) - more_of_groups(t, w) * fill(2) - below(w.r[7], 10);
        x.exponent[2] = w.is(3) ? guess : fill(s.d_normal) - below(w.r[7], 64);
        for (int i = 0; i < 3; ++i) x.negative[i] = w.bit(5 + i);
        x.base = m;
        x.spread = fill(30);
        x.density = plain ? fill(32) : Short{};
        x.others = x.c_pattern = plain ? fill(FULL) : fill(POW2);
        x.zero = plain | ~w.is(4);
        x.dead = fill(s.product_low);
        x.c = plain ? m : fill(s.d_low) + below(w.r[4], 3);
        x.c_spread = plain ? fill(30) : fill(1);
        x.c_density = fill(64);
        x.c_vary = fill(1);
        return x;
    }
};

struct TinyRows {
    static Target target(const Domain& t, u32) {
        const Space& s = t.space;
        return near_to(t, s.d_low - 3, s.d_low + s.d_fraction + 2, POW2, POW2, FULL, GRAZE_B);
    }
    static Rows rows(const Domain& t, const RowWords& w, const Reach&) {
        const Space& s = t.space;
        const ThreeLanes at(w, s.live);
        const Short edge = (w.two(4) == 0) & fill(-i32(s.live + t.c.present >= 2)), graze = edge & (w.two(11) == 0);
        const Short pattern = w.is(3) ? fill(FULL) : fill(POW2), sign = w.bit(6), none = fill(-1);
        const Short beside = edge ? none : w.is(0) ? at.j : none;
        const auto near_low = [&](Half word) { return fill(s.d_low - 2) + below(word, s.d_fraction + 5); };
        Rows x;
        x.lane[0] = at.i;
        x.lane[1] = t.c.present ? beside : (edge & ~graze) ? at.j : beside;
        x.lane[2] = (edge | ~w.is(1)) ? none : at.third;
        x.exponent[0] = !edge ? near_low(w.r[1]) : graze ? fill(s.d_normal - 1) : fill(s.d_low - 1) - below(w.r[7], 3);
        x.exponent[1] = edge ? fill(s.d_normal) : near_low(w.r[7]);
        x.exponent[2] = near_low(w.r[1] ^ w.r[7]);
        x.negative[0] = sign ^ w.bit(7);
        x.negative[1] = edge ? sign : w.bit(9);
        x.negative[2] = w.bit(10);
        x.pattern[0] = graze ? fill(GRAZE_A) : pattern;
        x.pattern[1] = x.pattern[2] = pattern;
        x.zero = edge | ~w.is(2);
        x.dead = fill(s.product_low);
        x.c = edge ? fill(s.d_normal) - w.bit(8) : fill(s.d_low + s.d_fraction + 3);
        x.c_spread = edge ? fill(1) : fill(s.d_fraction + 4);
        x.c_density = graze ? Short{} : edge ? fill(256) : fill(192);
        x.c_pattern = edge ? (w.is(8) ? fill(ONES) : fill(POW2)) : pattern;
        x.c_vary = edge ? Short{} : fill(1);
        x.c_sign = sign;
        return x;
    }
};

struct SubnormalRows {
    static Target target(const Domain& t, u32) {
        const Space& s = t.space;
        return {s.anchor_low,  s.anchor_top, t.a.normal, t.a.top, t.b.normal, t.b.top, {FULL, FULL, FULL, FULL}, 0,
                s.product_low, s.anchor_top, true,       false,   true};
    }
    static Rows rows(const Domain& t, const RowWords& w, const Reach& reach) {
        const Space& s = t.space;
        const Short kind = w.two(6), lowest = (kind == 0) | (kind == 3);
        const Short ordinary = fill(s.anchor_top) - below(w.r[1], s.anchor_top - s.anchor_low + 1);
        const Short anywhere = Short(w.r[7] & 1) != 0 ? fill(reach.aim) : ordinary;
        const i32 fraction = larger(t.c.fraction, 1);
        Rows x;
        x.base = w.is(0) ? fill(larger(s.d_low, s.product_low)) + below(w.r[1], s.d_fraction + 6) : anywhere;
        x.spread = w.is(1) ? fill(12) : fill(1);
        x.density = w.is(2) ? fill(192) : fill(256);
        x.c = lowest ? fill(t.c.low + fraction - 1) : x.base;
        x.c_spread = lowest ? fill(fraction) : fill(12);
        x.c_density = kind == 1 ? Short{} : fill(256);
        x.c_pattern = fill(FULL);
        x.c_vary = fill(1);
        return x;
    }
};

struct ExtremeRows {
    static Target target(const Domain& t, u32 style) {
        const Space& s = t.space;
        const i32 top = style & 1 ? s.product_top : smaller(s.product_top, s.d_top + 1);
        return anywhere_in(t, top - 2, top, ONES, FULL, POW2, GRAZE_B);
    }
    static Rows rows(const Domain& t, const RowWords& w, const Reach& reach) {
        const Space& s = t.space;
        const ThreeLanes at(w, s.live);
        const Short wanted = w.is(0) ? fill(s.product_top) : fill(smaller(s.product_top, s.d_top + 1));
        const Short top = least_of(wanted, fill(reach.top)), sign = w.bit(5);
        Rows x;
        x.lane[0] = at.i;
        x.lane[1] = w.is(1) ? at.j : fill(-1);
        x.exponent[0] = x.exponent[1] = top - below(w.r[1], 3);
        x.negative[0] = sign;
        x.negative[1] = 1 - sign;
        x.pattern[0] = x.pattern[1] = w.two(14) == 0 ? fill(GRAZE_A) : top_patterns(w.two(6));
        x.base = top;
        x.spread = w.is(8) ? fill(1) : fill(4);
        x.density = densities(w.two(2));
        x.others = top_patterns(w.two(10));
        x.vary = 1 - w.bit(4);
        x.sign = sign;
        x.zero = w.is(9);
        x.dead = top - 20 - below(w.r[4], 20);
        x.mirror = Short((w.r[7] & 3) == 0) & fill(-i32(t.c.present != 0));
        x.c = fill(t.c.top);
        x.c_spread = fill(4);
        x.c_density = fill(192);
        x.c_pattern = top_patterns(w.two(12));
        x.c_vary = fill(1);
        return x;
    }
};

struct ConlyRows {
    static Target target(const Domain& t, u32 style) {
        Target x = anywhere_in(t, t.space.product_low, t.space.product_top, POW2, FULL, FULL, TOP2);
        x.hollow = style & 1;
        return x;
    }
    static Rows rows(const Domain& t, const RowWords& w, const Reach&) {
        const Space& s = t.space;
        const i32 fraction = larger(t.c.fraction, 1), every = t.c.top - t.c.low + 1, lowest = t.c.low + fraction - 1;
        const i32 in_result = smaller(s.d_low + s.d_fraction + 3, t.c.top), result_top = smaller(s.d_top + 1, t.c.top);
        const Short kind = w.three(4), upper = (kind & 4) != 0;
        Rows x;
        x.vary = 1 - w.bit(0);
        x.sign = w.bit(1);
        x.c = upper ? pick_of(kind, t.c.top, t.c.top, in_result, result_top)
                    : pick_of(kind, lowest, lowest, t.c.normal, t.c.top);
        x.c_spread = upper ? pick_of(kind, every, every, s.d_fraction + 6, 2) : pick_of(kind, fraction, fraction, 1, 4);
        x.c_density = kind == 5 ? Short{} : fill(256);
        x.c_pattern = pick_of(w.two(8), FULL, POW2, ONES, LOWBIT);
        x.c_vary = fill(1);
        return x;
    }
};

struct ZeroRows {
    static Target target(const Domain& t, u32 style) {
        const Space& s = t.space;
        const bool small = style & 1;
        return {s.product_low,
                small ? s.product_low + 4 : s.product_top,
                t.a.low,
                small ? t.a.low + 2 : t.a.top,
                t.b.low,
                small ? t.b.low + 2 : t.b.top,
                {POW2, POW2, POW2, POW2},
                0,
                s.product_low,
                s.product_top,
                false,
                bool(style & 2),
                false};
    }
    static Rows rows(const Domain& t, const RowWords& w, const Reach&) {
        const Space& s = t.space;
        const Short all_negative = below(w.r[1], 10) < 4;
        Rows x;
        x.lane[0] = w.two(0) == 0 ? below(w.r[2], s.live) : fill(-1);
        x.exponent[0] = fill(s.product_low) + below(w.r[7], 5);
        x.negative[0] = -all_negative | w.bit(3);
        x.vary = 1 + all_negative;
        x.sign = x.c_sign = -all_negative;
        x.others = Short{};
        x.c = fill(t.c.low);
        x.c_density = fill(64);
        x.c_vary = 1 - w.bit(2);
        return x;
    }
};

struct SpecialRows {
    static Target target(const Domain& t, u32) { return at_anchor(t, FULL, FULL, FULL, FULL); }
    static Rows rows(const Domain& t, const RowWords& w, const Reach& reach) {
        const Short m = anchors(t, w, reach), width = Short(shifted_down(Half(below(w.r[7], 46)), Half(w.two(0)))) + 1;
        Rows x;
        x.base = x.c = m;
        x.spread = x.c_spread = width;
        x.density = w.is(2) ? fill(248) : fill(256);
        x.c_density = fill(240);
        x.c_pattern = fill(FULL);
        x.c_vary = fill(1);
        return x;
    }
};

MMAPROBE_HD Wide ones_of(Wide bits) { return ((Wide{} + 1) << bits) - 1; }
template <class V>
MMAPROBE_HD V kept(Short where, const V& x) {
    return x & V(wide(where));
}

// Fraction fields by kind (generators/families_circuit.py, circuit_fraction); kinds 0 and 7 are random.
inline Wide circuit_fraction(i32 fraction, Short kind, Short place, Wide random) {
    const Wide full = Wide{} + ((u64(1) << fraction) - 1), at = wide(place), below = ones_of(at);
    const Wide bit = ((Wide{} + 1) << at) >> 1, turns = (Wide{} + 0x5555555555555555u) << (at & 1);
    const Wide own[8] = {random, full, bit, ~bit, ~below, below, turns, random};
    Wide found{};
    for (int i = 0; i < 8; ++i) found |= kept(kind == int16_t(i), own[i]);
    return found & full;
}

struct MultiplierRows {
    static Target target(const Domain& t, u32) { return at_anchor(t, GIVEN, GIVEN, GIVEN, GIVEN); }
    static Rows rows(const Domain& t, const RowWords& w, const Reach& reach) {
        const Space& s = t.space;
        const i32 live = s.live, fa = t.a.fraction, shift = 32 - fa;
        const bool even = live % 2 == 0, floats = t.c.is_float;
        const Short kind = Short(w.r[0] >> 2 & 7), sign = w.bit(5);
        const Word square = Word(to_ints(kind == 7)), drawn = (square & reach.word) | (~square & w.third_word());
        Short mode = w.two(0);
        Rows x;
        x.given = circuit_fraction(fa, kind, below(w.r[7], fa + 1), wide(drawn >> shift));
        if (reach.counts(t)) {
            const Wide lanes = wide(row_numbers());
            x.given = ((reach.turn >> 2) * u64(reach.m) + u64(reach.first) + lanes) & ((u64(1) << fa) - 1);
            mode = Short{};
        }
        const Short together = mode < 2, hides = fill(-i32(s.d_fraction < fa + t.b.fraction + 2));
        const Short opposite = ((mode == 3) | (together & hides)) & fill(-i32(floats));
        const Short drops = opposite & together & fill(-i32(even)), ends = w.is(8) ? Short{} : fill(live - 1);
        x.dropped = drops ? ends : fill(-1);
        const Short unpaired = (~drops & fill(-i32(even))) ? fill(live - 1) : fill(-1);
        x.lane[0] = together ? unpaired : below(w.r[2], live);
        x.exponent[0] = x.base = anchors(t, w, reach);
        x.negative[0] = x.sign = sign;
        x.pattern[0] = x.others = fill(GIVEN);
        x.density = together & 256;
        x.vary = Short{};
        x.alternate = together ? ((drops & (ends == 0)) ? Short{} : fill(1)) : fill(-1);
        x.mirror = opposite;
        x.c = fill(t.c.low);
        x.c_density = ((mode == 2) & w.is(6)) & 256;
        x.c_sign = w.bit(7);
        return x;
    }
    static u64 column(const Domain& t, u32 style, u32 word, const Reach& reach, i32 number) {
        const i32 fb = t.b.fraction;
        const u64 full = (u64(1) << fb) - 1;
        if (reach.counts(t))
            return (((reach.turn >> 2) * u64(reach.m) >> t.a.fraction) * u64(reach.n) + u64(number)) & full;
        const u32 kind = style & 7;
        return circuit_pattern(fb, kind, pick16(style >> 16, fb + 1), (kind == 7 ? reach.word : word) >> (32 - fb));
    }
};

struct CarryRows {
    static Target target(const Domain& t, u32) {
        Target x = at_anchor(t, POW2, POW2, POW2, FULL);
        x.a_low = t.a.low;
        x.rows_low = t.space.product_low;
        return x;
    }
    static Rows rows(const Domain& t, const RowWords& w, const Reach& reach) {
        const Space& s = t.space;
        const i32 live = s.live, fa = t.a.fraction, fc = t.c.fraction, places = live + t.c.present;
        const ThreeLanes at(w, places);
        const auto in_c = [&](Short lane) { return lane == int16_t(live); };
        const Short far = w.is(3) & (at.third != at.i) & fill(-i32(places > 2)), none = fill(-1);
        const Short own = most_of(anchors(t, w, reach), fill(smaller(reach.low + t.a.normal - t.a.low, reach.high)));
        const Short far_c = far & in_c(at.third), above = below(w.r[5], s.d_fraction + 4);
        const Short down = least_of(above, most_of(own - int16_t(reach.low), Short{}));
        const Short lane_m = own - (far & ~far_c & down), any = below(w.r[7], s.d_fraction + fa + t.b.fraction + 4);
        const Short room = most_of(in_c(at.i) ? fill(s.c_top) - lane_m : lane_m - int16_t(reach.low), Short{});
        const Short distance = in_c(at.j) ? any : least_of(any, room), lift = in_c(at.i) & distance;
        const Short m = lane_m + lift, top = far_c ? least_of(own + above, fill(s.c_top)) : own + lift;
        const Short fraction = in_c(at.i) ? fill(fc) : fill(fa), borrow = w.bit(0), negative = w.bit(1);
        const Wide full = ones_of(wide(fraction)), length = wide(below(w.r[6], fraction + 1));
        const Wide ones = ones_of(length) << wide(most_of(fraction - distance, Short{})) & full;
        const Wide run = kept(borrow != 0, full & ~ones) | kept(borrow == 0, ones);
        const Short filled = w.is(2) ? fill(ONES) : fill(POW2);
        Rows x;
        x.lane[0] = in_c(at.i) ? none : at.i;
        x.lane[1] = in_c(at.j) ? none : at.j;
        x.lane[2] = (far & ~far_c) ? at.third : none;
        x.exponent[0] = m;
        x.exponent[1] = m - distance;
        x.exponent[2] = top;
        x.negative[0] = negative;
        x.negative[1] = negative ^ borrow;
        x.negative[2] = w.bit(4);
        x.pattern[0] = fill(GIVEN);
        x.pattern[1] = filled;
        x.given = run & ((u64(1) << fa) - 1);
        x.c = in_c(at.i) ? m : in_c(at.j) ? m - distance : top;
        x.c_density = (in_c(at.i) | in_c(at.j) | far_c) & 256;
        x.c_sign = in_c(at.i) ? negative : in_c(at.j) ? negative ^ borrow : w.bit(4);
        x.c_pattern = in_c(at.i) ? fill(GIVEN) : in_c(at.j) ? filled : fill(POW2);
        x.c_given = run & ((u64(1) << fc) - 1);
        return x;
    }
};

// A family's functions: where tiles lie, what rows aim at, the fractions that columns are given; how many lanes of their
// own rows have, whether signs alternate or lanes are dropped, and whether special values are laid over.
struct TileFamily {
    Target (*target)(const Domain& t, u32 style);
    Rows (*rows)(const Domain& t, const RowWords& w, const Reach& reach);
    int places;
    u64 (*column)(const Domain& t, u32 style, u32 word, const Reach& reach, i32 number) = nullptr;
    bool alternates = false, special = false;
};
template <class Family>
constexpr TileFamily with_places(int places) {
    return {Family::target, Family::rows, places};
}

// The rule of a family; null where it has none for whole tiles.
inline TileFamily tile_family(int family) {
    switch (family) {
        case CANCEL: return with_places<CancelRows>(2);
        case ULP: return with_places<UlpRows>(1);
        case TIE: return with_places<TieRows>(3);
        case ZLAD: return with_places<ZladRows>(3);
        case TINY: return with_places<TinyRows>(3);
        case SUBNORMALS: return with_places<SubnormalRows>(0);
        case EXTREMES: return with_places<ExtremeRows>(2);
        case CONLY: return with_places<ConlyRows>(0);
        case ZEROS: return with_places<ZeroRows>(1);
        case SPECIALS: return {SpecialRows::target, SpecialRows::rows, 0, nullptr, false, true};
        case MULTIPLIER: return {MultiplierRows::target, MultiplierRows::rows, 1, MultiplierRows::column, true};
        case CARRIES: return with_places<CarryRows>(3);
        default: return {nullptr, nullptr, 0};
    }
}

}  // namespace
}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
