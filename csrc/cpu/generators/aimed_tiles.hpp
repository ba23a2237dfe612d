// Whole tiles whose rows aim and whose columns are flat, straight into the engine layout: from the aims of row_aims.hpp to
// codes, 16 rows at once.  The rules are told in generators/tiles_aimed.py.
#pragma once
#include <optional>

#include "cpu/generators/layout.hpp"
#include "cpu/generators/scaled_tiles.hpp"
#include "cpu/generators/special_codes.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {
namespace {

constexpr Purpose TILE = Purpose(9), ROW = Purpose(10), COLUMN = Purpose(11), ELEMENT = Purpose(12);  // philox.py
constexpr uint16_t ELEMENT_MIX = 0x9E37;
constexpr u32 RESULT_MIX[2] = {0x9E3779B1u, 0x85EBCA77u};
constexpr u64 WIDE_MIX = 0x9E3779B97F4A7C15u;
constexpr int MOST_K = 512, MOST_BLOCK = 64;

// Numbers of 16 bits as lanes of another kind, signs kept.
template <class Lane>
MMAPROBE_HD Of16<Lane> widen(Short x) {
    typedef std::make_signed_t<Lane> Signed;
    return Of16<Lane>(converted<Of16<Signed>>(x));
}
template <>
MMAPROBE_HD Wide widen<u64>(Short x) {
    return wide(x);
}
template <>
MMAPROBE_HD Half widen<uint16_t>(Short x) {
    return Half(x);
}
template <>
MMAPROBE_HD Word widen<u32>(Short x) {
    return Word(to_ints(x));
}
MMAPROBE_HD Half low_half(const Word& x) { return to_halves(x); }
MMAPROBE_HD Half low_half(const Wide& x) { return to_halves(low_word(x)); }
// Numbers of 32 bits without sign in lanes of another kind.
template <class Lane>
MMAPROBE_HD Of16<Lane> from_word(Word x) {
    if constexpr (sizeof(Lane) == 8) return wide(x);
    if constexpr (sizeof(Lane) == 4) return x;
    if constexpr (sizeof(Lane) == 2) return to_halves(x);
}
// A random word of a lane out of one of 32 bits.
template <class Lane>
MMAPROBE_HD Of16<Lane> wider(Word x) {
    if constexpr (sizeof(Lane) == 2) return to_halves(x >> 16);
    if constexpr (sizeof(Lane) == 4) return x;
    if constexpr (sizeof(Lane) == 8) return wide(x) * WIDE_MIX;
}

// Two numbers of 16 bits of each row side by side: those of lanes k and k + 1, k the lower.
using HalfPairs = Vector<uint16_t, 4 * STRIP>;
using ShortPairs = Vector<int16_t, 4 * STRIP>;
MMAPROBE_HD HalfPairs twice(Half x) {
    const Word word = to_words(x);
    return HalfPairs(word | word << 16);
}
MMAPROBE_HD ShortPairs twice(Short x) { return ShortPairs(twice(Half(x))); }
// The same two of every row, from memory.
template <class Number>
MMAPROBE_HD ShortPairs pair_of(const Number* at) {
    u32 pair;
    memcpy(&pair, at, sizeof pair);
    return ShortPairs(Word{} + pair);
}
template <class Item, class V>
MMAPROBE_HD Of16<Item> items_of(const V& x) {
    if constexpr (sizeof(V) == STRIP * sizeof(Item))
        return x;
    else
        return converted<Of16<Item>>(x);
}
template <class Item, class V>
MMAPROBE_HD void store_items(const V& x, char* out) {
    store(items_of<Item>(x), out);
}

// Items of 16 rows of two lanes side by side: all of the lower half, then all of the upper one.
template <class Item>
MMAPROBE_HD void store_pair(Word x, char* out) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    if constexpr (sizeof(Item) == 1) {
        const __m256i order = _mm256_broadcastsi128_si256(
            _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
        const __m256i halves = _mm256_shuffle_epi8(_mm512_cvtepi16_epi8(__m512i(x)), order);
        return store(_mm256_permute4x64_epi64(halves, 0xD8), out);
    }
    typedef int16_t Places __attribute__((vector_size(4 * STRIP)));
    const Places order = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
                          1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
    store(_mm512_permutexvar_epi16(__m512i(order), __m512i(x)), out);
#else
    store_items<Item>(to_halves(x), out);
    store_items<Item>(to_halves(x >> 16), out + STRIP * sizeof(Item));
#endif
}

// The first `count` items of a register: in a size that is known most often, for other copies wait for the register.
template <class V, class Item>
MMAPROBE_HD void store_first(const V& items, int count, Item* out) {
    constexpr int all = int(sizeof(V) / sizeof(Item));
    switch (count) {
        case all: store(items, out); break;
        case all / 2: memcpy(out, &items, sizeof items / 2); break;
        case all / 4: memcpy(out, &items, sizeof items / 4); break;
        default: memcpy(out, &items, size_t(count) * sizeof(Item));
    }
}

i32 highest_of(Short x) {
    typedef int16_t Eight __attribute__((vector_size(STRIP)));
    Eight low, high;
    memcpy(&low, &x, sizeof low);
    memcpy(&high, reinterpret_cast<const char*>(&x) + sizeof low, sizeof high);
    low = most_of(low, high);
    const auto of_two = [&](int i) { return larger(low[i], low[i + 4]); };
    return larger(larger(of_two(0), of_two(1)), larger(of_two(2), of_two(3)));
}
bool any(Short x) {
    u64 parts[4];
    memcpy(parts, &x, sizeof parts);
    return (parts[0] | parts[1] | parts[2] | parts[3]) != 0;
}

// The upper halves of products of 16 bits, in lanes of any kind.
MMAPROBE_HD Half upper_halves(Half x, Half y) { return Half(upper_products(x, y)); }
MMAPROBE_HD Word upper_halves(Word x, Word y) { return Word(upper_products(HalfPairs(x), HalfPairs(y))); }

// What lanes aim by: lanes of 64 bits by 16, which hold every exponent.
template <class Lane>
using Aim = std::conditional_t<sizeof(Lane) == 8, uint16_t, Lane>;

// A format in lanes.
template <class Lane>
struct Coder {
    typedef Of16<Lane> V;
    typedef Of16<std::make_signed_t<Aim<Lane>>> Exponent;
    Exponent low, top, normal;
    int fraction, padding, sign, down;  // `sign`: its bit; `down`: how far a random word is above a fraction
    Lane implicit, largest;
    bool no_negative_zero;

    explicit Coder(const Layout& f)
        : low(in_lanes(fill(f.low))), top(in_lanes(fill(f.top))), normal(in_lanes(fill(f.normal))),
          fraction(f.fraction), padding(f.padding), sign(count_bits(f.sign) - 1),
          down(int(8 * sizeof(Lane)) - f.fraction), implicit(Lane(f.implicit)), largest(Lane(f.largest)),
          no_negative_zero(f.nan_rule == NEGATIVE_ZERO) {}

