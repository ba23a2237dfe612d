// Families that cut their operands out of a vector's own stream of bytes: uniform bits, and clustered (from version 2 on),
// which replaces the exponents.  The rules are told in generators/families_stream.py.
#pragma once
#include <vector>

#include "cpu/generators/generators.hpp"
#include "cpu/generators/cluster.hpp"
#include "cpu/generators/philox.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {
namespace {

inline bool streamed(const GeneratorCall& call) {
    return call.family == UNIFORM || (call.family == CLUSTERED && call.stream >> 16 >= 2);
}
// The rounds of a family's random words.
int rounds_of(const Stream& stream, bool clustered) {
    return clustered && stream.number >> 16 >= 3 ? FEWER_ROUNDS : ROUNDS;
}

// An operand's share of a vector's byte stream.
struct Span {
    const Layout* format;
    void* out;
    int role, items, offset;  // operand (0 to 4: a, b, c, scale_a, scale_b), and its first byte in the stream
    u32 used;  // bits of a word that items of fewer bits than their container use
    bool unused;
    Replacer replacer;

    Span(const Layout& f, void* to, int operand, int count)
        : format(&f), out(to), role(operand), items(count), offset(0), unused(f.bits < 8 * f.item),
          replacer(f, operand > 2) {
        used = ~u32(0) >> (f.bits < 32 ? 32 - f.bits : 0);
        for (int item = f.item; item < 4; item *= 2) used |= used << 8 * item;
    }
    int bytes() const { return items * format->item; }
    int first_word() const { return offset / 4; }
    int end_word() const { return (offset + bytes() + 3) / 4; }
    void put(U32 top, U32 width, U32 zeros, U32 fractions) { replacer.put(*format, top, width, zeros, fractions); }
};

// What blocks that are of one operand alone hold: items of any size and shape, or known ones.
struct AnyItems {
    static constexpr int ITEM = 0;
    static void replace(const Span& span, Four& words) { span.replacer.replace(words, span.format->item, 0, 4); }
};
template <Shape S, int Item>
struct KnownItems {
    static constexpr int ITEM = Item;
    MMAPROBE_HD static void replace(const Span& span, Four& words) {
        span.replacer.replace_words<S, Item>(words, 0, 4);
    }
};

// One block to draw, and the operand that it is a part of alone.
struct Step {
    int block;
    const Span* whole;
    Opened opened;
};

// The streams of PER vectors at a time, block by block.
class Streams {
    const Domain& t;
    const Keys keys;
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
        const U32 zeros = v[1] & 1 << 18, every = ~U32{};
        const I32 c = m;
        if (s.groups) m -= aim_scales(v, m, width, width_a);
        const Halves e = split_lanes(t.a, t.b, m, v[0]);
        for (Span& span : spans) switch (span.role) {
                case 0: span.put(field(t.a, e.a), width_a + 1, zeros, every); break;
                case 1: span.put(field(t.b, e.b), width - width_a + 1, zeros, every); break;
                case 2: span.put(field(t.c, limit(c, t.c.low, t.c.top)), width + 1, every, every);
            }
    }
    // The same of the scales; the exponent of their products.
    I32 aim_scales(const U32* v, I32 m, U32 width, U32 width_a) {
        const i32 reach = smaller(t.a.top + t.b.top - t.a.normal - t.b.normal, 3) + 1;
        const I32 wanted = limit(m - (t.a.top + t.b.top) + pick_lanes(v[3], reach), 2 * t.scale.normal,
                                 2 * t.scale.top);
        const Halves e = split_lanes(t.scale, t.scale, wanted, v[3] >> 16);
        const U32 vary = -(v[2] >> 18 & 1), fractions = U32((v[2] >> 16 & 3) == 0);
        for (Span& span : spans) {
            if (span.role == 3) span.put(field(t.scale, e.a), (width_a & vary) + 1, U32{}, fractions);
            if (span.role == 4) span.put(field(t.scale, e.b), ((width - width_a) & vary) + 1, U32{}, fractions);
        }
        return wanted;
    }

public:
    std::vector<Span> spans;
    int blocks = 0;

    Streams(const Domain& domain, const Stream& words, bool clustered, void* const* out)
        : t(domain), keys(words, rounds_of(words, clustered)), clusters(clustered) {
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
            out.push_back({block, whole, Opened(keys, VECTOR, u32(block))});
        }
        return out;
    }

    // Of the second operand and its scales, which tiles have by rows.
    void save_aims(Cluster (&aims)[5]) const {
        for (const Span& span : spans)
            if (span.role % 3 == 1) aims[span.role] = span.replacer.aim;
    }
    // The lower half of the vectors aims as the lower half of those did, the upper half as the lower half now.
    void join_aims(const Cluster (&lower)[5]) {
        for (Span& span : spans) {
            if (span.role % 3 != 1) continue;
            Cluster& aim = span.replacer.aim;
            const Cluster& other = lower[span.role];
            aim = {halves_of(other.top, aim.top), halves_of(other.width, aim.width), halves_of(other.gone, aim.gone),
                   halves_of(other.fractions, aim.fractions)};
        }
    }

    // Calls whole(step, words) or parts(step, words) for each of the blocks of PER vectors: one operand's alone, or others.
    template <class Items, class Whole, class Parts>
    void each(const Indices& indices, const std::vector<Step>& steps, const Whole& whole, const Parts& parts) {
        const Opening opening(indices, keys);
        const Step *at = steps.data(), *end = at + steps.size();
        for (; end - at >= SETS; at += SETS) some<Items, SETS>(opening, at, whole, parts);
        if (end - at == 2) return some<Items, 2>(opening, at, whole, parts);
        for (; at != end; ++at) some<Items, 1>(opening, at, whole, parts);
    }

private:
    static constexpr int SETS = WIDTH == 64 ? 3 : 2;  // of blocks at once

    // What a block of several operands, or of a part of one, becomes.
    __attribute__((noinline)) void replace(int block, Four& words) {
        if (block == 0) aim(words);
        for (const Span& span : spans) {
            const int first = larger(span.first_word() - 4 * block, 0), last = smaller(span.end_word() - 4 * block, 4);
            if (first < last && span.format->is_float) span.replacer.replace(words, span.format->item, first, last);
        }
    }

    template <class Items, int Sets, class Whole, class Parts>
    void some(const Opening& opening, const Step* steps, const Whole& whole, const Parts& parts) {
        State states[Sets];
        Four words[Sets];
        for (int i = 0; i < Sets; ++i) states[i] = opening.state(steps[i].opened);
        philox_sets<2>(states, keys, words);
#pragma GCC unroll 4
        for (int i = 0; i < Sets; ++i) {
            if (steps[i].whole) {
                if (clusters) Items::replace(*steps[i].whole, words[i]);
                whole(steps[i], words[i]);
            } else {
                Four copy = words[i];  // so that the others stay in registers
                if (clusters) replace(steps[i].block, copy);
                parts(steps[i], copy);
            }
        }
    }
};

}  // namespace
}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
