// Words of as many vectors at once as a register has 32-bit lanes, and their way into rows and columns of bytes.
#pragma once
#include <stdint.h>
#include <string.h>

#include "model/philox.hpp"

#if defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#endif

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {
namespace {

#if defined(__AVX512F__) && defined(__AVX512BW__)
constexpr int WIDTH = 64;  // bytes of a register
#elif defined(__AVX2__)
constexpr int WIDTH = 32;
#else
constexpr int WIDTH = 16;
#endif
constexpr int PER = WIDTH / 4;  // vectors at once

typedef u64 U64 __attribute__((vector_size(WIDTH)));
typedef u32 U32 __attribute__((vector_size(WIDTH)));
typedef uint16_t U16 __attribute__((vector_size(WIDTH)));

// Products of the lower halves.
MMAPROBE_HD U64 times_low(U64 x, u64 y) {
#if defined(__AVX512F__) && defined(__AVX512BW__)
    return U64(_mm512_mul_epu32(__m512i(x), _mm512_set1_epi64(i64(y))));
#elif defined(__AVX2__)
    return U64(_mm256_mul_epu32(__m256i(x), _mm256_set1_epi64x(i64(y))));
#elif defined(__SSE2__)
    return U64(_mm_mul_epu32(__m128i(x), _mm_set1_epi64x(i64(y))));
#else
    return (x & 0xFFFFFFFFu) * y;
#endif
}

// The upper halves of 16-bit products.
MMAPROBE_HD U16 times_high(U16 x, U16 y) {
#if defined(__AVX512F__) && defined(__AVX512BW__)
    return U16(_mm512_mulhi_epu16(__m512i(x), __m512i(y)));
#elif defined(__AVX2__)
    return U16(_mm256_mulhi_epu16(__m256i(x), __m256i(y)));
#elif defined(__SSE2__)
    return U16(_mm_mulhi_epu16(__m128i(x), __m128i(y)));
#else
    const U32 low = (U32(x) & 0xFFFF) * (U32(y) & 0xFFFF) >> 16, high = (U32(x) >> 16) * (U32(y) >> 16);
    return U16(low | (high & 0xFFFF0000u));
#endif
}

// x - y, or 0 where y is greater.
MMAPROBE_HD U16 less_or_zero(U16 x, U16 y) {
#if defined(__AVX512F__) && defined(__AVX512BW__)
    return U16(_mm512_subs_epu16(__m512i(x), __m512i(y)));
#elif defined(__AVX2__)
    return U16(_mm256_subs_epu16(__m256i(x), __m256i(y)));
#elif defined(__SSE2__)
    return U16(_mm_subs_epu16(__m128i(x), __m128i(y)));
#else
    return (x > y ? x : y) - y;
#endif
}
MMAPROBE_HD U32 less_or_zero(U32 x, U32 y) { return (x > y ? x : y) - y; }

// 32-bit lanes out of the lower halves of 64-bit ones, even lanes from one register and odd lanes from another; and out of
// their upper halves.
MMAPROBE_HD U32 join_low(U64 even, U64 odd) {
#if defined(__AVX512F__) && defined(__AVX512BW__)
    return U32(_mm512_mask_shuffle_epi32(__m512i(even), 0xAAAA, __m512i(odd), _MM_PERM_CCAA));
#else
    return U32((even & 0xFFFFFFFFu) | odd << 32);
#endif
}
MMAPROBE_HD U32 join_high(U64 even, U64 odd) {
#if defined(__AVX512F__) && defined(__AVX512BW__)
    return U32(_mm512_mask_shuffle_epi32(__m512i(odd), 0x5555, __m512i(even), _MM_PERM_DDBB));
#else
    return U32(even >> 32 | (odd & 0xFFFFFFFF00000000u));
#endif
}

// The lower halves of two registers.
MMAPROBE_HD U32 halves_of(U32 low, U32 high) {
#if defined(__AVX512F__) && defined(__AVX512BW__)
    return U32(_mm512_inserti64x4(__m512i(low), _mm512_castsi512_si256(__m512i(high)), 1));
#elif defined(__AVX2__)
    return U32(_mm256_inserti128_si256(__m256i(low), _mm256_castsi256_si128(__m256i(high)), 1));
#else
    memcpy(reinterpret_cast<char*>(&low) + WIDTH / 2, &high, WIDTH / 2);
    return low;
#endif
}

// The four words of PER blocks.
struct Four {
    U32 w[4];
};

// Lane n of the words as 16 bytes at out + n * pitch, of the first `rows` lanes.
MMAPROBE_HD void store_rows(const Four& words, char* out, i64 pitch, int rows = PER) {
#if defined(__AVX512F__) && defined(__AVX512BW__)
    const auto whole = [](const U32& x) { return __m512i(x); };
    const __m512i x = _mm512_unpacklo_epi32(whole(words.w[0]), whole(words.w[1])),
                  y = _mm512_unpackhi_epi32(whole(words.w[0]), whole(words.w[1])),
                  z = _mm512_unpacklo_epi32(whole(words.w[2]), whole(words.w[3])),
                  w = _mm512_unpackhi_epi32(whole(words.w[2]), whole(words.w[3]));
    const __m512i rows_of[4] = {_mm512_unpacklo_epi64(x, z), _mm512_unpackhi_epi64(x, z), _mm512_unpacklo_epi64(y, w),
                                _mm512_unpackhi_epi64(y, w)};
    const auto put = [&](int n, __m128i row) {
        if (n < rows) _mm_storeu_si128(reinterpret_cast<__m128i*>(out + n * pitch), row);
    };
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) put(i, _mm512_castsi512_si128(rows_of[i]));
    if (rows <= 4) return;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) put(4 + i, _mm512_extracti32x4_epi32(rows_of[i], 1));
    if (rows <= 8) return;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) put(8 + i, _mm512_extracti32x4_epi32(rows_of[i], 2));
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) put(12 + i, _mm512_extracti32x4_epi32(rows_of[i], 3));
#elif defined(__AVX2__)
    const auto whole = [](const U32& x) { return __m256i(x); };
    const __m256i x = _mm256_unpacklo_epi32(whole(words.w[0]), whole(words.w[1])),
                  y = _mm256_unpackhi_epi32(whole(words.w[0]), whole(words.w[1])),
                  z = _mm256_unpacklo_epi32(whole(words.w[2]), whole(words.w[3])),
                  w = _mm256_unpackhi_epi32(whole(words.w[2]), whole(words.w[3]));
    const __m256i rows_of[4] = {_mm256_unpacklo_epi64(x, z), _mm256_unpackhi_epi64(x, z), _mm256_unpacklo_epi64(y, w),
                                _mm256_unpackhi_epi64(y, w)};
    const auto put = [&](int n, __m128i row) {
        if (n < rows) _mm_storeu_si128(reinterpret_cast<__m128i*>(out + n * pitch), row);
    };
    for (int i = 0; i < 4; ++i) {
        put(i, _mm256_castsi256_si128(rows_of[i]));
        put(4 + i, _mm256_extracti128_si256(rows_of[i], 1));
    }
