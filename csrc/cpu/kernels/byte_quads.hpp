// Four products a lane of floats of one byte: the 64 codes of an operand's group, [k][lane], are a register.
//
// As binary16 numbers they are values times 2^(bias - 15); their exponent fields, at least 1, or ZERO of a zero, are bytes.
#pragma once
#include "cpu/kernels/labels.hpp"
#include "cpu/kernels/operand_decode.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

// A lane's sum, in units of 2^(label - F).
struct Part {
    I32s sum;
    Labels label;
};

#if defined(__AVX512DQ__) && defined(__AVX512BW__)
#define MMAPROBE_BYTE_QUADS

struct ByteQuad {
    __m512i codes;
    int fraction_bits;  // of 7 bits beside the sign

    MMAPROBE_HD ByteQuad(const uint8_t* from, int f) : codes(_mm512_loadu_si512(from)), fraction_bits(f) {}

    MMAPROBE_HD __m512i size() const { return _mm512_and_si512(codes, _mm512_set1_epi8(0x7F)); }
    MMAPROBE_HD bool above(u32 finite) const {
        return _mm512_cmpgt_epu8_mask(size(), _mm512_set1_epi8(int8_t(finite))) != 0;
    }
    MMAPROBE_HD Bytes fields() const {
        const __m512i some = _mm512_srli_epi16(size(), u32(fraction_bits));
        const __m512i field = _mm512_and_si512(some, _mm512_set1_epi8(int8_t(0x7F >> fraction_bits)));
        const __mmask64 nonzero = _mm512_test_epi8_mask(size(), size());
        return Bytes(_mm512_mask_max_epu8(_mm512_set1_epi8(ZERO), nonzero, field, _mm512_set1_epi8(1)));
    }
    // As binary32 numbers, 16 a register.
    MMAPROBE_HD void values(F32s* to) const {
        const int right = fraction_bits - 2, copies = ((1 << right) - 1) << (15 - right);  // of the sign
        for (int half = 0; half < 2; ++half) {
            const __m256i some = half ? _mm512_extracti64x4_epi64(codes, 1) : _mm512_castsi512_si256(codes);
            const __m512i raised = _mm512_slli_epi16(_mm512_cvtepi8_epi16(some), u32(8 - right));
            const __m512i halves = _mm512_andnot_si512(_mm512_set1_epi16(int16_t(copies)), raised);
            to[2 * half] = F32s(_mm512_cvtph_ps(_mm512_castsi512_si256(halves)));
            to[2 * half + 1] = F32s(_mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1)));
        }
    }
};

// The floored products of 16 lanes; `biases` of a and b together, F the fraction bits below the largest label, `none`
// the label where all products are zero.
MMAPROBE_HD Part sum_quads(const ByteQuad& a, const ByteQuad& b, i32 biases, int F, i32 none) {
    F32s x[4], y[4];
    a.values(x);
    b.values(y);
    const __m512i fields = __m512i(add_bytes(a.fields(), b.fields()));
    const __m512i two = _mm512_max_epi8(fields, _mm512_shuffle_i64x2(fields, fields, 0x4E));
    const __m512i one = _mm512_max_epi8(two, _mm512_shuffle_i64x2(two, two, 0xB1));
    const Labels field = F32s(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm512_castsi512_si128(one))));
    const Labels up = all_labels(F + 30) - field;
    I32s sum{};
    for (int k = 0; k < 4; ++k) sum += whole<Towards::DOWN>(x[k] * y[k], up);
    const Mask some = where_reached(field, all_labels(2));
    return {sum, choose_label(some, field - all_labels(biases), all_labels(none))};
}
#endif

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
