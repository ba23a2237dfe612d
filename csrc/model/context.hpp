// What every operation of a program sees: the program, the operands, the registers, which vectors.
#pragma once
#include "special.hpp"
#include "sum.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

template <class W, int V>
struct Context {
    const i64* program;
    Header header;
    Sources sources;
    Register<W, V>* registers;
    i64 first;  // vector
    int count;
    Register<W, V>* products = nullptr;  // by number, for programs that form them alike; null: each forms its own
    bool* formed = nullptr;              // those of products that are there

    MMAPROBE_HD OperandRow operand(i64 at) const { return {program + at}; }
    MMAPROBE_HD EncodeRow encode_row(i64 at) const { return {program + at}; }
    MMAPROBE_HD EncodeRow d() const { return encode_row(header[Header::d]); }
    MMAPROBE_HD i64 lane_of(i64 product) const { return product / header[Header::products]; }
    MMAPROBE_HD bool local() const { return header[Header::nan] == LOCAL; }
    MMAPROBE_HD bool carries_codes() const { return header[Header::nan] >= LOCAL; }
    MMAPROBE_HD NanChoice choice() const { return {header[Header::signalling_first] != 0}; }

    MMAPROBE_HD Nan factor_nan(int i, i64 lane, bool b) const {
        const Source& s = b ? sources.b : sources.a;
        return operand_nan(operand(header[b ? Header::b : Header::a]), s, (first + i) * s.row + lane, d());
    }
    MMAPROBE_HD Nan c_nan(int i) const {
        return operand_nan(operand(header[Header::c]), sources.c, (first + i) * sources.c.row, d());
    }
    MMAPROBE_HD static Nan nan_of(const Register<W, V>& x, int i) {
        return {(x.flags[i] & NOT_NUMBER) != 0, (x.flags[i] & SIGNALLING) != 0, x.nan[i]};
    }
    // The NaN result of a node under the local rule: the chosen operand's payload, or the code.
    MMAPROBE_HD void settle(Register<W, V>& to, int i, const NanChoice& choice) const {
        const Nan& nan = choice.chosen;
        const bool quiet = header[Header::quiet];
        to.nan[i] = !nan.present ? u64(header[Header::nan_code])
                                 : nan.code | (quiet ? u64(d()[EncodeRow::quiet_bit]) : 0);
        to.flags[i] = NOT_NUMBER | (nan.signalling && !quiet ? u64(SIGNALLING) : 0);
    }
    // Does so for every NaN of a register; offer(choice, i) names the operands.
    template <class Offer>
    MMAPROBE_HD void settle_all(Register<W, V>& to, const Offer& offer) const {
        if (!local()) return;
        MMAPROBE_EACH(i, count) {
            if (!(to.flags[i] & NOT_NUMBER)) continue;
            NanChoice c = choice();
            offer(c, i);
            settle(to, i, c);
        }
    }
    // Runs change(r); a NaN that it makes is the code.
    template <class Change>
    MMAPROBE_HD void settle_new(Register<W, V>& r, const Change& change) const {
        if (!carries_codes()) return change(r);
        u64 before[V];
        MMAPROBE_EACH(i, count) before[i] = r.flags[i] & NOT_NUMBER;
        change(r);
        MMAPROBE_EACH(i, count)
        if ((r.flags[i] & NOT_NUMBER) && !before[i]) settle(r, i, choice());
    }
    // The random bits that an Encode takes, of each vector.
    MMAPROBE_HD void take_random(const EncodeRow& e, u64* random) const {
        const OperandRow o = operand(header[Header::random]);
        read_codes(o, sources.random, first, 0, count, random);
        const i64 taken = e[EncodeRow::random_bits];
        const i64 from = e[EncodeRow::random_highest] ? o[OperandRow::bits] - taken : 0;
        MMAPROBE_EACH(i, count) random[i] = random[i] >> from & low_bits(taken);
    }
    MMAPROBE_HD void encode(Register<W, V>& r, i64 at) const {
        const Encode e(encode_row(at));
        u64 random[V];
        if (DRAWS && e.random_bits) take_random(encode_row(at), random);
        if (e.has_infinity) return encode_register(e, r, random, count);  // makes no NaN
        settle_new(r, [&](Register<W, V>& x) { encode_register(e, x, random, count); });
    }
};

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
