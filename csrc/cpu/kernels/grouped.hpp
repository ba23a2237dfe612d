// The kernel of scaled group sums (e2m1 operands: mxf4, mxf4nvf4): groups of 16 products, each summed exactly,
//
//   t_g = s_a s_b sum_(k in g) a_k b_k, with the label of s_a s_b;   E = largest label of the t_g and c;
//   d = trunc(sum_g trunc(t_g, E - F) + trunc(c, E - F)), in binary32; from 2^128 on infinity.
//
// Group sums are integers (twice an e2m1 value is one); the rest: grouped_sum.hpp.
#pragma once
#include <memory>

#include "cpu/kernels/grouped_sum.hpp"
#include "cpu/kernels/quads.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace grouped {

constexpr int MOST_GROUPS = 8;

struct Rules {
    Reading scale;
    int groups, size, scales, fraction_bits, unit;  // unit: log2 of a scaled group sum's place above E - F, at E
    int scale_of[MOST_GROUPS];                                // the scale of each group
    float zero_exponent;
    u32 nan;
    bool underflow_positive;

    Rules(const i64* program, const Header& h, const GroupedRow& r)
        : scale(OperandRow{program + h[Header::scale]}), groups(int(h[Header::k]) / GROUP),
          size(int(h[Header::scale_size]) / GROUP), scales(groups / size),
          fraction_bits(int(r[GroupedRow::fraction_bits])), unit(fraction_bits - 2 - 2 * scale.fraction_bits),
          zero_exponent(float(r[GroupedRow::zero_exponent])), nan(u32(h[Header::nan_code])),
          underflow_positive(r[GroupedRow::underflow_positive]) {
        for (int g = 0; g < MOST_GROUPS; ++g) scale_of[g] = g / size;
    }
};

// Scales as floats; a zero's exponent is minus infinity.
struct Scale {
    F32s significand, exponent;
    U32s nan;
};

// Of unsigned codes; significands of powers of two are not asked for.
template <bool SIGNIFICANDS>
MMAPROBE_HD Scale read_scale(const Reading& r, U32s codes) {
    const U32s absolute = codes >> r.padding & r.magnitude, field = absolute >> r.fraction_bits;
    const U32s exponent = SIGNIFICANDS ? field - less(absolute, splat<U32s>(r.low)) : field;
    Scale out{F32s{}, to_floats(exponent - u32(r.bias)), less(splat<U32s>(r.nan_above), absolute)};
    if (SIGNIFICANDS) {
        out.significand = to_floats(absolute - ((exponent - 1) << r.fraction_bits));
        out.exponent = unless_zero(out.significand, out.exponent);
    }
    return out;
}

// A group of one operand of one register: its values, which of its lanes are no zeros, -BIAS times the sum of the
// values, its scale.
struct Side {
    U32s quads[QUADS], live, offset;
    F32s significand, exponent;
};

// One register of rows or of vectors, all groups; returns where a scale is a NaN.
template <bool BIASED, bool SIGNIFICANDS>
MMAPROBE_HD U32s read_lanes(const Rules& r, const void* base, const void* scales, i64 strip, int part, Side* out) {
    const uint8_t* rows = static_cast<const uint8_t*>(base) + strip * r.groups * GROUP * STRIP + part;
    Scale scale{};
    U32s nan{};
    for (int g = 0; g < r.groups; ++g) {
        U32s codes[QUADS], offset{};
        for (int q = 0; q < QUADS; ++q) {
            codes[q] = pack_quad(rows + (g * GROUP + 4 * q) * STRIP);
            out[g].quads[q] = BIASED ? twice_biased(codes[q]) : twice(codes[q]);
            if (!BIASED) offset -= biased_sums(out[g].quads[q]);
        }
        out[g].live = nonzero(codes);
        if (!BIASED) out[g].offset = offset;
        if (g % r.size == 0) {
            const i64 at = (strip * r.scales + g / r.size) * STRIP + part;
            scale = read_scale<SIGNIFICANDS>(r.scale, fused::load_codes<uint8_t>(scales, at));
            nan |= scale.nan;
        }
        if (SIGNIFICANDS) out[g].significand = scale.significand;
        out[g].exponent = scale.exponent;
    }
    return nan;
}

