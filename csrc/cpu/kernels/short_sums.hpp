// The kernel of short sums: few products a step and C on a common grid, every step rounded once (RDNA3, RDNA4).
//
//   without parts, in the frame of C's sign (a term is v = trunc(|x|, E - F), of the other sign -(v + 1)):
//     E = largest label of the products and C;       d = round(sum_k v_k + v_c)
//   parts, each lane of one:
//     s_p = sum_(k in p) floor(a_k b_k, E_p - F), E_p the largest label of its products;
//     E = largest label of the s_p and C;            d = round(sum_p floor(s_p, E - F) + floor(c, E - F))
//
// Items are significands, below 2 in magnitude, and labels; sums are 32-bit integers. C is a binary32 number whatever
// its format: NaNs keep their payload on top.
#pragma once
#include <memory>

#include "cpu/kernels/byte_quads.hpp"
#include "cpu/kernels/fused_exact.hpp"
#include "cpu/kernels/labels.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace short_steps {

constexpr int MOST_STEP = 16;
constexpr i32 NONE = -(1 << 13);  // a zero item's label: with any other below every label of a product that is none
enum class Form { F32, F16, BF16 };

inline Form form_of(int bytes, i64 exponent_bits) {
    return bytes == 4 ? Form::F32 : exponent_bits == 8 ? Form::BF16 : Form::F16;
}

enum class Way { WORD, HALF, TOP, NARROW };  // a binary32; a binary16; the top of a binary32; less than a binary16

// How items become binary32 numbers, by way of binary16 where they are narrow, and their subnormals others.
struct Reader {
    Reading reading;
    int bytes, left, right;  // how a narrow item's bits become those of a binary16
    Way way;
    bool patched;
    float power;  // of two: a narrow item's value by the binary16's
    u32 finite, special;  // the largest finite item, and the bits that make a binary16 special
    i32 least, normal, kept;  // the lowest exponent; the least normal number; bits of a subnormal that are read

    explicit Reader(const OperandRow& o)
        : reading(o), bytes(int(o[OperandRow::bytes])), left(15 - reading.sign),
          right(5 - int(o[OperandRow::exponent_bits])),
          way(bytes == 4                                        ? Way::WORD
              : bytes == 2 && right == 0                        ? Way::HALF
              : bytes == 2 && o[OperandRow::exponent_bits] == 8 ? Way::TOP
                                                                : Way::NARROW),
          patched(right || reading.infinity == ~u32(0)), power(ldexpf(1, 15 - reading.bias)),
          finite(reading.infinity == ~u32(0) ? reading.nan_above : reading.infinity - 1),
          special(reading.infinity == ~u32(0) ? 0x7E00 : 0x7C00), least(i32(o[OperandRow::min_exponent])),
          normal((least + 127) << 23), kept(o[OperandRow::flush] == KEEP      ? -1
                                            : o[OperandRow::flush] == TO_ZERO ? 0
                                                                              : i32(0x80000000)) {}

    template <Way WAY>
    MMAPROBE_HD F32s number(const void* base, i64 at) const {
        if (WAY == Way::WORD) return load<F32s>(static_cast<const float*>(base) + at);
        if (WAY == Way::HALF) return from_half(static_cast<const uint16_t*>(base) + at);
        if (WAY == Way::TOP) return F32s(widen(static_cast<const uint16_t*>(base) + at) << 16);
        const U32s code = fused::load_codes(bytes, base, at);
        U32s bits = code << left;
        if (right) bits = ((bits & 0x7FFF) >> right) | (bits & 0x8000);
        if (patched) bits |= less(splat<U32s>(finite), code & reading.magnitude) & special;
        uint16_t halves[LANES];
        narrow(halves, bits);
        return from_half(halves) * splat_float(power);
    }
    template <Way WAY>
    MMAPROBE_HD F32s read(const void* base, i64 at) const {
        const F32s x = number<WAY>(base, at);
        if (kept == -1) return x;
        const Mask small = where_less(I32s(x) & 0x7FFFFFFF, splat_int(normal));
        return F32s(choose(small, I32s(x) & kept, I32s(x)));
    }
    MMAPROBE_HD F32s read_c(const void* base, i64 at) const {
        return way == Way::WORD   ? read<Way::WORD>(base, at)
               : way == Way::HALF ? read<Way::HALF>(base, at)
                                  : read<Way::TOP>(base, at);
    }
};

