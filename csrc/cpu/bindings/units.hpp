#pragma once
#include <pybind11/pybind11.h>

namespace mmaprobe::cpu {
void register_units(pybind11::module_& m);
}
