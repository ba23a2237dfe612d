// The kernel of scaled group sums (e2m1 operands: mxf4, mxf4nvf4): groups of 16 products, each summed exactly,
//
//   t_g = s_a s_b sum_(k in g) a_k b_k, with the label of s_a s_b;   E = largest label of the t_g and c;
//   d = trunc(sum_g trunc(t_g, E - F) + trunc(c, E - F)), in binary32; from 2^128 on infinity.
//
// Group sums are integers (twice an e2m1 value is one), the rest is exact in binary64.
#pragma once
#include <memory>

#include "cpu/floats.hpp"
#include "cpu/quads.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace grouped {

constexpr int MOST_GROUPS = 8;

struct Rules {
    Reading scale, c;
    int groups, size, scales, fraction_bits;
    i32 zero_exponent;
    u32 nan, underflow_sign;

    Rules(const i64* program, const Header& h, const GroupedRow& r)
        : scale(OperandRow{program + h[Header::scale]}), c(OperandRow{program + h[Header::c]}),
          groups(int(h[Header::k]) / GROUP), size(int(h[Header::scale_size]) / GROUP), scales(groups / size),
          fraction_bits(int(r[GroupedRow::fraction_bits])), zero_exponent(i32(r[GroupedRow::zero_exponent])),
          nan(u32(h[Header::nan_code])), underflow_sign(r[GroupedRow::underflow_positive] ? 0 : u32(1) << 31) {}
};

constexpr i32 ZERO_SCALE = -300;  // its exponent: below every zero exponent, alone and in a sum

// A group of one operand of one register: its values, which of its lanes are no zeros, -BIAS times the sum of the
// values, its scale.
struct Side {
    U32s quads[QUADS], live, offset, significand, exponent;
};

template <class U>
MMAPROBE_HD U scale_exponent(const Item<U>& scale) {
    return larger_signed(scale.exponent, splat<U>(u32(ZERO_SCALE)));
}

// One register of rows or of vectors, all groups.
template <bool BIASED>
MMAPROBE_HD void read_lanes(const Rules& r, const void* base, const void* scales, i64 strip, int part, Side* out,
                            U32s& nan) {
    const uint8_t* rows = static_cast<const uint8_t*>(base) + strip * r.groups * GROUP * STRIP + part;
    for (int g = 0; g < r.groups; ++g) {
        out[g].live = out[g].offset = U32s{};
        for (int q = 0; q < QUADS; ++q) {
            const U32s codes = pack_quad(rows + (g * GROUP + 4 * q) * STRIP);
            out[g].quads[q] = BIASED ? twice_biased(codes) : twice(codes);
            out[g].live |= nonzero(codes) << (4 * q);
            if (!BIASED) out[g].offset -= BIAS * byte_sums(out[g].quads[q]);
        }
        const i64 at = (strip * r.scales + g / r.size) * STRIP + part;
        const Item<U32s> scale = read_item<U32s>(r.scale, fused::load_codes<uint8_t>(scales, at));
        nan |= scale.nan;
        out[g].significand = scale.significand;
        out[g].exponent = scale_exponent(scale);
    }
}

// The columns of a tile, group after group: four quads each, the rest once for every quad; scales by themselves.
struct Columns {
    const Rules& r;
    const int words, scales;
    std::unique_ptr<u32[]> memory;
    u32 *quads, *live, *offset, *significand, *exponent, *nan;

    Columns(const Rules& rules, int n)
        : r(rules), words(n * r.groups * QUADS), scales(n * r.scales),
          memory(new u32[size_t(3 * (words + LANES) + 3 * (scales + LANES))]), quads(memory.get()),
          live(quads + words + LANES), offset(live + words + LANES), significand(offset + words + LANES),
          exponent(significand + scales + LANES), nan(exponent + scales + LANES) {}

    void read(const uint8_t* codes, const uint8_t* scale_codes) {
        U32s shift;
        for (int i = 0; i < LANES; ++i) shift[i] = u32(i % QUADS * 4);
        for (int w = 0; w < words; w += LANES) {
            U32s x{};
            if (words - w >= LANES)
                memcpy(&x, codes + 4 * w, sizeof x);
            else
                memcpy(&x, codes + 4 * w, size_t(4 * (words - w)));
            const U32s values = twice(x), lives = sum_of_four(nonzero(x) << shift);
            const U32s offsets = 0 - BIAS * sum_of_four(byte_sums(values));
            memcpy(quads + w, &values, sizeof values);
            memcpy(live + w, &lives, sizeof lives);
            memcpy(offset + w, &offsets, sizeof offsets);
        }
        for (int i = 0; i < scales; i += LANES) {
            uint8_t padded[LANES] = {};
            if (scales - i >= LANES)
                memcpy(padded, scale_codes + i, LANES);
            else
                memcpy(padded, scale_codes + i, size_t(scales - i));
            const Item<U32s> item = read_item<U32s>(r.scale, fused::load_codes<uint8_t>(padded, 0));
            const U32s exponents = scale_exponent(item);
            memcpy(significand + i, &item.significand, sizeof exponents);
            memcpy(exponent + i, &exponents, sizeof exponents);
            memcpy(nan + i, &item.nan, sizeof exponents);
        }
    }
    U32s quad(i64 n, int g, int q) const { return splat<U32s>(quads[(n * r.groups + g) * QUADS + q]); }
    U32s of_group(const u32* values, i64 n, int g) const { return splat<U32s>(values[(n * r.groups + g) * QUADS]); }
    U32s of_scale(const u32* values, i64 n, int g) const { return splat<U32s>(values[n * r.scales + g / r.size]); }
};

