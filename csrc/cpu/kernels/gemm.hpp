// A matrix product by a schedule: operations on blocks of D, one after the other (models/gemm_program.py writes them).
//
// A block is up to MOST_ROWS x MOST_COLUMNS elements of D, in rows and columns that need not lie together. Its values
// are in the engine layout (tiles.hpp), on a stack:
//
//   CONSTANT pushes a code
//   LOAD     pushes what an input has for the elements, `first` rows and `skip` columns on: C, a bias, a scale
//   CHAIN    adds products to the topmost one after the other, by fma or (rounded) each rounded before
//   STEPS    what an engine program makes of the topmost as its C; pushes where it is fresh, the program then without C
//   ADD      two become their sum, by an engine program of fma(x, 1, y), or the processor's own
//   MULTIPLY, FMA, MAXIMUM, MINIMUM  two or three become one likewise, the last two by the processor alone;
//            FMA_ONTO, z + x y where FMA is x y + z
//   CONVERT  the topmost in another format, by an engine program of x 1, or the processor's own
//   AMAX     the largest size, as a code, that the topmost has in the elements; it stays
//   DROP     takes the topmost away
//
// Product t of CHAIN and STEPS, skip <= t < skip + count, is that of k = first + t / run stride + t mod run; from `end`
// on it is of zeros. `order`: where STEPS has others in its steps of `size` products, t is in place of another of them.
// CHAIN pushes, too, where it is fresh: it begins from +0, or (product) with its first product, rounded.
//
// `code` is the one that CONSTANT pushes, that of 1 where programs add and convert, the bits of a size for AMAX; `number`
// is that of an input, or of a size in `largest`.
//
// The processor's own operations are IEEE's, to nearest even; every NaN of theirs is made the quiet one.
#pragma once
#include <stdint.h>

#include <atomic>

namespace pybind11 {
class module_;
}

// clang-format off
#define MMAPROBE_GEMM_OPERATIONS(X) X(CONSTANT) X(LOAD) X(CHAIN) X(STEPS) X(ADD) X(MULTIPLY) X(FMA) X(FMA_ONTO) \
    X(MAXIMUM) X(MINIMUM) X(CONVERT) X(AMAX) X(DROP)
#define MMAPROBE_GEMM_OPERATION(X) \
    X(operation) X(program) X(bytes) X(code) X(number) X(propagates) X(fresh) X(product) X(rounded) X(first) \
    X(run) X(stride) X(skip) X(count) X(end) X(size) X(order)
// clang-format on

namespace mmaprobe {

struct GemmOperand {
    const char* base;
    int64_t row, column;  // bytes from one row, one column, to the next
    int bytes;
    const int64_t *rows, *columns;  // where it has those of D; null: they are those of K
    int64_t down, across;  // of both as many as there are
    const void* values;  // of CHAIN: each code's, in binary32 or binary64; null: a code of 4 or 8 bytes is its own
};

struct GemmCall {
    const int64_t* operations;  // rows of MMAPROBE_GEMM_OPERATION
    int64_t count;
    const int64_t* const* programs;
    const int64_t* order;  // of a step's products
    GemmOperand a, b, d;
    const GemmOperand* inputs;
    std::atomic<uint64_t>* largest;
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
