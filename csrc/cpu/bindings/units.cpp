// cpu_features, cpu_identity, cpu_units, cpu_trial, cpu_run: the CPU's instructions for Python.
#include "cpu/bindings/units.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <optional>
#include <stdexcept>

#include "cpu/units/unit.hpp"

namespace py = pybind11;

namespace mmaprobe::cpu {
namespace {

const Unit& unit_of(const std::string& id) {
    const Unit* unit = find_unit(id);
    if (!unit) throw std::invalid_argument("this build has no CPU instruction " + id);
    return *unit;
}

py::list list_units() {
    py::list list;
    for (const Unit& unit : units()) {
        if (find_unit(unit.id) != &unit) continue;  // an encoding that another one stands for
        const std::string reason = missing(unit);
        list.append(py::make_tuple(unit.id, reason.empty(), reason, unit.features));
    }
    return list;
}

void check(const std::string& id, const char* name, const py::array& operand, int bytes, std::size_t count) {
    if (!(operand.flags() & py::array::c_style)) throw std::invalid_argument(id + ": " + name + " is not contiguous");
    if (static_cast<std::size_t>(operand.nbytes()) != count * bytes)
        throw std::invalid_argument(id + ": " + name + " has " + std::to_string(operand.nbytes()) +
                                    " bytes, expected " + std::to_string(count) + " times " + std::to_string(bytes));
}

void run_unit(const std::string& id, std::uint64_t control, const py::array& a, const py::array& b,
              const std::optional<py::array>& c, py::array& d) {
    const Unit& unit = unit_of(id);
    const std::size_t count = static_cast<std::size_t>(a.nbytes()) / unit.a;
    check(id, "a", a, unit.a, count);
    check(id, "b", b, unit.b, count);
    check(id, "d", d, unit.d, count);
    if (c.has_value() != (unit.c != 0))
        throw std::invalid_argument(id + ": c is " + (unit.c ? "missing" : "not taken"));
    if (c) check(id, "c", *c, unit.c, count);
    const void *pa = a.data(), *pb = b.data(), *pc = c ? c->data() : nullptr;
    void* pd = d.mutable_data();
    py::gil_scoped_release unlocked;
    run(unit, control, pa, pb, pc, pd, count);
}

int try_unit(const std::string& id) {
    const Unit& unit = unit_of(id);
    py::gil_scoped_release unlocked;
    return trial(unit);
}

}  // namespace

void register_units(py::module_& m) {
    m.def("cpu_features", &features, "Instruction-set features that the CPU and the operating system both have.");
    m.def("cpu_identity", &identity, "What the CPU tells of itself, as (key, value) pairs.");
    m.def("cpu_units", &list_units, "Every instruction of this build: (id, available, reason, features).");
    m.def("cpu_trial", &try_unit, py::arg("id"),
          "Execute an instruction once in a forked child: 0, or the signal that ended the child.");
    m.def("cpu_run", &run_unit, py::arg("id"), py::arg("control"), py::arg("a"), py::arg("b"), py::arg("c"),
          py::arg("d"),
          "Execute an instruction on contiguous arrays of bit patterns under a control register value (low half) "
          "and bits of FPMR (high half).");
    m.attr("cpu_default_control") = default_control;
}

}  // namespace mmaprobe::cpu
