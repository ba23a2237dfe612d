// The engine and the comparison on NumPy arrays.
#include "cpu/kernels/engine.hpp"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "cpu/bindings/builds.hpp"
#include "cpu/kernels/program_check.hpp"
#include "cpu/kernels/tiles.hpp"
#include "model/program.hpp"

namespace py = pybind11;

namespace mmaprobe {
namespace {

// The builds that are here and that this machine can run, the widest last.
std::vector<EngineBuild> builds() {
    std::vector<EngineBuild> out{{"baseline", baseline::evaluate, baseline::evaluate_layout, baseline::evaluate_rows}};
#if defined(MMAPROBE_HAS_BUILD_avx2)
    if (cpu::runs("avx2")) out.push_back({"avx2", avx2::evaluate, avx2::evaluate_layout, avx2::evaluate_rows});
#endif
#if defined(MMAPROBE_HAS_BUILD_avx512)
    if (cpu::runs("avx512"))
        out.push_back({"avx512", avx512::evaluate, avx512::evaluate_layout, avx512::evaluate_rows});
#endif
    return out;
}

}  // namespace

const EngineBuild& engine_build(const std::string& name) {
    static const std::vector<EngineBuild> all = builds();
    if (name.empty()) return all.back();
    std::string known;
    for (const EngineBuild& b : all) {
        if (name == b.name) return b;
        known += std::string(known.empty() ? "" : ", ") + b.name;
    }
    throw std::invalid_argument("no engine build " + name + " on this machine; there are: " + known);
}

namespace {

using Program = py::array_t<int64_t, py::array::c_style>;

constexpr int64_t MANY = 1 << 15;  // lanes for each thread: a few of its starts
constexpr int64_t WHOLE = 64;      // vectors that the engine takes at a time

// Programs on the same operands, row n of ``to`` the results of program n; split over the cores by vectors, or where
// these are few by programs.
struct Evaluation {
    const EngineBuild& engine;
    const EngineCall& call;
    const int* widths;  // of each operand's items, in bytes
    const std::vector<const int64_t*>& programs;
    char* to;

    bool on_every_core() const {
        const int64_t n = int64_t(programs.size()), vectors = call.vectors;
        const int64_t lanes = n * vectors * (n ? baseline::Header{programs[0]}[baseline::Header::k] : 0);
        const int64_t threads = lanes < MANY ? 1 : std::min<int64_t>(cpu::cores(), lanes / MANY + 1);
        const bool by_vectors = vectors >= 2 * WHOLE;
        const int64_t whole = by_vectors ? vectors : n, least = by_vectors ? WHOLE : 1;
        const int64_t share = ((whole + threads - 1) / threads + least - 1) / least * least;
        std::atomic<bool> memory{true};
        std::vector<std::thread> others;
        const auto part = [&](int64_t at) {
            const int64_t end = std::min(at + share, whole);
            if (!(by_vectors ? some(0, n, at, end) : some(at, end, 0, vectors))) memory = false;
        };
        for (int64_t at = share; at < whole; at += share) {
            try {
                others.emplace_back(part, at);
            } catch (const std::system_error&) {
                part(at);
            }
        }
        if (whole) part(0);
        for (std::thread& other : others) other.join();
        return memory;
    }

    // Programs begin .. end - 1 on vectors first .. last - 1; false: out of memory.
    bool some(int64_t begin, int64_t end, int64_t first, int64_t last) const {
        EngineCall mine = call;
        mine.vectors = last - first;
        for (int i = 0; i < 6; ++i)
            if (call.base[i]) mine.base[i] = static_cast<const char*>(call.base[i]) + first * call.row[i] * widths[i];
        std::vector<const int64_t*> left;  // what no kernel of whole rows takes
        std::vector<void*> outs;
        for (int64_t n = begin; n < end; ++n) {
            char* const out = to + (n * call.vectors + first) * call.out_bytes;
            const LayoutCall rows{programs[size_t(n)], mine.base[0], mine.base[1], mine.base[2], mine.base[3],
                                  mine.base[4],        out,          mine.vectors, STRIP,        0};
            if (mine.vectors < STRIP || !engine.run_rows(rows)) {
                left.push_back(programs[size_t(n)]);
                outs.push_back(out);
            }
        }
        mine.programs = left.data();
        mine.outs = outs.data();
        mine.count = int64_t(left.size());
        return engine.run(mine);
    }
};

// What programs run on, and where to: rows of C-contiguous arrays, None where absent, and out[program, vector].
class Run {
    EngineCall call{};
    int widths[6] = {};
    std::vector<py::array> held;
    const EngineBuild& engine;
    char* to;

