// What one instruction set has for the fast kernels: registers of floats, of exponents, and the few operations on them
// that the language has no word for.
//
// A strip has 16 rows: PARTS registers of LANES. A block of BLOCK columns and 16 rows is four registers of floats, and
// its exponents, where bytes hold them, are one register, flat [column][row].
#pragma once
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "cpu/kernels/widths.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

typedef float F32s __attribute__((vector_size(4 * LANES)));

constexpr int ROWS = 16, PARTS = ROWS / LANES, BLOCK = LANES / 4;

typedef int8_t Bytes __attribute__((vector_size(4 * LANES)));

MMAPROBE_HD F32s splat_float(float x) { return x - F32s{}; }
MMAPROBE_HD I32s splat_int(i32 x) { return x - I32s{}; }
MMAPROBE_HD F32s as_float(I32s x) { return F32s(x); }
MMAPROBE_HD I32s as_int(F32s x) { return I32s(x); }
MMAPROBE_HD F32s power_of_two(I32s field) { return F32s(field << 23); }  // 2^(field - 127), 0 and infinity at the ends

#if defined(__AVX512F__)
MMAPROBE_HD I32s larger(I32s x, I32s y) { return I32s(_mm512_max_epi32(__m512i(x), __m512i(y))); }
MMAPROBE_HD I32s smaller(I32s x, I32s y) { return I32s(_mm512_min_epi32(__m512i(x), __m512i(y))); }
MMAPROBE_HD I32s truncate(F32s x) { return I32s(_mm512_cvttps_epi32(__m512(x))); }
MMAPROBE_HD F32s multiply_add(F32s x, F32s y, F32s z) { return F32s(_mm512_fmadd_ps(__m512(x), __m512(y), __m512(z))); }
MMAPROBE_HD F32s to_float_towards_zero(I32s x) {
    return F32s(_mm512_cvt_roundepi32_ps(__m512i(x), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
}
MMAPROBE_HD F32s from_half(const uint16_t* x) {
    return F32s(_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x))));
}
constexpr bool HAS_HALVES = true;
MMAPROBE_HD void to_half(uint16_t* to, F32s x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm512_cvtps_ph(__m512(x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
// floor(x / 2^n), n >= 0, however large.
MMAPROBE_HD I32s shift_down(I32s x, I32s n) { return I32s(_mm512_srav_epi32(__m512i(x), __m512i(n))); }
// Leading zeros of an x without sign, 32 for zero.
MMAPROBE_HD I32s zeros_above(I32s x) { return I32s(_mm512_lzcnt_epi32(__m512i(x))); }
using Mask = u32;
MMAPROBE_HD Mask where_less(I32s x, I32s y) { return _mm512_cmplt_epi32_mask(__m512i(x), __m512i(y)); }
MMAPROBE_HD bool any_negative(I32s x) { return _mm512_movepi32_mask(__m512i(x)) != 0; }
MMAPROBE_HD Mask where_negative(I32s x) { return _mm512_movepi32_mask(__m512i(x)); }
MMAPROBE_HD I32s overflown(I32s x, I32s y, I32s sum) {  // negative where so
    return I32s(_mm512_ternarylogic_epi32(__m512i(x), __m512i(y), __m512i(sum), 0x42));
}
MMAPROBE_HD Mask where_set(I32s x) { return _mm512_test_epi32_mask(__m512i(x), __m512i(x)); }
MMAPROBE_HD bool any_lane(Mask x) { return x; }
MMAPROBE_HD I32s choose(Mask m, I32s x, I32s y) {
    return I32s(_mm512_mask_blend_epi32(__mmask16(m), __m512i(y), __m512i(x)));
}
#else
#if defined(__AVX2__)
MMAPROBE_HD I32s larger(I32s x, I32s y) { return I32s(_mm256_max_epi32(__m256i(x), __m256i(y))); }
MMAPROBE_HD I32s smaller(I32s x, I32s y) { return I32s(_mm256_min_epi32(__m256i(x), __m256i(y))); }
MMAPROBE_HD I32s truncate(F32s x) { return I32s(_mm256_cvttps_epi32(__m256(x))); }
MMAPROBE_HD bool any_lane(I32s x) { return !_mm256_testz_si256(__m256i(x), __m256i(x)); }
MMAPROBE_HD I32s shift_down(I32s x, I32s n) { return I32s(_mm256_srav_epi32(__m256i(x), __m256i(n))); }
#else
MMAPROBE_HD I32s larger(I32s x, I32s y) { return I32s(larger_signed(U32s(x), U32s(y))); }
MMAPROBE_HD I32s smaller(I32s x, I32s y) { return I32s(larger_signed(U32s(y), U32s(x))) ^ x ^ y; }
MMAPROBE_HD I32s truncate(F32s x) { return __builtin_convertvector(x, I32s); }
MMAPROBE_HD bool any_lane(I32s x) {
    typedef u64 Two __attribute__((vector_size(16)));
    const Two two = Two(x);
    return (two[0] | two[1]) != 0;
}
MMAPROBE_HD I32s shift_down(I32s x, I32s n) { return x >> smaller(n, splat_int(31)); }
#endif
// By the exponent of the top bit alone: with the one below it cleared nothing rounds up to the next.
MMAPROBE_HD I32s zeros_above(I32s x) {
    return smaller(158 - (I32s(__builtin_convertvector(x & ~(x >> 1), F32s)) >> 23), splat_int(32));
}
using Mask = I32s;
MMAPROBE_HD Mask where_less(I32s x, I32s y) { return x < y; }
MMAPROBE_HD I32s overflown(I32s x, I32s y, I32s sum) { return (x ^ sum) & (y ^ sum); }  // negative where so
MMAPROBE_HD bool any_negative(I32s x) { return any_lane(x >> 31); }
MMAPROBE_HD Mask where_negative(I32s x) { return x >> 31; }
MMAPROBE_HD Mask where_set(I32s x) { return x != 0; }
MMAPROBE_HD I32s choose(Mask m, I32s x, I32s y) { return (x & m) | (y & ~m); }
MMAPROBE_HD F32s multiply_add(F32s x, F32s y, F32s z) { return x * y + z; }
// The nearest float, one step back where it lies beyond x.
MMAPROBE_HD F32s to_float_towards_zero(I32s x) {
    const I32s sign = x >> 31, size = (x ^ sign) - sign;
    const F32s near = __builtin_convertvector(size, F32s);
    const I32s back = (near >= 0x1p31f) | (truncate(near) > size);
    return F32s((I32s(near) + back) | (sign & i32(0x80000000)));
}
#if defined(__AVX2__)
constexpr bool HAS_HALVES = true;
MMAPROBE_HD F32s from_half(const uint16_t* x) {
    return F32s(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x))));
}
MMAPROBE_HD void to_half(uint16_t* to, F32s x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(__m256(x), _MM_FROUND_TO_NEAREST_INT));
}
#else
#if defined(__aarch64__)
constexpr bool HAS_HALVES = true;
MMAPROBE_HD void to_half(uint16_t* to, F32s x) { vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32(float32x4_t(x)))); }
#else
constexpr bool HAS_HALVES = false;  // results of 16 bits are then left to the exact lanes
MMAPROBE_HD void to_half(uint16_t*, F32s) {}
#endif
MMAPROBE_HD F32s from_half(const uint16_t* x) {
    const U32s code = widen(x), size = code & 0x7FFF;
    const F32s value = F32s(size << 13) * 0x1p112f;
    const U32s special = U32s(size > 0x7BFF) & 0x7F800000;
    return F32s(U32s(value) | special | (code & 0x8000) << 16);
}
#endif
#endif

