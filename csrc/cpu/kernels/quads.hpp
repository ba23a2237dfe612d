// Four e2m1 codes a lane, one a byte: their values as small integers, and dot products of those.
#pragma once
#include "cpu/kernels/fused_exact.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace grouped {

constexpr int GROUP = 16, QUADS = GROUP / 4;
constexpr u32 BIAS = 12;  // makes twice an e2m1 value unsigned
constexpr u32 ONES = 0x01010101;

#if defined(__AVX2__)
// Bytes of a table of 16, by the low four bits of each byte.
MMAPROBE_HD U32s look_up(U32s codes, u64 low, u64 high) {
    const __m128i table = _mm_set_epi64x(i64(high), i64(low));
#if defined(__AVX512BW__)
    return U32s(_mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), __m512i(codes & (15 * ONES))));
#else
    return U32s(_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), __m256i(codes & (15 * ONES))));
#endif
}
#if defined(__AVX512BW__)
MMAPROBE_HD U32s byte_products(U32s x, U32s y) { return U32s(_mm512_maddubs_epi16(__m512i(x), __m512i(y))); }
MMAPROBE_HD U32s add_halves(U32s x, U32s y) { return U32s(_mm512_add_epi16(__m512i(x), __m512i(y))); }
MMAPROBE_HD U32s sum_halves(U32s x) { return U32s(_mm512_madd_epi16(__m512i(x), _mm512_set1_epi16(1))); }
#else
MMAPROBE_HD U32s byte_products(U32s x, U32s y) { return U32s(_mm256_maddubs_epi16(__m256i(x), __m256i(y))); }
MMAPROBE_HD U32s add_halves(U32s x, U32s y) { return U32s(_mm256_add_epi16(__m256i(x), __m256i(y))); }
MMAPROBE_HD U32s sum_halves(U32s x) { return U32s(_mm256_madd_epi16(__m256i(x), _mm256_set1_epi16(1))); }
#endif
// Twice the values, as signed bytes, and the same plus BIAS.
MMAPROBE_HD U32s twice(U32s codes) { return look_up(codes, 0x0C08060403020100, 0xF4F8FAFCFDFEFF00); }
MMAPROBE_HD U32s twice_biased(U32s codes) { return look_up(codes, 0x181412100F0E0D0C, 0x00040608090A0B0C); }
// Bit 4 q + j of each lane: byte j of quad q is no zero.
MMAPROBE_HD U32s nonzero(const U32s* codes) {
    const auto bits = [&](int q, u32 weights) __attribute__((always_inline)) {
        return byte_products(splat<U32s>(weights), look_up(codes[q], 0x0101010101010100, 0x0101010101010100));
    };
    const U32s low = add_halves(bits(0, 0x08040201), bits(1, 0x80402010));
    const U32s high = add_halves(bits(2, 0x08040201), bits(3, 0x80402010));
    return sum_halves(low) | sum_halves(high) << 8;
}
MMAPROBE_HD U32s biased_sums(U32s values) { return sum_halves(byte_products(splat<U32s>(BIAS * ONES), values)); }
// acc + the products of unsigned bytes x and signed bytes y, quad by quad; x is at most 127 / 2.
template <class X, class Y>
MMAPROBE_HD U32s dot(const X& x, const Y& y, U32s acc) {
    U32s sum = byte_products(x(0), y(0));
    for (int q = 1; q < QUADS; ++q) sum = add_halves(sum, byte_products(x(q), y(q)));
    return acc + sum_halves(sum);
}
#else
MMAPROBE_HD U32s values_of(U32s codes, u32 bias) {
    U32s out{};
    for (int shift = 0; shift < 32; shift += 8) {
        const U32s code = codes >> shift & 15, value = (splat<U32s>(0xC8643210) >> (4 * (code & 7))) & 15;
        const U32s negative = 0 - (code >> 3);
        out |= (((value ^ negative) - negative + bias) & 0xFF) << shift;
    }
    return out;
}
MMAPROBE_HD U32s signed_byte(U32s x, int shift) { return shift_signed((x >> shift) << 24, 24); }
MMAPROBE_HD U32s twice(U32s codes) { return values_of(codes, 0); }
MMAPROBE_HD U32s twice_biased(U32s codes) { return values_of(codes, BIAS); }
MMAPROBE_HD U32s nonzero(U32s codes) { return ((codes | codes >> 1 | codes >> 2) & ONES) * 0x10204080 >> 28; }
MMAPROBE_HD U32s nonzero(const U32s* codes) {
    return nonzero(codes[0]) | nonzero(codes[1]) << 4 | nonzero(codes[2]) << 8 | nonzero(codes[3]) << 12;
}
MMAPROBE_HD U32s biased_sums(U32s values) {
    return BIAS * (signed_byte(values, 0) + signed_byte(values, 8) + signed_byte(values, 16) + signed_byte(values, 24));
}
template <class X, class Y>
MMAPROBE_HD U32s dot(const X& x, const Y& y, U32s acc) {
    for (int q = 0; q < QUADS; ++q)
        for (int shift = 0; shift < 32; shift += 8) acc += (x(q) >> shift & 0xFF) * signed_byte(y(q), shift);
    return acc;
}
#endif

