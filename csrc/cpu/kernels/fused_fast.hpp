// Fused sums in floating point: four operations a product and 16 rows.
//
// With S = 2^(F - E) a product's cut is truncate(a_k b_k S): the product is exact in a binary32, so is its scaling,
// and the conversion to an integer cuts towards zero. E comes from exponents in bytes (or 16-bit numbers). The sum and
// C fit 32 bits, or the overflow is seen. What this cannot do it names in a mask of lanes: the exact lanes
// (model/fused_lane.hpp) do those again. Infinities and NaNs are the machine's own, in a chain of their own.
#pragma once
#include <stdlib.h>

#include "cpu/kernels/wide_operands.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace fused {

enum class Result { NONE, F32, E8M13, F16 };
enum class Mode { NARROW, SCALED, WIDE };
constexpr i32 FARTHEST = 159;  // how far below the largest of its row and its column a label may be: 150, as a field

constexpr i32 LOWEST_LABEL = -150;  // wide: products of two factors each bring results down to it

// What the fast way needs of a datapath; fields of exponents are raw: with the biases of both operands.
struct Fast {
    Decoding a, b;
    Result result = Result::NONE;
    bool wide = false, scaled = false, c_half = false, two = false, overflows = false, check_low = false;
    bool negative_underflow = false;
    bool keeps_c = false;  // what cuts C leaves the bits of `keep`: lanes without products give those of C
    int step = 0, k = 0, fraction_bits = 0;
    i32 bias = 0;             // of both operands
    i32 low = 0, limit = 0;   // raw labels: below low no float holds the scales; no label counts below limit
    i32 c_lowest = 0;         // raw label of C's subnormals
    i32 product_field = 0;    // field of S = 2^(F - E) at E = 0; wide: without offsets
    u32 nan = 0, keep = ~u32(0);
    i32 scale_bias = 0;
};

MMAPROBE_HD Result result_of(const Writing& w, const EncodeRow& e) {
    const bool infinity = e[EncodeRow::beyond_positive] == INFINITE;
    if (!infinity) return Result::NONE;
    if (w.table == 0 && w.sign == 31 && w.fraction_bits == 23) return Result::F32;
    if (w.table == 0 && w.sign + w.padding == 31 && w.min_exponent == -126) return Result::E8M13;
    const u32 nearest_even = 0xC8C8;  // half and (odd or rest), of rows.rounding_table
    return HAS_HALVES && w.table == nearest_even && w.sign == 15 && w.fraction_bits == 10 ? Result::F16 : Result::NONE;
}

