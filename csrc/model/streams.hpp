// A thread's share of a vector whose operands are cut out of its own stream of random words: uniform bits (version 1),
// and clustered (version 3), which replaces the exponents.  The rules are told in generators/families_stream.py.
//
// Put: see vectors.hpp.  What depends on the domain alone is for the compiler to work out: it is a constant there.
#pragma once
#include "families.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {

// The first byte of each operand in a vector's stream, and how many blocks of 16 bytes there are.
struct Offsets {
    i32 a, b, c, scale_a, scale_b, blocks;
};

MMAPROBE_HD constexpr i32 next_multiple(i32 x, i32 of) { return (x + of - 1) / of * of; }
MMAPROBE_HD constexpr i32 grain(const Layout& f) { return f.item > 4 ? f.item : 4; }

// Uniform: a, b, c and the scales one close behind the other.
MMAPROBE_HD constexpr Offsets uniform_offsets(const Domain& t) {
    Offsets o{};
    o.b = t.space.live * t.a.item;
    o.c = o.b + t.space.k * t.b.item;
    o.scale_a = o.c + t.c.present * t.c.item;
    o.scale_b = o.scale_a + t.space.groups * t.scale.item;
    o.blocks = next_multiple(o.scale_b + t.space.groups * t.scale.item, 16) / 16;
    return o;
}

// Clustered: C first, behind the words that aim; every operand begins at a word of its own.
MMAPROBE_HD constexpr Offsets clustered_offsets(const Domain& t) {
    Offsets o{};
    o.c = t.space.groups ? 16 : 12;
    if (t.c.present) o.c = next_multiple(o.c, grain(t.c));
    o.a = next_multiple(o.c + t.c.present * t.c.item, grain(t.a));
    o.b = next_multiple(o.a + t.space.live * t.a.item, grain(t.b));
    i32 end = o.b + t.space.k * t.b.item;
    if (t.space.groups) {
        o.scale_a = next_multiple(end, grain(t.scale));
        o.scale_b = next_multiple(o.scale_a + t.space.groups * t.scale.item, grain(t.scale));
        end = o.scale_b + t.space.groups * t.scale.item;
    }
    o.blocks = next_multiple(end, 16) / 16;
    return o;
}

// Whether no item of the stream lies across two words, which the loops below need.
MMAPROBE_HD constexpr bool whole_items(const Domain& t) {
    const Offsets o = uniform_offsets(t);
    return o.b % t.b.item == 0 && (!t.c.present || o.c % t.c.item == 0) &&
           (!t.space.groups || (o.scale_a % t.scale.item == 0 && o.scale_b % t.scale.item == 0));
}

// Item i of a block.
MMAPROBE_HD u64 item_of(const Block& w, i32 bytes, i32 i) {
    const u32 words[4] = {w.w0, w.w1, w.w2, w.w3};
    if (bytes == 8) return u64(words[2 * i + 1]) << 32 | words[2 * i];
    if (bytes == 4) return words[i];
    return words[i * bytes / 4] >> (i * bytes % 4 * 8) & (bytes == 2 ? 0xFFFF : 0xFF);
}

// Whether block n holds a part of `count` items from byte `first` on.
MMAPROBE_HD bool holds(i32 n, i32 first, i32 bytes, i32 count) {
    return 16 * n + 16 > first && 16 * n < first + bytes * count;
}

// Calls each(k, raw item k) for those of an operand's items that block n holds; the first is at byte `first` of the
// stream.
template <class Each>
MMAPROBE_HD void each_item(const Block& w, i32 n, i32 first, const Layout& f, i32 count, const Each& each) {
    const bool whole = first % 16 == 0 && f.item * count % 16 == 0;
    const i32 k = (16 * n - first) / f.item;
    MMAPROBE_UNROLLED for (i32 i = 0; i < 16 / f.item; ++i) if (whole || u32(k + i) < u32(count))
        each(k + i, item_of(w, f.item, i));
}

// Which of a vector's operands block n holds a part of, the wanted ones.
struct Held {
    bool a, b, c, scale_a, scale_b;
    MMAPROBE_HD Held(const Domain& t, const Offsets& o, i32 n, bool wants_a, bool wants_b)
        : a(wants_a & holds(n, o.a, t.a.item, t.space.live)), b(wants_b & holds(n, o.b, t.b.item, t.space.k)),
          c(holds(n, o.c, t.c.item, t.c.present)), scale_a(wants_a & holds(n, o.scale_a, t.scale.item, t.space.groups)),
          scale_b(wants_b & holds(n, o.scale_b, t.scale.item, t.space.groups)) {}
    MMAPROBE_HD bool any() const { return a | b | c | scale_a | scale_b; }
};

