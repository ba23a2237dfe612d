// The interpreter: runs a program on V vectors at a time.
#pragma once
#include "sum.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

template <class W, int V>
struct Machine {
    const i64* program;
    Header header;
    Sources sources;
    Register<W, V>* registers;
    i64 first;  // vector
    int count;

    MMAPROBE_HD OperandRow operand(i64 at) const { return {program + at}; }
    MMAPROBE_HD EncodeRow encode_row(i64 at) const { return {program + at}; }
    MMAPROBE_HD bool local() const { return header[Header::nan] == LOCAL; }

    MMAPROBE_HD static void put(Register<W, V>& to, int i, const Encoded& e) {
        to.magnitude[i] = make<W>(e.magnitude);
        to.exponent[i] = e.exponent;
        to.label[i] = e.label;
        to.flags[i] = e.flags;
    }
    MMAPROBE_HD static void put_special(Register<W, V>& to, int i, u64 flags) {
        to.magnitude[i] = make<W>(0);
        to.exponent[i] = 0;
        to.label[i] = NO_LABEL;
        to.flags[i] = flags;
    }
    MMAPROBE_HD EncodeRow d() const { return encode_row(header[Header::d]); }
    MMAPROBE_HD NanChoice choice() const { return {header[Header::signalling_first] != 0}; }
    MMAPROBE_HD static Nan nan_of(const Register<W, V>& x, int i) {
        return {(x.flags[i] & NOT_NUMBER) != 0, (x.flags[i] & SIGNALLING) != 0, x.nan[i]};
    }
    MMAPROBE_HD Nan factor_nan(int i, i64 lane, bool b) const {
        const Source& s = b ? sources.b : sources.a;
        return operand_nan(operand(header[b ? Header::b : Header::a]), s, (first + i) * s.row + lane, d());
    }
    // A NaN result of a node: under the local rule the chosen operand's payload, or the code.
    MMAPROBE_HD void put_nan(Register<W, V>& to, int i, const NanChoice& choice) const {
        put_special(to, i, NOT_NUMBER);
        if (!local()) return;
        const Nan& nan = choice.chosen;
        const bool quiet = header[Header::quiet];
        to.nan[i] = !nan.present ? u64(header[Header::nan_code])
                                 : nan.code | (quiet ? u64(d()[EncodeRow::quiet_bit]) : 0);
        if (nan.signalling && !quiet) to.flags[i] |= SIGNALLING;
    }

    MMAPROBE_CALL void scale(Register<W, V>& p, i64 block, i64 fixed_label) const;
    MMAPROBE_CALL void label_product(Register<W, V>& p, const Decoded<V>& a, const Decoded<V>& b) const;
    MMAPROBE_CALL void limit_product(Register<W, V>& p) const;
    MMAPROBE_CALL void encode(Register<W, V>& to, const Register<W, V>& x, i64 at) const;
    MMAPROBE_CALL void product(const ProductRow& r) const;
    MMAPROBE_CALL void load_c(const LoadRow& r) const;
    MMAPROBE_CALL void zero(const LoadRow& r) const;
    template <bool FMA>
    MMAPROBE_CALL void add(const Register<W, V>& x, const Register<W, V>& y, Register<W, V>& to, i64 at, bool down,
                           i64 lane) const;
    template <bool FMA>
    MMAPROBE_CALL void offer_addends(NanChoice& nan, const Register<W, V>& x, const Register<W, V>& y, int i,
                                     i64 lane) const;
    MMAPROBE_CALL const i64* sum(const SumRow& r, const i64* terms) const;
    MMAPROBE_CALL u64 final_nan(const Register<W, V>& x, int i) const;
    MMAPROBE_CALL void store(const StoreRow& r, void* out, int bytes) const;
    MMAPROBE_CALL void run(void* out, int bytes) const;
};

// Multiplies by the two scales of a block. fixed_label: the label becomes the scales' exponents alone.
template <class W, int V>
MMAPROBE_CALL void Machine<W, V>::scale(Register<W, V>& p, i64 block, i64 fixed_label) const {
    const OperandRow o = operand(header[Header::scale]);
    const Source* scales[2] = {&sources.scale_a, &sources.scale_b};
    for (int side = 0; side < 2; ++side) {
        Decoded<V> s;
        decode<V>(o, *scales[side], first, block, count, s);
        for (int i = 0; i < count; ++i) {
            const u64 flags = s.flags[i], own = p.flags[i] & ANY_SPECIAL;
            const bool zero = s.significand[i] == 0 && !(flags & ANY_SPECIAL);
            if ((flags & ANY_SPECIAL) || (own && zero)) {
                NanChoice c = choice();
                if (local()) c.offer(nan_of(p, i));
                put_nan(p, i, c);
            } else if (!own) {
                const i64 label = s.exponent[i] + o[OperandRow::fraction_bits];
                const i64 before = fixed_label && side == 0 ? 0 : p.label[i];
                p.label[i] = zero || p.label[i] == NO_LABEL ? NO_LABEL : before + label;
                p.magnitude[i] = times(p.magnitude[i], s.significand[i]);
                p.exponent[i] += s.exponent[i];
                p.flags[i] ^= flags & NEGATIVE;
            }
        }
    }
}

