// Tiles and groups of sums in two stages through the fast way, lanes that it cannot do through those of two_stage.hpp.
#pragma once
#include <memory>

#include "cpu/kernels/two_stage_fast.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace two_stage {

// Everything that a call works on beside its arrays; the lanes of a step take turns in EVERY parts.
template <Mode MODE, int STEP, int EVERY>
struct TwoStage : fused::Operands<MODE> {
    using Base = fused::Operands<MODE>;
    using Base::a, Base::b, Base::call, Base::columns, Base::k;
    static constexpr bool WIDE = MODE == Mode::WIDE;
    const Rules& r;
    const Fast& fast;
    int8_t* blocks = nullptr;  // narrow: labels of products, [block][step][part][column][row]
    std::unique_ptr<items::Lanes<Rules, Step>> exact;  // made when first needed: it is large

    TwoStage(const Base& operands, const Rules& rules, const Fast& f) : Base(operands), r(rules), fast(f) {}

    int step() const { return STEP ? STEP : fast.step; }
    F32s load_c(i64 at) const { return call.c ? load<F32s>(static_cast<const float*>(call.c) + at) : F32s{}; }

    items::Lanes<Rules, Step>& exact_lanes() {
        static const Step run;
        if (!exact) exact.reset(new items::Lanes<Rules, Step>(call, r, run));
        return *exact;
    }

    // The four sums of one part of a step, from lane `first` on.
    MMAPROBE_HD void sum_part(int n, int first, const I32s* offset, Sums* s, I32s* far) const {
        fused::Aligned x[4];
        I32s labels[4], sums[4];
        const int8_t* flat = blocks +
                             (n * (k / step()) * EVERY + (first / step() * EVERY + first % EVERY) * BLOCK) * ROWS;
        if constexpr (WIDE)
            largest_labels<STEP>(a.labels + (first >> 1) * ROWS, b.labels + ((n * k + first) >> 1), k >> 1, step(),
                                 labels);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i)
            far[i] = align<MODE>(fast, WIDE ? labels[i] : widen(flat + i * LANES), offset[i], x[i], s[i]);
        fused::add_products<STEP, EVERY>(a.values + first * ROWS, b.values + n * k + first, k, step(), x, sums);
        for (int i = 0; i < 4; ++i) s[i].sum = sums[i];
    }

    // The results of a step of one register, of which a special operand may be.
    MMAPROBE_HD F32s finish(const Sums& s, F32s c, const float* a, const float* b, bool columns_of_b, I32s offset,
                            I32s far, bool specials, Mask& bad) const {
        Mask doubtful;
        F32s value = rounded(fast, add_c(fast, s, c), s.none, c, doubtful);
        if (WIDE) doubtful |= where_negative(far);
        if (specials || any_negative(trouble_of<MODE>(r, s, c)))
            value = with_specials<MODE, STEP>(fast, value, c, a, b, columns_of_b, offset, doubtful);
        bad |= doubtful;
        return value;
    }

    // One block of columns of a strip.
    void block(i64 strip, int n) {
        const int live = columns - n < BLOCK ? columns - n : BLOCK;
        const i64 at = (strip * columns + n) * ROWS;
        const bool specials = a.special || b.special;
        F32s c[4];
        I32s offset[4] = {}, far[4];
        Mask bad[4] = {};
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            c[i] = i / PARTS < live ? load_c(at + i * LANES) : F32s{};
            if (WIDE) offset[i] = load<I32s>(a.offsets + i % PARTS * LANES) + b.offsets[n + i / PARTS];
        }
        for (int first = 0; first < k; first += step()) {
            Sums s[4], more[4];
            sum_part(n, first, offset, s, far);
            if constexpr (EVERY == 2) {
                sum_part(n, first + 1, offset, more, far);
                for (int i = 0; i < 4; ++i) s[i].join(more[i]);
            }
            const float *rows = a.values + first * ROWS, *of_block = b.values + n * k + first;
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i)
                c[i] = finish(s[i], c[i], rows + i % PARTS * LANES, of_block + i / PARTS * k, true, offset[i], far[i],
                              specials, bad[i]);
        }
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i)
            if (i / PARTS < live) store(static_cast<float*>(call.d) + at + i * LANES, c[i]);
        for (int i = 0; i < live * PARTS; ++i)
            if (any_lane(bad[i])) exact_column(strip, i % PARTS, n + i / PARTS);
    }

    __attribute__((noinline)) void exact_column(i64 strip, int part, int n) {
        const Environment environment;
        exact_lanes().run_column(strip, part * LANES, n);
    }
    __attribute__((noinline)) void exact_group(i64 g, int part) {
        const Environment environment;
        exact_lanes().run_group(g, part * LANES);
    }

    void label_all() {
        if constexpr (!WIDE) {
            int8_t* to = blocks;
            for (int n = 0; n < columns; n += BLOCK)
                for (int first = 0; first < k; first += step())
                    for (int part = 0; part < EVERY; ++part, to += BLOCK * ROWS)
                        fused::largest_fields<STEP, EVERY>(a.labels + (first + part) * ROWS,
                                                           b.labels + n * k + (first + part) * BLOCK, step(), to);
        }
    }

    void tiles() {
        const int strips = (call.m + ROWS - 1) / ROWS;
        for (i64 tile = 0; tile < call.count; ++tile) {
            this->read_columns(tile);
            for (i64 strip = tile * strips; strip < (tile + 1) * strips; ++strip) {
                this->read_strip(strip);
                label_all();
                for (int n = 0; n < columns; n += BLOCK) block(strip, n);
            }
        }
    }

    // The sums of one part of a step of LANES vectors, from item `at` on.
    MMAPROBE_HD Sums group_sums(int at, I32s offset, I32s& far) const {
        Sums s;
        fused::Aligned x;
        far = align<MODE>(fast, this->group_labels(at, step(), EVERY), offset, x, s);
        s.sum = I32s{};
        for (int i = 0; i < step(); i += EVERY)
            s.sum += truncate(load<F32s>(a.values + at + i * ROWS) * load<F32s>(b.values + at + i * ROWS) * x.scale);
        return s;
    }

    // LANES vectors of a group.
    void part_of_group(i64 g, int part) {
        const int lane = part * LANES;
        const bool specials = a.special || b.special;
        F32s c = load_c(g * ROWS + lane);
        I32s offset = {}, far;
        Mask bad = {};
        if (WIDE) offset = load<I32s>(a.offsets + lane) + load<I32s>(b.offsets + lane) + fast.product_field;
        for (int first = 0; first < k; first += step()) {
            const int at = first * ROWS + lane;
            Sums s = group_sums(at, offset, far);
            if (EVERY == 2) s.join(group_sums(at + ROWS, offset, far));
            c = finish(s, c, a.values + at, b.values + at, false, offset, far, specials, bad);
        }
        store(static_cast<float*>(call.d) + g * ROWS + lane, c);
        if (any_lane(bad)) exact_group(g, part);
    }

    void groups() {
        for (i64 g = 0; g < call.count; ++g) {
            this->read_group(g);
            for (int part = 0; part < PARTS; ++part) part_of_group(g, part);
        }
    }
};

