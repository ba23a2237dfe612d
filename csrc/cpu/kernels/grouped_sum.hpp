// The sum of scaled group sums and C: labels and scales as floats, alignment in binary32, the sum in 64 bits.
//
// A scaled group sum has at most 20 significant bits, C 24: in units of 2^(E - F) both are floats, before and after they
// are cut. Their sum, below 2^53, is exact in 64-bit integers or binary64.
#pragma once
#include "cpu/kernels/floats.hpp"
#include "cpu/kernels/widths.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace grouped {

constexpr u32 MINUS_INFINITY = 0xFF800000;

MMAPROBE_HD F32s all(float x) { return broadcast(F32s{}, x); }

#if defined(__AVX512DQ__)
typedef I64s Wide;  // half a register of numbers as 64-bit integers

MMAPROBE_HD F32s to_floats(U32s x) { return F32s(_mm512_cvtepi32_ps(__m512i(x))); }

MMAPROBE_HD F32s unless_zero(F32s x, F32s y) {  // y, or minus infinity
    const __mmask16 zero = _mm512_cmp_ps_mask(__m512(x), _mm512_setzero_ps(), _CMP_EQ_OQ);
    return F32s(_mm512_mask_mov_ps(__m512(y), zero, _mm512_set1_ps(-INFINITY)));
}
// Raises `label` to another where x and y have a bit in common; the other may become minus infinity elsewhere.
MMAPROBE_HD void raise_label(F32s& label, F32s& other, U32s x, U32s y) {
    const __mmask16 both = _mm512_test_epi32_mask(__m512i(x), __m512i(y));
    label = F32s(_mm512_mask_max_ps(__m512(label), both, __m512(label), __m512(other)));
}
// A scaling of, or to, a subnormal number or a zero takes seventy times as long as another: there is none.

// The larger of `lowest` and the exponent of c; anything where c is infinite or a NaN.
MMAPROBE_HD F32s label_of(F32s c, float lowest) {
    const __mmask16 some = _mm512_cmp_ps_mask(__m512(c), _mm512_setzero_ps(), _CMP_NEQ_UQ);
    return F32s(_mm512_mask_max_ps(_mm512_set1_ps(lowest), some, _mm512_getexp_ps(__m512(c)), _mm512_set1_ps(-126)));
}
// x 2^(n - POWER_BIAS) of what is an integer of at most 24 bits: so far below 1 it is cut to zero anyway.
constexpr int POWER_BIAS = 0;
constexpr float LOWEST = -60;
MMAPROBE_HD F32s times_power(F32s x, F32s n) {
    return F32s(_mm512_scalef_ps(__m512(x), _mm512_max_ps(__m512(n), _mm512_set1_ps(LOWEST))));
}
MMAPROBE_HD Wide truncated_half(F32s x, int part) {
    return Wide(_mm512_cvttps_epi64(_mm256_castsi256_ps(__m256i(half(U32s(x), part)))));
}
MMAPROBE_HD void add_truncated(Wide* sum, F32s x) {
    for (int part = 0; part < 2; ++part) sum[part] += truncated_half(x, part);
}
MMAPROBE_HD void truncate_c(Wide* sum, F32s c, F32s n) {  // c 2^n; the exponent of a zero is minus infinity
    const F32s digits = F32s(_mm512_getmant_ps(__m512(c), _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src));
    const F32s scaled_c = times_power(digits, n + F32s(_mm512_getexp_ps(__m512(c))));
    for (int part = 0; part < 2; ++part) sum[part] = truncated_half(scaled_c, part);
}
MMAPROBE_HD bool any_special(F32s c) { return _mm512_fpclass_ps_mask(__m512(c), 0x99) != 0; }

// The same where some are below 2^-126: in units of 2^-149 those below 2^23 are their own codes.
MMAPROBE_HD __m512 with_subnormals(__m512 x, __m512 n, __mmask16 small, bool positive_underflow) {
    constexpr int CUT = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
    const __m512 up = _mm512_max_ps(_mm512_add_ps(n, _mm512_set1_ps(149)), _mm512_set1_ps(LOWEST));
    const __m512i units = _mm512_cvttps_epi32(_mm512_maskz_scalef_ps(small, _mm512_abs_ps(x), up));
    const __mmask16 keeps = positive_underflow ? _mm512_test_epi32_mask(units, units) : __mmask16(-1);
    const __m512i signs = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(int(0x80000000)));
    const __m512 codes = _mm512_castsi512_ps(_mm512_mask_or_epi32(units, keeps, units, signs));
    return _mm512_mask_scalef_round_ps(codes, __mmask16(~small), x, n, CUT);
}

