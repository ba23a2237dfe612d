// Lanes: one template text for a GPU thread (a lane is uint32_t) and for a SIMD register of them.
//
// U is uint32_t or a vector of uint32_t. Conditions are masks, all ones or zero in each lane.
#pragma once
#include "types.hpp"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace mmaprobe {
namespace MMAPROBE_BUILD {

using u32 = uint32_t;
using i32 = int32_t;

#if !defined(__CUDACC__) && !defined(__HIP__)
#if defined(__AVX512F__)
constexpr int LANES = 16;
#elif defined(__AVX2__)
constexpr int LANES = 8;
#else
constexpr int LANES = 4;
#endif
typedef u32 U32s __attribute__((vector_size(4 * LANES)));
typedef i32 I32s __attribute__((vector_size(4 * LANES)));
#endif

template <class U>
struct Signed;
template <>
struct Signed<u32> {
    using type = i32;
};
#if !defined(__CUDACC__) && !defined(__HIP__)
template <>
struct Signed<U32s> {
    using type = I32s;
};
MMAPROBE_HD U32s splat(U32s, u32 x) { return x - U32s{}; }
MMAPROBE_HD U32s less(U32s x, U32s y) { return U32s(x < y); }
MMAPROBE_HD U32s less_signed(U32s x, U32s y) { return U32s(I32s(x) < I32s(y)); }
MMAPROBE_HD U32s equal(U32s x, U32s y) { return U32s(x == y); }
MMAPROBE_HD U32s shift_signed(U32s x, int n) { return U32s(I32s(x) >> n); }
#if defined(__AVX512F__)
MMAPROBE_HD bool any(U32s x) { return _mm512_test_epi32_mask(__m512i(x), __m512i(x)) != 0; }
#elif defined(__AVX2__)
MMAPROBE_HD bool any(U32s x) { return !_mm256_testz_si256(__m256i(x), __m256i(x)); }
#else
MMAPROBE_HD bool any(U32s x) {
    u64 out = 0;
    for (int i = 0; i < LANES; ++i) out |= x[i];
    return out != 0;
}
#endif
#endif
MMAPROBE_HD u32 splat(u32, u32 x) { return x; }
MMAPROBE_HD u32 less(u32 x, u32 y) { return x < y ? ~u32(0) : 0; }
MMAPROBE_HD u32 less_signed(u32 x, u32 y) { return i32(x) < i32(y) ? ~u32(0) : 0; }
MMAPROBE_HD u32 equal(u32 x, u32 y) { return x == y ? ~u32(0) : 0; }
MMAPROBE_HD u32 shift_signed(u32 x, int n) { return u32(i32(x) >> n); }
MMAPROBE_HD bool any(u32 x) { return x != 0; }
MMAPROBE_HD u32 mask_of(bool x) { return 0 - u32(x); }

template <class U>
MMAPROBE_HD U splat(u32 x) {
    return splat(U{}, x);
}
template <class U>
MMAPROBE_HD U pick(U mask, U x, U y) {
    return (x & mask) | (y & ~mask);
}
template <class U>
MMAPROBE_HD U larger_signed(U x, U y) {
    return pick(less_signed(x, y), y, x);
}

// x >> n for any n >= 0: nothing is left from 32 on.
template <class U>
MMAPROBE_HD U shift_right(U x, U n) {
    return (x >> (n & 31)) & less(n, splat<U>(32));
}
#if defined(__AVX512F__)
MMAPROBE_HD U32s shift_right(U32s x, U32s n) { return U32s(_mm512_srlv_epi32(__m512i(x), __m512i(n))); }
#elif defined(__AVX2__)
MMAPROBE_HD U32s shift_right(U32s x, U32s n) { return U32s(_mm256_srlv_epi32(__m256i(x), __m256i(n))); }
#endif

// Leading zeros; 32 for zero.
template <class U>
MMAPROBE_HD U leading_zeros(U x) {
    U n = splat<U>(0);
    for (int step = 16; step; step >>= 1) {
        const U empty = less(x, splat<U>(u32(1) << (32 - step)));
        n += empty & splat<U>(u32(step));
        x = pick(empty, x << step, x);
    }
    return n + (equal(x, splat<U>(0)) & splat<U>(1));
}
#if defined(__AVX512CD__)
MMAPROBE_HD U32s leading_zeros(U32s x) { return U32s(_mm512_lzcnt_epi32(__m512i(x))); }
#endif

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
