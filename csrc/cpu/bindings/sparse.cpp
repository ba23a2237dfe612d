// The lanes of B that sparse metadata selects.
#include "cpu/bindings/sparse.hpp"

#include <pybind11/numpy.h>

#include <cstring>
#include <stdexcept>

namespace py = pybind11;

namespace mmaprobe::cpu {
namespace {

struct Selection {
    const char* b;            // groups of `lanes` rows of `width` bytes
    const uint8_t* metadata;  // rows of `lanes / chunk` items, `per` rows a group
    const uint8_t* kept;      // 16 items by chunk / 2 lanes
    char* out;                // one row of b for every kept lane
    int64_t groups, per, lanes, chunk, width;
};

// Width 0: known at run time only.
template <int Width>
void select_rows(const Selection& s) {
    const size_t width = size_t(Width ? Width : s.width);
    const int64_t half = s.chunk / 2, items = s.lanes / s.chunk;
    const uint8_t* item = s.metadata;
    char* out = s.out;
    for (int64_t group = 0; group < s.groups; ++group) {
        const char* b = s.b + size_t(group * s.lanes) * width;
        for (int64_t row = 0; row < s.per; ++row) {
            const char* chunk = b;
            for (int64_t i = 0; i < items; ++i, ++item, chunk += size_t(s.chunk) * width) {
                const uint8_t* kept = s.kept + (*item & 15) * half;
                for (int64_t k = 0; k < half; ++k, out += width) std::memcpy(out, chunk + kept[k] * width, width);
            }
        }
    }
}

void run(const Selection& s) {
    switch (s.width) {
        case 1: return select_rows<1>(s);
        case 2: return select_rows<2>(s);
        case 4: return select_rows<4>(s);
        case 8: return select_rows<8>(s);
        case 16: return select_rows<16>(s);
        case 32: return select_rows<32>(s);
        case 64: return select_rows<64>(s);
        default: return select_rows<0>(s);
    }
}

using Bytes = py::array_t<uint8_t, py::array::c_style>;

// out[g, r] = the rows of b[g] that metadata[g, r] keeps: b (groups, K, width), metadata (groups, rows, K / chunk),
// kept (16, chunk / 2), out (groups, rows, K / 2, width).
void select(const py::array& b, const Bytes& metadata, const Bytes& kept, py::array out) {
    const bool contiguous = b.flags() & out.flags() & py::array::c_style;
    if (!contiguous || b.ndim() != 3 || metadata.ndim() != 3 || kept.ndim() != 2 || out.ndim() != 4)
        throw std::invalid_argument("select_lanes takes C-contiguous b, metadata, kept and out of 3, 3, 2 and 4 axes");
    const int64_t chunk = 2 * kept.shape(1), lanes = b.shape(1);
    const bool fits = kept.shape(0) == 16 && metadata.shape(0) == b.shape(0) && metadata.shape(2) * chunk == lanes &&
                      out.shape(0) == b.shape(0) && out.shape(1) == metadata.shape(1) && out.shape(2) * 2 == lanes &&
                      out.shape(3) == b.shape(2) && out.itemsize() == b.itemsize();
    if (!fits) throw std::invalid_argument("select_lanes: the shapes of b, metadata, kept and out do not fit");
    const Selection s{static_cast<const char*>(b.data()),
                      metadata.data(),
                      kept.data(),
                      static_cast<char*>(out.mutable_data()),
                      b.shape(0),
                      metadata.shape(1),
                      lanes,
                      chunk,
                      b.shape(2) * b.itemsize()};
    py::gil_scoped_release release;
    run(s);
}

}  // namespace

void register_sparse(py::module_& m) {
    m.def("select_lanes", &select, py::arg("b"), py::arg("metadata"), py::arg("kept"), py::arg("out"),
          "Fill out with the rows of b that sparse metadata keeps.");
}

}  // namespace mmaprobe::cpu
