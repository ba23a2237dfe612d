// Results in the engine layout against rows; CMake compiles this file once for each instruction set.
#include <stdint.h>
#include <string.h>

#include "cpu/generators.hpp"

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
    typedef Item Lanes __attribute__((vector_size(STRIP * sizeof(Item))));
#if defined(__clang__)
    low = __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    high = __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#else
    low = __builtin_shuffle(x, y, Lanes{0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23});
    high = __builtin_shuffle(x, y, Lanes{8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31});
#endif
}

// 8 columns of 16 rows: three stages leave two rows of 8 in each register.
template <class Item>
void differ_block(const Item* x, const Item* rows, int n, Item* found) {
    typedef Item Row __attribute__((vector_size(STRIP * sizeof(Item))));
    Row now[BLOCK], next[BLOCK], differ;
    memcpy(&differ, found, sizeof differ);
    memcpy(now, x, sizeof now);
    for (int stage = 0; stage < 3; ++stage) {
#pragma GCC unroll 4
        for (int i = 0; i < BLOCK / 2; ++i) weave<Row, Item>(now[i], now[i + BLOCK / 2], next[2 * i], next[2 * i + 1]);
#pragma GCC unroll 8
        for (int i = 0; i < BLOCK; ++i) now[i] = next[i];
    }
#pragma GCC unroll 8
    for (int i = 0; i < BLOCK; ++i) {
        Row other;
        memcpy(&other, rows + int64_t(2 * i) * n, sizeof other / 2);
        memcpy(reinterpret_cast<char*>(&other) + sizeof other / 2, rows + int64_t(2 * i + 1) * n, sizeof other / 2);
        differ |= now[i] ^ other;
    }
    memcpy(found, &differ, sizeof differ);
}

template <class Item>
bool agree(const Item* x, const Item* rows, int m, int n) {
    Item differ[STRIP] = {};
    for (int left = m; left > 0; left -= STRIP, x += int64_t(STRIP) * n, rows += int64_t(STRIP) * n) {
        int column = 0;
        for (; left >= STRIP && column + BLOCK <= n; column += BLOCK)
            differ_block(x + int64_t(column) * STRIP, rows + column, n, differ);
        for (int row = 0; row < STRIP && row < left; ++row)
            for (int j = column; j < n; ++j) differ[0] = Item(differ[0] | (x[j * STRIP + row] ^ rows[int64_t(row) * n + j]));
    }
    Item any = 0;
    for (Item item : differ) any = Item(any | item);
    return any == 0;
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
