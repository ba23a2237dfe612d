// Random words for as many vectors at once as a register has 32-bit lanes, and their way into rows of bytes.
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

// Counters of PER blocks: those of even and of odd lanes, the value in the lower half of each item.
struct Counters {
    U64 c0[2], c1[2], c2[2];
};

// `Sets` sets of blocks side by side, so that one's multiplications hide in another's.
template <int Sets>
MMAPROBE_HD void philox_sets(const Counters (&counters)[Sets], const Stream& stream, Four (&out)[Sets]) {
    U64 c0[2 * Sets], c1[2 * Sets], c2[2 * Sets], c3[2 * Sets];
#pragma GCC unroll 8
    for (int i = 0; i < 2 * Sets; ++i) {
        c0[i] = counters[i / 2].c0[i % 2];
        c1[i] = counters[i / 2].c1[i % 2];
        c2[i] = counters[i / 2].c2[i % 2];
        c3[i] = U64{} + stream.number;
    }
    u32 k0 = u32(stream.seed), k1 = u32(stream.seed >> 32);
    for (int round = 0; round < 10; ++round) {
#pragma GCC unroll 8
        for (int i = 0; i < 2 * Sets; ++i) {  // the upper halves hold what does not matter
            const U64 left = times_low(c0[i], 0xD2511F53u), right = times_low(c2[i], 0xCD9E8D57u);
            c0[i] = (right >> 32) ^ c1[i] ^ k0;
            c1[i] = right;
            c2[i] = (left >> 32) ^ c3[i] ^ k1;
            c3[i] = left;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    const auto join = [](U64 even, U64 odd) { return U32((even & 0xFFFFFFFFu) | odd << 32); };
#pragma GCC unroll 4
    for (int i = 0; i < Sets; ++i)
        out[i] = {{join(c0[2 * i], c0[2 * i + 1]), join(c1[2 * i], c1[2 * i + 1]), join(c2[2 * i], c2[2 * i + 1]),
                   join(c3[2 * i], c3[2 * i + 1])}};
}

// Counters of vectors first .. first + PER - 1, all for block `number` of a purpose.
struct Indices {
    U64 index[2];
    explicit Indices(u64 first) {
        U64 even;
        for (int i = 0; i < WIDTH / 8; ++i) even[i] = 2 * u64(i);
        index[0] = even + first;
        index[1] = even + (first + 1);
    }
    // The first half of the lanes from one vector on, the second half from another.
    Indices(u64 first, u64 second) : Indices(first) {
        U64 upper;
        for (int i = 0; i < WIDTH / 8; ++i) upper[i] = i < WIDTH / 16 ? 0 : ~u64(0);
        upper &= second - first - PER / 2;
        index[0] += upper;
        index[1] += upper;
    }
    Counters counters(Purpose purpose, u32 number) const {
        const U64 c2 = U64{} + (u32(purpose) << 16 | number);
        return {{index[0], index[1]}, {index[0] >> 32, index[1] >> 32}, {c2, c2}};
    }
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

}  // namespace
}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
