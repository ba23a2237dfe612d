// Operands of 8 exponent bits (the top of a binary32): floats near 2^TOP_EXPONENT, and their exponents two to a word.
//
// An exponent's label is NORMAL_LABEL + its field (1 for subnormals), 0 for a zero: a sum of two labels with a zero
// among them lies below every other. Lanes k and k + 1 are the halves of one word, so that one 32-bit addition makes
// the labels of two products; no half ever carries.
#pragma once
#include "cpu/kernels/operand_decode.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

constexpr i32 TOP_EXPONENT = 59;  // products of two, and sums of them, overflow no float
constexpr i32 NORMAL_LABEL = 256, LEAST_PRODUCT = 2 * NORMAL_LABEL + 2;
constexpr u32 FINITE_LABEL = NORMAL_LABEL + 254;
constexpr i32 LEAST_LABEL = NORMAL_LABEL + 127 - 60;  // of the largest of a row: its scale is a float

// LANES items of a format with a binary32's exponent, not yet scaled.
MMAPROBE_HD I32s top_items(const Decoding d, const void* from, i64 at) {
    if (d.bytes == 2) return I32s(widen(static_cast<const uint16_t*>(from) + at) << 16);
    return load<I32s>(static_cast<const i32*>(from) + at) & i32(~u32(0) << d.padding);
}

// The same with the upper 16 bits 0 or 0x8000 for zeros alone; the lower 16 bits are anything (0 of 16-bit items).
MMAPROBE_HD U32s upper_items(const Decoding d, const void* from, i64 at) {
    if (d.bytes == 2) return U32s(top_items(d, from, at));
    const U32s x = load<U32s>(static_cast<const u32*>(from) + at);
    return x | ((x << 4) & (0xF0000 & ~u32(0) << d.padding << 4));  // at most 11 bits of fraction
}

// Labels of the upper halves of items.
MMAPROBE_HD Halves labels_of(Halves x) {
    const Halves field = (x | 0x8000) >> 7;
#if defined(__AVX512F__)
    const __mmask32 some = _mm512_test_epi16_mask(__m512i(x), _mm512_set1_epi16(0x7FFF));
    return Halves(_mm512_maskz_max_epi16(some, __m512i(field), _mm512_set1_epi16(NORMAL_LABEL + 1)));
#else
    return larger_halves(field, Halves{} + (NORMAL_LABEL + 1)) & ~Halves((x & 0x7FFF) == 0);
#endif
}

// The larger half of each word.
MMAPROBE_HD I32s larger_half(Halves x) {
    const U32s words = U32s(x);
    return larger(I32s(words & 0xFFFF), I32s(words >> 16));
}

// Upper halves of HALVES items in order.
MMAPROBE_HD Halves upper_halves(const Decoding d, const void* from, i64 at) {
    if (d.bytes == 2) return load<Halves>(static_cast<const uint16_t*>(from) + at);
    const U32s low = upper_items(d, from, at), high = upper_items(d, from, at + LANES);
#if defined(__AVX512F__)
    alignas(64) static const uint16_t odd[] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                               33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    return Halves(_mm512_permutex2var_epi16(__m512i(low), _mm512_load_si512(odd), __m512i(high)));
#else
    uint16_t both[HALVES];
    narrow(both, low >> 16);
    narrow(both + LANES, high >> 16);
    return load<Halves>(both);
#endif
}

MMAPROBE_HD I32s bounded_label(I32s largest) { return larger(largest, splat_int(LEAST_LABEL)); }
// 2^(TOP_EXPONENT - exponent) for the exponent of a bounded label.
MMAPROBE_HD F32s scale_of(I32s bounded) { return power_of_two((2 * 127 + TOP_EXPONENT + NORMAL_LABEL) - bounded); }

// x times scale; KEEP: what is no zero stays none, for it may meet an infinity.
template <bool KEEP>
MMAPROBE_HD F32s scaled_item(I32s x, F32s scale) {
    const Difference of = as_difference(x);
    const F32s value = of.sum * scale - of.excess * scale;
    if (!KEEP) return value;
    const I32s size = larger(I32s(value) & 0x7FFFFFFF, splat_int(0x00800000));
    return F32s(choose(where_set(x & 0x7FFFFFFF), size | (x & i32(0x80000000)), x));
}

