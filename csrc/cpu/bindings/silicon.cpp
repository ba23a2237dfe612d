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

// Memory of one thread's batches, one after another.
struct Memory {
    std::vector<char> operands[3], turned[2], expected, found;
    static void need(std::vector<char>& some, int64_t bytes) {
        if (int64_t(some.size()) < bytes) some.resize(size_t(bytes));
    }
};

// Rows of K items to groups of 16 columns.
template <class Item, int K>
void turn(const char* rows, char* groups, int64_t count) {
    const Item* from = reinterpret_cast<const Item*>(rows);
    Item* to = reinterpret_cast<Item*>(groups);
    for (; count > 0; count -= STRIP, from += STRIP * K, to += STRIP * K)
        for (int i = 0; i < STRIP; ++i)
            for (int k = 0; k < K; ++k) to[k * STRIP + i] = from[i * K + k];
}

// The same of k items of a width; false where no unit has such.
bool turn(int64_t width, int64_t k, const char* rows, char* groups, int64_t count) {
    if (width == 1 && k == 4) return turn<uint8_t, 4>(rows, groups, count), true;
    if (width == 2 && k == 2) return turn<uint16_t, 2>(rows, groups, count), true;
    if (width == 4 && k == 4) return turn<uint32_t, 4>(rows, groups, count), true;
    if (width == 8 && k == 2) return turn<uint64_t, 2>(rows, groups, count), true;
    return false;
}

// One batch in rows: operands, the model's results, the unit's.
class Silicon {
    const SiliconCall& call;
    const EngineBuild& engine;
    const int64_t* const domain;
    const int64_t count;
    int64_t row[3];  // bytes of one vector's a, b and c
    int out_bytes;
    Memory& memory;

    // By the program's kernel on groups of 16; false where there is none.
    bool by_groups(char* const (&from)[3], int64_t here, char* out) {
        const char* operand[2] = {from[0], from[1]};
        for (int i = 0; i < 2; ++i) {
            const int64_t width = domain[i * LAYOUT + LAYOUT_ITEM], k = row[i] / width;
            if (k == 1) continue;  // a row of one item is a column of one
            Memory::need(memory.turned[i], (PIECE + STRIP) * row[i]);
            if (!turn(width, k, from[i], memory.turned[i].data(), here)) return false;
            operand[i] = memory.turned[i].data();
        }
        const int64_t groups = (here + STRIP - 1) / STRIP;
        return engine.run_layout({call.program, operand[0], operand[1], row[2] ? from[2] : nullptr, nullptr, nullptr,
                                  out, groups, STRIP, 0});
    }

    // Results of `here` vectors whose rows of a, b and c are given.
    void evaluate(char* const (&from)[3], int64_t here, char* out) {
        if (by_groups(from, here, out)) return;
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
        const auto* x = reinterpret_cast<const Item*>(memory.found.data());
        const auto* y = reinterpret_cast<const Item*>(memory.expected.data());
        for (int64_t i = 0; i < count; ++i) {
            if (x[i] == y[i] || (call.any_nan && nan(x[i]) && nan(y[i]))) continue;
            if (result.mismatches++ < call.limit) result.places.push_back(i);
        }
    }

public:
    Silicon(const SiliconCall& c, const EngineBuild& build, Memory& own)
        : call(c), engine(build), domain(c.vectors.domain), count(c.vectors.count), row{c.unit.a, c.unit.b, c.unit.c},
          out_bytes(c.unit.d), memory(own) {
        for (int i = 0; i < 3; ++i) Memory::need(memory.operands[i], (count + STRIP) * row[i]);
        Memory::need(memory.expected, (count + STRIP) * out_bytes);  // kernels take groups of 16 to the end
        Memory::need(memory.found, count * out_bytes);
    }

    void generate_and_evaluate(cpu::GeneratorBuild generator) {
        for (int64_t first = 0; first < count; first += PIECE) {
            GeneratorCall piece = call.vectors;
            piece.start += uint64_t(first);
            piece.count = std::min(PIECE, count - first);
            char* at[3];
            for (int i = 0; i < 3; ++i) {
                at[i] = memory.operands[i].data() + first * row[i];
                piece.out[i] = row[i] ? at[i] : nullptr;
            }
            generator.vectors(piece);
            evaluate(at, piece.count, memory.expected.data() + first * out_bytes);
        }
    }

    void execute() {
        char *const found = memory.found.data(), *const expected = memory.expected.data();
        for (int64_t i = 0; i < count * out_bytes; ++i) found[i] = char(~expected[i]);
        cpu::run(call.unit, call.control, memory.operands[0].data(), memory.operands[1].data(),
                 memory.operands[2].data(), found, size_t(count));
    }

    PipelineResult compared() const {
        PipelineResult result;
        if (std::memcmp(memory.found.data(), memory.expected.data(), size_t(count * out_bytes)) == 0) return result;
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
        static thread_local Memory memory;
        Silicon batch(call, engine, memory);
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