struct Rules {
    Reader a, b, c;
    Form form;
    int k, step, parts, fraction_bits;
    i32 label_offset, zero_label, cutoff;
    bool flush, by_cause;
    i32 code, factor_code;  // NaNs, as binary32 numbers
    i32 read_on;  // the bits of a result that the next step reads
    const i64* order;

    Rules(const i64* program, const Header& h, const ShortRow& r)
        : a(OperandRow{program + h[Header::a]}), b(OperandRow{program + h[Header::b]}),
          c(OperandRow{program + h[Header::c]}),
          form(form_of(c.bytes, OperandRow{program + h[Header::c]}[OperandRow::exponent_bits])), k(int(h[Header::k])),
          step(int(r[ShortRow::step])), parts(int(r[ShortRow::parts])), fraction_bits(int(r[ShortRow::fraction_bits])),
          label_offset(i32(r[ShortRow::label_offset])), zero_label(i32(larger(r[ShortRow::zero_exponent], 4 * NONE))),
          cutoff(i32(smaller(r[ShortRow::cutoff], 1 << 20))), flush(r[ShortRow::flush]),
          by_cause(h[Header::nan] == CAUSE), code(wide_code(u32(h[Header::nan_code]))),
          factor_code(by_cause ? wide_code(u32(h[Header::factor_code])) : code),
          read_on(form == Form::BF16 ? i32(0xFFFF0000) : -1), order(program + r[ShortRow::order]) {}

    i32 wide_code(u32 narrow) const {
        if (form == Form::F32) return i32(narrow);
        return i32(form == Form::BF16 ? narrow << 16 : (narrow & 0x8000) << 16 | 0x7F800000 | (narrow & 0x3FF) << 13);
    }
};

// Items of one operand.
struct Side {
    float* value;
    LabelItem* label;
    bool special;

    // `count` items from item `at` of base on; written up to a multiple of LANES.
    void decode(const Reader& r, const void* base, i64 at, i64 count) {
        switch (r.way) {
            case Way::HALF: return decode_as<Way::HALF>(r, base, at, count);
            case Way::TOP: return decode_as<Way::TOP>(r, base, at, count);
            default: return decode_as<Way::NARROW>(r, base, at, count);
        }
    }

private:
    template <Way WAY>
    void decode_as(const Reader r, const void* base, i64 at, i64 count) {
        Mask found = {};
        i64 i = 0;
        for (; i + LANES <= count; i += LANES) found |= put(r, i, r.read<WAY>(base, at + i));
        if (i < count) {
            char rest[4 * LANES] = {};
            memcpy(rest, static_cast<const char*>(base) + (at + i) * r.bytes, size_t((count - i) * r.bytes));
            found |= put(r, i, r.read<WAY>(rest, 0));
        }
        special = any_lane(found);
    }

    MMAPROBE_HD Mask put(const Reader& r, i64 i, F32s x) const {
        const Labels exponent = larger_label(exponent_of(x), all_labels(r.least));
        const Mask is_special = where_special(x);
        store(value + i, choose(is_special, x, significand_at(x, exponent)));
        store(label + i, choose_label(where_some(x), exponent, all_labels(NONE)));
        return is_special;
    }
};

// Four registers of results: a lane's items of either side of register i.
template <bool GROUPS>
struct Pairs {
    const Side &a, &b;
    i64 column;  // where b's items begin
    i64 items;  // of a group, or of a column