// Labels of LANES rows of `part`, words [k/2][16], and the largest of each row in offsets; true where one is special.
MMAPROBE_HD bool label_rows(const Decoding d, const void* from, i64 at, int k, int part, i32* words, i32* offsets) {
    Halves most = {};
    for (i64 first = at + part * LANES, end = first + k * ROWS; first < end; first += 2 * ROWS, words += ROWS) {
        const U32s low = upper_items(d, from, first), high = upper_items(d, from, first + ROWS);
        const Halves labels = labels_of(Halves((low >> 16) | (high & 0xFFFF0000)));
        store(words + part * LANES, labels);
        most = larger_halves(most, labels);
    }
    store(offsets + part * LANES, bounded_label(larger_half(most)));
    Seen seen;
    seen.see(most);
    return seen.above(FINITE_LABEL);
}

template <bool KEEP>
MMAPROBE_HD void scale_rows(const Decoding d, const void* from, i64 at, int k, int part, const i32* offsets,
                            float* values) {
    const F32s scale = scale_of(load<I32s>(offsets + part * LANES));
    for (i64 i = part * LANES; i < k * ROWS; i += ROWS)
        store(values + i, scaled_item<KEEP>(top_items(d, from, at + i), scale));
}

// The largest of each group of `width` words, in all its halves; width is a power of two, of LANES at most.
MMAPROBE_HD Halves largest_of_words(Halves x, int width) {
    x = larger_halves(x, Halves((U32s(x) >> 16) | (U32s(x) << 16)));
#if defined(__AVX512F__)
    if (width > 1) x = larger_halves(x, Halves(_mm512_shuffle_epi32(__m512i(x), _MM_PERM_CDAB)));
    if (width > 2) x = larger_halves(x, Halves(_mm512_shuffle_epi32(__m512i(x), _MM_PERM_BADC)));
    if (width > 4) x = larger_halves(x, Halves(_mm512_shuffle_i32x4(__m512i(x), __m512i(x), 0xB1)));
    if (width > 8) x = larger_halves(x, Halves(_mm512_shuffle_i32x4(__m512i(x), __m512i(x), 0x4E)));
#elif defined(__AVX2__)
    if (width > 1) x = larger_halves(x, Halves(_mm256_shuffle_epi32(__m256i(x), 0xB1)));
    if (width > 2) x = larger_halves(x, Halves(_mm256_shuffle_epi32(__m256i(x), 0x4E)));
    if (width > 4) x = larger_halves(x, Halves(_mm256_permute2x128_si256(__m256i(x), __m256i(x), 1)));
#else
    const auto moved = [&](const U32s& y) { return larger_halves(x, Halves(y)); };
    if (width > 1) x = moved(U32s{U32s(x)[1], U32s(x)[0], U32s(x)[3], U32s(x)[2]});
    if (width > 2) x = moved(U32s{U32s(x)[2], U32s(x)[3], U32s(x)[0], U32s(x)[1]});
#endif
    return x;
}

// Labels [column][k] of `items` items and the largest of an item's column, in `tops`: k a power of two, or a multiple
// of HALVES; `from` is readable, and labels and tops are writable, up to a multiple of HALVES. True where one is special.
MMAPROBE_HD bool label_columns(const Decoding d, const char* from, int items, int k, uint16_t* labels, uint16_t* tops) {
    const int stride = k < HALVES ? HALVES : k, width = (k < HALVES ? k : HALVES) / 2;
    Seen seen;
    for (i64 i = 0; i < items; i += stride) {
        Halves most = {};
        for (i64 j = i; j < i + stride; j += HALVES) {
            const Halves found = labels_of(upper_halves(d, from, j));
            store(labels + j, found);
            most = larger_halves(most, found);
        }
        seen.see(most);
        most = largest_of_words(most, width);
        for (i64 j = i; j < i + stride; j += HALVES) store(tops + j, most);
    }
    return seen.above(FINITE_LABEL);
}

template <bool KEEP>
MMAPROBE_HD void scale_columns(const Decoding d, const char* from, int items, const uint16_t* tops, float* values) {
    for (i64 i = 0; i < items; i += LANES) {
        const F32s scale = scale_of(bounded_label(I32s(widen(tops + i))));
        store(values + i, scaled_item<KEEP>(top_items(d, from, i), scale));
    }
}

// The largest labels of products: a's words [k/2][16], b's [column][stride].
template <int STEP>
MMAPROBE_HD void largest_labels(const i32* a, const i32* b, i64 stride, int step, I32s* labels) {
    const int count = (STEP ? STEP : step) / 2;
    Halves most[4] = {};
#pragma GCC unroll 4
    for (int k = 0; k < count; ++k) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            const I32s row = load<I32s>(a + k * ROWS + i % PARTS * LANES),
                       column = splat_int(b[i / PARTS * stride + k]);
            most[i] = larger_halves(most[i], Halves(row + column));
        }
    }
    for (int i = 0; i < 4; ++i) labels[i] = larger_half(most[i]);
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
