// Sums of products whose exponents lie further apart than those of scaled binary32 numbers may: in binary64.
//
// A product of two items of 8 exponent bits, and the same times S = 2^(F - E), are exact in a binary64 for every E that
// a sum has, and no product at or below E overflows. A register of outputs takes two of numbers then.
#pragma once
#include "cpu/kernels/floats.hpp"
#include "cpu/kernels/fused_operands.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace fused {

// LANES / 2 items, of either half of a register.
MMAPROBE_HD F64s in_binary64(const Decoding d, const void* from, i64 at, int part) {
    return float_values(half(U32s(top_items(d, from, at)), part));
}

// Rows of a strip and columns of a tile.
struct Far {
    double *rows = nullptr, *columns = nullptr;  // [k][16] and [column][k]
    bool rows_read = false, columns_read = false;

    void take(Pieces& pieces, int k, size_t room) {
        pieces.take(rows, size_t(k) * ROWS);
        pieces.take(columns, size_t(k) * room);
    }
    void read_rows(const Decoding d, const void* from, i64 at, int k) {
        read(d, from, at, k * ROWS, rows);
        rows_read = true;
    }
    void read_columns(const Decoding d, const void* from, int items) {
        read(d, from, 0, items, columns);
        columns_read = true;
    }

private:
    // Up to a multiple of LANES.
    static void read(const Decoding d, const void* from, i64 at, int items, double* to) {
        for (int i = 0; i < items; i += LANES)
            for (int part = 0; part < 2; ++part) store(to + i + part * HALF, in_binary64(d, from, at + i, part));
    }
};

// Whether a register has a lane whose sum binary32 numbers do not hold.
MMAPROBE_HD bool too_far(const Fast& f, const Aligned& x, I32s offset) {
    return any_lane(where_less(splat_int(FARTHEST + f.fraction_bits), offset - x.label) & ~x.none);
}

// The sum of a step's cut products of one register; a(i, half) and b(i, half) are items.
template <class A, class B>
MMAPROBE_HD void sum_far(const Fast& f, const Aligned& x, int step, const A& a, const B& b, I32s& sum, I32s& over) {
    const I32s up = (f.fraction_bits + f.bias) - x.label;
    I32h sums[2][2] = {};
    const int piece = f.two ? step / 2 : step;
    for (int part = 0; part < 2; ++part) {
        const F64s scale = scaled(broadcast(F64s{}, 1.0), half(U32s(up), part));
        for (int i = 0; i < step; ++i) sums[i >= piece][part] += cut_integers(a(i, part) * b(i, part) * scale);
    }
    const I32s first = I32s(join(sums[0][0], sums[0][1])), second = I32s(join(sums[1][0], sums[1][1]));
    sum = first + second;
    over = f.two ? overflown(first, second, sum) : I32s{};
}

}  // namespace fused
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