    MMAPROBE_HD i64 at_a(int i, i64 lane) const {
        return (GROUPS ? i / fused::PARTS * items : 0) + lane * ROWS + i % fused::PARTS * LANES;
    }
    MMAPROBE_HD i64 at_b(int i, i64 lane) const {
        return GROUPS ? at_a(i, lane) : column + i / fused::PARTS * items + lane;
    }
    MMAPROBE_HD F32s a_value(int i, i64 lane) const { return load<F32s>(a.value + at_a(i, lane)); }
    MMAPROBE_HD F32s b_value(int i, i64 lane) const {
        return GROUPS ? load<F32s>(b.value + at_b(i, lane)) : broadcast(F32s{}, b.value[at_b(i, lane)]);
    }
    MMAPROBE_HD Labels label(int i, i64 lane) const {
        const Labels x = load<Labels>(a.label + at_a(i, lane));
        return x + (GROUPS ? load<Labels>(b.label + at_b(i, lane)) : broadcast_label(b.label[at_b(i, lane)]));
    }
};

#ifdef MMAPROBE_BYTE_QUADS
// Four registers of results of one step of four bytes, none of them special: groups from the first of a and b on.
struct Quads {
    const Reading &a_reading, &b_reading;
    const uint8_t *a, *b;
    int live;  // groups

    static bool reads(const Reader& r) {
        return r.way == Way::NARROW && r.bytes == 1 && r.reading.sign == 7 && r.kept == -1;
    }
    MMAPROBE_HD ByteQuad of(const Reading& reading, const uint8_t* from, int i) const {
        return {from + smaller(i, live - 1) * 4 * ROWS, reading.fraction_bits};
    }
    MMAPROBE_HD ByteQuad a_quad(int i) const { return of(a_reading, a, i); }
    MMAPROBE_HD ByteQuad b_quad(int i) const { return of(b_reading, b, i); }
};
#endif

// C as an item of its own.
struct Addend {
    Parted value;
    Labels label;

    MMAPROBE_HD Addend(const Rules& r, F32s c) : value(part_of(c)) {
        const Labels shown = larger_label(value.exponent, all_labels(r.c.least)) + all_labels(r.label_offset);
        label = choose_label(where_some(c), shown, all_labels(r.zero_label));
    }
};

// x 2^n in whole numbers, however small it is.
template <Towards TO>
MMAPROBE_HD I32s cut(F32s x, Labels n) {
    return whole<TO>(x, larger_label(n, all_labels(LEAST_POWER)));
}

// What an infinity or a NaN among C makes of a step's result d where its products are finite.
MMAPROBE_HD F32s with_special_c(const Rules& r, F32s c, F32s d) {
    const I32s kept = r.by_cause ? I32s(c) | 0x00400000 : splat_int(r.code);
    return F32s(choose(where_special(c), choose(where_nan(c), kept, I32s(c)), I32s(d)));
}

// What the infinities and NaNs of a step make of its result d.
template <class P>
MMAPROBE_HD F32s with_specials(const Rules& r, const P& pairs, int i, const i64* lanes, F32s c, F32s d) {
    F32s sum = {};
    Mask factors = {};
    for (int k = 0; k < r.step; ++k) {
        const F32s x = pairs.a_value(i, lanes[k]), y = pairs.b_value(i, lanes[k]);
        sum = multiply_add(x, y, sum);
        factors |= where_nan(x) | where_nan(y);
    }
    const F32s all = choose(where_nan(c), F32s{}, sum + c);  // of infinities; a NaN C is dealt with already
    const I32s code = splat_int(r.code);
    I32s out = choose(where_special(sum) & where_special(all), I32s(all), I32s(with_special_c(r, c, d)));
    out = choose(where_nan(sum) | where_nan(all), code, out);
    return F32s(choose(factors, splat_int(r.factor_code), out));
}