// The columns of a tile, group after group: four quads and offsets each, 16 bits of lanes that are no zeros; scales by
// themselves.
struct Columns {
    const Rules& r;
    const int words, scales;
    std::unique_ptr<u32[]> memory;
    u32 *quads, *offset, *nan;
    float *significand, *exponent;
    uint16_t* live;

    Columns(const Rules& rules, int n)
        : r(rules), words(n * r.groups * QUADS), scales(n * r.scales),
          memory(new u32[size_t(3 * (words + LANES) + 3 * (scales + LANES))]()), quads(memory.get()),
          offset(quads + words + LANES), nan(offset + words + LANES),
          significand(reinterpret_cast<float*>(nan + scales + LANES)), exponent(significand + scales + LANES),
          live(reinterpret_cast<uint16_t*>(exponent + scales + LANES)) {}

    // Returns whether a scale is a NaN.
    template <bool SIGNIFICANDS>
    bool read(const uint8_t* codes, const uint8_t* scale_codes) {
        for (int w = 0; w < words; w += LANES) {
            U32s x{};
            if (words - w >= LANES)
                memcpy(&x, codes + 4 * w, sizeof x);
            else
                memcpy(&x, codes + 4 * w, size_t(4 * (words - w)));
            const U32s values = twice(x);
            store_nonzero(live + w / QUADS, x);
            store(quads + w, values);
            store(offset + w, 0 - sum_of_four(biased_sums(values)));
        }
        U32s nans{};
        for (int i = 0; i < scales; i += LANES) {
            uint8_t padded[LANES] = {};
            if (scales - i >= LANES)
                memcpy(padded, scale_codes + i, LANES);
            else
                memcpy(padded, scale_codes + i, size_t(scales - i));
            const Scale scale = read_scale<SIGNIFICANDS>(r.scale, fused::load_codes<uint8_t>(padded, 0));
            store(significand + i, scale.significand);
            store(exponent + i, scale.exponent);
            store(nan + i, scale.nan);
            nans |= scale.nan;
        }
        return any(nans);
    }
};

// A column as a Side of every lane.
struct Column {
    const Rules& r;
    const u32 *quads, *offsets, *nans;
    const float *significands, *exponents;
    const uint16_t* lives;

    Column(const Columns& of, i64 n)
        : r(of.r), quads(of.quads + n * r.groups * QUADS), offsets(of.offset + n * r.groups * QUADS),
          nans(of.nan + n * r.scales), significands(of.significand + n * r.scales),
          exponents(of.exponent + n * r.scales), lives(of.live + n * r.groups) {}

    template <bool VNNI>
    MMAPROBE_HD U32s dot(const Side& a, int g) const {
        return dot_column<VNNI>(a.quads, quads + g * QUADS, splat<U32s>(offsets[g * QUADS]));
    }
    U32s live(int g) const { return splat<U32s>(load<u32>(lives + g)); }
    F32s significand(int g) const { return all(significands[r.scale_of[g]]); }
    F32s exponent(int g) const { return all(exponents[r.scale_of[g]]); }
    U32s nan() const {
        u32 any_nan = 0;
        for (int i = 0; i < r.scales; ++i) any_nan |= nans[i];
        return splat<U32s>(any_nan);
    }
};

struct Lanes {
    const Side* side;
    template <bool VNNI>
    U32s dot(const Side& a, int g) const {
        return dot_lanes<VNNI>(a.quads, side[g].quads, side[g].offset);
    }
    U32s live(int g) const { return side[g].live; }
    F32s significand(int g) const { return side[g].significand; }
    F32s exponent(int g) const { return side[g].exponent; }
};

// What calls differ in; GROUPS 0: known at run time only.
template <int GROUPS_, bool SIGNIFICANDS_, bool VNNI_>
struct Kind {
    static constexpr int GROUPS = GROUPS_;
    static constexpr bool SIGNIFICANDS = SIGNIFICANDS_, VNNI = VNNI_;
};

