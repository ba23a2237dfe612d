// A thread's share of a vector of the families that aim lane by lane, and of integers.  The rules are told in
// generators/{families_float,families_other,families_circuit,operands}.py; put together as csrc/cpu/generators/generators_build.cpp does.
//
// Put: see vectors.hpp.
#pragma once
#include "circuit.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {

// A vector with the words that its family aims by, and the thread's part in it.
struct Drawn {
    const Domain& t;
    const Stream& stream;
    u64 index;
    int part, parts;
    u32 v[12];

    MMAPROBE_HD Drawn(const Domain& domain, const Stream& words, u64 vector, int own, int all)
        : Drawn(domain, words, vector, own, all, words.draw(vector, VECTOR, 0), words.draw(vector, VECTOR, 1),
                words.draw(vector, VECTOR, 2)) {}
    MMAPROBE_HD Drawn(const Domain& domain, const Stream& words, u64 vector, int own, int all, const Block& x,
                      const Block& y, const Block& z)
        : t(domain), stream(words), index(vector), part(own), parts(all),
          v{x.w0, x.w1, x.w2, x.w3, y.w0, y.w1, y.w2, y.w3, z.w0, z.w1, z.w2, z.w3} {}
    MMAPROBE_HD Block draw(Purpose purpose, i32 number) const { return stream.draw(index, purpose, u32(number)); }
};

// Codes of the scales of a block, and the exponent of their product.
struct Scales {
    u64 a, b;
    i32 exponent;
};

// A value of b where A is not kept.
template <class Code>
MMAPROBE_HD u64 idle_code(const Drawn& d, i32 k) {
    const Layout& f = d.t.b;
    const Block x = d.draw(IDLE, k);
    if (!f.is_float) return raw_code(f, x.w1, 0);
    const i32 exponent = f.low + pick(x.w0, f.top - f.low + 1);
    return encode<Code>(f, x.w3 & 1, exponent, fraction_of<Code>(f, FULL, x.w1, x.w2));
}

// Puts the lanes of a chunk (without chunks one lane, `chunk` its number): lane(k) gives their codes.
template <class Code, class Lane, class Put>
MMAPROBE_HD void put_chunk(const Drawn& d, i32 chunk, const Lane& lane, Put& put) {
    const i32 size = d.t.space.chunk, kept = size ? size / 2 : 1;
    if (!size) {
        const Codes<Code> codes = lane(chunk);
        if (put.wants_a()) put.a(chunk, codes.a);
        if (put.wants_b()) put.b(chunk, codes.b);
        return;
    }
    const u32 item = metadata_item(size, d.draw(METADATA, chunk).w0);
    if (put.wants_a()) put.metadata(chunk, item);
    u32 idle = (1u << size) - 1;
    MMAPROBE_ROLLED for (i32 i = 0; i < kept; ++i) {
        const Codes<Code> codes = lane(chunk * kept + i);
        const i32 element = metadata_element(size, item, i);
        if (put.wants_a()) put.a(chunk * kept + i, codes.a);
        if (put.wants_b()) put.b(chunk * size + element, codes.b);
        idle &= ~(1u << element);
    }
    if (!put.wants_b()) return;
    MMAPROBE_ROLLED for (; idle; idle &= idle - 1) {
        const i32 k = chunk * size + count_bits(idle & -idle) - 1;
        put.b(k, idle_code<Code>(d, k));
    }
}

// The lanes of a scale block (without scales all lanes) that a thread makes: whole blocks where they can be dealt out
// evenly, else its share of the chunks of each.
struct Deal {
    bool whole;
    i32 first_group, group_step, groups, first_chunk, chunk_step, chunks;
    MMAPROBE_HD explicit Deal(const Drawn& d) : groups(larger(d.t.space.groups, 1)) {
        whole = groups % d.parts == 0;
        first_group = whole ? d.part : 0;
        group_step = whole ? d.parts : 1;
        first_chunk = whole ? 0 : d.part;
        chunk_step = whole ? 1 : d.parts;
        chunks = d.t.space.live / groups / (d.t.space.chunk ? d.t.space.chunk / 2 : 1);
    }
};