    // A program of this engine version for these operands and results.
    void check(const int64_t* program, int64_t size) const {
        using baseline::Header;
        constexpr int column[6] = {Header::a, Header::b, Header::c, Header::scale, Header::scale, Header::random};
        constexpr const char* name[6] = {"a", "b", "c", "scale", "scale", "random"};
        const Header h{program};
        if (ProgramCheck(program, size).out_bytes() != call.out_bytes)
            throw std::invalid_argument("out has not the width of the datapath's results");
        for (int i = 0; i < 6; ++i) {
            const int64_t at = h[Header::Column(column[i])];
            if (at == baseline::ABSENT) continue;
            const int64_t lanes = i < 2 ? h[Header::k] : i == 2 || i == 5 ? 1 : h[Header::k] / h[Header::scale_size];
            if (!call.base[i] || widths[i] != program[at + baseline::OperandRow::bytes] || call.row[i] != lanes)
                throw std::invalid_argument("operand " + std::string(name[i]) +
                                            " has not the width or the number of items of the datapath");
        }
    }

public:
    Run(const std::vector<py::object>& operands, py::array& out, int64_t programs, const std::string& build)
        : engine(engine_build(build)), to(static_cast<char*>(out.mutable_data())) {
        if (operands.size() != 6)
            throw std::invalid_argument("six operands are expected: a, b, c, scale_a, scale_b, random");
        if (!(out.flags() & py::array::c_style) || out.ndim() != 2 || out.shape(0) != programs)
            throw std::invalid_argument("out must be a C-contiguous array (programs, vectors)");
        call.vectors = out.shape(1);
        call.out_bytes = int(out.itemsize());
        for (size_t i = 0; i < 6; ++i) {
            if (operands[i].is_none()) continue;
            held.push_back(operands[i].cast<py::array>());
            const py::array& x = held.back();
            const bool rows = x.ndim() == 2 || (x.ndim() == 1 && (i == 2 || i == 5));
            if (!(x.flags() & py::array::c_style) || !rows || x.shape(0) != call.vectors)
                throw std::invalid_argument("operands must be C-contiguous arrays with one row a vector");
            call.base[i] = x.data();
            call.row[i] = x.ndim() == 2 ? x.shape(1) : 1;
            widths[i] = int(x.itemsize());
        }
    }
    // Programs (start, words), the first of them number ``first`` of all.
    void operator()(const std::vector<const int64_t*>& starts, const std::vector<int64_t>& sizes, int64_t first) const {
        for (size_t n = 0; n < starts.size(); ++n) check(starts[n], sizes[n]);
        const Evaluation all{engine, call, widths, starts, to + first * call.vectors * call.out_bytes};
        bool memory = true;
        {
            py::gil_scoped_release release;
            memory = all.on_every_core();
        }
        if (!memory) throw std::bad_alloc();
    }
};

void evaluate(const std::vector<Program>& programs, const std::vector<py::object>& operands, py::array out,
              const std::string& build) {
    const Run run(operands, out, int64_t(programs.size()), build);
    std::vector<const int64_t*> starts;
    std::vector<int64_t> sizes;
    for (const Program& p : programs) {
        starts.push_back(p.data());
        sizes.push_back(p.size());
    }
    run(starts, sizes, 0);
}

// An axis of combinations: the words that it alters, what each of its values makes of them, and its value in each
// combination.
struct Patch {
    Program columns, values, places;

