// Products (docs/datapath.md section 2): exact, labelled, scaled, limited, rounded.
#pragma once
#include "context.hpp"
#include "parts.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

// Multiplies by the two scales of a block. fixed_label: the label becomes the scales' exponents alone.
template <class W, int V>
MMAPROBE_CALL void scale(const Context<W, V>& x, Register<W, V>& p, i64 block, bool fixed_label) {
    const OperandRow o = x.operand(x.header[Header::scale]);
    for (int side = 0; side < 2; ++side) {
        Decoded<V> s;
        decode<V>(o, side ? x.sources.scale_b : x.sources.scale_a, x.first, block, x.count, s);
        const i64 fraction_bits = o[OperandRow::fraction_bits];
        const i64 keep = fixed_label && side == 0 ? 0 : -1;  // all ones: the label so far counts
        MMAPROBE_EACH(i, x.count) {
            const u64 own = p.flags[i] & ANY_SPECIAL;
            const bool dead = s.significand[i] == 0;
            const i64 label = (p.label[i] & keep) + s.exponent[i] + fraction_bits;
            p.label[i] = dead || p.label[i] == NO_LABEL ? NO_LABEL : label;
            p.magnitude[i] = times(p.magnitude[i], s.significand[i]);
            p.exponent[i] += s.exponent[i];
            const u64 flags = p.flags[i] ^ (s.flags[i] & NEGATIVE);
            p.flags[i] = (s.flags[i] & NOT_NUMBER) || (dead && own) ? p.flags[i] | NOT_NUMBER : flags;
        }
    }
    MMAPROBE_EACH(i, x.count)
    if (p.flags[i] & NOT_NUMBER) p.flags[i] &= NOT_NUMBER | SIGNALLING;
}

template <class W, int V>
MMAPROBE_HD void label_products(const Context<W, V>& x, Register<W, V>& p, const Decoded<V>& a, const Decoded<V>& b) {
    const OperandRow oa = x.operand(x.header[Header::a]), ob = x.operand(x.header[Header::b]);
    const i64 kind = x.header[Header::label], split = x.header[Header::split];
    const i64 whole = oa[OperandRow::fraction_bits] * (oa[OperandRow::kind] == FLOAT) +
                      ob[OperandRow::fraction_bits] * (ob[OperandRow::kind] == FLOAT);
    const i64 offset = split == ABSENT ? whole : 2 * SplitRow{x.program + split}[SplitRow::fraction_bits];
    i64 of_a[V], of_b[V];
    MMAPROBE_EACH(i, x.count) of_a[i] = offset;
    if (kind == OPERANDS) {
        lengths(a.significand, of_a, x.count);
        lengths(b.significand, of_b, x.count);
        MMAPROBE_EACH(i, x.count) of_a[i] += of_b[i] - 2;
    } else if (kind == NORMALISED) {
        lengths(p.magnitude, of_a, x.count);
        MMAPROBE_EACH(i, x.count) of_a[i] -= 1;
    }
    MMAPROBE_EACH(i, x.count) p.label[i] = is_zero(p.magnitude[i]) ? NO_LABEL : p.exponent[i] + of_a[i];
}

// A product of magnitude >= 2^overflow_exponent becomes an infinity.
template <class W, int V>
MMAPROBE_HD void limit_products(const Context<W, V>& x, Register<W, V>& p) {
    const i64 bound = x.header[Header::overflow_exponent];
    i64 length_of[V];
    lengths(p.magnitude, length_of, x.count);
    MMAPROBE_EACH(i, x.count) {
        const bool over = length_of[i] && p.exponent[i] + length_of[i] > bound;
        const u64 infinite = p.flags[i] & NEGATIVE ? u64(MINUS_INFINITE) : u64(PLUS_INFINITE);
        p.magnitude[i] = over ? make<W>(0) : p.magnitude[i];
        p.label[i] = over ? NO_LABEL : p.label[i];
        p.flags[i] |= over ? infinite : 0;
    }
}