// Codes of sum 2^n cut to binary32; from 2^128 on infinity, below 2^-149 a zero.
MMAPROBE_HD U32s encoded(const Wide* sum, F32s n, bool positive_underflow) {
    constexpr int CUT = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
    const __m256 low = _mm512_cvt_roundepi64_ps(__m512i(sum[0]), CUT),
                 high = _mm512_cvt_roundepi64_ps(__m512i(sum[1]), CUT);
    const __m512 x = _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1), up = __m512(n);
    const __m512 exponent = _mm512_add_ps(_mm512_getexp_ps(x), up);
    const __mmask16 below = _mm512_cmp_ps_mask(exponent, _mm512_set1_ps(-126), _CMP_LT_OQ),
                    small = _mm512_mask_cmp_ps_mask(below, x, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    const __m512 d = __builtin_expect(small != 0, 0) ? with_subnormals(x, up, small, positive_underflow)
                                                     : _mm512_scalef_round_ps(x, up, CUT);
    const __mmask16 infinite = _mm512_cmp_ps_mask(exponent, _mm512_set1_ps(128), _CMP_GE_OQ);
    return U32s(_mm512_mask_scalef_ps(d, infinite, x, up));
}
#else
typedef F64s Wide;

MMAPROBE_HD F32s to_floats(U32s x) { return __builtin_convertvector(I32s(x), F32s); }
#if defined(__AVX2__)
MMAPROBE_HD F32s larger_float(F32s x, F32s y) { return F32s(_mm256_max_ps(__m256(x), __m256(y))); }
#else
MMAPROBE_HD F32s larger_float(F32s x, F32s y) { return F32s(pick(U32s(x > y), U32s(x), U32s(y))); }
#endif
MMAPROBE_HD F32s unless_zero(F32s x, F32s y) { return F32s(pick(U32s(x == 0), splat<U32s>(MINUS_INFINITY), U32s(y))); }
MMAPROBE_HD void raise_label(F32s& label, F32s& other, U32s x, U32s y) {
    other = F32s(pick(equal(x & y, U32s{}), splat<U32s>(MINUS_INFINITY), U32s(other)));
    label = larger_float(label, other);
}
MMAPROBE_HD F32s label_of(F32s c, float lowest) {
    const U32s twice_c = U32s(c) << 1, field = twice_c >> 24;
    const F32s exponent = to_floats((field | (equal(field, U32s{}) & 1)) - 127);
    return F32s(pick(equal(twice_c, U32s{}), U32s(all(lowest)), U32s(exponent)));
}
// As if n were at least -126: what is to be cut is then below 1 anyway.
constexpr int POWER_BIAS = 127;
MMAPROBE_HD F32s times_power(F32s x, F32s n) {
    return x * F32s(__builtin_convertvector(larger_float(n, all(1)), I32s) << 23);
}
MMAPROBE_HD void add_truncated(Wide* sum, F32s x) {
#if defined(__AVX2__)
    const U32s whole = U32s(_mm256_round_ps(__m256(x), 0x0B));
    for (int part = 0; part < 2; ++part) sum[part] += float_values(half(whole, part));
#else
    for (int part = 0; part < 2; ++part) sum[part] += truncated(float_values(half(U32s(x), part)));
#endif
}
MMAPROBE_HD void truncate_c(Wide* sum, F32s c, F32s n) {
    const U32s up = U32s(__builtin_convertvector(n, I32s));
    for (int part = 0; part < 2; ++part)
        sum[part] = truncated(scaled(float_values(half(U32s(c), part)), half(up, part)));
}
MMAPROBE_HD bool any_special(F32s c) { return any(less(splat<U32s>(0xFEFFFFFF), U32s(c) << 1)); }

MMAPROBE_HD U32s encoded(const Wide* sum, F32s n, bool positive_underflow) {
    const U32s up = U32s(__builtin_convertvector(n, I32s));
    I32h out[2];  // a sum of negative zeros is positive
    for (int part = 0; part < 2; ++part)
        out[part] = cut_floats(scaled(sum[part] + broadcast(F64s{}, 0.0), half(up, part)));
    const U32s d = join(out[0], out[1]);
    return positive_underflow ? d & ~equal(d << 1, U32s{}) : d;
}
#endif

}  // namespace grouped
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
