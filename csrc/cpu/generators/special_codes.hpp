// Special values by words, 16 at once: the rule of special_code (model/operands.hpp) where both of its random words are
// one.
#pragma once
#include "cpu/generators/row_aims.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {
namespace {

// x (2^32 + 1) mod m of every lane, m at most 64: twice made smaller by what its upper bits leave, then divided.  What is
// divided has 19 bits: half more than it is times 1 / m is never rounded beyond a whole number.
struct TwofoldRemainder {
    u32 m, once, upper, folded;
    float part;

    explicit TwofoldRemainder(u32 divisor)
        : m(divisor), once(u32(((u64(1) << 32) + 1) % m)), upper((once << 16) % m), folded(2048 % m),
          part(1.0f / float(m)) {}
    MMAPROBE_HD Word of(const Word& x) const {
        const Word near = (x >> 16) * upper + (x & 0xFFFF) * once;  // below 2^23
        const Int rest = Int((near >> 11) * folded + (near & 2047));  // below 2^19
        const Int whole = converted<Int>((converted<Of16<float>>(rest) + 0.5f) * part);
        return Word(rest - whole * i32(m));
    }
};

// Of one format; lanes of 32 bits, or of 64 where its codes have more than 32.
template <class Lane>
class SpecialCodes {
    typedef Of16<Lane> V;
    static constexpr int BITS = int(8 * sizeof(Lane));
    // By the lowest three bits of a word, and its fifth as the fourth: which bits of a payload stay, the highest where the
    // lowest is set if none does, and which are set.
    V keep, fixed;
    TwofoldRemainder place;
    int fraction, padding;
    Lane full, sign;
    bool negative_zero;

    MMAPROBE_HD static V in_lanes(const Word& x) {
        if constexpr (sizeof(Lane) == 8)
            return wide(x);
        else
            return x;
    }

public:
    explicit SpecialCodes(const Layout& f)
        : place(u32(larger(f.fraction, 1))), fraction(f.fraction), padding(f.padding),
          full(Lane((u64(1) << f.fraction) - 1)), sign(Lane(f.sign)), negative_zero(f.nan_rule == NEGATIVE_ZERO) {
        const Lane quiet = (full + 1) >> 1, infinity = Lane(f.infinity ? f.infinity : f.largest);
        const Lane only_nan = Lane(f.nan_rule == ALL_ONES ? f.largest + 1 : f.largest), lowest = Lane(1) << (BITS - 1);
        const bool ieee = f.nan_rule == IEEE;
        Lane kept[STRIP], set[STRIP];
        for (int brief = 0; brief < STRIP; brief += STRIP / 2) {
            const Lane last = brief ? full + 1 : Lane(f.largest);
            const Lane own[8] = {0, 0, full, full, Lane((full & ~quiet) | lowest), 0, full, 0};
            const Lane codes[8] = {infinity, infinity, infinity | quiet, infinity | quiet, infinity, 0, 0, last};
            for (int i = 0; i < 8; ++i) {
                const bool other_nan = !ieee && i > 1 && i < 5;
                kept[brief + i] = other_nan ? Lane(0) : own[i];
                set[brief + i] = other_nan ? only_nan : codes[i];
            }
        }
        keep = load<V>(kept);
        fixed = load<V>(set);
    }

    MMAPROBE_HD V of(const Word& kind, const Word& word) const {
        const V number = in_lanes((kind & 7) | (kind >> 1 & 8)), brief = V{} - in_lanes(kind >> 4 & 1);
        const V random = (sizeof(Lane) == 8 ? in_lanes(word) << (BITS - 32) | in_lanes(word) : in_lanes(word));
        const V one = (V{} + Lane(1)) << in_lanes(place.of(word));
        const V drawn = fraction ? random >> (BITS - fraction) : V{};
        const V payload = ((one & brief) | (drawn & ~brief)) & full, stays = looked_up(keep, number);
        const V kept = payload & stays;
        const V code = kept | looked_up(fixed, number) | (V(kept == 0) & stays >> (BITS - 1));
        const V negative = V{} - in_lanes(kind >> 3 & 1);
        if (!negative_zero) return code << padding | (negative & sign);
        const V which = in_lanes(kind & 7), signed_code = code << padding | (negative & V(code != 0) & sign);
        return chosen((which > 1) & (V{} + Lane(5) > which), V{} + sign, signed_code);
    }
};

// Of the formats of operands, in lanes of both kinds.
struct SpecialFormats {
    SpecialCodes<u32> narrow[3];
    SpecialCodes<u64> wide[3];

    explicit SpecialFormats(const Domain& t)
        : narrow{SpecialCodes<u32>(t.a), SpecialCodes<u32>(t.b), SpecialCodes<u32>(t.c)},
          wide{SpecialCodes<u64>(t.a), SpecialCodes<u64>(t.b), SpecialCodes<u64>(t.c)} {}
    template <class Item>
    const auto& codes(int role) const {
        if constexpr (sizeof(Item) == 8)
            return wide[role];
        else
            return narrow[role];
    }
};

}  // namespace
}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
