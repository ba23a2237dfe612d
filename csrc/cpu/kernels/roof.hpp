// How fast this machine issues the operations that kernels are made of: what a share of the roof is a share of.
#pragma once

namespace pybind11 {
class module_;
}

namespace mmaprobe {

// Seconds for 16 lanes, register to register, all chains independent.
struct Roof {
    double fused;  // one term of a fused sum in floating point: 4 operations, and 3 of 4 times the largest of two bytes
    double lane;  // one term of a fused sum in 32-bit integers: 7 operations
    double dots;  // four products of bytes, added to 32 bits
    double other;  // one operation of decoding and rounding: integers, shifts, masks
};

using RoofFunction = Roof (*)();

#define MMAPROBE_DECLARE(build) \
    namespace build { \
    Roof measure_roof(); \
    }
MMAPROBE_DECLARE(baseline)
MMAPROBE_DECLARE(avx2)
MMAPROBE_DECLARE(avx512)
#undef MMAPROBE_DECLARE

namespace cpu {
void register_roof(pybind11::module_& m);
}

}  // namespace mmaprobe
