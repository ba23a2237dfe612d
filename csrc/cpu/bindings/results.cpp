// Arrays for results whose memory, once dropped, serves the next call: fresh pages cost more than the sums in them.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <mutex>
#include <new>
#include <vector>

#include "cpu/kernels/engine.hpp"

namespace py = pybind11;

namespace mmaprobe {
namespace {

constexpr size_t LEAST = size_t(1) << 16, MOST = size_t(1) << 24;  // bytes of a block that is worth keeping
constexpr size_t KEPT = 4, HUGE_PAGE = size_t(1) << 21;

struct Block {
    void* at;
    size_t bytes;
};

class ResultMemory {
    std::mutex mutex;
    std::vector<Block> kept;  // the oldest first

public:
    // At least so many bytes: those dropped last, unless they are more than twice as many.
    Block take(size_t bytes) {
        {
            const std::lock_guard<std::mutex> lock(mutex);
            for (size_t i = kept.size(); i-- > 0;)
                if (kept[i].bytes >= bytes && kept[i].bytes / 2 <= bytes) {
                    const Block found = kept[i];
                    kept.erase(kept.begin() + std::ptrdiff_t(i));
                    return found;
                }
        }
        const size_t page = bytes < HUGE_PAGE ? 64 : HUGE_PAGE, size = (bytes + page - 1) / page * page;
        void* at = aligned_alloc(page, size);
        if (!at) throw std::bad_alloc();
        if (page == HUGE_PAGE) madvise(at, size, MADV_HUGEPAGE);  // small pages do as well where it is refused
        return {at, size};
    }

    void give(Block block) {
        void* dropped = block.at;
        if (block.bytes <= MOST) {
            const std::lock_guard<std::mutex> lock(mutex);
            dropped = nullptr;
            if (kept.size() == KEPT) {
                dropped = kept.front().at;
                kept.erase(kept.begin());
            }
            kept.push_back(block);
        }
        free(dropped);
    }
};

// Lives as long as the last array, whenever that goes.
ResultMemory& memory() {
    static auto& all = *new ResultMemory;
    return all;
}

// An uninitialised C-contiguous array.
py::array results(const py::dtype& dtype, const std::vector<py::ssize_t>& shape) {
    size_t bytes = size_t(dtype.itemsize());
    for (const py::ssize_t length : shape) bytes *= size_t(length);
    if (bytes < LEAST) return py::array(dtype, shape);
    auto* block = new Block(memory().take(bytes));
    const py::capsule owner(block, [](void* owned) {
        auto* held = static_cast<Block*>(owned);
        memory().give(*held);
        delete held;
    });
    return py::array(dtype, shape, block->at, owner);
}

}  // namespace

void cpu::register_results(py::module_& m) {
    m.def("results", &results, py::arg("dtype"), py::arg("shape"),
          "An uninitialised C-contiguous array; what a dropped one held serves the next.");
}

}  // namespace mmaprobe
