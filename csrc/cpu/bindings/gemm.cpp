// Matrix products by a schedule on NumPy arrays: operations are checked, then blocks of D go to the cores.
#include "cpu/kernels/gemm.hpp"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <vector>

#include "cpu/kernels/program_check.hpp"
#include "cpu/kernels/tiles.hpp"
#include "model/program.hpp"

namespace py = pybind11;

namespace mmaprobe {
namespace {

using Integers = py::array_t<int64_t, py::array::c_style>;

constexpr int64_t MOST_THREADS = 16;  // each has blocks of its own in memory
constexpr double LASTS = 1 << 27;  // products of numbers, some hundredths of a second
constexpr std::chrono::milliseconds LISTENS_EVERY{50};
constexpr int64_t MOST_SIDE = 256, MOST_DEPTH = 64, MOST_LANES = 1 << 16;

#define MMAPROBE_NAME(name) name,
enum class Operation : int64_t { MMAPROBE_GEMM_OPERATIONS(MMAPROBE_NAME) };
struct Row {
    enum Column { MMAPROBE_GEMM_OPERATION(MMAPROBE_NAME) SIZE };
    const int64_t* at;
    int64_t operator[](Column c) const { return at[c]; }
};
#undef MMAPROBE_NAME

void need(bool fine, const char* what) {
    if (!fine) throw std::invalid_argument(what);
}

// Goes through the operations as a block does, with the widths of what is on the stack.
class GemmCheck {
    const GemmCall& call;
    const std::vector<Integers>& programs;
    const int64_t ordered, k, inputs, sizes;
    std::vector<int> widths;

    // The program of an operation: these bytes of its operands (0: it has none), so many lanes.
    void program(const Row& row, int a, int b, int c, int64_t lanes) const {
        using baseline::Header;
        const int64_t number = row[Row::program];
        need(number >= 0 && number < int64_t(programs.size()), "no such program");
        const int64_t* const words = programs[size_t(number)].data();
        const ProgramCheck checked(words, programs[size_t(number)].size());
        const Header h{words};
        const auto bytes = [&](Header::Column operand) {
            return h[operand] == baseline::ABSENT ? 0 : words[h[operand] + baseline::OperandRow::bytes];
        };
        need(bytes(Header::a) == a && bytes(Header::b) == b && bytes(Header::c) == c &&
                 checked.out_bytes() == row[Row::bytes] && h[Header::k] == lanes &&
                 h[Header::scale] == baseline::ABSENT && h[Header::random] == baseline::ABSENT,
             "a program takes other operands");
    }
    void products(const Row& row) const {
        need(row[Row::first] >= 0 && row[Row::first] <= k && row[Row::run] >= 1 && row[Row::stride] >= 1 &&
                 row[Row::stride] <= MOST_LANES * MOST_LANES && row[Row::skip] >= 0 &&
                 row[Row::skip] <= k + MOST_LANES && row[Row::count] >= 1 && row[Row::count] <= k + MOST_LANES &&
                 row[Row::end] >= 0 && row[Row::end] <= k && row[Row::run] <= MOST_LANES * MOST_LANES,
             "products beyond the operands");
    }
    void steps(const Row& row) const {
        need(row[Row::size] >= 1 && row[Row::count] <= MOST_LANES && row[Row::skip] % row[Row::size] == 0,
             "a step of no products, or of too many");
        const int64_t at = row[Row::order], size = row[Row::size];
        if (at == baseline::ABSENT) return;
        need(at >= 0 && size <= ordered && at <= ordered - size, "an order beyond all");
        for (int64_t i = 0; i < size; ++i)
            need(call.order[at + i] >= 0 && call.order[at + i] < size, "an order beyond its step");
    }
    void pop(size_t least) const { need(widths.size() >= least, "the stack is empty"); }
    void top_is(int bytes) const {
        pop(1);
        need(widths.back() == bytes, "values of another width");
    }

