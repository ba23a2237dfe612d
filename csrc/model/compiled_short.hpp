// Sums of few products a step (csrc/cpu/kernels/short_sums.hpp has the rule) in 32-bit integers: RDNA3, RDNA4.
//
// An item is a word: its sign, its level (compiled_fused.hpp) in 15 bits, its significand in 16.  The sum of two words
// begins with the sign and the level of their product; the significands, moved up by UP in all, multiply to its
// magnitude p in units of 2^(label - F).  With s = -1 where it is negative, else 0, and d = E - label, its term is
//
//   in the frame of C's sign, s too   (p >> d) ^ s        trunc, or -(trunc + 1)
//   in a part                         (p + s >> d) ^ s    floor
#pragma once
#include "compiled_fused.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace compiled {

constexpr int ROOM = 14;  // fraction bits of a significand at most, so that those of two words reach no level

template <class Any>  // so that only a datapath of short sums makes it
struct ShortForm {
    MMAPROBE_HD static constexpr i64 rule(ShortRow::Column column) { return ShortRow{PROGRAM + RULES}[column]; }
    MMAPROBE_HD static constexpr int fractions(i64 operand) {
        return int(operand_at(operand)[OperandRow::fraction_bits]);
    }
    MMAPROBE_HD static constexpr i32 bounded(i64 x, i32 most) { return x < -most ? -most : x > most ? most : i32(x); }
    static constexpr i64 A = header(Header::a), B = header(Header::b), C = header(Header::c);
    static constexpr int STEP = int(rule(ShortRow::step)), PARTS = int(rule(ShortRow::parts));
    static constexpr int F = int(rule(ShortRow::fraction_bits)), OFFSET = int(rule(ShortRow::label_offset));
    static constexpr i32 CUTOFF = bounded(rule(ShortRow::cutoff), SPECIAL_FROM);
    static constexpr i32 ZERO_C = bounded(rule(ShortRow::zero_exponent), 2 * BIAS) + 2 * BIAS;
    static constexpr bool FLUSH = rule(ShortRow::flush), BY_CAUSE = header(Header::nan) == CAUSE;
    // How far significands of A and B, their products, and C's are moved up, in all to fraction bits F.
    static constexpr int UP = F - fractions(A) - fractions(B), RAISED = UP > 0 ? UP : 0;
    static constexpr int UP_A = bounded(RAISED, ROOM - fractions(A)), UP_B = RAISED - UP_A;
    static constexpr int UP_PRODUCT = UP - RAISED, UP_C = F - fractions(C) - OFFSET;
    static_assert(fractions(B) + UP_B <= ROOM, "a significand is too long");
    // Results are binary16, or binary32, of which bfloat16 keeps the upper half.
    static constexpr int WIDTH = 8 * result_bytes(), FRACTION = fractions(C) == 10 ? 10 : 23;
    static constexpr int DROPPED = FRACTION == 23 ? 32 - WIDTH : 0, SIGN = WIDTH + DROPPED - 1;
    static constexpr i32 LEAST = FRACTION == 23 ? -126 : -14;
    static constexpr u32 INFINITE_CODE = u32(2 - 2 * LEAST + 1) << FRACTION;
};

// A code of the operand at `AT` of the program, its subnormals as they are, or zeros.
template <i64 AT>
MMAPROBE_HD u32 conditioned(u32 code) {
    constexpr Reading r(operand_at(AT));
    constexpr i64 flush = operand_at(AT)[OperandRow::flush];
    if (flush == KEEP || (code & r.magnitude) >= r.hidden) return code;
    return flush == TO_ZERO ? 0 : code & ~r.magnitude;
}

// The term of a magnitude 2^-UP size, d at least 0: cut towards zero and then complemented, or floored.
template <int UP, bool FLOORED>
MMAPROBE_HD u32 short_term(u32 size, u32 negative, i32 d) {
    const i32 by = UP < 0 ? d - UP : d;
    const u32 raised = (size << (UP < 0 ? 0 : UP)) + (FLOORED ? negative : 0);
    return u32(i32(raised) >> (by < 31 ? by : 31)) ^ negative;
}

template <class Any>
struct Short : OneByOne<Short<Any>>, ShortForm<Any> {
    using Form = ShortForm<Any>;
    template <int ITEMS>
    struct Words {
        union {
            Quad quads[spread_quads((ITEMS + 3) / 4)];
            u32 word[ITEMS];
        };
    };
    struct Row : Words<LIVE> {
        Meets meets;
    };
    struct Column : Words<K> {};

