// Integers of 64, 128 and more bits under one set of names, without any library.
//
// A magnitude type W offers: width<W>(), make<W>(uint64), length (bits), shl, shr, any_below,
// is_zero, is_negative (two's complement), low (the low 64 bits), and + - on itself.
// Shift counts are 0 <= n < width<W>() unless said otherwise.
#pragma once
#if !defined(__CUDACC_RTC__) && !defined(__HIP__)
#include <stdint.h>
#endif
#if defined(__AVX512CD__)
#include <immintrin.h>
#endif

#if defined(__HIP__)  // without HIP's headers, which give these attributes names
#define MMAPROBE_HD __attribute__((host, device, always_inline)) inline
#define MMAPROBE_CALL __attribute__((host, device, noinline))
#define MMAPROBE_CONSTANT __attribute__((device)) constexpr
#define MMAPROBE_APART MMAPROBE_HD  // few threads come here; a call would keep registers for whatever is called
#define MMAPROBE_INLINED __attribute__((always_inline))  // a lambda, or what it captures goes to memory
#elif defined(__CUDACC__)
#define MMAPROBE_HD __host__ __device__ __forceinline__
#define MMAPROBE_CALL __host__ __device__ __noinline__  // in one function the interpreter takes minutes to compile
#define MMAPROBE_CONSTANT __device__ constexpr          // an object that device code reads
#define MMAPROBE_APART MMAPROBE_CALL  // few threads come here
#define MMAPROBE_INLINED
#else
#ifndef MMAPROBE_HD  // given where a quick build matters more than quick code
#define MMAPROBE_HD inline __attribute__((always_inline))  // what inner loops are made of
#endif
#define MMAPROBE_CALL inline                               // one call a chunk
#define MMAPROBE_CONSTANT constexpr
#define MMAPROBE_APART MMAPROBE_CALL
#define MMAPROBE_INLINED
#endif
// Loops of a GPU's thread: passes side by side, a few of them, or one copy of the code, or one where few threads come.
#if defined(__CUDACC__) || defined(__HIP__)
#define MMAPROBE_UNROLLED _Pragma("unroll")
#if defined(__HIP__)  // whose scheduler loads everything first
#define MMAPROBE_STEPPED _Pragma("unroll 8")
#else
#define MMAPROBE_STEPPED MMAPROBE_UNROLLED
#endif
#define MMAPROBE_ROLLED _Pragma("unroll 1")
#define MMAPROBE_SELDOM _Pragma("unroll 1")
#else
#define MMAPROBE_UNROLLED
#define MMAPROBE_STEPPED
#define MMAPROBE_ROLLED
#define MMAPROBE_SELDOM
#endif
// A loop over vectors whose passes are independent, even where an operation works in place.
#if defined(__CUDACC__) || defined(__HIP__)
#define MMAPROBE_EACH(i, count) for (int i = 0; i < (count); ++i)
#elif defined(__clang__)
#define MMAPROBE_EACH(i, count) _Pragma("clang loop vectorize(assume_safety)") for (int i = 0; i < (count); ++i)
#else
#define MMAPROBE_EACH(i, count) _Pragma("GCC ivdep") for (int i = 0; i < (count); ++i)
#endif
#ifndef MMAPROBE_BUILD  // the name of this build's namespace: one compilation an instruction set
#define MMAPROBE_BUILD baseline
#endif