    void load(const GemmOperand& input, const Row& row) const {
        need(input.bytes == row[Row::bytes], "an input of another width");
        const auto within = [](const int64_t* places, int64_t count, int64_t further, int64_t length) {
            need(further >= 0 && (further < length || !count), "an input has not so many items");
            for (int64_t i = 0; further && i < count; ++i)
                need(places[i] < length - further, "an input has not so many items");
        };
        within(input.rows, call.m, row[Row::first], input.down);
        within(input.columns, call.n, row[Row::skip], input.across);
    }

    void combine(const Row& row, int bytes) {
        const Operation what = Operation(row[Row::operation]);
        const bool fma = what == Operation::FMA || what == Operation::FMA_ONTO;
        const int operands = fma ? 3 : 2;
        for (int i = 0; i < operands; ++i) {
            top_is(bytes);
            widths.pop_back();
        }
        widths.push_back(bytes);
        if (row[Row::program] == baseline::ABSENT) return need(bytes >= 4, "no such numbers");
        need(what == Operation::ADD || what == Operation::MULTIPLY || fma, "no program does that");
        program(row, bytes, bytes, what == Operation::MULTIPLY ? 0 : bytes, 1);
    }

    void check(const Row& row) {
        const int bytes = int(row[Row::bytes]);
        need(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8, "no such width");
        const bool native = row[Row::program] == baseline::ABSENT;
        switch (Operation(row[Row::operation])) {
            case Operation::CONSTANT: return widths.push_back(bytes);
            case Operation::LOAD:
                need(row[Row::number] >= 0 && row[Row::number] < inputs, "no such input");
                load(call.inputs[row[Row::number]], row);
                return widths.push_back(bytes);
            case Operation::CHAIN:
                products(row);
                need(bytes == call.chained, "numbers of another width");
                if (row[Row::fresh]) return widths.push_back(bytes);
                return top_is(bytes);
            case Operation::STEPS:
                products(row);
                steps(row);
                if (row[Row::fresh]) {
                    widths.push_back(bytes);
                    return program(row, call.a.bytes, call.b.bytes, 0, row[Row::count]);
                }
                top_is(bytes);
                return program(row, call.a.bytes, call.b.bytes, bytes, row[Row::count]);
            case Operation::ADD:
            case Operation::MULTIPLY:
            case Operation::FMA:
            case Operation::FMA_ONTO:
            case Operation::MAXIMUM:
            case Operation::MINIMUM: return combine(row, bytes);
            case Operation::AMAX:
                need(row[Row::number] >= 0 && row[Row::number] < sizes, "no such size");
                return top_is(bytes);
            case Operation::DROP: top_is(bytes); return widths.pop_back();
            case Operation::CONVERT: {
                pop(1);
                const int was = widths.back();
                widths.back() = bytes;
                if (native) return need(bytes >= 4 && was == 12 - bytes, "no such numbers");
                return program(row, was, was, 0, 1);
            }
        }
        need(false, "no such operation");
    }

public:
    GemmCheck(const GemmCall& of_call, const std::vector<Integers>& all, int64_t order_count, int64_t products,
              size_t input_count, int64_t size_count)
        : call(of_call), programs(all), ordered(order_count), k(products), inputs(int64_t(input_count)),
          sizes(size_count) {}
    // How deep the stack gets.
    int depth() {
        size_t most = 0;
        for (int64_t i = 0; i < call.count; ++i) {
            check(Row{call.operations + i * Row::SIZE});
            most = std::max(most, widths.size());
            need(most <= MOST_DEPTH, "the stack is too deep");
        }
        need(widths.size() == 1 && widths[0] == call.d.bytes, "what is left is not D");
        return int(most);
    }
};

// A matrix and which of its rows and columns the elements have; null where they do not count.
GemmOperand operand(const py::array& x, const Integers* rows, const Integers* columns) {
    need(x.ndim() == 2, "operands must be matrices");
    const auto places = [](const Integers* found, int64_t length) -> const int64_t* {
        if (!found) return nullptr;
        for (int64_t i = 0; i < found->size(); ++i)
            need(found->data()[i] >= 0 && found->data()[i] < length, "rows or columns beyond the matrix");
        return found->data();
    };
    return {static_cast<const char*>(x.data()),
            x.strides(0),
            x.strides(1),
            int(x.itemsize()),
            places(rows, x.shape(0)),
            places(columns, x.shape(1)),
            x.shape(0),
            x.shape(1),
            nullptr};
}

const void* table(const py::object& values, const GemmOperand& of, int chained) {
    if (values.is_none()) return nullptr;
    const auto found = values.cast<py::array>();
    need((found.flags() & py::array::c_style) && of.bytes <= 2 && found.itemsize() == chained &&
             found.size() == int64_t(1) << (8 * of.bytes),
         "a value for each code is needed");
    return found.data();
}

// Asks Python for signals until all of the threads that `end` have; whether one of them interrupts.
class Watch {
    std::mutex mutex;
    std::condition_variable ended;
    int64_t working = 0;

public:
    void begin() {
        const std::lock_guard<std::mutex> lock(mutex);
        ++working;
    }
    void end() {
        const std::lock_guard<std::mutex> lock(mutex);
        --working;
        ended.notify_one();
    }
    bool interrupted() {
        std::unique_lock<std::mutex> lock(mutex);
        while (!ended.wait_for(lock, LISTENS_EVERY, [&] { return working == 0; })) {
            lock.unlock();
            {
                const py::gil_scoped_acquire held;
                if (PyErr_CheckSignals() != 0) return true;
            }
            lock.lock();
        }
        return false;
    }
};

enum class Ended { WHOLE, OUT_OF_MEMORY, INTERRUPTED };

// Every block on one of the cores. Of a call that `lasts` this thread computes none: it listens, and an interrupt, which
// Python then knows, ends the call after the blocks under way.
Ended on_every_core(GemmFunction run, const GemmCall& call, bool lasts) {
    const int64_t down = (call.m + call.most_rows - 1) / call.most_rows,
                  across = (call.n + call.most_columns - 1) / call.most_columns, blocks = down * across;
    std::atomic<int64_t> next{0};
    std::atomic<bool> memory{true};
    Watch watch;
    const auto work = [&] {
        if (!run(call, next)) memory = false;
        watch.end();
    };
    std::vector<std::thread> others;
    const int64_t threads = std::min({int64_t(cpu::cores()), blocks, MOST_THREADS});
    for (int64_t i = lasts ? 0 : 1; i < threads; ++i) {
        watch.begin();
        try {
            others.emplace_back(work);
        } catch (const std::system_error&) {
            watch.end();
            break;
        }
    }
    bool interrupted = false;
    if (lasts && !others.empty()) {
        interrupted = watch.interrupted();
        if (interrupted) next = blocks;
    } else {
        watch.begin();
        work();
    }
    for (std::thread& other : others) other.join();
    return interrupted ? Ended::INTERRUPTED : memory ? Ended::WHOLE : Ended::OUT_OF_MEMORY;
}

using Placed = std::tuple<py::array, Integers, Integers>;  // a matrix, its rows and its columns

void gemm(const Integers& operations, const std::vector<Integers>& programs, const Integers& order, const Placed& a,
          const Placed& b, const std::vector<py::object>& values, int chained, const std::vector<Placed>& inputs,
          const Placed& d, py::array_t<uint64_t, py::array::c_style> largest, int64_t most_rows, int64_t most_columns,
          const std::string& build) {
    need(values.size() == 2, "the values of two operands are expected");
    need(operations.ndim() == 2 && operations.shape(1) == Row::SIZE, "operations have other columns");
    need(chained == 0 || chained == 4 || chained == 8, "no such numbers");
    need(most_rows >= 1 && most_rows <= MOST_SIDE && most_columns >= 1 && most_columns <= MOST_SIDE, "no such blocks");
    const auto& [a_array, a_rows, a_all] = a;
    const auto& [b_array, b_all, b_columns] = b;
    const auto& [d_array, d_rows, d_columns] = d;
    std::vector<GemmOperand> held;
    for (const auto& [array, rows, columns] : inputs) {
        held.push_back(operand(array, &rows, &columns));
        need(rows.size() == d_rows.size() && columns.size() == d_columns.size(), "other numbers of rows or columns");
    }
    std::vector<std::atomic<uint64_t>> sizes(size_t(largest.size()));
    std::vector<const int64_t*> starts;
    for (const Integers& program : programs) starts.push_back(program.data());
    GemmCall call{operations.data(),
                  operations.shape(0),
                  starts.data(),
                  order.data(),
                  operand(a_array, &a_rows, nullptr),
                  operand(b_array, nullptr, &b_columns),
                  operand(d_array, &d_rows, &d_columns),
                  held.data(),
                  sizes.data(),
                  d_rows.size(),
                  d_columns.size(),
                  0,
                  chained,
                  most_rows,
                  most_columns};
    need(d_array.writeable() && a_rows.size() == call.m && b_columns.size() == call.n,
         "other numbers of rows or columns");
    const int64_t k = a_array.shape(1);
    need(b_array.shape(0) == k, "shapes do not fit");
    call.a.values = table(values[0], call.a, chained);
    call.b.values = table(values[1], call.b, chained);
    for (const GemmOperand* x : {&call.a, &call.b})
        need(!chained || (x->values ? x->bytes <= 2 : x->bytes >= 4 && x->bytes <= chained), "codes without values");
    call.depth = GemmCheck(call, programs, order.size(), k, held.size(), largest.size()).depth();
    const std::string name = engine_build(build).name;
    GemmFunction run = baseline::gemm_blocks;
#if defined(MMAPROBE_HAS_BUILD_avx2)
    if (name == "avx2") run = avx2::gemm_blocks;
#endif
#if defined(MMAPROBE_HAS_BUILD_avx512)
    if (name == "avx512") run = avx512::gemm_blocks;
#endif
    auto ended = Ended::WHOLE;
    {
        py::gil_scoped_release release;
        ended = on_every_core(run, call, double(call.m) * double(call.n) * double(k) > LASTS);
    }
    if (ended == Ended::INTERRUPTED) throw py::error_already_set();
    if (ended == Ended::OUT_OF_MEMORY) throw std::bad_alloc();
    for (size_t i = 0; i < sizes.size(); ++i)
        largest.mutable_data()[i] = std::max<uint64_t>(largest.data()[i], sizes[i]);
}

std::map<std::string, std::vector<std::string>> layout() {
#define MMAPROBE_QUOTE(name) #name,
    return {{"operations", {MMAPROBE_GEMM_OPERATIONS(MMAPROBE_QUOTE)}},
            {"operation", {MMAPROBE_GEMM_OPERATION(MMAPROBE_QUOTE)}}};
#undef MMAPROBE_QUOTE
}

}  // namespace

void cpu::register_gemm(py::module_& m) {
    m.def("gemm", &gemm, py::arg("operations"), py::arg("programs"), py::arg("order"), py::arg("a"), py::arg("b"),
          py::arg("values"), py::arg("chained"), py::arg("inputs"), py::arg("d"), py::arg("largest"),
          py::arg("most_rows"), py::arg("most_columns"), py::arg("build") = "",
          "Run the operations of a schedule on blocks of D, on every core; each matrix comes with the rows and the "
          "columns "
          "of it that the elements have.");
    m.def("gemm_layout", &layout, "Operations of matrix products and their columns.");
}

}  // namespace mmaprobe
