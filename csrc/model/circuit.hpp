// The families that aim at one fault of a circuit: a pair of codes, a pair of significands, a carry, in one lane.  The
// rules are told in mmaprobe/generators/families_circuit.py, which this file repeats bit for bit.
#pragma once
#include "families.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {

constexpr u64 ODD = 0x9E3779B97F4A7C15ull;
constexpr i32 COUNTED = 20, GROUP_BITS = 6;

// Fraction fields by kind: random (0 and 7), all ones, a one at a place or a zero, ones above it or below it, 0101...
MMAPROBE_HD u64 circuit_pattern(i32 fraction, u32 kind, i32 place, u64 random) {
    const u64 full = (u64(1) << fraction) - 1, bit = u64(1) << place >> 1, below = (u64(1) << place) - 1;
    switch (kind) {
        case 1: return full;
        case 2: return bit & full;
        case 3: return ~bit & full;
        case 4: return ~below & full;
        case 5: return below & full;
        case 6: return 0x5555555555555555ull << (place & 1) & full;
        default: return random;
    }
}

// What a vector's live lanes hold: all but `dropped` the pair a, b, by turns with b_other (lane < 0), or that in `lane`,
// others in `other` and `third`, and zeros.
struct Circuit {
    u64 a, b, a_other, b_other, a_third, b_third, c;
    i32 live, lane, other, third, dropped;

    // `v`: the vector's words; `shared`: those of its group, which `codes` has no use for.
    MMAPROBE_HD Circuit(const Domain& t, i32 family, const Stream& stream, u64 index, const u32* v, const Block& shared)
        : a(0), b(0), a_other(0), b_other(0), a_third(0), b_third(0), c(0), live(t.space.live), lane(-1), other(-1),
          third(-1), dropped(-1) {
        if (family == CODES)
            codes(t, stream, index);
        else if (family == MULTIPLIER)
            multiplier(t, stream, index, v, shared);
        else if (t.a.is_float)
            carries(t, index, v, shared);
        else
            integer_carries(t, index, v, shared);
    }

    MMAPROBE_HD Codes<u64> of(i32 k) const {
        if (lane >= 0)
            return k == lane    ? Codes<u64>{a, b}
                   : k == other ? Codes<u64>{a_other, b_other}
                   : k == third ? Codes<u64>{a_third, b_third}
                                : Codes<u64>{};
        if (k == dropped) return {};
        const bool unpaired = k == live - 1 && dropped < 0;
        return {a, ((k + (dropped == 0)) & 1) && !unpaired ? b_other : b};
    }

    // Infinities and NaNs among codes of up to 8 bits.
    static MMAPROBE_HD bool special(const Layout& f, u64 code) {
        return f.is_float && (f.nan_rule == NEGATIVE_ZERO ? code == f.sign : (code & (f.sign - 1)) > f.largest);
    }
    static MMAPROBE_HD u64 minus(const Layout& f, u64 code) {
        const bool one_zero = f.nan_rule == NEGATIVE_ZERO && (code & (f.sign - 1)) == 0;
        return f.is_float && !one_zero ? code ^ f.sign : code;
    }

private:
    static MMAPROBE_HD u64 mask(i32 bits) { return (u64(1) << bits) - 1; }

    MMAPROBE_HD void codes(const Domain& t, const Stream& stream, u64 index) {
        const i32 bits = t.a.bits + t.b.bits;
        const u64 n = (index + stream.seed * ODD) & mask(bits), lap = index >> bits;
        a = n & mask(t.a.bits);
        b = ((n >> t.a.bits) + a) & mask(t.b.bits);
        b_other = minus(t.b, b);
        if ((lap & 1) || special(t.a, a) || special(t.b, b)) lane = i32((n + (lap >> 1)) % u64(live));
    }

    MMAPROBE_HD void multiplier(const Domain& t, const Stream& stream, u64 index, const u32* v, const Block& shared) {
        const i32 fa = t.a.fraction, fb = t.b.fraction;
        const u32 style = v[0], mode = u32(index >> GROUP_BITS) & 3;
        const u64 turn = index >> GROUP_BITS >> 2;
        u64 x = circuit_pattern(fa, style & 7, pick16(v[1], fa + 1), random_bits<u64>(fa, v[4], v[5]));
        u64 y = circuit_pattern(fb, style >> 3 & 7, pick16(v[1] >> 16, fb + 1), random_bits<u64>(fb, v[6], v[7]));
        if ((style >> 3 & 7) == 7) y = x >> larger(fa - fb, 0) << larger(fb - fa, 0);
        if (mode == 1 && fa + fb <= COUNTED) {
            const u64 n = (turn << GROUP_BITS | (index & mask(GROUP_BITS))) + stream.seed * ODD;
            x = n & mask(fa);
            y = ((n >> fa) + x) & mask(fb);
        }
        const Pair e = split(t.a, t.b, anchor(t.space, shared.w0, 0), shared.w1);
        a = encode<u64>(t.a, style >> 6 & 1, e.a, x);
        b = encode<u64>(t.b, style >> 7 & 1, e.b, y);
        b_other = minus(t.b, b);
        const bool alone = mode >= 2;
        const bool opposite = t.c.is_float && (mode == 3 || (!alone && t.space.d_fraction < fa + fb + 2));
        if (alone) lane = i32(turn % u64(live));
        if (opposite && !alone && live % 2 == 0) dropped = turn & 1 ? 0 : live - 1;
        if (opposite)
            c = mirrored<u64>(t, a, b, 0, 0);
        else if (t.c.is_float && mode == 2 && (style >> 9 & 1))
            c = encode<u64>(t.c, style >> 8 & 1, t.c.low, 0);
    }

