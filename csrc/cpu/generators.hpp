// The native generator as the module calls it: one function, built once for each instruction set.
#pragma once
#include <stdint.h>

namespace pybind11 {
class module_;
}

namespace mmaprobe {

struct GeneratorCall {
    const int64_t* target;  // the integers of generators/space.py, Target.packed
    int family;
    uint32_t stream;
    uint64_t seed, start;
    int64_t count;
    void* out[6];  // a, b, c, scale_a, scale_b, metadata; null where absent
};

using GeneratorFunction = void (*)(const GeneratorCall&);

namespace baseline {
void generate(const GeneratorCall& call);
}
namespace avx2 {
void generate(const GeneratorCall& call);
}
namespace avx512 {
void generate(const GeneratorCall& call);
}

namespace cpu {
void register_generators(pybind11::module_& m);
}

}  // namespace mmaprobe
