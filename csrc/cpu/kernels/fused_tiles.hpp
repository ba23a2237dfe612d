// Tiles and groups through the fast way, lanes that it cannot do through the exact one.
#pragma once
#include <memory>

#include "cpu/kernels/fused_far.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace fused {

// Everything that a call works on beside its arrays.
template <Mode MODE, int STEP>
struct Fused : Operands<MODE> {
    using Base = Operands<MODE>;
    using Base::a, Base::b, Base::call, Base::columns, Base::fast, Base::k;
    const Plan& plan;
    std::unique_ptr<Scratch>& scratch;  // made when first needed: it is large
    int8_t* blocks = nullptr;           // labels of products by blocks, where bytes hold them
    Far far;                            // wide: read when first needed

    Fused(const Base& operands, const Plan& all, std::unique_ptr<Scratch>& exact)
        : Base(operands), plan(all), scratch(exact) {}

    Scratch& exact_lanes() {
        if (!scratch) scratch.reset(new Scratch);
        return *scratch;
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

    // One block of columns of a strip; false where it met trouble, with which only the careful way is done.
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
            Aligned x[4];
            I32s offset[4] = {}, sums[4], labels[4];
            const int8_t* flat = blocks + (n * (k / step) + first / step * BLOCK) * ROWS;
            if constexpr (MODE == Mode::WIDE)
                largest_labels<STEP>(a.labels + (first >> 1) * ROWS, b.labels + ((n * k + first) >> 1), k >> 1, step,
                                     labels);
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i) {
                if (MODE != Mode::NARROW)
                    offset[i] = load<I32s>(a.offsets + i % PARTS * LANES) + b.offsets[n + i / PARTS];
                x[i] = align<MODE>(fast, MODE == Mode::WIDE ? labels[i] : widen(flat + i * LANES), c[i], offset[i],
                                   half);
            }
            const float *rows = a.values + first * ROWS, *of_block = b.values + n * k + first;
            I32s over[4] = {};
            sum_products(rows, of_block, step, x, sums, over);
            if constexpr (CAREFUL && MODE == Mode::WIDE)
                for (int i = 0; i < 4; ++i)
                    if (too_far(fast, x[i], offset[i])) far_sums(strip, n, first, i, x[i], sums[i], over[i]);
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i) {
                F32s value = finish<MODE>(fast, x[i], sums[i], over[i]);
                trouble |= x[i].trouble | over[i];
                if (CAREFUL) {
                    Mask now = beyond_fast<MODE>(fast, x[i]) | where_negative(over[i]);
                    if (a.special || b.special)
                        value = with_specials(value, c[i], rows + i % PARTS * LANES, of_block + i / PARTS * k, step,
                                              true, now);
                    else
                        value = with_special_c(x[i], value, now);
                    bad[i] |= now;
                }
                c[i] = value;
            }
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i)  // no store before all is done: the compiler would load the rules again
                if (i / PARTS < live || !last) c[i] = put<CAREFUL>(c[i], at + i * LANES, last);
        }
        if (CAREFUL) exact_columns(tile, strip, n, live, bad);
        return !any_negative(trouble);
    }

    // The columns of a block that hold a lane of `bad`.
    void exact_columns(i64 tile, i64 strip, int n, int live, const Mask* bad) {
        for (int q = 0; q < live; ++q) {
            Mask any = bad[q * PARTS];
            for (int part = 1; part < PARTS; ++part) any |= bad[q * PARTS + part];
            if (any_lane(any)) exact_column(plan, call, tile, strip, n + q, exact_lanes());
        }
    }

    __attribute__((noinline)) bool careful_block(i64 tile, i64 strip, int n) { return block<true>(tile, strip, n); }

    // The sums of register i of a block from lane `first` on, in binary64.
    __attribute__((noinline)) void far_sums(i64 strip, int n, int first, int i, const Aligned& x, I32s& sum,
                                            I32s& over) {
        const int step = STEP ? STEP : fast.step;
        if (!far.rows_read) far.read_rows(fast.a, call.a, strip * k * ROWS, k);
        if (!far.columns_read) far.read_columns(fast.b, this->b_codes, columns * k);
        const double* const a_items = far.rows + first * ROWS + i % PARTS * LANES;
        const double* const b_items = far.columns + (n + i / PARTS) * k + first;
        const auto b_of = [&](int j) { return broadcast(F64s{}, b_items[j]); };
        const auto a_of = [&](int j, int part) { return load<F64s>(a_items + j * ROWS + part * HALF); };
        sum_far(fast, x, step, a_of, [&](int j, int) { return b_of(j); }, sum, over);
    }

    // The labels of every block and step of a strip, where bytes hold them: [block][step][column][row].
    void label_all() {
        if constexpr (MODE != Mode::WIDE) {
            const int step = STEP ? STEP : fast.step;
            int8_t* to = blocks;
            for (int n = 0; n < columns; n += BLOCK)
                for (int first = 0; first < k; first += step, to += BLOCK * ROWS)
                    largest_fields<STEP>(a.labels + first * ROWS, b.labels + n * k + first * BLOCK, step, to);
        }
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
        bool wary = false;  // where one block has trouble so has the next, most often
        for (i64 tile = 0; tile < call.count; ++tile) {
            this->read_columns(tile);
            far.columns_read = false;
            for (int s = 0; s < strips; ++s) {
                const i64 strip = tile * strips + s;
                if (scratch) scratch->forget();
                far.rows_read = false;
                this->read_strip(strip);
                if (a.nan || b.nan) {
                    for (int n = 0; n < columns; ++n) exact_column(plan, call, tile, strip, n, exact_lanes());
                    continue;
                }
                label_all();
                const bool special = a.special || b.special;
                for (int n = 0; n < columns; n += BLOCK) {
                    const bool was = wary || special;
                    wary = !(was ? careful_block(tile, strip, n) : block<false>(tile, strip, n));
                    if (wary && !was) careful_block(tile, strip, n);
                }
            }
        }
    }

    // A group: each lane with a row and a column of its own.
    void group(i64 g) {
        this->read_group(g);
        const bool careful = a.special || b.special;
        bool wrong = a.nan || b.nan;
        for (int part = 0; part < PARTS; ++part)
            if (!(careful ? part_of_group<true>(g, part) : part_of_group<false>(g, part)))
                wrong |= !part_of_group<true>(g, part);
        if (wrong) exact_group(plan, call, g, exact_lanes());
    }

    __attribute__((noinline)) void far_group_sum(i64 g, int at, const Aligned& x, I32s& sum, I32s& over) const {
        const i64 items = g * k * ROWS + at;
        const auto a_of = [&](int j, int part) { return in_binary64(fast.a, call.a, items + j * ROWS, part); };
        const auto b_of = [&](int j, int part) { return in_binary64(fast.b, call.b, items + j * ROWS, part); };
        sum_far(fast, x, STEP ? STEP : fast.step, a_of, b_of, sum, over);
    }

    template <bool CAREFUL>
    MMAPROBE_HD bool part_of_group(i64 g, int part) {
        const int lane = part * LANES, step = STEP ? STEP : fast.step, piece = fast.two ? step / 2 : step;
        F32s c = load_c(g * ROWS + lane);
        Mask bad = {};
        I32s trouble = {}, offset = {};
        if (MODE != Mode::NARROW) offset = load<I32s>(a.offsets + lane) + load<I32s>(b.offsets + lane);
        if (MODE == Mode::WIDE) offset += fast.product_field;
        for (int first = 0; first < k; first += step) {
            const bool last = first + step == k, half = first ? fast.result == Result::F16 : fast.c_half;
            const int at = first * ROWS + lane;
            const Aligned x = align<MODE>(fast, this->group_labels(at, step), c, offset, half);
            I32s sums[2] = {};
            for (int i = 0; i < step; ++i) {
                const F32s y = load<F32s>(b.values + at + i * ROWS);
                const I32s term = truncate(load<F32s>(a.values + at + i * ROWS) * y * x.scale);
                if (i < piece)
                    sums[0] += term;
                else
                    sums[1] += term;
            }
            I32s sum = sums[0] + sums[1], over = fast.two ? overflown(sums[0], sums[1], sum) : I32s{};
            if constexpr (CAREFUL && MODE == Mode::WIDE)
                if (too_far(fast, x, offset)) far_group_sum(g, at, x, sum, over);
            F32s value = finish<MODE>(fast, x, sum, over);
            if (CAREFUL) {
                Mask now = beyond_fast<MODE>(fast, x) | where_negative(over);
                value = with_specials(value, c, a.values + at, b.values + at, step, false, now);
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
    Fused<MODE, STEP> f({call, plan.scale, fast, plan.rules.k, call.n, {}, {}}, plan, scratch);
    Pieces pieces;
    if (!pieces.take_all([&] {
            f.take(pieces);
            if (MODE == Mode::WIDE) f.far.take(pieces, f.k, f.room());
            pieces.take(f.blocks, MODE == Mode::WIDE ? 0 : f.room() * ROWS * size_t(f.k / fast.step));
        }))
        return false;
    call.n ? f.tiles() : f.groups();
    return true;
}

// The steps that there are instructions of have code of their own.
template <Mode MODE>
bool run_mode(const LayoutCall& call, const Plan& plan, const Fast& fast, std::unique_ptr<Scratch>& scratch) {
    if (MODE != Mode::SCALED && fast.step == 4)
        return run<MODE, MODE == Mode::SCALED ? 0 : 4>(call, plan, fast, scratch);
    if (MODE != Mode::SCALED && fast.step == 8)
        return run<MODE, MODE == Mode::SCALED ? 0 : 8>(call, plan, fast, scratch);
    if (MODE != Mode::SCALED && fast.step == 16)
        return run<MODE, MODE == Mode::SCALED ? 0 : 16>(call, plan, fast, scratch);
    if (MODE != Mode::WIDE && fast.step == 32) return run<MODE, MODE == Mode::WIDE ? 0 : 32>(call, plan, fast, scratch);
    return run<MODE, 0>(call, plan, fast, scratch);
}

inline bool evaluate(const LayoutCall& call) {
    const Plan plan(call.program);
    if (plan.rules.k > MOST_K) return false;
    std::unique_ptr<Scratch> scratch;
    const Fast fast = plan_fast(call.program, plan.rules, plan.groups);
    // narrow: a subnormal C is below every unit, or kept; without instructions for halves those pass through subnormals
    [[maybe_unused]] const FlushTiny flush(HAS_HALVES && !fast.wide);
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
