// The families that aim at one fault of a circuit: a pair of codes, a pair of significands, a carry, in one lane.  The
// rules are told in mmaprobe/generators/families_circuit.py, which this file repeats bit for bit.
#pragma once
#include "families.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {

constexpr u64 ODD = 0x9E3779B97F4A7C15ull;
constexpr i32 COUNTED = 20, GROUP_BITS = 6;

// x or 0 by a bit, which GCC makes registers of in lanes of 64 bits, too.
template <class Code>
MMAPROBE_HD Code with_bit(u32 bit, Code x) {
    return (Code(0) - Code(bit)) & x;
}

// Fraction fields by kind: random (0 and 7), all ones, a one at a place or a zero, ones above it or below it, 0101...
// (The lowest bit of `full << place` is the place's: in 64 bits GCC makes registers of no loop that shifts a constant.)
template <class Code>
MMAPROBE_HD Code circuit_pattern(i32 fraction, u32 kind, i32 place, Code random) {
    const Code full = (Code(1) << fraction) - 1, moved = full << place, end = moved & (Code(0) - moved);
    const Code zebra = Code(0x5555555555555555ull) ^ with_bit(place & 1, ~Code(0));
    const Code one = when(kind >> 1 == 1, end >> 1) | when(kind >> 1 == 2, end - 1) | when(kind == 6, zebra);
    const Code turned = when(kind == 1, ~Code(0)) | when(kind == 3, ~Code(0)) | when(kind == 4, ~Code(0));
    return ((one ^ turned) & full) | when(kind == 0, random) | when(kind == 7, random);
}

// What the vectors of a group have in common: random words, and whose turn it is.
struct CircuitGroup {
    Block words;
    u64 number;
    i32 lane, dropped;  // of `multiplier`: the lane that is alone, and that which is left out; -1: none
    bool mirrors;  // whether C mirrors a product
    i32 large, small, free;  // of `carries`: places, which are the live lanes, then C

    // `shared`: the group's words, which `codes` has no use for.
    MMAPROBE_HD CircuitGroup(const Domain& t, i32 family, u64 index, const Block& shared)
        : words(shared), number(index >> GROUP_BITS), lane(-1), dropped(-1), mirrors(false), large(0), small(0),
          free(0) {
        if (family == MULTIPLIER) multiplier(t);
        if (family == CARRIES && t.a.is_float) carries(u64(t.space.live) + (t.c.is_float ? 1 : 0));
    }

private:
    MMAPROBE_HD void multiplier(const Domain& t) {
        const u32 mode = u32(number) & 3;
        const u64 turn = number >> 2;
        const bool alone = mode >= 2;
        mirrors = t.c.is_float && (mode == 3 || (!alone && t.space.d_fraction < t.a.fraction + t.b.fraction + 2));
        if (alone) lane = i32(turn % u64(t.space.live));
        if (mirrors && !alone && t.space.live % 2 == 0) dropped = turn & 1 ? 0 : t.space.live - 1;
    }
    MMAPROBE_HD void carries(u64 places) {
        large = i32(number % places);
        small = i32((u64(large) + 1 + number / places % (places - 1)) % places);
        free = i32(number / (places * (places - 1)) % (places > 3 ? places - 2 : 1));
        free += free >= smaller(large, small);
        free += free >= larger(large, small);
    }
};

// What a vector's live lanes hold: all but `dropped` the pair a, b, by turns with b_other (lane < 0), or that in `lane`,
// others in `other` and `third`, and zeros.
template <class Code>
struct CircuitLanes {
    Code a, b, a_other, b_other, a_third, b_third;
    i32 live, lane, other, third, dropped;