// Subnormal results: sum 2^n, rounded where binary32 numbers end.
MMAPROBE_APART F32s subnormal(I32s sum, Labels n) {
    const U32s up = U32s(larger(as_integers(n), splat_int(-600)));
    I32h out[2];
    for (int part = 0; part < 2; ++part)
        out[part] = nearest_floats(scaled(to_doubles(half(U32s(sum), part)), half(up, part)));
    return F32s(join(out[0], out[1]));
}

// The sum in units of 2^(label - F), of the frame's sign where it is positive, rounded to what the next step takes.
template <bool HALF>
MMAPROBE_HD F32s rounded(const Rules& r, I32s sum, Labels label, I32s frame) {
    const Labels n = label - all_labels(r.fraction_bits);
    if (HALF) {
        const F32s cut = to_float_towards_zero(sum);  // odd where bits fell out, so that the next rounding sees them
        const F32s odd = F32s(choose(where_set(truncate(cut) ^ sum), I32s(cut) | 1, I32s(cut)) ^ frame);
        uint16_t codes[LANES];
        to_half(codes, times_power_of(odd, larger_label(n, all_labels(LEAST_POWER)), where_set(sum)));
        return from_half(codes) + 0.0f;
    }
    const F32s value = nearest_of(sum);
    const Labels exponent = exponent_of(value) + n, least = all_labels(-126);
    F32s d = times_power_of(F32s(I32s(value) ^ frame), n, where_reached(exponent, least));
    if (!r.flush) {
        const Mask tiny = where_below(exponent, least) & where_set(sum);
        const I32s minus = frame >> 31;
        if (any_lane(tiny)) d = choose(tiny, subnormal((sum ^ minus) - minus, n) + 0.0f, d);
    }
    return F32s(I32s(d) & r.read_on);
}

// The sums of four registers: all products and C in the frame of C's sign.
template <bool HALF, int STEP, class P>
MMAPROBE_HD void framed_sums(const Rules& r, const P& pairs, const i64* lanes, F32s* c) {
    constexpr int MOST = STEP ? STEP : MOST_STEP;
    const int step = STEP ? STEP : r.step;
    Labels labels[MOST][4], label[4], up[4];
    I32s sum[4], frame[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        const Addend addend(r, c[i]);
        label[i] = addend.label;
#pragma GCC unroll 4
        for (int k = 0; k < step; ++k) {
            labels[k][i] = pairs.label(i, lanes[k]);
            label[i] = larger_label(label[i], labels[k][i]);
        }
        frame[i] = I32s(c[i]) & i32(0x80000000);
        up[i] = all_labels(r.fraction_bits) - label[i];
        sum[i] = cut<Towards::ZERO>(F32s(I32s(addend.value.significand) ^ frame[i]), addend.value.exponent + up[i]);
    }
#pragma GCC unroll 4
    for (int k = 0; k < step; ++k)
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            const F32s product = pairs.a_value(i, lanes[k]) * pairs.b_value(i, lanes[k]);
            const F32s x = F32s(I32s(product) ^ frame[i]);
            sum[i] += cut<Towards::ZERO>(x, labels[k][i] + up[i]) + (I32s(x) >> 31);
        }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) c[i] = rounded<HALF>(r, sum[i], label[i], frame[i]);
}

template <int LENGTH, class P>
MMAPROBE_HD Part sum_part(const Rules& r, const P& pairs, int i, const i64* lanes, int length) {
    constexpr int MOST = LENGTH ? LENGTH : MOST_STEP;
    Labels labels[MOST];
    Part out{I32s{}, all_labels(4 * NONE)};
#pragma GCC unroll 4
    for (int k = 0; k < length; ++k) {
        labels[k] = pairs.label(i, lanes[k]);
        out.label = larger_label(out.label, labels[k]);
    }
    const Labels up = all_labels(r.fraction_bits) - out.label;
#pragma GCC unroll 4
    for (int k = 0; k < length; ++k) {
        const F32s product = pairs.a_value(i, lanes[k]) * pairs.b_value(i, lanes[k]);
        out.sum += cut<Towards::DOWN>(product, labels[k] + up);
    }
    return out;
}

