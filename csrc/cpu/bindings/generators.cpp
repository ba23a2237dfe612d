// Generators on NumPy arrays: picks the build for this machine, releases the GIL.
#include "cpu/generators/generators.hpp"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cpu/bindings/builds.hpp"
#include "model/families.hpp"

namespace py = pybind11;

namespace mmaprobe::cpu {
namespace {

constexpr int64_t DOMAIN_NUMBERS = 85, DOMAIN_K = 70;  // five formats of 14 numbers, then K first of the other 15
constexpr int64_t MOST_LANES = 512;                    // a tile holds as many

// The builds that are here and that this machine can run, the widest last.
std::map<std::string, GeneratorBuild> builds() {
    std::map<std::string, GeneratorBuild> out{
        {"baseline", {baseline::generate, baseline::generate_layout, baseline::rows_agree}}};
#if defined(MMAPROBE_HAS_BUILD_avx2)
    if (cpu::runs("avx2")) out["avx2"] = {avx2::generate, avx2::generate_layout, avx2::rows_agree};
#endif
#if defined(MMAPROBE_HAS_BUILD_avx512)
    if (cpu::runs("avx512")) out["avx512"] = {avx512::generate, avx512::generate_layout, avx512::rows_agree};
#endif
    return out;
}

std::vector<std::string> build_names() {
    std::vector<std::string> names;
    for (const char* name : {"baseline", "avx2", "avx512"})
        if (builds().count(name)) names.push_back(name);
    return names;
}

// Every family with the version of its rule, by number: what generators/families.py must agree with.
std::vector<std::pair<std::string, int>> versions() {
#define MMAPROBE_QUOTE(name, version) {#name, version},
    return {MMAPROBE_FAMILIES(MMAPROBE_QUOTE)};
#undef MMAPROBE_QUOTE
}

// Families that make whole tiles by a rule of their own, with its version.
std::vector<std::pair<std::string, int>> tile_versions() {
    std::vector<std::pair<std::string, int>> found;
    const auto every = versions();
    for (size_t family = 0; family < every.size(); ++family)
        if (const uint32_t version = baseline::tile_version(int(family)))
            found.emplace_back(every[family].first, version);
    return found;
}

using Numbers = py::array_t<int64_t, py::array::c_style>;

GeneratorCall read_call(const Numbers& domain, int family, uint32_t stream, uint64_t seed, uint64_t start,
                        int64_t count, const std::vector<py::object>& outputs) {
    check_domain(domain.data(), domain.size());
    GeneratorCall call{domain.data(), family, stream, seed, start, count, {}};
    for (size_t i = 0; i < outputs.size() && i < 6; ++i)
        if (!outputs[i].is_none()) {
            auto array = py::cast<py::array>(outputs[i]);
            if (!(array.flags() & py::array::c_style)) throw std::invalid_argument("outputs must be contiguous");
            call.out[i] = array.mutable_data();
        }
    return call;
}

// Fills the arrays (a, b, c, scale_a, scale_b, metadata; None where absent) with vectors start .. start + count - 1.
void generate(const Numbers& domain, int family, uint32_t stream, uint64_t seed, uint64_t start, int64_t count,
              const std::vector<py::object>& outputs, const std::string& build) {
    const GeneratorCall call = read_call(domain, family, stream, seed, start, count, outputs);
    const GeneratorFunction run = generator_build(build).vectors;
    py::gil_scoped_release release;
    run(call);
}

// Fills the arrays (a, b, c, scale_a, scale_b) with `count` tiles, or with n = 0 vectors, in the engine layout.
void generate_layout(const Numbers& domain, int family, uint32_t stream, uint64_t seed, uint64_t start, int64_t count,
                     int m, int n, const std::vector<py::object>& outputs, const std::string& build, int whole_m,
                     int whole_n) {
    GeneratorCall call = read_call(domain, family, stream, seed, start, count, outputs);
    call.whole_m = whole_m;
    call.whole_n = whole_n;
    const LayoutGeneratorFunction run = generator_build(build).layout;
    py::gil_scoped_release release;
    run(call, m, n, count > 0 ? count : 1, [] {});
}

}  // namespace

const GeneratorBuild& generator_build(const std::string& name) {
    static const auto known = builds();
    static const std::string widest = build_names().back();
    const auto found = known.find(name.empty() ? widest : name);
    if (found == known.end()) throw std::invalid_argument("no generator build " + name + " here");
    return found->second;
}

void check_domain(const int64_t* domain, int64_t numbers) {
    if (numbers != DOMAIN_NUMBERS || domain[DOMAIN_K] > MOST_LANES)
        throw std::invalid_argument("domain is not one of Domain.packed with K of at most 512");
}

void register_generators(py::module_& m) {
    m.def("generate", &generate, py::arg("domain"), py::arg("family"), py::arg("stream"), py::arg("seed"),
          py::arg("start"), py::arg("count"), py::arg("outputs"), py::arg("build") = "");
    m.def("generate_layout", &generate_layout, py::arg("domain"), py::arg("family"), py::arg("stream"), py::arg("seed"),
          py::arg("start"), py::arg("count"), py::arg("m"), py::arg("n"), py::arg("outputs"), py::arg("build") = "",
          py::arg("whole_m") = 0, py::arg("whole_n") = 0);
    m.def("generator_builds", &build_names);
    m.def("tile_versions", &tile_versions, "Families with a rule of their own for whole tiles, and its versions.");
    m.def("generator_versions", &versions, "Families of vectors with the versions of their rules.");
}

}  // namespace mmaprobe::cpu
