// Labels of many lanes, and powers of two by them: binary32 numbers where the processor scales by such, else integers.
#pragma once
#include "cpu/kernels/floats.hpp"
#include "cpu/kernels/registers.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

enum class Towards { ZERO, DOWN };
constexpr i32 LEAST_POWER = -64;  // of a significand, which is then below any unit, and still a normal number

#if defined(__AVX512DQ__)
typedef F32s Labels;
typedef float LabelItem;

// significand 2^exponent, the significand below 2 in magnitude.
struct Parted {
    F32s significand;
    Labels exponent;
};

MMAPROBE_HD Labels all_labels(i32 x) { return broadcast(F32s{}, float(x)); }
MMAPROBE_HD Labels broadcast_label(LabelItem x) { return broadcast(F32s{}, x); }
MMAPROBE_HD Labels larger_label(Labels x, Labels y) { return F32s(_mm512_max_ps(__m512(x), __m512(y))); }
MMAPROBE_HD Mask where_below(Labels x, Labels y) { return _mm512_cmp_ps_mask(__m512(x), __m512(y), _CMP_LT_OQ); }
MMAPROBE_HD Mask where_reached(Labels x, Labels y) { return _mm512_cmp_ps_mask(__m512(x), __m512(y), _CMP_GE_OQ); }
MMAPROBE_HD Labels choose_label(Mask m, Labels x, Labels y) {
    return F32s(_mm512_mask_blend_ps(__mmask16(m), __m512(y), __m512(x)));
}
// floor(log2 |x|); of a zero below every label, of infinities and NaNs anything.
MMAPROBE_HD Labels exponent_of(F32s x) { return F32s(_mm512_getexp_ps(__m512(x))); }
MMAPROBE_HD Mask where_some(F32s x) { return _mm512_cmp_ps_mask(__m512(x), _mm512_setzero_ps(), _CMP_NEQ_UQ); }
MMAPROBE_HD Mask where_special(F32s x) { return _mm512_fpclass_ps_mask(__m512(x), 0x99); }
MMAPROBE_HD bool any_special(const F32s* four) {
    const auto of = [&](int i) { return _mm512_fpclass_ps_mask(__m512(four[i]), 0x99); };
    return !_kortestz_mask16_u8(_kor_mask16(of(0), of(1)), _kor_mask16(of(2), of(3)));
}
MMAPROBE_HD Mask where_nan(F32s x) { return _mm512_fpclass_ps_mask(__m512(x), 0x81); }
// x 2^-n, exact where the result is a normal number or zero; of infinities and NaNs anything.
MMAPROBE_HD F32s significand_at(F32s x, Labels n) {  // scaling takes long where subnormal numbers meet it
    const __m512 normal = _mm512_getmant_ps(__m512(x), _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
    return F32s(_mm512_mask_scalef_ps(__m512(x), __mmask16(where_some(x)), normal, __m512(exponent_of(x) - n)));
}
MMAPROBE_HD Parted part_of(F32s x) {
    const __mmask16 some = __mmask16(where_some(x));
    return {F32s(_mm512_maskz_getmant_ps(some, __m512(x), _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src)), exponent_of(x)};
}
// x 2^n in whole numbers, n at least LEAST_POWER.
template <Towards TO>
MMAPROBE_HD I32s whole(F32s x, Labels n) {
    constexpr int MODE = (TO == Towards::ZERO ? _MM_FROUND_TO_ZERO : _MM_FROUND_TO_NEG_INF) | _MM_FROUND_NO_EXC;
    return I32s(_mm512_cvt_roundps_epi32(_mm512_scalef_ps(__m512(x), __m512(n)), MODE));
}
// x 2^n where `some`, to nearest; elsewhere zero, as it must be where x is, or the result is below 2^-126.
MMAPROBE_HD F32s times_power_of(F32s x, Labels n, Mask some) {
    return F32s(_mm512_maskz_scalef_ps(__mmask16(some), __m512(x), __m512(n)));
}
MMAPROBE_HD I32s floor_shift_by(I32s x, Labels n) {
    return I32s(_mm512_srav_epi32(__m512i(x), _mm512_cvtps_epi32(__m512(n))));
}
MMAPROBE_HD I32s as_integers(Labels n) { return I32s(_mm512_cvtps_epi32(__m512(n))); }
MMAPROBE_HD F32s nearest_of(I32s x) { return F32s(_mm512_cvtepi32_ps(__m512i(x))); }
MMAPROBE_HD I32s only_where(Mask m, I32s x) { return I32s(_mm512_maskz_mov_epi32(__mmask16(m), __m512i(x))); }
#else
typedef I32s Labels;
typedef i32 LabelItem;

// significand 2^exponent, the significand below 2 in magnitude.
struct Parted {
    F32s significand;
    Labels exponent;
};

MMAPROBE_HD Labels all_labels(i32 x) { return splat_int(x); }
MMAPROBE_HD Labels broadcast_label(LabelItem x) { return splat_int(x); }
MMAPROBE_HD Labels larger_label(Labels x, Labels y) { return larger(x, y); }
MMAPROBE_HD Mask where_below(Labels x, Labels y) { return where_less(x, y); }
MMAPROBE_HD Mask where_reached(Labels x, Labels y) { return ~where_less(x, y); }
MMAPROBE_HD Labels choose_label(Mask m, Labels x, Labels y) { return choose(m, x, y); }
MMAPROBE_HD I32s only_where(Mask m, I32s x) { return x & m; }
MMAPROBE_HD I32s field_of(F32s x) { return (I32s(x) & 0x7FFFFFFF) >> 23; }
MMAPROBE_HD Labels exponent_of(F32s x) {  // of a subnormal number as of a zero
    return choose(where_set(field_of(x)), field_of(x) - 127, splat_int(-(1 << 20)));
}
MMAPROBE_HD Mask where_some(F32s x) { return where_set(I32s(x) & 0x7FFFFFFF); }
MMAPROBE_HD Mask where_special(F32s x) { return where_less(splat_int(254), field_of(x)); }
MMAPROBE_HD bool any_special(const F32s* four) {
    return any_lane(where_special(four[0]) | where_special(four[1]) | where_special(four[2]) | where_special(four[3]));
}
MMAPROBE_HD Mask where_nan(F32s x) { return where_less(splat_int(0x7F800000), I32s(x) & 0x7FFFFFFF); }
MMAPROBE_HD F32s significand_at(F32s x, Labels n) {
    const I32s size = I32s(x) & 0x7FFFFFFF, sign = I32s(x) ^ size;
    const I32s subnormal = I32s(F32s(size | 0x3F800000) - 1.0f);  // what a subnormal number is at 2^-126
    return F32s(choose(where_set(field_of(x)), size - (n << 23), subnormal) | sign);
}
MMAPROBE_HD Parted part_of(F32s x) {
    const Labels exponent = larger(exponent_of(x), splat_int(-126));
    return {significand_at(x, exponent), exponent};
}
template <Towards TO>
MMAPROBE_HD I32s whole(F32s x, Labels n) {
    const F32s moved = F32s(choose(where_set(field_of(x)), I32s(x) + (n << 23), I32s{}));
    const I32s cut = truncate(moved);
    if (TO == Towards::ZERO) return cut;
    return cut + I32s(moved < __builtin_convertvector(cut, F32s));
}
MMAPROBE_HD F32s times_power_of(F32s x, Labels n, Mask some) {
    const I32s sign = I32s(x) & i32(0x80000000), beyond = splat_int(0x7F800000);
    const I32s size = choose(where_less(splat_int(254), field_of(x) + n), beyond, (I32s(x) ^ sign) + (n << 23));
    return F32s((sign | size) & some);
}
MMAPROBE_HD I32s floor_shift_by(I32s x, Labels n) { return x >> smaller(n, splat_int(31)); }
MMAPROBE_HD I32s as_integers(Labels n) { return n; }
MMAPROBE_HD F32s nearest_of(I32s x) { return __builtin_convertvector(x, F32s); }
#endif

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