MMAPROBE_HD F32s choose(Mask m, F32s x, F32s y) { return F32s(choose(m, I32s(x), I32s(y))); }

// x 2^n, |n| below 252, of results that are normal numbers, zeros or infinities. SCALES: in few operations.
#if defined(__AVX512F__)
constexpr bool SCALES = true;
MMAPROBE_HD F32s times_power(F32s x, I32s n) {
    return F32s(_mm512_scalef_ps(__m512(x), _mm512_cvtepi32_ps(__m512i(n))));
}
#else
constexpr bool SCALES = false;
MMAPROBE_HD F32s times_power(F32s x, I32s n) {
    const I32s first = n >> 1;
    return x * power_of_two(first + 127) * power_of_two(n - first + 127);
}
#endif

// A binary32 as a difference of two that are no subnormal numbers, for processors multiply those in a hundred cycles:
// one is the other number less 2^-126, with its sign; of all others the excess is 0.
struct Difference {
    F32s sum, excess;
};
MMAPROBE_HD Difference as_difference(I32s x) {
    const I32s least = splat_int(0x00800000), sign = x & i32(0x80000000);
    const Mask subnormal = where_less(x & 0x7FFFFFFF, least);
    return {F32s(choose(subnormal, x | least, x)), F32s(choose(subnormal, sign | least, I32s{}))};
}
// x 2^n of any x, where the result is a normal number, or not above one; below those it may be 0.
MMAPROBE_HD F32s times_power_of_any(F32s x, I32s n) {
    const Difference of = as_difference(I32s(x));
    return times_power(of.sum, n) - times_power(of.excess, n);
}

