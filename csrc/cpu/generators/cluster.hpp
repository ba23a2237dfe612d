// Clustered operands (from version 2 on): exponents of raw codes replaced, for as many vectors at once as a register has
// 32-bit lanes.  The rules are told in generators/families_stream.py.
#pragma once
#include "cpu/generators/tile.hpp"
#include "cpu/generators/words.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {
namespace {

typedef i32 I32 __attribute__((vector_size(WIDTH)));
typedef uint8_t U8 __attribute__((vector_size(WIDTH)));

template <class V>
MMAPROBE_HD V most(V x, V y) {
    return x > y ? x : y;
}
template <class V>
MMAPROBE_HD V least(V x, V y) {
    return x < y ? x : y;
}
MMAPROBE_HD I32 limit(I32 x, i32 low, i32 high) { return least(most(x, I32{} + low), I32{} + high); }
// A number below count (which is below 2^16) from the low 16 bits of a word.
MMAPROBE_HD I32 pick_lanes(U32 half, U32 count) { return I32(times_high(U16(half), U16(count))); }
MMAPROBE_HD I32 pick_lanes(U32 half, i32 count) { return pick_lanes(half, U32{} + u32(count)); }

// Operand exponents whose sum is `exponent`, as split() of model/operands.hpp.
struct Halves {
    I32 a, b;
};
MMAPROBE_HD Halves split_lanes(const Layout& a, const Layout& b, I32 exponent, U32 half) {
    const I32 deep = exponent < a.normal + b.normal;
    const I32 low_a = deep ? I32{} + a.low : I32{} + a.normal, low_b = deep ? I32{} + b.low : I32{} + b.normal;
    exponent = least(most(exponent, low_a + low_b), I32{} + (a.top + b.top));
    const I32 low = most(low_a, exponent - b.top), high = least(I32{} + a.top, exponent - low_b);
    const I32 first = low + pick_lanes(half, U32(high - low + 1));
    return {first, exponent - first};
}

i32 lift(const Layout& f) { return f.implicit != 0; }
U32 field(const Layout& f, I32 exponent) { return U32(most(exponent - f.normal, I32{} - lift(f)) + lift(f)); }

MMAPROBE_HD U32 twice(U32 half) { return half | half << 16; }

// One operand of PER vectors: the highest exponent field and how far below it fields lie (twice, for items of at most two
// bytes); what of an item's lowest exponent bits makes it zero; where fractions stay (all bits or none).
struct Cluster {
    U32 top, width, gone, fractions;
};

// What replacing exponents must mind: codes above the largest finite one; a missing negative zero, fractions that go.
enum Shape { EVERY_CODE, LARGEST_LEFT_OUT, ANY_SHAPE };

// The integers of a format that replacing exponents needs, of items at bit `at` of lanes of V, 16 or 32 bits; of 8-byte
// items those of the upper half.
template <class Lane>
struct Fields {
    int position, up, exponent_bits;
    Lane drawn, fractions, largest;

    Fields(const Layout& f, int at) {
        const int half = f.item == 8 ? 32 : 0;
        exponent_bits = count_bits(f.largest >> f.fraction);
        position = f.fraction + f.padding - half + at;
        up = int(8 * sizeof(Lane)) - exponent_bits - position;
        drawn = Lane(~u32(0) << (8 * sizeof(Lane) - exponent_bits));
        fractions = Lane(((1u << position) - 1) & ~((1u << (at + f.padding)) - 1));
        largest = Lane(f.largest << f.padding >> half << at);
    }
};

// Fields so far below the top as the drawn ones say.
MMAPROBE_HD U16 fields_below(U16 x, const Fields<uint16_t>& f, const Cluster& c) {
    return less_or_zero(U16(c.top), times_high(x << f.up & f.drawn, U16(c.width)));
}
MMAPROBE_HD U32 fields_below(U32 x, const Fields<u32>& f, const Cluster& c) {
    return less_or_zero(c.top, (x << f.up >> (32 - f.exponent_bits)) * c.width >> f.exponent_bits);
}

// The codes of one item a lane, without signs.
template <Shape S, class V, class Lane>
MMAPROBE_HD V cluster(V x, const Fields<Lane>& f, const Cluster& c) {
    const V keep = S == ANY_SHAPE ? V(c.fractions) & f.fractions : V{} + f.fractions;
    const V code = fields_below(x, f, c) << f.position | (x & keep);
    return S == EVERY_CODE ? code : least(code, V{} + f.largest);
}

// What replaces the exponents of an operand's items, word by word.
class Replacer {
    Shape shape;
    bool no_negative_zero;
    u32 low, sign;  // of all items of a word: the exponent bits that make zeros; signs
    Fields<u32> words;
    Fields<uint16_t> halves, upper;  // of bytes: the lower and the upper ones of 16 bits

