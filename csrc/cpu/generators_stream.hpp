// Families that cut their operands out of a vector's own stream of bytes: uniform bits, and clustered (version 2), which
// replaces the exponents.  The rules are told in generators/families_stream.py.
#pragma once
#include <vector>

#include "generators.hpp"
#include "generators_tile.hpp"
#include "generators_words.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {
namespace {

typedef i32 I32 __attribute__((vector_size(WIDTH)));

template <class V>
MMAPROBE_HD V most(V x, V y) {
    return x > y ? x : y;
}
template <class V>
MMAPROBE_HD V least(V x, V y) {
    return x < y ? x : y;
}
MMAPROBE_HD I32 limit(I32 x, i32 low, i32 high) { return least(most(x, I32{} + low), I32{} + high); }
MMAPROBE_HD I32 pick_lanes(U32 half, U32 count) { return I32((half & 0xFFFF) * count >> 16); }
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

// One operand of PER vectors: the highest exponent field and how far below it fields lie; where zeros may be, and where
// fractions stay (all bits or none).
struct Cluster {
    U32 top, width, zeros, fractions;

    Cluster twice() const {  // for two items of 16 bits a vector
        return {top | top << 16, width | width << 16, zeros, fractions};
    }
};

i32 lift(const Layout& f) { return f.implicit != 0; }
U32 field(const Layout& f, I32 exponent) { return U32(most(exponent - f.normal, I32{} - lift(f)) + lift(f)); }

// What replacing exponents need not mind: padding and a missing negative zero; codes above the largest finite one.
enum Shape { ANY_SHAPE, LARGEST_LEFT_OUT, EVERY_CODE };

// The integers of a format that replacing exponents needs, in lanes of Item; of 8-byte items those of the upper half.
template <class Item>
struct Fields {
    int fraction, exponent_bits, padding;
    Item exponents, fractions, largest, low, sign;
    bool no_negative_zero;
    Shape shape;

    explicit Fields(const Layout& f) {
        const int half = f.item == 8 ? 32 : 0;
        fraction = f.fraction - half;
        padding = f.padding;
        exponent_bits = bit_length(f.largest >> f.fraction);
        exponents = Item((1u << exponent_bits) - 1);
        fractions = Item((1u << fraction) - 1);
        largest = Item(f.largest >> half);
        low = exponents & 31;
        sign = Item(f.sign >> half);
        no_negative_zero = f.nan_rule == NEGATIVE_ZERO;
        const bool whole = (largest & fractions) == fractions;
        shape = padding || no_negative_zero ? ANY_SHAPE : whole ? EVERY_CODE : LARGEST_LEFT_OUT;
    }
};

// x with the exponents of the cluster; `gone` marks the items that became zero.
template <Shape S, class V, class Item>
MMAPROBE_HD V cluster(V x, const Fields<Item>& f, const Cluster& c, V& gone) {
    if (S == ANY_SHAPE) x >>= f.padding;
    const V drawn = (x >> f.fraction) & f.exponents;
    const V drop = drawn * V(c.width) >> f.exponent_bits;
    const V field = (most(V(c.top), drop) - drop) << f.fraction;
    gone = V((drawn & f.low) == f.low) & V(c.zeros);
    V code = field | (x & f.fractions);
    if (S == ANY_SHAPE) code = field | (x & f.fractions & V(c.fractions));
    if (S != EVERY_CODE) code = least(code, V{} + f.largest);
    code &= ~gone;
    if (S != ANY_SHAPE) return code | (x & f.sign);
    V sign = (x << f.padding) & f.sign;
    if (f.no_negative_zero) sign &= V(code != 0);
    return code << f.padding | sign;
}

// An operand's share of a vector's byte stream.
struct Span {
    const Layout* format;
    void* out;
    int role, items, offset;  // operand (0 to 4: a, b, c, scale_a, scale_b), and its first byte in the stream
    u32 used;                 // bits of a word that items of fewer bits than their container use
    bool unused;
    Fields<u32> words;
    Fields<uint16_t> halves;
    Cluster aim;