#ifdef MMAPROBE_BYTE_QUADS
template <int LENGTH>
MMAPROBE_HD Part sum_part(const Rules& r, const Quads& quads, int i, const i64*, int) {
    const i32 biases = r.a.reading.bias + r.b.reading.bias;
    return sum_quads(quads.a_quad(i), quads.b_quad(i), biases, r.fraction_bits, 4 * NONE);
}
#endif

// The sums of four registers: those of the parts, and C, cut downward.
template <bool HALF, int PARTS, int LENGTH, class P>
MMAPROBE_HD void sums_of_parts(const Rules& r, const P& pairs, const i64* lanes, F32s* c) {
    constexpr int MOST = PARTS ? PARTS : MOST_STEP;
    const int parts = PARTS ? PARTS : r.parts, length = LENGTH ? LENGTH : r.step / r.parts;
    Part part[MOST][4];
#pragma GCC unroll 4
    for (int p = 0; p < parts; ++p)
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) part[p][i] = sum_part<LENGTH>(r, pairs, i, lanes + p * length, length);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        const Addend addend(r, c[i]);
        Labels label = addend.label;
        for (int p = 0; p < parts; ++p) label = larger_label(label, part[p][i].label);
        const Mask near = where_reached(addend.label, label - all_labels(r.cutoff));
        const Labels up = addend.value.exponent + (all_labels(r.fraction_bits) - label);
        I32s sum = only_where(near, cut<Towards::DOWN>(addend.value.significand, up));
        for (int p = 0; p < parts; ++p) sum += floor_shift_by(part[p][i].sum, label - part[p][i].label);
        c[i] = rounded<HALF>(r, sum, label, I32s{});
    }
}

// A step's form: PARTS parts of LENGTH lanes, or none and LENGTH lanes in one; LENGTH 0: known at run time only.
template <bool FRAMED, int PARTS, int LENGTH, bool HALF = false>
struct Shape {
    using Narrow = Shape<FRAMED, PARTS, LENGTH, true>;
    static constexpr bool FOUR = !FRAMED && PARTS == 1 && LENGTH == 4;
    template <class P>
    MMAPROBE_HD static void sums(const Rules& r, const P& pairs, const i64* lanes, F32s* c) {
        if constexpr (FRAMED)
            framed_sums<HALF, LENGTH>(r, pairs, lanes, c);
        else
            sums_of_parts<HALF, PARTS, LENGTH>(r, pairs, lanes, c);
    }
};

// A call: what it works on beside its arrays.
template <class S>
struct Call {
    const LayoutCall& call;
    const Rules& r;
    Side a, b;

    MMAPROBE_HD F32s load_c(i64 at) const { return r.c.read_c(call.c, at); }
    MMAPROBE_HD void put(i64 at, F32s d) const {
        if (r.form == Form::F32) return store(static_cast<float*>(call.d) + at, d);
        uint16_t* const to = static_cast<uint16_t*>(call.d) + at;
        if (r.form == Form::F16) return to_half(to, d);
        narrow(to, U32s(d) >> 16);
    }