    MMAPROBE_HD static Exponent in_lanes(Short x) { return Exponent(widen<Aim<Lane>>(x)); }
    // What is aimed by, in whole lanes.
    template <class A>
    MMAPROBE_HD static V whole(A x) {
        if constexpr (sizeof(A) == sizeof(V))
            return V(x);
        else
            return widen<Lane>(Short(x));
    }

    // Unsigned codes, padding left out.
    MMAPROBE_HD V code(Exponent exponent, V x) const {
        const Exponent held = least_of(most_of(exponent, low), top), field = most_of(held, normal);
        return least_of((whole(field - normal) << fraction) + shifted_down(implicit | x, whole(field - held)),
                        V{} + largest);
    }
    // The container's, by signs of which the lowest bit counts.
    MMAPROBE_HD V container(V code, V negative) const {
        V signs = negative << sign;
        if (no_negative_zero) signs &= V(code != 0);
        return code << padding | signs;
    }
};

// What each pattern keeps of a random fraction and what it sets; grazing ones are `step` units beside a power of two.
struct Patterns {
    u64 keep[GIVEN + 1] = {}, fixed[GIVEN + 1] = {};

    Patterns(int fraction, u32 step) {
        const u64 full = (u64(1) << fraction) - 1, half = (u64(1) << fraction / 2) - 1;
        keep[FULL] = full;
        keep[TOP2] = full & ~(full >> 2);
        keep[UPPER] = full & ~half;
        fixed[ONES] = full;
        fixed[LOWBIT] = full & 1;
        fixed[GRAZE_A] = (full + 1 - 2 * u64(step)) & full;
        fixed[GRAZE_B] = step & full;
    }
};

// Each of four items in four lanes.
typedef u64 Four64 __attribute__((vector_size(2 * STRIP)));
MMAPROBE_HD Wide four_times(Four64 x) {
#if defined(__AVX512F__)
    const __m512i items = _mm512_castsi256_si512(__m256i(x));
    return {Wide::Register(_mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 0, 0, 1, 1, 1, 1), items)),
            Wide::Register(_mm512_permutexvar_epi64(_mm512_setr_epi64(2, 2, 2, 2, 3, 3, 3, 3), items))};
#else
    u64 found[STRIP];
    for (int i = 0; i < STRIP; ++i) found[i] = x[i / 4];
    return load<Wide>(found);
#endif
}

// The same by a pattern's number, in lanes.
template <class Lane>
struct PatternTable {
    Of16<Lane> keep{}, fixed{};

    PatternTable(int fraction, u32 step) {
        const Patterns every(fraction, step);
        for (u32 number : {ONES, LOWBIT, GRAZE_A, GRAZE_B}) fixed |= at(number, every.fixed[number]);
        for (u32 number : {FULL, TOP2, UPPER}) keep |= at(number, every.keep[number]);
    }
    MMAPROBE_HD static Of16<Lane> at(u32 number, u64 value) {
        return widen<Lane>(row_numbers() == int16_t(number)) & Lane(value);
    }
};

// The same of 16 rows with a pattern each, GIVEN ones with what they are given.
template <class Lane>
struct Pattern16 {
    Of16<Lane> keep, fixed;

    Pattern16(const PatternTable<Lane>& table, Short pattern, const Wide& given) {
        const Of16<Lane> number = widen<Lane>(pattern);
        keep = looked_up(table.keep, number);
        fixed = looked_up(table.fixed, number) | (widen<Lane>(pattern == int16_t(GIVEN)) & narrowed<Lane>(given));
    }
    MMAPROBE_HD Of16<Lane> of(Of16<Lane> random) const { return (random & keep) | fixed; }
};

// 32 bits out of 32, each of which hangs on all.
template <class V>
MMAPROBE_HD V mixed(V word) {
    word *= RESULT_MIX[0];
    return (word ^ word >> 15) * RESULT_MIX[1];
}

// The significand of a fraction field, cut to 16 bits.
template <class V>
MMAPROBE_HD V top_bits(V x, int fraction) {
    return (fraction > 15 ? x >> (fraction - 15) : x << (15 - fraction)) | (1 << 15);
}

// A column of b: drift, whether it turns signs, whether its lanes are in opposite order, its fraction, word of C, words
// that say where special values lie and which, and the significand of its scales that C follows.
struct Column {
    i32 drift;
    u32 turn, stray, word, places, kinds, scale;
    u64 fraction;
};

// Two lanes of 16 rows on their way to codes: exponents of products less b's, signs, fractions, which lanes are zero,
// which take an exponent of their own, and which lanes rows do not aim at.
struct PairLanes {
    ShortPairs exponent, zero, free, own, dead;
    HalfPairs signs, fractions;
};

// Those of a scale block, which wait for the exponent of its scale: fractions with the sign below them, and what is moved
// alone only where it may be.
struct WaitingLanes {
    ShortPairs exponent[MOST_BLOCK / 2], zero[MOST_BLOCK / 2], dead[MOST_BLOCK / 2], free[MOST_BLOCK / 2],
        own[MOST_BLOCK / 2];
    HalfPairs digits[MOST_BLOCK / 2];

    MMAPROBE_HD void put(int i, const PairLanes& x, bool moves) {
        exponent[i] = x.exponent;
        zero[i] = x.zero;
        dead[i] = x.dead;
        digits[i] = x.fractions << 1 | (x.signs & 1);
        if (!moves) return;
        free[i] = x.free;
        own[i] = x.own;
    }
    MMAPROBE_HD PairLanes of(int i, bool moves) const {
        PairLanes x;
        x.exponent = exponent[i];
        x.zero = zero[i];
        x.dead = dead[i];
        x.fractions = digits[i] >> 1;
        x.signs = digits[i] & 1;
        x.free = moves ? free[i] : ShortPairs{};
        x.own = moves ? own[i] : ShortPairs{};
        return x;
    }
};

class AimedTiles {
    const Domain t, reached;  // as it is, and with the exponents of scales in those of operands
    const Keys keys;
    const u64 counted_from;  // pairs are counted from here
    const TileFamily rule;
    std::optional<SpecialFormats> formats;  // where special values are laid over
    Place p;
    char* origin[5];
    int blocks_a, blocks_scale;  // of the words of a's elements, and of the numbers of scales
    std::vector<Opened> opened;  // a row, a column, then a's elements, the scales of columns and those of rows
    std::vector<Opened> opened_tile;
    std::vector<Column> columns;
    std::vector<Word> drawn;  // four a block
    std::vector<Word> tile_words;  // the same of 16 tiles,
    std::vector<u32> of_tile;  // and tile by tile, with zeros behind: the other half of the last 16 lanes

    Target target;
    TileScales scales;
    bool fractions;  // of the scales
    u32 step;
    i32 aim;
    static constexpr int PLACES = MOST_K + 2 * STRIP;
    int16_t beta[PLACES];  // with the exponents of scales
    int16_t own_b[2][PLACES] = {};  // without: in order, and in opposite order
    uint16_t negative[2][PLACES] = {};
    int16_t hollow[PLACES] = {}, subnormal[PLACES];

