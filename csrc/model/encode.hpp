// Encode (docs/datapath.md section 5): exact values to a format, as register values and as bit patterns.
#pragma once
#include "value.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

// Kernels of GPUs have no operand of random bits; what they run is refused before (toolchain/render.py).
#if defined(__CUDACC__) || defined(__HIP__)
constexpr bool DRAWS = false;
#else
constexpr bool DRAWS = true;
#endif

// Which results a flush takes away: judged before rounding, after it with unbounded exponent, or as encoded.
enum class Tiny { NEVER, BEFORE, AFTER, ENCODED };

// An Encode with its columns in local variables, and what follows from them.
struct Encode {
    bool is_float, is_signed, has_infinity;
    Tiny tiny;
    u64 underflow_sign, zero_sign;  // 0 where such zeros are always positive
    int fraction_bits;
    i64 lowest;  // exponent of the lowest bit of a subnormal
    i64 span;    // max_exponent - min_exponent
    i64 min_exponent, bits, first_bits, random_bits;
    u64 table, first_table, largest, limit;
    u64 bottom;  // magnitude of the lowest integer
    i64 beyond[2];

    MMAPROBE_HD explicit Encode(const EncodeRow& e)
        : is_float(e[EncodeRow::kind] == FLOAT), is_signed(e[EncodeRow::is_signed]),
          has_infinity(e[EncodeRow::infinity] != ABSENT), tiny(e[EncodeRow::flush] == KEEP  ? Tiny::NEVER
                                                               : e[EncodeRow::tiny_before]  ? Tiny::BEFORE
                                                               : e[EncodeRow::tiny_encoded] ? Tiny::ENCODED
                                                                                            : Tiny::AFTER),
          underflow_sign(!e[EncodeRow::underflow_positive] && e[EncodeRow::flush] != TO_ZERO &&
                         e[EncodeRow::negative_zero]),
          zero_sign(!e[EncodeRow::zero_positive] && e[EncodeRow::negative_zero]),
          fraction_bits(int(e[EncodeRow::fraction_bits])),
          lowest(e[EncodeRow::min_exponent] - e[EncodeRow::fraction_bits]),
          span(e[EncodeRow::max_exponent] - e[EncodeRow::min_exponent]), min_exponent(e[EncodeRow::min_exponent]),
          bits(e[EncodeRow::bits]), first_bits(e[EncodeRow::first_bits]), random_bits(e[EncodeRow::random_bits]),
          table(u64(e[EncodeRow::table])), first_table(u64(e[EncodeRow::first_table])),
          largest(u64(e[EncodeRow::largest])), limit(u64(1) << (fraction_bits + 1)),
          bottom(is_signed ? largest + 1 : 0), beyond{e[EncodeRow::beyond_positive], e[EncodeRow::beyond_negative]} {}
};

// What an Encode makes of a value above its largest, by sign.
struct Excess {
    u64 magnitude, flags;
    i64 exponent, label;
};

MMAPROBE_HD Excess beyond_result(const Encode& e, bool negative) {
    const u64 sign = negative ? u64(NEGATIVE) : 0;
    if (e.beyond[negative] == INFINITE) return {0, sign | (sign ? MINUS_INFINITE : PLUS_INFINITE), 0, NO_LABEL};
    if (e.beyond[negative] == NOT_A_NUMBER) return {0, NOT_NUMBER, 0, NO_LABEL};
    if (!e.is_float) {  // an infinity: finite integers are limited where they are encoded
        const u64 size = e.beyond[0] == WRAP ? 0 : negative ? e.bottom : e.largest;
        return {size, size ? sign : 0, 0, size ? 0 : NO_LABEL};
    }
    const i64 top = e.span + e.lowest;  // the largest code is (exponent - lowest) << fraction_bits + magnitude
    return {e.largest - (u64(e.span) << e.fraction_bits), sign, top, top + e.fraction_bits};
}

