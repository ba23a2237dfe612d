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
// `nan` (a code of d) and the flag SIGNALLING are written only for NaNs, and only under the local rule.
template <class W, int V>
struct Register {
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
    Source a, b, c, scale_a, scale_b;
};

template <int V>
struct Decoded {
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

template <class T, int V>
MMAPROBE_HD void decode_float(const OperandRow& o, const T* from, i64 row, int count, Decoded<V>& out) {
    const u64 mask = u64(o[OperandRow::mask]), value = low_bits(o[OperandRow::bits]);
    const int padding = int(o[OperandRow::padding]), fb = int(o[OperandRow::fraction_bits]);
    const int sign = int(o[OperandRow::bits]) - 1;
    const u64 is_signed = u64(o[OperandRow::is_signed]), exponents = low_bits(o[OperandRow::exponent_bits]);
    const u64 magnitude = value >> is_signed, above = u64(o[OperandRow::nan_above]);
    const u64 infinity = u64(o[OperandRow::infinity]), exact = u64(o[OperandRow::nan_exact]);
    const u64 subnormal = u64(o[OperandRow::subnormal]);
    const u64 flush = o[OperandRow::flush] != KEEP, keep_sign = o[OperandRow::flush] != TO_ZERO;
    const i64 offset = o[OperandRow::bias] + fb, lowest = o[OperandRow::min_exponent] - fb;
    for (int i = 0; i < count; ++i) {
        const u64 code = ((u64(from[i * row]) & mask) >> padding) & value, absolute = code & magnitude;
        const u64 field = (code >> fb) & exponents, fraction = code & low_bits(fb);
        const u64 is_low = u64(field == 0) & subnormal, flushed = is_low & flush;
        u64 negative = (code >> sign) & is_signed & ~(flushed & ~keep_sign);
        const bool nan = (absolute > above) | (code == exact), infinite = absolute == infinity;
        const u64 significand = (fraction | ((is_low ^ 1) << fb)) & (flushed - 1);
        out.significand[i] = (nan | infinite) ? 0 : significand;
        out.exponent[i] = is_low ? lowest : i64(field) - offset;
        out.flags[i] = negative | (nan ? u64(NOT_NUMBER) : 0) |
                       (infinite ? (negative ? MINUS_INFINITE : PLUS_INFINITE) : u64(0));
    }
}

template <class T, int V>
MMAPROBE_HD void decode_integer(const OperandRow& o, const T* from, i64 row, int count, Decoded<V>& out) {
    const u64 mask = u64(o[OperandRow::mask]), value = low_bits(o[OperandRow::bits]);
    const int sign = int(o[OperandRow::bits]) - 1;
    const u64 is_signed = u64(o[OperandRow::is_signed]);
    const bool is_magnitude = o[OperandRow::kind] == MAGNITUDE;
    const u64 size = low_bits(o[OperandRow::fraction_bits]);
    for (int i = 0; i < count; ++i) {
        const u64 code = u64(from[i * row]) & mask & value, negative = (code >> sign) & is_signed;
        out.significand[i] = is_magnitude ? code & size : negative ? (value + 1) - code : code;
        out.exponent[i] = 0;
        out.flags[i] = negative;
    }
}

template <class T, int V>
MMAPROBE_HD void decode_as(const OperandRow& o, const Source& s, i64 index, int count, Decoded<V>& out) {
    const T* from = static_cast<const T*>(s.base) + index;
    if (o[OperandRow::kind] == FLOAT)
        decode_float<T, V>(o, from, s.row, count, out);
    else
        decode_integer<T, V>(o, from, s.row, count, out);
}

// Item k of vectors first .. first + count - 1.
template <int V>
MMAPROBE_HD void decode(const OperandRow& o, const Source& s, i64 first, i64 k, int count, Decoded<V>& out) {
    const i64 index = first * s.row + k;
    switch (o[OperandRow::bytes]) {
        case 1: return decode_as<uint8_t, V>(o, s, index, count, out);
        case 2: return decode_as<uint16_t, V>(o, s, index, count, out);
        case 4: return decode_as<uint32_t, V>(o, s, index, count, out);
        default: return decode_as<u64, V>(o, s, index, count, out);
    }
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
