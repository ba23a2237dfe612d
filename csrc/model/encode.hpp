// Encode (docs/datapath.md section 5): an exact value to a format, as a register value and as a bit pattern.
#pragma once
#include "value.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

// An Encode with its columns in local variables, and what follows from them.
struct Encode {
    bool is_float, is_signed, flush, tiny_before;
    bool underflow_positive, zero_positive;  // the sign that zeros get
    int fraction_bits;
    i64 lowest;  // exponent of the lowest bit of a subnormal
    i64 span;    // max_exponent - min_exponent
    i64 min_exponent, bits, first_bits;
    u64 table, first_table, largest, limit;
    u64 bottom;  // magnitude of the lowest integer
    i64 beyond[2];
    bool has_infinity;

    MMAPROBE_HD explicit Encode(const EncodeRow& e)
        : is_float(e[EncodeRow::kind] == FLOAT), is_signed(e[EncodeRow::is_signed]),
          flush(e[EncodeRow::flush] != KEEP), tiny_before(e[EncodeRow::tiny_before]),
          underflow_positive(e[EncodeRow::underflow_positive] || e[EncodeRow::flush] == TO_ZERO ||
                             !e[EncodeRow::negative_zero]),
          zero_positive(e[EncodeRow::zero_positive] || !e[EncodeRow::negative_zero]),
          fraction_bits(int(e[EncodeRow::fraction_bits])),
          lowest(e[EncodeRow::min_exponent] - e[EncodeRow::fraction_bits]),
          span(e[EncodeRow::max_exponent] - e[EncodeRow::min_exponent]), min_exponent(e[EncodeRow::min_exponent]),
          bits(e[EncodeRow::bits]), first_bits(e[EncodeRow::first_bits]), table(u64(e[EncodeRow::table])),
          first_table(u64(e[EncodeRow::first_table])), largest(u64(e[EncodeRow::largest])),
          limit(u64(1) << (fraction_bits + 1)),
          bottom(!is_signed ? 0 : e[EncodeRow::kind] == INTEGER ? largest + 1 : largest),
          beyond{e[EncodeRow::beyond_positive], e[EncodeRow::beyond_negative]},
          has_infinity(e[EncodeRow::infinity] != ABSENT) {}
};

struct Encoded {
    u64 magnitude;
    i64 exponent, label;
    u64 flags;
};

// The zero that a non-zero value became (sections 5.4 and 5.5).
MMAPROBE_HD Encoded underflow_result(const Encode& e, bool negative) {
    return {0, e.lowest, NO_LABEL, u64(negative && !e.underflow_positive)};
}

// An exact zero, whose sign the node has chosen.
MMAPROBE_HD Encoded zero_result(const Encode& e, bool negative) {
    return {0, e.lowest, NO_LABEL, u64(negative && !e.zero_positive)};
}

MMAPROBE_HD Encoded beyond_result(const Encode& e, bool negative) {
    const u64 sign = negative ? u64(NEGATIVE) : 0;
    switch (e.beyond[negative]) {
        case WRAP: return zero_result(e, false);  // an infinity; finite values never come here
        case INFINITE: return {0, 0, NO_LABEL, sign | (sign ? MINUS_INFINITE : PLUS_INFINITE)};
        case NOT_A_NUMBER: return {0, 0, NO_LABEL, NOT_NUMBER};
        default: break;
    }
    if (!e.is_float) {
        const u64 size = negative ? e.bottom : e.largest;
        return {size, 0, size ? 0 : NO_LABEL, size ? sign : 0};
    }
    const i64 top = e.span + e.lowest;  // the largest code is (exponent - lowest) << fraction_bits + magnitude
    return {e.largest - (u64(e.span) << e.fraction_bits), top, top + e.fraction_bits, sign};
}

MMAPROBE_HD Encoded infinite_result(const Encode& e, bool negative) {
    if (!e.has_infinity) return beyond_result(e, negative);
    return {0, 0, NO_LABEL, negative ? MINUS_INFINITE | NEGATIVE : u64(PLUS_INFINITE)};
}

template <class W>
MMAPROBE_HD Encoded encode_integer(const Encode& e, const W& x, i64 exponent, bool negative) {
    const W whole = exponent < 0 ? round_right(x, -exponent, negative, e.table) : shl(x, int(exponent));
    const u64 ones = low_bits(e.bits);
    u64 size = low(whole);
    if (e.beyond[0] == WRAP) {
        const u64 code = (negative ? 0 - size : size) & ones;
        negative = e.is_signed && code > e.largest;
        size = negative ? ones + 1 - code : code;
    } else if (length(whole) > 62 || size > (negative ? e.bottom : e.largest)) {
        size = negative ? e.bottom : e.largest;
    }
    return {size, 0, size ? 0 : NO_LABEL, u64(negative && size)};
}

template <class W>
MMAPROBE_HD bool is_tiny(const Encode& e, const W& x, i64 exponent, i64 top, bool negative) {
    if (top >= e.min_exponent) return false;
    if (e.tiny_before || top < e.min_exponent - 1) return true;
    const i64 shift = top - e.fraction_bits - exponent;
    return shift <= 0 || low(round_right(x, shift, negative, e.table)) < e.limit;
}

// x * 2^exponent, x not zero, x below 2^(width - 1).
template <class W>
MMAPROBE_HD Encoded encode_value(const Encode& e, W x, i64 exponent, bool negative) {
    i64 top = exponent + length(x) - 1;
    if (e.first_bits >= 0) {
        const i64 quantum = larger(top, e.min_exponent) - e.first_bits;
        if (quantum > exponent) {
            x = round_right(x, quantum - exponent, negative, e.first_table);
            exponent = quantum;
            if (is_zero(x)) return underflow_result(e, negative);
            top = exponent + length(x) - 1;
        }
    }
    if (!e.is_float) return encode_integer(e, x, exponent, negative);
    const i64 quantum = larger(top, e.min_exponent) - e.fraction_bits, shift = quantum - exponent;
    const u64 kept = shift > 0 ? low(round_right(x, shift, negative, e.table)) : low(x) << -shift;
    const bool flushed = e.flush && is_tiny(e, x, exponent, top, negative);
    if (flushed || kept == 0) return underflow_result(e, negative);
    const i64 field = quantum - e.lowest;
    if (field > e.span || (u64(field) << e.fraction_bits) + kept > e.largest) return beyond_result(e, negative);
    const i64 carried = kept == e.limit;
    return {kept >> carried, quantum + carried, quantum + carried + e.fraction_bits, u64(negative)};
}

// The bit pattern of a register value that came out of this Encode; `nan` is the code of a NaN.
MMAPROBE_HD u64 pack(const EncodeRow& e, u64 magnitude, i64 exponent, u64 flags, u64 nan) {
    const i64 padding = e[EncodeRow::padding], bits = e[EncodeRow::bits];
    if (flags & NOT_NUMBER) return nan;
    const u64 negative = flags & NEGATIVE;
    if (e[EncodeRow::kind] == INTEGER) return (negative ? 0 - magnitude : magnitude) & low_bits(bits);
    const u64 sign = negative << (bits - 1 + padding);
    if (e[EncodeRow::kind] == MAGNITUDE) return magnitude | sign;
    if (flags & ANY_INFINITE) return u64(e[EncodeRow::infinity]) << padding | sign;
    const i64 fraction_bits = e[EncodeRow::fraction_bits];
    const u64 field = u64(exponent - (e[EncodeRow::min_exponent] - fraction_bits));
    return ((field << fraction_bits) + magnitude) << padding | sign;
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
