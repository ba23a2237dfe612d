// The device form of the generators: a thread's share of one vector of any family in its present version.
//
// Put takes the items, each from one of the threads: bool wants_a(), wants_b() (whether that operand's items and scales
// are needed), a(k, code) with k of the live lanes, b(k, code) with k of all K, c(code), scale_a(g, code),
// scale_b(g, code), metadata(chunk, item) (wanted as a is).  The domain is a constant of the source that includes this
// (toolchain/generator_forms.py), so that the compiler drops what an instruction lacks.
#pragma once
#include "aimed.hpp"
#include "streams.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {

// Puts the items of vector `index` that thread `part` of `parts` makes; `family` is one that the instruction has.
template <class Put>
MMAPROBE_HD void make_vector(const Domain& t, i32 family, const Stream& stream, u64 index, int part, int parts,
                             Put& put) {
    if (family == UNIFORM) return make_uniform(t, stream, index, part, parts, put);
    if (family >= CODES) return make_circuit(t, family, stream, index, part, parts, put);
    if (!t.a.is_float) return make_integers(t, family, stream, index, part, parts, put);
    if (family == CLUSTERED) return make_clustered(t, stream, index, part, parts, put);
    make_aimed(t, family, stream, index, part, parts, put);
}

}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
