// Transposition of strips of 16 rows, and back, by 64-byte registers.
#pragma once
#include <string.h>

#include <immintrin.h>

#include "cpu/kernels/tiles.hpp"
#include "model/types.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace wide {

constexpr int BACK = 8;  // columns turned back at once

MMAPROBE_HD __m128i load_16(const char* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }

// 16 bytes of four rows, one a lane.
MMAPROBE_HD __m512i four_rows(const char* from, i64 stride) {
    const __m512i one = _mm512_castsi128_si512(load_16(from));
    const __m512i two = _mm512_mask_broadcast_i32x4(one, 0x00F0, load_16(from + stride));
    const __m512i three = _mm512_mask_broadcast_i32x4(two, 0x0F00, load_16(from + 2 * stride));
    return _mm512_mask_broadcast_i32x4(three, 0xF000, load_16(from + 3 * stride));
}

MMAPROBE_HD void store_32(char* to, __m256i x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x); }
MMAPROBE_HD void store_16(char* to, __m128i x) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), x); }

// PARTS equal parts of a register, each `stride` bytes after the one before.
template <int PARTS>
MMAPROBE_HD void store_parts(char* to, i64 stride, __m512i x) {
    if (PARTS == 1 || stride == 64 / PARTS) {
        _mm512_storeu_si512(to, x);
    } else if (PARTS == 2) {
        store_32(to, _mm512_castsi512_si256(x));
        store_32(to + stride, _mm512_extracti64x4_epi64(x, 1));
    } else {
        store_16(to, _mm512_castsi512_si128(x));
        store_16(to + stride, _mm512_extracti32x4_epi32(x, 1));
        store_16(to + 2 * stride, _mm512_extracti32x4_epi32(x, 2));
        store_16(to + 3 * stride, _mm512_extracti32x4_epi32(x, 3));
    }
}

// 16 bytes of each of 8 rows: two columns of 8-byte items.
MMAPROBE_HD void turn_pairs(const char* from, i64 from_stride, char* to, i64 to_stride) {
    const __m512i even = four_rows(from, 2 * from_stride), odd = four_rows(from + from_stride, 2 * from_stride);
    _mm512_storeu_si512(to, _mm512_unpacklo_epi64(even, odd));
    _mm512_storeu_si512(to + to_stride, _mm512_unpackhi_epi64(even, odd));
}

// 16 bytes of each of 16 rows: their 16 / SIZE columns, 16 items each.
template <int SIZE>
MMAPROBE_HD void turn_chunk(const char* from, i64 from_stride, char* to, i64 to_stride) {
    __m512i x[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) x[i] = four_rows(from + i * from_stride, 4 * from_stride);
    const __m512i low[2] = {_mm512_unpacklo_epi32(x[0], x[1]), _mm512_unpacklo_epi32(x[2], x[3])};
    const __m512i high[2] = {_mm512_unpackhi_epi32(x[0], x[1]), _mm512_unpackhi_epi32(x[2], x[3])};
    x[0] = _mm512_unpacklo_epi64(low[0], low[1]);
    x[1] = _mm512_unpackhi_epi64(low[0], low[1]);
    x[2] = _mm512_unpacklo_epi64(high[0], high[1]);
    x[3] = _mm512_unpackhi_epi64(high[0], high[1]);  // x[i]: four bytes of every row
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        if (SIZE == 2) {
            const __m512i pairs = _mm512_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1, 30, 28,
                                                   26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
            x[i] = _mm512_permutexvar_epi16(pairs, x[i]);
        }
        if (SIZE == 1) {
            const __m512i bytes = _mm512_set4_epi32(0x0F0B0703, 0x0E0A0602, 0x0D090501, 0x0C080400);
            const __m512i blocks = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            x[i] = _mm512_permutexvar_epi32(blocks, _mm512_shuffle_epi8(x[i], bytes));
        }
        store_parts<4 / SIZE>(to + i * (4 / SIZE) * to_stride, to_stride, x[i]);
    }
}

