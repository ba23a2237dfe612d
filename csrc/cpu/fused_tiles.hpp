// Tiles and groups through the fast way, lanes that it cannot do through the exact one.
#pragma once
#include <memory>

#include "cpu/fused_exact.hpp"
#include "cpu/fused_fast.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace fused {

template <Mode MODE>
struct FieldOf {
    using type = int8_t;
};
template <>
struct FieldOf<Mode::WIDE> {
    using type = int16_t;
};

// Everything that a call works on beside its arrays.
template <Mode MODE, int STEP>
struct Fused {
    using E = typename FieldOf<MODE>::type;
    const LayoutCall& call;
    const Plan& plan;
    const Fast& fast;
    std::unique_ptr<Scratch>& scratch;  // made when first needed: it is large
    int k, columns;  // columns: N, or 0 for groups
    float *a_values = nullptr, *b_values = nullptr;
    E *a_fields = nullptr, *b_fields = nullptr, *b_flat = nullptr, *labels = nullptr;
    i32 *a_offsets = nullptr, *b_offsets = nullptr;
    bool a_special = false, b_special = false, a_nan = false, b_nan = false;

    Scratch& exact_lanes() {
        if (!scratch) scratch.reset(new Scratch);
        return *scratch;
    }

    // One side: `items` of `bytes`, rows of 16 or columns of k; values and fields in the same order.
    MMAPROBE_HD bool read_narrow(const Decoding d, const void* from, i64 at, int items, float* values, E* fields) const {
        Seen seen;
        const char* base = static_cast<const char*>(from) + at * d.bytes;
        int i = 0;
        for (; i + HALVES <= items; i += HALVES)
            half_items(d, base, i, values, reinterpret_cast<int8_t*>(fields), seen);
        if (i < items) {
            alignas(64) char rest[2 * HALVES] = {};
            memcpy(rest, base + i * d.bytes, size_t(items - i) * size_t(d.bytes));
            half_items(d, rest, 0, values + i, reinterpret_cast<int8_t*>(fields) + i, seen);
        }
        return seen.above(d.special_above);
    }

    // Rows of 16, scaled by their largest.
    MMAPROBE_HD bool read_wide_rows(const Decoding d, const void* from, i64 at, float* values, E* fields, i32* offsets) {
        bool special = false;
        for (int part = 0; part < PARTS; ++part) {
            I32s most = {};
            for (int i = 0; i < k; ++i)
                most = larger(most, top_items(d, from, at + i * ROWS + part * LANES) & 0x7FFFFFFF);
            special |= any_lane(where_less(splat_int(0x7F7FFFFF), most));
            const I32s bounded = bounded_field(most >> 23);
            const F32s scale = scale_of(bounded);
            store(offsets + part * LANES, bounded);
            for (int i = 0; i < k; ++i) {
                const I32s x = top_items(d, from, at + i * ROWS + part * LANES);
                narrow(reinterpret_cast<uint16_t*>(fields + i * ROWS + part * LANES), U32s(top_fields(x)));
                store(values + i * ROWS + part * LANES, scaled_item(x, scale));
            }
        }
        return special;
    }

    // Columns of k, each scaled by its largest: k a power of two, or a multiple of LANES.
    MMAPROBE_HD bool read_wide_columns(const Decoding d, const void* from, i64 at, float* values, E* fields, i32* offsets) {
        const char* base = static_cast<const char*>(from) + at * d.bytes;
        const int items = columns * k, width = k < LANES ? k : LANES;
        alignas(64) char rest[4 * LANES] = {};
        I32s special = {};
        for (int i = 0; i < items; i += k < LANES ? LANES : k) {
            const int end = k < LANES ? i + LANES : i + k;
            const bool whole = end <= items;
            if (!whole) memcpy(rest, base + i * d.bytes, size_t(items - i) * size_t(d.bytes));
            I32s most = {};
            for (int j = i; j < end; j += LANES)
                most = larger(most, top_items(d, whole ? base : rest, whole ? j : 0) & 0x7FFFFFFF);
            most = largest_of_neighbours(most, width);
            special |= 0x7F7FFFFF - most;
            const I32s bounded = bounded_field(most >> 23);
            const F32s scale = scale_of(bounded);
            alignas(64) i32 found[LANES];
            store(found, bounded);
            for (int j = 0; j < LANES; j += width) offsets[(i + j) / k] = found[j];
            for (int j = i; j < end; j += LANES) {
                const I32s x = top_items(d, whole ? base : rest, whole ? j : 0);
                narrow(reinterpret_cast<uint16_t*>(fields + j), U32s(top_fields(x)));
                store(values + j, scaled_item(x, scale));
            }
        }
        return any_negative(special);
    }