// Puts the items that a block holds, as the rule makes them of raw ones.
template <class Rule, class Put>
MMAPROBE_HD void put_items(const Domain& t, const Offsets& o, i32 n, const Block& w, const Held& held, const Rule& rule,
                           Put& put) {
    const Space& s = t.space;
    if (held.a) each_item(w, n, o.a, t.a, s.live, [&](i32 k, u64 x) { put.a(k, rule.a(x)); });
    if (held.b) each_item(w, n, o.b, t.b, s.k, [&](i32 k, u64 x) { put.b(k, rule.b(x)); });
    if (t.c.present && held.c) each_item(w, n, o.c, t.c, 1, [&](i32, u64 x) { put.c(rule.c(x)); });
    if (!s.groups) return;
    if (held.scale_a)
        each_item(w, n, o.scale_a, t.scale, s.groups, [&](i32 g, u64 x) { put.scale_a(g, rule.scale_a(x)); });
    if (held.scale_b)
        each_item(w, n, o.scale_b, t.scale, s.groups, [&](i32 g, u64 x) { put.scale_b(g, rule.scale_b(x)); });
}

struct Uniform {
    const Domain& t;
    static MMAPROBE_HD u64 cut(const Layout& f, u64 x) { return x & ((u64(2) << (f.bits - 1)) - 1); }
    MMAPROBE_HD u64 a(u64 x) const { return cut(t.a, x); }
    MMAPROBE_HD u64 b(u64 x) const { return cut(t.b, x); }
    MMAPROBE_HD u64 c(u64 x) const { return cut(t.c, x); }
    MMAPROBE_HD u64 scale_a(u64 x) const { return cut(t.scale, x); }
    MMAPROBE_HD u64 scale_b(u64 x) const { return cut(t.scale, x); }
};

// What the items of an operand aim at: the highest exponent field, minus how far below it fields lie; all ones where
// drawn fields make no zeros, and where fractions stay.
struct Cluster {
    i32 top, minus_width;
    u32 no_zeros, fractions;
};

// Where the exponent of a format's codes lies; of 8-byte codes in their upper half.
struct Exponents {
    i32 half, bits, position;
    u32 largest;
    bool cuts;  // whether a code of the highest exponent may be above the largest finite one
    MMAPROBE_HD explicit Exponents(const Layout& f)
        : half(f.item == 8 ? 32 : 0), bits(count_bits(f.largest >> f.fraction)),
          position(f.fraction + f.padding - half), largest(u32(f.largest << f.padding >> half)),
          cuts(((f.largest + 1) & ((u64(1) << f.fraction) - 1)) != 0) {}
    MMAPROBE_HD u32 ones() const { return (1u << bits) - 1; }
    MMAPROBE_HD bool zero(u32 x, const Cluster& aim) const {
        return !((~x & (ones() & 31) << position) | aim.no_zeros);
    }
};

// The bits of y under a mask, those of x elsewhere: one instruction.
#if defined(__CUDA_ARCH__)
MMAPROBE_HD u32 merged(u32 mask, u32 y, u32 x) {
    u32 out;
    asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(out) : "r"(mask), "r"(y), "r"(x));
    return out;
}
#else
MMAPROBE_HD u32 merged(u32 mask, u32 y, u32 x) { return (y & mask) | (x & ~mask); }
#endif

// A raw code with its exponent replaced; of 8-byte codes the upper half.  The new field is computed with `bits` more
// bits below it, all ones before the drop is taken away, so that cutting them rounds the drop down.
MMAPROBE_HD u32 clustered_code(const Layout& f, const Cluster& aim, u32 x) {
    const Exponents e(f);
    const i32 at = e.position + e.bits + larger(e.bits, 6) < 32 ? e.position : 0, up = e.position - at;
    const i32 drawn = i32(x >> up & e.ones() << at), highest = ((aim.top + 1) << (at + e.bits)) - 1;
    const u32 field = u32(larger(highest + drawn * aim.minus_width, 0));
    const u32 placed = up < e.bits ? field >> (e.bits - up) : field << (up - e.bits);
    const u32 field_bits = e.ones() << e.position, sign = u32(f.sign >> e.half);
    const u32 fractions = ((1u << e.position) - 1) & ~((1u << f.padding) - 1) & aim.fractions;
    if (e.cuts || f.nan_rule == NEGATIVE_ZERO) {
        const u32 code = merged(field_bits, placed, x & fractions), most = code < e.largest ? code : e.largest;
        const u32 kept = e.zero(x, aim) ? 0 : most;
        return kept | (f.nan_rule == NEGATIVE_ZERO && !kept ? 0 : x & sign);
    }
    const u32 rest = fractions | sign;
    const bool every_bit = f.item < 8 && (field_bits | rest) == ~u32(0) >> (32 - 8 * (f.item & 7));
    return e.zero(x, aim) ? x & sign : merged(field_bits, placed, every_bit ? x : x & rest);
}

struct Clusters {
    const Domain& t;
    Cluster aim_a, aim_b, aim_c, aim_scale_a, aim_scale_b;