// Step 1: a cut at first_bits below each value's leading bit. A length of -1 marks what the cut made zero.
template <class W, int V>
MMAPROBE_HD void first_cut(const Encode& e, Register<W, V>& r, i64* length_of, int count) {
    MMAPROBE_EACH(i, count) {
        const i64 top = r.exponent[i] + length_of[i] - 1;
        const i64 quantum = larger(top, e.min_exponent) - e.first_bits;
        r.magnitude[i] = round_right(r.magnitude[i], quantum - r.exponent[i], r.flags[i] & NEGATIVE, e.first_table);
        r.exponent[i] = larger(quantum, r.exponent[i]);
        const int now = length(r.magnitude[i]);
        length_of[i] = now || !length_of[i] ? now : -1;
    }
}

// After step 1: the next multiple of each value's last place away from zero, where the random_bits below that place and as
// many random ones carry.
template <class W, int V>
MMAPROBE_HD void lift(const Encode& e, Register<W, V>& r, i64* length_of, const u64* random, int count) {
    constexpr i64 most = Traits<W>::width - 1;
    const i64 seen = e.random_bits;
    MMAPROBE_EACH(i, count) {
        const W x = r.magnitude[i];
        const i64 top = r.exponent[i] + length_of[i] - 1;
        const i64 quantum = e.is_float ? larger(top, e.min_exponent) - e.fraction_bits : 0;
        const i64 shift = quantum - r.exponent[i];
        const u64 below = low(shr(x, smaller(larger(shift - seen, 0), most))) << smaller(larger(seen - shift, 0), 63);
        const bool up = shift > 0 && ((below & low_bits(seen)) + random[i]) >> seen;
        const W next = shr(x, smaller(larger(shift, 0), most)) + make<W>(1);
        r.magnitude[i] = up ? next : x;
        r.exponent[i] = up ? quantum : r.exponent[i];
        length_of[i] = up ? length(next) : length_of[i];
    }
}

template <class W, int V>
MMAPROBE_HD void encode_integers(const Encode& e, Register<W, V>& r, int count) {
    const u64 ones = low_bits(e.bits);
    const u64 table = e.table, largest = e.largest, bottom = e.bottom;
    const u64 wrap = e.beyond[0] == WRAP ? 1 : 0, turn_above = e.is_signed ? largest : ~u64(0);
    MMAPROBE_EACH(i, count) {
        const u64 negative = r.flags[i] & NEGATIVE;
        const i64 exponent = r.exponent[i];
        const W rounded = round_right(r.magnitude[i], -exponent, negative, table);
        const W whole = shl(rounded, larger(smaller(exponent, Traits<W>::width - 1), 0));
        const u64 size = low(whole), code = (negative ? 0 - size : size) & ones;
        const u64 below = code > turn_above ? 1 : 0;
        const u64 most = negative ? bottom : largest;
        const u64 over = (is_zero(shr(whole, 63)) ? 0 : 1) | (size > most ? 1 : 0);
        const u64 limited = over ? most : size;
        const u64 wrapped = below ? ones + 1 - code : code;
        const u64 kept = wrap ? wrapped : limited, sign = wrap ? below : negative;
        r.magnitude[i] = make<W>(kept);
        r.exponent[i] = 0;
        r.label[i] = kept ? 0 : NO_LABEL;
        r.flags[i] = r.flags[i] & ANY_SPECIAL ? r.flags[i] : kept ? sign : 0;
    }
}

