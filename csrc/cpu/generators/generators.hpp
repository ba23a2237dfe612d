// The native generator as the module calls it: one function, built once for each instruction set.
#pragma once
#include <stdint.h>

#include <functional>
#include <string>

namespace pybind11 {
class module_;
}

namespace mmaprobe {

struct GeneratorCall {
    const int64_t* domain;  // the integers of generators/domain.py, Domain.packed
    int family;
    uint32_t stream;
    uint64_t seed, start;
    int64_t count;
    void* out[6];  // a, b, c, scale_a, scale_b, metadata; null where absent
    int whole_m = 0, whole_n = 0;  // rows and columns of the tiles whose first ones are made; 0: of all
};

using GeneratorFunction = void (*)(const GeneratorCall&);
using Ready = std::function<void()>;
using LayoutGeneratorFunction = void (*)(const GeneratorCall&, int m, int n, int64_t step, const Ready& ready);
using RowsFunction = bool (*)(const void* x, const void* rows, int bytes, int m, int n);

// generate: separate vectors, row by row.  generate_layout: in the engine layout (tiles.hpp), `count` tiles of m rows and
// n columns from vector `start` on, or with n = 0 groups of 16 vectors; no metadata.
// generate_aimed_tiles: the same of a family's own tiles (aimed_tiles.hpp); false where the call names none.
// tile_version: the version of a family's rule for whole tiles; 0 where it has none.
// rows_agree: whether the results of one tile in the engine layout are those of m rows of n.
#define MMAPROBE_DECLARE(build) \
    namespace build { \
    void generate(const GeneratorCall& call); \
    void generate_layout(const GeneratorCall& call, int m, int n, int64_t step, const Ready& ready); \
    bool generate_aimed_tiles(const GeneratorCall& call, int m, int n, int64_t step, const Ready& ready); \
    uint32_t tile_version(int family); \
    bool rows_agree(const void* x, const void* rows, int bytes, int m, int n); \
    }
MMAPROBE_DECLARE(baseline)
MMAPROBE_DECLARE(avx2)
MMAPROBE_DECLARE(avx512)
#undef MMAPROBE_DECLARE

namespace cpu {

struct GeneratorBuild {
    GeneratorFunction vectors;
    LayoutGeneratorFunction layout;
    RowsFunction rows_agree;
};

// The named build, or the widest that this machine can run; std::invalid_argument where there is none.
const GeneratorBuild& generator_build(const std::string& name);
// std::invalid_argument where the numbers are no domain, or one of too many lanes.
void check_domain(const int64_t* domain, int64_t numbers);
void register_generators(pybind11::module_& m);

}  // namespace cpu

}  // namespace mmaprobe
