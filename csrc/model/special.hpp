// NaN results (docs/datapath.md section 6). Rare: called for one vector at a time.
//
// A NaN in flight is a code of d, and whether it came from a signalling operand and was not quieted.
#pragma once
#include "encode.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

struct Nan {
    bool present, signalling;
    u64 code;
};

// The NaN that an operand holds as a code of d: sign kept, payload left-aligned.
MMAPROBE_CALL Nan operand_nan(const OperandRow& o, const Source& s, i64 index, const EncodeRow& d) {
    if (!s.base || o[OperandRow::kind] != FLOAT) return {false, false, 0};
    const u64 read = (raw_code(o, s, index) & u64(o[OperandRow::mask])) ^ u64(o[OperandRow::flip]);
    const u64 code = (read >> o[OperandRow::padding]) & low_bits(o[OperandRow::bits]);
    const u64 absolute = code & (low_bits(o[OperandRow::bits]) >> o[OperandRow::is_signed]);
    if (absolute <= u64(o[OperandRow::nan_above]) && code != u64(o[OperandRow::nan_exact])) return {false, false, 0};
    const i64 fraction_bits = o[OperandRow::fraction_bits];
    u64 fraction = code & low_bits(fraction_bits);
    const bool signalling = o[OperandRow::ieee] && !(fraction >> (fraction_bits - 1) & 1);
    u64 sign = o[OperandRow::is_signed] ? code >> (o[OperandRow::bits] - 1) & 1 : 0;
    sign = d[EncodeRow::is_signed] ? sign << (d[EncodeRow::bits] - 1 + d[EncodeRow::padding]) : 0;
    if (!d[EncodeRow::ieee]) return {true, signalling, sign | u64(d[EncodeRow::nan_code])};
    const i64 gain = d[EncodeRow::fraction_bits] - fraction_bits;
    fraction = (gain >= 0 ? fraction << gain : fraction >> -gain) << d[EncodeRow::padding];
    if (fraction == 0) fraction = u64(d[EncodeRow::quiet_bit]);
    return {true, signalling, sign | u64(d[EncodeRow::infinity]) << d[EncodeRow::padding] | fraction};
}

// Picks the first NaN offered, or the first signalling one where those go first.
struct NanChoice {
    bool signalling_first;
    Nan chosen = {false, false, 0};
    MMAPROBE_HD void offer(const Nan& nan) {
        if (nan.present && (!chosen.present || (signalling_first && nan.signalling && !chosen.signalling)))
            chosen = nan;
    }
};

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