    MMAPROBE_HD Codes<Code> of(i32 k) const {
        const u32 all = lane < 0, one = lane >= 0, kept = k != dropped, here = k == lane;
        const u32 first = (all & kept) | (one & here), second = one & u32(k == other), last = one & u32(k == third);
        const u32 turn = (u32(k) ^ u32(dropped == 0)) & (u32(k != live - 1) | u32(dropped >= 0)) & all;
        const auto where = [](u32 condition, Code x) MMAPROBE_INLINED { return (Code(0) - Code(condition)) & x; };
        return {where(first, a) | where(second, a_other) | where(last, a_third),
                where(first & ~turn, b) | where(first & turn, b_other) | where(second, b_other) | where(last, b_third)};
    }
};

// Code: of 64 bits, or of as many as the formats of floats need.
template <class Code>
struct Circuit : CircuitLanes<Code> {
    using Lanes = CircuitLanes<Code>;
    using Lanes::a, Lanes::b, Lanes::a_other, Lanes::b_other, Lanes::a_third, Lanes::b_third;
    using Lanes::live, Lanes::lane, Lanes::other, Lanes::third, Lanes::dropped;
    Code c;  // where it does not mirror
    bool mirrors;  // the pair's product

    // `v`: the vector's words.
    MMAPROBE_HD Circuit(const Domain& t, i32 family, const Stream& stream, u64 index, const u32* v,
                        const CircuitGroup& group)
        : Lanes{0, 0, 0, 0, 0, 0, t.space.live, -1, -1, -1, -1}, c(0), mirrors(false) {
        if (family == CODES)
            codes(t, stream, index);
        else if (family == MULTIPLIER)
            multiplier(t, stream, index, v, group);
        else if (t.a.is_float)
            carries(t, v, group);
        else
            integer_carries(t, v, group);
    }

    MMAPROBE_HD u64 addend(const Domain& t) const { return mirrors ? mirrored<u64>(t, a, b, 0, 0) : c; }

    // Infinities and NaNs among codes of up to 8 bits.
    static MMAPROBE_HD bool special(const Layout& f, u64 code) {
        return f.is_float && (f.nan_rule == NEGATIVE_ZERO ? code == f.sign : (code & (f.sign - 1)) > f.largest);
    }
    static MMAPROBE_HD Code minus(const Layout& f, Code code) {
        const bool one_zero = (f.nan_rule == NEGATIVE_ZERO) & ((code & (Code(f.sign) - 1)) == 0);
        return code ^ when(f.is_float & !one_zero, Code(f.sign));
    }

private:
    static MMAPROBE_HD Code mask(i32 bits) { return (Code(1) << bits) - 1; }

    MMAPROBE_HD void codes(const Domain& t, const Stream& stream, u64 index) {
        const i32 bits = t.a.bits + t.b.bits;
        const u64 n = (index + stream.seed * ODD) & ((u64(1) << bits) - 1), lap = index >> bits;
        a = Code(n) & mask(t.a.bits);
        b = (Code(n >> t.a.bits) + a) & mask(t.b.bits);
        b_other = minus(t.b, b);
        if ((lap & 1) || special(t.a, a) || special(t.b, b)) lane = i32((n + (lap >> 1)) % u64(live));
    }

    MMAPROBE_HD void multiplier(const Domain& t, const Stream& stream, u64 index, const u32* v,
                                const CircuitGroup& group) {
        const i32 fa = t.a.fraction, fb = t.b.fraction;
        const u32 style = v[0], mode = u32(group.number) & 3;
        const u64 turn = group.number >> 2;
        Code x = circuit_pattern<Code>(fa, style & 7, pick16(v[1], fa + 1), random_bits<Code>(fa, v[4], v[5]));
        Code y = circuit_pattern<Code>(fb, style >> 3 & 7, pick16(v[1] >> 16, fb + 1),
                                       random_bits<Code>(fb, v[6], v[7]));
        if ((style >> 3 & 7) == 7) y = x >> larger(fa - fb, 0) << larger(fb - fa, 0);
        const bool counted = mode == 1 && fa + fb <= COUNTED;
        const Code n = Code(turn << GROUP_BITS | (index & ((1u << GROUP_BITS) - 1))) + Code(stream.seed * ODD);
        x = when(!counted, x) | when(counted, n & mask(fa));
        y = when(!counted, y) | when(counted, ((n >> fa) + x) & mask(fb));
        const Pair e = split(t.a, t.b, anchor(t.space, group.words.w0, 0), group.words.w1);
        a = encode<Code>(t.a, style >> 6 & 1, e.a, x);
        b = encode<Code>(t.b, style >> 7 & 1, e.b, y);
        b_other = minus(t.b, b);
        lane = group.lane;
        dropped = group.dropped;
        mirrors = group.mirrors;
        const u32 tiny = u32(t.c.is_float) & u32(mode == 2);
        c = with_bit(style >> 9 & tiny, encode<Code>(t.c, style >> 8 & 1, t.c.low, 0));
    }