// acc + the dot products of rows (unsigned, by lanes) and of a column, or of other lanes (both signed).
template <bool VNNI>
MMAPROBE_HD U32s dot_column(const U32s* x, const u32* y, U32s acc) {
#if defined(__AVX512BW__)
    if (VNNI) {  // in assembly: the rest of the build runs without
        for (int q = 0; q < QUADS; ++q) asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(x[q]), "m"(y[q]));
        return acc;
    }
#endif
    return dot([&](int q) { return x[q]; }, [&](int q) { return splat<U32s>(y[q]); }, acc);
}
template <bool VNNI>
MMAPROBE_HD U32s dot_lanes(const U32s* x, const U32s* y, U32s acc) {
#if defined(__AVX512BW__)
    if (VNNI) {
        for (int q = 0; q < QUADS; ++q) asm("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(x[q]), "v"(y[q]));
        return acc;
    }
#endif
    return dot([&](int q) { return x[q]; }, [&](int q) { return y[q]; }, acc);
}

// Which bytes are no zeros, a bit each; 4 LANES of them.
MMAPROBE_HD void store_nonzero(uint16_t* to, U32s codes) {
#if defined(__AVX512BW__)
    const u64 bits = _mm512_test_epi8_mask(__m512i(codes), __m512i(splat<U32s>(7 * ONES)));
#elif defined(__AVX2__)
    const __m256i values = __m256i(codes & (7 * ONES));
    const u32 bits = u32(_mm256_movemask_epi8(_mm256_cmpgt_epi8(values, _mm256_setzero_si256())));
#else
    const U32s lanes = nonzero(codes);
    const uint16_t bits = uint16_t(lanes[0] | lanes[1] << 4 | lanes[2] << 8 | lanes[3] << 12);
#endif
    memcpy(to, &bits, sizeof bits);
}

// The sum of four neighbouring lanes, in each of them.
MMAPROBE_HD U32s sum_of_four(U32s x) {
#if defined(__AVX512BW__)
    const U32s pairs = x + U32s(_mm512_shuffle_epi32(__m512i(x), _MM_PERM_ENUM(0xB1)));
    return pairs + U32s(_mm512_shuffle_epi32(__m512i(pairs), _MM_PERM_ENUM(0x4E)));
#elif defined(__AVX2__)
    const U32s pairs = x + U32s(_mm256_shuffle_epi32(__m256i(x), 0xB1));
    return pairs + U32s(_mm256_shuffle_epi32(__m256i(pairs), 0x4E));
#else
    U32s out;
    for (int i = 0; i < LANES; ++i) out[i] = x[i / 4 * 4] + x[i / 4 * 4 + 1] + x[i / 4 * 4 + 2] + x[i / 4 * 4 + 3];
    return out;
#endif
}

// Items k .. k + 3 of LANES rows (16 rows of one byte each lie together), four to a lane.
MMAPROBE_HD U32s pack_quad(const uint8_t* rows) {
#if defined(__AVX512BW__)
    U32s x;
    memcpy(&x, rows, sizeof x);
    const __m512i blocks = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i bytes = _mm512_set4_epi32(0x0F0B0703, 0x0E0A0602, 0x0D090501, 0x0C080400);
    return U32s(_mm512_shuffle_epi8(_mm512_permutexvar_epi32(blocks, __m512i(x)), bytes));
#else
    U32s out{};
    for (int j = 0; j < 4; ++j) out |= fused::load_codes<uint8_t>(rows, j * STRIP) << (8 * j);
    return out;
#endif
}

}  // namespace grouped
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