    static int bits_of(const Layout& f) { return larger(16, 8 * f.item); }

    // Blocks `first` to `last - 1` of some, of 16 indices: from one on, or so far apart.
    void draw(u64 index, u64 apart, const std::vector<Opened>& blocks, int first, int last, Word* out) const {
        for (int lane = 0; lane < STRIP; lane += PER) {
            const Opening opening(Indices::spaced(index + u64(lane) * apart, apart), keys);
            const auto put = [&](int block, const Four& words) {
                for (int w = 0; w < 4; ++w)
                    memcpy(reinterpret_cast<u32*>(out + 4 * block + w) + lane, words.w + w, WIDTH);
            };
            int block = first;
            for (; block + 2 <= last; block += 2) {
                State states[2] = {opening.state(blocks[size_t(block)]), opening.state(blocks[size_t(block + 1)])};
                Four words[2];
                philox_sets<2>(states, keys, words);
                put(block, words[0]);
                put(block + 1, words[1]);
            }
            if (block < last) {
                State states[1] = {opening.state(blocks[size_t(block)])};
                Four words[1];
                philox_sets<2>(states, keys, words);
                put(block, words[0]);
            }
        }
    }
    void draw(u64 index, int first, int last) { draw(index, 1, opened, first, last, drawn.data()); }
    void draw_all(u64 index) { draw(index, 0, int(opened.size())); }
    int first_of_scales() const { return 2 + blocks_a; }
    BlockNumbers scale_numbers(bool of_rows) const {
        return {drawn.data() + 4 * (first_of_scales() + of_rows * blocks_scale), t.space.groups};
    }

    size_t words_of_tile() const { return tile_words.size() + STRIP / 4; }
    // Words of 16 tiles, long before they are read: what lies there in words of one store is read in registers.
    void draw_tiles(u64 index) {
        draw(index, u64(p.side), opened_tile, 0, int(opened_tile.size()), tile_words.data());
        for (size_t i = 0; i < tile_words.size(); ++i) {
            u32 words[STRIP];
            store(tile_words[i], words);
            for (size_t number = 0; number < STRIP; ++number) of_tile[number * words_of_tile() + i] = words[number];
        }
    }

    // `number`: of 16 tiles whose words were drawn together.
    Reach make_profile(u64 index, int number) {
        const int k = t.space.k;
        const u32* const words = of_tile.data() + size_t(number) * words_of_tile();
        const auto half = [&](int n) { return words[n / 2] >> 16 * (n % 2) & 0xFFFF; };
        target = rule.target(reached, half(5));
        const Target& x = target;
        step = half(4) >> (16 - smaller(t.a.fraction / 2, 15));
        fractions = (half(3) & 3) == 0;
        aim = clamp(x.high - pick16(half(0), x.high - x.low + 1), x.a_low + x.b_low, x.a_high + x.b_high);
        const i32 low = larger(x.b_low, aim - x.a_high), high = smaller(x.b_high, aim - x.a_low);
        const i32 flat = low + pick16(half(1), high - low + 1), jitter = half(2) & 1 ? 20 : 3;
        Half lane_words[MOST_K / STRIP];
        Short own[MOST_K / STRIP];
        for (int at = 0; at < k; at += STRIP) {
            Half& word = lane_words[at / STRIP];
            memcpy(&word, words + 4 + at / 2, sizeof word);
            const Short near = hold(fill(flat - jitter) + below(word, 2 * jitter + 1), fill(low), fill(high));
            own[at / STRIP] = Short(word & 32) != 0 ? fill(flat) : near;
        }
        for (int block = 0; block < t.space.groups; ++block)
            under_scale(block, half(8 * (1 + (k + 7) / 8) + block), lane_words, own);
        Short least = fill(NO_TERM), most = fill(NO_TERM);  // of opposites, and of them
        for (int at = 0; at < k; at += STRIP) {
            const Short here = row_numbers() < int16_t(k - at);
            least = most_of(least, here ? -own[at / STRIP] : fill(NO_TERM));
            most = most_of(most, here ? own[at / STRIP] : fill(NO_TERM));
            put_profile(at, lane_words[at / STRIP], own[at / STRIP]);
        }
        for (int i = 0; i < k; ++i) {
            own_b[1][i] = own_b[0][k - 1 - i];
            negative[1][i] = negative[0][k - 1 - i];
        }
        Reach reach{larger(x.a_low + highest_of(most), x.rows_low),
                    0,
                    x.a_high - highest_of(least),
                    aim,
                    index / u64(p.side) + counted_from,
                    words[3],
                    p.whole_m,
                    p.whole_n,
                    0};
        reach.high = larger(reach.low, smaller(reach.top, x.rows_high));
        return reach;
    }

    int lanes_of_block() const { return t.space.groups ? t.space.group_lanes : t.space.k; }

    // The scale of a block of b, and what exponents its lanes then have.
    void under_scale(int block, u32 number, const Half* lane_words, Short* own) {
        const int first = block * lanes_of_block() / STRIP, last = first + lanes_of_block() / STRIP;
        Short largest = own[first];
        for (int i = first + 1; i < last; ++i) largest = most_of(largest, own[i]);
        scales.put(t, target.drift, block, highest_of(largest), number);
        const Short scale = fill(scales.exponent[block]), least = fill(scales.least[block]);
        for (int i = first; i < last; ++i) {
            const Short bottom = Short(lane_words[i] & uint16_t(FEW_LOWEST)) != 0 ? least : fill(t.b.low);
            own[i] = hold(own[i] - scale, bottom, fill(t.b.top)) + scale;
        }
    }

    // Lanes `at` and following of the profile; of lanes 0, 1, 2, 3 by two bits a, b, both are subnormal, or neither.
    void put_profile(int at, Half word, Short own) {
        const Short kind = target.subnormal ? Short(word >> 2 & 3) : fill(3);
        if (target.subnormal) {
            const Space& s = t.space;
            const Short near = fill(larger(s.d_low, s.product_low)) + below(word, s.d_fraction + 6);
            const Short wanted = Short(word & 16) != 0 ? near : fill(aim);
            const Short opposite = hold(wanted - int16_t(t.a.normal - 1), fill(t.b.normal), fill(t.b.top));
            const Short lowest = fill(t.b.low + scales.exponent[at / lanes_of_block()]) + below(word, t.b.fraction);
            own = kind == 3 ? own : kind != 0 ? lowest : s.groups ? own : opposite;
        }
        const Short is_hollow = Short(word & 2) != 0 ? fill(-i32(target.hollow)) : Short{};
        const Short is_subnormal = (kind == 0) | (kind == 2);
        const Half signs = word & 1;
        memcpy(beta + at, &own, sizeof own);
        own -= int16_t(scales.exponent[at / lanes_of_block()]);
        memcpy(own_b[0] + at, &own, sizeof own);
        memcpy(negative[0] + at, &signs, sizeof signs);
        memcpy(hollow + at, &is_hollow, sizeof is_hollow);
        memcpy(subnormal + at, &is_subnormal, sizeof is_subnormal);
    }

