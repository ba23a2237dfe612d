// From what a family aims at (exponents, signs, patterns) to operand codes.  The rules and their reference:
// mmaprobe/generators/operands.py; every function here repeats the one of the same name bit for bit.
#pragma once
#include "philox.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {

enum Pattern : u32 { POW2, FULL, ONES, LOWBIT, TOP2, UPPER, GRAZE_A, GRAZE_B, GIVEN };  // of a fraction
enum NanRule : i32 { NO_NAN_CODE, IEEE, ALL_ONES, NEGATIVE_ZERO };

// One operand format as integers (generators/domain.py, CodeLayout).
struct Layout {
    i32 present, is_float, bits, item, fraction;
    u64 implicit;
    i32 normal, low, top, padding;
    u64 largest, sign, infinity;
    i32 nan_rule;
};

struct Space {
    i32 k, live, chunk, groups, group_lanes, product_top, product_normal, product_low, anchor_top, anchor_low, c_top,
        d_top, d_normal, d_low, d_fraction;
};

struct Domain {
    Layout a, b, c, d, scale;
    Space space;
};

// Aim of one live lane, and of operand C.
struct Lane {
    i32 exponent;
    u32 negative, zero, pattern_a, pattern_b, shared, forced;
    i32 exponent_a, exponent_b;
};

struct Addend {
    i32 exponent;
    u32 negative, zero, pattern;
    i32 mirror, delta;
};

MMAPROBE_HD i32 larger(i32 x, i32 y) { return x > y ? x : y; }
MMAPROBE_HD i32 smaller(i32 x, i32 y) { return x < y ? x : y; }
MMAPROBE_HD i32 clamp(i32 x, i32 low, i32 high) { return smaller(larger(x, low), high); }

// Codes are computed in u32 where every operand format fits it, in u64 otherwise.
template <class Code>
MMAPROBE_HD Code random_bits(i32 fraction, u32 high, u32 low);
template <>
MMAPROBE_HD u32 random_bits<u32>(i32 fraction, u32 high, u32) {
    return high >> 1 >> (31 - fraction);
}
template <>
MMAPROBE_HD u64 random_bits<u64>(i32 fraction, u32 high, u32 low) {
    return (u64(high) << 32 | low) >> 1 >> (63 - fraction);
}

// x or 0, without a branch.
template <class Code>
MMAPROBE_HD Code when(bool condition, Code x) {
    return (Code(0) - Code(condition)) & x;
}

template <class Code>
MMAPROBE_HD Code fraction_of(const Layout& f, u32 pattern, u32 high, u32 low) {
    const Code full = Code((u64(1) << f.fraction) - 1), lower_half = Code((u64(1) << f.fraction / 2) - 1);
    const Code keep = when(pattern == FULL, full) | when(pattern == TOP2, full & ~(full >> 2)) |
                      when(pattern == UPPER, full & ~lower_half);
    const Code fixed = when(pattern == ONES, full) | when(pattern == LOWBIT, full & 1);
    const Code random = random_bits<Code>(f.fraction, high, low);
    const Code small = random >> (f.fraction - f.fraction / 2);
    return (random & keep) | fixed | when(pattern == GRAZE_A, (full + 1 - 2 * small) & full) |
           when(pattern == GRAZE_B, small);
}

template <class Code>
MMAPROBE_HD Code with_sign(const Layout& f, u32 negative, Code code) {
    const bool minus = negative & u32((f.nan_rule != NEGATIVE_ZERO) | (code != 0));
    return code << f.padding | when(minus, Code(f.sign));
}

// The code of a finite value whose exponent the format has.
template <class Code>
MMAPROBE_HD Code encode_inside(const Layout& f, u32 negative, i32 exponent, Code fraction) {
    const Code field = Code(larger(exponent, f.normal) - f.normal) << f.fraction;
    const Code code = field + ((Code(f.implicit) | fraction) >> larger(f.normal - exponent, 0));
    return with_sign<Code>(f, negative, code < Code(f.largest) ? code : Code(f.largest));
}

// Of the nearest exponent that the format has.
template <class Code>
MMAPROBE_HD Code encode(const Layout& f, u32 negative, i32 exponent, Code fraction) {
    return encode_inside<Code>(f, negative, clamp(exponent, f.low, f.top), fraction);
}

struct Pair {
    i32 a, b;
};

