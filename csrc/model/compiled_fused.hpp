// What the compiler knows of a fused dot product (fused_lane.hpp), and its operands as binary64 has them.
//
// Read compiled_fused_model.hpp first.  An item is the high word of its value, the low word is 1: larger in magnitude
// than the value by less than what bits of a product tell apart.  A zero is +-2^-500: nothing but its sign counts.
#pragma once
#include "compiled_rounding.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace compiled {

constexpr int ZERO_POWER = -500, BIAS = 1023;
constexpr u32 NO_SIGN = 0x7FFFFFFF;
// The level of an item is its label + BIAS, of a product the sum of two, of C its label + 2 BIAS.  With a zero, at most
// ZERO_LEVEL, a product's is below every other; with a special item it tells which, zeros or not: at least NAN_FROM,
// INFINITE_FROM.  Special values of C have SPECIAL_FROM.
constexpr i32 ZERO_LEVEL = ZERO_POWER + BIAS + 20, INFINITE_LEVEL = 5000, NAN_LEVEL = 2 * INFINITE_LEVEL;
constexpr i32 SPECIAL_FROM = 2047 + BIAS, INFINITE_FROM = 4000, NAN_FROM = 10300;
static_assert(INFINITE_FROM < INFINITE_LEVEL && 2 * INFINITE_LEVEL < NAN_FROM &&
              NAN_FROM <= NAN_LEVEL + ZERO_POWER + BIAS);

// Operands of a sum of products cut at a common place, whose kernel has the rules `Rules`.  `Any` keeps what a datapath
// lacks from being looked for.
template <class Rules, class Any>
struct Sides {
    MMAPROBE_HD static constexpr i64 rule(typename Rules::Column column) { return Rules{PROGRAM + RULES}[column]; }
    MMAPROBE_HD static constexpr i32 of(i64 operand, OperandRow::Column column) {
        return i32(operand_at(operand)[column]);
    }
    MMAPROBE_HD static constexpr i32 least(i64 operand) { return of(operand, OperandRow::min_exponent); }
    MMAPROBE_HD static constexpr i32 lowest_bit(i64 operand) {
        return least(operand) - of(operand, OperandRow::fraction_bits);
    }
    MMAPROBE_HD static constexpr i32 above(i64 operand) {  // every finite value is below 2^above
        return (1 << of(operand, OperandRow::exponent_bits)) - of(operand, OperandRow::bias);
    }
    static constexpr i64 A = header(Header::a), B = header(Header::b), CARRY = rule(Rules::carry);
    static constexpr i64 C = HAS_C ? header(Header::c) : CARRY, SCALE = SCALED ? header(Header::scale) : A;
    static constexpr int STEP = int(rule(Rules::step)), F = int(rule(Rules::fraction_bits));
    // The lowest labels of a product: where nothing has a label, the sum is zero whatever E is.
    static constexpr i32 SCALE_LOW = SCALED ? 2 * least(SCALE) : 0, SCALE_ABOVE = SCALED ? 2 * above(SCALE) : 0;
    static constexpr i32 PRODUCT_LOW = least(A) + least(B) + SCALE_LOW;
    static constexpr i32 PRODUCT_ABOVE = above(A) + above(B) + SCALE_ABOVE;
    static constexpr i32 LINE_ABOVE = (above(A) > above(B) ? above(A) : above(B)) + SCALE_ABOVE / 2;
    // Whether values, zeros and units are what the rules here need, where no label is below `floor`.
    MMAPROBE_HD static constexpr bool fit(i32 floor) {
        return of(A, OperandRow::fraction_bits) <= 20 && of(B, OperandRow::fraction_bits) <= 20 && LIVE % 4 == 0 &&
               STEP % 4 == 0 && LIVE <= 256 && floor - F > -700 && LINE_ABOVE + ZERO_LEVEL - BIAS + 1 < floor - F &&
               PRODUCT_ABOVE < BIAS && PRODUCT_LOW > ZERO_LEVEL - BIAS;
    }
};

template <class Any = void>
struct FusedForm : Sides<FusedRow, Any> {
    using Of = Sides<FusedRow, Any>;
    static constexpr EncodeRow TO{PROGRAM + Of::rule(FusedRow::encode)};
    static constexpr i32 C_LOW = Of::least(Of::C) < Of::least(Of::CARRY) ? Of::least(Of::C) : Of::least(Of::CARRY);
    static constexpr i32 LOWEST = C_LOW < Of::PRODUCT_LOW ? C_LOW : Of::PRODUCT_LOW;
    static constexpr i32 ZERO = i32(Of::rule(FusedRow::zero_exponent)), FLOOR = ZERO > LOWEST ? ZERO : LOWEST;
    static constexpr int PARTS = 1;
    static constexpr bool FITS = Of::fit(FLOOR) && header(Header::label) == ENCODED;
};

