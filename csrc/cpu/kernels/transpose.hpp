// Transposition of small matrices of 1, 2, 4 or 8 byte items by 16-byte registers.
#pragma once
#include <string.h>

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__)
#include <immintrin.h>
#endif

#include "model/types.hpp"
#if defined(__AVX512BW__)
#include "cpu/kernels/transpose_wide.hpp"
#endif

namespace mmaprobe {
namespace MMAPROBE_BUILD {

#if defined(__aarch64__)
typedef uint8x16_t Register16;
template <int SIZE>
MMAPROBE_HD Register16 zip_low(Register16 x, Register16 y) {
    if (SIZE == 1) return vzip1q_u8(x, y);
    if (SIZE == 2) return Register16(vzip1q_u16(uint16x8_t(x), uint16x8_t(y)));
    if (SIZE == 4) return Register16(vzip1q_u32(uint32x4_t(x), uint32x4_t(y)));
    return Register16(vzip1q_u64(uint64x2_t(x), uint64x2_t(y)));
}
template <int SIZE>
MMAPROBE_HD Register16 zip_high(Register16 x, Register16 y) {
    if (SIZE == 1) return vzip2q_u8(x, y);
    if (SIZE == 2) return Register16(vzip2q_u16(uint16x8_t(x), uint16x8_t(y)));
    if (SIZE == 4) return Register16(vzip2q_u32(uint32x4_t(x), uint32x4_t(y)));
    return Register16(vzip2q_u64(uint64x2_t(x), uint64x2_t(y)));
}
#else
typedef __m128i Register16;
template <int SIZE>
MMAPROBE_HD Register16 zip_low(Register16 x, Register16 y) {
    if (SIZE == 1) return _mm_unpacklo_epi8(x, y);
    if (SIZE == 2) return _mm_unpacklo_epi16(x, y);
    if (SIZE == 4) return _mm_unpacklo_epi32(x, y);
    return _mm_unpacklo_epi64(x, y);
}
template <int SIZE>
MMAPROBE_HD Register16 zip_high(Register16 x, Register16 y) {
    if (SIZE == 1) return _mm_unpackhi_epi8(x, y);
    if (SIZE == 2) return _mm_unpackhi_epi16(x, y);
    if (SIZE == 4) return _mm_unpackhi_epi32(x, y);
    return _mm_unpackhi_epi64(x, y);
}
#endif

// One stage of the perfect shuffle that transposes N registers of N items.
template <int SIZE, int N>
MMAPROBE_HD void shuffle_stage(const Register16* from, Register16* to) {
#pragma GCC unroll 8
    for (int i = 0; i < N / 2; ++i) {
        to[2 * i] = zip_low<SIZE>(from[i], from[i + N / 2]);
        to[2 * i + 1] = zip_high<SIZE>(from[i], from[i + N / 2]);
    }
}

template <int SIZE, int N>
MMAPROBE_HD const Register16* transposed(Register16* x, Register16* y) {
    shuffle_stage<SIZE, N>(x, y);
    if (N > 2) shuffle_stage<SIZE, N>(y, x);
    if (N > 4) shuffle_stage<SIZE, N>(x, y);
    if (N > 8) shuffle_stage<SIZE, N>(y, x);
    return N == 4 || N == 16 ? x : y;
}

// A block at the edge: `rows` and `columns` of it are there.
template <int SIZE>
MMAPROBE_CALL void transpose_edge(const char* from, i64 from_stride, int rows, int columns, const char* end, char* to,
                                  i64 to_stride, bool spill) {
    constexpr int N = 16 / SIZE;
    Register16 x[N], y[N];
    for (int i = 0; i < N; ++i) {
        const char* at = from + (i < rows ? i : rows - 1) * from_stride;
        memset(&x[i], 0, 16);
        memcpy(&x[i], at, at + 16 <= end ? size_t(16) : size_t(columns * SIZE));
    }
    const Register16* out = transposed<SIZE, N>(x, y);
    for (int j = 0; j < columns; ++j) memcpy(to + j * to_stride, &out[j], spill ? size_t(16) : size_t(rows * SIZE));
}

// A block of rows of 8 bytes: the first stage leaves half as many registers.
template <int SIZE>
MMAPROBE_HD void transpose_half(const char* from, i64 from_stride, char* to, i64 to_stride) {
    constexpr int N = SIZE < 8 ? 16 / SIZE : 4;
    Register16 x[N / 2], y[N / 2];
#pragma GCC unroll 8
    for (int i = 0; i < N / 2; ++i) {
        Register16 row = {}, other = {};
        memcpy(&row, from + i * from_stride, 8);
        memcpy(&other, from + (i + N / 2) * from_stride, 8);
        x[i] = zip_low<SIZE>(row, other);
    }
    const Register16* out = transposed<SIZE, N / 2>(x, y);
#pragma GCC unroll 8
    for (int j = 0; j < N / 2; ++j) memcpy(to + j * to_stride, &out[j], 16);
}

// N registers of rows that lie one behind the other, a power of two of them; so do the columns.
template <int SIZE, int N>
MMAPROBE_HD void transpose_small(const char* from, int rows, char* to) {
    Register16 x[N], y[N];
    memcpy(x, from, sizeof x);
    for (; rows > 1; rows >>= 1) {
        if (N == 1)
            y[0] = zip_low<SIZE>(x[0], zip_high<8>(x[0], x[0]));
        else
            shuffle_stage<SIZE, N>(x, y);
        memcpy(x, y, sizeof x);
    }
    memcpy(to, x, sizeof x);
}

// Matrices of a few registers; false where this is none.
template <int SIZE>
MMAPROBE_HD bool transpose_small(const char* from, i64 from_stride, int rows, int columns, char* to, i64 to_stride) {
    const int bytes = rows * columns * SIZE;
    if (bytes > 64 || from_stride != columns * SIZE || to_stride != rows * SIZE || (rows & (rows - 1))) return false;
    if (bytes == 16) return transpose_small<SIZE, 1>(from, rows, to), true;
    if (bytes == 32) return transpose_small<SIZE, 2>(from, rows, to), true;
    if (bytes == 64) return transpose_small<SIZE, 4>(from, rows, to), true;
    return false;
}

// to[column][row] = from[row][column]; strides in bytes. Nothing at or after `end` is read; where `spill`, a row of
// `to` that is shorter than a register may be written over its end (into the next, before that is written itself).
template <int SIZE>
MMAPROBE_CALL void transpose(const char* from, i64 from_stride, int rows, int columns, const char* end, char* to,
                             i64 to_stride, bool spill) {
    constexpr int N = 16 / SIZE;
    if (transpose_small<SIZE>(from, from_stride, rows, columns, to, to_stride)) return;
    int column = 0;
#if defined(__AVX512BW__)
    column = wide::transpose<SIZE>(from, from_stride, rows, columns, to, to_stride);
#endif
    for (; column < columns; column += N)
        for (int row = 0; row < rows; row += N) {
            const char* source = from + row * from_stride + column * SIZE;
            char* target = to + column * to_stride + row * SIZE;
            if (SIZE < 8 && row + N <= rows && columns - column == N / 2) {
                transpose_half<SIZE>(source, from_stride, target, to_stride);
                continue;
            }
            if (row + N > rows || column + N > columns) {
                transpose_edge<SIZE>(source, from_stride, int(smaller(N, rows - row)),
                                     int(smaller(N, columns - column)), end, target, to_stride,
                                     row + N <= rows || (spill && rows <= N));
                continue;
            }
            Register16 x[N], y[N];
#pragma GCC unroll 16
            for (int i = 0; i < N; ++i) memcpy(&x[i], source + i * from_stride, 16);
            const Register16* out = transposed<SIZE, N>(x, y);
#pragma GCC unroll 16
            for (int j = 0; j < N; ++j) memcpy(target + j * to_stride, &out[j], 16);
        }
}

MMAPROBE_CALL void transpose(i64 size, const char* from, i64 from_stride, int rows, int columns, const char* end,
                             char* to, i64 to_stride, bool spill) {
    switch (size) {
        case 1: return transpose<1>(from, from_stride, rows, columns, end, to, to_stride, spill);
        case 2: return transpose<2>(from, from_stride, rows, columns, end, to, to_stride, spill);
        case 4: return transpose<4>(from, from_stride, rows, columns, end, to, to_stride, spill);
        default: return transpose<8>(from, from_stride, rows, columns, end, to, to_stride, spill);
    }
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