MMAPROBE_HD Pair split(const Layout& a, const Layout& b, i32 exponent, u32 half) {
    const bool deep = exponent < a.normal + b.normal;
    const i32 low_a = deep ? a.low : a.normal, low_b = deep ? b.low : b.normal;
    exponent = clamp(exponent, low_a + low_b, a.top + b.top);
    const i32 low = larger(low_a, exponent - b.top), high = smaller(a.top, exponent - low_b);
    const i32 first = low + pick16(half, high - low + 1);
    return {first, exponent - first};
}

// The exponent of a finite value beside a zero: half of them the largest.
MMAPROBE_HD i32 beside_zero(const Layout& f, u32 far) {
    return far & 1 ? f.top : f.normal + i32((far >> 1) * u32(f.top - f.normal + 1) >> 12);
}

template <class Code>
struct Codes {
    Code a, b;
};

// Codes of a and b of one lane; the words are those of the lane, or of the vector for shared lanes.
template <class Code>
MMAPROBE_HD Codes<Code> products(const Domain& t, const Lane& lane, i32 scale_exponent, u32 sig_a, u32 sig_b, u32 rest,
                                 u32 low_a, u32 low_b) {
    const Pair both = split(t.a, t.b, lane.exponent - scale_exponent, rest);
    const u32 which = rest >> 17 & 3, far = rest >> 19, negative_a = rest >> 16 & 1;
    i32 a = lane.forced ? clamp(lane.exponent_a, t.a.low, t.a.top) : both.a;
    i32 b = lane.forced ? clamp(lane.exponent_b, t.b.low, t.b.top) : both.b;
    a = lane.zero ? beside_zero(t.a, far) : a;
    b = lane.zero ? beside_zero(t.b, far) : b;
    const u32 pattern_a = lane.zero ? u32(FULL) : lane.pattern_a, pattern_b = lane.zero ? u32(FULL) : lane.pattern_b;
    const u32 negative_b = negative_a ^ lane.negative;
    sig_b = lane.pattern_b == GRAZE_B ? sig_a : sig_b;
    low_b = lane.pattern_b == GRAZE_B ? low_a : low_b;
    const Code code_a = encode_inside<Code>(t.a, negative_a, a, fraction_of<Code>(t.a, pattern_a, sig_a, low_a));
    const Code code_b = encode_inside<Code>(t.b, negative_b, b, fraction_of<Code>(t.b, pattern_b, sig_b, low_b));
    const bool zero_a = lane.zero & u32(which != 1), zero_b = lane.zero & u32((which == 1) | (which == 2));
    return {zero_a ? with_sign<Code>(t.a, negative_a, 0) : code_a,
            zero_b ? with_sign<Code>(t.b, negative_b, 0) : code_b};
}

// Integer significand and exponent of the lowest bit of a finite code.
struct Significand {
    u64 value;
    i32 exponent;
};
MMAPROBE_HD Significand significand(const Layout& f, u64 code) {
    code = (code & (f.sign - 1)) >> f.padding;
    const i32 field = i32(code >> f.fraction);
    const u64 hidden = field > 0 ? f.implicit : 0;
    return {(code & ((u64(1) << f.fraction) - 1)) | hidden, larger(field - 1, 0) + f.normal - f.fraction};
}

MMAPROBE_HD u64 raw_code(const Layout& f, u32 high, u32 low) { return (u64(high) << 32 | low) >> (64 - f.bits); }

// A product of significands: its upper 64 bits, the leading one at the top, and its length; 0 where it is zero.
struct Product {
    u64 top;
    i32 length;
};
MMAPROBE_HD Product product_of(const Domain& t, u64 x, u64 y) {
    if (t.a.fraction + t.b.fraction + 2 <= 64) {
        const u64 product = x * y;
        const i32 length = count_bits(product);
        return {length ? product << (64 - length) : 0, length};
    }
    const unsigned __int128 product = (unsigned __int128)x * y;
    const u64 high = u64(product >> 64), low = u64(product);
    const i32 length = high ? 64 + count_bits(high) : count_bits(low);
    return {length ? u64(product << (128 - length) >> 64) : 0, length};
}

// Minus the product of two codes, cut to C's precision and moved by delta units in the last place.
template <class Code>
MMAPROBE_HD Code mirrored(const Domain& t, u64 code_a, u64 code_b, i32 scale_exponent, i32 delta) {
    const Significand x = significand(t.a, code_a), y = significand(t.b, code_b);
    const u32 negative = !(((code_a & t.a.sign) != 0) ^ ((code_b & t.b.sign) != 0));
    const Product product = product_of(t, x.value, y.value);
    if (!product.length) return with_sign<Code>(t.c, negative, 0);
    const Code fraction = Code(product.top << 1 >> 1 >> (63 - t.c.fraction));
    const i32 exponent = product.length - 1 + x.exponent + y.exponent + scale_exponent;
    return encode<Code>(t.c, negative, exponent, fraction) + (Code(i64(delta)) << t.c.padding);
}

