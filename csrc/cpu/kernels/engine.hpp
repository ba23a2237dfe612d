// The engine as the module calls it: one function, built once for each instruction set.
#pragma once
#include <stdint.h>

namespace pybind11 {
class module_;
}

namespace mmaprobe {

struct EngineCall {
    const int64_t* const* programs;
    void* const* outs;  // of each program
    int64_t count;      // of programs
    const void* base[6];  // a, b, c, scale_a, scale_b, random; null where absent
    int64_t row[6];       // items of each in one vector
    int64_t vectors;
    int out_bytes;  // width of one result
};

using EngineFunction = bool (*)(const EngineCall&);  // false: out of memory

namespace baseline {
bool evaluate(const EngineCall& call);
}
namespace avx2 {
bool evaluate(const EngineCall& call);
}
namespace avx512 {
bool evaluate(const EngineCall& call);
}

namespace cpu {
int cores();  // that this process may use, now: it may be bound to one
void register_engine(pybind11::module_& m);
void register_results(pybind11::module_& m);
}  // namespace cpu

}  // namespace mmaprobe
