// The operands of a strip and of a tile's columns (or of a group), decoded.
#pragma once
#include <type_traits>

#include "cpu/kernels/fused_exact.hpp"
#include "cpu/kernels/fused_fast.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace fused {

// Values, exponents and offsets of rows (16 of them) or of columns.
template <class Label>
struct Side {
    float* values = nullptr;
    Label* labels = nullptr;  // bytes, or words of two
    i32* offsets = nullptr;  // of scales, or of the largest; those of wide columns include the product's field
    bool special = false, nan = false;
};

// Pieces of one allocation, each at the start of a cache line.
struct Pieces {
    char* memory = nullptr;
    size_t used = 0;

    Pieces() = default;
    Pieces(const Pieces&) = delete;
    Pieces& operator=(const Pieces&) = delete;
    ~Pieces() { free(memory); }

    template <class T>
    void take(T*& piece, size_t count) {  // without memory: only counts
        if (memory) piece = reinterpret_cast<T*>(memory + used);
        used += (count * sizeof(T) + 63) / 64 * 64;
    }
    // What `all` takes, zeroed; false: out of memory.
    template <class All>
    bool take_all(const All& all) {
        all();
        memory = static_cast<char*>(aligned_alloc(64, used));
        if (!memory) return false;
        memset(memory, 0, used);
        used = 0;
        all();
        return true;
    }
};

template <Mode MODE>
struct Operands {
    using Label = std::conditional_t<MODE == Mode::WIDE, i32, int8_t>;
    const LayoutCall& call;
    const Reading& scale;  // where there are scales
    const Fast& fast;
    const int k, columns;  // columns: N, or 0 for groups
    Side<Label> a, b;
    int8_t* flat = nullptr;    // [column][k]; b.labels are by blocks then
    uint16_t* tops = nullptr;  // wide: the largest of an item's column
    char* codes = nullptr;     // wide: those of columns that end within a register
    const char* b_codes = nullptr;
    bool b_scaled = false, b_kept = false;

    // Rows of 16 of `from`, or of both operands of a group.
    MMAPROBE_HD void read_strip(i64 strip) {
        const i64 at = strip * k * ROWS;
        if constexpr (MODE == Mode::WIDE) {
            label_wide(a, fast.a, call.a, at);
            const bool keep = a.special || b.special;
            scale_wide(a, fast.a, call.a, at, keep);
            if (b_scaled && (b_kept || !keep)) return;
            keep ? scale_columns<true>(fast.b, b_codes, columns * k, tops, b.values)
                 : scale_columns<false>(fast.b, b_codes, columns * k, tops, b.values);
            b_scaled = true;
            b_kept = keep;
        } else {
            read_narrow(a, fast.a, call.a, at, k * ROWS, a.labels);
            if (MODE == Mode::SCALED) read_scales(a, call.scale_a, strip * ROWS, ROWS);
        }
    }

    MMAPROBE_HD void read_group(i64 g) {
        const i64 at = g * k * ROWS;
        if constexpr (MODE == Mode::WIDE) {
            label_wide(a, fast.a, call.a, at);
            label_wide(b, fast.b, call.b, at);
            const bool keep = a.special || b.special;
            scale_wide(a, fast.a, call.a, at, keep);
            scale_wide(b, fast.b, call.b, at, keep);
        } else {
            read_narrow(a, fast.a, call.a, at, k * ROWS, a.labels);
            read_narrow(b, fast.b, call.b, at, k * ROWS, b.labels);
            if (MODE != Mode::SCALED) return;
            read_scales(a, call.scale_a, g * ROWS, ROWS);
            read_scales(b, call.scale_b, g * ROWS, ROWS);
        }
    }

    // Columns of a tile; the values of wide ones come with the first strip.
    MMAPROBE_HD void read_columns(i64 tile) {
        const i64 at = tile * columns * k;
        const int items = columns * k;
        if constexpr (MODE == Mode::WIDE) {
            b_codes = static_cast<const char*>(call.b) + at * fast.b.bytes;
            if (items % HALVES) {
                memcpy(codes, b_codes, size_t(items) * size_t(fast.b.bytes));
                b_codes = codes;
            }
            b.special = label_columns(fast.b, b_codes, items, k, reinterpret_cast<uint16_t*>(b.labels), tops);
            const i32 field = fast.product_field, least = LEAST_LABEL + field;
            const uint16_t* top = tops;
            for (i32 *to = b.offsets, *end = to + columns; to < end; ++to, top += k) *to = larger(*top + field, least);
            b_scaled = b_kept = false;
        } else {
            read_narrow(b, fast.b, call.b, at, items, flat);
            if (MODE == Mode::SCALED) read_scales(b, call.scale_b, tile * columns, columns);
            for (int n = 0; n < columns; n += BLOCK) interleave(flat + n * k, b.labels + n * k, k);
        }
    }

