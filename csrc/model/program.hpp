// The program that models/program.py makes of a datapath: rows of 64-bit integers with named columns.
//
// Each list below names the columns of one kind of row, in order; Python has the same lists
// and refuses a module that has others. A row is read through Row<Kind>: row[Kind::column].
#pragma once
#include "types.hpp"

// clang-format off
// What runs, in order; operands follow the opcode in the stream.
#define MMAPROBE_OPCODES(X) X(PRODUCT) X(LOAD_C) X(ZERO) X(FMA) X(ADD) X(SUM) X(CONVERT) \
    X(SETTLE) X(STORE)

// Who evaluates a program: the interpreter can, always; a kernel where models/kernels.py gives it the datapath.
#define MMAPROBE_KERNELS(X) X(INTERPRETER) X(INTEGER_WRAPS) X(INTEGER_SATURATES) X(FUSED) \
    X(CHAIN) X(TWO_STAGE) X(GROUPED) X(EXACT_SUM) X(PAIRS) X(SHORT_SUMS) X(FLUSHED_CHAIN) X(LATE_C) X(TREE)

#define MMAPROBE_HEADER(X)                                                                        \
    X(version) X(words) X(width) X(k) X(registers) X(code) X(code_end)                            \
    X(a) X(b) X(c) X(scale) X(scale_size) X(scale_where) X(d)                                     \
    X(label) X(overflow_exponent) X(multiply) X(product_encode)                                   \
    X(nan) X(nan_code) X(factor_code) X(quiet) X(signalling_first) X(product_order) X(fma_order)                 \
    X(priority) X(priority_count) X(kernel) X(rules) X(missing_columns)                        \
    X(products) X(split) X(random)

// How an operand is read: (code & mask) ^ flip is decoded. Codes in nan_above, infinity and nan_exact are without sign and padding.
#define MMAPROBE_OPERAND(X)                                                                       \
    X(bytes) X(kind) X(mask) X(flip) X(padding) X(bits) X(fraction_bits) X(exponent_bits) X(bias) \
    X(min_exponent) X(is_signed) X(subnormal) X(flush) X(nan_above) X(infinity) X(nan_exact) X(ieee)

#define MMAPROBE_ENCODE(X)                                                                        \
    X(kind) X(bits) X(fraction_bits) X(min_exponent) X(max_exponent) X(largest) X(padding)        \
    X(is_signed) X(infinity) X(nan_code) X(quiet_bit) X(negative_zero) X(table) X(first_bits)     \
    X(first_table) X(beyond_positive) X(beyond_negative) X(flush) X(tiny_before) X(tiny_encoded)  \
    X(underflow_positive) X(zero_positive) X(ieee) X(random_bits) X(random_highest)

// Parts of operands; after these columns the parts of a and b that each of a lane's products multiplies.
#define MMAPROBE_SPLIT(X) X(fraction_bits) X(min_exponent) X(max_exponent) X(table) X(whole)

// What a kernel needs beside the header, in a row of its own: the kernel of fused sums.
// of chains (rounding: nearest, towards zero, down, up), of two stages (cutoff of C), and of scaled groups.
#define MMAPROBE_CHAIN(X) X(rounding)
#define MMAPROBE_TWO_STAGE(X) X(step) X(parts) X(fraction_bits) X(c_zero_exponent) X(cutoff) X(first_bits) X(carry)
#define MMAPROBE_EXACT_SUM(X) X(step) X(grid) X(carry)
#define MMAPROBE_PAIRS(X) X(step)
#define MMAPROBE_SHORT_SUMS(X) X(step) X(parts) X(fraction_bits) X(label_offset) X(zero_exponent) X(cutoff) X(flush) X(order)
#define MMAPROBE_FLUSHED_CHAIN(X) X(order)
#define MMAPROBE_LATE_C(X) X(sums) X(order)
#define MMAPROBE_TREE(X) X(rounding) X(flush) X(count) X(operations)
#define MMAPROBE_GROUPED(X) X(fraction_bits) X(zero_exponent) X(group) X(underflow_positive)
#define MMAPROBE_FUSED(X) X(fraction_bits) X(zero_exponent) X(step) X(encode) X(carry)

// Columns after the opcode; `lane` is the number of a product: header.products times its lane, and which of the lane's.
#define MMAPROBE_PRODUCT(X) X(to) X(lane)
#define MMAPROBE_LOAD_C(X) X(to)
#define MMAPROBE_ZERO(X) X(to)
#define MMAPROBE_FMA(X) X(to) X(x) X(y) X(lane) X(encode) X(down)
#define MMAPROBE_ADD(X) X(to) X(x) X(y) X(encode) X(down)
#define MMAPROBE_SUM(X) X(to) X(encode) X(down) X(anchored) X(grid) X(group) X(frame) X(carry_bits) X(saturates) X(count)
#define MMAPROBE_TERM(X) X(of) X(fraction_bits) X(table) X(zero_exponent) X(cutoff) X(label_offset) \
    X(sticky_bits) X(shift_limit)