    // Scales of a row or a column: its offset; true where one is a NaN.
    MMAPROBE_HD bool read_scales(const void* from, i64 at, int items, i32* offsets) const {
        bool nan = false;
        for (int i = 0; i < items; ++i) {
            const u32 code = static_cast<const uint8_t*>(from)[at + i];
            offsets[i] = i32(code) - plan.scale.bias;
            nan |= code > plan.scale.nan_above;
        }
        return nan;
    }

    void read_rows(const void* from, const void* scales, i64 strip, const Decoding& d, float* values, E* fields,
                   i32* offsets, bool& special, bool& nan) {
        const i64 at = strip * k * ROWS;
        special = MODE == Mode::WIDE ? read_wide_rows(d, from, at, values, fields, offsets)
                                     : read_narrow(d, from, at, k * ROWS, values, fields);
        if (MODE == Mode::SCALED) nan = read_scales(scales, strip * ROWS, ROWS, offsets);
    }

    void read_columns(i64 tile) {
        const i64 at = tile * columns * k;
        if (MODE == Mode::WIDE) {
            b_special = read_wide_columns(fast.b, call.b, at, b_values, b_flat, b_offsets);
        } else {
            b_special = read_narrow(fast.b, call.b, at, columns * k, b_values, b_flat);
            if (MODE == Mode::SCALED) b_nan = read_scales(call.scale_b, tile * columns, columns, b_offsets);
        }
        for (int n = 0; n < columns; n += BLOCK)
            interleave<E>(b_flat + n * k, b_fields + n * k, k);
    }

    // Infinities and NaNs of a step for one register of outputs; the lanes that have them are not bad in it.
    MMAPROBE_HD F32s with_specials(F32s value, F32s c, const float* a, const float* b, int step, bool columns_of_b,
                                   Mask& bad) const {
        F32s sum = {};
        for (int i = 0; i < step; ++i) {
            const F32s y = columns_of_b ? splat_float(b[i]) : load<F32s>(b + i * ROWS);
            sum = multiply_add(load<F32s>(a + i * ROWS), y, sum);
        }
        const I32s top = splat_int(0x7F7FFFFF);
        const Mask special = where_less(top, I32s(sum) & 0x7FFFFFFF) | where_less(top, I32s(c) & 0x7FFFFFFF);
        bad &= ~special;
        return choose(special, sum + c, value);
    }

    MMAPROBE_HD F32s load_c(i64 at) const {
        if (!call.c) return F32s{};
        return fast.c_half ? from_half(static_cast<const uint16_t*>(call.c) + at)
                           : load<F32s>(static_cast<const float*>(call.c) + at);
    }

    // Stores the results of the last step, or rounds those of another to what the next step takes.
    template <bool CAREFUL>
    MMAPROBE_HD F32s put(F32s value, i64 at, bool last) const {
        const Mask nan = CAREFUL ? where_less(splat_int(0x7F800000), I32s(value) & 0x7FFFFFFF) : Mask{};
        if (fast.result == Result::F16) {
            alignas(64) uint16_t codes[LANES];
            to_half(codes, value);
            typedef uint16_t Small __attribute__((vector_size(2 * LANES)));
            Small x = load<Small>(codes);
            if (!fast.negative_underflow) x &= ~(Small(x == 0x8000));
            if (last) {
                if (CAREFUL) x = pick_half(nan, x);
                store(static_cast<uint16_t*>(call.d) + at, x);
                return value;
            }
            store(codes, x);
            return from_half(codes);
        }
        if (last) {
            const I32s code = CAREFUL ? choose(nan, splat_int(i32(fast.nan)), I32s(value)) : I32s(value);
            store(static_cast<i32*>(call.d) + at, code);
        }
        return value;
    }

    template <class Small>
    MMAPROBE_HD Small pick_half(Mask nan, Small x) const {
        uint16_t codes[LANES];
        store(codes, x);
        narrow(codes, U32s(choose(nan, splat_int(i32(fast.nan)), I32s(widen(codes)))));
        return load<Small>(codes);
    }