    static u32 repeat(const Layout& f, u32 item) {
        for (int bytes = f.item; bytes < 4; bytes *= 2) item |= item << 8 * bytes;
        return item;
    }
    template <class V>
    MMAPROBE_HD auto is_gone(U32 drawn) const {
        return V(drawn & low) == V(aim.gone);
    }
    template <Shape S, class V>
    MMAPROBE_HD U32 signed_codes(U32 drawn, U32 codes) const {
        const V code = is_gone<V>(drawn) ? V{} : V(codes);
        U32 signs = drawn & sign;
        if (S == ANY_SHAPE && no_negative_zero) signs = U32(code != 0 ? V(signs) : V{});
        return U32(code) | signs;
    }

public:
    Cluster aim;

    Replacer(const Layout& f, bool fractions_go)
        : no_negative_zero(f.nan_rule == NEGATIVE_ZERO), words(f, 0), halves(f, 0), upper(f, f.item == 1 ? 8 : 0) {
        const u64 fractions = (u64(1) << f.fraction) - 1, low_bits = (u64(1) << smaller(words.exponent_bits, 5)) - 1;
        shape = no_negative_zero || fractions_go       ? ANY_SHAPE
                : (f.largest & fractions) == fractions ? EVERY_CODE
                                                       : LARGEST_LEFT_OUT;
        low = repeat(f, u32(low_bits << words.position));
        sign = repeat(f, u32(f.item == 8 ? f.sign >> 32 : f.sign));
    }

    // One word of a block; of 8-byte items two: the lower goes where the upper does.
    template <Shape S, int Item>
    MMAPROBE_HD void replace_word(U32* w) const {
        if (Item == 1) {
            const U16 x = U16(*w);
            *w = signed_codes<S, U8>(*w, U32(cluster<S>(x, halves, aim) | cluster<S>(x, upper, aim)));
        } else if (Item == 2) {
            *w = signed_codes<S, U16>(*w, U32(cluster<S>(U16(*w), halves, aim)));
        } else {
            U32& x = w[Item / 8];
            if (Item == 8) *w = is_gone<U32>(x) ? U32{} : *w;
            x = signed_codes<S, U32>(x, cluster<S>(x, words, aim));
        }
    }
    template <Shape S, int Item>
    MMAPROBE_HD void replace_words(Four& block, int first, int last) const {
        constexpr int STEP = Item == 8 ? 2 : 1;
        if (last - first < 4) {
            for (int i = first; i < last; i += STEP) replace_word<S, Item>(block.w + i);
            return;
        }
#pragma GCC unroll 4
        for (int i = 0; i < 4; i += STEP) replace_word<S, Item>(block.w + i);
    }
    Shape kind() const { return shape; }
    template <int Item>
    MMAPROBE_HD void replace_items(Four& block, int first, int last) const {
        switch (shape) {
            case EVERY_CODE: return replace_words<EVERY_CODE, Item>(block, first, last);
            case LARGEST_LEFT_OUT: return replace_words<LARGEST_LEFT_OUT, Item>(block, first, last);
            default: return replace_words<ANY_SHAPE, Item>(block, first, last);
        }
    }
    // Replaces the exponents in words first .. last - 1 of a block.
    void replace(Four& block, int item, int first, int last) const {
        switch (item) {
            case 1: return replace_items<1>(block, first, last);
            case 2: return replace_items<2>(block, first, last);
            case 4: return replace_items<4>(block, first, last);
            default: return replace_items<8>(block, first, last);
        }
    }

    void put(const Layout& f, U32 top, U32 width, U32 zeros, U32 fractions) {
        const U32 gone = zeros ? U32{} + low : ~U32{};
        aim = f.item <= 2 ? Cluster{twice(top), twice(width), gone, fractions} : Cluster{top, width, gone, fractions};
    }
};

}  // namespace
}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
