// The NaN that a chain of fused multiply-adds hands on, where every link chooses among its own operands.
#pragma once
#include "program.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

// D of a chain that ends in a NaN: of each link the first NaN in the rule's order, quieted, the rule's code of an
// invalid operation, or the sum. `a` and `b` give the number of a lane, `fma` one link's sum.
template <class Float, class Code, class A, class B, class Fma>
MMAPROBE_HD Code nan_of_chain(const Header& header, int k, const A& a, const B& b, Float sum, const Fma& fma) {
    constexpr Code quiet = Code(1) << (sizeof(Code) == 8 ? 51 : 22);
    for (int i = 0; i < k; ++i) {
        const Float operands[] = {a(i), b(i), sum};
        Float next = fma(operands[0], operands[1], operands[2]);
        if (next != next) {
            Code code = Code(header[Header::nan_code]);
            bool found = false;
            for (i64 order = header[Header::fma_order]; order; order /= 4) {
                const Float operand = operands[order % 4 - 1];
                if (!found && operand != operand) code = __builtin_bit_cast(Code, operand) | quiet, found = true;
            }
            next = __builtin_bit_cast(Float, code);
        }
        sum = next;
    }
    return __builtin_bit_cast(Code, sum);
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
