// What a tree of rounded operations (tree.hpp) computes with: numbers of binary32, of binary64, and of binary16 held in
// binary64.  A NaN's code lies in its number, to the left, and no operation here but `handed_on` says which NaN comes out.
//
//   Number, Word                   a register of numbers, and one of their codes
//   read(source, base, at)         COUNT operands
//   settled(x)                     what an operation made, rounded to the format (binary32 and 64: it is already)
//   write(to, x)                   codes of the result format
//   nan(code)                      the number of a NaN of the result format
#pragma once
#include "cpu/kernels/floats.hpp"
#include "cpu/kernels/registers.hpp"
#include "model/program.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace tree {

typedef uint16_t Packed __attribute__((vector_size(LANES)));  // binary16 codes, as many as a register has numbers

// How codes of an operand are read: bits that are masked or flipped, and what is left of a subnormal.
struct Source {
    int bytes;
    bool top;  // 16 bits that are the upper half of a binary32
    u64 mask, flip, exponent, left;

    explicit Source(OperandRow row)
        : bytes(int(row[OperandRow::bytes])), top(row[OperandRow::exponent_bits] == 8),
          mask(u64(row[OperandRow::mask])), flip(u64(row[OperandRow::flip])),
          exponent(((u64(1) << row[OperandRow::exponent_bits]) - 1) << row[OperandRow::fraction_bits]),
          left(row[OperandRow::flush] == KEEP      ? ~u64(0)
               : row[OperandRow::flush] == TO_ZERO ? 0
                                                   : u64(1) << (row[OperandRow::bits] - 1)) {}
    U32s operator()(U32s code) const {
        code = (code & u32(mask)) ^ u32(flip);
        return code & (U32s((code & u32(exponent)) != 0) | u32(left));
    }
    U64s operator()(U64s code) const {
        code = (code & mask) ^ flip;
        return code & (U64s((code & exponent) != 0) | left);
    }
};

struct Singles {
    using Number = F32s;
    using Word = U32s;
    using Item = float;
    static constexpr int COUNT = LANES;
    static constexpr u32 INFINITE = 0x7F800000, SIGN = 0x80000000, QUIET = 0x00400000;

    explicit Singles(int) {}
    static F32s nan(i64 code) { return broadcast(F32s{}, __builtin_bit_cast(float, u32(code))); }
    static F32s read(const Source& source, const void* base, i64 at) {
        if (source.bytes == 4) return F32s(source(load<U32s>(static_cast<const u32*>(base) + at)));
        const U32s code = source(widen(static_cast<const uint16_t*>(base) + at));
        if (source.top) return F32s(code << 16);
        uint16_t halves[LANES];
        narrow(halves, code);
        const U32s is_nan = U32s((code & 0x7FFF) > 0x7C00);  // which a conversion would make quiet
        return F32s((U32s(from_half(halves)) & ~is_nan) |
                    (is_nan & (INFINITE | (code & 0x8000) << 16 | (code & 0x3FF) << 13)));
    }
    MMAPROBE_HD F32s settled(F32s x) const { return x; }
    static void write(void* base, i64 at, F32s x) { store(static_cast<u32*>(base) + at, x); }
#if defined(MMAPROBE_HAS_FMA)
    static F32s fused(F32s x, F32s y, F32s z) { return fused_multiply(x, y, z); }
    static constexpr bool FUSES = true;
#else
    static F32s fused(F32s x, F32s y, F32s z) { return x * y + z; }
    static constexpr bool FUSES = false;
#endif
};

struct Doubles {
    using Number = F64s;
    using Word = U64s;
    using Item = double;
    static constexpr int COUNT = HALF;
    static constexpr u64 INFINITE = u64(0x7FF) << 52, SIGN = u64(1) << 63, QUIET = u64(1) << 51;

    explicit Doubles(int) {}
    static F64s nan(i64 code) { return broadcast(F64s{}, __builtin_bit_cast(double, code)); }
    static F64s read(const Source& source, const void* base, i64 at) {
        return F64s(source(load<U64s>(static_cast<const u64*>(base) + at)));
    }
    MMAPROBE_HD F64s settled(F64s x) const { return x; }
    static void write(void* base, i64 at, F64s x) { store(static_cast<u64*>(base) + at, x); }
#if defined(MMAPROBE_HAS_FMA)
    static F64s fused(F64s x, F64s y, F64s z) { return fused_multiply(x, y, z); }
    static constexpr bool FUSES = true;
#else
    static F64s fused(F64s x, F64s y, F64s z) { return x * y + z; }
    static constexpr bool FUSES = false;
#endif
};

