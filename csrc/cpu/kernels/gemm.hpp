// A matrix product by a schedule: operations on blocks of D, one after the other (models/gemm_program.py writes them).
//
// A block is up to MOST_ROWS x MOST_COLUMNS elements of D, in rows and columns that need not lie together. Its values
// are in the engine layout (tiles.hpp), on a stack:
//
//   ZERO     pushes +0
//   LOAD_C   pushes the elements of C
//   CHAIN    adds products to the topmost one after the other, by fma or (rounded) each rounded before
//   STEPS    what an engine program makes of the topmost as its C; pushes where it is fresh, the program then without C
//   ADD      two become their sum, by an engine program of fma(x, 1, y), or the processor's own
//   CONVERT  the topmost in another format, by an engine program of x 1, or the processor's own
//
// Product t of CHAIN and STEPS, skip <= t < skip + count, is that of k = first + t / run stride + t mod run; from `end`
// on it is of zeros. `order`: where STEPS has others in its steps of `size` products, t is in place of another of them.
// CHAIN pushes, too, where it is fresh: it begins from +0, or (product) with its first product, rounded.
//
// The processor's own operations are IEEE's, to nearest even; every NaN of theirs is made the quiet one.
#pragma once
#include <stdint.h>

#include <atomic>

namespace pybind11 {
class module_;
}

// clang-format off
#define MMAPROBE_GEMM_OPERATIONS(X) X(ZERO) X(LOAD_C) X(CHAIN) X(STEPS) X(ADD) X(CONVERT)
#define MMAPROBE_GEMM_OPERATION(X) \
    X(operation) X(program) X(bytes) X(one) X(fresh) X(product) X(rounded) X(first) X(run) X(stride) X(skip) X(count) \
    X(end) X(size) X(order)
// clang-format on

namespace mmaprobe {

struct GemmOperand {
    const char* base;  // null where absent
    int64_t row, column;  // bytes from one row, one column, to the next
    int bytes;
    const void*
        values;  // of CHAIN: each code's value, in binary32 or binary64; null: a code of 4 or 8 bytes is its own
};

struct GemmCall {
    const int64_t* operations;  // rows of MMAPROBE_GEMM_OPERATION
    int64_t count;
    const int64_t* const* programs;
    const int64_t* order;  // of a step's products
    GemmOperand a, b, c;
    char* d;
    int64_t d_row, d_column;
    int d_bytes;
    const int64_t *rows, *columns;  // of D
    int64_t m, n;
    int depth;  // of the stack
    int chained;  // bytes of CHAIN's numbers; 0: there is none
    int64_t most_rows, most_columns;  // of a block
};

// The blocks of a call, counted by rows, that `next` gives; false: out of memory.
using GemmFunction = bool (*)(const GemmCall& call, std::atomic<int64_t>& next);

#define MMAPROBE_DECLARE(build) \
    namespace build { \
    bool gemm_blocks(const GemmCall& call, std::atomic<int64_t>& next); \
    }
MMAPROBE_DECLARE(baseline)
MMAPROBE_DECLARE(avx2)
MMAPROBE_DECLARE(avx512)
#undef MMAPROBE_DECLARE

namespace cpu {
void register_gemm(pybind11::module_& m);
}  // namespace cpu

}  // namespace mmaprobe