    Span(const Layout& f, void* to, int operand, int count)
        : format(&f), out(to), role(operand), items(count), offset(0), unused(f.bits < 8 * f.item), words(f), halves(f) {
        used = ~u32(0) >> (f.bits < 32 ? 32 - f.bits : 0);
        for (int item = f.item; item < 4; item *= 2) used |= used << 8 * item;
    }
    int bytes() const { return items * format->item; }
    int first_word() const { return offset / 4; }
    int end_word() const { return (offset + bytes() + 3) / 4; }

    template <Shape S, int Item>
    MMAPROBE_HD void replace_word(U32* w) const {
        U16 lost[2];
        if (Item == 1) {
            const U16 x = U16(*w);
            const U16 low = S == ANY_SHAPE ? x & 0xFF : x;  // the others mask what they take
            *w = U32(cluster<S>(low, halves, aim, lost[0]) | cluster<S>(x >> 8, halves, aim, lost[1]) << 8);
        } else if (Item == 2) {
            *w = U32(cluster<S>(U16(*w), halves, aim, lost[0]));
        } else {  // of 8 bytes: the lower word goes where the upper one does
            U32 gone;
            w[Item / 8] = cluster<S>(w[Item / 8], words, aim, gone);
            if (Item == 8) *w &= ~gone & aim.fractions;
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
    template <int Item>
    MMAPROBE_HD void replace_items(Four& block, int first, int last) const {
        const Shape shape = role < 3 ? words.shape : ANY_SHAPE;  // scales: fractions may be cut
        if (shape == EVERY_CODE) return replace_words<EVERY_CODE, Item>(block, first, last);
        if (shape == LARGEST_LEFT_OUT) return replace_words<LARGEST_LEFT_OUT, Item>(block, first, last);
        replace_words<ANY_SHAPE, Item>(block, first, last);
    }
    // Replaces the exponents in words first .. last - 1 of a block.
    void replace(Four& block, int first, int last) const {
        switch (format->item) {
            case 1: return replace_items<1>(block, first, last);
            case 2: return replace_items<2>(block, first, last);
            case 4: return replace_items<4>(block, first, last);
            default: return replace_items<8>(block, first, last);
        }
    }
};

// Items below `bits` only.
template <class Item>
void cut_unused(void* out, i64 items, int bits) {
    const Item mask = Item(~u64(0) >> (64 - bits));
    for (i64 n = 0; mask != Item(~Item(0)) && n < items; ++n) static_cast<Item*>(out)[n] &= mask;
}

// Size 0: known at run time only.
template <int Size>
void gather_bytes(char* out, const char* bytes, int count, i64 pitch, int size) {
    for (int vector = 0; vector < count; ++vector, bytes += pitch, out += Size ? Size : size)
        memcpy(out, bytes, size_t(Size ? Size : size));
}

// An operand's bytes out of `count` byte streams that lie `pitch` apart.
void cut_bytes(const Span& span, i64 first, int count, const char* bytes, i64 pitch) {
    const int size = span.bytes();
    char* out = static_cast<char*>(span.out) + first * size;
    bytes += span.offset;
    switch (size) {
        case 4: gather_bytes<4>(out, bytes, count, pitch, size); break;
        case 8: gather_bytes<8>(out, bytes, count, pitch, size); break;
        case 16: gather_bytes<16>(out, bytes, count, pitch, size); break;
        case 32: gather_bytes<32>(out, bytes, count, pitch, size); break;
        case 64: gather_bytes<64>(out, bytes, count, pitch, size); break;
        default: gather_bytes<0>(out, bytes, count, pitch, size);
    }
    const i64 items = i64(count) * span.items;
    switch (span.format->item) {
        case 1: return cut_unused<uint8_t>(out, items, span.format->bits);
        case 2: return cut_unused<uint16_t>(out, items, span.format->bits);
        case 4: return cut_unused<uint32_t>(out, items, span.format->bits);
        default: return cut_unused<uint64_t>(out, items, span.format->bits);
    }
}

// Metadata items of vectors start .. start + count - 1, (count, K / chunk) bytes.
void fill_metadata(const Stream& stream, const Space& s, u64 start, i64 count, uint8_t* out) {
    const int chunks = s.k / s.chunk;
    for (i64 first = 0; first < count; first += PER) {
        const Indices indices(start + u64(first));
        for (int chunk = 0; chunk < chunks; ++chunk) {
            Four words[1];
            philox_sets<1>({indices.counters(METADATA, u32(chunk))}, stream, words);
            for (int n = 0; n < PER && first + n < count; ++n)
                out[(first + n) * chunks + chunk] = uint8_t(metadata_item(s.chunk, words[0].w[0][n]));
        }
    }
}

// One block to draw, and the operand that it is a part of alone.
struct Step {
    int block;
    const Span* whole;
};

// The streams of PER vectors at a time, block by block.
class Streams {
    const Target& t;
    const Stream stream;
    const bool clusters;

    // Uniform: a, b, c and the scales one close behind the other.  Clustered: C first, behind the words that aim.
    void place(void* const* out) {
        const i32 counts[5] = {t.space.live, t.space.k, t.c.present, t.space.groups, t.space.groups};
        const Layout* layouts[5] = {&t.a, &t.b, &t.c, &t.scale, &t.scale};
        int length = !clusters ? 0 : t.space.groups ? 16 : 12;
        for (int place = 0; place < 5; ++place) {
            const int i = !clusters || place > 2 ? place : (place + 2) % 3;
            if (!counts[i]) continue;
            spans.emplace_back(*layouts[i], out[i], i, counts[i]);
            const int grain = clusters ? larger(layouts[i]->item, 4) : 1;
            spans.back().offset = length = (length + grain - 1) / grain * grain;
            length += spans.back().bytes();
        }
        blocks = (length + 15) / 16;
    }

    // What clustered vectors aim at, from the four words of their first block.
    void aim(const Four& block) {
        const U32* v = block.w;
        const Space& s = t.space;
        I32 m = s.anchor_top - pick_lanes(v[0] >> 16, s.anchor_top - s.anchor_low + 1);
        const U32 width = U32(pick_lanes(v[1], 46)) >> (v[1] >> 16 & 3), width_a = U32(pick_lanes(v[2], width + 1));
        const U32 zeros = -(v[1] >> 18 & 1), every = U32{} - 1;
        const I32 c = m;
        Cluster scales[2];
        if (s.groups) {
            const i32 reach = smaller(t.a.top + t.b.top - t.a.normal - t.b.normal, 3) + 1;
            const I32 wanted = limit(m - (t.a.top + t.b.top) + pick_lanes(v[3], reach), 2 * t.scale.normal, 2 * t.scale.top);
            const Halves e = split_lanes(t.scale, t.scale, wanted, v[3] >> 16);
            const U32 vary = -(v[2] >> 18 & 1), fractions = U32((v[2] >> 16 & 3) == 0);
            scales[0] = {field(t.scale, e.a), (width_a & vary) + 1, U32{}, fractions};
            scales[1] = {field(t.scale, e.b), ((width - width_a) & vary) + 1, U32{}, fractions};
            m -= wanted;
        }
        const Halves e = split_lanes(t.a, t.b, m, v[0]);
        const auto put = [](Span& span, const Cluster& aim) { span.aim = span.format->item <= 2 ? aim.twice() : aim; };
        for (Span& span : spans) switch (span.role) {
                case 0: put(span, {field(t.a, e.a), width_a + 1, zeros, every}); break;
                case 1: put(span, {field(t.b, e.b), width - width_a + 1, zeros, every}); break;
                case 2: put(span, {field(t.c, limit(c, t.c.low, t.c.top)), width + 1, every, every}); break;
                default: put(span, scales[span.role - 3]);
            }
    }

public:
    std::vector<Span> spans;
    int blocks = 0;

    Streams(const Target& target, const Stream& words, bool clustered, void* const* out)
        : t(target), stream(words), clusters(clustered) {
        place(out);
    }

    // The blocks that hold what `wanted` names; the one that aims is always among them.
    template <class Wanted>
    std::vector<Step> steps(const Wanted& wanted) const {
        std::vector<Step> out;
        for (int block = 0; block < blocks; ++block) {
            if (!(clusters && block == 0) && !wanted(block)) continue;
            const Span* whole = nullptr;
            for (const Span& span : spans)
                if (span.first_word() <= 4 * block && 4 * block + 4 <= span.end_word() && span.bytes() % 4 == 0 &&
                    span.offset % 4 == 0 && !span.unused)
                    whole = &span;
            out.push_back({block, whole});
        }
        return out;
    }

    void save_aims(Cluster (&aims)[5]) const {
        for (const Span& span : spans) aims[span.role] = span.aim;
    }
    // The lower half of the vectors aims as the lower half of those did, the upper half as the lower half now.
    void join_aims(const Cluster (&lower)[5]) {
        for (Span& span : spans) {
            Cluster& aim = span.aim;
            const Cluster& other = lower[span.role];
            aim = {halves_of(other.top, aim.top), halves_of(other.width, aim.width), halves_of(other.zeros, aim.zeros),
                   halves_of(other.fractions, aim.fractions)};
        }
    }

    // Calls use(step, words) for each of the blocks of PER vectors.
    template <class Use>
    void each(const Indices& indices, const std::vector<Step>& steps, const Use& use) {
        const Step *at = steps.data(), *end = at + steps.size();
        for (; end - at >= SETS; at += SETS) some<SETS>(indices, at, use);
        if (end - at == 2) return some<2>(indices, at, use);
        for (; at != end; ++at) some<1>(indices, at, use);
    }

private:
    static constexpr int SETS = WIDTH == 64 ? 3 : 2;  // of blocks at once

    void replace(int block, Four& words) const {
        for (const Span& span : spans) {
            const int first = larger(span.first_word() - 4 * block, 0), last = smaller(span.end_word() - 4 * block, 4);
            if (first < last && span.format->is_float) span.replace(words, first, last);
        }
    }

    template <int Sets, class Use>
    void some(const Indices& indices, const Step* steps, const Use& use) {
        Counters counters[Sets];
        Four words[Sets];
        for (int i = 0; i < Sets; ++i) counters[i] = indices.counters(VECTOR, u32(steps[i].block));
        philox_sets<Sets>(counters, stream, words);
        for (int i = 0; i < Sets; ++i) {
            const Step& step = steps[i];
            if (clusters && step.block == 0) aim(words[i]);
            if (clusters) step.whole ? step.whole->replace(words[i], 0, 4) : replace(step.block, words[i]);
            use(step, words[i]);
        }
    }
};

// Separate vectors, row by row.
struct StreamMaker {
    static constexpr int WANTED_BYTES = 1 << 14;

    const Target& t;
    const Stream stream;
    const GeneratorCall& call;
    Streams streams;

    StreamMaker(const Target& target, const Stream& words, const GeneratorCall& c, bool clusters)
        : t(target), stream(words), call(c), streams(target, words, clusters, c.out) {}

    void run() {
        const i64 pitch = 16 * streams.blocks;
        const int step = larger(1, int(WANTED_BYTES / pitch / PER)) * PER;
        std::vector<char> rows(size_t(step * pitch));
        const std::vector<Step> steps = streams.steps([](int) { return true; });
        for (i64 done = 0; done < call.count; done += step) {
            const int count = int(call.count - done < step ? call.count - done : step);
            for (int n = 0; n < count; n += PER) {
                const Indices indices(call.start + u64(done + n));
                char* to = rows.data() + n * pitch;
                streams.each(indices, steps,
                             [&](const Step& step, Four& words) { store_rows(words, to + 16 * step.block, pitch); });
            }
            for (const Span& span : streams.spans) cut_bytes(span, done, count, rows.data(), pitch);
        }
        if (t.space.chunk && call.out[5]) fill_metadata(stream, t.space, call.start, call.count, static_cast<uint8_t*>(call.out[5]));
    }
};

}  // namespace
}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