template <class W, int V>
MMAPROBE_CALL void Machine<W, V>::label_product(Register<W, V>& p, const Decoded<V>& a, const Decoded<V>& b) const {
    const OperandRow oa = operand(header[Header::a]), ob = operand(header[Header::b]);
    const i64 kind = header[Header::label];
    const i64 offset = oa[OperandRow::fraction_bits] * (oa[OperandRow::kind] == FLOAT) +
                       ob[OperandRow::fraction_bits] * (ob[OperandRow::kind] == FLOAT);
    for (int i = 0; i < count; ++i) {
        i64 label = p.exponent[i] + offset;
        if (kind == OPERANDS) label = p.exponent[i] + length(a.significand[i]) + length(b.significand[i]) - 2;
        if (kind == NORMALISED) label = p.exponent[i] + length(p.magnitude[i]) - 1;
        p.label[i] = is_zero(p.magnitude[i]) ? NO_LABEL : label;
    }
}

// A product of magnitude >= 2^overflow_exponent becomes an infinity.
template <class W, int V>
MMAPROBE_CALL void Machine<W, V>::limit_product(Register<W, V>& p) const {
    const i64 bound = header[Header::overflow_exponent];
    for (int i = 0; i < count; ++i)
        if (!is_zero(p.magnitude[i]) && p.exponent[i] + length(p.magnitude[i]) > bound)
            put_special(p, i, p.flags[i] & NEGATIVE ? MINUS_INFINITE | NEGATIVE : u64(PLUS_INFINITE));
}

template <class W, int V>
MMAPROBE_CALL void Machine<W, V>::product(const ProductRow& r) const {
    Register<W, V>& p = registers[r[ProductRow::to]];
    Decoded<V> a, b;
    const i64 lane = r[ProductRow::lane], multiply = header[Header::multiply];
    decode<V>(operand(header[Header::a]), sources.a, first, lane, count, a);
    decode<V>(operand(header[Header::b]), sources.b, first, lane, count, b);
    for (int i = 0; i < count; ++i) {
        p.magnitude[i] = Traits<W>::product(a.significand[i], b.significand[i]);
        p.exponent[i] = a.exponent[i] + b.exponent[i];
        p.flags[i] = (a.flags[i] ^ b.flags[i]) & NEGATIVE;
    }
    if (multiply != EXACT)
        for (int i = 0; i < count; ++i)
            p.magnitude[i] = make<W>(multiply == AND ? a.significand[i] & b.significand[i]
                                                     : a.significand[i] ^ b.significand[i]);
    label_product(p, a, b);
    for (int i = 0; i < count; ++i) {
        const u64 special = (a.flags[i] | b.flags[i]) & ANY_SPECIAL;
        if (!special) continue;
        const bool zero = (a.significand[i] == 0 && !(a.flags[i] & ANY_SPECIAL)) ||
                          (b.significand[i] == 0 && !(b.flags[i] & ANY_SPECIAL));
        if ((special & NOT_NUMBER) || zero) {
            NanChoice c = choice();
            const bool b_first = header[Header::product_order];
            for (int turn = 0; local() && turn < 2; ++turn) c.offer(factor_nan(i, lane, b_first != (turn == 1)));
            put_nan(p, i, c);
        } else {
            const u64 sign = p.flags[i] & NEGATIVE;
            put_special(p, i, sign | (sign ? MINUS_INFINITE : PLUS_INFINITE));
        }
    }
    if (header[Header::scale_where] == SCALE_PRODUCT) scale(p, lane / header[Header::scale_size], 0);
    if (header[Header::overflow_exponent] != NEVER) limit_product(p);
    if (header[Header::product_encode] != ABSENT) encode(p, p, header[Header::product_encode]);
}

template <class W, int V>
MMAPROBE_CALL void Machine<W, V>::load_c(const LoadRow& r) const {
    Register<W, V>& to = registers[r[LoadRow::to]];
    const OperandRow o = operand(header[Header::c]);
    Decoded<V> c;
    decode<V>(o, sources.c, first, 0, count, c);
    const i64 offset = o[OperandRow::kind] == FLOAT ? o[OperandRow::fraction_bits] : 0;
    for (int i = 0; i < count; ++i) {
        to.magnitude[i] = make<W>(c.significand[i]);
        to.exponent[i] = c.exponent[i];
        to.label[i] = c.significand[i] ? c.exponent[i] + offset : NO_LABEL;
        to.flags[i] = c.flags[i];
        if (!(c.flags[i] & NOT_NUMBER)) continue;
        to.flags[i] = NOT_NUMBER;
        if (!local()) continue;
        const Nan nan = operand_nan(o, sources.c, (first + i) * sources.c.row, d());
        to.nan[i] = nan.code;
        if (nan.signalling) to.flags[i] |= SIGNALLING;
    }
}

