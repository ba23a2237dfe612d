// silicon: a unit of this CPU beside its model, without an array of Python's.
#pragma once

namespace pybind11 {
class module_;
}

namespace mmaprobe::cpu {
void register_silicon(pybind11::module_& m);
}
