// The fused dot product (fused_lane.hpp) on a processor with fast binary64: the multiply-add rounded down does it all.
//
// With u = 2^(E - F) and M = 1.5 2^52 u, neighbours of M lie u apart, so that M + s, rounded down after each product,
// is M plus the sum of floor(a_k b_k / u) u.  With operands larger in magnitude by less than what bits of a product
// tell apart, a negative product of quotient q >= 0 adds -q - 1, be it exact or not; u for each negative product
// beside it leaves the sum of truncated ones.  M's low word starts as their count.
#pragma once
#include "compiled_lines.hpp"
#include "compiled_write.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace compiled {

template <class Form>
struct FusedSum : Lines<Form> {
    using Of = Lines<Form>;
    using typename Of::Column;
    using typename Of::Row;
    static constexpr i64 C = Form::C, CARRY = Form::CARRY;

    // The code where C or an operand of the step is special.
    template <i64 AT>
    MMAPROBE_APART static u32 special(const Row& row, const Column& column, int first, u32 code, i32 level) {
        constexpr Reading reading(operand_at(AT));
        constexpr Writing w(Form::TO, u32(header(Header::nan_code)));
        const Item<u32> c = read_item<u32>(reading, code);
        typename Of::Infinities found{level >= NAN_FROM, false, false};
        if (level >= INFINITE_FROM && level < NAN_FROM) found = Of::infinities(row, column, first);
        const u32 plus = mask_of(found.plus) | (c.infinite & ~c.negative);
        const u32 minus = mask_of(found.minus) | (c.infinite & c.negative);
        return unless_special<u32>(w, code, mask_of(found.nan) | c.nan, plus, minus);
    }
    template <int M, int N, i64 AT>
    MMAPROBE_HD static void step(const Row* const* rows, const Column* const* columns, int first, u32* code) {
        i32 level[M * N][1];
        double total[M * N][1];
        bool any_special = false;
        Of::template largest_levels<M, N>(rows, columns, first, level);
        MMAPROBE_UNROLLED
        for (int i = 0; i < M * N; ++i) {
            const Addend c = read_addend<Form, AT>(code[i]);
            level[i][0] = level[i][0] > c.level ? level[i][0] : c.level;
            any_special |= level[i][0] >= SPECIAL_FROM;
            const u32 count = Of::negatives(*rows[i / N], *columns[i % N], first, 0) + c.negative;
            total[i][0] = multiply_add<Of::ROUNDING>(c.value, 1.0, make_double(origin<Form>(level[i][0]), count));
        }
        Of::template add_products<M, N>(rows, columns, first, total);
        u32 made[M * N];
        MMAPROBE_UNROLLED
        for (int i = 0; i < M * N; ++i) made[i] = write<Form>(total[i][0], level[i][0]);
        if (any_special) {
            MMAPROBE_UNROLLED
            for (int i = 0; i < M * N; ++i)
                if (level[i][0] >= SPECIAL_FROM)
                    made[i] = special<AT>(*rows[i / N], *columns[i % N], first, code[i], level[i][0]);
        }
        MMAPROBE_UNROLLED
        for (int i = 0; i < M * N; ++i) code[i] = made[i];
    }
};

template <class Form>
using Fused = Several<FusedSum<Form>>;

}  // namespace compiled
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