    void make_columns(int first, const Reach& reach) {
        u32 w[4][STRIP];
        for (int i = 0; i < 4; ++i) store(drawn[size_t(4 + i)], w[i]);
        const Patterns patterns(t.b.fraction, step);
        for (int j = first; j < p.n && j < first + STRIP; ++j) {
            Column& column = columns[size_t(j)];
            const u32 style = w[2][j - first], word = w[1][j - first];
            column.word = w[0][j - first];
            column.drift = larger(pick16(style >> 16, 2 * target.drift + 1) - target.drift, 0);
            column.turn = style >> 2 & u32(target.turns);
            column.stray = (style >> 3 & 15) == 0;
            const int bits = bits_of(t.b);
            const u64 random = (bits == 16 ? word >> 16 : bits == 32 ? word : word * WIDE_MIX) >> (bits - t.b.fraction);
            const u32 pattern = target.columns[style & 3];
            column.fraction = (random & patterns.keep[pattern]) | patterns.fixed[pattern];
            column.places = word;
            column.kinds = w[3][j - first];
            if (rule.column) column.fraction = rule.column(t, column.kinds, word, reach, j);
        }
        if (t.space.groups) column_scales(first);
    }

    // The scales of columns `first` and following, and of their significands those that C follows.
    void column_scales(int first) {
        const BlockNumbers numbers = scale_numbers(false);
        const int blocks = t.space.groups, count = smaller(p.n - first, STRIP);
        const Half followed = numbers.followed(t.scale, fractions);
        const Coder<uint16_t> coder(t.scale);
        Short drift{}, stray{};
        for (int j = 0; j < count; ++j) {
            Column& column = columns[size_t(first + j)];
            column.scale = followed[j];
            drift[j] = int16_t(column.drift);
            stray[j] = int16_t(-i32(column.stray));
        }
        uint8_t* const to = reinterpret_cast<uint8_t*>(p.at[4]) + first * blocks;
        for (int block = 0; block < blocks; ++block) {
            const Half fraction = fractions ? numbers.fraction(t.scale, block) : Half{};
            const Short exponent = stray ? fill(scales.exponent[blocks - 1 - block]) : fill(scales.exponent[block]);
            uint8_t codes[STRIP];
            store_items<uint8_t>(coder.code(exponent - drift, fraction) << t.scale.padding,
                                 reinterpret_cast<char*>(codes));
            for (int j = 0; j < count; ++j) to[j * blocks + block] = codes[j];
        }
    }

    // Codes of up to 16 bits, 32 lanes at once.
    template <class Item>
    void narrow_columns() {
        const Layout& f = t.b;
        const int k = t.space.k, sign_place = count_bits(f.sign) - 1;
        const ShortPairs low = ShortPairs{} + int16_t(f.low), top = ShortPairs{} + int16_t(f.top);
        const ShortPairs normal = ShortPairs{} + int16_t(f.normal);
        Item* to = reinterpret_cast<Item*>(p.at[1]);
        for (const Column& column : columns) {
            const int16_t drift = int16_t(t.space.groups ? 0 : column.drift);
            const HalfPairs digits = HalfPairs{} + uint16_t(f.implicit | column.fraction);
            for (int at = 0; at < k; at += 2 * STRIP) {
                ShortPairs exponent, zero;
                HalfPairs signs;
                memcpy(&exponent, own_b[column.stray] + at, sizeof exponent);
                memcpy(&signs, negative[column.stray] + at, sizeof signs);
                memcpy(&zero, hollow + at, sizeof zero);
                const ShortPairs held = least_of(most_of(exponent - drift, low), top), field = most_of(held, normal);
                HalfPairs code = (HalfPairs(field - normal) << f.fraction) +
                                 shifted_down(digits, HalfPairs(field - held));
                code = least_of(code, HalfPairs{} + uint16_t(f.largest)) & HalfPairs(~zero);
                signs = (signs ^ uint16_t(column.turn)) << sign_place;
                if (f.nan_rule == NEGATIVE_ZERO) signs &= HalfPairs(code != 0);
                const auto items = converted<Vector<Item, int(2 * STRIP * sizeof(Item))>>(code << f.padding | signs);
                const int here = smaller(2 * STRIP, k - at);
                store_first(items, here, to);
                to += here;
            }
        }
    }

    template <class Lane, class Item>
    void wide_columns() {
        const Coder<Lane> coder(t.b);
        const int k = t.space.k;
        const auto codes = [&](Short exponent, Half signs, Short zero, Of16<Lane> fractions) {
            const Of16<Lane> code = coder.code(coder.in_lanes(exponent), fractions) & ~widen<Lane>(zero);
            return items_of<Item>(coder.container(code, widen<Lane>(Short(signs))));
        };
        Item* to = reinterpret_cast<Item*>(p.at[1]);
        if constexpr (sizeof(Lane) == 8)
            if (k == 4) return four_columns(codes, to);
        for (const Column& column : columns)
            for (int at = 0; at < k; at += STRIP) {
                Short exponent, zero;
                Half signs;
                memcpy(&exponent, own_b[column.stray] + at, sizeof exponent);
                memcpy(&signs, negative[column.stray] + at, sizeof signs);
                memcpy(&zero, hollow + at, sizeof zero);
                const auto items = codes(exponent - int16_t(column.drift), signs ^ uint16_t(column.turn), zero,
                                         Of16<Lane>{} + Lane(column.fraction));
                const int here = smaller(STRIP, k - at);
                store_first(items, here, to);
                to += here;
            }
    }

    // Columns of four lanes, four at once: `codes` as above.
    template <class Codes>
    void four_columns(const Codes& codes, u64* to) {
        const auto lanes = [](const void* from) {
            u64 four;
            memcpy(&four, from, sizeof four);
            return four;
        };
        const auto repeated = [](u32 x) { return u64(uint16_t(x)) * 0x0001000100010001u; };
        const Short zero = Short(Four64{} + lanes(hollow));
        for (int j = 0; j < p.n; j += 4, to += STRIP) {
            const auto each = [&](auto of) {
                const auto at = [&](int i) { return of(columns[size_t(smaller(j + i, p.n - 1))]); };
                return Four64{at(0), at(1), at(2), at(3)};
            };
            const Short exponents = Short(each([&](const Column& x) { return lanes(own_b[x.stray]); }));
            const Short drifts = Short(each([&](const Column& x) { return repeated(u32(x.drift)); }));
            const Half signs = Half(each([&](const Column& x) { return lanes(negative[x.stray]) ^ repeated(x.turn); }));
            const Wide fractions = four_times(each([](const Column& x) { return x.fraction; }));
            store_first(codes(exponents - drifts, signs, zero, fractions), 4 * smaller(4, p.n - j), to);
        }
    }

