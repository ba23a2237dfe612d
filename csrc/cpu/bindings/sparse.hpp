#pragma once
#include <pybind11/pybind11.h>

namespace mmaprobe::cpu {
void register_sparse(pybind11::module_& m);
}