#else
    for (int n = 0; n < rows; ++n) {
        const u32 row[4] = {words.w[0][n], words.w[1][n], words.w[2][n], words.w[3][n]};
        memcpy(out + n * pitch, row, sizeof row);
    }
#endif
}

constexpr int STRIP = 16;  // rows of a strip of the engine layout, vectors of a group

// A word of PER vectors as the items k and following of 16 columns, `lane` the first of them; items from `last` on are not
// stored.
template <class Item>
MMAPROBE_HD void store_items(U32 word, char* to, int k, int last, int lane) {
    typedef Item Narrow __attribute__((vector_size(PER * sizeof(Item))));
    for (int i = 0; i < int(4 / sizeof(Item)) && k < last; ++i, ++k, word >>= 8 * (sizeof(Item) % 4)) {
        const Narrow items = __builtin_convertvector(word, Narrow);
        memcpy(to + (k * STRIP + lane) * i64(sizeof(Item)), &items, sizeof items);
    }
}

// The same of all items of a word.
template <class Item>
MMAPROBE_HD void store_items(U32 word, char* to, int k, int lane) {
#if defined(__AVX512F__) && defined(__AVX512BW__)
    __m512i out = __m512i(word);  // 16 lanes are 16 columns: one register is all items
    if (sizeof(Item) == 1) {
        const __m512i bytes = _mm512_broadcast_i32x4(
            _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
        const __m512i words = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        out = _mm512_permutexvar_epi32(words, _mm512_shuffle_epi8(out, bytes));
    } else if (sizeof(Item) == 2) {
        typedef uint16_t Halves __attribute__((vector_size(64)));
        out = _mm512_permutexvar_epi16(__m512i(Halves{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
                                                      1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31}),
                                       out);
    }
    _mm512_storeu_si512(to + (k * STRIP + lane) * i64(sizeof(Item)), out);
#else
    store_items<Item>(word, to, k, INT32_MAX, lane);
#endif
}

MMAPROBE_HD void store_wide(U32 low, U32 high, char* to, int k, int lane) {
    u32* out = reinterpret_cast<u32*>(to) + 2 * (k * STRIP + lane);
    for (int n = 0; n < PER; ++n) {
        out[2 * n] = low[n];
        out[2 * n + 1] = high[n];
    }
}

}  // namespace
}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