// 8 bytes of each of 16 rows of bytes that lie one behind the other: 8 columns.
MMAPROBE_HD void turn_half_chunk(const char* from, char* to, i64 to_stride) {
    const __m512i pairs = _mm512_set4_epi32(0x0F070E06, 0x0D050C04, 0x0B030A02, 0x09010800);
    const __m512i low = _mm512_shuffle_epi8(_mm512_loadu_si512(from), pairs);
    const __m512i high = _mm512_shuffle_epi8(_mm512_loadu_si512(from + 64), pairs);
    const __m512i first = _mm512_set_epi16(59, 51, 43, 35, 27, 19, 11, 3, 58, 50, 42, 34, 26, 18, 10, 2, 57, 49, 41, 33,
                                           25, 17, 9, 1, 56, 48, 40, 32, 24, 16, 8, 0);
    const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(4));
    store_parts<4>(to, to_stride, _mm512_permutex2var_epi16(low, first, high));
    store_parts<4>(to + 4 * to_stride, to_stride, _mm512_permutex2var_epi16(low, second, high));
}

// Items of x and y by turns: of their first halves, of their second halves.
template <int SIZE>
MMAPROBE_HD __m512i weave(__m512i x, __m512i y, bool high) {
    if (SIZE == 2) {
        const __m512i by_turns = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7,
                                                  38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
        return _mm512_permutex2var_epi16(x, high ? _mm512_add_epi16(by_turns, _mm512_set1_epi16(16)) : by_turns, y);
    }
    const __m512i by_turns = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_permutex2var_epi32(x, high ? _mm512_add_epi32(by_turns, _mm512_set1_epi32(8)) : by_turns, y);
}

// 8 columns of 16 items, one behind the other: 16 rows.
template <int SIZE>
MMAPROBE_HD void turn_back(const char* from, char* to, i64 to_stride) {
    constexpr int N = BACK * STRIP * SIZE / 64, ROWS_EACH = 64 / (BACK * SIZE);
    __m512i x[N], y[N];
    memcpy(x, from, sizeof x);
    for (int stage = 0; stage < 3; ++stage) {
#pragma GCC unroll 4
        for (int i = 0; i < N / 2; ++i) {
            y[2 * i] = weave<SIZE>(x[i], x[i + N / 2], false);
            y[2 * i + 1] = weave<SIZE>(x[i], x[i + N / 2], true);
        }
#pragma GCC unroll 8
        for (int i = 0; i < N; ++i) x[i] = y[i];
    }
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) store_parts<ROWS_EACH>(to + i * ROWS_EACH * to_stride, to_stride, x[i]);
}

// What of to[column][row] = from[row][column] goes by whole registers; the columns that are done.
template <int SIZE>
MMAPROBE_HD int transpose(const char* from, i64 from_stride, int rows, int columns, char* to, i64 to_stride) {
    constexpr int N = 16 / SIZE;
    if ((SIZE == 2 || SIZE == 4) && columns == STRIP && from_stride == STRIP * SIZE && rows % BACK == 0) {
        for (int row = 0; row < rows; row += BACK)
            turn_back<SIZE == 2 ? 2 : 4>(from + row * from_stride, to + row * SIZE, to_stride);
        return columns;
    }
    constexpr int BLOCK_ROWS = SIZE == 8 ? 8 : STRIP;
    if (rows % BLOCK_ROWS) return 0;
    int column = 0;
    for (; column + N <= columns; column += N)
        for (int row = 0; row < rows; row += BLOCK_ROWS) {
            const char* source = from + row * from_stride + column * SIZE;
            char* target = to + column * to_stride + row * SIZE;
            SIZE == 8 ? turn_pairs(source, from_stride, target, to_stride)
                      : turn_chunk<SIZE == 8 ? 4 : SIZE>(source, from_stride, target, to_stride);
        }
    if (SIZE > 1 || columns != 8 || from_stride != 8) return column;
    for (int row = 0; row < rows; row += STRIP) turn_half_chunk(from + row * from_stride, to + row, to_stride);
    return columns;
}

}  // namespace wide
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
