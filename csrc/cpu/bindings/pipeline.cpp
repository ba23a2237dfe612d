// Pieces of a few tiles: generated in the engine layout, evaluated, compared.
#include "cpu/bindings/pipeline.hpp"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "cpu/bindings/pipeline_compare.hpp"
#include "cpu/bindings/pipeline_units.hpp"
#include "cpu/kernels/program_check.hpp"

namespace py = pybind11;

namespace mmaprobe {
namespace {

constexpr int64_t PIECE = 1 << 17;  // bytes of operands and results: well within the second cache

// An array whose first item lies on a cache line.
class Buffer {
    std::vector<char> bytes;
    char* first = nullptr;

public:
    explicit Buffer(int64_t size) : bytes(size ? size_t(size) + 127 : 0) {
        if (size) first = bytes.data() + (64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64) % 64;
    }
    char* data() const { return first; }
};

}  // namespace

PipelineResult run_pipeline(const PipelineCall& call, const cpu::GeneratorBuild& generator, const EngineBuild& engine) {
    PipelineResult result;
    const Unit unit(call.programs[0], call.vectors.domain, call.m, call.n);
    const int64_t step = PIECE / unit.bytes() > 1 ? PIECE / unit.bytes() : 1;
    const int64_t total = call.n ? call.vectors.count * unit.vectors : call.vectors.count;  // vectors compared
    std::vector<Buffer> operands, results;
    for (int i = 0; i < 5; ++i) operands.emplace_back(unit.size[i] * step);
    for (int i = 0; i < 2; ++i) results.emplace_back(unit.results * unit.out_bytes * step);
    std::unique_ptr<Pairs> pairs;
    Comparison comparison(call, unit, generator.rows_agree, result);
    GeneratorCall vectors = call.vectors;
    for (int i = 0; i < 5; ++i) vectors.out[i] = operands[size_t(i)].data();
    int64_t done = 0;
    const auto piece = [&] {
        const int64_t here = total - done < step * unit.vectors ? total - done : step * unit.vectors;
        const int64_t units = (here + unit.vectors - 1) / unit.vectors;
        for (int p = 0; p < call.program_count; ++p) {
            char* out = results[size_t(p)].data();
            const LayoutCall layout{call.programs[p],
                                    vectors.out[0],
                                    vectors.out[1],
                                    vectors.out[2],
                                    vectors.out[3],
                                    vectors.out[4],
                                    out,
                                    units,
                                    unit.m,
                                    call.n};
            if (engine.run_layout(layout)) continue;
            if (!pairs) pairs = std::make_unique<Pairs>(unit, engine, step);
            call.n ? pairs->run_tiles(call.programs[p], vectors.out, units, out)
                   : pairs->run_groups(call.programs[p], vectors.out, units, out);
        }
        const bool in_rows = call.program_count == 1;
        const char* other = in_rows ? static_cast<const char*>(call.answers) + done * unit.out_bytes
                                    : results[1].data();
        comparison.run(results[0].data(), other, in_rows, done, here);
        done += here;
    };
    generator.layout(vectors, call.m, call.n, step, piece);
    return result;
}

namespace {

using Numbers = py::array_t<int64_t, py::array::c_style>;

// To be asked before anything reads a program.
void check_words(const Numbers& program) { ProgramCheck(program.data(), program.size()); }

// The program's operands must be those that the domain makes.
void check_program(const Numbers& program, const Unit& unit, const int64_t* domain) {
    const Unit own(program.data(), domain, unit.m, unit.n);
    const int64_t *space = domain + DOMAIN_SPACE, k = space[0], live = space[1], chunk = space[2], groups = space[3];
    const int64_t items[5] = {live, k, domain[DOMAIN_C], groups, groups};
    for (int i = 0; i < 5; ++i)
        if (own.items[i] != items[i] || own.width[i] != (items[i] ? domain[(i < 3 ? i : 4) * LAYOUT + LAYOUT_ITEM] : 0))
            throw std::invalid_argument("the program's operands are not the domain's");
    if (chunk || ProgramCheck(program.data(), program.size()).out_bytes() != own.out_bytes)
        throw std::invalid_argument("the program's results are not the domain's");
}

py::tuple pipeline(const Numbers& domain, int family, uint32_t stream, uint64_t seed, uint64_t start, int64_t count,
                   int m, int n, const std::vector<Numbers>& programs, const py::object& answers, bool any_nan,
                   int64_t limit, const std::string& build, int whole_m, int whole_n) {
    cpu::check_domain(domain.data(), domain.size());
    if (programs.empty() || programs.size() > 2 || (programs.size() == 1) == answers.is_none())
        throw std::invalid_argument("two programs are expected, or one and answers");
    PipelineCall call{};
    call.vectors = {domain.data(), family, stream, seed, start, count, {}, whole_m, whole_n};
    call.m = m;
    call.n = n;
    call.limit = limit;
    call.any_nan = any_nan;
    for (const Numbers& program : programs) check_words(program);
    const Unit unit(programs[0].data(), domain.data(), m, n);
    for (const Numbers& program : programs) {
        check_program(program, unit, domain.data());
        call.programs[call.program_count++] = program.data();
    }
    py::array held;
    if (!answers.is_none()) {
        held = answers.cast<py::array>();
        if (!(held.flags() & py::array::c_style) || held.itemsize() != unit.out_bytes ||
            held.size() != (n ? count * unit.vectors : count))
            throw std::invalid_argument("answers must be contiguous, one of d's width a result");
        call.answers = held.data();
    }
    const cpu::GeneratorBuild& generator = cpu::generator_build("");
    const EngineBuild& engine = engine_build(build);
    PipelineResult result;
    {
        py::gil_scoped_release release;
        result = run_pipeline(call, generator, engine);
    }
    return py::make_tuple(result.mismatches, result.places);
}

}  // namespace

void cpu::register_pipeline(py::module_& m) {
    m.def("pipeline", &pipeline, py::arg("domain"), py::arg("family"), py::arg("stream"), py::arg("seed"),
          py::arg("start"), py::arg("count"), py::arg("m"), py::arg("n"), py::arg("programs"),
          py::arg("answers") = py::none(), py::arg("any_nan") = false, py::arg("limit") = 4, py::arg("build") = "",
          py::arg("whole_m") = 0, py::arg("whole_n") = 0,
          "Generate `count` tiles (or vectors, n = 0), evaluate and compare: (mismatches, the first places).");
}

}  // namespace mmaprobe
