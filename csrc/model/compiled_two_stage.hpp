// Sums in two stages (csrc/cpu/kernels/two_stage.hpp): the products among themselves by multiply-adds rounded down
// (compiled_fused_model.hpp), without C; then their sum and C (two_stage_lane.hpp).
#pragma once
#include "compiled_lines.hpp"
#include "compiled_write.hpp"
#include "two_stage_lane.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace compiled {

constexpr i32 NO_PRODUCT = -10000;  // the label of a sum without a product that is not zero

template <class Any = void>
struct TwoStageForm : Sides<TwoStageRow, Any> {
    using Of = Sides<TwoStageRow, Any>;
    static constexpr EncodeRow TO{PROGRAM + header(Header::d)};
    static constexpr i32 FLOOR = Of::PRODUCT_LOW - 1;
    static constexpr int PARTS = int(Of::rule(TwoStageRow::parts));
    static constexpr two_stage::SecondStage SECOND{TwoStageRow{PROGRAM + RULES}};
    static constexpr i32 OVERFLOW_FROM = two_stage::at_most_never(header(Header::overflow_exponent));
    static constexpr Writing W{TO, u32(header(Header::nan_code))};
    static constexpr bool SINGLE = W.table == NEAREST_EVEN && W.fraction_bits == 23 && W.min_exponent == -126 &&
                                   W.sign == 31 && W.padding == 0 && W.beyond == W.infinity && W.underflow_sign;
    static constexpr bool FITS = Of::fit(FLOOR) && SINGLE && !SCALED && Of::STEP % PARTS == 0;
};

template <class Form>
struct TwoStageSum : Lines<Form> {
    using Of = Lines<Form>;
    using typename Of::Column;
    using typename Of::Row;
    static constexpr i64 C = Form::C, CARRY = Form::CARRY;
    static constexpr int PARTS = Form::PARTS, F = Form::F;

    // The products' sum in units of 2^(label - F), as two's complement: of special items it is anything.
    struct Products {
        u32 sum;
        i32 label;
    };
    MMAPROBE_HD static Products together(const double* total, const i32* level) {
        Products made{0, NO_PRODUCT};
        i64 sum[PARTS];
        MMAPROBE_UNROLLED
        for (int part = 0; part < PARTS; ++part) {
            sum[part] = i64(__builtin_bit_cast(u64, total[part]) -
                            __builtin_bit_cast(u64, make_double(origin<Form>(level[part]), 0)));
            const i32 label = level[part] - 2 * BIAS;
            if (label > Form::FLOOR && label > made.label) made.label = label;
        }
        MMAPROBE_UNROLLED
        for (int part = 0; part < PARTS; ++part) {
            const i32 short_of = made.label - (level[part] - 2 * BIAS);
            made.sum += u32(sum[part] >> (short_of <= 0 ? 0 : short_of < 63 ? short_of : 63));
        }
        return made;
    }
    // v as an integer.
    struct Integer {
        MMAPROBE_HD static u32 rounded(const two_stage::SecondStage& r, u32 sum, u32 far, u32 addend, u32 label) {
            const i64 kept = i64(i32(sum)) * (1 << two_stage::BELOW) >> (far < 63 ? far : 63);
            const u64 whole = u64(kept) + (u64(i64(i32(addend))) << two_stage::BELOW);
            const i32 lowest = i32(label) - F - two_stage::BELOW;
            const i32 top = lowest + count_bits(whole >> 63 ? 0 - whole : whole) - 1;
            const i32 cut = (top > -126 ? top : -126) - r.first_bits - lowest, by = cut < 0 ? 0 : cut < 53 ? cut : 53;
            return write_any<Form>(i64(u64(i64(whole) >> by) << by), lowest);
        }
    };
    MMAPROBE_HD static u32 finish(const Products& products, u32 c) {
        constexpr Reading reading(operand_at(C));
        constexpr two_stage::SecondStage second = Form::SECOND;
        const Item<u32> addend = read_item<u32>(reading, c);
        return two_stage::second_stage<Integer>(second, products.sum, u32(products.label), addend).code;
    }
    // The code where C or an operand of the step is special, or a product may be beyond binary32; else that of the sum.
    MMAPROBE_APART static u32 special(const Row& row, const Column& column, int first, u32 c, i32 level, u32 code) {
        const Meets& meets = row;
        const bool c_special = (c & NO_SIGN) >= 0x7F800000;
        typename Of::Infinities found{level >= NAN_FROM || (c & NO_SIGN) > 0x7F800000, false, false};
        if (level >= INFINITE_FROM && level < NAN_FROM) {
            const auto of_products = Of::infinities(row, column, first);
            found = {found.nan || of_products.nan, of_products.plus, of_products.minus};
        }
        found.plus |= c_special && !(c >> 31);
        found.minus |= c_special && c >> 31;
        MMAPROBE_SELDOM
        for (int k = first; k < first + Of::STEP; ++k) {
            const i32 a = row.level[k], b = column.level[meets[k]];
            if (a <= ZERO_LEVEL || b <= ZERO_LEVEL || a >= INFINITE_LEVEL || b >= INFINITE_LEVEL) continue;
            const u32 x = row.high[k], y = column.high[meets[k]];
            const double product = make_double(x & NO_SIGN, 0) * make_double(y & NO_SIGN, 0);
            if (i32(high_word(product) >> 20) - BIAS < Form::OVERFLOW_FROM) continue;
            ((x ^ y) >> 31 ? found.minus : found.plus) = true;
        }
        constexpr Writing w = Form::W;
        return unless_special<u32>(w, code, mask_of(found.nan), mask_of(found.plus), mask_of(found.minus));
    }
    template <int M, int N, i64 AT>
    MMAPROBE_HD static void step(const Row* const* rows, const Column* const* columns, int first, u32* code) {
        i32 level[M * N][PARTS];
        double total[M * N][PARTS];
        u32 negative[M * N];
        Of::template largest_levels<M, N>(rows, columns, first, level);
        MMAPROBE_UNROLLED
        for (int i = 0; i < M * N; ++i) {
            negative[i] = 0;
            MMAPROBE_UNROLLED
            for (int part = 0; part < PARTS; ++part) {
                const u32 count = Of::negatives(*rows[i / N], *columns[i % N], first, part);
                total[i][part] = make_double(origin<Form>(level[i][part]), count);
                negative[i] += count;
            }
        }
        Of::template add_products<M, N>(rows, columns, first, total);
        MMAPROBE_UNROLLED
        for (int i = 0; i < M * N; ++i) {
            const u32 c = code[i];
            const Products products = together(total[i], level[i]);
            code[i] = finish(products, c);
            if (c == ~NO_SIGN && products.label == NO_PRODUCT && negative[i] == u32(Of::STEP)) code[i] = c;
            i32 most = level[i][0];
            if constexpr (PARTS == 2) most = most > level[i][1] ? most : level[i][1];
            if (most >= 2 * BIAS + Form::OVERFLOW_FROM - 1 || most >= SPECIAL_FROM || (c & NO_SIGN) >= 0x7F800000)
                code[i] = special(*rows[i / N], *columns[i % N], first, c, most, code[i]);
        }
    }
};

template <class Form>
using TwoStage = Several<TwoStageSum<Form>>;

}  // namespace compiled
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