    explicit Patch(const py::tuple& given)
        : columns(given[0].cast<Program>()), values(given[1].cast<Program>()), places(given[2].cast<Program>()) {}
    bool fits(int64_t words, int64_t count) const {
        if (columns.ndim() != 1 || values.ndim() != 2 || places.ndim() != 1 || values.shape(1) != columns.size() ||
            places.size() != count)
            return false;
        const auto within = [](const Program& x, int64_t end) {
            return std::all_of(x.data(), x.data() + x.size(), [&](int64_t i) { return i >= 0 && i < end; });
        };
        return within(columns, words) && within(places, values.shape(0));
    }
    // free: of a word the largest that any axis says is right.
    void apply(int64_t combination, const bool* free, int64_t* words) const {
        const int64_t size = columns.size();
        const int64_t *at = columns.data(), *value = values.data() + places.data()[combination] * size;
        for (int64_t i = 0; i < size; ++i) words[at[i]] = free[at[i]] ? std::max(words[at[i]], value[i]) : value[i];
    }
};

constexpr int64_t CHUNK = 128;  // combinations whose programs are made at a time

// Runs a program patched by the axes of combinations; grids of the sums that stand lifted are anchored ones.
void evaluate_combinations(const Program& words, const std::vector<py::tuple>& axes,
                           const py::array_t<bool, py::array::c_style>& free, const Program& sums, int64_t lift,
                           const std::vector<py::object>& operands, py::array out, const std::string& build) {
    using baseline::SumRow;
    const int64_t size = words.size(), count = out.ndim() ? out.shape(0) : 0;
    const Run run(operands, out, count, build);
    const std::vector<Patch> patches(axes.begin(), axes.end());
    const auto fits = [&](const Patch& each) { return each.fits(size, count); };
    const auto is_sum = [&](int64_t at) { return at >= 0 && at + SumRow::SIZE < size; };
    if (free.size() != size || !std::all_of(patches.begin(), patches.end(), fits) ||
        !std::all_of(sums.data(), sums.data() + sums.size(), is_sum))
        throw std::invalid_argument("patches do not fit their program");
    std::vector<int64_t> made(size_t(std::min(count, CHUNK) * size));
    std::vector<const int64_t*> starts;
    for (int64_t first = 0; first < count; first += CHUNK) {
        starts.clear();
        for (int64_t i = first; i < std::min(first + CHUNK, count); ++i) {
            int64_t* const to = made.data() + (i - first) * size;
            std::copy(words.data(), words.data() + size, to);
            for (const Patch& each : patches) each.apply(i, free.data(), to);
            for (py::ssize_t s = 0; s < sums.size(); ++s) {
                int64_t* const sum = to + sums.data()[s] + 1;
                const bool anchored = sum[SumRow::grid] >= lift / 2;
                sum[SumRow::anchored] = anchored;
                sum[SumRow::grid] -= anchored ? lift : 0;
            }
            starts.push_back(to);
        }
        run(starts, std::vector<int64_t>(starts.size(), size), first);
    }
}

// A program on C-contiguous arrays in the engine layout (tiles.hpp), or row-major; false where no kernel takes it.
template <bool ROW_MAJOR>
bool evaluate_tiles(const Program& program, const std::vector<py::object>& operands, py::array out, int64_t count,
                    int m, int n, const std::string& build) {
    using baseline::Header;
    const Header h{program.data()};
    if (operands.size() != 5) throw std::invalid_argument("five operands are expected: a, b, c, scale_a, scale_b");
    const ProgramCheck checked(program.data(), program.size());
    if ((count && checked.out_bytes() != out.itemsize()) || count < 0 || m < 0 || n < 0)
        throw std::invalid_argument("out has not the width of the datapath's results, or a size is negative");
    const int64_t k = h[Header::k], groups = h[Header::scale] == baseline::ABSENT ? 0 : k / h[Header::scale_size];
    const int64_t strips = n ? (m + STRIP - 1) / STRIP * STRIP : STRIP;
    const int64_t rows = ROW_MAJOR ? m : strips, columns = n ? n : STRIP;
    const int64_t results = n ? rows * columns : rows;
    const int64_t sizes[5] = {rows * k, columns * k, results, rows * groups, columns * groups};
    const int column[5] = {Header::a, Header::b, Header::c, Header::scale, Header::scale};
    const void* base[5] = {};
    std::vector<py::array> held;
    for (size_t i = 0; i < 5; ++i) {
        const int64_t at = h[Header::Column(column[i])];
        if ((at == baseline::ABSENT) != operands[i].is_none())
            throw std::invalid_argument("an operand is missing or too much");
        if (operands[i].is_none()) continue;
        held.push_back(operands[i].cast<py::array>());
        const py::array& x = held.back();
        if (!(x.flags() & py::array::c_style) || x.itemsize() != program.data()[at + baseline::OperandRow::bytes] ||
            x.size() != count * sizes[i])
            throw std::invalid_argument("operand " + std::to_string(i) + " has not the width or the size of the tiles");
        base[i] = x.data();
    }
    if (!(out.flags() & py::array::c_style) || out.size() != count * results)
        throw std::invalid_argument("out has not the size of the tiles");
    const LayoutCall call{program.data(), base[0], base[1], base[2], base[3], base[4], out.mutable_data(), count, m, n};
    const EngineBuild& engine = engine_build(build);
    const LayoutFunction run = ROW_MAJOR ? engine.run_rows : engine.run_layout;
    py::gil_scoped_release release;
    return run(call);
}

std::vector<std::string> build_names() {
    std::vector<std::string> names;
    for (const EngineBuild& b : builds()) names.push_back(b.name);
    return names;
}

// Columns of every kind of row, and the opcodes, by name: what models/program.py must agree with.
std::map<std::string, std::vector<std::string>> layout() {
#define MMAPROBE_QUOTE(name) #name,
    return {{"kernels", {MMAPROBE_KERNELS(MMAPROBE_QUOTE)}},
            {"split", {MMAPROBE_SPLIT(MMAPROBE_QUOTE)}},
            {"fused", {MMAPROBE_FUSED(MMAPROBE_QUOTE)}},
            {"chain", {MMAPROBE_CHAIN(MMAPROBE_QUOTE)}},
            {"two_stage", {MMAPROBE_TWO_STAGE(MMAPROBE_QUOTE)}},
            {"grouped", {MMAPROBE_GROUPED(MMAPROBE_QUOTE)}},
            {"exact_sum", {MMAPROBE_EXACT_SUM(MMAPROBE_QUOTE)}},
            {"pairs", {MMAPROBE_PAIRS(MMAPROBE_QUOTE)}},
            {"short_sums", {MMAPROBE_SHORT_SUMS(MMAPROBE_QUOTE)}},
            {"flushed_chain", {MMAPROBE_FLUSHED_CHAIN(MMAPROBE_QUOTE)}},
            {"late_c", {MMAPROBE_LATE_C(MMAPROBE_QUOTE)}},
            {"tree", {MMAPROBE_TREE(MMAPROBE_QUOTE)}},
            {"opcodes", {MMAPROBE_OPCODES(MMAPROBE_QUOTE)}},
            {"header", {MMAPROBE_HEADER(MMAPROBE_QUOTE)}},
            {"operand", {MMAPROBE_OPERAND(MMAPROBE_QUOTE)}},
            {"encode", {MMAPROBE_ENCODE(MMAPROBE_QUOTE)}},
            {"PRODUCT", {MMAPROBE_PRODUCT(MMAPROBE_QUOTE)}},
            {"LOAD_C", {MMAPROBE_LOAD_C(MMAPROBE_QUOTE)}},
            {"ZERO", {MMAPROBE_ZERO(MMAPROBE_QUOTE)}},
            {"FMA", {MMAPROBE_FMA(MMAPROBE_QUOTE)}},
            {"ADD", {MMAPROBE_ADD(MMAPROBE_QUOTE)}},
            {"SUM", {MMAPROBE_SUM(MMAPROBE_QUOTE)}},
            {"term", {MMAPROBE_TERM(MMAPROBE_QUOTE)}},
            {"CONVERT", {MMAPROBE_CONVERT(MMAPROBE_QUOTE)}},
            {"SETTLE", {MMAPROBE_SETTLE(MMAPROBE_QUOTE)}},
            {"STORE", {MMAPROBE_STORE(MMAPROBE_QUOTE)}}};
#undef MMAPROBE_QUOTE
}

// Number of places where two arrays of the same width differ, and the first `limit` of them.
template <class T>
int64_t differences(const T* x, const T* y, int64_t n, int64_t limit, std::vector<int64_t>& found) {
    constexpr int64_t BLOCK = 4096;
    int64_t total = 0;
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t stop = start + BLOCK < n ? start + BLOCK : n;
        if (std::memcmp(x + start, y + start, size_t(stop - start) * sizeof(T)) == 0) continue;
        for (int64_t i = start; i < stop; ++i) {
            if (x[i] == y[i]) continue;
            if (total++ < limit) found.push_back(i);
        }
    }
    return total;
}

py::tuple compare(const py::array& x, const py::array& y, int64_t limit) {
    const bool same = x.dtype().is(y.dtype()) || x.dtype().equal(y.dtype());
    if (!same || x.size() != y.size() || !(x.flags() & y.flags() & py::array::c_style))
        throw std::invalid_argument("compare takes two C-contiguous arrays of one dtype and size");
    std::vector<int64_t> found;
    int64_t total = 0;
    const void *p = x.data(), *q = y.data();
    const int64_t n = x.size(), bytes = x.itemsize();
    {
        py::gil_scoped_release release;
        if (bytes == 1) total = differences((const uint8_t*)p, (const uint8_t*)q, n, limit, found);
        if (bytes == 2) total = differences((const uint16_t*)p, (const uint16_t*)q, n, limit, found);
        if (bytes == 4) total = differences((const uint32_t*)p, (const uint32_t*)q, n, limit, found);
        if (bytes == 8) total = differences((const uint64_t*)p, (const uint64_t*)q, n, limit, found);
    }
    return py::make_tuple(total, py::array_t<int64_t>(py::ssize_t(found.size()), found.data()));
}

}  // namespace