namespace mmaprobe {
namespace MMAPROBE_BUILD {

#if defined(__CUDACC_RTC__) || defined(__HIP__)  // in here: hiprtc may have its own outside
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef int int32_t;
typedef unsigned long long uint64_t;
typedef long long int64_t;
#endif
using i64 = int64_t;
using u64 = uint64_t;
using u128 = unsigned __int128;

constexpr i64 NO_LABEL = -(i64(1) << 40);

#if defined(__CUDA_ARCH__)
MMAPROBE_HD int count_bits(u64 x) { return 64 - __clzll(x); }
#else
MMAPROBE_HD int count_bits(u64 x) { return x ? 64 - __builtin_clzll(x) : 0; }
#endif
MMAPROBE_HD i64 larger(i64 x, i64 y) { return x > y ? x : y; }
MMAPROBE_HD i64 smaller(i64 x, i64 y) { return x < y ? x : y; }
MMAPROBE_HD i64 saturated(i64 x, i64 most) { return smaller(larger(x, -most - 1), most); }

// An unsigned integer of 64 * N bits, little-endian limbs.
template <int N>
struct Limbs {
    u64 limb[N];
};

template <class W>
struct Traits;
template <>
struct Traits<u64> {
    static constexpr int width = 64;
    static MMAPROBE_HD u64 product(u64 x, u64 y) { return x * y; }
};
template <>
struct Traits<u128> {
    static constexpr int width = 128;
    static MMAPROBE_HD u128 product(u64 x, u64 y) { return u128(x) * y; }
};
template <int N>
struct Traits<Limbs<N>> {
    static constexpr int width = 64 * N;
    static MMAPROBE_HD Limbs<N> product(u64 x, u64 y) {
        Limbs<N> out{};
        u128 p = u128(x) * y;
        out.limb[0] = u64(p);
        out.limb[1] = u64(p >> 64);
        return out;
    }
};

template <class W>
MMAPROBE_HD W make(u64 x) {
    return Traits<W>::product(x, 1);
}

MMAPROBE_HD int length(u64 x) { return count_bits(x); }
MMAPROBE_HD int length(u128 x) { return (x >> 64) ? 64 + count_bits(u64(x >> 64)) : count_bits(u64(x)); }
MMAPROBE_HD u64 shl(u64 x, i64 n) { return x << n; }
MMAPROBE_HD u128 shl(u128 x, i64 n) { return x << n; }
MMAPROBE_HD u64 shr(u64 x, i64 n) { return x >> n; }
MMAPROBE_HD u128 shr(u128 x, i64 n) { return x >> n; }
MMAPROBE_HD u64 any_below(u64 x, i64 n) { return x >> n << n != x ? 1 : 0; }
MMAPROBE_HD u64 any_below(u128 x, i64 n) { return x >> n << n != x ? 1 : 0; }
MMAPROBE_HD bool is_zero(u64 x) { return x == 0; }
MMAPROBE_HD bool is_zero(u128 x) { return x == 0; }
MMAPROBE_HD u64 is_negative(u64 x) { return x >> 63; }
MMAPROBE_HD u64 is_negative(u128 x) { return u64(x >> 127); }
MMAPROBE_HD u64 low(u64 x) { return x; }
MMAPROBE_HD u64 low(u128 x) { return u64(x); }
MMAPROBE_HD u64 times(u64 x, u64 y) { return x * y; }
MMAPROBE_HD u128 times(u128 x, u64 y) { return x * y; }

template <int N>
MMAPROBE_HD int length(const Limbs<N>& x) {
    for (int i = N - 1; i >= 0; --i)
        if (x.limb[i]) return 64 * i + count_bits(x.limb[i]);
    return 0;
}
template <int N>
MMAPROBE_HD Limbs<N> shl(const Limbs<N>& x, i64 n) {
    Limbs<N> out{};
    const int whole = int(n >> 6), part = int(n & 63);
    for (int i = N - 1; i >= whole; --i) {
        out.limb[i] = x.limb[i - whole] << part;
        if (part && i > whole) out.limb[i] |= x.limb[i - whole - 1] >> (64 - part);
    }
    return out;
}
template <int N>
MMAPROBE_HD Limbs<N> shr(const Limbs<N>& x, i64 n) {
    Limbs<N> out{};
    const int whole = int(n >> 6), part = int(n & 63);
    for (int i = 0; i + whole < N; ++i) {
        out.limb[i] = x.limb[i + whole] >> part;
        if (part && i + whole + 1 < N) out.limb[i] |= x.limb[i + whole + 1] << (64 - part);
    }
    return out;
}
template <int N>
MMAPROBE_HD u64 any_below(const Limbs<N>& x, i64 n) {
    const int whole = int(n >> 6), part = int(n & 63);
    for (int i = 0; i < whole; ++i)
        if (x.limb[i]) return 1;
    return part ? any_below(x.limb[whole], part) : 0;
}
template <int N>
MMAPROBE_HD bool is_zero(const Limbs<N>& x) {
    u64 all = 0;
    for (int i = 0; i < N; ++i) all |= x.limb[i];
    return all == 0;
}
template <int N>
MMAPROBE_HD u64 is_negative(const Limbs<N>& x) {
    return x.limb[N - 1] >> 63;
}
template <int N>
MMAPROBE_HD u64 low(const Limbs<N>& x) {
    return x.limb[0];
}
template <int N>
MMAPROBE_HD Limbs<N> operator+(const Limbs<N>& x, const Limbs<N>& y) {
    Limbs<N> out;
    u128 carry = 0;
    for (int i = 0; i < N; ++i) {
        carry += u128(x.limb[i]) + y.limb[i];
        out.limb[i] = u64(carry);
        carry >>= 64;
    }
    return out;
}
template <int N>
MMAPROBE_HD Limbs<N> operator-(const Limbs<N>& x, const Limbs<N>& y) {
    Limbs<N> out;
    u64 borrow = 0;
    for (int i = 0; i < N; ++i) {
        const u128 d = u128(x.limb[i]) - y.limb[i] - borrow;
        out.limb[i] = u64(d);
        borrow = u64(d >> 64) & 1;
    }
    return out;
}
template <int N>
MMAPROBE_HD Limbs<N> times(const Limbs<N>& x, u64 y) {
    Limbs<N> out;
    u128 carry = 0;
    for (int i = 0; i < N; ++i) {
        carry += u128(x.limb[i]) * y;
        out.limb[i] = u64(carry);
        carry >>= 64;
    }
    return out;
}

// Bit lengths of an array.
template <class W>
MMAPROBE_HD void lengths(const W* x, i64* n, int count) {
    MMAPROBE_EACH(i, count) n[i] = length(x[i]);
}
#if defined(__AVX512CD__)
MMAPROBE_HD void lengths(const u64* x, i64* n, int count) {
    int i = 0;
    for (; i + 8 <= count; i += 8)
        _mm512_storeu_si512(n + i,
                            _mm512_sub_epi64(_mm512_set1_epi64(64), _mm512_lzcnt_epi64(_mm512_loadu_si512(x + i))));
    for (; i < count; ++i) n[i] = length(x[i]);
}
#endif

// value / 2^shift, rounded by a truth table over (negative, odd, half bit, rest): see models/program.py.
// Needs x < 2^(width-1); a shift of 0 or less leaves x as it is.
template <class W>
MMAPROBE_HD W round_right(const W& x, i64 shift, u64 negative, u64 table) {
    const i64 n = larger(smaller(shift, Traits<W>::width), 1) - 1;
    const W t = shr(x, n);
    const u64 row = negative << 3 | (low(t) & 2) << 1 | (low(t) & 1) << 1 | any_below(x, n);
    const W kept = shr(t, 1) + make<W>(table >> row & 1);
    return shift > 0 ? kept : x;
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
