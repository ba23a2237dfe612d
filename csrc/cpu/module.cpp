// The native module: one register_* function a subject, each in its own file.
#include <pybind11/pybind11.h>

#include "cpu/bind_units.hpp"
#include "cpu/engine.hpp"
#include "cpu/generators.hpp"
#include "cpu/pipeline.hpp"
#include "cpu/roof.hpp"
#include "cpu/sparse.hpp"

PYBIND11_MODULE(_native, m) {
  m.doc() = "Native core of mmaprobe: engine, generators, compare, CPU instructions";
  mmaprobe::cpu::register_units(m);
  mmaprobe::cpu::register_generators(m);
  mmaprobe::cpu::register_engine(m);
  mmaprobe::cpu::register_results(m);
  mmaprobe::cpu::register_pipeline(m);
  mmaprobe::cpu::register_roof(m);
  mmaprobe::cpu::register_sparse(m);
}