    MMAPROBE_HD void carries(const Domain& t, u64 index, const u32* v, const Block& shared) {
        const Space& s = t.space;
        const i32 places = live + t.c.is_float;
        const u64 group = index >> GROUP_BITS;
        const i32 large = i32(group % u64(places)), further = i32(group / u64(places) % u64(places - 1));
        const i32 small = (large + 1 + further) % places;
        const u32 borrow = v[0] & 1, negative = v[0] >> 1 & 1, filled = v[0] >> 2 & 1;
        i32 free = i32(group / u64(places * (places - 1)) % u64(larger(places - 2, 1)));
        free += free >= smaller(large, small);
        free += free >= larger(large, small);
        const bool far = (v[0] >> 3 & 1) && places > 2;
        const i32 top = anchor(s, shared.w0, 0), m = top - (far ? pick16(v[2], s.d_fraction + 4) : 0);
        const i32 fraction = large < live ? t.a.fraction : t.c.fraction;
        const i32 distance = pick16(v[1] >> 16, s.d_fraction + t.a.fraction + t.b.fraction + 4);
        const u64 full = mask(fraction);
        const u64 ones = mask(pick16(v[1], fraction + 1)) << larger(fraction - distance, 0) & full;
        const u64 run = borrow ? full & ~ones : ones;
        const Pair e = split(t.a, t.b, m, shared.w1), below = split(t.a, t.b, m - distance, shared.w1);
        lane = large;
        other = small;
        a = encode<u64>(t.a, negative, e.a, run & mask(t.a.fraction));
        b = encode<u64>(t.b, 0, e.b, 0);
        a_other = encode<u64>(t.a, negative ^ borrow, below.a, filled ? mask(t.a.fraction) : 0);
        b_other = encode<u64>(t.b, 0, below.b, 0);
        const Pair most = split(t.a, t.b, top, shared.w1);
        a_third = encode<u64>(t.a, v[0] >> 4 & 1, most.a, 0);
        b_third = encode<u64>(t.b, 0, most.b, 0);
        if (far) third = free;
        if (third == live) c = encode<u64>(t.c, v[0] >> 4 & 1, top, 0);
        if (large == live) c = encode<u64>(t.c, negative, m, run);
        if (small == live) c = encode<u64>(t.c, negative ^ borrow, m - distance, filled ? mask(t.c.fraction) : 0);
    }

    static MMAPROBE_HD u64 power(const Layout& f, i32 place, bool negative) {
        return negative ? (u64(1) << f.bits) - (u64(1) << place) : u64(1) << place;
    }

    MMAPROBE_HD void integer_carries(const Domain& t, u64 index, const u32* v, const Block& shared) {
        const u64 group = index >> GROUP_BITS;
        const i32 in_a = t.a.bits - (t.a.sign != 0), in_b = t.b.bits - (t.b.sign != 0);
        const i32 pa = pick16(shared.w0, in_a), pb = pick16(shared.w1, in_b);
        const bool negative = (v[0] >> 1 & 1) && (t.a.sign || t.b.sign);
        const u64 ones = mask(pick16(v[1], t.c.bits - pa - pb + 1)) << (pa + pb);
        const u64 rest = (v[0] >> 2 & 1 ? u64(v[4]) : 0) & ~ones;
        lane = i32(group % u64(live));
        if ((v[0] >> 3 & 1) && live > 1) other = i32((u64(lane) + 1 + group / u64(live) % u64(live - 1)) % u64(live));
        a = power(t.a, pa, negative && t.a.sign);
        b = t.b.bits == 1 && (v[0] >> 4 & 1) ? 0 : power(t.b, pb, negative && !t.a.sign);
        a_other = power(t.a, pick16(v[5], in_a), false);
        b_other = power(t.b, pick16(v[6], in_b), false);
        c = negative ? rest : rest | ones;
    }
};

// A scale of 1.
MMAPROBE_HD u64 unit_scale(const Domain& t) { return encode<u64>(t.scale, 0, 0, 0); }

}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