    // The largest labels of the products of LANES vectors, from item `at` on; narrow: of every `every`th lane.
    MMAPROBE_HD I32s group_labels(int at, int step, int every = 1) const {
        if constexpr (MODE == Mode::WIDE) {
            const int word = (at - at % ROWS) / 2 + at % ROWS;
            Halves most = {};
            for (int i = 0; i < step / 2 * ROWS; i += ROWS)
                most = larger_halves(most, Halves(load<I32s>(a.labels + word + i) + load<I32s>(b.labels + word + i)));
            return larger_half(most);
        } else {
            I32s most = splat_int(2 * ZERO);
            for (int i = at; i < at + step * ROWS; i += every * ROWS)
                most = larger(most, widen(a.labels + i) + widen(b.labels + i));
            return larger(most, splat_int(ZERO));
        }
    }

    // The room that all this takes.
    void take(Pieces& pieces) {
        constexpr bool WIDE = MODE == Mode::WIDE;
        const size_t items = size_t(k), share = WIDE ? 2 : 1, in_a = items * ROWS + 64,
                     in_b = (room() + ROWS) * items + 64;
        pieces.take(a.values, in_a);
        pieces.take(b.values, in_b);
        pieces.take(a.labels, in_a / share);
        pieces.take(b.labels, in_b / share);
        pieces.take(a.offsets, ROWS);
        pieces.take(b.offsets, room());
        pieces.take(flat, WIDE ? 0 : in_b);
        pieces.take(tops, WIDE ? in_b : 0);
        pieces.take(codes, WIDE ? in_b * size_t(fast.b.bytes) : 0);
    }
    size_t room() const { return size_t((columns + BLOCK - 1) / BLOCK * BLOCK + ROWS); }  // of columns

private:
    void label_wide(Side<Label>& side, const Decoding& d, const void* from, i64 at) const {
        side.special = false;
        for (int part = 0; part < PARTS; ++part)
            side.special |= label_rows(d, from, at, k, part, reinterpret_cast<i32*>(side.labels), side.offsets);
    }

    MMAPROBE_HD void scale_wide(Side<Label>& side, const Decoding& d, const void* from, i64 at, bool keep) const {
        for (int part = 0; part < PARTS; ++part)
            keep ? scale_rows<true>(d, from, at, k, part, side.offsets, side.values)
                 : scale_rows<false>(d, from, at, k, part, side.offsets, side.values);
    }

    // One side: `items` of d.bytes, rows of 16 or columns of k; values and fields in the same order.
    MMAPROBE_HD void read_narrow(Side<Label>& side, const Decoding& d, const void* from, i64 at, int items,
                                 int8_t* fields) const {
        d.plain() ? read_halves<true>(side, d, from, at, items, fields) : read_others(side, d, from, at, items, fields);
    }

    __attribute__((noinline)) void read_others(Side<Label>& side, const Decoding& d, const void* from, i64 at,
                                               int items, int8_t* fields) const {
        read_halves<false>(side, d, from, at, items, fields);
    }

    template <bool PLAIN>
    MMAPROBE_HD void read_halves(Side<Label>& side, const Decoding d, const void* from, i64 at, int items,
                                 int8_t* fields) const {
        Seen seen;
        float* const values = side.values;
        const char* base = static_cast<const char*>(from) + at * d.bytes;
        int i = 0;
        for (; i + HALVES <= items; i += HALVES) half_items<PLAIN>(d, base, i, values, fields, seen);
        if (i < items) {
            alignas(64) char rest[2 * HALVES] = {};
            memcpy(rest, base + i * d.bytes, size_t(items - i) * size_t(d.bytes));
            half_items<PLAIN>(d, rest, 0, values + i, fields + i, seen);
        }
        side.special = seen.above(d.special_above);
    }

    // Scales of a row or a column: its offset.
    MMAPROBE_HD void read_scales(Side<Label>& side, const void* from, i64 at, int items) const {
        side.nan = false;
        for (int i = 0; i < items; ++i) {
            const u32 code = static_cast<const uint8_t*>(from)[at + i];
            side.offsets[i] = i32(code) - scale.bias;
            side.nan |= code > scale.nan_above;
        }
    }
};

}  // namespace fused
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