    template <i64 AT, int UP>
    MMAPROBE_HD static u32 word_of(u64 code) {
        constexpr Reading r(operand_at(AT));
        const Item<u32> x = read_item<u32>(r, conditioned<AT>(u32(code)));
        const i32 finite = x.significand ? i32(x.exponent) + BIAS : ZERO_LEVEL;
        const i32 level = x.nan ? NAN_LEVEL : x.infinite ? INFINITE_LEVEL : finite;
        return (x.negative & ~NO_SIGN) | u32(level) << 16 | x.significand << UP;
    }
    MMAPROBE_HD static void put_a(Row& row, int k, u64 code) { row.word[k] = word_of<Form::A, Form::UP_A>(code); }
    MMAPROBE_HD static void put_b(Column& column, int k, u64 code) {
        column.word[k] = word_of<Form::B, Form::UP_B>(code);
    }
    MMAPROBE_HD static void put_scale_a(Row&, int, u64) {}
    MMAPROBE_HD static void put_scale_b(Column&, int, u64) {}
    MMAPROBE_HD static void put_metadata(Row& row, int chunk, u32 item) { row.meets.put(chunk, item); }
    MMAPROBE_HD static void seal(Row&) {}
    MMAPROBE_HD static void seal(Column&) {}

    MMAPROBE_HD static i32 level_of(u32 word) { return i32(word >> 16 & 0x7FFF); }
    MMAPROBE_HD static i32 larger_level(i32 x, i32 y) { return x > y ? x : y; }
    MMAPROBE_HD static int lane(int place) { return int(PROGRAM[Form::rule(ShortRow::order) + place]); }

    // The products of neighbouring places of a step.
    template <int COUNT>
    struct Products {
        u32 x[COUNT], y[COUNT];
        i32 level;  // the largest

        MMAPROBE_HD Products(const Row& row, const Column& column, int first) : level(0) {
            MMAPROBE_UNROLLED
            for (int i = 0; i < COUNT; ++i) {
                const int k = lane(first + i);
                x[i] = row.word[k];
                y[i] = column.word[row.meets[k]];
                level = larger_level(level, level_of(x[i] + y[i]));
            }
        }
        // In units of 2^(E - F), E the label of level `top`.
        template <bool FLOORED>
        MMAPROBE_HD u32 sum(i32 top, u32 frame) const {
            u32 total = 0;
            MMAPROBE_UNROLLED
            for (int i = 0; i < COUNT; ++i) {
                const u32 both = x[i] + y[i], size = (x[i] & 0xFFFF) * (y[i] & 0xFFFF);
                total += short_term<Form::UP_PRODUCT, FLOORED>(size, shift_signed(both, 31) ^ frame,
                                                               top - level_of(both));
            }
            return total;
        }
    };
    struct Addend {
        u32 size, negative;
        i32 level;

        MMAPROBE_HD explicit Addend(u32 code) : negative(0 - (code >> (Form::WIDTH - 1))) {
            constexpr Reading r(operand_at(Form::C));
            const u32 absolute = code & r.magnitude, field = absolute >> r.fraction_bits;
            size = (absolute & r.fractions) | (field ? r.hidden : 0);
            level = i32(field ? field : 1) - r.bias + Form::OFFSET + 2 * BIAS;
            if (absolute == 0) level = Form::ZERO_C;
            if (absolute >= r.infinity) level = SPECIAL_FROM;
        }
        template <bool FLOORED>
        MMAPROBE_HD u32 term(i32 top, u32 sign) const {
            return short_term<Form::UP_C, FLOORED>(size, sign, top - level);
        }
    };