    MMAPROBE_HD void carries(const Domain& t, const u32* v, const CircuitGroup& group) {
        const Space& s = t.space;
        const Block& shared = group.words;
        const i32 places = live + t.c.is_float, large = group.large, small = group.small;
        const u32 borrow = v[0] & 1, negative = v[0] >> 1 & 1, filled = v[0] >> 2 & 1;
        const bool far = (v[0] >> 3 & 1) && places > 2;
        const i32 top = anchor(s, shared.w0, 0), m = top - (far ? pick16(v[2], s.d_fraction + 4) : 0);
        const i32 fraction = large < live ? t.a.fraction : t.c.fraction;
        const i32 distance = pick16(v[1] >> 16, s.d_fraction + t.a.fraction + t.b.fraction + 4);
        const Code full = mask(fraction);
        const Code ones = full >> (fraction - pick16(v[1], fraction + 1)) << larger(fraction - distance, 0) & full;
        const Code run = borrow ? full & ~ones : ones;
        const Pair e = split(t.a, t.b, m, shared.w1), below = split(t.a, t.b, m - distance, shared.w1);
        lane = large;
        other = small;
        a = encode<Code>(t.a, negative, e.a, run & mask(t.a.fraction));
        b = encode<Code>(t.b, 0, e.b, 0);
        a_other = encode<Code>(t.a, negative ^ borrow, below.a, with_bit(filled, mask(t.a.fraction)));
        b_other = encode<Code>(t.b, 0, below.b, 0);
        const Pair most = split(t.a, t.b, top, shared.w1);
        a_third = encode<Code>(t.a, v[0] >> 4 & 1, most.a, 0);
        b_third = encode<Code>(t.b, 0, most.b, 0);
        if (far) third = group.free;
        c = when(third == live, encode<Code>(t.c, v[0] >> 4 & 1, top, 0)) |
            when(large == live, encode<Code>(t.c, negative, m, run)) |
            when(small == live,
                 encode<Code>(t.c, negative ^ borrow, m - distance, with_bit(filled, mask(t.c.fraction))));
    }

    static MMAPROBE_HD u64 power(const Layout& f, i32 place, bool negative) {
        return negative ? (u64(1) << f.bits) - (u64(1) << place) : u64(1) << place;
    }

    MMAPROBE_HD void integer_carries(const Domain& t, const u32* v, const CircuitGroup& group) {
        const u64 number = group.number;
        const i32 in_a = t.a.bits - (t.a.sign != 0), in_b = t.b.bits - (t.b.sign != 0);
        const i32 pa = pick16(group.words.w0, in_a), pb = pick16(group.words.w1, in_b);
        const bool negative = (v[0] >> 1 & 1) && (t.a.sign || t.b.sign);
        const u64 ones = u64(mask(pick16(v[1], t.c.bits - pa - pb + 1))) << (pa + pb);
        const u64 rest = (v[0] >> 2 & 1 ? u64(v[4]) : 0) & ~ones;
        lane = i32(number % u64(live));
        if ((v[0] >> 3 & 1) && live > 1) other = i32((u64(lane) + 1 + number / u64(live) % u64(live - 1)) % u64(live));
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