// Of finite lanes; garbage of others.
template <class K, class B>
MMAPROBE_HD U32s run_lanes(const Rules& r, const Side* a, const B& b, F32s c) {
    const int groups = K::GROUPS ? K::GROUPS : r.groups;
    F32s label = label_of(c, r.zero_exponent), labels[MOST_GROUPS], sums[MOST_GROUPS];
    for (int g = 0; g < groups; ++g) {
        labels[g] = a[g].exponent + b.exponent(g);
        raise_label(label, labels[g], a[g].live, b.live(g));
        sums[g] = to_floats(b.template dot<K::VNNI>(a[g], g));
        if (K::SIGNIFICANDS) sums[g] *= a[g].significand * b.significand(g);
    }
    Wide sum[2];
    truncate_c(sum, c, all(float(r.fraction_bits)) - label);
    const F32s up = all(float(r.unit + POWER_BIAS)) - label;
    for (int g = 0; g < groups; ++g) add_truncated(sum, times_power(sums[g], labels[g] + up));
    return encoded(sum, label - all(float(r.fraction_bits)), r.underflow_positive);
}

// d where neither a scale is a NaN nor C special.
inline U32s with_specials(const Rules& r, U32s d, U32s c, U32s nan) {
    const U32s top = splat<U32s>(0xFF000000), size = c << 1;
    return pick(nan | less(top, size), splat<U32s>(r.nan), pick(equal(top, size), c, d));
}

template <class K>
bool evaluate_kind(const LayoutCall& call, const Rules& r) {
    const i64 strips = (call.m + STRIP - 1) / STRIP;
    Side a[MOST_GROUPS], b[MOST_GROUPS];
    const auto run = [&](i64 at, const auto& other, bool any_nan, const auto& nan) __attribute__((always_inline)) {
        const U32s c = fused::load_codes<u32>(call.c, at);
        U32s d = run_lanes<K>(r, a, other, F32s(c));
        if (any_nan | any_special(F32s(c))) d = with_specials(r, d, c, nan());
        store(static_cast<u32*>(call.d) + at, d);
    };
    Columns columns(r, call.n);
    for (i64 tile = 0; tile < call.count; ++tile) {
        const bool column_nan = call.n && columns.template read<K::SIGNIFICANDS>(
                                              static_cast<const uint8_t*>(call.b) + 4 * tile * columns.words,
                                              static_cast<const uint8_t*>(call.scale_b) + tile * columns.scales);
        for (i64 strip = tile * strips; call.n && strip < (tile + 1) * strips; ++strip)
            for (int part = 0; part < STRIP; part += LANES) {
                const U32s nan = read_lanes<true, K::SIGNIFICANDS>(r, call.a, call.scale_a, strip, part, a);
                const bool any_nan = column_nan | any(nan);
                for (i64 n = 0; n < call.n; ++n) {
                    const Column column(columns, n);
                    run((strip * call.n + n) * STRIP + part, column, any_nan, [&] { return nan | column.nan(); });
                }
            }
        for (int part = 0; !call.n && part < STRIP; part += LANES) {
            U32s nan = read_lanes<true, K::SIGNIFICANDS>(r, call.a, call.scale_a, tile, part, a);
            nan |= read_lanes<false, K::SIGNIFICANDS>(r, call.b, call.scale_b, tile, part, b);
            run(tile * STRIP + part, Lanes{b}, any(nan), [&] { return nan; });
        }
    }
    return true;
}

template <bool SIGNIFICANDS, bool VNNI>
bool evaluate_groups(const LayoutCall& call, const Rules& r) {
    return r.groups == 4 ? evaluate_kind<Kind<4, SIGNIFICANDS, VNNI>>(call, r)
                         : evaluate_kind<Kind<0, SIGNIFICANDS, VNNI>>(call, r);
}

inline bool evaluate(const LayoutCall& call) {
    const Header header{call.program};
    const Rules r(call.program, header, GroupedRow{call.program + header[Header::rules]});
    const Environment environment;
    const bool significands = r.scale.fraction_bits || r.scale.low;
#if defined(__AVX512BW__)
    if (__builtin_cpu_supports("avx512vnni"))
        return significands ? evaluate_groups<true, true>(call, r) : evaluate_groups<false, true>(call, r);
#endif
    return significands ? evaluate_groups<true, false>(call, r) : evaluate_groups<false, false>(call, r);
}

}  // namespace grouped
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