template <class Family>
MMAPROBE_HD Scales scales_of(const Drawn& d, const Family& family, i32 g) {
    const Domain& t = d.t;
    i32 most = -(1 << 30);
    u32 any_shared = 0;
    MMAPROBE_ROLLED for (i32 k = g * t.space.group_lanes; k < (g + 1) * t.space.group_lanes; ++k) {
        const Block w = d.draw(LANE, k);
        const Lane lane = family.lane(t, k, w.w0, w.w3);
        most = larger(most, lane.zero ? t.space.product_low : lane.exponent);
        any_shared |= lane.shared;
    }
    const Block w = d.draw(SCALE, g);
    const i32 reach = smaller(t.a.top + t.b.top - t.a.normal - t.b.normal, 3) + 1;
    const u32 pattern = (d.v[11] & 3) == 0 ? FULL : POW2, choice = any_shared ? d.v[7] : w.w0;
    const i32 wanted = clamp(most - (t.a.top + t.b.top) + pick16(choice, reach), 2 * t.scale.normal, 2 * t.scale.top);
    const Pair e = split(t.scale, t.scale, wanted, choice >> 16);
    return {encode<u32>(t.scale, 0, e.a, fraction_of<u32>(t.scale, pattern, w.w1, 0)),
            encode<u32>(t.scale, 0, e.b, fraction_of<u32>(t.scale, pattern, w.w2, 0)), e.a + e.b};
}

// What special values replace: one operand, two (by infinities and NaNs only), or a quarter of all; sometimes a scale.
struct Specials {
    const Drawn& d;
    bool present;
    u32 mode;
    i32 first, second;

    MMAPROBE_HD Specials(const Drawn& drawn, bool special) : d(drawn), present(special), mode(d.v[0] & 3) {
        const i32 slots = 2 * d.t.space.live + d.t.c.is_float;
        first = pick16(d.v[2] >> 16, slots);
        second = mode == 2 ? pick16(d.v[2], slots) : first;
    }
    MMAPROBE_HD u32 kind(u32 word) const { return mode == 2 && (word & 7) > 4 ? word - 3 : word; }
    MMAPROBE_HD bool chosen(i32 slot, u32 word) const {
        return mode == 3 ? (word >> 8 & 3) == 0 : slot == first || slot == second;
    }
    template <class Code>
    MMAPROBE_HD void replace(i32 k, Codes<Code>& codes) const {
        if (!present || (mode != 3 && k != first >> 1 && k != second >> 1)) return;
        const Block w = d.draw(OVERLAY, k);
        if (chosen(2 * k, w.w0)) codes.a = Code(special_code(d.t.a, kind(w.w0), w.w1, w.w1));
        if (chosen(2 * k + 1, w.w2)) codes.b = Code(special_code(d.t.b, kind(w.w2), w.w3, w.w3));
    }
    MMAPROBE_HD u64 c(u64 code) const {
        if (!present || !d.t.c.is_float || !chosen(2 * d.t.space.live, d.v[11])) return code;
        return special_code(d.t.c, kind(d.v[11]), d.v[8], d.v[9]);
    }
    MMAPROBE_HD void replace(i32 g, Scales& scales) const {
        const u32 w = d.v[7];
        if (!present || w >> 16 & 7 || g != pick16(w, d.t.space.groups)) return;
        const u64 code = special_code(d.t.scale, w >> 21, d.v[5], d.v[6]);
        if (w >> 19 & 1) scales.a = code;
        if (w >> 20 & 1) scales.b = code;
    }
};

// Codes of a lane from its aim and its words.
template <class Code>
MMAPROBE_HD Codes<Code> lane_codes(const Drawn& d, const Lane& aim, i32 k, const Block& w, i32 scale_exponent) {
    const u32(&v)[12] = d.v;
    u32 low_a = 0, low_b = 0;
    if (sizeof(Code) > 4) {
        const Block wide = d.draw(WIDE, k);
        low_a = aim.shared ? 0 : wide.w0;
        low_b = aim.shared ? 0 : wide.w1;
    }
    return products<Code>(d.t, aim, scale_exponent, aim.shared ? v[4] : w.w1, aim.shared ? v[5] : w.w2,
                          aim.shared ? v[6] : w.w3, low_a, low_b);
}

template <class Code, class Family, class Put>
MMAPROBE_HD void make_floats(const Drawn& d, const Family& family, bool special, Put& put) {
    const Domain& t = d.t;
    const Addend addend_aim = family.addend(t, d.v);
    const Specials specials(d, special);
    const Deal deal(d);
    Codes<Code> mirrored{};  // of the lane that C mirrors, in the thread that makes it
    i32 mirrored_scale = 0;
    bool puts_c = addend_aim.mirror < 0 && d.part == 0;
    MMAPROBE_ROLLED for (i32 g = deal.first_group; g < deal.groups; g += deal.group_step) {
        Scales scales{};
        if (t.space.groups) {
            scales = scales_of(d, family, g);
            Scales shown = scales;
            specials.replace(g, shown);
            const bool own = deal.whole || g % d.parts == d.part;
            if (own && put.wants_a()) put.scale_a(g, shown.a);
            if (own && put.wants_b()) put.scale_b(g, shown.b);
        }
        const auto lane = [&](i32 k) MMAPROBE_INLINED {
            const Block w = d.draw(LANE, k);
            Lane aim = family.lane(t, k, w.w0, w.w3);
            if (t.space.groups) aim.zero |= u32(aim.exponent - scales.exponent < t.a.low + t.b.low) & d.v[11] >> 2;
            Codes<Code> codes = lane_codes<Code>(d, aim, k, w, scales.exponent);
            if (k == addend_aim.mirror) {
                mirrored = codes;
                mirrored_scale = scales.exponent;
                puts_c = true;
            }
            specials.replace(k, codes);
            return codes;
        };
        MMAPROBE_ROLLED for (i32 i = deal.first_chunk; i < deal.chunks; i += deal.chunk_step)
            put_chunk<Code>(d, g * deal.chunks + i, lane, put);
    }
    if (t.c.present && puts_c)
        put.c(specials.c(addend(t, addend_aim, d.v[8], d.v[9], mirrored.a, mirrored.b, mirrored_scale)));
}