template <class W, int V>
MMAPROBE_HD void multiply(i64 how, const Decoded<V>& a, const Decoded<V>& b, Register<W, V>& p, int count) {
    MMAPROBE_EACH(i, count) {
        const u64 fa = a.flags[i], fb = b.flags[i], special = (fa | fb) & ANY_SPECIAL;
        const bool zero = ((a.significand[i] == 0) & !(fa & ANY_SPECIAL)) |
                          ((b.significand[i] == 0) & !(fb & ANY_SPECIAL));
        const u64 negative = (fa ^ fb) & NEGATIVE;
        const u64 infinite = negative ? MINUS_INFINITE | NEGATIVE : u64(PLUS_INFINITE);
        const u64 made = (special & NOT_NUMBER) != 0 || zero ? u64(NOT_NUMBER) : infinite;
        p.flags[i] = special ? made : negative;
        p.exponent[i] = a.exponent[i] + b.exponent[i];
    }
    if (how == EXACT)
        MMAPROBE_EACH(i, count) p.magnitude[i] = Traits<W>::product(a.significand[i], b.significand[i]);
    else
        MMAPROBE_EACH(i, count)
    p.magnitude[i] = make<W>(how == AND ? a.significand[i] & b.significand[i] : a.significand[i] ^ b.significand[i]);
}

// Takes the partial products a_i b_j 2^(i + j) with i + j < columns away again.
template <class W, int V>
MMAPROBE_HD void truncate_products(i64 columns, const Decoded<V>& a, const Decoded<V>& b, Register<W, V>& p,
                                   int count) {
    for (int i = 0; i < count; ++i) {
        const u64 x = a.significand[i];
        u128 lost = 0;
        for (u64 y = b.significand[i], j = 0; y && i64(j) < columns; y >>= 1, ++j) {
            const i64 kept = columns - i64(j);
            if (y & 1) lost += u128(kept < 64 ? x & ((u64(1) << kept) - 1) : x) << j;
        }
        W taken = make<W>(u64(lost));
        if (Traits<W>::width > 64) taken = taken + shl(make<W>(u64(lost >> 64)), smaller(64, Traits<W>::width - 1));
        p.magnitude[i] = p.magnitude[i] - taken;
    }
}

template <class W, int V>
MMAPROBE_CALL void form_product(const Context<W, V>& x, i64 number, Register<W, V>& p) {
    const i64 lane = x.lane_of(number), split = x.header[Header::split];
    Decoded<V> a, b;
    decode<V>(x.operand(x.header[Header::a]), x.sources.a, x.first, lane, x.count, a);
    decode<V>(x.operand(x.header[Header::b]), x.sources.b, x.first, lane, x.count, b);
    if (split != ABSENT) take_parts({x.program + split}, number % x.header[Header::products], a, b, x.count);
    multiply<W, V>(x.header[Header::multiply], a, b, p, x.count);
    if (x.header[Header::missing_columns]) truncate_products<W, V>(x.header[Header::missing_columns], a, b, p, x.count);
    label_products(x, p, a, b);
    if (x.header[Header::scale_where] == SCALE_PRODUCT) scale(x, p, lane / x.header[Header::scale_size], false);
    const bool b_first = x.header[Header::product_order];
    x.settle_all(p, [&](NanChoice& c, int i) {
        c.offer(x.factor_nan(i, lane, b_first));
        c.offer(x.factor_nan(i, lane, !b_first));
    });
    if (x.header[Header::overflow_exponent] != NEVER) limit_products(x, p);
    if (x.header[Header::product_encode] != ABSENT) x.encode(p, x.header[Header::product_encode]);
}

template <class W, int V>
MMAPROBE_CALL void product(const Context<W, V>& x, const ProductRow& r) {
    Register<W, V>& to = x.registers[r[ProductRow::to]];
    const i64 lane = r[ProductRow::lane];
    if (!x.products) return form_product(x, lane, to);
    Register<W, V>& p = x.products[lane];
    if (!x.formed[lane]) form_product(x, lane, p);
    x.formed[lane] = true;
    MMAPROBE_EACH(i, x.count) {
        to.magnitude[i] = p.magnitude[i];
        to.exponent[i] = p.exponent[i];
        to.label[i] = p.label[i];
        to.flags[i] = p.flags[i];
    }
    if (!x.local()) return;
    MMAPROBE_EACH(i, x.count) to.nan[i] = p.nan[i];
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