    // The random word of a's element k of 16 rows.
    template <class Lane>
    Of16<Lane> element(int k) const {
        const Word* const w = drawn.data() + 8;
        if constexpr (sizeof(Lane) == 4) return w[k];
        if constexpr (sizeof(Lane) == 8) return wide(w[2 * k]) | wide(w[2 * k + 1]) << 32;
    }

    // Codes of a of up to 16 bits, two lanes of K at once, block by block of scales, which `put` takes.
    template <class Item, bool Subnormal, int Places, bool Scaled, class Put>
    void pair_codes(const Rows& x, const RowWords& rows, char* out, const Put& put) const {
        const Layout& f = t.a;
        const int down = 16 - f.fraction, sign_place = count_bits(f.sign) - 1, k_count = t.space.k;
        const HalfPairs shared = twice(to_halves(drawn[2] >> 16) >> down),
                        implicit = HalfPairs{} + uint16_t(f.implicit);
        const PatternTable<uint16_t> table(f.fraction, step);
        const Pattern16<uint16_t> patterns[4] = {{table, x.pattern[0], x.given},
                                                 {table, x.pattern[1], x.given},
                                                 {table, x.pattern[2], x.given},
                                                 {table, x.others, x.given}};
        const HalfPairs keep = twice(patterns[3].keep), fixed = twice(patterns[3].fixed);
        const HalfPairs keep_third = twice(patterns[2].keep), fixed_third = twice(patterns[2].fixed);
        HalfPairs own[2], negatives[3];
        ShortPairs lanes[3], exponents[3];
        for (int i = 0; i < Places; ++i) {
            lanes[i] = twice(x.lane[i]);
            exponents[i] = twice(x.exponent[i]);
            negatives[i] = HalfPairs(twice(x.negative[i]));
            if (i < 2) own[i] = (shared & twice(patterns[i].keep)) | twice(patterns[i].fixed);
        }
        const HalfPairs vary = HalfPairs(twice(x.vary)), sign = HalfPairs(twice(x.vary != 0 ? Short{} : x.sign));
        const HalfPairs spread = HalfPairs(twice(x.spread)), mix = twice(rows.r[6]);
        const ShortPairs base = twice(x.base), dead = twice(x.dead), density = twice(x.density), zeros = twice(x.zero);
        const ShortPairs low = ShortPairs{} + int16_t(f.low), top = ShortPairs{} + int16_t(f.top);
        const ShortPairs normal = ShortPairs{} + int16_t(f.normal);
        const Word even = Word(to_ints(x.alternate) == 0), odd = Word(to_ints(x.alternate) == 1);
        const HalfPairs turned = HalfPairs((even & 1) | (odd & 0x10000));
        const ShortPairs dropped = twice(x.dropped);
        const auto aim_at = [&](int k) {
            const HalfPairs word = HalfPairs(drawn[size_t(8 + k / 2)]), random = word >> down;
            const HalfPairs role = (word ^ mix) * ELEMENT_MIX;
            const ShortPairs alive = ShortPairs(role & 255) < density, beta_k = pair_of(beta + k);
            const ShortPairs number = ShortPairs(Word{} + (u32(k) | u32(k + 1) << 16));
            ShortPairs exponent = chosen(alive, base - ShortPairs(upper_products(role, spread)), dead), aimed = alive;
            PairLanes to;
            to.signs = ((role >> 8 & vary) | sign) ^ turned;
            to.fractions = (random & keep) | fixed;
            to.zero = zeros & ~alive;
            for (int i = Places - 1; i >= 0; --i) {
                const ShortPairs here = lanes[i] == number;
                exponent = chosen(here, exponents[i], exponent);
                to.signs = chosen(here, negatives[i], to.signs);
                to.fractions = chosen(here, i == 2 ? (random & keep_third) | fixed_third : own[i], to.fractions);
                to.zero &= ~here;
                aimed |= here;
            }
            if (rule.alternates) to.zero |= dropped == number;
            if constexpr (Scaled) to.dead = ~aimed | (exponent < int16_t(t.space.product_low));
            to.exponent = exponent - beta_k;
            if (target.hollow) {
                const HalfPairs depth = upper_products(role, HalfPairs{} + uint16_t(f.top - f.normal + 1));
                to.free = pair_of(hollow + k);
                to.own = top - (ShortPairs(depth) & ShortPairs((role & 0x200) == 0));
                to.zero &= ~to.free;
            }
            if constexpr (Subnormal) {
                to.free = pair_of(subnormal + k);
                to.own = low + ShortPairs(upper_products(role, HalfPairs{} + uint16_t(f.fraction)));
            }
            return to;
        };
        const auto finish = [&](int k, PairLanes x, ShortPairs scale, ShortPairs lost) {
            ShortPairs exponent = x.exponent - scale;
            if (Subnormal || target.hollow) exponent = chosen(x.free, x.own, exponent);
            if constexpr (Subnormal || Scaled) x.zero |= lost & (exponent < low);
            if constexpr (Subnormal) x.zero |= x.free & (exponent + scale + pair_of(beta + k) > base);
            const ShortPairs held = least_of(most_of(exponent, low), top), field = most_of(held, normal);
            HalfPairs code = (HalfPairs(field - normal) << f.fraction) +
                             shifted_down(implicit | x.fractions, HalfPairs(field - held));
            code = least_of(code, HalfPairs{} + uint16_t(f.largest)) & HalfPairs(~x.zero);
            HalfPairs signs = (x.signs ^ HalfPairs(pair_of(negative[0] + k))) << sign_place;
            if (f.nan_rule == NEGATIVE_ZERO) signs &= HalfPairs(code != 0);
            const Word codes = Word(code << f.padding | signs);
            char* const to = out + i64(k) * STRIP * i64(sizeof(Item));
            if (k + 1 < k_count)
                store_pair<Item>(codes, to);
            else
                store_items<Item>(to_halves(codes), to);
        };
        const ShortPairs every = ~ShortPairs{};
        if constexpr (!Scaled) {
            for (int k = 0; k < k_count; k += 2) finish(k, aim_at(k), ShortPairs{}, every);
        } else {
            const Drops drops(scale_numbers(true).last());
            const ShortPairs lost_alive = twice(drops.alive), lost_dead = twice(drops.dead);
            const bool moves = Subnormal || target.hollow;
            WaitingLanes waiting;
            for (int first = 0, block = 0; first < k_count; first += t.space.group_lanes, ++block) {
                const ShortPairs none = ShortPairs{} + int16_t(NO_TERM);
                ShortPairs largest = none;
                const int last = first + t.space.group_lanes;
                for (int k = first; k < last; k += 2) {
                    const PairLanes x = aim_at(k);
                    waiting.put((k - first) / 2, x, moves);
                    ShortPairs missing = x.zero;
                    if (moves) missing |= x.free;
                    const ShortPairs term = chosen(missing, none, x.exponent);
                    largest = most_of(largest, term);
                }
                const Half lower = to_halves(Word(largest)), upper = to_halves(Word(largest) >> 16);
                const ShortPairs scale = twice(put(block, first, most_of(Short(lower), Short(upper))));
                for (int k = first; k < last; k += 2) {
                    const PairLanes x = waiting.of((k - first) / 2, moves);
                    finish(k, x, scale, Subnormal ? every : chosen(x.dead, lost_dead, lost_alive));
                }
            }
        }
    }