template <class Code, class Put>
MMAPROBE_HD void make_family(const Drawn& d, i32 family, Put& put) {
    switch (family) {
        case CANCEL: return make_floats<Code>(d, Cancel(d.t, d.v), false, put);
        case ULP: return make_floats<Code>(d, Ulp(d.t, d.v), false, put);
        case TIE: return make_floats<Code>(d, Tie(d.t, d.v), false, put);
        case ZLAD: return make_floats<Code>(d, Zlad(d.t, d.v), false, put);
        case TINY: return make_floats<Code>(d, Tiny(d.t, d.v), false, put);
        case SUBNORMALS: return make_floats<Code>(d, Subnormals(d.t, d.v), false, put);
        case EXTREMES: return make_floats<Code>(d, Extremes(d.t, d.v), false, put);
        case CONLY: return make_floats<Code>(d, Conly(d.t, d.v), false, put);
        case ZEROS: return make_floats<Code>(d, Zeros(d.t, d.v), false, put);
        default: return make_floats<Code>(d, Clustered(d.t, d.v), true, put);
    }
}

template <class Put>
MMAPROBE_HD void make_aimed(const Domain& t, i32 family, const Stream& stream, u64 index, int part, int parts,
                            Put& put) {
    const Drawn d(t, stream, index, part, parts);
    if (t.a.fraction > 31 || t.b.fraction > 31) return make_family<u64>(d, family, put);
    make_family<u32>(d, family, put);
}

template <class Put>
MMAPROBE_HD void make_circuit(const Domain& t, i32 family, const Stream& stream, u64 index, int part, int parts,
                              Put& put) {
    const Drawn d(t, stream, index, part, parts);
    const Block shared = family == CODES ? Block{} : stream.draw(index >> GROUP_BITS, SHARED, 0);
    const Circuit<u64> circuit(t, family, stream, index, d.v, CircuitGroup(t, family, index, shared));
    const auto lane = [&](i32 k) MMAPROBE_INLINED { return circuit.of(k); };
    const i32 chunks = t.space.live / (t.space.chunk ? t.space.chunk / 2 : 1);
    MMAPROBE_ROLLED for (i32 i = part; i < chunks; i += parts) put_chunk<u64>(d, i, lane, put);
    MMAPROBE_ROLLED for (i32 g = part; g < t.space.groups; g += parts) {
        if (put.wants_a()) put.scale_a(g, unit_scale(t));
        if (put.wants_b()) put.scale_b(g, unit_scale(t));
    }
    if (t.c.present && !part) put.c(circuit.addend(t));
}

// Boundary values in one of 4 operands, of extremes in all; half of these repeat one pair in all lanes.
template <class Put>
MMAPROBE_HD void make_integers(const Domain& t, i32 family, const Stream& stream, u64 index, int part, int parts,
                               Put& put) {
    const Drawn d(t, stream, index, part, parts);
    const u32 share = family == EXTREMES ? 4 : 1;
    const bool same = share == 4 && (d.v[0] & 1);
    const auto lane = [&](i32 k) MMAPROBE_INLINED {
        const Block w = d.draw(LANE, k);
        const u64 a = (w.w0 >> 8 & 3) < share ? edge_code(t.a, same ? d.v[4] : w.w0) : raw_code(t.a, w.w1, 0);
        const u64 b = (w.w3 >> 8 & 3) < share ? edge_code(t.b, same ? d.v[5] : w.w3) : raw_code(t.b, w.w2, 0);
        return Codes<u64>{a, b};
    };
    const i32 chunks = t.space.live / (t.space.chunk ? t.space.chunk / 2 : 1);
    MMAPROBE_ROLLED for (i32 i = part; i < chunks; i += parts) put_chunk<u64>(d, i, lane, put);
    if (!t.c.present || part) return;
    const u32 word = d.v[10], kind = word & 3;
    put.c(kind == 0   ? edge_code(t.c, word >> 2)
          : kind == 3 ? raw_code(t.c, d.v[8], d.v[9])
                      : near_limit(t.c, word >> 8, d.v[8]));
}

}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
