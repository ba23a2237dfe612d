// Operands of the fast kernels: codes to floats and exponent fields, many at a time.
//
// A float is the item's value, times a power of two where that helps; an exponent is the encoded one as a biased field
// (1 for subnormals), ZERO for a zero. Those of 8 exponent bits: wide_operands.hpp.
#pragma once
#include "cpu/kernels/registers.hpp"
#include "model/fused_lane.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

enum class Way {
    NONE,
    HALF,  // an exponent of at most 5 bits: as a binary16, its value times 2^(bias - 15)
    TOP  // an exponent of 8 bits: the top of a binary32, scaled so that the largest of a row is near 2^TOP_EXPONENT
};

constexpr int8_t ZERO = -128;  // with any other field still below every sum of two fields
constexpr uint16_t ZERO_NAN = 0x7FFF;  // what -0 is read as where it is the NaN: above every number

struct Decoding {
    Way way = Way::NONE;
    int bytes = 0, left = 0, right = 0, padding = 0;
    i32 bias = 0;
    u32 special_above = 0;  // a binary16 without sign above this is an infinity or a NaN
    bool patch = false;     // and has to be made one
    bool zero_nan = false;  // the code of -0 is the NaN
    bool whole = false;     // all 5 bits of the exponent are numbers': what a binary16 has infinities for
    bool normalised = false;  // fields are those of subnormals' leading bits, down to -9

    Decoding() = default;
    explicit Decoding(const OperandRow& o)
        : bytes(int(o[OperandRow::bytes])), padding(int(o[OperandRow::padding])), bias(i32(o[OperandRow::bias])) {
        const int bits = int(o[OperandRow::bits]), exponent_bits = int(o[OperandRow::exponent_bits]);
        const bool ieee = o[OperandRow::ieee];
        if (exponent_bits == 8 && ieee && bits + padding <= 8 * bytes && bytes >= 2 && bits + padding == 8 * bytes) {
            way = Way::TOP;
        } else if (exponent_bits <= 5 && bits <= 16 && bytes <= 2 && !padding && (!ieee || exponent_bits == 5)) {
            way = Way::HALF;
            left = 16 - bits;
            right = 5 - exponent_bits;
            const u64 above = u64(o[OperandRow::nan_above]);
            zero_nan = o[OperandRow::nan_exact] != ABSENT;
            whole = !ieee && exponent_bits == 5;
            patch = !ieee && (zero_nan || above < u64(1) << bits);
            special_above = ieee ? 0x7BFF : zero_nan ? ZERO_NAN - 1 : patch ? u32(above << left >> right) : 0x7FFF;
        }
    }
    // Whether a binary16 is enough, all but the code of a NaN.
    bool plain() const { return !zero_nan && !whole && !normalised; }
};

// The codes of HALVES items as binary16.
template <bool PLAIN>
MMAPROBE_HD Halves as_halves(const Decoding d, const void* from, i64 at) {
    Halves x;
    if (d.bytes == 1) {
        x = widen_to_halves(static_cast<const uint8_t*>(from) + at);
    } else {
        x = load<Halves>(static_cast<const uint16_t*>(from) + at);
    }
    if (d.left) x <<= uint16_t(d.left);
    if (d.right) x = ((x & 0x7FFF) >> uint16_t(d.right)) | (x & 0x8000);
    if (!PLAIN && d.zero_nan) x |= Halves(x == 0x8000) & ZERO_NAN;
    return x;
}

// HALVES items as floats where every exponent is a number's.
MMAPROBE_HD void whole_values(const Decoding d, Halves x, float* values) {
    uint16_t codes[HALVES];
    store(codes, x);
    for (int i = 0; i < HALVES; i += LANES) {
        const U32s code = widen(codes + i), bits = (code & 0x7FFF) << 13, least = splat<U32s>(113 << 23);
        const U32s subnormal = U32s(F32s(bits | least) - F32s(least));  // the processor may read such as zeros
        const U32s value = pick(less(bits, splat<U32s>(1 << 23)), subnormal, bits + (112 << 23));
        const U32s nan = less(splat<U32s>(d.special_above << 13), bits) & 0x7FC00000;
        store(values + i, value | nan | (code & 0x8000) << 16);
    }
}

