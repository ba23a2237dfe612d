// Fused sums on the engine layout by exact lanes: everything that the datapath says, and the fast way's rest.
#pragma once
#include "cpu/kernels/tiles.hpp"
#include "cpu/kernels/widths.hpp"
#include "model/fused_lane.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace fused {

constexpr int PARTS = STRIP / LANES;  // registers of a strip
constexpr int MOST_K = 256;

template <class T>
MMAPROBE_HD U32s load_codes(const void* base, i64 index) {
    return widen(static_cast<const T*>(base) + index);
}

// Codes index .. index + LANES - 1 of an array of containers.
MMAPROBE_HD U32s load_codes(int bytes, const void* base, i64 index) {
    switch (bytes) {
        case 1: return widen(static_cast<const uint8_t*>(base) + index);
        case 2: return widen(static_cast<const uint16_t*>(base) + index);
        default: return load<U32s>(static_cast<const u32*>(base) + index);
    }
}
MMAPROBE_HD u32 load_code(int bytes, const void* base, i64 index) {
    switch (bytes) {
        case 1: return static_cast<const uint8_t*>(base)[index];
        case 2: return static_cast<const uint16_t*>(base)[index];
        default: return static_cast<const u32*>(base)[index];
    }
}
MMAPROBE_HD void store_codes(int bytes, void* base, i64 index, U32s codes) {
    if (bytes == 2)
        narrow(static_cast<uint16_t*>(base) + index, codes);
    else
        store(static_cast<u32*>(base) + index, codes);
}

// What a call's program says, and the widths of its containers.
struct Plan {
    FusedRules rules;
    Reading scale;
    int a_bytes, b_bytes, c_bytes, d_bytes, scale_size, groups;

    explicit Plan(const i64* program)
        : rules(program, Header{program}, FusedRow{program + Header{program}[Header::rules]}),
          scale(
              OperandRow{program + (has_scale(program) ? Header{program}[Header::scale] : Header{program}[Header::a])}),
          a_bytes(bytes(program, Header::a)), b_bytes(bytes(program, Header::b)),
          c_bytes(rules.has_c ? bytes(program, Header::c) : 0), d_bytes(rules.to.sign + rules.to.padding < 16 ? 2 : 4),
          scale_size(has_scale(program) ? int(Header{program}[Header::scale_size]) : rules.k),
          groups(rules.k / scale_size) {}

    static bool has_scale(const i64* program) { return Header{program}[Header::scale_where] != UNSCALED; }
    static int bytes(const i64* program, Header::Column column) {
        return int(OperandRow{program + Header{program}[column]}[OperandRow::bytes]);
    }
};

// Scales of one vector a lane: a's of the lanes, b's of the lanes or of the column.
struct Scales {
    U32s exponents[MOST_K], nans[MOST_K];
    int size;
    U32s exponent(int k) const { return exponents[k / size]; }
    U32s nan(int k) const { return nans[k / size]; }

    void set(int i, const Item<U32s>& a, const Item<U32s>& b) {
        exponents[i] = a.exponent + b.exponent;
        nans[i] = a.nan | b.nan;
    }
};

inline void read_scales(const Plan& p, const LayoutCall& call, i64 a_at, i64 b_at, bool b_lanes, Scales& out) {
    out.size = p.scale_size;
    for (int i = 0; i < p.groups; ++i) {
        if (!call.scale_a) {
            out.exponents[i] = out.nans[i] = U32s{};
            continue;
        }
        const Item<U32s> a = read_item(p.scale, load_codes(1, call.scale_a, a_at + i * STRIP));
        const U32s b = b_lanes ? load_codes(1, call.scale_b, b_at + i * STRIP)
                               : splat<U32s>(load_code(1, call.scale_b, b_at + i));
        out.set(i, a, read_item(p.scale, b));
    }
}

// Decoded operands of a register of rows (or vectors), and of its column (or theirs).
struct Scratch {
    Item<U32s> a[PARTS][MOST_K], b[MOST_K];
    Item<u32> column[MOST_K];
    Scales scales;
    bool have_rows = false;
    void forget() { have_rows = false; }
};

inline void exact_group(const Plan& p, const LayoutCall& call, i64 group, Scratch& x) {
    const int k = p.rules.k;
    for (int part = 0; part < PARTS; ++part) {
        const i64 at = group * k * STRIP + part * LANES;
        for (int i = 0; i < k; ++i) {
            x.a[0][i] = read_item(p.rules.a, load_codes(p.a_bytes, call.a, at + i * STRIP));
            x.b[i] = read_item(p.rules.b, load_codes(p.b_bytes, call.b, at + i * STRIP));
        }
        const i64 scale_at = group * p.groups * STRIP + part * LANES, to = group * STRIP + part * LANES;
        read_scales(p, call, scale_at, scale_at, true, x.scales);
        const U32s c = call.c ? load_codes(p.c_bytes, call.c, to) : U32s{};
        const auto a = [&](int i) { return x.a[0][i]; };
        const auto b = [&](int i) { return x.b[i]; };
        store_codes(p.d_bytes, call.d, to, fused_lanes<U32s>(p.rules, a, b, x.scales, c));
    }
}

// Column n of a strip; the strip's rows are decoded once, until x forgets them.
inline void exact_column(const Plan& p, const LayoutCall& call, i64 tile, i64 strip, int n, Scratch& x) {
    const int k = p.rules.k;
    for (int part = 0; part < PARTS && !x.have_rows; ++part)
        for (int i = 0; i < k; ++i)
            x.a[part][i] = read_item(p.rules.a, load_codes(p.a_bytes, call.a, (strip * k + i) * STRIP + part * LANES));
    x.have_rows = true;
    const i64 column = tile * call.n + n;
    for (int i = 0; i < k; ++i) x.column[i] = read_item(p.rules.b, load_code(p.b_bytes, call.b, column * k + i));
    for (int part = 0; part < PARTS; ++part) {
        const i64 to = (strip * call.n + n) * STRIP + part * LANES;
        read_scales(p, call, strip * p.groups * STRIP + part * LANES, column * p.groups, false, x.scales);
        const U32s c = call.c ? load_codes(p.c_bytes, call.c, to) : U32s{};
        const auto a = [&](int i) { return x.a[part][i]; };
        const auto b = [&](int i) { return spread<U32s>(x.column[i]); };
        store_codes(p.d_bytes, call.d, to, fused_lanes<U32s>(p.rules, a, b, x.scales, c));
    }
}

inline bool exact(const Plan& plan, const LayoutCall& call, Scratch& x) {
    const i64 strips = call.n ? (call.m + STRIP - 1) / STRIP : 1;
    for (i64 i = 0; i < call.count * strips; ++i) {
        x.forget();
        if (!call.n) exact_group(plan, call, i, x);
        for (int n = 0; n < call.n; ++n) exact_column(plan, call, i / strips, i, n, x);
    }
    return true;
}

}  // namespace fused
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
