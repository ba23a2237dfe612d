// What one tile, or one group of 16 vectors, is made of; and the interpreter on it.
#pragma once
#include <cstring>
#include <new>
#include <vector>

#include "cpu/kernels/tiles.hpp"
#include "model/program.hpp"

namespace mmaprobe {
namespace {

using baseline::EncodeRow;
using baseline::Header;
using baseline::OperandRow;

// Places of Domain.packed (generators/domain.py): five layouts of 14 numbers, then the space.
constexpr int LAYOUT = 14, LAYOUT_IS_FLOAT = 1, LAYOUT_ITEM = 3, LAYOUT_PADDING = 9, LAYOUT_LARGEST = 10,
              LAYOUT_SIGN = 11, LAYOUT_INFINITY = 12, LAYOUT_NAN_RULE = 13;
constexpr int DOMAIN_C = 2 * LAYOUT, DOMAIN_D = 3 * LAYOUT, DOMAIN_SPACE = 5 * LAYOUT;

// Sizes of what one tile, or one group of 16 vectors, has: of each operand, and of the results.
struct Unit {
    int m, n, strips, columns;
    int64_t side, vectors, out_bytes,
        results;  // vectors generated and compared; bytes of a result; results with padding
    int64_t items[5], width[5], size[5];

    Unit(const int64_t* program, const int64_t* domain, int rows, int columns_)
        : m(columns_ ? rows : STRIP), n(columns_), out_bytes(domain[DOMAIN_D + LAYOUT_ITEM]) {
        const Header h{program};
        strips = n ? (m + STRIP - 1) / STRIP : 1;
        columns = n ? n : 1;
        side = n ? (m > n ? m : n) : STRIP;
        vectors = n ? int64_t(m) * n : STRIP;
        results = int64_t(strips) * STRIP * columns;
        const int column[5] = {Header::a, Header::b, Header::c, Header::scale, Header::scale};
        for (int i = 0; i < 5; ++i) {
            const int64_t at = h[Header::Column(column[i])];
            items[i] = at == baseline::ABSENT ? 0
                       : i < 2                ? h[Header::k]
                       : i == 2               ? 1
                                              : h[Header::k] / h[Header::scale_size];
            width[i] = items[i] ? program[at + OperandRow::bytes] : 0;
            const int64_t places = i == 2 ? results : n && (i == 1 || i == 4) ? n : int64_t(strips) * STRIP;
            size[i] = items[i] * width[i] * places;
        }
    }
    int64_t bytes() const { return size[0] + size[1] + size[2] + size[3] + size[4] + 2 * results * out_bytes; }
};

// The interpreter on the pairs of rows and columns of tiles, strip by strip, or on the vectors of groups.
class Pairs {
    const Unit& unit;
    const EngineBuild& engine;
    std::vector<char> rows, pairs[5];

    int64_t row_bytes(int operand) const { return unit.items[operand] * unit.width[operand]; }

    // 16 rows out of columns of 16.
    void turn(int operand, const char* from, char* to) const {
        const int64_t width = unit.width[operand];
        for (int64_t lane = 0; lane < STRIP; ++lane)
            for (int64_t k = 0; k < unit.items[operand]; ++k, to += width)
                std::memcpy(to, from + (k * STRIP + lane) * width, size_t(width));
    }
    // Row `lane` of 16 for each column, or row `column` of n for each lane.
    void spread(int operand, const char* rows_of, bool by_column) {
        const int64_t size = row_bytes(operand);
        char* to = pairs[operand].data();
        for (int column = 0; column < unit.n; ++column)
            for (int lane = 0; lane < STRIP; ++lane, to += size)
                std::memcpy(to, rows_of + (by_column ? column : lane) * size, size_t(size));
    }
    void evaluate(const int64_t* program, int64_t vectors, const char* c, char* out) {
        EngineCall call{};
        void* const to = out;
        call.programs = &program;
        call.outs = &to;
        call.count = 1;
        call.vectors = vectors;
        call.out_bytes = int(unit.out_bytes);
        for (int i = 0; i < 5; ++i) {
            call.base[i] = !unit.items[i] ? nullptr : i == 2 ? c : pairs[i].data();
            call.row[i] = unit.items[i];
        }
        if (!engine.run(call)) throw std::bad_alloc();
    }

public:
    Pairs(const Unit& u, const EngineBuild& build, int64_t units) : unit(u), engine(build) {
        for (int i = 0; i < 5; ++i)
            if (i != 2) pairs[i].resize(size_t(row_bytes(i) * STRIP * (unit.n ? unit.n : units)));
        rows.resize(size_t((row_bytes(0) > row_bytes(3) ? row_bytes(0) : row_bytes(3)) * STRIP));
    }

    void run_groups(const int64_t* program, void* const* operand, int64_t groups, char* out) {
        for (int i = 0; i < 5; ++i)
            for (int64_t g = 0; i != 2 && unit.items[i] && g < groups; ++g) {
                const int64_t at = g * unit.size[i];
                turn(i, static_cast<char*>(operand[i]) + at, pairs[i].data() + at);
            }
        evaluate(program, groups * STRIP, static_cast<char*>(operand[2]), out);
    }

    void run_tiles(const int64_t* program, void* const* operand, int64_t tiles, char* out) {
        const int64_t results = int64_t(STRIP) * unit.n;
        for (int64_t tile = 0; tile < tiles; ++tile)
            for (int strip = 0; strip < unit.strips; ++strip, out += results * unit.out_bytes) {
                const auto at = [&](int i) { return static_cast<char*>(operand[i]) + tile * unit.size[i]; };
                for (int i : {0, 3})
                    if (unit.items[i]) {
                        turn(i, at(i) + strip * row_bytes(i) * STRIP, rows.data());
                        spread(i, rows.data(), false);
                    }
                for (int i : {1, 4})
                    if (unit.items[i]) spread(i, at(i), true);
                const char* c = unit.items[2] ? at(2) + strip * results * unit.width[2] : nullptr;
                evaluate(program, results, c, out);
            }
    }
};

}  // namespace
}  // namespace mmaprobe
