// C of a fused sum as binary64, and the code of the sum.
#pragma once
#include "compiled_fused.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace compiled {

// C, made larger in magnitude as every item is.
struct Addend {
    double value;
    i32 level;
    u32 negative;
};

template <class Form, i64 AT>
MMAPROBE_HD Addend read_addend(u32 code) {
    constexpr Reading r(operand_at(AT));
    constexpr i32 least = Form::least(AT) + BIAS;
    constexpr bool is_single = r.bias == 127 && r.sign + r.padding == 31 && r.fraction_bits + r.padding == 23;
    double value;
    u32 special = 0;
    if constexpr (is_single) {  // a special value becomes a special binary64
        value = double(__builtin_bit_cast(float, code));
    } else {
        const u32 absolute = code >> r.padding & r.magnitude, sign = (code >> r.padding >> r.sign & 1) << 31;
        const u64 bits = u64(absolute) << (52 - r.fraction_bits) | u64(sign) << 32;
        value = __builtin_bit_cast(double, bits) * make_double(u32(2 * BIAS - r.bias) << 20, 0);
        const Item<u32> x = read_item<u32>(r, code);
        special = x.nan | x.infinite;
    }
    const u64 bits = __builtin_bit_cast(u64, value);
    const i32 field = i32(bits >> 52 & 2047);
    i32 level = field;
    if constexpr (least > Form::FLOOR + BIAS) level = field && field < least ? least : field;
    return {__builtin_bit_cast(double, bits | 1), special ? SPECIAL_FROM : level + BIAS, u32(bits >> 63)};
}

constexpr u32 NEAREST_EVEN = 0xC8C8;  // the table of RNE

// round_right of a size of at most 2^53, by any shift from 1 on; to nearest even with fewer operations.
MMAPROBE_HD u64 rounded_right(u64 size, i32 shift, bool negative, u32 table) {
    if (table != NEAREST_EVEN) return round_right(size, shift, negative, table);
    const i32 by = shift < 62 ? shift : 62;
    return (size + (u64(1) << (by - 1)) - 1 + (size >> by & 1)) >> by;
}

// Any rounding and format: of the sum in units of 2^lowest.
template <class Form>
MMAPROBE_HD u32 write_any(i64 sum, i32 lowest) {
    constexpr Writing w(Form::TO, u32(header(Header::nan_code)));
    const bool negative = sum < 0;
    const u64 size = negative ? 0 - u64(sum) : u64(sum);
    const i32 top = lowest + count_bits(size) - 1, base = top > w.min_exponent ? top : w.min_exponent;
    const i32 shift = base - w.fraction_bits - lowest;
    const u64 rounded = shift > 0 ? rounded_right(size, shift, negative, w.table) : size << -shift;
    return code_of<u32>(w, u32(rounded), u32(base), mask_of(negative), mask_of(size));
}

// Formats that are binary32 without its last bits, towards zero.
template <class Form>
MMAPROBE_HD u32 write_single(double sum) {
    constexpr Writing w(Form::TO, u32(header(Header::nan_code)));
    constexpr bool overflows = Form::PRODUCT_ABOVE >= 127 - Form::F && Form::TO[EncodeRow::beyond_positive] == INFINITE;
    constexpr i32 product_bit = Form::lowest_bit(Form::A) + Form::lowest_bit(Form::B) + Form::SCALE_LOW;
    constexpr i32 c_bit = Form::lowest_bit(Form::C), bit = product_bit < c_bit ? product_bit : c_bit;
    constexpr bool underflows = bit < w.min_exponent - w.fraction_bits && !w.underflow_sign;
    u32 code = __builtin_bit_cast(u32, truncated(sum)) & (~u32(0) << w.padding);
    if constexpr (underflows) code = code & NO_SIGN ? code : 0;
    if constexpr (overflows)
        if ((high_word(sum) & NO_SIGN) >= u32(BIAS + 128) << 20) code = w.infinity << w.padding | (code & ~NO_SIGN);
    return code;
}

#if defined(__CUDA_ARCH__)
// Binary16, to nearest even.
template <class Form>
MMAPROBE_HD u32 write_half(double sum) {
    constexpr Writing w(Form::TO, u32(header(Header::nan_code)));
    unsigned short code;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(code) : "d"(sum));
    return w.underflow_sign || code & 0x7FFF ? code : 0;
}
#endif

// M's high word; its low word is 0, or the count that the sum starts with.
template <class Form>
MMAPROBE_HD u32 origin(i32 level) {
    return (u32(level - BIAS - Form::F + 52) << 20) | 0x80000;
}

template <class Form>
MMAPROBE_HD u32 write(double total, i32 level) {
    constexpr Writing w(Form::TO, u32(header(Header::nan_code)));
    constexpr bool truncates = w.table == 0, single = w.min_exponent == -126 && w.sign + w.padding == 31;
    const double from = make_double(origin<Form>(level), 0);
#if defined(__CUDA_ARCH__)
    constexpr bool half = w.sign == 15 && w.fraction_bits == 10 && w.padding == 0, to_infinity = w.beyond == w.infinity;
    if constexpr (half && to_infinity && w.table == NEAREST_EVEN) return write_half<Form>(total - from);
#endif
    if constexpr (truncates && single && w.fraction_bits + w.padding == 23) return write_single<Form>(total - from);
    const u64 sum = __builtin_bit_cast(u64, total) - __builtin_bit_cast(u64, from);
    return write_any<Form>(i64(sum), level - 2 * BIAS - Form::F);
}

}  // namespace compiled
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