template <Tiny TINY, class W, int V>
MMAPROBE_HD void encode_floats(const Encode& e, Register<W, V>& r, const i64* length_of, int count) {
    const Excess above[2] = {beyond_result(e, false), beyond_result(e, true)};
    const int fb = e.fraction_bits;
    const i64 min_exponent = e.min_exponent, lowest = e.lowest, most_field = e.span + 2;
    const u64 table = e.table, limit = e.limit, largest = e.largest;
    const u64 underflow_sign = e.underflow_sign, zero_sign = e.zero_sign;
    MMAPROBE_EACH(i, count) {
        const W x = r.magnitude[i];
        const u64 flags = r.flags[i], negative = flags & NEGATIVE;
        const i64 exponent = r.exponent[i], top = exponent + length_of[i] - 1;
        i64 quantum = larger(top, min_exponent) - fb;
        const i64 up = larger(smaller(exponent - quantum, 63), 0);
        u64 kept = low(round_right(x, quantum - exponent, negative, table)) << up;
        const bool low_top = top < min_exponent;
        if (TINY == Tiny::BEFORE) kept = low_top ? 0 : kept;
        if (TINY == Tiny::ENCODED) kept = (low_top & (kept < limit >> 1)) ? 0 : kept;
        if (TINY == Tiny::AFTER) {
            const u64 rounded = low(round_right(x, top - fb - exponent, negative, table));
            kept = ((top < min_exponent - 1) | (low_top & (rounded < limit))) ? 0 : kept;
        }
        const u64 code = kept ? (u64(smaller(quantum - lowest, most_field)) << fb) + kept : 0;
        const i64 carried = kept == limit ? 1 : 0;
        kept >>= carried;
        quantum += carried;
        const u64 sign_of_zero = length_of[i] ? underflow_sign : zero_sign;
        const u64 sign = kept ? negative : negative & sign_of_zero;
        const bool over = code > largest;
        const u64 beyond_flags = negative ? above[1].flags : above[0].flags;
        const u64 beyond_magnitude = negative ? above[1].magnitude : above[0].magnitude;
        const i64 beyond_exponent = negative ? above[1].exponent : above[0].exponent;
        const i64 beyond_label = negative ? above[1].label : above[0].label;
        const i64 label = kept ? quantum + fb : NO_LABEL;
        r.magnitude[i] = make<W>(over ? beyond_magnitude : kept);
        r.exponent[i] = over ? beyond_exponent : kept ? quantum : lowest;
        r.label[i] = over ? beyond_label : label;
        r.flags[i] = flags & ANY_SPECIAL ? flags : over ? beyond_flags : sign;
    }
}

// Rounds a register in place. Its specials stay, but that an infinity follows the overflow rule in a
// format without one; exact zeros keep their sign where the Encode lets them. random: the bits of each value that the
// Encode takes, where it takes some.
template <class W, int V>
MMAPROBE_CALL void encode_register(const Encode& e, Register<W, V>& r, const u64* random, int count) {
    i64 length_of[V];
    lengths(r.magnitude, length_of, count);
    if (e.first_bits >= 0) first_cut(e, r, length_of, count);
    if (DRAWS && e.random_bits) lift(e, r, length_of, random, count);
    if (!e.is_float)
        encode_integers(e, r, count);
    else if (e.tiny == Tiny::NEVER)
        encode_floats<Tiny::NEVER>(e, r, length_of, count);
    else if (e.tiny == Tiny::BEFORE)
        encode_floats<Tiny::BEFORE>(e, r, length_of, count);
    else if (e.tiny == Tiny::AFTER)
        encode_floats<Tiny::AFTER>(e, r, length_of, count);
    else
        encode_floats<Tiny::ENCODED>(e, r, length_of, count);
    if (e.has_infinity) return;
    MMAPROBE_EACH(i, count) {
        if (!(r.flags[i] & ANY_INFINITE)) continue;
        const Excess b = beyond_result(e, r.flags[i] & NEGATIVE);
        r.magnitude[i] = make<W>(b.magnitude);
        r.exponent[i] = b.exponent;
        r.label[i] = b.label;
        r.flags[i] = b.flags;
    }
}

// The bit pattern of a register value that came out of this Encode; `nan` is the code of a NaN.
MMAPROBE_HD u64 pack(const EncodeRow& e, u64 magnitude, i64 exponent, u64 flags, u64 nan) {
    const i64 padding = e[EncodeRow::padding], bits = e[EncodeRow::bits];
    if (flags & NOT_NUMBER) return nan;
    const u64 negative = flags & NEGATIVE;
    if (e[EncodeRow::kind] == INTEGER) return (negative ? 0 - magnitude : magnitude) & low_bits(bits);
    const u64 sign = negative << (bits - 1 + padding);
    if (flags & ANY_INFINITE) return u64(e[EncodeRow::infinity]) << padding | sign;
    const i64 fraction_bits = e[EncodeRow::fraction_bits];
    const u64 field = u64(exponent - (e[EncodeRow::min_exponent] - fraction_bits));
    return ((field << fraction_bits) + magnitude) << padding | sign;
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
