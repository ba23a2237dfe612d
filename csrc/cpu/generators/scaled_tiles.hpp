// Block scales of whole tiles whose rows aim.  The rules are told in generators/tiles_scaled.py.
#pragma once
#include "cpu/generators/row_aims.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {
namespace {

constexpr i32 NO_TERM = -(1 << 14), MOST_ROOM = 3;
constexpr u32 FEW_LOWEST = 0x1C0, DROPS = 0x600, SCALE_TURN = 0x5CA1AB1E;
constexpr int MOST_BLOCKS = 32;  // scale blocks of 16 lanes of the most lanes

// The domain as rules for tiles see it: the exponents of operands with their scales.
inline Domain under_scales(Domain t) {
    for (Layout* f : {&t.a, &t.b}) {
        f->low += t.scale.low;
        f->normal += t.scale.normal;
        f->top += t.scale.top;
    }
    return t;
}

// How many binades the largest term of a block may lie below the largest operand, and one more.
inline i32 rooms(const Layout& f) { return smaller(f.top - f.normal, MOST_ROOM) + 1; }

// A significand of 16 bits times that of its scale, cut to as many; `up`: whether an exponent goes up.
template <class V>
struct Scaled16 {
    V value, up;
    Scaled16(V x, V scale, i32 fraction) : value(x * scale >> fraction), up(value >> 16) { value >>= up; }
};

// The scales of b's blocks: exponents before the column's drift, and the lowest that most of b's own then have.
struct TileScales {
    i32 exponent[MOST_BLOCKS] = {}, least[MOST_BLOCKS] = {};

    // Of one block, by its largest exponent and its number.
    void put(const Domain& t, i32 drift, int block, i32 largest, u32 number) {
        const i32 room = pick16(number, rooms(t.b)), span = (t.a.top - t.a.normal) / 2 + 1;
        exponent[block] = clamp(largest - t.b.top + room, t.scale.normal + drift, t.scale.top);
        least[block] = larger(t.b.normal, t.b.top - room - span);
    }
};

// What is zero of 16 rows where it is too small for its scale: terms that they aim at, and others.
struct Drops {
    Short alive, dead;
    explicit Drops(Half last) : alive((last & DROPS) == 0), dead((last & DROPS) != uint16_t(DROPS)) {}
};

// Numbers of scale blocks: of 16 rows or columns, two a word, and the last of them, which belongs to all blocks.
struct BlockNumbers {
    const Word* words;
    int blocks;
    Half of(int block) const { return to_halves(words[block / 2] >> 16 * (block % 2)); }
    Half last() const { return of(blocks); }
    // Fractions of the scales: each block's own, or one.
    Half fraction(const Layout& scale, int block) const {
        const Half apart = Half(Short(last() & 0x100) != 0);
        return ((of(block) & apart) | (last() & ~apart)) & uint16_t((1 << scale.fraction) - 1);
    }
    // The significands that C follows.
    Half followed(const Layout& scale, bool fractions) const {
        const uint16_t one = uint16_t(1 << scale.fraction);
        return (fractions ? last() & uint16_t(one - 1) : Half{}) | one;
    }
};

}  // namespace
}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