template <class W, int V>
MMAPROBE_CALL void Machine<W, V>::zero(const LoadRow& r) const {
    for (int i = 0; i < count; ++i) put_special(registers[r[LoadRow::to]], i, 0);
}

// One value through an Encode; an exact zero keeps its sign.
template <class W, int V>
MMAPROBE_CALL void Machine<W, V>::encode(Register<W, V>& to, const Register<W, V>& x, i64 at) const {
    const Encode e(encode_row(at));
    for (int i = 0; i < count; ++i) {
        const u64 flags = x.flags[i], negative = flags & NEGATIVE;
        if (flags & NOT_NUMBER) {
            to.nan[i] = x.nan[i];
            put_special(to, i, flags);
            continue;
        }
        if (flags & ANY_INFINITE)
            put(to, i, infinite_result(e, negative));
        else if (is_zero(x.magnitude[i]))
            put(to, i, zero_result(e, negative));
        else
            put(to, i, encode_value(e, x.magnitude[i], x.exponent[i], negative));
        if (to.flags[i] & NOT_NUMBER) put_nan(to, i, choice());
    }
}

template <class W, int V>
template <bool FMA>
MMAPROBE_CALL void Machine<W, V>::add(const Register<W, V>& x, const Register<W, V>& y, Register<W, V>& to,
                                      i64 at, bool down, i64 lane) const {
    const Encode e(encode_row(at));
    for (int i = 0; i < count; ++i) {
        const u64 fx = x.flags[i], fy = y.flags[i];
        const bool zero_x = is_zero(x.magnitude[i]), zero_y = is_zero(y.magnitude[i]);
        Encoded result;
        NanChoice nan = choice();
        if (__builtin_expect(((fx | fy) & ANY_SPECIAL) != 0, 0)) {
            const u64 special = special_sum((fx | fy) & ANY_SPECIAL);
            if (special != NOT_NUMBER) {
                result = infinite_result(e, special & NEGATIVE);
            } else {
                result = {0, 0, NO_LABEL, NOT_NUMBER};
                if (local()) offer_addends<FMA>(nan, x, y, i, lane);
            }
        } else if (zero_x && zero_y) {
            result = zero_result(e, zero_sign(down, fx & fy & NEGATIVE, (fx | fy) & NEGATIVE));
        } else {
            Exactly<W> s{x.magnitude[i], x.exponent[i], bool(fx & NEGATIVE)};
            const Exactly<W> t{y.magnitude[i], y.exponent[i], bool(fy & NEGATIVE)};
            if (zero_x)
                s = t;
            else if (!zero_y)
                s = add_two(s, t);
            result = is_zero(s.magnitude) ? zero_result(e, down)
                                          : encode_value(e, s.magnitude, s.exponent, s.negative);
        }
        put(to, i, result);
        if (result.flags & NOT_NUMBER) put_nan(to, i, nan);
    }
}

// The NaNs of a, b and acc in the rule's order; those of x and y for Add.
template <class W, int V>
template <bool FMA>
MMAPROBE_CALL void Machine<W, V>::offer_addends(NanChoice& nan, const Register<W, V>& x, const Register<W, V>& y,
                                                int i, i64 lane) const {
    if (!FMA) {
        nan.offer(nan_of(x, i));
        nan.offer(nan_of(y, i));
        return;
    }
    for (i64 order = header[Header::fma_order]; order; order /= 4)
        nan.offer(order % 4 == 3 ? nan_of(x, i) : factor_nan(i, lane, order % 4 == 2));
}

