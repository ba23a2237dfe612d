// A unit of this CPU beside its model: one batch of separate vectors, generated, evaluated, executed and compared.
//
// The model comes first, on operands that no unit has seen, and what it gives is written in reverse, every bit, to where
// the unit's results go: a result that the unit does not write cannot agree.  The unit gets the batch whole, in one call.
#include "cpu/bindings/silicon.hpp"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "cpu/bindings/pipeline_compare.hpp"
#include "cpu/bindings/pipeline_units.hpp"
#include "cpu/kernels/program_check.hpp"
#include "cpu/units/unit.hpp"

namespace py = pybind11;

namespace mmaprobe {
namespace {

constexpr int64_t PIECE = 1 << 11;  // vectors generated and evaluated at a time: within the first cache, nearly
constexpr int64_t MOST = 1 << 20;  // vectors of a batch

struct SiliconCall {
    GeneratorCall vectors;  // separate ones; no outputs
    const int64_t* program;
    const cpu::Unit& unit;
    uint64_t control;
    int64_t limit;  // of the places that are kept
    bool any_nan;  // two NaNs are equal
};

// One batch in rows: operands, the model's results, the unit's.
class Silicon {
    const SiliconCall& call;
    const EngineBuild& engine;
    const int64_t* const domain;
    const int64_t count;
    int64_t row[3];  // bytes of one vector's a, b and c
    int out_bytes;
    std::vector<char> operands[3], expected, found;

    // Results of `here` vectors whose rows of a, b and c are given.
    void evaluate(char* const (&from)[3], int64_t here, char* out) const {
        const char* c = row[2] ? from[2] : nullptr;
        const LayoutCall rows{call.program, from[0], from[1], c, nullptr, nullptr, out, here, STRIP, 0};
        if (here >= STRIP && engine.run_rows(rows)) return;
        EngineCall by_vectors{};
        void* const to = out;
        by_vectors.programs = &call.program;
        by_vectors.outs = &to;
        by_vectors.count = 1;
        by_vectors.vectors = here;
        by_vectors.out_bytes = out_bytes;
        for (int i = 0; i < 3; ++i) {
            by_vectors.base[i] = row[i] ? from[i] : nullptr;
            by_vectors.row[i] = row[i] ? row[i] / domain[i * LAYOUT + LAYOUT_ITEM] : 0;
        }
        if (!engine.run(by_vectors)) throw std::bad_alloc();
    }

    template <class Item>
    void compare(PipelineResult& result) const {
        const NanCodes nan(domain);
        const auto* x = reinterpret_cast<const Item*>(found.data());
        const auto* y = reinterpret_cast<const Item*>(expected.data());
        for (int64_t i = 0; i < count; ++i) {
            if (x[i] == y[i] || (call.any_nan && nan(x[i]) && nan(y[i]))) continue;
            if (result.mismatches++ < call.limit) result.places.push_back(i);
        }
    }

public:
    Silicon(const SiliconCall& c, const EngineBuild& build)
        : call(c), engine(build), domain(c.vectors.domain), count(c.vectors.count), row{c.unit.a, c.unit.b, c.unit.c},
          out_bytes(c.unit.d) {
        for (int i = 0; i < 3; ++i) operands[i].resize(size_t(count * row[i]));
        expected.resize(size_t(count * out_bytes));
        found.resize(size_t(count * out_bytes));
    }

    void generate_and_evaluate(cpu::GeneratorBuild generator) {
        for (int64_t first = 0; first < count; first += PIECE) {
            GeneratorCall piece = call.vectors;
            piece.start += uint64_t(first);
            piece.count = std::min(PIECE, count - first);
            char* at[3];
            for (int i = 0; i < 3; ++i) {
                at[i] = operands[i].data() + first * row[i];
                piece.out[i] = row[i] ? at[i] : nullptr;
            }
            generator.vectors(piece);
            evaluate(at, piece.count, expected.data() + first * out_bytes);
        }
    }

    void execute() {
        for (size_t i = 0; i < found.size(); ++i) found[i] = char(~expected[i]);
        cpu::run(call.unit, call.control, operands[0].data(), operands[1].data(), operands[2].data(), found.data(),
                 size_t(count));
    }

    PipelineResult compared() const {
        PipelineResult result;
        if (std::memcmp(found.data(), expected.data(), found.size()) == 0) return result;
        switch (out_bytes) {
            case 1: compare<uint8_t>(result); break;
            case 2: compare<uint16_t>(result); break;
            case 4: compare<uint32_t>(result); break;
            default: compare<uint64_t>(result);
        }
        return result;
    }
};

using Numbers = py::array_t<int64_t, py::array::c_style>;

// The program's operands and results are those that the domain makes and the unit takes, and nothing else.
void check(const Numbers& program, const cpu::Unit& unit, const int64_t* domain) {
    ProgramCheck words(program.data(), program.size());
    const Unit own(program.data(), domain, STRIP, 0);
    const int64_t *space = domain + DOMAIN_SPACE, k = space[0], live = space[1], chunk = space[2], groups = space[3];
    const int64_t items[3] = {live, k, domain[DOMAIN_C]};
    const int bytes[3] = {unit.a, unit.b, unit.c};
    bool same = !chunk && !groups && !own.items[3] && words.out_bytes() == unit.d && own.out_bytes == unit.d;
    for (int i = 0; i < 3; ++i)
        same &= own.items[i] == items[i] && own.items[i] * own.width[i] == bytes[i] &&
                (!items[i] || own.width[i] == domain[i * LAYOUT + LAYOUT_ITEM]);
    if (!same) throw std::invalid_argument(std::string(unit.id) + ": the program's operands are not the unit's");
}

py::tuple silicon(const Numbers& domain, int family, uint32_t stream, uint64_t seed, uint64_t start, int64_t count,
                  const Numbers& program, const std::string& id, uint64_t control, bool any_nan, int64_t limit,
                  const std::string& build) {
    cpu::check_domain(domain.data(), domain.size());
    const cpu::Unit* unit = cpu::find_unit(id);
    if (!unit || !cpu::missing(*unit).empty()) throw std::invalid_argument("this CPU has no instruction " + id);
    if (count < 0 || count > MOST)
        throw std::invalid_argument(id + ": a batch has 0 to " + std::to_string(MOST) + " vectors");
    check(program, *unit, domain.data());
    const SiliconCall call{
        {domain.data(), family, stream, seed, start, count, {}}, program.data(), *unit, control, limit, any_nan};
    const EngineBuild& engine = engine_build(build);
    const cpu::GeneratorBuild& generator = cpu::generator_build("");
    PipelineResult result;
    {
        py::gil_scoped_release release;
        Silicon batch(call, engine);
        batch.generate_and_evaluate(generator);
        batch.execute();
        result = batch.compared();
    }
    return py::make_tuple(result.mismatches, result.places);
}

}  // namespace

void cpu::register_silicon(py::module_& m) {
    m.def(
        "silicon", &silicon, py::arg("domain"), py::arg("family"), py::arg("stream"), py::arg("seed"), py::arg("start"),
        py::arg("count"), py::arg("program"), py::arg("id"), py::arg("control"), py::arg("any_nan") = false,
        py::arg("limit") = 4, py::arg("build") = "",
        "Generate `count` vectors, evaluate, execute by a unit of this CPU as one batch, and compare: (mismatches, the "
        "first places).");
}

}  // namespace mmaprobe
