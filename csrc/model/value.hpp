// Registers: V values at a time, structure of arrays; and how operands are decoded into them.
#pragma once
#include "program.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

enum Flag : u64 { NEGATIVE = 1, NOT_NUMBER = 2, PLUS_INFINITE = 4, MINUS_INFINITE = 8, SIGNALLING = 16 };
constexpr u64 ANY_INFINITE = PLUS_INFINITE | MINUS_INFINITE;
constexpr u64 ANY_SPECIAL = ANY_INFINITE | NOT_NUMBER;

// (-1)^negative * magnitude * 2^exponent with a label; magnitude 0 where a special flag is set.
// An infinity also has NEGATIVE by its sign. Zeros without a label of their own have NO_LABEL.
// `nan` (a code of d) and the flag SIGNALLING are written only for NaNs, and only under the local rule; `nan` of the
// accumulator also under the rule by cause.
template <class W, int V>
struct alignas(64) Register {
    W magnitude[V];
    i64 exponent[V];
    i64 label[V];
    u64 flags[V];
    u64 nan[V];
};

// The operands of a run, row-major: item k of vector i at base + (i * row + k) * bytes.
struct Source {
    const void* base;
    i64 row;
};
struct Sources {
    Source a, b, c, scale_a, scale_b, random;
};

template <int V>
struct alignas(64) Decoded {
    u64 significand[V];
    i64 exponent[V];
    u64 flags[V];
};

MMAPROBE_HD u64 raw_code(const OperandRow& o, const Source& s, i64 index) {
    switch (o[OperandRow::bytes]) {
        case 1: return static_cast<const uint8_t*>(s.base)[index];
        case 2: return static_cast<const uint16_t*>(s.base)[index];
        case 4: return static_cast<const uint32_t*>(s.base)[index];
        default: return static_cast<const u64*>(s.base)[index];
    }
}

MMAPROBE_HD u64 low_bits(i64 n) { return n >= 64 ? ~u64(0) : (u64(1) << n) - 1; }

template <class T>
MMAPROBE_HD void gather(const Source& s, i64 index, int count, u64* codes) {
    const T* from = static_cast<const T*>(s.base) + index;
    MMAPROBE_EACH(i, count) codes[i] = from[i * s.row];
}

// Codes of item k of vectors first .. first + count - 1, as the operand's row says, without padding.
MMAPROBE_HD void read_codes(const OperandRow& o, const Source& s, i64 first, i64 k, int count, u64* codes) {
    const i64 index = first * s.row + k;
    switch (o[OperandRow::bytes]) {
        case 1: gather<uint8_t>(s, index, count, codes); break;
        case 2: gather<uint16_t>(s, index, count, codes); break;
        case 4: gather<uint32_t>(s, index, count, codes); break;
        default: gather<u64>(s, index, count, codes); break;
    }
    const u64 mask = u64(o[OperandRow::mask]), flip = u64(o[OperandRow::flip]), value = low_bits(o[OperandRow::bits]);
    const int padding = int(o[OperandRow::padding]);
    MMAPROBE_EACH(i, count) codes[i] = (((codes[i] & mask) ^ flip) >> padding) & value;
}

template <int V>
MMAPROBE_HD void decode_float(const OperandRow& o, const u64* codes, int count, Decoded<V>& out) {
    const int fb = int(o[OperandRow::fraction_bits]), sign = int(o[OperandRow::bits]) - 1;
    const u64 is_signed = u64(o[OperandRow::is_signed]), exponents = low_bits(o[OperandRow::exponent_bits]);
    const u64 magnitude = low_bits(o[OperandRow::bits]) >> is_signed, above = u64(o[OperandRow::nan_above]);
    const u64 infinity = u64(o[OperandRow::infinity]), exact = u64(o[OperandRow::nan_exact]);
    const u64 fractions = low_bits(fb), hidden = u64(1) << fb;
    // codes of absolute value below this are read as subnormals, and below that as zeros
    const u64 low = o[OperandRow::subnormal] ? hidden : 0, dead = o[OperandRow::flush] != KEEP ? low : 0;
    const u64 unsigned_below = o[OperandRow::flush] == TO_ZERO ? low : 0;
    const i64 offset = o[OperandRow::bias] + fb, lowest = o[OperandRow::min_exponent] - fb;
    MMAPROBE_EACH(i, count) {
        const u64 code = codes[i], absolute = code & magnitude;
        const u64 nan = ((absolute > above) | (code == exact)) ? u64(NOT_NUMBER) : 0;
        const u64 negative = absolute < unsigned_below ? 0 : (code >> sign) & is_signed;
        const u64 signed_infinity = negative ? u64(MINUS_INFINITE) : u64(PLUS_INFINITE);
        const u64 special = nan | (absolute == infinity ? signed_infinity : 0);
        const u64 significand = (code & fractions) | (absolute < low ? 0 : hidden);
        out.significand[i] = ((special != 0) | (absolute < dead)) ? 0 : significand;
        out.exponent[i] = absolute < low ? lowest : i64((code >> fb) & exponents) - offset;
        out.flags[i] = negative | special;
    }
}

template <int V>
MMAPROBE_HD void decode_integer(const OperandRow& o, const u64* codes, int count, Decoded<V>& out) {
    const u64 above = low_bits(o[OperandRow::bits]) + 1;
    const int sign = int(o[OperandRow::bits]) - 1;
    const u64 is_signed = u64(o[OperandRow::is_signed]);
    const bool is_magnitude = o[OperandRow::kind] == MAGNITUDE;
    const u64 size = low_bits(o[OperandRow::fraction_bits]);
    MMAPROBE_EACH(i, count) {
        const u64 code = codes[i], negative = (code >> sign) & is_signed;
        const u64 whole = negative ? above - code : code;
        out.significand[i] = is_magnitude ? code & size : whole;
        out.exponent[i] = 0;
        out.flags[i] = negative;
    }
}

// Item k of vectors first .. first + count - 1.
template <int V>
MMAPROBE_HD void decode(const OperandRow& o, const Source& s, i64 first, i64 k, int count, Decoded<V>& out) {
    u64 codes[V];
    read_codes(o, s, first, k, count, codes);
    if (o[OperandRow::kind] == FLOAT)
        decode_float<V>(o, codes, count, out);
    else
        decode_integer<V>(o, codes, count, out);
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
