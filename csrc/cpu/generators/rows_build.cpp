// Results in the engine layout against rows; CMake compiles this file once for each instruction set.
#include <stdint.h>
#include <string.h>

#include "cpu/generators/generators.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#ifndef MMAPROBE_BUILD
#define MMAPROBE_BUILD baseline
#endif

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace {

constexpr int STRIP = 16;  // rows of a strip
constexpr int BLOCK = 8;   // columns turned at once

// The next stage of turning columns into rows: items of x and y by turns, of 16 each.
template <class Row, class Item>
inline void weave(const Row& x, const Row& y, Row& low, Row& high) {
#if defined(__clang__)
    low = __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    high = __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#else
    typedef Item Lanes __attribute__((vector_size(STRIP * sizeof(Item))));
    low = __builtin_shuffle(x, y, Lanes{0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23});
    high = __builtin_shuffle(x, y, Lanes{8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31});
#endif
}

// 8 items from each of two places.  (Two copies into one register's memory would wait for each other.)
template <class Row, class Item>
inline void two_rows(const Item* first, const Item* second, Row& out) {
#if defined(__AVX512F__)
    if (sizeof(Row) == 64) {
        const __m256i low = _mm256_loadu_si256((const __m256i*)first),
                      high = _mm256_loadu_si256((const __m256i*)second);
        const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
        memcpy(&out, &both, sizeof both);
        return;
    }
#endif
#if defined(__AVX2__)
    if (sizeof(Row) == 32) {
        const __m128i low = _mm_loadu_si128((const __m128i*)first), high = _mm_loadu_si128((const __m128i*)second);
        const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
        memcpy(&out, &both, sizeof both);
        return;
    }
#endif
    memcpy(&out, first, sizeof out / 2);
    memcpy(reinterpret_cast<char*>(&out) + sizeof out / 2, second, sizeof out / 2);
}

// Where 8 columns of 16 rows differ from the rows: three stages leave two rows of 8 in each register.
template <class Row, class Item>
inline __attribute__((always_inline)) void differ_block(const Item* x, const Item* rows, int n, Row& differ) {
    Row now[BLOCK], next[BLOCK];
    memcpy(now, x, sizeof now);
#pragma GCC unroll 3
    for (int stage = 0; stage < 3; ++stage) {
#pragma GCC unroll 4
        for (int i = 0; i < BLOCK / 2; ++i) weave<Row, Item>(now[i], now[i + BLOCK / 2], next[2 * i], next[2 * i + 1]);
#pragma GCC unroll 8
        for (int i = 0; i < BLOCK; ++i) now[i] = next[i];
    }
#pragma GCC unroll 8
    for (int i = 0; i < BLOCK; ++i) {
        Row other;
        two_rows(rows + int64_t(2 * i) * n, rows + int64_t(2 * i + 1) * n, other);
        differ |= now[i] ^ other;
    }
}

// The columns from `column` on, of the first `count` rows.
template <class Item>
bool items_agree(const Item* x, const Item* rows, int count, int column, int n) {
    Item differ = 0;
    for (int row = 0; row < count; ++row)
        for (int j = column; j < n; ++j) differ = Item(differ | (x[j * STRIP + row] ^ rows[int64_t(row) * n + j]));
    return differ == 0;
}

template <class Item>
bool agree(const Item* x, const Item* rows, int m, int n) {
    typedef Item Row __attribute__((vector_size(STRIP * sizeof(Item))));
    const int turned = n / BLOCK * BLOCK;  // columns
    Row differ = {};
    bool same = true;
    for (int left = m; left > 0; left -= STRIP, x += int64_t(STRIP) * n, rows += int64_t(STRIP) * n) {
        const int whole = left >= STRIP ? turned : 0;
        for (int column = 0; column < whole; column += BLOCK)
            differ_block<Row, Item>(x + int64_t(column) * STRIP, rows + column, n, differ);
        if (whole < n) same &= items_agree(x, rows, left < STRIP ? left : STRIP, whole, n);
    }
    Item any = 0;
    for (int i = 0; i < STRIP; ++i) any = Item(any | differ[i]);
    return same && any == 0;
}

}  // namespace

bool rows_agree(const void* x, const void* rows, int bytes, int m, int n) {
    switch (bytes) {
        case 1: return agree(static_cast<const uint8_t*>(x), static_cast<const uint8_t*>(rows), m, n);
        case 2: return agree(static_cast<const uint16_t*>(x), static_cast<const uint16_t*>(rows), m, n);
        case 4: return agree(static_cast<const uint32_t*>(x), static_cast<const uint32_t*>(rows), m, n);
        default: return agree(static_cast<const uint64_t*>(x), static_cast<const uint64_t*>(rows), m, n);
    }
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
