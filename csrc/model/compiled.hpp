// The model of a datapath that is compiled in, for one thread: class Model, chosen by the kernel of its program.
//
//   struct Row, Column                                  operands in shared memory; no constructors
//   put_a(Row&, k, code)  put_b(Column&, k, code)       items, by any thread in any order
//   put_scale_a(Row&, g, code)  put_scale_b(Column&, g, code)  put_metadata(Row&, chunk, item)
//   ROUNDING                                            of its multiply-adds: compiled_rounding.hpp
//   seal(Row&)  seal(Column&)                           by one thread each, after a barrier; another follows
//   evaluate(row, column, c)                            the code of one output
//   evaluate_two(row, first, second, c, d)              of two outputs that share a row
//   evaluate_four(row, next_row, first, second, c, d)   of two rows and two columns, row by row: fewest loads each
#pragma once
#include "compiled_chain.hpp"
#include "compiled_fused_model.hpp"
#include "compiled_integer.hpp"
#include "compiled_interpreter.hpp"
#include "compiled_pairs.hpp"
#include "compiled_short.hpp"
#include "compiled_two_stage.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace compiled {

// Only the class of the kernel is made; where it does not fit, the interpreter.
template <i64 KERNEL, class = void>
struct Choice {
    using type = Interpreted;
};
template <bool FITS, class Fast>
struct Either {
    using type = Interpreted;
};
template <class Fast>
struct Either<true, Fast> {
    using type = Fast;
};
template <class Any>
struct Choice<FUSED, Any> : Either<FusedForm<Any>::FITS, Fused<FusedForm<Any>>> {};
template <class Any>
struct Choice<TWO_STAGE, Any> : Either<TwoStageForm<Any>::FITS, TwoStage<TwoStageForm<Any>>> {};
template <class Any>
struct Choice<INTEGER_WRAPS, Any> : Either<Integers<false>::FITS, Integers<false>> {};
template <class Any>
struct Choice<INTEGER_SATURATES, Any> : Either<Integers<true>::FITS, Integers<true>> {};
template <class Any>
struct Choice<PAIRS, Any> : Either<true, Pairs<Any>> {};
template <class Any>
struct Choice<SHORT_SUMS, Any> : Either<true, Short<Any>> {};
template <class Any>
struct Choice<CHAIN, Any> : Chains<int(of_operand(Header::a, OperandRow::bytes))> {};

using Model = Choice<header(Header::kernel)>::type;

}  // namespace compiled
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