template <class W, int V>
MMAPROBE_CALL const i64* Machine<W, V>::sum(const SumRow& r, const i64* terms) const {
    Register<W, V>& to = registers[r[SumRow::to]];
    const i64 size = r[SumRow::count], at = r[SumRow::encode], grid = r[SumRow::grid];
    const bool anchored = r[SumRow::anchored], down = r[SumRow::down];
    Gathered<W, V> g;
    start_sum(g, count);
    for (i64 t = 0; t < size; ++t) {
        const TermRow term{terms + t * TermRow::SIZE};
        see_label(g, registers[term[TermRow::of]], term, count);
    }
    for (i64 t = 0; t < size; ++t) {
        const TermRow term{terms + t * TermRow::SIZE};
        add_term(g, registers[term[TermRow::of]], term, anchored, grid, count);
    }
    for (int i = 0; i < count; ++i) {
        if (__builtin_expect(g.special[i] != 0, 0)) {
            const u64 flags = special_sum(g.special[i]);
            NanChoice c = choice();
            for (i64 t = 0; flags == NOT_NUMBER && local() && t < size; ++t)
                c.offer(nan_of(registers[TermRow{terms + t * TermRow::SIZE}[TermRow::of]], i));
            put_special(to, i, flags);
            if (flags == NOT_NUMBER) put_nan(to, i, c);
            continue;
        }
        bool negative = is_negative(g.sum[i]);
        if (is_zero(g.sum[i]))
            negative = g.kept[i] ? down : zero_sign(down, g.all_negative[i] & NEGATIVE, g.any_negative[i]);
        to.magnitude[i] = is_negative(g.sum[i]) ? make<W>(0) - g.sum[i] : g.sum[i];
        to.exponent[i] = anchored ? grid : g.largest[i] - grid;
        to.label[i] = g.largest[i];
        to.flags[i] = negative;
    }
    if (r[SumRow::group] != ABSENT) scale(to, r[SumRow::group], 1);
    if (at != ABSENT) encode(to, to, at);
    return terms + size * TermRow::SIZE;
}

// The code of a NaN result of vector i.
template <class W, int V>
MMAPROBE_CALL u64 Machine<W, V>::final_nan(const Register<W, V>& x, int i) const {
    const u64 code = u64(header[Header::nan_code]);
    if (header[Header::nan] == LOCAL) return x.nan[i];
    if (header[Header::nan] == CANONICAL) return code;
    NanChoice c = choice();
    for (i64 n = 0; n < header[Header::priority_count]; ++n) {
        const i64 name = program[header[Header::priority] + n];
        if (name % 3 == NAME_C)
            c.offer(operand_nan(operand(header[Header::c]), sources.c, (first + i) * sources.c.row, d()));
        else
            c.offer(factor_nan(i, name / 3, name % 3 == NAME_B));
    }
    return c.chosen.present ? c.chosen.code | (header[Header::quiet] ? u64(d()[EncodeRow::quiet_bit]) : 0) : code;
}

template <class W, int V>
MMAPROBE_CALL void Machine<W, V>::store(const StoreRow& r, void* out, int bytes) const {
    const Register<W, V>& x = registers[r[StoreRow::x]];
    const EncodeRow e = encode_row(r[StoreRow::encode]);
    for (int i = 0; i < count; ++i) {
        const u64 nan = x.flags[i] & NOT_NUMBER ? final_nan(x, i) : 0;
        const u64 code = pack(e, low(x.magnitude[i]), x.exponent[i], x.flags[i], nan);
        switch (bytes) {
            case 1: static_cast<uint8_t*>(out)[first + i] = uint8_t(code); break;
            case 2: static_cast<uint16_t*>(out)[first + i] = uint16_t(code); break;
            case 4: static_cast<uint32_t*>(out)[first + i] = uint32_t(code); break;
            default: static_cast<u64*>(out)[first + i] = code; break;
        }
    }
}

template <class W, int V>
MMAPROBE_CALL void Machine<W, V>::run(void* out, int bytes) const {
    const i64* at = program + header[Header::code];
    const i64* const end = program + header[Header::code_end];
    while (at < end) {
        const Opcode opcode = Opcode(*at++);
        switch (opcode) {
            case Opcode::PRODUCT: product({at}); at += ProductRow::SIZE; break;
            case Opcode::LOAD_C: load_c({at}); at += LoadRow::SIZE; break;
            case Opcode::ZERO: zero({at}); at += LoadRow::SIZE; break;
            case Opcode::FMA: {
                const FmaRow r{at};
                add<true>(registers[r[FmaRow::x]], registers[r[FmaRow::y]], registers[r[FmaRow::to]],
                          r[FmaRow::encode], r[FmaRow::down], r[FmaRow::lane]);
                at += FmaRow::SIZE;
                break;
            }
            case Opcode::ADD: {
                const AddRow r{at};
                add<false>(registers[r[AddRow::x]], registers[r[AddRow::y]], registers[r[AddRow::to]],
                           r[AddRow::encode], r[AddRow::down], 0);
                at += AddRow::SIZE;
                break;
            }
            case Opcode::SUM: at = sum({at}, at + SumRow::SIZE); break;
            case Opcode::CONVERT: {
                const ConvertRow r{at};
                encode(registers[r[ConvertRow::to]], registers[r[ConvertRow::x]], r[ConvertRow::encode]);
                at += ConvertRow::SIZE;
                break;
            }
            case Opcode::STORE: store({at}, out, bytes); at += StoreRow::SIZE; break;
        }
    }
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
