// The interpreter: runs a program on V vectors at a time.
#pragma once
#include "product.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

template <class W, int V>
MMAPROBE_CALL void load_c(const Context<W, V>& x, Register<W, V>& to) {
    const OperandRow o = x.operand(x.header[Header::c]);
    Decoded<V> c;
    decode<V>(o, x.sources.c, x.first, 0, x.count, c);
    const i64 offset = o[OperandRow::kind] == FLOAT ? o[OperandRow::fraction_bits] : 0;
    MMAPROBE_EACH(i, x.count) {
        const u64 flags = c.flags[i];
        to.magnitude[i] = make<W>(c.significand[i]);
        to.exponent[i] = c.exponent[i];
        to.label[i] = c.significand[i] ? c.exponent[i] + offset : NO_LABEL;
        to.flags[i] = flags & NOT_NUMBER ? u64(NOT_NUMBER) : flags;
        if (!(flags & NOT_NUMBER) || !x.carries_codes()) continue;
        const Nan nan = x.c_nan(i);
        to.nan[i] = nan.code;
        to.flags[i] |= nan.signalling && x.local() ? u64(SIGNALLING) : 0;
    }
}

template <class W, int V>
MMAPROBE_CALL void zero(const Context<W, V>& x, Register<W, V>& to) {
    MMAPROBE_EACH(i, x.count) {
        to.magnitude[i] = make<W>(0);
        to.exponent[i] = 0;
        to.label[i] = NO_LABEL;
        to.flags[i] = 0;
    }
}

// NaNs of a chain's link under the local rule: those of a, b and acc in the rule's order.
template <class W, int V>
MMAPROBE_CALL void settle_chain(const Context<W, V>& x, i64 number, const Register<W, V>& acc, const Register<W, V>& p,
                                Register<W, V>& to) {
    const u64 quiet = x.header[Header::quiet] ? u64(x.d()[EncodeRow::quiet_bit]) : 0;
    const u64 kept = x.header[Header::quiet] ? 0 : u64(SIGNALLING);
    MMAPROBE_EACH(i, x.count) {  // acc alone a NaN
        to.nan[i] = acc.nan[i] | quiet;
        to.flags[i] |= acc.flags[i] & kept;
    }
    for (int i = 0; i < x.count; ++i) {
        if (!(to.flags[i] & NOT_NUMBER) || !((p.flags[i] & NOT_NUMBER) || !(acc.flags[i] & NOT_NUMBER))) continue;
        NanChoice c = x.choice();
        for (i64 order = x.header[Header::fma_order]; order; order /= 4)
            c.offer(order % 4 == 3 ? x.nan_of(acc, i) : x.factor_nan(i, x.lane_of(number), order % 4 == 2));
        x.settle(to, i, c);
    }
}

// One link of a chain: to = acc + p, rounded.
template <class W, int V>
MMAPROBE_CALL void fma(const Context<W, V>& x, const FmaRow& r) {
    Register<W, V>&to = x.registers[r[FmaRow::to]], &acc = x.registers[r[FmaRow::x]], &p = x.registers[r[FmaRow::y]];
    add_registers(acc, p, to, u64(r[FmaRow::down]), x.count);
    if (x.local()) settle_chain(x, r[FmaRow::lane], acc, p, to);
    x.encode(to, r[FmaRow::encode]);
}

template <class W, int V>
MMAPROBE_CALL void add(const Context<W, V>& x, const AddRow& r) {
    Register<W, V>&to = x.registers[r[AddRow::to]], &left = x.registers[r[AddRow::x]],
                &right = x.registers[r[AddRow::y]];
    add_registers(left, right, to, u64(r[AddRow::down]), x.count);
    x.settle_all(to, [&](NanChoice& c, int i) {
        c.offer(x.nan_of(left, i));
        c.offer(x.nan_of(right, i));
    });
    x.encode(to, r[AddRow::encode]);
}

template <class W, int V>
MMAPROBE_CALL const i64* sum(const Context<W, V>& x, const SumRow& r, const i64* terms) {
    Register<W, V>& to = x.registers[r[SumRow::to]];
    const i64 size = r[SumRow::count], grid = r[SumRow::grid];
    const bool anchored = r[SumRow::anchored];
    const u64* frame = r[SumRow::frame] == ABSENT ? nullptr : x.registers[r[SumRow::frame]].flags;
    const auto term = [&](i64 t) { return TermRow{terms + t * TermRow::SIZE}; };
    const auto of = [&](i64 t) -> Register<W, V>& { return x.registers[term(t)[TermRow::of]]; };
    Gathered<W, V> g;
    start_sum(g, x.count);
    for (i64 t = 0; t < size; ++t) see_label(g, of(t), term(t), x.count);
    for (i64 t = 0; t < size; ++t) add_term(g, of(t), term(t), anchored, grid, frame, x.count);
    if (r[SumRow::carry_bits] != ABSENT) carry_sum(g, r[SumRow::carry_bits] + grid, r[SumRow::saturates], x.count);
    finish_sum(g, to, anchored, grid, u64(r[SumRow::down]), x.count);
    x.settle_all(to, [&](NanChoice& c, int i) {
        for (i64 t = 0; t < size; ++t) c.offer(x.nan_of(of(t), i));
    });
    if (r[SumRow::group] != ABSENT)
        x.settle_new(to, [&](Register<W, V>& value) { scale(x, value, r[SumRow::group], true); });
    if (r[SumRow::encode] != ABSENT) x.encode(to, r[SumRow::encode]);
    return terms + size * TermRow::SIZE;
}

