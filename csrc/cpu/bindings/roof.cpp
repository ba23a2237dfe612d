// The roof of a build, for Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <string>

#include "cpu/kernels/roof.hpp"
#include "cpu/kernels/tiles.hpp"

namespace py = pybind11;

namespace mmaprobe {
namespace {

// Seconds an operation by name, of the named build or the fastest here; takes a few milliseconds.
std::map<std::string, double> roof(const std::string& build) {
    RoofFunction measure = baseline::measure_roof;
    const std::string name = engine_build(build).name;
#if defined(MMAPROBE_HAS_BUILD_avx2)
    if (name == "avx2") measure = avx2::measure_roof;
#endif
#if defined(MMAPROBE_HAS_BUILD_avx512)
    if (name == "avx512") measure = avx512::measure_roof;
#endif
    py::gil_scoped_release release;
    const Roof found = measure();
    return {{"fused", found.fused}, {"lane", found.lane}, {"dots", found.dots}, {"other", found.other}};
}

#if defined(__clang__)
constexpr const char* COMPILER = "clang " __clang_version__;
#else
constexpr const char* COMPILER = "gcc " __VERSION__;
#endif

}  // namespace

void cpu::register_roof(py::module_& m) {
    m.def("roof", &roof, py::arg("build") = "",
          "Seconds for 16 lanes of each operation mix that kernels are made of, measured in registers.");
    m.attr("compiler") = COMPILER;
}

}  // namespace mmaprobe