// The fields of HALVES finite items by the leading bits of their values.
MMAPROBE_HD void normalised_fields(const float* values, int8_t* fields) {
    for (int i = 0; i < HALVES; i += LANES) {
        const I32s size = load<I32s>(values + i) & 0x7FFFFFFF;
        narrow(fields + i, choose(where_set(size), (size >> 23) - 112, splat_int(ZERO)));
    }
}

#if defined(__AVX512F__)
struct Seen {  // the largest size so far
    __m512i most = _mm512_setzero_si512();
    MMAPROBE_HD void see(Halves size) { most = _mm512_max_epu16(most, __m512i(size)); }
    MMAPROBE_HD bool above(u32 limit) const {
        return _mm512_cmpgt_epu16_mask(most, _mm512_set1_epi16(i16(limit))) != 0;
    }
    using i16 = int16_t;
};

// HALVES items.
template <bool PLAIN>
MMAPROBE_HD void half_items(const Decoding d, const void* from, i64 at, float* values, int8_t* exponents, Seen& seen) {
    __m512i x = __m512i(as_halves<PLAIN>(d, from, at));
    const __m512i size = _mm512_and_si512(x, _mm512_set1_epi16(0x7FFF));
    seen.see(Halves(size));
    const __m512i field = _mm512_max_epu16(_mm512_srli_epi16(size, 10), _mm512_set1_epi16(1));
    const __mmask32 some = _mm512_test_epi16_mask(size, size);
    const __m512i exponent = _mm512_mask_mov_epi16(_mm512_set1_epi16(ZERO), some, field);
    if (d.patch && (PLAIN || !d.whole)) {
        const __mmask32 special = _mm512_cmpgt_epu16_mask(size, _mm512_set1_epi16(int16_t(d.special_above)));
        x = _mm512_mask_mov_epi16(x, special, _mm512_set1_epi16(0x7E00));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(exponents + at), _mm512_cvtepi16_epi8(exponent));
    if (!PLAIN && d.whole) {
        whole_values(d, Halves(x), values + at);
    } else {
        _mm512_storeu_ps(values + at, _mm512_cvtph_ps(_mm512_castsi512_si256(x)));
        _mm512_storeu_ps(values + at + 16, _mm512_cvtph_ps(_mm512_extracti64x4_epi64(x, 1)));
    }
    if (!PLAIN && d.normalised) normalised_fields(values + at, exponents + at);
}
#else
struct Seen {
    Halves most = {};
    MMAPROBE_HD void see(Halves size) {
        const Halves more = Halves(size > most);
        most = (size & more) | (most & ~more);
    }
    MMAPROBE_HD bool above(u32 limit) const {
        bool out = false;
        for (int i = 0; i < HALVES; ++i) out |= most[i] > limit;
        return out;
    }
};

template <bool PLAIN>
MMAPROBE_HD void half_items(const Decoding d, const void* from, i64 at, float* values, int8_t* exponents, Seen& seen) {
    Halves x = as_halves<PLAIN>(d, from, at);
    const Halves size = x & 0x7FFF, zero = Halves(size == 0);
    seen.see(size);
    const Halves field = size >> 10, low = Halves(field == 0) & 1;
    const Halves exponent = ((field | low) & ~zero) | (zero & 0xFF80);
    if (d.patch && (PLAIN || !d.whole)) {
        const Halves special = Halves(size > uint16_t(d.special_above));
        x = (x & ~special) | (special & 0x7E00);
    }
    narrow(exponents + at, exponent);
    if (!PLAIN && d.whole) {
        whole_values(d, x, values + at);
    } else {
        uint16_t codes[HALVES];
        store(codes, x);
        store(values + at, from_half(codes));
        store(values + at + LANES, from_half(codes + LANES));
    }
    if (!PLAIN && d.normalised) normalised_fields(values + at, exponents + at);
}
#endif

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
