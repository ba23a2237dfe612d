// What the compiler knows of a datapath that is compiled in: PROGRAM, CHUNK and DOTS stand before this text
// (toolchain/compiled.py), and every class of compiled*.hpp is made of them.
//
// An operand of a row or a column is put item by item by the threads of a group, in any order; after a barrier one
// thread seals it; after another any thread evaluates.  Where A is sparse, a row has LIVE items and a column all K.
#pragma once
#include "fused_lane.hpp"
#include "operands.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace compiled {

enum class Mode { NEAREST, TOWARDS_ZERO, DOWN, UP };  // as ChainRow::rounding counts

constexpr Header HEADER{PROGRAM};
MMAPROBE_HD constexpr i64 header(Header::Column column) { return HEADER[column]; }
MMAPROBE_HD constexpr OperandRow operand_at(i64 at) { return OperandRow{PROGRAM + at}; }
MMAPROBE_HD constexpr i64 of_operand(Header::Column name, OperandRow::Column column) {
    return HEADER[name] == ABSENT ? 0 : operand_at(HEADER[name])[column];
}
static_assert(HEADER[Header::random] == ABSENT, "a compiled model has no operand of random bits");
constexpr bool HAS_C = HEADER[Header::c] != ABSENT, SCALED = HEADER[Header::scale_where] != UNSCALED;
constexpr i64 RULES = HEADER[Header::rules] == ABSENT ? 0 : HEADER[Header::rules];  // of the kernel
constexpr int LIVE = int(HEADER[Header::k]), K = CHUNK ? 2 * LIVE : LIVE;
constexpr int GROUPS = SCALED ? LIVE / int(HEADER[Header::scale_size]) : 0, GROUP = SCALED ? LIVE / GROUPS : LIVE;

// Bytes of a result.
MMAPROBE_HD constexpr int result_bytes() {
    const EncodeRow d{PROGRAM + HEADER[Header::d]};
    const i64 bits = d[EncodeRow::bits] + d[EncodeRow::padding];
    return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
}

// Unsigned integers of a width in bytes.
template <int BYTES>
struct Container {
    using type = u64;
};
template <>
struct Container<1> {
    using type = uint8_t;
};
template <>
struct Container<2> {
    using type = uint16_t;
};
template <>
struct Container<4> {
    using type = uint32_t;
};

MMAPROBE_HD constexpr int at_least_one(int count) { return count > 0 ? count : 1; }

// The item of a column that each item of a row meets: itself, or what the row's metadata names.
template <int ITEMS>
struct Meeting {
    uint8_t of[ITEMS];
    MMAPROBE_HD void put(int chunk, u32 item) {
        for (int lane = 0; lane < CHUNK / 2; ++lane)
            of[chunk * (CHUNK / 2) + lane] = uint8_t(chunk * CHUNK + generators::metadata_element(CHUNK, item, lane));
    }
    MMAPROBE_HD int operator[](int lane) const { return of[lane]; }
};
template <>
struct Meeting<0> {
    MMAPROBE_HD void put(int, u32) {}
    MMAPROBE_HD int operator[](int lane) const { return lane; }
};
using Meets = Meeting<CHUNK ? LIVE : 0>;
static_assert(!CHUNK || K <= 256, "a column's item is named by a byte");

// Several outputs of a model that gains nothing by having them at once.
template <class Model>
struct OneByOne {
    static constexpr Mode ROUNDING = Mode::NEAREST;
    template <class Row, class Column>
    MMAPROBE_HD static void evaluate_two(const Row& row, const Column& first, const Column& second, const u64* c,
                                         u64* d) {
        d[0] = Model::evaluate(row, first, c[0]);
        d[1] = Model::evaluate(row, second, c[1]);
    }
    template <class Row, class Column>
    MMAPROBE_HD static void evaluate_four(const Row& row, const Row& next_row, const Column& first,
                                          const Column& second, const u64* c, u64* d) {
        evaluate_two(row, first, second, c, d);
        evaluate_two(next_row, first, second, c + 2, d + 2);
    }
};

// Sixteen bytes that a thread reads at once.
struct alignas(16) Quad {
    u32 word[4];
};

// Quads of a row or column, so that neighbours of it lie in different banks.
MMAPROBE_HD constexpr int spread_quads(int quads) { return quads | 1; }

}  // namespace compiled
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