    // One block of columns of a strip; false where it met trouble and was not careful.
    template <bool CAREFUL>
    MMAPROBE_HD bool block(i64 tile, i64 strip, int n) {
        const int live = columns - n < BLOCK ? columns - n : BLOCK, step = STEP ? STEP : fast.step;
        const i64 at = (strip * columns + n) * ROWS;
        F32s c[4];
        I32s trouble = {};
        Mask bad[4] = {};
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) c[i] = i / PARTS < live ? load_c(at + i * LANES) : F32s{};
        for (int first = 0; first < k; first += step) {
            const bool last = first + step == k, half = first ? fast.result == Result::F16 : fast.c_half;
            const E* flat = labels + (n * (k / step) + first / step * BLOCK) * ROWS;
            Aligned x[4];
            I32s offset[4] = {}, sums[4];
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i) {
                if (MODE != Mode::NARROW)
                    offset[i] = load<I32s>(a_offsets + i % PARTS * LANES) + b_offsets[n + i / PARTS];
                x[i] = align<MODE>(fast, widen(flat + i * LANES), c[i], offset[i], half);
            }
            const float *a = a_values + first * ROWS, *b = b_values + n * k + first;
            I32s over[4] = {};
            sum_products(a, b, step, x, sums, over);
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i) {
                const int q = i / PARTS;
                F32s value = finish<MODE>(fast, x[i], sums[i], over[i]);
                if (CAREFUL) {
                    Mask now = beyond_fast<MODE>(fast, x[i], offset[i]) | where_negative(over[i]);
                    value = with_specials(value, c[i], a + i % PARTS * LANES, b + q * k, step, true, now);
                    bad[i] |= now;
                } else {
                    trouble |= x[i].trouble | over[i];
                }
                if (q < live || !last) c[i] = put<CAREFUL>(value, at + i * LANES, last);
            }
        }
        if (!CAREFUL) return !any_negative(trouble);
        for (int q = 0; q < live; ++q) {
            Mask any = bad[q * PARTS];
            for (int part = 1; part < PARTS; ++part) any |= bad[q * PARTS + part];
            if (any_lane(any)) exact_column(plan, call, tile, strip, n + q, exact_lanes());
        }
        return true;
    }

    __attribute__((noinline)) void careful_block(i64 tile, i64 strip, int n) { block<true>(tile, strip, n); }

    // The labels of every block and step of a strip: [block][step][column][row].
    void label_all() {
        const int step = STEP ? STEP : fast.step;
        E* to = labels;
        for (int n = 0; n < columns; n += BLOCK)
            for (int first = 0; first < k; first += step, to += BLOCK * ROWS)
                largest_fields<E, STEP>(a_fields + first * ROWS, b_fields + n * k + first * BLOCK, step, to);
    }

    MMAPROBE_HD void sum_products(const float* a, const float* b, int step, const Aligned* x, I32s* sums,
                                  I32s* over) const {
        if (!fast.two) return add_products<STEP>(a, b, k, step, x, sums);
        I32s more[4];
        add_products<STEP / 2>(a, b, k, step / 2, x, sums);
        add_products<STEP / 2>(a + step / 2 * ROWS, b + step / 2, k, step / 2, x, more);
        for (int i = 0; i < 4; ++i) {
            const I32s both = sums[i] + more[i];
            over[i] = overflown(sums[i], more[i], both);
            sums[i] = both;
        }
    }

    void tiles() {
        const int strips = (call.m + ROWS - 1) / ROWS;
        for (i64 tile = 0; tile < call.count; ++tile) {
            read_columns(tile);
            for (int s = 0; s < strips; ++s) {
                const i64 strip = tile * strips + s;
                if (scratch) scratch->forget();
                read_rows(call.a, call.scale_a, strip, fast.a, a_values, a_fields, a_offsets, a_special, a_nan);
                if (a_nan || b_nan) {
                    for (int n = 0; n < columns; ++n) exact_column(plan, call, tile, strip, n, exact_lanes());
                    continue;
                }
                label_all();
                const bool careful = a_special || b_special;
                for (int n = 0; n < columns; n += BLOCK)
                    if (careful || !block<false>(tile, strip, n)) careful_block(tile, strip, n);
            }
        }
    }

    // A group: each lane with a row and a column of its own.
    void group(i64 g) {
        read_rows(call.a, call.scale_a, g, fast.a, a_values, a_fields, a_offsets, a_special, a_nan);
        read_rows(call.b, call.scale_b, g, fast.b, b_values, b_fields, b_offsets, b_special, b_nan);
        bool wrong = a_nan || b_nan;
        for (int part = 0; part < PARTS; ++part)
            if (!(a_special || b_special ? part_of_group<true>(g, part) : part_of_group<false>(g, part)))
                wrong |= !part_of_group<true>(g, part);
        if (wrong) exact_group(plan, call, g, exact_lanes());
    }

    template <bool CAREFUL>
    MMAPROBE_HD bool part_of_group(i64 g, int part) {
        const int lane = part * LANES, step = STEP ? STEP : fast.step, piece = fast.two ? step / 2 : step;
        F32s c = load_c(g * ROWS + lane);
        Mask bad = {};
        I32s trouble = {}, offset = {};
        if (MODE != Mode::NARROW) offset = load<I32s>(a_offsets + lane) + load<I32s>(b_offsets + lane);
        for (int first = 0; first < k; first += step) {
            const bool last = first + step == k, half = first ? fast.result == Result::F16 : fast.c_half;
            const int at = first * ROWS + lane;
            I32s fields = splat_int(2 * ZERO<E>);
            for (int i = 0; i < step; ++i)
                fields = larger(fields, widen(a_fields + at + i * ROWS) + widen(b_fields + at + i * ROWS));
            if (sizeof(E) == 1) fields = larger(fields, splat_int(-128));
            const Aligned x = align<MODE>(fast, fields, c, offset, half);
            I32s sums[2] = {};
            for (int i = 0; i < step; ++i) {
                const F32s y = load<F32s>(b_values + at + i * ROWS);
                const I32s term = truncate(load<F32s>(a_values + at + i * ROWS) * y * x.scale);
                if (i < piece) sums[0] += term; else sums[1] += term;
            }
            const I32s sum = sums[0] + sums[1];
            I32s over = fast.two ? overflown(sums[0], sums[1], sum) : I32s{};
            F32s value = finish<MODE>(fast, x, sum, over);
            if (CAREFUL) {
                Mask now = beyond_fast<MODE>(fast, x, offset) | where_negative(over);
                value = with_specials(value, c, a_values + at, b_values + at, step, false, now);
                bad |= now;
            }
            trouble |= x.trouble | over;
            c = put<CAREFUL>(value, g * ROWS + lane, last);
        }
        return CAREFUL ? !any_lane(bad) : !any_negative(trouble);
    }

    void groups() {
        for (i64 g = 0; g < call.count; ++g) group(g);
    }
};