// A column as a Side of every lane.
struct Column {
    const Columns& of;
    i64 n;
    U32s quad(int g, int q) const { return of.quad(n, g, q); }
    U32s live(int g) const { return of.of_group(of.live, n, g); }
    U32s offset(int g) const { return of.of_group(of.offset, n, g); }
    U32s significand(int g) const { return of.of_scale(of.significand, n, g); }
    U32s exponent(int g) const { return of.of_scale(of.exponent, n, g); }
    U32s nan() const {
        u32 any_nan = 0;
        for (int i = 0; i < of.r.scales; ++i) any_nan |= of.nan[n * of.r.scales + i];
        return splat<U32s>(any_nan);
    }
};

struct Lanes {
    const Side* side;
    U32s quad(int g, int q) const { return side[g].quads[q]; }
    U32s live(int g) const { return side[g].live; }
    U32s offset(int g) const { return side[g].offset; }
    U32s significand(int g) const { return side[g].significand; }
    U32s exponent(int g) const { return side[g].exponent; }
};

// GROUPS 0: known at run time only.
template <int GROUPS, class B>
MMAPROBE_HD U32s run_lanes(const Rules& r, const Side* a, const B& b, U32s nan, U32s c) {
    const int groups = GROUPS ? GROUPS : r.groups, unit = r.fraction_bits - 2 - 2 * r.scale.fraction_bits;
    const U32s zero = splat<U32s>(0), lowest = splat<U32s>(u32(r.zero_exponent)), twice_c = c << 1;
    const U32s field = twice_c >> 24, c_exponent = (field | (equal(field, zero) & 1)) - 127;
    U32s label = pick(equal(twice_c, zero), lowest, c_exponent), labels[MOST_GROUPS], terms[MOST_GROUPS];
    for (int g = 0; g < groups; ++g) {
        const auto quad_a = [&](int q) { return a[g].quads[q]; };
        const auto quad_b = [&](int q) { return b.quad(g, q); };
        const U32s sum = dot(quad_a, quad_b, b.offset(g));
        const U32s none = equal(a[g].live & b.live(g), zero);
        terms[g] = sum * (a[g].significand * b.significand(g));
        labels[g] = pick(none, lowest, a[g].exponent + b.exponent(g));
        label = larger_signed(label, labels[g]);
    }
    const U32s up = splat<U32s>(u32(unit)) - label, c_up = splat<U32s>(u32(r.fraction_bits)) - label;
    I32h out[2];
    for (int part = 0; part < 2; ++part) {
        F64s sum = truncated(scaled(float_values(half(c, part)), half(c_up, part)));
        for (int g = 0; g < groups; ++g)
            sum += truncated(scaled(to_doubles(half(terms[g], part)), half(labels[g] + up, part)));
        out[part] = cut_floats(scaled(sum, half(0 - c_up, part)));
    }
    U32s d = join(out[0], out[1]);
    d &= ~equal(d << 1, zero) | splat<U32s>(r.underflow_sign);
    return pick(nan | less(splat<U32s>(0xFF000000), twice_c), splat<U32s>(r.nan), d);
}

template <class B>
MMAPROBE_HD U32s run_lanes(const Rules& r, const Side* a, const B& b, U32s nan, U32s c) {
    return r.groups == 4 ? run_lanes<4>(r, a, b, nan, c) : run_lanes<0>(r, a, b, nan, c);
}

inline bool evaluate(const LayoutCall& call) {
    const Header header{call.program};
    const Rules r(call.program, header, GroupedRow{call.program + header[Header::rules]});
    const Environment environment;
    const i64 strips = (call.m + STRIP - 1) / STRIP;
    const auto load_c = [&](i64 at) { return fused::load_codes<u32>(call.c, at); };
    const auto store = [&](i64 to, U32s d) { memcpy(static_cast<u32*>(call.d) + to, &d, sizeof d); };
    Side a[MOST_GROUPS], b[MOST_GROUPS];
    Columns columns(r, call.n);
    for (i64 tile = 0; tile < call.count; ++tile) {
        if (call.n)
            columns.read(static_cast<const uint8_t*>(call.b) + 4 * tile * columns.words,
                         static_cast<const uint8_t*>(call.scale_b) + tile * columns.scales);
        for (i64 strip = tile * strips; call.n && strip < (tile + 1) * strips; ++strip)
            for (int part = 0; part < STRIP; part += LANES) {
                U32s nan{};
                read_lanes<true>(r, call.a, call.scale_a, strip, part, a, nan);
                for (i64 n = 0; n < call.n; ++n) {
                    const i64 at = (strip * call.n + n) * STRIP + part;
                    const Column column{columns, n};
                    store(at, run_lanes(r, a, column, nan | column.nan(), load_c(at)));
                }
            }
        for (int part = 0; !call.n && part < STRIP; part += LANES) {
            U32s nan{};
            read_lanes<true>(r, call.a, call.scale_a, tile, part, a, nan);
            read_lanes<false>(r, call.b, call.scale_b, tile, part, b, nan);
            store(tile * STRIP + part, run_lanes(r, a, Lanes{b}, nan, load_c(tile * STRIP + part)));
        }
    }
    return true;
}

}  // namespace grouped
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