// Codes of a step's NaN results by their causes: a NaN among its factors, an invalid product or products of both
// infinities, the accumulator's NaN, anything else.
template <class W, int V>
MMAPROBE_CALL const i64* settle(const Context<W, V>& x, const SettleRow& r, const i64* lanes) {
    Register<W, V>&result = x.registers[r[SettleRow::x]], &acc = x.registers[r[SettleRow::acc]],
                &p = x.registers[r[SettleRow::scratch]];
    const i64 count = r[SettleRow::count];
    u64 some = 0, seen[V], factors[V];
    for (int i = 0; i < x.count; ++i) some |= result.flags[i] & NOT_NUMBER;
    if (!some) return lanes + count;
    for (int i = 0; i < x.count; ++i) seen[i] = factors[i] = 0;
    for (i64 k = 0; k < count; ++k) {
        const i64 row[] = {r[SettleRow::scratch], lanes[k]};
        product(x, {row});
        for (int i = 0; i < x.count; ++i) {
            seen[i] |= p.flags[i] & ANY_SPECIAL;
            const i64 lane = x.lane_of(lanes[k]);
            if (p.flags[i] & NOT_NUMBER)
                factors[i] |= x.factor_nan(i, lane, false).present || x.factor_nan(i, lane, true).present;
        }
    }
    const u64 quiet = x.header[Header::quiet] ? u64(x.d()[EncodeRow::quiet_bit]) : 0;
    for (int i = 0; i < x.count; ++i) {
        if (!(result.flags[i] & NOT_NUMBER)) continue;
        const bool invalid = special_sum(seen[i]) & NOT_NUMBER;
        const bool kept = !invalid && (acc.flags[i] & NOT_NUMBER);
        const u64 code = kept ? acc.nan[i] | quiet : u64(x.header[Header::nan_code]);
        result.nan[i] = factors[i] ? u64(x.header[Header::factor_code]) : code;
    }
    return lanes + count;
}

// The code of a NaN result of vector i.
template <class W, int V>
MMAPROBE_CALL u64 final_nan(const Context<W, V>& x, const Register<W, V>& r, int i) {
    const u64 code = u64(x.header[Header::nan_code]);
    if (x.carries_codes()) return r.nan[i];
    if (x.header[Header::nan] == CANONICAL) return code;
    NanChoice c = x.choice();
    for (i64 n = 0; n < x.header[Header::priority_count]; ++n) {
        const i64 name = x.program[x.header[Header::priority] + n];
        c.offer(name % 3 == NAME_C ? x.c_nan(i) : x.factor_nan(i, name / 3, name % 3 == NAME_B));
    }
    const u64 quiet = x.header[Header::quiet] ? u64(x.d()[EncodeRow::quiet_bit]) : 0;
    return c.chosen.present ? c.chosen.code | quiet : code;
}

template <class T, class W, int V>
MMAPROBE_HD void store_as(const Context<W, V>& x, const Register<W, V>& r, const EncodeRow& e, T* out) {
    MMAPROBE_EACH(i, x.count) {
        const u64 nan = r.flags[i] & NOT_NUMBER ? final_nan(x, r, i) : 0;
        out[i] = T(pack(e, low(r.magnitude[i]), r.exponent[i], r.flags[i], nan));
    }
}

template <class W, int V>
MMAPROBE_CALL void store(const Context<W, V>& x, const StoreRow& row, void* out, int bytes) {
    const Register<W, V>& r = x.registers[row[StoreRow::x]];
    const EncodeRow e = x.encode_row(row[StoreRow::encode]);
    switch (bytes) {
        case 1: store_as(x, r, e, static_cast<uint8_t*>(out) + x.first); break;
        case 2: store_as(x, r, e, static_cast<uint16_t*>(out) + x.first); break;
        case 4: store_as(x, r, e, static_cast<uint32_t*>(out) + x.first); break;
        default: store_as(x, r, e, static_cast<u64*>(out) + x.first); break;
    }
}

// Runs the whole program on the context's vectors; out is the array of all vectors' results.
template <class W, int V>
MMAPROBE_CALL void run(const Context<W, V>& x, void* out, int bytes) {
    const i64* at = x.program + x.header[Header::code];
    const i64* const end = x.program + x.header[Header::code_end];
    while (at < end) {
        switch (Opcode(*at++)) {
            case Opcode::PRODUCT:
                product(x, {at});
                at += ProductRow::SIZE;
                break;
            case Opcode::LOAD_C:
                load_c(x, x.registers[LoadRow{at}[LoadRow::to]]);
                at += LoadRow::SIZE;
                break;
            case Opcode::ZERO:
                zero(x, x.registers[LoadRow{at}[LoadRow::to]]);
                at += LoadRow::SIZE;
                break;
            case Opcode::FMA:
                fma(x, {at});
                at += FmaRow::SIZE;
                break;
            case Opcode::ADD:
                add(x, {at});
                at += AddRow::SIZE;
                break;
            case Opcode::SUM: at = sum(x, {at}, at + SumRow::SIZE); break;
            case Opcode::CONVERT: {
                const ConvertRow r{at};
                x.encode(x.registers[r[ConvertRow::to]], r[ConvertRow::encode]);
                at += ConvertRow::SIZE;
                break;
            }
            case Opcode::SETTLE: at = settle(x, {at}, at + SettleRow::SIZE); break;
            case Opcode::STORE:
                store(x, {at}, out, bytes);
                at += StoreRow::SIZE;
                break;
        }
    }
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
