// Special values by words, 16 at once: the rule of special_code (model/operands.hpp) where both of its random words are
// one.
#pragma once
#include "cpu/generators/row_aims.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {
namespace {

// x (2^32 + 1) mod m of every lane, m at most 64: twice made smaller by what its upper bits leave, then by a division.
MMAPROBE_HD Word twofold_remainder(Word x, u32 m) {
    const u32 once = u32(((u64(1) << 32) + 1) % m);
    const Word near = (x >> 16) * ((once << 16) % m) + (x & 0xFFFF) * once;  // below 2^23
    const Int rest = Int((near >> 11) * (2048 % m) + (near & 2047));  // below 2^19
    const Int whole = converted<Int>(converted<Of16<float>>(rest) / float(m));
    return Word(rest - whole * i32(m));
}

// Lanes of 32 bits, or of 64 where the format's codes have more than 32.
template <class Lane>
MMAPROBE_HD Of16<Lane> special_codes(const Layout& f, Word kind, Word word) {
    typedef Of16<Lane> V;
    const auto wide = [](Word x) {
        if constexpr (sizeof(Lane) == 8)
            return generators::wide(x);
        else
            return x;
    };
    const V which = wide(kind & 7), zero{};
    const auto brief = wide(kind >> 4 & 1) != 0;
    const Lane full = Lane((u64(1) << f.fraction) - 1), quiet = (full + 1) >> 1;
    const int bits = int(8 * sizeof(Lane));
    const V random = sizeof(Lane) == 8 ? wide(word) << (bits - 32) | wide(word) : wide(word);
    const V one = (zero + 1) << wide(twofold_remainder(word, u32(larger(f.fraction, 1))));
    const V payload = chosen(brief, one, f.fraction ? random >> (bits - f.fraction) : zero) & full;
    const V least = payload & ~quiet, signalling = least | (V(least == 0) & 1);
    const bool ieee = f.nan_rule == IEEE;
    const Lane infinity = Lane(f.infinity), only_nan = Lane(f.nan_rule == ALL_ONES ? f.largest + 1 : f.largest);
    V code = zero + (f.infinity ? infinity : Lane(f.largest));
    code = chosen(which > 1, ieee ? payload | infinity | quiet : zero + only_nan, code);
    code = chosen(which > 3, ieee ? signalling | infinity : zero + only_nan, code);
    code = chosen(which > 4, zero, code);
    code = chosen(which > 5, payload, code);
    code = chosen(which > 6, chosen(brief, zero + (full + 1), zero + Lane(f.largest)), code);
    V negative = wide(kind >> 3 & 1);
    if (f.nan_rule != NEGATIVE_ZERO) return code << f.padding | (V(negative != 0) & Lane(f.sign));
    negative &= V(code != 0);
    const V signed_code = code << f.padding | (V(negative != 0) & Lane(f.sign));
    return chosen((which > 1) & (zero + 5 > which), zero + Lane(f.sign), signed_code);
}

}  // namespace
}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