    // The code of size 2^lowest, size below 2^30, rounded to nearest even.
    MMAPROBE_HD static u32 nearest(u32 size, i32 lowest) {
        const i32 top = lowest + count_bits(size) - 1, base = top > Form::LEAST ? top : Form::LEAST;
        const i32 shift = base - Form::FRACTION - lowest, by = shift < 31 ? shift : 31;
        const u32 tie = u32(1) << ((by - 1) & 31);
        const u32 rounded = shift > 0 ? (size + tie - 1 + (size >> by & 1)) >> by : size << -shift;
        const u32 code = size ? (u32(base - Form::LEAST) << Form::FRACTION) + rounded : 0;
        return code < Form::INFINITE_CODE ? code : Form::INFINITE_CODE;
    }
    // The code of a sum in units of 2^lowest, of the frame's sign where it is positive; of a zero +0.
    MMAPROBE_HD static u32 write(i32 sum, i32 lowest, u32 frame) {
        constexpr u32 sign = u32(1) << Form::SIGN;
        u32 code, negative;
        if constexpr (Form::FRACTION == 10) {
            code = nearest(u32(sum < 0 ? -sum : sum), lowest);
            negative = u32(sum) >> 31 << Form::SIGN;
        } else {
            code = __builtin_bit_cast(u32, float(sum));
            negative = code & sign;
            const i32 field = i32(code >> 23 & 0xFF) + lowest;
            code = field < 255 ? (code & NO_SIGN) + (u32(lowest) << 23) : Form::INFINITE_CODE;
            if (field < 1) code = Form::FLUSH ? 0 : nearest(u32(sum < 0 ? -sum : sum), lowest);
            if (sum == 0) code = 0;
        }
        if (code) code |= negative ^ (frame & sign);
        return code >> Form::DROPPED;
    }
    // A step's result as the next reads it; E is among the levels of which `most` becomes the largest.
    MMAPROBE_HD static u32 step(const Row& row, const Column& column, int first, u32 code, i32& most) {
        constexpr int parts = Form::PARTS ? Form::PARTS : 1, length = Form::STEP / parts;
        const Addend c(code);
        i32 level = c.level;
        u32 sum = 0, frame = 0;
        if constexpr (Form::PARTS == 0) {
            const Products<length> products(row, column, first);
            level = larger_level(level, products.level);
            frame = c.negative;
            sum = c.template term<false>(level, 0) + products.template sum<false>(level, frame);
        } else {
            u32 sums[parts];
            i32 levels[parts];
            MMAPROBE_UNROLLED
            for (int part = 0; part < parts; ++part) {
                const Products<length> products(row, column, first + part * length);
                levels[part] = products.level;
                sums[part] = products.template sum<true>(products.level, 0);
                level = larger_level(level, products.level);
            }
            if (level - c.level <= Form::CUTOFF) sum = c.template term<true>(level, c.negative);
            MMAPROBE_UNROLLED
            for (int part = 0; part < parts; ++part) {
                const i32 down = level - levels[part];
                sum += u32(i32(sums[part]) >> (down < 31 ? down : 31));
            }
        }
        most = larger_level(most, level);
        return write(i32(sum), level - 2 * BIAS - Form::F, frame);
    }

    // What the specials of a step and of C, of code `c`, make of its result.
    MMAPROBE_HD static u32 special(const Row& row, const Column& column, int first, u32 c, u32 result) {
        constexpr Reading r(operand_at(Form::C));
        const Item<u32> addend = read_item<u32>(r, c);
        bool nan = false, invalid = false, plus = false, minus = false;
        MMAPROBE_SELDOM
        for (int place = first; place < first + Form::STEP; ++place) {
            const int k = lane(place);
            const u32 x = row.word[k], y = column.word[row.meets[k]];
            const i32 a = level_of(x), b = level_of(y);
            nan |= a == NAN_LEVEL || b == NAN_LEVEL;
            if (a != INFINITE_LEVEL && b != INFINITE_LEVEL) continue;
            invalid |= a == ZERO_LEVEL || b == ZERO_LEVEL;
            ((x ^ y) >> 31 ? minus : plus) = true;
        }
        const u32 code = u32(header(Header::nan_code)), quiet = u32(1) << (r.fraction_bits - 1);
        if (nan) return Form::BY_CAUSE ? u32(header(Header::factor_code)) : code;
        if (invalid || (plus && minus)) return code;
        if (addend.nan) return Form::BY_CAUSE ? c | quiet : code;
        if (addend.infinite) return (addend.negative ? plus : minus) ? code : c;
        return plus || minus ? r.infinity | u32(minus) << r.sign : result;
    }
    // The whole sum once more, with a look at each step's specials.
    MMAPROBE_APART static u32 with_specials(const Row& row, const Column& column, u32 code) {
        MMAPROBE_SELDOM
        for (int first = 0; first < LIVE; first += Form::STEP) {
            i32 level = 0;
            const u32 result = step(row, column, first, code, level);
            code = level < SPECIAL_FROM ? result : special(row, column, first, code, result);
        }
        return code;
    }
    MMAPROBE_HD static u64 evaluate(const Row& row, const Column& column, u64 c) {
        const u32 given = conditioned<Form::C>(u32(c));
        u32 code = given;
        i32 most = 0;
        MMAPROBE_UNROLLED
        for (int first = 0; first < LIVE; first += Form::STEP) code = step(row, column, first, code, most);
        return most < SPECIAL_FROM ? code : with_specials(row, column, given);
    }
};

}  // namespace compiled
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