// Registers of exponents: bytes of a block, flat [column][row], and 16-bit numbers.
#if defined(__AVX512F__)
MMAPROBE_HD Bytes of_rows(const int8_t* rows) {  // for every column of a block
    return Bytes(_mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(rows))));
}
MMAPROBE_HD Bytes of_columns(const int8_t* columns) {  // for every row
    const __m512i byte = _mm512_set_epi64(0x0303030303030303, 0x0303030303030303, 0x0202020202020202,
                                          0x0202020202020202, 0x0101010101010101, 0x0101010101010101, 0, 0);
    return Bytes(_mm512_shuffle_epi8(_mm512_set1_epi32(load<i32>(columns)), byte));
}
MMAPROBE_HD Bytes larger_bytes(Bytes x, Bytes y) { return Bytes(_mm512_max_epi8(__m512i(x), __m512i(y))); }
MMAPROBE_HD Halves larger_halves(Halves x, Halves y) { return Halves(_mm512_max_epi16(__m512i(x), __m512i(y))); }
MMAPROBE_HD Bytes add_bytes(Bytes x, Bytes y) { return Bytes(_mm512_adds_epi8(__m512i(x), __m512i(y))); }
#elif defined(__AVX2__)
MMAPROBE_HD Bytes of_rows(const int8_t* rows) {
    return Bytes(_mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(rows))));
}
MMAPROBE_HD Bytes of_columns(const int8_t* columns) {
    const __m256i byte = _mm256_set_epi64x(0x0101010101010101, 0x0101010101010101, 0, 0);
    return Bytes(_mm256_shuffle_epi8(_mm256_set1_epi16(load<int16_t>(columns)), byte));
}
MMAPROBE_HD Bytes larger_bytes(Bytes x, Bytes y) { return Bytes(_mm256_max_epi8(__m256i(x), __m256i(y))); }
MMAPROBE_HD Halves larger_halves(Halves x, Halves y) { return Halves(_mm256_max_epi16(__m256i(x), __m256i(y))); }
MMAPROBE_HD Bytes add_bytes(Bytes x, Bytes y) { return Bytes(_mm256_adds_epi8(__m256i(x), __m256i(y))); }
#else
MMAPROBE_HD Bytes of_rows(const int8_t* rows) { return load<Bytes>(rows); }
MMAPROBE_HD Bytes of_columns(const int8_t* columns) { return Bytes{} + columns[0]; }
MMAPROBE_HD Bytes larger_bytes(Bytes x, Bytes y) {
    const Bytes more = Bytes(x > y);
    return (x & more) | (y & ~more);
}
MMAPROBE_HD Halves larger_halves(Halves x, Halves y) {
    typedef int16_t Words __attribute__((vector_size(sizeof(Halves))));
    const Halves more = Halves(Words(x) > Words(y));
    return (x & more) | (y & ~more);
}
MMAPROBE_HD Bytes add_bytes(Bytes x, Bytes y) {
#if defined(__x86_64__)
    return Bytes(_mm_adds_epi8(__m128i(x), __m128i(y)));
#elif defined(__aarch64__)
    return Bytes(vqaddq_s8(int8x16_t(x), int8x16_t(y)));
#else
    const Bytes sum = x + y, wrapped = Bytes(((x ^ sum) & (y ^ sum)) < 0);
    return (wrapped & -128) | (sum & ~wrapped);
#endif
}
#endif

// [BLOCK][k] to [k][BLOCK]; up to 16 k at a time, which may write past the end.
MMAPROBE_HD void interleave(const int8_t* from, int8_t* to, int k) {
#if defined(__AVX2__)
    constexpr int N = 16;
    for (int i = 0; i < k; i += N) {
        __m128i x[2 * BLOCK];
        for (int q = 0; q < BLOCK; ++q) x[q] = load<__m128i>(from + q * k + i);
        __m128i out[BLOCK] = {_mm_unpacklo_epi8(x[0], x[1]), _mm_unpackhi_epi8(x[0], x[1])};
        if (BLOCK == 4) {
            const __m128i p = _mm_unpacklo_epi8(x[2], x[3]), q = _mm_unpackhi_epi8(x[2], x[3]), r = out[0], s = out[1];
            const __m128i all[4] = {_mm_unpacklo_epi16(r, p), _mm_unpackhi_epi16(r, p), _mm_unpacklo_epi16(s, q),
                                    _mm_unpackhi_epi16(s, q)};
            for (int j = 0; j < BLOCK; ++j) out[j] = all[j];
        }
        for (int j = 0; j < BLOCK; ++j) store(to + i * BLOCK + j * N, out[j]);
    }
#else
    memcpy(to, from, size_t(k));
#endif
}

// Results too small for a float's exponent are never asked for here, and slow: they become zero until this goes; so do
// subnormal operands where they are `unread`.
class FlushTiny {
#if defined(__x86_64__)
    unsigned before = _mm_getcsr();

public:
    explicit FlushTiny(bool unread = false) { _mm_setcsr(unread ? 0x9FC0 : 0x9F80); }  // the default state, and flags
    ~FlushTiny() { _mm_setcsr(before); }
    FlushTiny(const FlushTiny&) = delete;
    FlushTiny& operator=(const FlushTiny&) = delete;
#else
public:
    explicit FlushTiny(bool = false) {}
#endif
};

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