// A product of two binary16 numbers is exact in binary64; to that, another is added with one rounding. Where it is not
// exact, the sum is large enough to be infinite, or its last bits lie so far below binary16's that rounding twice in one
// mode is rounding once.
struct Halves {
    using Number = F64s;
    using Word = U64s;
    using Item = double;
    static constexpr int COUNT = HALF;
    static constexpr u64 INFINITE = Doubles::INFINITE, SIGN = Doubles::SIGN, QUIET = Doubles::QUIET;
    static constexpr u64 INTEGERS = u64(1023 + 28) << 52;  // 2^28, whose last place is the least subnormal
    static constexpr double TOO_LARGE = 0x1p16, LARGEST = 65504, NORMAL = 0x1p-14;
    static constexpr bool FUSES = true;
    F64s beyond_positive, beyond_negative;  // what too large a sum becomes

    explicit Halves(int rounding)
        : beyond_positive(broadcast(F64s{}, rounding == FE_DOWNWARD || rounding == FE_TOWARDZERO ? LARGEST : INFINITY)),
          beyond_negative(
              broadcast(F64s{}, rounding == FE_UPWARD || rounding == FE_TOWARDZERO ? -LARGEST : -INFINITY)) {}
    static F64s nan(i64 code) {
        const u64 wide = u64(code & 0x8000) << 48 | INFINITE | u64(code & 0x3FF) << 42;
        return broadcast(F64s{}, __builtin_bit_cast(double, wide));
    }
    static F64s read(const Source& source, const void* base, i64 at) {
        const Packed some = load<Packed>(static_cast<const uint16_t*>(base) + at);
        const U64s code = source(__builtin_convertvector(some, U64s)), size = code & 0x7FFF;
        const U64s special = U64s(size > 0x7BFF), tiny = U64s(size < 0x0400);
        const U64s integer = U64s(F64s(size | INTEGERS) - 0x1p28) & ~SIGN;
        const U64s normal = (size << 42) + (u64(1023 - 15) << 52), wide = INFINITE | (size & 0x3FF) << 42;
        return F64s((special & wide) | (tiny & integer) | (~(special | tiny) & normal) | (code & 0x8000) << 48);
    }
    // Rounds in the processor's mode, to multiples of the unit of x's last place: 2^52 of those, of x's sign, have no
    // fraction bits.
    MMAPROBE_HD F64s settled(F64s x) const {
        const U64s sign = U64s(x) & SIGN, size = U64s(x) ^ sign, tiny = U64s(F64s(size) < NORMAL);
        const U64s field = ((size & ~tiny) | (__builtin_bit_cast(u64, NORMAL) & tiny)) >> 52;
        const F64s unit = F64s((field - 10) << 52), units = F64s((2 * 1023 + 10 - field) << 52);
        const F64s whole = F64s(__builtin_bit_cast(u64, 0x1p52) | sign);
        const F64s rounded = F64s((U64s((x * units + whole) - whole) & ~SIGN) | sign) * unit;
        const F64s magnitude = F64s(U64s(rounded) & ~SIGN);
        const U64s beyond = U64s(magnitude >= TOO_LARGE) & U64s(magnitude < double(INFINITY)),
                   negative = U64s(sign != 0);
        const U64s limit = (U64s(beyond_negative) & negative) | (U64s(beyond_positive) & ~negative);
        const U64s kept = U64s(x != x) | U64s(size == INFINITE);
        return F64s((U64s(x) & kept) | (limit & beyond) | (U64s(rounded) & ~(beyond | kept)));
    }
    static void write(void* base, i64 at, F64s x) {
        const U64s size = U64s(x) & ~SIGN, special = U64s(size >= INFINITE), tiny = U64s(F64s(size) < NORMAL);
        const U64s integer = U64s(F64s(size) + 0x1p28) - INTEGERS;
        const U64s normal = (size >> 42) - (u64(1023 - 15) << 10), wide = 0x7C00 | (size >> 42 & 0x3FF);
        const U64s code = (special & wide) | (tiny & integer) | (~(special | tiny) & normal) | (U64s(x) & SIGN) >> 48;
        store(static_cast<uint16_t*>(base) + at, __builtin_convertvector(code, Packed));
    }
    static F64s fused(F64s x, F64s y, F64s z) { return x * y + z; }
};

}  // namespace tree
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
