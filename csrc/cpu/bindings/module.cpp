// The native module: one register_* function a subject, each in its own file.
#include <pybind11/pybind11.h>

#include "cpu/bindings/units.hpp"
#include "cpu/kernels/engine.hpp"
#include "cpu/generators/generators.hpp"
#include "cpu/bindings/pipeline.hpp"
#include "cpu/kernels/gemm.hpp"
#include "cpu/kernels/roof.hpp"
#include "cpu/bindings/silicon.hpp"
#include "cpu/bindings/sparse.hpp"

PYBIND11_MODULE(_native, m) {
    m.doc() = "Native core of mmaprobe: engine, generators, compare, CPU instructions";
    mmaprobe::cpu::register_units(m);
    mmaprobe::cpu::register_generators(m);
    mmaprobe::cpu::register_engine(m);
    mmaprobe::cpu::register_results(m);
    mmaprobe::cpu::register_pipeline(m);
    mmaprobe::cpu::register_silicon(m);
    mmaprobe::cpu::register_roof(m);
    mmaprobe::cpu::register_sparse(m);
    mmaprobe::cpu::register_gemm(m);
}
