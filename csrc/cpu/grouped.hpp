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

// A group of one operand: its values, which of its lanes count (none under a scale of zero), -BIAS times the sum of
// the values, its scale. U is u32 for a column of a tile, U32s for rows and for vectors.
template <class U>
struct Side {
    U quads[QUADS], live, offset, significand, exponent;

    MMAPROBE_HD void set_scale(const Item<U>& scale) {
        significand = scale.significand;
        exponent = scale.exponent;
        live &= ~equal(significand, splat<U>(0));
    }
};

// One register of rows or of vectors, all groups.
template <bool BIASED>
MMAPROBE_HD void read_lanes(const Rules& r, const void* base, const void* scales, i64 strip, int part, Side<U32s>* out,
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
        out[g].set_scale(scale);
    }
}

// The columns of a tile: sides of column n from n * groups on, and whether one of its scales is a NaN.
struct Columns {
    std::unique_ptr<Side<u32>[]> sides;
    std::unique_ptr<u32[]> nan;
    Columns(int n, int groups) : sides(new Side<u32>[size_t(n) * groups]), nan(new u32[size_t(n)]) {}

    void read(const Rules& r, const void* base, const void* scales, i64 first, int n) {
        const int words = n * r.groups * QUADS;  // four codes each
        const uint8_t* codes = static_cast<const uint8_t*>(base) + 4 * first * r.groups * QUADS;
        for (int w = 0; w < words; w += LANES) {
            U32s x{};
            memcpy(&x, codes + 4 * w, size_t(4 * smaller(LANES, words - w)));
            const U32s values = twice(x), live = nonzero(x), sums = byte_sums(values);
            for (int i = 0; i < LANES && w + i < words; ++i) {
                Side<u32>& side = sides[size_t((w + i) / QUADS)];
                const int q = (w + i) % QUADS;
                side.quads[q] = values[i];
                side.live = (q ? side.live : 0) | live[i] << (4 * q);
                side.offset = (q ? side.offset : 0) - BIAS * sums[i];
            }
        }
        const uint8_t* scale = static_cast<const uint8_t*>(scales) + first * r.scales;
        for (int i = 0; i < n; ++i) {
            nan[size_t(i)] = 0;
            for (int g = 0; g < r.groups; ++g) {
                const Item<u32> item = read_item<u32>(r.scale, scale[i * r.scales + g / r.size]);
                nan[size_t(i)] |= item.nan;
                sides[size_t(i * r.groups + g)].set_scale(item);
            }
        }
    }
};

template <class U>
MMAPROBE_HD U32s run_lanes(const Rules& r, const Side<U32s>* a, const Side<U>* b, U32s nan, U32s c_code) {
    const Item<U32s> c = read_item<U32s>(r.c, c_code);
    const U32s zero = splat<U32s>(0), lowest = splat<U32s>(u32(r.zero_exponent));
    U32s label = pick(equal(c.significand, zero), lowest, c.exponent), labels[MOST_GROUPS], terms[MOST_GROUPS];
    for (int g = 0; g < r.groups; ++g) {
        const Side<U>& y = b[g];
        const auto quad_a = [&](int q) { return a[g].quads[q]; };
        const auto quad_b = [&](int q) { return every(y.quads[q]); };
        terms[g] = dot(quad_a, quad_b, every(y.offset)) * (a[g].significand * every(y.significand));
        const U32s live = ~equal(a[g].live & every(y.live), zero);
        labels[g] = pick(live, a[g].exponent + every(y.exponent), lowest);
        label = larger_signed(label, labels[g]);
    }
    const int unit = r.fraction_bits - 2 - 2 * r.scale.fraction_bits, c_unit = r.fraction_bits - r.c.fraction_bits;
    const U32s signed_c = (c.significand ^ c.negative) - c.negative, most = splat<U32s>(900);
    const U32s gap = label - c.exponent, c_up = splat<U32s>(u32(c_unit)) - pick(less(most, gap), most, gap);
    I32h out[2];
    for (int part = 0; part < 2; ++part) {
        F64s sum = truncated(scaled(to_doubles(half(signed_c, part)), half(c_up, part)));
        for (int g = 0; g < r.groups; ++g)
            sum += truncated(scaled(to_doubles(half(terms[g], part)), half(labels[g] - label + u32(unit), part)));
        out[part] = cut_floats(scaled(sum, half(label - u32(r.fraction_bits), part)));
    }
    U32s d = join(out[0], out[1]);
    d &= ~equal(d << 1, zero) | splat<U32s>(r.underflow_sign);
    d = pick(c.infinite, c_code, d);
    return pick(nan | c.nan, splat<U32s>(r.nan), d);
}

inline bool evaluate(const LayoutCall& call) {
    const Header header{call.program};
    const Rules r(call.program, header, GroupedRow{call.program + header[Header::rules]});
    const Environment environment;
    Side<U32s> a[MOST_GROUPS], b[MOST_GROUPS];
    const auto finish = [&](i64 to, const auto* side, U32s nan) {
        const U32s d = run_lanes(r, a, side, nan, fused::load_codes<u32>(call.c, to));
        memcpy(static_cast<u32*>(call.d) + to, &d, sizeof d);
    };
    const i64 strips = (call.m + STRIP - 1) / STRIP;
    Columns columns(call.n, r.groups);
    for (i64 tile = 0; tile < call.count; ++tile) {
        if (call.n) columns.read(r, call.b, call.scale_b, tile * call.n, call.n);
        for (i64 strip = tile * strips; call.n && strip < (tile + 1) * strips; ++strip)
            for (int part = 0; part < STRIP; part += LANES) {
                U32s nan{};
                read_lanes<true>(r, call.a, call.scale_a, strip, part, a, nan);
                for (i64 n = 0; n < call.n; ++n)
                    finish((strip * call.n + n) * STRIP + part, &columns.sides[size_t(n * r.groups)],
                           nan | splat<U32s>(columns.nan[size_t(n)]));
            }
        for (int part = 0; !call.n && part < STRIP; part += LANES) {
            U32s nan{};
            read_lanes<true>(r, call.a, call.scale_a, tile, part, a, nan);
            read_lanes<false>(r, call.b, call.scale_b, tile, part, b, nan);
            finish(tile * STRIP + part, b, nan);
        }
    }
    return true;
}

}  // namespace grouped
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