// result = NONE where the fast way does not hold.
inline Fast plan_fast(const i64* program, const FusedRules& r, int groups) {
    const Header h{program};
    const FusedRow row{program + h[Header::rules]};
    Fast f;
    f.a = Decoding(OperandRow{program + h[Header::a]});
    f.b = Decoding(OperandRow{program + h[Header::b]});
    f.a.normalised = f.b.normalised = r.a.normalised;
    f.step = r.step;
    f.k = r.k;
    f.fraction_bits = r.fraction_bits;
    f.wide = f.a.way == Way::TOP;
    f.scaled = h[Header::scale_where] != UNSCALED;
    f.c_half = r.has_c && r.c.sign == 15;
    f.bias = f.a.bias + f.b.bias + (f.wide ? 2 * NORMAL_LABEL : 0);
    f.nan = r.to.nan;
    f.negative_underflow = r.to.underflow_sign != 0;
    if (r.to.padding) f.keep = ~u32(0) << r.to.padding;
    const Result result = result_of(r.to, EncodeRow{program + row[FusedRow::encode]});
    const bool float_c = !r.has_c || (r.c.sign == 31 && r.c.fraction_bits == 23) ||
                         (r.c.sign == 15 && r.c.fraction_bits == 10);
    const int exact = r.a.fraction_bits + r.b.fraction_bits;
    if (f.a.way == Way::NONE || f.a.way != f.b.way || !float_c || exact > 22 || (f.wide && f.scaled)) return f;
    if (result == Result::F16 && r.has_c && !f.c_half) return f;
    if (groups > 1 || (r.a.normalised && (f.wide || f.scaled))) return f;
    if (f.wide && (((r.k & (r.k - 1)) != 0 && r.k % HALVES) || r.step % 2)) return f;
    // how large a cut product, a sum of them, and C can be
    const u64 product = u64(2 * r.a.hidden - 1) * (2 * r.b.hidden - 1);
    const int up = r.fraction_bits - exact;
    const u64 cut = up >= 0 ? product << up : product >> -up, c = u64(2) << r.fraction_bits, top = u64(1) << 31;
    f.two = cut * u64(r.step) >= top;
    if (f.two && (r.step % 2 || cut * u64(r.step / 2) >= top)) return f;
    f.overflows = f.two || cut * u64(r.step) + c >= top;
    f.low = f.wide ? LOWEST_LABEL + f.bias : i32(larger(r.fraction_bits - 126 + f.bias, r.fraction_bits - 97));
    f.limit = larger(f.low, r.zero_exponent + f.bias);
    f.check_low = r.zero_exponent + f.bias < f.low;
    f.c_lowest = (f.c_half ? -14 : -126) + f.bias;
    f.product_field = f.wide ? 9 + r.fraction_bits : 157 + r.fraction_bits;
    f.keeps_c = result == Result::E8M13 ? f.fraction_bits == 23 - int(r.to.padding)
                                        : f.fraction_bits >= (result == Result::F16 ? 10 : 23);
    const i32 most_field = i32(larger(r.a.magnitude >> r.a.fraction_bits, r.b.magnitude >> r.b.fraction_bits));
    if (!f.wide && !f.scaled && most_field + ZERO >= f.low) return f;
    f.result = result;
    return f;
}

// --- E, and S -----------------------------------------------------------------------------------------------------

// The largest sums of fields of a block, flat [column][row]: a's [k][16], b's [k][BLOCK]; of every EVERYth lane.
template <int STEP, int EVERY = 1>
MMAPROBE_HD void largest_fields(const int8_t* a, const int8_t* b, int step, int8_t* flat) {
    const int count = STEP ? STEP : step;
    Bytes most = add_bytes(of_rows(a), of_columns(b));
#pragma GCC unroll 32
    for (int k = EVERY; k < count; k += EVERY)
        most = larger_bytes(most, add_bytes(of_rows(a + k * ROWS), of_columns(b + k * BLOCK)));
    store(flat, most);
}

// What a register of outputs needs between its alignment and its result. Lanes with a negative trouble are not done
// right (or have a special C, but for an infinite one of 16 bits): an inexact answer that is known to be one.
struct Aligned {
    I32s label, both, fields;  // raw: limited; not limited; of the products alone
    I32s c_field;              // of C, biased
    F32s c, scale, c_scale, back;  // wide: neither of the last two
    I32s trouble;
    Mask none;  // lanes without products, where those keep C
};

// Lanes all of whose products have a zero among their factors: their labels are below every other.
template <Mode MODE>
MMAPROBE_HD Mask without_products(const Fast& f, I32s fields) {
    if (MODE == Mode::WIDE) return where_less(fields, splat_int(LEAST_PRODUCT));
    return where_less(fields, splat_int(MODE == Mode::SCALED ? -(1 << 12) : f.low));
}