int cpu::cores() {
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    return 1;
}

void cpu::register_engine(py::module_& m) {
    m.def("engine_evaluate", &evaluate, py::arg("programs"), py::arg("operands"), py::arg("out"), py::arg("build") = "",
          "Run engine programs on one set of operands; row i of out receives program i's results.");
    m.def("engine_evaluate_combinations", &evaluate_combinations, py::arg("words"), py::arg("axes"), py::arg("free"),
          py::arg("sums"), py::arg("lift"), py::arg("operands"), py::arg("out"), py::arg("build") = "",
          "Run a program patched by the (columns, values, places) of axes; row i of out receives combination i's "
          "results.");
    m.def("engine_evaluate_layout", &evaluate_tiles<false>, py::arg("program"), py::arg("operands"), py::arg("out"),
          py::arg("count"), py::arg("m"), py::arg("n"), py::arg("build") = "",
          "Run a program's kernel on tiles (n > 0) or groups of vectors (n = 0) in the engine layout; false where it "
          "has none.");
    m.def("engine_evaluate_tiles", &evaluate_tiles<true>, py::arg("program"), py::arg("operands"), py::arg("out"),
          py::arg("count"), py::arg("m"), py::arg("n"), py::arg("build") = "",
          "Run a program's kernel on row-major tiles; false where it has none.");
    m.def("engine_builds", &build_names, "Names of the engine builds that this machine can run, the fastest last.");
    m.def("runnable_builds", &cpu::runnable_builds,
          "Names of the builds that this machine could run, those that were left out too, the fastest last.");
    m.def("engine_layout", &layout, "Opcodes and columns of the engine's program rows.");
    m.def("compare", &compare, py::arg("x"), py::arg("y"), py::arg("limit") = 16,
          "(count of differing items, indices of the first `limit` of them) of two unsigned arrays.");
}

}  // namespace mmaprobe