template <class Code>
MMAPROBE_HD Code float_addend(const Domain& t, const Addend& aim, u32 high, u32 low, u64 a, u64 b, i32 scale_exponent) {
    if (aim.mirror >= 0) return mirrored<Code>(t, a, b, scale_exponent, aim.delta);
    if (aim.zero) return with_sign<Code>(t.c, aim.negative, 0);
    return encode<Code>(t.c, aim.negative, aim.exponent, fraction_of<Code>(t.c, aim.pattern, high, low));
}

// Code of C; a, b and scale_exponent are those of the lane that it may mirror.
MMAPROBE_HD u64 addend(const Domain& t, const Addend& aim, u32 high, u32 low, u64 a, u64 b, i32 scale_exponent) {
    if (!t.c.is_float) return raw_code(t.c, high, low);
    if (t.c.item > 4) return float_addend<u64>(t, aim, high, low, a, b, scale_exponent);
    const u32 bits = ~u32(0) >> (32 - 8 * t.c.item);  // one below zero has more
    return float_addend<u32>(t, aim, high, low, a, b, scale_exponent) & bits;
}

// Legal metadata: 2 of 4 (the lower two bits name the first kept element, the upper two the second), 1 of 2 for tf32.
MMAPROBE_HD u32 metadata_item(i32 chunk, u32 word) {
    if (chunk == 2) return pick(word, 2) ? 14 : 4;
    return u32(0xEDC984 >> 4 * pick(word, 6)) & 15;
}

// The element of a chunk of b that its live lane number `lane` meets.
MMAPROBE_HD i32 metadata_element(i32 chunk, u32 item, i32 lane) {
    if (chunk == 2) return item == 14;
    const i32 width = chunk / 4;
    return i32(lane < width ? item & 3 : item >> 2) * width + lane % width;
}

// A special value by 5 random bits (families_other.py).
MMAPROBE_HD u64 special_code(const Layout& f, u32 kind, u32 high, u32 low) {
    const u32 which = kind & 7, negative = kind >> 3 & 1;
    const bool brief = kind >> 4 & 1;
    const u64 random = u64(high) << 32 | low, full = (u64(1) << f.fraction) - 1, quiet = (full + 1) >> 1;
    const u64 payload = (brief ? u64(1) << random % u64(larger(f.fraction, 1)) : random >> 1 >> (63 - f.fraction)) &
                        full;
    const u64 signalling = payload & ~quiet ? payload & ~quiet : 1;
    if (f.nan_rule == NEGATIVE_ZERO && which >= 2 && which <= 4) return f.sign;
    const u64 only_nan = f.nan_rule == ALL_ONES ? f.largest + 1 : f.largest;
    u64 code;
    switch (which) {
        case 0:
        case 1: code = f.infinity ? f.infinity : f.largest; break;
        case 2:
        case 3: code = f.nan_rule == IEEE ? f.infinity | quiet | payload : only_nan; break;
        case 4: code = f.nan_rule == IEEE ? f.infinity | signalling : only_nan; break;
        case 5: code = 0; break;
        case 6: code = payload; break;
        default: code = brief ? full + 1 : f.largest;
    }
    return with_sign<u64>(f, negative, code);
}

// A boundary value of an integer format by 3 random bits.
MMAPROBE_HD u64 edge_code(const Layout& f, u32 word) {
    const u64 ones = (u64(1) << f.bits) - 1, low = f.sign, high = ones ^ f.sign;
    switch (word & 7) {
        case 0: return low;
        case 2: return (low + 1) & ones;
        case 3: return f.bits > 1 ? high - 1 : high;
        case 4: return ones;
        case 5: return 0;
        case 6: return 1;
        default: return high;
    }
}

MMAPROBE_HD u64 near_limit(const Layout& f, u32 word, u32 distance) {
    const u64 ones = (u64(1) << f.bits) - 1, away = (distance & ones) >> (word >> 1) % u32(f.bits);
    return (word & 1 ? f.sign + away : (ones ^ f.sign) - away) & ones;
}

}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