#define MMAPROBE_CONVERT(X) X(to) X(encode)
#define MMAPROBE_SETTLE(X) X(x) X(acc) X(scratch) X(count)
#define MMAPROBE_STORE(X) X(x) X(encode)
// clang-format on

namespace mmaprobe {
namespace MMAPROBE_BUILD {

#define MMAPROBE_NAME(name) name,
enum class Opcode : i64 { MMAPROBE_OPCODES(MMAPROBE_NAME) };
#define MMAPROBE_ROW(Kind, LIST) \
    struct Kind { \
        enum Column { LIST(MMAPROBE_NAME) SIZE }; \
        const i64* at; \
        MMAPROBE_HD constexpr i64 operator[](Column c) const { return at[c]; } \
    };
MMAPROBE_ROW(Header, MMAPROBE_HEADER)
MMAPROBE_ROW(OperandRow, MMAPROBE_OPERAND)
MMAPROBE_ROW(EncodeRow, MMAPROBE_ENCODE)
MMAPROBE_ROW(SplitRow, MMAPROBE_SPLIT)
MMAPROBE_ROW(FusedRow, MMAPROBE_FUSED)
MMAPROBE_ROW(ChainRow, MMAPROBE_CHAIN)
MMAPROBE_ROW(TwoStageRow, MMAPROBE_TWO_STAGE)
MMAPROBE_ROW(GroupedRow, MMAPROBE_GROUPED)
MMAPROBE_ROW(ExactRow, MMAPROBE_EXACT_SUM)
MMAPROBE_ROW(PairsRow, MMAPROBE_PAIRS)
MMAPROBE_ROW(ShortRow, MMAPROBE_SHORT_SUMS)
MMAPROBE_ROW(FlushedChainRow, MMAPROBE_FLUSHED_CHAIN)
MMAPROBE_ROW(LateCRow, MMAPROBE_LATE_C)
MMAPROBE_ROW(TreeRow, MMAPROBE_TREE)
MMAPROBE_ROW(ProductRow, MMAPROBE_PRODUCT)
MMAPROBE_ROW(LoadRow, MMAPROBE_LOAD_C)
MMAPROBE_ROW(FmaRow, MMAPROBE_FMA)
MMAPROBE_ROW(AddRow, MMAPROBE_ADD)
MMAPROBE_ROW(SumRow, MMAPROBE_SUM)
MMAPROBE_ROW(TermRow, MMAPROBE_TERM)
MMAPROBE_ROW(ConvertRow, MMAPROBE_CONVERT)
MMAPROBE_ROW(SettleRow, MMAPROBE_SETTLE)
MMAPROBE_ROW(StoreRow, MMAPROBE_STORE)
#undef MMAPROBE_ROW
#undef MMAPROBE_NAME

constexpr i64 PROGRAM_VERSION = 6;
constexpr i64 ABSENT = -1;  // in columns that hold an offset or a code
enum Kind : i64 { FLOAT, INTEGER, MAGNITUDE };
#define MMAPROBE_NAME(name) name,
enum Kernel : i64 { MMAPROBE_KERNELS(MMAPROBE_NAME) };
#undef MMAPROBE_NAME
enum Flush : i64 { KEEP, TO_ZERO, TO_SIGNED_ZERO };
enum Label : i64 { ENCODED, OPERANDS, NORMALISED };
enum Multiply : i64 { EXACT, AND, XOR };
enum Beyond : i64 { LARGEST, INFINITE, NOT_A_NUMBER, WRAP };
enum NanRule : i64 { CANONICAL, GLOBAL, LOCAL, CAUSE };
enum ScaleWhere : i64 { UNSCALED, SCALE_PRODUCT, SCALE_GROUP };
// An operation of a tree is a word, TREE_LANE * lane + opcode, + TREE_ENCODED where a subnormal result is a zero: PRODUCT,
// LOAD_C and ZERO push a value, FMA adds a product to the topmost, ADD takes two, STORE ends a step and is its C afterwards.
constexpr i64 TREE_ENCODED = 16, TREE_LANE = 32, TREE_DEPTH = 8, TREE_LANES = 64;
enum Name : i64 { NAME_A, NAME_B, NAME_C };  // in priority lists: 3 * lane + name; the acc of an Fma is NAME_C

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