    // Four registers of results from `at` on, or the first `live` of them; CAREFUL: items may be special.
    template <bool CAREFUL, class P>
    MMAPROBE_HD void block(const P& pairs, i64 at, int live) const {
        F32s c[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) c[i] = i < live ? load_c(at + i * LANES) : F32s{};
        for (int first = 0; first < r.k; first += r.step) {
            const i64* const lanes = r.order + first;
            const F32s before[4] = {c[0], c[1], c[2], c[3]};
            const bool special = any_special(c);
            S::sums(r, pairs, lanes, c);
            if constexpr (CAREFUL)
                if (a.special | b.special) {
                    for (int i = 0; i < 4; ++i) c[i] = with_specials(r, pairs, i, lanes, before[i], c[i]);
                    continue;
                }
            if (special)
                for (int i = 0; i < 4; ++i) c[i] = with_special_c(r, before[i], c[i]);
        }
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i)
            if (i < live) put(at + i * LANES, c[i]);
    }

    void tiles() {
        const i64 strips = (call.m + STRIP - 1) / STRIP, n = call.n, items = n * r.k;
        for (i64 tile = 0; tile < call.count; ++tile) {
            b.decode(r.b, call.b, tile * items, items);
            for (i64 strip = tile * strips; strip < (tile + 1) * strips; ++strip) {
                a.decode(r.a, call.a, strip * r.k * ROWS, r.k * ROWS);
                for (i64 i = 0; i < n; i += BLOCK)
                    block<true>(Pairs<false>{a, b, i * r.k, r.k}, (strip * n + i) * ROWS,
                                int(smaller(n - i, BLOCK)) * fused::PARTS);
            }
        }
    }

#ifdef MMAPROBE_BYTE_QUADS
    // Groups of one step of four bytes, unless an item is special.
    bool quads(i64 g, int live) const {
        if (!S::FOUR || r.k != 4 || !Quads::reads(r.a) || !Quads::reads(r.b)) return false;
        const auto from = [&](const void* base) { return static_cast<const uint8_t*>(base) + g * 4 * ROWS; };
        const Quads groups{r.a.reading, r.b.reading, from(call.a), from(call.b), live};
        for (int i = 0; i < live; ++i)
            if (groups.a_quad(i).above(r.a.finite) || groups.b_quad(i).above(r.b.finite)) return false;
        if constexpr (S::FOUR) block<false>(groups, g * ROWS, live);
        return true;
    }
#else
    bool quads(i64, int) const { return false; }
#endif

    void groups() {
        for (i64 g = 0; g < call.count; g += BLOCK) {
            const i64 live = smaller(call.count - g, BLOCK), items = r.k * ROWS;
            if (quads(g, int(live))) continue;
            a.decode(r.a, call.a, g * items, live * items);
            b.decode(r.b, call.b, g * items, live * items);
            block<true>(Pairs<true>{a, b, 0, items}, g * ROWS, int(live) * fused::PARTS);
        }
    }
};

template <class S>
bool run_with(const LayoutCall& call, const Rules& r) {
    const size_t a = size_t(BLOCK * r.k * ROWS), b = size_t((call.n + BLOCK) * r.k + LANES) + a;
    const std::unique_ptr<float[]> values(new float[a + b]());
    const std::unique_ptr<LabelItem[]> labels(new LabelItem[a + b]());
    Call<S> c{call, r, {values.get(), labels.get(), false}, {values.get() + a, labels.get() + a, false}};
    call.n ? c.tiles() : c.groups();
    return true;
}

template <class S>
bool run(const LayoutCall& call, const Rules& r) {
    return r.form == Form::F16 ? run_with<typename S::Narrow>(call, r) : run_with<S>(call, r);
}

// The shapes that there are instructions of have code of their own.
inline bool evaluate(const LayoutCall& call) {
    const Header header{call.program};
    const Rules r(call.program, header, ShortRow{call.program + header[Header::rules]});
    if (r.step > MOST_STEP || (r.form == Form::F16 && !HAS_HALVES)) return false;
    const Environment environment;
    if (!r.parts) return r.step == 2 ? run<Shape<true, 0, 2>>(call, r) : run<Shape<true, 0, 0>>(call, r);
    const int length = r.step / r.parts;
    if (r.parts == 2 && length == 2) return run<Shape<false, 2, 2>>(call, r);
    if (r.parts == 1 && length == 2) return run<Shape<false, 1, 2>>(call, r);
    if (r.parts == 1 && length == 4) return run<Shape<false, 1, 4>>(call, r);
    return run<Shape<false, 0, 0>>(call, r);
}

}  // namespace short_steps
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
