// The NaN that a chain of fused multiply-adds hands on, where every link chooses among its own operands.
#pragma once
#include "program.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

// What a link of x, y and the sum so far hands on, `made` where that is no NaN: the first NaN in the rule's order,
// quieted, or the rule's code of an invalid operation. Of one number, whose code is a Word, or of a register of them.
template <class Word, class Codes, class Float>
MMAPROBE_HD Float handed_on(const Header& header, Float x, Float y, Float sum, Float made) {
    constexpr Word quiet = Word(1) << (sizeof(Word) == 8 ? 51 : 22);
    Codes code = Codes{} | Word(header[Header::nan_code]);
    MMAPROBE_UNROLLED for (int place = 2; place >= 0; --place) {
        const i64 which = header[Header::fma_order] >> 2 * place & 3;
        const Float operand = which == 1 ? x : which == 2 ? y : sum;
        code = operand != operand ? __builtin_bit_cast(Codes, operand) | quiet : code;
    }
    return made != made ? __builtin_bit_cast(Float, code) : made;
}

// D of a chain that ends in a NaN: `a` and `b` give the numbers of a lane, `fma` one link's sum.
template <class Word, class Codes, class Float, class A, class B, class Fma>
MMAPROBE_HD Float nan_of_chain(const Header& header, int k, const A& a, const B& b, Float sum, const Fma& fma) {
    for (int i = 0; i < k; ++i) {
        const Float x = a(i), y = b(i);
        sum = handed_on<Word, Codes>(header, x, y, sum, fma(x, y, sum));
    }
    return sum;
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