template <Mode MODE>
MMAPROBE_HD Aligned align(const Fast& f, I32s fields, F32s c, I32s offset, bool half) {
    Aligned x;
    x.c = c;
    const I32s size = I32s(c) & 0x7FFFFFFF;
    x.c_field = size >> 23;
    I32s c_label = x.c_field + (f.bias - 127);
    if (MODE == Mode::WIDE && !half)
        c_label = choose(where_set(size), larger(x.c_field, splat_int(1)) + (f.bias - 127), splat_int(-(1 << 14)));
    if (half) c_label = choose(where_set(size), larger(c_label, splat_int(f.c_lowest)), splat_int(-(1 << 14)));
    x.fields = fields;
    if (MODE == Mode::SCALED) x.fields = choose(where_less(fields, I32s{}), splat_int(-(1 << 14)), fields + offset);
    x.both = larger(x.fields, c_label);
    x.label = larger(x.both, splat_int(f.limit));
    x.trouble = f.result == Result::F16 ? splat_int(0x7F800000) - size : splat_int(254) - x.c_field;
    x.none = f.keeps_c ? without_products<MODE>(f, x.fields) : Mask{};
    if (f.check_low) x.trouble |= choose(x.none, I32s{}, x.both - f.low);
    if (MODE == Mode::NARROW) {
        if (f.fraction_bits < 1) x.trouble |= splat_int(253) - x.c_field;
        const I32s bits = (f.product_field - x.label) << 23;
        x.scale = F32s(bits);
        x.c_scale = F32s(bits + (f.bias - 30) * (1 << 23));
        x.back = F32s(i32(u32(284 - f.bias) << 23) - bits);
        return x;
    }
    const I32s field = MODE == Mode::WIDE ? offset - x.label : f.product_field - x.label + offset;
    if (MODE == Mode::WIDE) {  // in lanes without trouble the field is that of a float, or below
        const I32s near = choose(x.none, I32s{}, field);
        x.trouble |= (f.fraction_bits + FARTHEST) - near;
        x.scale = power_of_two(larger(near, I32s{}));
        return x;
    }
    x.scale = power_of_two(larger(smaller(field, splat_int(254)), I32s{}));
    x.c_scale = power_of_two(
        larger((128 + f.fraction_bits + f.bias) - x.label, I32s{}));  // twice: 2^-127 is no normal number
    x.back = power_of_two(smaller(x.label + (127 - f.fraction_bits - f.bias), splat_int(255)));
    return x;
}

// The lanes of trouble that the exact way must do: special values of C are not among them.
template <Mode MODE>
MMAPROBE_HD Mask beyond_fast(const Fast& f, const Aligned& x) {
    Mask bad = {};
    if (MODE == Mode::NARROW && f.fraction_bits < 1)  // C of 2^127 is scaled by 2^(F - 127): no normal number
        bad |= where_less(splat_int(253), x.c_field) & where_less(x.c_field, splat_int(255));
    if (f.check_low) {
        Mask counts = where_set(I32s(x.c) & 0x7FFFFFFF);
        if (MODE != Mode::NARROW)
            counts |= where_less(splat_int(MODE == Mode::WIDE ? LEAST_PRODUCT - 1 : -(1 << 12)), x.fields);
        bad |= where_less(x.both, splat_int(f.low)) & counts;
    }
    return bad & ~x.none;
}

// A special C is what finite products make of it; such lanes are not bad.
MMAPROBE_HD F32s with_special_c(const Aligned& x, F32s value, Mask& bad) {
    const Mask special = where_less(splat_int(254), x.c_field);
    bad &= ~special;
    return choose(special, x.c, value);
}

// --- the products --------------------------------------------------------------------------------------------------

// Sums of cut products of a block; a's values [k][16], b's [column][stride]; of every EVERYth lane.
template <int STEP, int EVERY = 1>
MMAPROBE_HD void add_products(const float* a, const float* b, i64 stride, int step, const Aligned* x, I32s* sums) {
    const int count = STEP ? STEP : step;
    I32s s[4] = {};
#pragma GCC unroll 4
    for (int k = 0; k < count; k += EVERY) {
#pragma GCC unroll 4
        for (int q = 0; q < BLOCK; ++q) {
            const F32s column = splat_float(b[q * stride + k]);
#pragma GCC unroll 4
            for (int part = 0; part < PARTS; ++part) {
                const F32s row = load<F32s>(a + k * ROWS + part * LANES);
                s[q * PARTS + part] += truncate(row * column * x[q * PARTS + part].scale);
            }
        }
    }
    for (int i = 0; i < 4; ++i) sums[i] = s[i];
}

// --- the result ----------------------------------------------------------------------------------------------------