template <Mode MODE, int STEP>
bool run(const LayoutCall& call, const Plan& plan, const Fast& fast, std::unique_ptr<Scratch>& scratch) {
    using F = Fused<MODE, STEP>;
    using E = typename F::E;
    const int k = plan.rules.k, columns = (call.n + BLOCK - 1) / BLOCK * BLOCK + ROWS;
    const size_t a = size_t(k * ROWS + 64), b = size_t(columns * k + k * ROWS + 64);
    const size_t labels = size_t(columns * ROWS * (k / fast.step));
    const size_t bytes = (a + b) * 4 + (a + 2 * b + labels) * sizeof(E) + size_t(ROWS + columns) * 4 + 8 * 64;
    char* memory = static_cast<char*>(aligned_alloc(64, (bytes + 63) / 64 * 64));
    if (!memory) return false;
    memset(memory, 0, (bytes + 63) / 64 * 64);
    char* at = memory;
    const auto take = [&](size_t size) {
        char* here = at;
        at += (size + 63) / 64 * 64;
        return here;
    };
    F f{call, plan, fast, scratch, k, call.n};
    f.a_values = reinterpret_cast<float*>(take(a * 4));
    f.b_values = reinterpret_cast<float*>(take(b * 4));
    f.a_fields = reinterpret_cast<E*>(take(a * sizeof(E)));
    f.b_fields = reinterpret_cast<E*>(take(b * sizeof(E)));
    f.b_flat = reinterpret_cast<E*>(take(b * sizeof(E)));
    f.labels = reinterpret_cast<E*>(take(labels * sizeof(E)));
    f.a_offsets = reinterpret_cast<i32*>(take(ROWS * 4));
    f.b_offsets = reinterpret_cast<i32*>(take(size_t(columns) * 4));
    call.n ? f.tiles() : f.groups();
    free(memory);
    return true;
}

// The steps that there are instructions of have code of their own.
template <Mode MODE>
bool run_mode(const LayoutCall& call, const Plan& plan, const Fast& fast, std::unique_ptr<Scratch>& scratch) {
    if (MODE != Mode::SCALED && fast.step == 4) return run<MODE, MODE == Mode::SCALED ? 0 : 4>(call, plan, fast, scratch);
    if (MODE != Mode::SCALED && fast.step == 8) return run<MODE, MODE == Mode::SCALED ? 0 : 8>(call, plan, fast, scratch);
    if (MODE != Mode::SCALED && fast.step == 16) return run<MODE, MODE == Mode::SCALED ? 0 : 16>(call, plan, fast, scratch);
    if (MODE != Mode::WIDE && fast.step == 32) return run<MODE, MODE == Mode::WIDE ? 0 : 32>(call, plan, fast, scratch);
    return run<MODE, 0>(call, plan, fast, scratch);
}

inline bool evaluate(const LayoutCall& call) {
    const Plan plan(call.program);
    if (plan.rules.k > MOST_K) return false;
    std::unique_ptr<Scratch> scratch;
    [[maybe_unused]] const FlushTiny flush;
    const Fast fast = plan_fast(call.program, plan.rules, plan.groups);
    if (fast.result == Result::NONE) {
        scratch.reset(new Scratch);
        return exact(plan, call, *scratch);
    }
    if (fast.wide) return run_mode<Mode::WIDE>(call, plan, fast, scratch);
    return fast.scaled ? run_mode<Mode::SCALED>(call, plan, fast, scratch)
                       : run_mode<Mode::NARROW>(call, plan, fast, scratch);
}

}  // namespace fused
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
