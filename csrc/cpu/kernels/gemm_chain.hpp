// Chains of products of a block, held in registers: columns times registers of rows.
#pragma once
#include <type_traits>

#include "cpu/kernels/floats.hpp"
#include "cpu/kernels/registers.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace gemm {

// Registers of rows and columns of a tile: with their factors and one more they fill the registers that there are.
#if defined(__AVX512F__)
constexpr int TILE_REGISTERS = 2, TILE_COLUMNS = 12;
#elif defined(__aarch64__)
constexpr int TILE_REGISTERS = 4, TILE_COLUMNS = 6;
#elif defined(__AVX2__)
constexpr int TILE_REGISTERS = 2, TILE_COLUMNS = 6;
#else
constexpr int TILE_REGISTERS = 2, TILE_COLUMNS = 4;
#endif
constexpr int TILE_ROWS = 2 * STRIP;  // of which every number of registers is a part

template <class T>
struct Numbers;
template <>
struct Numbers<float> {
    using Register = F32s;
    static constexpr int WIDTH = LANES;
};
template <>
struct Numbers<double> {
    using Register = F64s;
    static constexpr int WIDTH = HALF;
};

#if defined(MMAPROBE_HAS_FMA)
template <class V>
MMAPROBE_HD V link(V x, V y, V z) {
    return fused_multiply(x, y, z);
}
#else
MMAPROBE_HD F32s link(F32s x, F32s y, F32s z) {
    for (int i = 0; i < LANES; ++i) z[i] = __builtin_fmaf(x[i], y[i], z[i]);
    return z;
}
MMAPROBE_HD F64s link(F64s x, F64s y, F64s z) {
    for (int i = 0; i < HALF; ++i) z[i] = __builtin_fma(x[i], y[i], z[i]);
    return z;
}
#endif

template <class T>
T quiet_nan() {
    return std::is_same_v<T, float> ? T(__builtin_nanf("")) : T(__builtin_nan(""));
}

// What a chain works on: a [strip][k][16], b [column][k], values [strip][column][16].
template <class T>
struct ChainBlock {
    const T *a, *b;
    T* values;
    i64 strips, columns, k;  // an even number of strips, whole tiles of columns
    bool fresh, product;
};

template <class T, bool ROUNDED>
MMAPROBE_HD void chain_tile(const ChainBlock<T>& block, i64 row, i64 column) {
    using V = typename Numbers<T>::Register;
    constexpr int WIDTH = Numbers<T>::WIDTH;
    const T *a[TILE_REGISTERS], *b = block.b + column * block.k;
    T* to[TILE_REGISTERS];
#pragma GCC unroll 4
    for (int v = 0; v < TILE_REGISTERS; ++v) {
        const i64 at = row + v * WIDTH, strip = at / STRIP, lane = at % STRIP;
        a[v] = block.a + strip * block.k * STRIP + lane;
        to[v] = block.values + (strip * block.columns + column) * STRIP + lane;
    }
    V sums[TILE_REGISTERS][TILE_COLUMNS];
    i64 k = 0;
#pragma GCC unroll 4
    for (int v = 0; v < TILE_REGISTERS; ++v)
#pragma GCC unroll 12
        for (int n = 0; n < TILE_COLUMNS; ++n) {
            if (!block.fresh)
                sums[v][n] = load<V>(to[v] + n * STRIP);
            else if (block.product)
                sums[v][n] = load<V>(a[v]) * broadcast(V{}, b[n * block.k]);
            else
                sums[v][n] = V{};
        }
    for (k = block.fresh && block.product; k < block.k; ++k) {
        V x[TILE_REGISTERS];
#pragma GCC unroll 4
        for (int v = 0; v < TILE_REGISTERS; ++v) x[v] = load<V>(a[v] + k * STRIP);
#pragma GCC unroll 12
        for (int n = 0; n < TILE_COLUMNS; ++n) {
            const V y = broadcast(V{}, b[n * block.k + k]);
#pragma GCC unroll 4
            for (int v = 0; v < TILE_REGISTERS; ++v)
                sums[v][n] = ROUNDED ? sums[v][n] + x[v] * y : link(x[v], y, sums[v][n]);
        }
    }
    const V nan = broadcast(V{}, quiet_nan<T>());
#pragma GCC unroll 4
    for (int v = 0; v < TILE_REGISTERS; ++v)
#pragma GCC unroll 12
        for (int n = 0; n < TILE_COLUMNS; ++n) {
            const V sum = sums[v][n];
            store(to[v] + n * STRIP, sum == sum ? sum : nan);
        }
}

template <class T, bool ROUNDED>
void chain_tiles(const ChainBlock<T>& block) {
    constexpr int ROWS_OF_TILE = TILE_REGISTERS * Numbers<T>::WIDTH;
    for (i64 column = 0; column < block.columns; column += TILE_COLUMNS)
        for (i64 row = 0; row < block.strips * STRIP; row += ROWS_OF_TILE) chain_tile<T, ROUNDED>(block, row, column);
}

}  // namespace gemm
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