// The code of a result that is subnormal, without sign: what is left of the sum at 2^-149.
MMAPROBE_HD I32s subnormal_code(const Fast& f, const Aligned& x, [[maybe_unused]] I32s total, F32s value, Mask& small) {
    const I32s least = ((f.fraction_bits + f.bias + 1) - x.label) << 23, size = I32s(value) & 0x7FFFFFFF;
    small = where_less(size, least);  // none where 2^(label - F) is an integer: least is negative, or zero
#if defined(__AVX512F__)
    // at 2^-149 the sum with 2^-126 ends: its fraction
    const __m512 cut = _mm512_add_round_ps(__m512(size), __m512(least), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    return (I32s(cut) - least) & i32(f.keep);
#else
    const I32s sign = total >> 31, whole = (total ^ sign) - sign, right = (f.fraction_bits + f.bias - 149) - x.label;
    const I32s shifted = I32s(shift_right<U32s>(U32s(whole), U32s(larger(right, I32s{}))));
    const I32s left = larger(smaller(-right, splat_int(23)), I32s{});
    return choose(where_less(splat_int(-1), right), shifted, whole << left) & i32(f.keep);
#endif
}

// Results below the normal numbers; `scaled` holds the others.
MMAPROBE_HD F32s with_subnormals(const Fast& f, const Aligned& x, I32s total, F32s value, F32s scaled) {
    Mask small;
    const I32s code = subnormal_code(f, x, total, value, small);
    I32s minus = I32s(value) & i32(0x80000000);
    if (!f.negative_underflow) minus = choose(where_set(code), minus, I32s{});
    return choose(small, F32s(code | minus), scaled);
}

// The value of sum + c, cut at label - F, with the precision of the result (of a step towards it: 16 bits come last).
template <Mode MODE>
MMAPROBE_HD F32s finish(const Fast& f, const Aligned& x, I32s sum, I32s& trouble) {
    const I32s up = (f.fraction_bits + f.bias) - x.label;
    F32s c_scaled = MODE == Mode::WIDE ? times_power_of_any(x.c, up) : x.c * x.c_scale;
    if (MODE == Mode::SCALED) c_scaled *= 0.5f;
    const I32s c = truncate(c_scaled), total = sum + c;
    if (f.overflows) trouble |= overflown(sum, c, total);
    F32s value = to_float_towards_zero(total);
    if (f.result == Result::F16) {  // odd where bits fell out, so that the next rounding sees them
        const Mask inexact = where_set(truncate(value) ^ total);
        value = choose(inexact, F32s(I32s(value) | 1), value);
    }
    F32s scaled = MODE == Mode::WIDE ? times_power(value, -up) : value * x.back;
    if (MODE == Mode::SCALED) scaled = choose(where_set(total), scaled, F32s{});  // not 0 times infinity
    if (MODE == Mode::WIDE && (SCALES || any_negative(x.label - (f.fraction_bits - 126 + f.bias))))
        scaled = with_subnormals(f, x, total, value, scaled);
    if (f.result == Result::F16) scaled = choose(where_less(splat_int(254), x.c_field), x.c, scaled);  // infinite
    if (f.result == Result::E8M13) scaled = F32s(I32s(scaled) & i32(f.keep));
    if (!f.keeps_c) return scaled;
    const I32s kept = I32s(x.c) & i32(f.keep);
    return choose(x.none, F32s(choose(where_set(kept & 0x7FFFFFFF), kept, I32s{})), scaled);
}

// Infinities and NaNs of a step for one register of outputs; the lanes that have them are not bad in it.
MMAPROBE_HD F32s with_specials(F32s value, F32s c, const float* a, const float* b, int step, bool columns_of_b,
                               Mask& bad) {
    F32s sum = {};
    for (int i = 0; i < step; ++i) {
        const F32s y = columns_of_b ? splat_float(b[i]) : load<F32s>(b + i * ROWS);
        sum = multiply_add(load<F32s>(a + i * ROWS), y, sum);
    }
    const I32s top = splat_int(0x7F7FFFFF);
    const Mask special = where_less(top, I32s(sum) & 0x7FFFFFFF) | where_less(top, I32s(c) & 0x7FFFFFFF);
    bad &= ~special;
    return choose(special, sum + c, value);
}

}  // namespace fused
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