    // The exponents of the scales of a block of a, by the largest exponents of its terms; their codes to `out`.
    Short row_scales(const Rows& x, int block, int first, Short largest, char* out) const {
        const BlockNumbers numbers = scale_numbers(true);
        largest = largest == int16_t(NO_TERM) ? x.base - beta[first] : largest;
        const Half own = numbers.of(block);
        const Short room = Short(own & 0x100) != 0 ? Short{} : below(own, rooms(t.a));
        const Short exponent = hold(largest - int16_t(t.a.top) + room, fill(t.scale.normal), fill(t.scale.top));
        const Half code = Coder<uint16_t>(t.scale).code(exponent,
                                                        fractions ? numbers.fraction(t.scale, block) : Half{});
        store_items<uint8_t>(code << t.scale.padding, out + block * STRIP);
        return exponent;
    }

    template <class Item, bool Scaled, class Put>
    void some_codes(const Rows& x, const RowWords& rows, char* out, const Put& put) const {
        if (target.subnormal) return pair_codes<Item, true, 0, Scaled>(x, rows, out, put);
        switch (rule.places) {
            case 0: return pair_codes<Item, false, 0, Scaled>(x, rows, out, put);
            case 1: return pair_codes<Item, false, 1, Scaled>(x, rows, out, put);
            case 2: return pair_codes<Item, false, 2, Scaled>(x, rows, out, put);
            default: return pair_codes<Item, false, 3, Scaled>(x, rows, out, put);
        }
    }

    template <class Item>
    void pair_codes(const Rows& x, const RowWords& rows, char* out, char* scales_out) const {
        const auto put = [&](int block, int first, Short largest) {
            return row_scales(x, block, first, largest, scales_out);
        };
        if (sizeof(Item) == 1 && t.space.groups) return some_codes<uint8_t, true>(x, rows, out, put);
        some_codes<Item, false>(x, rows, out, put);
    }

    // Wider codes of a.
    template <class Lane, class Item, bool Subnormal, int Places>
    void row_codes(const Rows& x, const RowWords& rows, char* out) const {
        typedef Of16<Lane> V;
        const Coder<Lane> coder(t.a);
        const int fraction = t.a.fraction;
        const V shared = wider<Lane>(drawn[2]) >> coder.down;
        const PatternTable<Lane> table(fraction, step);
        const V own[2] = {Pattern16<Lane>(table, x.pattern[0], x.given).of(shared),
                          Pattern16<Lane>(table, x.pattern[1], x.given).of(shared)};
        const Pattern16<Lane> third(table, x.pattern[2], x.given), others(table, x.others, x.given);
        const Half vary = Half(x.vary), sign = Half(x.vary != 0 ? Short{} : x.sign), spread = Half(x.spread);
        const Half role_mix = rows.r[6];
        const int k_count = t.space.k;
        for (int k = 0; k < k_count; ++k, out += STRIP * sizeof(Item)) {
            const V word = element<Lane>(k), random = word >> coder.down;
            const Half role = (low_half(word) ^ role_mix) * ELEMENT_MIX;
            const Short alive = Short(role & 255) < x.density;
            Short exponent = alive ? x.base - Short(upper_products(role, spread)) : x.dead;
            Half signs = ((role >> 8 & vary) | sign) ^ Half((x.alternate == int16_t(k & 1)) & 1);
            V fractions = others.of(random);
            Short zero = x.zero & ~alive;
            for (int i = Places - 1; i >= 0; --i) {
                const Short here = x.lane[i] == int16_t(k);
                exponent = here ? x.exponent[i] : exponent;
                signs = Half(here ? x.negative[i] : Short(signs));
                zero &= ~here;
                const V lane = i == 2 ? third.of(random) : own[i];
                const V mask = widen<Lane>(here);
                fractions = (lane & mask) | (fractions & ~mask);
            }
            if (rule.alternates) zero |= x.dropped == int16_t(k);
            exponent -= beta[k];
            if (hollow[k]) {
                exponent = fill(t.a.top) - (Short(role & 0x200) != 0 ? Short{} : below(role, t.a.top - t.a.normal + 1));
                zero = Short{};
            }
            if constexpr (Subnormal) {
                if (subnormal[k]) {
                    exponent = fill(t.a.low) + below(role, fraction);
                    zero |= exponent + beta[k] > x.base;
                }
                zero |= exponent < int16_t(t.a.low);
            }
            const V code = coder.code(coder.in_lanes(exponent), fractions) & ~widen<Lane>(zero);
            const V turned = widen<Lane>(Short(signs ^ negative[0][k]));
            store_items<Item>(coder.container(code, turned), out);
        }
    }

    template <class Lane, class Item>
    void row_codes(const Rows& x, const RowWords& rows, char* out) const {
        if (target.subnormal) return row_codes<Lane, Item, true, 0>(x, rows, out);
        switch (rule.places) {
            case 0: return row_codes<Lane, Item, false, 0>(x, rows, out);
            case 1: return row_codes<Lane, Item, false, 1>(x, rows, out);
            case 2: return row_codes<Lane, Item, false, 2>(x, rows, out);
            default: return row_codes<Lane, Item, false, 3>(x, rows, out);
        }
    }

    // The significands, cut to 16 bits, of the lanes that C mirrors.
    Word mirrored_significands(const Rows& x) const {
        const int fraction = t.a.fraction;
        const auto of = [&](auto lane) {
            typedef decltype(lane) Lane;
            const Of16<Lane> word = wider<Lane>(drawn[2]) >> (int(8 * sizeof(Lane)) - fraction);
            const Pattern16<Lane> pattern(PatternTable<Lane>(fraction, step), x.pattern[0], x.given);
            const Of16<Lane> top = top_bits(pattern.of(word), fraction);
            if constexpr (sizeof(Lane) == 8)
                return low_word(top) & 0xFFFF;
            else
                return converted<Word>(top & 0xFFFF);
        };
        return bits_of(t.a) == 16 ? of(uint16_t{}) : bits_of(t.a) == 32 ? of(u32{}) : of(u64{});
    }

