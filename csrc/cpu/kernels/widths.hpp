// Loads that widen and stores that narrow: LANES items between memory of 1 or 2 bytes an item and 32-bit lanes.
// (Compilers make item-by-item code of __builtin_convertvector for some of these.)
#pragma once
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "model/lanes.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

template <class T>
MMAPROBE_HD T load(const void* from) {
    T out;
    memcpy(&out, from, sizeof out);
    return out;
}
template <class T>
MMAPROBE_HD void store(void* to, const T& x) {
    memcpy(to, &x, sizeof x);
}

typedef uint16_t Halves __attribute__((vector_size(4 * LANES)));  // a full register of them
constexpr int HALVES = 2 * LANES;

MMAPROBE_HD U32s widen(const u32* from) { return load<U32s>(from); }

#if defined(__AVX512F__)
MMAPROBE_HD I32s widen(const int8_t* from) { return I32s(_mm512_cvtepi8_epi32(load<__m128i>(from))); }
MMAPROBE_HD I32s widen(const int16_t* from) { return I32s(_mm512_cvtepi16_epi32(load<__m256i>(from))); }
MMAPROBE_HD U32s widen(const uint8_t* from) { return U32s(_mm512_cvtepu8_epi32(load<__m128i>(from))); }
MMAPROBE_HD U32s widen(const uint16_t* from) { return U32s(_mm512_cvtepu16_epi32(load<__m256i>(from))); }
MMAPROBE_HD Halves widen_to_halves(const uint8_t* from) { return Halves(_mm512_cvtepu8_epi16(load<__m256i>(from))); }
MMAPROBE_HD void narrow(uint16_t* to, U32s x) { store(to, _mm512_cvtepi32_epi16(__m512i(x))); }
MMAPROBE_HD void narrow(int8_t* to, Halves x) { store(to, _mm512_cvtepi16_epi8(__m512i(x))); }
MMAPROBE_HD void narrow(int8_t* to, I32s x) { store(to, _mm512_cvtepi32_epi8(__m512i(x))); }
#elif defined(__AVX2__)
MMAPROBE_HD I32s widen(const int8_t* from) { return I32s(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)from))); }
MMAPROBE_HD I32s widen(const int16_t* from) { return I32s(_mm256_cvtepi16_epi32(load<__m128i>(from))); }
MMAPROBE_HD U32s widen(const uint8_t* from) {
    return U32s(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)from)));
}
MMAPROBE_HD U32s widen(const uint16_t* from) { return U32s(_mm256_cvtepu16_epi32(load<__m128i>(from))); }
MMAPROBE_HD Halves widen_to_halves(const uint8_t* from) { return Halves(_mm256_cvtepu8_epi16(load<__m128i>(from))); }
MMAPROBE_HD void narrow(uint16_t* to, U32s x) {
    const __m256i low = __m256i(x & 0xFFFF), packed = _mm256_packus_epi32(low, low);
    store(to, _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
}
MMAPROBE_HD void narrow(int8_t* to, Halves x) {
    const __m256i packed = _mm256_packs_epi16(__m256i(x), __m256i(x));
    store(to, _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
}
MMAPROBE_HD void narrow(int8_t* to, I32s x) {
    const __m128i half = _mm_packs_epi32(_mm256_castsi256_si128(__m256i(x)), _mm256_extracti128_si256(__m256i(x), 1));
    _mm_storel_epi64((__m128i*)to, _mm_packs_epi16(half, half));
}
#elif defined(__x86_64__)
MMAPROBE_HD __m128i four_bytes(const void* from) { return _mm_cvtsi32_si128(load<i32>(from)); }
MMAPROBE_HD I32s widen(const int8_t* from) {
    const __m128i x = four_bytes(from), twice = _mm_unpacklo_epi8(x, x);
    return I32s(_mm_srai_epi32(_mm_unpacklo_epi16(twice, twice), 24));
}
MMAPROBE_HD I32s widen(const int16_t* from) {
    const __m128i x = _mm_loadl_epi64((const __m128i*)from);
    return I32s(_mm_srai_epi32(_mm_unpacklo_epi16(x, x), 16));
}
MMAPROBE_HD U32s widen(const uint8_t* from) {
    const __m128i zero = _mm_setzero_si128();
    return U32s(_mm_unpacklo_epi16(_mm_unpacklo_epi8(four_bytes(from), zero), zero));
}
MMAPROBE_HD U32s widen(const uint16_t* from) {
    return U32s(_mm_unpacklo_epi16(_mm_loadl_epi64((const __m128i*)from), _mm_setzero_si128()));
}
MMAPROBE_HD Halves widen_to_halves(const uint8_t* from) {
    return Halves(_mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i*)from), _mm_setzero_si128()));
}
MMAPROBE_HD void narrow(uint16_t* to, U32s x) {
    const __m128i low = _mm_srai_epi32(_mm_slli_epi32(__m128i(x), 16), 16);
    _mm_storel_epi64((__m128i*)to, _mm_packs_epi32(low, low));
}
MMAPROBE_HD void narrow(int8_t* to, Halves x) {
    _mm_storel_epi64((__m128i*)to, _mm_packs_epi16(__m128i(x), __m128i(x)));
}
MMAPROBE_HD void narrow(int8_t* to, I32s x) {
    const __m128i half = _mm_packs_epi32(__m128i(x), __m128i(x));
    store(to, _mm_cvtsi128_si32(_mm_packs_epi16(half, half)));
}
#else
template <class Out, class T>
MMAPROBE_HD Out widen_as(const T* from) {
    typedef T Items __attribute__((vector_size(LANES * sizeof(T))));
    return __builtin_convertvector(load<Items>(from), Out);
}
MMAPROBE_HD I32s widen(const int8_t* from) { return widen_as<I32s>(from); }
MMAPROBE_HD I32s widen(const int16_t* from) { return widen_as<I32s>(from); }
MMAPROBE_HD U32s widen(const uint8_t* from) { return widen_as<U32s>(from); }
MMAPROBE_HD U32s widen(const uint16_t* from) { return widen_as<U32s>(from); }
MMAPROBE_HD Halves widen_to_halves(const uint8_t* from) {
    typedef uint8_t Items __attribute__((vector_size(HALVES)));
    return __builtin_convertvector(load<Items>(from), Halves);
}
MMAPROBE_HD void narrow(uint16_t* to, U32s x) {
    typedef uint16_t Items __attribute__((vector_size(2 * LANES)));
    store(to, __builtin_convertvector(x, Items));
}
MMAPROBE_HD void narrow(int8_t* to, Halves x) {
    typedef int8_t Items __attribute__((vector_size(HALVES)));
    store(to, __builtin_convertvector(x, Items));
}
MMAPROBE_HD void narrow(int8_t* to, I32s x) {
    typedef int8_t Items __attribute__((vector_size(LANES)));
    store(to, __builtin_convertvector(x, Items));
}
#endif

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