// An operand of a dot product: high words of its values, levels by two, signs as bits.
template <int ITEMS>
struct FusedItems {
    static constexpr int HIGHS = ITEMS / 4, LEVELS = (ITEMS + 7) / 8, SIGNS = (ITEMS + 31) / 32;
    union {
        Quad highs[HIGHS];
        u32 high[ITEMS];
    };
    union {
        Quad levels[LEVELS];
        short level[8 * LEVELS];
    };
    u32 signs[SIGNS];
};

template <int COUNT>
struct ScaleCodes {
    uint8_t scale[COUNT];
    MMAPROBE_HD void put_scale(int g, u64 code) { scale[g] = uint8_t(code); }
    MMAPROBE_HD u32 scale_of(int g) const { return scale[g]; }
};
template <>
struct ScaleCodes<0> {
    MMAPROBE_HD void put_scale(int, u64) {}
    MMAPROBE_HD u32 scale_of(int) const { return 0; }
};

// A line of shared memory whose neighbours begin in other banks.
template <class Base, bool EVEN = sizeof(Base) % 32 == 0>
struct Padded : Base {
    Quad unused;
};
template <class Base>
struct Padded<Base, false> : Base {};

// The level of a special value, by its magnitude's code; of others 0 or less.
MMAPROBE_HD i32 special_level(const Reading& r, u32 absolute) {
    const bool infinite = r.infinity != ~u32(0), nan = r.nan_above < r.magnitude;
    const u32 first = infinite ? r.infinity : r.nan_above + 1;
    const i32 beyond = i32(absolute) - i32(first) + 1;
    return infinite ? (beyond < 2 ? beyond : 2) * INFINITE_LEVEL : nan ? beyond * NAN_LEVEL : 0;
}

// Item k of an operand, from its code of the format at `AT` of the program.  Scaling makes zeros what they are;
// a subnormal's exponent is short of the least by at most the fraction bits, a zero's by more.
template <i64 AT, class Line>
MMAPROBE_HD void put_item(Line& line, int k, u32 code) {
    constexpr Reading r(operand_at(AT));
    constexpr i32 least = 1 - r.bias + BIAS;
    const u32 absolute = code >> r.padding & r.magnitude;
    const double value = make_double(absolute << (20 - r.fraction_bits), 0);
    const u32 size = high_word(
        scaled(value, make_double(u32(2 * BIAS - r.bias) << 20, 0), make_double(u32(ZERO_POWER + BIAS) << 20, 0)));
    const i32 field = i32(size >> 20), filled = field + r.fraction_bits, normal = field > least ? field : least;
    const i32 finite = normal < filled ? normal : filled, special = special_level(r, absolute);
    line.high[k] = size | (code << (31 - r.sign - r.padding) & ~NO_SIGN);
    line.level[k] = short(finite > special ? finite : special);
    if (r.nan_exact && code >> r.padding == r.nan_exact) line.level[k] = short(NAN_LEVEL);
}

// Multiplies items first .. first + count - 1 by a scale.
template <i64 AT, class Line>
MMAPROBE_HD void scale_items(Line& line, int first, int count, u32 code) {
    constexpr Reading r(operand_at(AT));
    const Item<u32> s = read_item<u32>(r, code);
    for (int k = first; k < first + count; ++k) {
        const i32 level = line.level[k];
        if (s.nan) {
            line.level[k] = short(NAN_LEVEL);
        } else if (level > ZERO_LEVEL && level < INFINITE_LEVEL) {
            line.high[k] += s.exponent << 20;
            line.level[k] = short(level + i32(s.exponent));
        }
    }
}

// x 2 + the sign of y.
MMAPROBE_HD u32 append_sign(u32 x, u32 y) {
#if defined(__CUDA_ARCH__)
    return __funnelshift_l(y, x, 1);
#else
    return x << 1 | y >> 31;
#endif
}

template <int ITEMS, class Line>
MMAPROBE_HD void gather_signs(Line& line) {
    MMAPROBE_UNROLLED
    for (int word = 0; word < Line::SIGNS; ++word) {
        u32 signs = 0;
        MMAPROBE_UNROLLED
        for (int k = (ITEMS < 32 ? ITEMS : 32) - 4; k >= 0; k -= 4) {
            if (32 * word + k >= ITEMS) continue;
            const Quad four = line.highs[8 * word + k / 4];
            MMAPROBE_UNROLLED
            for (int t = 3; t >= 0; --t) signs = append_sign(signs, four.word[t]);
        }
        line.signs[word] = signs;
    }
}

}  // namespace compiled
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