    template <class Lane, class Item>
    void addends(const Rows& x, char* out) const {
        typedef Of16<Lane> V;
        typedef Of16<Aim<Lane>> A;
        typedef typename Coder<Lane>::Exponent Exponent;
        const Coder<Lane> coder(t.c);
        const Pattern16<Lane> pattern(PatternTable<Lane>(t.c.fraction, step), x.c_pattern, x.c_given);
        const A vary = widen<Aim<Lane>>(x.c_vary), sign = widen<Aim<Lane>>(x.c_vary != 0 ? Short{} : x.c_sign);
        const A spread = from_word<Aim<Lane>>(to_words(Half(x.c_spread)));
        const Exponent highest = coder.in_lanes(x.c), density = coder.in_lanes(x.c_density);
        const bool mirrors = any(x.mirror);
        const bool scaled = t.space.groups != 0;
        Word significands = mirrors ? mirrored_significands(x) : Word{}, up{};
        if (mirrors && scaled) {
            const Half followed = scale_numbers(true).followed(t.scale, fractions);
            const Scaled16<Word> product(significands, to_words(followed), t.scale.fraction);
            significands = product.value;
            up = product.up;
        }
        const A mirror = widen<Aim<Lane>>(x.mirror), opposite = widen<Aim<Lane>>(x.negative[0] ^ 1);
        const V whole_mirror = coder.whole(mirror), moved = (widen<Lane>(x.delta) << t.c.padding) & whole_mirror;
        const Exponent mirrored = coder.in_lanes(x.exponent[0]);
        for (const Column& column : columns) {
            const Word word = mixed(drawn[3] ^ column.word);
            const A role = from_word<Aim<Lane>>(word & 0xFFFF);
            A signs = (role >> 8 & vary) | sign;
            V fraction = pattern.of(wider<Lane>(word) >> coder.down);
            A alive = A((Exponent(role & 255) - density) >> (8 * int(sizeof(Aim<Lane>)) - 1));  // all ones below it
            Exponent exponent = highest - Exponent(upper_halves(role, spread));
            if (mirrors) {
                const u32 y = u32(top_bits(column.fraction, t.b.fraction) & 0xFFFF);
                const Scaled16<u32> own_y(y, scaled ? column.scale : 1, scaled ? t.scale.fraction : 0);
                const Word product = significands * own_y.value, carry = product >> 31;
                const V own = cut<Lane>(product << (1 - carry) & 0x7FFFFFFF);
                const Exponent at = mirrored + Exponent(from_word<Aim<Lane>>(carry + up + own_y.up));
                exponent = (at & Exponent(mirror)) | (exponent & ~Exponent(mirror));
                fraction = (own & whole_mirror) | (fraction & ~whole_mirror);
                signs = (opposite & mirror) | (signs & ~mirror);
                alive |= mirror;
            }
            const V code = coder.code(exponent - std::make_signed_t<Aim<Lane>>(column.drift), fraction);
            const V whole_signs = coder.whole(A(signs ^ Aim<Lane>(column.turn)));
            store_items<Item>(coder.container(code & coder.whole(alive), whole_signs) + moved, out);
            out += STRIP * sizeof(Item);
        }
    }

    // 31 bits of a fraction as C's field.
    template <class Lane>
    Of16<Lane> cut(Word digits) const {
        if constexpr (sizeof(Lane) == 8) {
            const Wide all = wide(digits);
            return t.c.fraction > 31 ? all << (t.c.fraction - 31) : all >> (31 - t.c.fraction);
        } else {
            const Word cut_off = digits >> (31 - t.c.fraction);
            if constexpr (sizeof(Lane) == 2)
                return to_halves(cut_off);
            else
                return cut_off;
        }
    }

    void strip(const Rows& x, const RowWords& rows, int number) const {
        char* const a = p.at[0] + i64(number) * STRIP * t.space.k * t.a.item;
        char* const c = p.at[2] + i64(number) * STRIP * p.n * t.c.item;
        char* const scale = p.at[3] + i64(number) * STRIP * t.space.groups;
        switch (t.a.item) {
            case 1: pair_codes<uint8_t>(x, rows, a, scale); break;
            case 2: pair_codes<uint16_t>(x, rows, a, scale); break;
            case 4: row_codes<u32, u32>(x, rows, a); break;
            default: row_codes<u64, u64>(x, rows, a);
        }
        switch (t.c.present ? t.c.item : 0) {
            case 0: break;
            case 1: addends<uint16_t, uint8_t>(x, c); break;
            case 2: addends<uint16_t, uint16_t>(x, c); break;
            case 4: addends<u32, u32>(x, c); break;
            default: addends<u64, u64>(x, c);
        }
    }

    // Special values in place of codes.  What they are laid over hangs on three bits of the tile: tables of as many bits,
    // the lowest first (generators/tiles_aimed.py).
    struct Overlay {
        static constexpr u32 IN_ROWS = 0b01100011, IN_COLUMNS = 0b01101100, IN_ONE_LANE = 0b01000000, MANY = 0b10000000,
                             NO_NUMBERS = 0b00100101;
        static constexpr u32 C_DENSITY[8] = {0, 0, 0, 0, 192, 32, 32, 64};
        u32 mode, common;
        explicit Overlay(u32 word, i32 live) : mode(word >> 16 & 7), common(u32(pick16(word, live))) {}
        bool is(u32 table) const { return table >> mode & 1; }
        bool in_rows() const { return is(IN_ROWS | MANY); }
        bool in_columns() const { return is(IN_COLUMNS | MANY); }
        u32 in_results() const { return C_DENSITY[mode]; }
        // Of a format, by words.
        template <class Lane>
        Of16<Lane> codes(const SpecialCodes<Lane>& of, const Word& word) const {
            return of.of(is(NO_NUMBERS) ? chosen((word & 7) > 4, word - 3, word) : word, mixed(word));
        }
        // Where they lie of rows or columns with one each.
        Word places(Word word, i32 live) const {
            return is(IN_ONE_LANE) ? Word{} + common : (mixed(word) >> 16) * u32(live) >> 16;
        }
        // What lane k of rows or columns has where MANY are special; `here` says which are.
        static Word own(Word kind, i32 k) { return mixed(kind ^ u32(k) * ELEMENT_MIX); }
        static Int here(Word own) { return (own >> 8 & 3) == 0; }
    };

    // In place of some of 16 items side by side.
    template <class Item, class V>
    MMAPROBE_HD static void put_some(Int here, V codes, Item* items) {
        Of16<Item> before;
        memcpy(&before, items, sizeof before);
        const auto where = widen<Item>(Short(to_halves(Word(here))));
        before = (items_of<Item>(codes) & where) | (before & ~where);
        memcpy(items, &before, sizeof before);
    }