template <Mode MODE, int STEP, int EVERY>
bool run(const LayoutCall& call, const Rules& r, const Fast& fast) {
    TwoStage<MODE, STEP, EVERY> f({call, r.a, fast, r.k, call.n, {}, {}}, r, fast);
    fused::Pieces pieces;
    if (!pieces.take_all([&] {
            f.take(pieces);
            pieces.take(f.blocks, MODE == Mode::WIDE ? 0 : f.room() * ROWS * size_t(f.k / fast.step) * EVERY);
        }))
        return false;
    call.n ? f.tiles() : f.groups();
    return true;
}

// The steps that there are instructions of have code of their own.
inline bool evaluate(const LayoutCall& call) {
    const Header header{call.program};
    const Rules r(call.program, header, TwoStageRow{call.program + header[Header::rules]});
    const Fast fast = plan_fast(call.program, r);
    if (!fast.holds) return items::sweep<Rules, TwoStageRow>(call, Step{});
    const FlushTiny flush;
    if (fast.wide) {
        if (r.step == 4) return run<Mode::WIDE, 4, 1>(call, r, fast);
        return r.step == 8 ? run<Mode::WIDE, 8, 1>(call, r, fast) : run<Mode::WIDE, 0, 1>(call, r, fast);
    }
    if (r.parts == 2)
        return r.step == 16 ? run<Mode::NARROW, 16, 2>(call, r, fast) : run<Mode::NARROW, 0, 2>(call, r, fast);
    if (r.step == 4) return run<Mode::NARROW, 4, 1>(call, r, fast);
    return r.step == 8 ? run<Mode::NARROW, 8, 1>(call, r, fast) : run<Mode::NARROW, 0, 1>(call, r, fast);
}

}  // namespace two_stage
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