    static MMAPROBE_HD i32 field(const Layout& f, i32 exponent) {
        const i32 lift = f.implicit != 0;
        return larger(exponent - f.normal, -lift) + lift;
    }
    // What a vector aims at, from the words of its first block.
    MMAPROBE_HD Clusters(const Domain& domain, const Block& v) : t(domain) {
        const Space& s = t.space;
        i32 m = s.anchor_top - pick16(v.w0 >> 16, s.anchor_top - s.anchor_low + 1);
        const i32 width = pick16(v.w1, 46) >> (v.w1 >> 16 & 3), width_a = pick16(v.w2, width + 1);
        const u32 no_zeros = (v.w1 >> 18 & 1) - 1;
        aim_c = {field(t.c, clamp(m, t.c.low, t.c.top)), ~width, 0, ~u32(0)};
        if (s.groups) {
            const i32 reach = smaller(t.a.top + t.b.top - t.a.normal - t.b.normal, 3) + 1;
            const i32 aimed = m - (t.a.top + t.b.top) + pick16(v.w3, reach);
            const i32 wanted = clamp(aimed, 2 * t.scale.normal, 2 * t.scale.top);
            const Pair e = split(t.scale, t.scale, wanted, v.w3 >> 16);
            const i32 vary = v.w2 >> 18 & 1;
            const u32 fractions = (v.w2 >> 16 & 3) == 0 ? ~u32(0) : 0;
            aim_scale_a = {field(t.scale, e.a), ~(width_a * vary), ~u32(0), fractions};
            aim_scale_b = {field(t.scale, e.b), ~((width - width_a) * vary), ~u32(0), fractions};
            m -= wanted;
        }
        const Pair e = split(t.a, t.b, m, v.w0);
        aim_a = {field(t.a, e.a), ~width_a, no_zeros, ~u32(0)};
        aim_b = {field(t.b, e.b), ~(width - width_a), no_zeros, ~u32(0)};
    }
    static MMAPROBE_HD u64 code(const Layout& f, const Cluster& aim, u64 x) {
        if (!f.is_float) return Uniform::cut(f, x);
        if (f.item < 8) return clustered_code(f, aim, u32(x));
        const u32 upper = u32(x >> 32);
        return u64(clustered_code(f, aim, upper)) << 32 | (Exponents(f).zero(upper, aim) ? 0 : u32(x));
    }
    MMAPROBE_HD u64 a(u64 x) const { return code(t.a, aim_a, x); }
    MMAPROBE_HD u64 b(u64 x) const { return code(t.b, aim_b, x); }
    MMAPROBE_HD u64 c(u64 x) const { return code(t.c, aim_c, x); }
    MMAPROBE_HD u64 scale_a(u64 x) const { return code(t.scale, aim_scale_a, x); }
    MMAPROBE_HD u64 scale_b(u64 x) const { return code(t.scale, aim_scale_b, x); }
};

// Which elements A keeps.
template <class Put>
MMAPROBE_HD void put_metadata(const Domain& t, const Stream& stream, u64 index, int part, int parts, Put& put) {
    if (!t.space.chunk || !put.wants_a()) return;
    MMAPROBE_ROLLED for (i32 chunk = part; chunk < t.space.k / t.space.chunk; chunk += parts)
        put.metadata(chunk, metadata_item(t.space.chunk, stream.draw(index, METADATA, u32(chunk)).w0));
}

template <class Put>
MMAPROBE_HD void make_uniform(const Domain& t, const Stream& stream, u64 index, int part, int parts, Put& put) {
    const Offsets o = uniform_offsets(t);
    const bool wants_a = put.wants_a(), wants_b = put.wants_b();
    MMAPROBE_ROLLED for (i32 n = part; n < o.blocks; n += parts) {
        const Held held(t, o, n, wants_a, wants_b);
        if (held.any()) put_items(t, o, n, stream.draw(index, VECTOR, u32(n)), held, Uniform{t}, put);
    }
    put_metadata(t, stream, index, part, parts, put);
}

template <class Put>
MMAPROBE_HD void make_clustered(const Domain& t, const Stream& stream, u64 index, int part, int parts, Put& put) {
    const Offsets o = clustered_offsets(t);
    const bool wants_a = put.wants_a(), wants_b = put.wants_b();
    const Block first = stream.draw(index, VECTOR, 0, FEWER_ROUNDS);
    const Clusters rule(t, first);
    if (part == 0) put_items(t, o, 0, first, Held(t, o, 0, wants_a, wants_b), rule, put);
    MMAPROBE_ROLLED for (i32 n = 1 + part; n < o.blocks; n += parts) {
        const Held held(t, o, n, wants_a, wants_b);
        if (held.any()) put_items(t, o, n, stream.draw(index, VECTOR, u32(n), FEWER_ROUNDS), held, rule, put);
    }
    put_metadata(t, stream, index, part, parts, put);
}

}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