    template <class Item>
    void special_rows(const Overlay& over, int at) {
        if (!over.in_rows()) return;
        Item* const a = reinterpret_cast<Item*>(p.at[0]) + i64(at) * t.space.k * STRIP;
        const auto& a_codes = formats->codes<Item>(0);
        const Word kind = mixed(drawn[1]);
        for (i32 k = 0; over.is(Overlay::MANY) && k < t.space.k; ++k) {
            const Word own = over.own(kind, k);
            put_some(over.here(own), over.codes(a_codes, own), a + k * STRIP);
        }
        if (over.is(Overlay::MANY)) return;
        Item codes[STRIP];
        store_items<Item>(over.codes(a_codes, kind), reinterpret_cast<char*>(codes));
        u32 places[STRIP];
        store(over.places(drawn[2], t.space.k), places);
        for (int row = 0; row < STRIP; ++row) a[places[row] * STRIP + u32(row)] = codes[row];
    }
    template <class Item>
    void special_results(const Overlay& over, int at) {
        Item* c = reinterpret_cast<Item*>(p.at[2]) + i64(at) * p.n * STRIP;
        const auto& c_codes = formats->codes<Item>(2);
        for (const Column& column : columns) {
            const Word chosen = mixed(drawn[3] ^ column.word);
            put_some((chosen >> 24) < over.in_results(), over.codes(c_codes, mixed(chosen)), c);
            c += STRIP;
        }
    }
    // Of columns first to first + 15, those that there are.
    template <class Item>
    void special_columns(const Overlay& over, int first) {
        const int k = t.space.k, count = smaller(STRIP, p.n - first);
        Item* const b = reinterpret_cast<Item*>(p.at[1]) + first * k;
        const auto& b_codes = formats->codes<Item>(1);
        u32 kinds[STRIP] = {}, places[STRIP] = {};
        for (int j = 0; j < count; ++j) {
            kinds[j] = columns[size_t(first + j)].kinds;
            places[j] = columns[size_t(first + j)].places;
        }
        const Word kind = mixed(load<Word>(kinds));
        Item codes[STRIP];
        for (i32 i = 0; over.is(Overlay::MANY) && i < k; ++i) {
            const Word own = over.own(kind, i);
            store_items<Item>(over.codes(b_codes, own), reinterpret_cast<char*>(codes));
            i32 here[STRIP];
            store(over.here(own), here);
            for (int j = 0; j < count; ++j)
                if (here[j]) b[j * k + i] = codes[j];
        }
        if (over.is(Overlay::MANY)) return;
        store_items<Item>(over.codes(b_codes, kind), reinterpret_cast<char*>(codes));
        store(over.places(load<Word>(places), k), places);
        for (int j = 0; j < count; ++j) b[j * k + i32(places[j])] = codes[j];
    }
    // A special value in place of one scale of a row or column in 16, by its word.
    template <class Put>
    void special_scale(u32 kinds, const Put& put) const {
        const u32 word = mixed(kinds ^ SCALE_TURN), payload = mixed(word);
        if (t.space.groups && word >> 28 == 0)
            put(pick16(word >> 8, t.space.groups), uint8_t(special_code(t.scale, word & 31, payload, payload)));
    }
    void special_rows(u32 word, int at) {
        const Overlay over(word, t.space.k);
        uint8_t* const scale = reinterpret_cast<uint8_t*>(p.at[3]) + i64(at) * t.space.groups * STRIP;
        u32 kinds[STRIP];
        store(drawn[1], kinds);
        for (int row = 0; row < STRIP; ++row)
            special_scale(kinds[row], [&](i32 block, uint8_t code) { scale[block * STRIP + row] = code; });
        with_item(t.a, [&](auto item) { special_rows<decltype(item)>(over, at); });
        if (t.c.present && over.in_results())
            with_item(t.c, [&](auto item) { special_results<decltype(item)>(over, at); });
    }
    void special_columns(u32 word) {
        const Overlay over(word, t.space.k);
        uint8_t* const scale = reinterpret_cast<uint8_t*>(p.at[4]);
        for (int j = 0; j < p.n; ++j)
            special_scale(columns[size_t(j)].kinds,
                          [&](i32 block, uint8_t code) { scale[j * t.space.groups + block] = code; });
        if (!over.in_columns()) return;
        for (int first = 0; first < p.n; first += STRIP)
            with_item(t.b, [&](auto item) { special_columns<decltype(item)>(over, first); });
    }
    // Calls with a number of a format's container type.
    template <class Call>
    static void with_item(const Layout& f, const Call& call) {
        switch (f.item) {
            case 1: return call(uint8_t{});
            case 2: return call(uint16_t{});
            case 4: return call(u32{});
            default: return call(u64{});
        }
    }

    void tile(u64 index, int number) {
        if (!number) draw_tiles(index);
        Reach reach = make_profile(index, number);
        draw_all(index);
        for (int j = 0; j < p.n; j += STRIP) {
            if (j) {
                draw(index + u64(j), 1, 2);
                draw(index + u64(j), first_of_scales(), first_of_scales() + blocks_scale);
            }
            make_columns(j, reach);
        }
        switch (t.b.item) {
            case 1: narrow_columns<uint8_t>(); break;
            case 2: narrow_columns<uint16_t>(); break;
            case 4: wide_columns<u32, u32>(); break;
            default: wide_columns<u64, u64>();
        }
        for (int at = 0; at < p.strips; ++at) {
            if (at || p.n > STRIP) draw_all(index + u64(at) * STRIP);
            RowWords rows;
            for (int i = 0; i < 8; ++i) rows.r[i] = to_halves(drawn[size_t(i / 2)] >> 16 * (i % 2));
            reach.first = at * STRIP;
            strip(rule.rows(reached, rows, reach), rows, at);
            if (rule.special) special_rows(reach.word, at);
        }
        if (rule.special) special_columns(reach.word);
        p.next();
    }

public:
    AimedTiles(const Domain& domain, const Stream& words, int family, const Place& place)
        : t(domain), reached(under_scales(domain)), keys(words, FEWER_ROUNDS), counted_from(words.seed * ODD),
          rule(tile_family(family)), p(place), blocks_a((domain.space.k * bits_of(domain.a) + 127) / 128),
          blocks_scale(domain.space.groups ? domain.space.groups / 8 + 1 : 0), columns(size_t(p.n)),
          drawn(size_t(4 * (2 + blocks_a + 2 * blocks_scale))) {
        memcpy(origin, p.at, sizeof origin);
        if (rule.special) formats.emplace(t);
        opened.push_back(Opened(keys, ROW, 0));
        opened.push_back(Opened(keys, COLUMN, 0));
        for (int block = 0; block < blocks_a; ++block) opened.push_back(Opened(keys, ELEMENT, u32(block)));
        for (Purpose purpose : {COLUMN, ROW})
            for (int block = 1; block <= blocks_scale; ++block) opened.push_back(Opened(keys, purpose, u32(block)));
        for (int block = 0; block < 1 + (t.space.k + 7) / 8 + (t.space.groups + 7) / 8; ++block)
            opened_tile.push_back(Opened(keys, TILE, u32(block)));
        tile_words.resize(4 * opened_tile.size());
        of_tile.resize(STRIP * words_of_tile());
    }

    // Tiles, always to the same place.
    void run(u64 start, i64 count) {
        memcpy(p.at, origin, sizeof origin);
        for (i64 done = 0; done < count; ++done, start += u64(p.side)) tile(start, int(done % STRIP));
    }
};

}  // namespace
}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
