// Registers of binary64 and binary32 numbers for kernels whose sums are exact in 53 bits.
#pragma once
#include <fenv.h>
#include <math.h>
#include <string.h>

#include "cpu/kernels/tiles.hpp"
#include "model/lanes.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__FMA__) || defined(__aarch64__)
#define MMAPROBE_HAS_FMA 1
#endif

namespace mmaprobe {
namespace MMAPROBE_BUILD {

constexpr int HALF = LANES / 2;  // binary64 numbers of a register
typedef float F32s __attribute__((vector_size(4 * LANES)));
typedef double F64s __attribute__((vector_size(4 * LANES)));
typedef i64 I64s __attribute__((vector_size(4 * LANES)));
typedef u64 U64s __attribute__((vector_size(4 * LANES)));
typedef float F32h __attribute__((vector_size(2 * LANES)));
typedef i32 I32h __attribute__((vector_size(2 * LANES)));

constexpr int ROUNDINGS[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};  // as the rows of rules number them

// IEEE rules while it lives: a rounding mode, no traps, whatever the thread had set; subnormals kept, or, where a build can
// (FLUSHES), results that are tiny after rounding zeros.
struct Environment {
#if defined(__x86_64__)
    static constexpr bool FLUSHES = true;
#else
    static constexpr bool FLUSHES = false;
#endif
    fenv_t saved;
    explicit Environment(int rounding = FE_TONEAREST, [[maybe_unused]] bool flush = false) {
        fegetenv(&saved);
        fesetenv(FE_DFL_ENV);
        fesetround(rounding);
#if defined(__x86_64__)
        if (flush) _mm_setcsr(_mm_getcsr() | 0x8000);
#endif
    }
    ~Environment() { fesetenv(&saved); }
};

// Lanes 0 .. HALF - 1 of 32 bits, or the others; and one register of both.
#if defined(__AVX512F__)
MMAPROBE_HD I32h half(U32s x, int part) {
    return part ? I32h(_mm512_extracti64x4_epi64(__m512i(x), 1)) : I32h(_mm512_castsi512_si256(__m512i(x)));
}
MMAPROBE_HD U32s join(I32h low, I32h high) {
    return U32s(_mm512_inserti64x4(_mm512_castsi256_si512(__m256i(low)), __m256i(high), 1));
}
#elif defined(__AVX2__)
MMAPROBE_HD I32h half(U32s x, int part) {
    return part ? I32h(_mm256_extracti128_si256(__m256i(x), 1)) : I32h(_mm256_castsi256_si128(__m256i(x)));
}
MMAPROBE_HD U32s join(I32h low, I32h high) { return U32s(_mm256_set_m128i(__m128i(high), __m128i(low))); }
#else
MMAPROBE_HD I32h half(U32s x, int part) {
    I32h out;
    memcpy(&out, reinterpret_cast<const char*>(&x) + part * sizeof out, sizeof out);
    return out;
}
MMAPROBE_HD U32s join(I32h low, I32h high) {
    U32s out;
    memcpy(&out, &low, sizeof low);
    memcpy(reinterpret_cast<char*>(&out) + sizeof low, &high, sizeof high);
    return out;
}
#endif

// The same number in every lane, whatever the rounding mode does with signs of zero.
#if defined(__AVX512F__)
MMAPROBE_HD F32s broadcast(F32s, float x) { return F32s(_mm512_set1_ps(x)); }
MMAPROBE_HD F64s broadcast(F64s, double x) { return F64s(_mm512_set1_pd(x)); }
#elif defined(__AVX__)
MMAPROBE_HD F32s broadcast(F32s, float x) { return F32s(_mm256_set1_ps(x)); }
MMAPROBE_HD F64s broadcast(F64s, double x) { return F64s(_mm256_set1_pd(x)); }
#else
MMAPROBE_HD F32s broadcast(F32s out, float x) {
    for (int i = 0; i < LANES; ++i) out[i] = x;
    return out;
}
MMAPROBE_HD F64s broadcast(F64s out, double x) {
    for (int i = 0; i < HALF; ++i) out[i] = x;
    return out;
}
#endif

// Signed integers, and binary32 codes, as numbers.
#if defined(__AVX512F__)
MMAPROBE_HD F64s to_doubles(I32h x) { return F64s(_mm512_cvtepi32_pd(__m256i(x))); }
MMAPROBE_HD F64s float_values(I32h codes) { return F64s(_mm512_cvtps_pd(_mm256_castsi256_ps(__m256i(codes)))); }
#else
MMAPROBE_HD F64s to_doubles(I32h x) { return __builtin_convertvector(x, F64s); }
MMAPROBE_HD F64s float_values(I32h codes) { return __builtin_convertvector(F32h(codes), F64s); }
#endif

// Numbers as integers, cut towards zero, where they are in range.
#if defined(__AVX512F__)
MMAPROBE_HD I32h cut_integers(F64s x) { return I32h(_mm512_cvttpd_epi32(__m512d(x))); }
#else
MMAPROBE_HD I32h cut_integers(F64s x) { return __builtin_convertvector(x, I32h); }
#endif

// x 2^n, where -1022 <= n <= 1023 and the result is a normal number or zero.
#if defined(__AVX512F__)
MMAPROBE_HD F64s scaled(F64s x, I32h n) { return F64s(_mm512_scalef_pd(__m512d(x), _mm512_cvtepi32_pd(__m256i(n)))); }
#else
MMAPROBE_HD F64s scaled(F64s x, I32h n) { return x * F64s((__builtin_convertvector(n, I64s) + 1023) << 52); }
#endif

#if defined(__AVX512F__)
MMAPROBE_HD F64s truncated(F64s x) { return F64s(_mm512_roundscale_pd(__m512d(x), 0x0B)); }
MMAPROBE_HD F64s floored(F64s x) { return F64s(_mm512_roundscale_pd(__m512d(x), 0x09)); }
#elif defined(__AVX__)
MMAPROBE_HD F64s truncated(F64s x) { return F64s(_mm256_round_pd(__m256d(x), 0x0B)); }
MMAPROBE_HD F64s floored(F64s x) { return F64s(_mm256_round_pd(__m256d(x), 0x09)); }
#else
MMAPROBE_HD F64s truncated(F64s x) {
    for (int i = 0; i < HALF; ++i) x[i] = __builtin_trunc(x[i]);
    return x;
}
MMAPROBE_HD F64s floored(F64s x) {
    for (int i = 0; i < HALF; ++i) x[i] = __builtin_floor(x[i]);
    return x;
}
#endif

#if defined(__AVX512F__)
MMAPROBE_HD F32s fused_multiply(F32s x, F32s y, F32s z) {
    return F32s(_mm512_fmadd_ps(__m512(x), __m512(y), __m512(z)));
}
MMAPROBE_HD F64s fused_multiply(F64s x, F64s y, F64s z) {
    return F64s(_mm512_fmadd_pd(__m512d(x), __m512d(y), __m512d(z)));
}
#elif defined(__FMA__)
MMAPROBE_HD F32s fused_multiply(F32s x, F32s y, F32s z) {
    return F32s(_mm256_fmadd_ps(__m256(x), __m256(y), __m256(z)));
}
MMAPROBE_HD F64s fused_multiply(F64s x, F64s y, F64s z) {
    return F64s(_mm256_fmadd_pd(__m256d(x), __m256d(y), __m256d(z)));
}
#elif defined(__aarch64__)
MMAPROBE_HD F32s fused_multiply(F32s x, F32s y, F32s z) {
    return F32s(vfmaq_f32(float32x4_t(z), float32x4_t(x), float32x4_t(y)));
}
MMAPROBE_HD F64s fused_multiply(F64s x, F64s y, F64s z) {
    return F64s(vfmaq_f64(float64x2_t(z), float64x2_t(x), float64x2_t(y)));
}
#endif

// Codes of the binary32 numbers nearest to x, ties to even.
#if defined(__AVX512F__)
MMAPROBE_HD I32h nearest_floats(F64s x) { return I32h(_mm256_castps_si256(_mm512_cvtpd_ps(__m512d(x)))); }
#else
MMAPROBE_HD I32h nearest_floats(F64s x) { return I32h(__builtin_convertvector(x, F32h)); }
#endif

// Codes of x cut to binary32 towards zero; from 2^128 on infinity.
#if defined(__AVX512F__)
MMAPROBE_HD I32h cut_floats(F64s x) {
    const __m256 cut = _mm512_cvt_roundpd_ps(__m512d(x), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    const __mmask8 beyond = _mm512_cmp_pd_mask(_mm512_abs_pd(__m512d(x)), _mm512_set1_pd(0x1p128), _CMP_GE_OQ);
    const __m256i exponent = _mm256_set1_epi32(0x7F800000), fraction = _mm256_set1_epi32(0x007FFFFF);
    const __m256i codes = _mm256_castps_si256(cut);  // beyond: (codes | exponent) & ~fraction
    return I32h(_mm256_mask_ternarylogic_epi32(codes, beyond, exponent, fraction, 0x54));
}
#else
MMAPROBE_HD I32h cut_floats(F64s x) {
    const F32h nearest = __builtin_convertvector(x, F32h);
    const F64s back = __builtin_convertvector(nearest, F64s), limit = broadcast(F64s{}, 0x1p128);
    const I64s beyond = (I64s(back) & INT64_MAX) > (I64s(x) & INT64_MAX);
    const I64s finite = (I64s(x) & INT64_MAX) < I64s(limit);
    return I32h(nearest) + __builtin_convertvector(beyond & finite, I32h);
}
#endif

// floor(x / 2^e) 2^e, e = max(floor(log2 |x|), lowest) - bits.
MMAPROBE_HD F64s floored_below(F64s x, int bits, int lowest) {
    const I64s exponent = (I64s(x) >> 52 & 0x7FF) - 1023, least = I64s{} + lowest, small = exponent < least;
    const I64s up = bits - ((least & small) | (exponent & ~small));
    return floored(x * F64s((up + 1023) << 52)) * F64s((1023 - up) << 52);
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
