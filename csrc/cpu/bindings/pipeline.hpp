// Generate, evaluate and compare without leaving the cache: what a validation does between two models, or between a
// model and the answers of a device.
#pragma once
#include <stdint.h>

#include <vector>

#include "cpu/generators/generators.hpp"
#include "cpu/kernels/tiles.hpp"

namespace mmaprobe {

struct PipelineCall {
    GeneratorCall vectors;  // `count` tiles of m rows and n columns, or with n = 0 separate vectors; no outputs
    int m, n;
    const int64_t* programs[2];
    int program_count;
    const void* answers;  // with one program: results [tile][m][n], or [vector]
    int64_t limit;        // of the places that are kept
    bool any_nan;         // two NaNs are equal
};

struct PipelineResult {
    int64_t mismatches = 0;
    std::vector<int64_t> places;  // the first ones, as indices into results [tile][m][n], or [vector]
};

// Throws std::bad_alloc.
PipelineResult run_pipeline(const PipelineCall& call, const cpu::GeneratorBuild& generator, const EngineBuild& engine);

namespace cpu {
void register_pipeline(pybind11::module_& m);
}

}  // namespace mmaprobe
