// One fused multiply-add of the processor's own, rounded as the name says: NVIDIA's instruction, the host's under the
// rounding mode, or AMD's, whose mode is set for a whole phase: multiply_add<MODE> only stands between
// begin_rounding<MODE> and end_rounding<MODE>.
#pragma once
#include "compiled_program.hpp"
#if !defined(__CUDACC__) && !defined(__HIP__)
#include <cfenv>
#endif

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace compiled {

#if defined(__CUDA_ARCH__)
template <Mode MODE>
MMAPROBE_HD double multiply_add(double x, double y, double z) {
    return MODE == Mode::NEAREST        ? __fma_rn(x, y, z)
           : MODE == Mode::TOWARDS_ZERO ? __fma_rz(x, y, z)
           : MODE == Mode::DOWN         ? __fma_rd(x, y, z)
                                        : __fma_ru(x, y, z);
}
template <Mode MODE>
MMAPROBE_HD float multiply_add(float x, float y, float z) {
    return MODE == Mode::NEAREST        ? __fmaf_rn(x, y, z)
           : MODE == Mode::TOWARDS_ZERO ? __fmaf_rz(x, y, z)
           : MODE == Mode::DOWN         ? __fmaf_rd(x, y, z)
                                        : __fmaf_ru(x, y, z);
}
MMAPROBE_HD float truncated(double x) { return __double2float_rz(x); }
MMAPROBE_HD int ones(u32 x) { return __popc(x); }
#elif defined(__HIP__)
template <Mode MODE>
MMAPROBE_HD double multiply_add(double x, double y, double z) {
    return __builtin_fma(x, y, z);
}
template <Mode MODE>
MMAPROBE_HD float multiply_add(float x, float y, float z) {
    return __builtin_fmaf(x, y, z);
}
// To binary32 towards zero, by its bits; below the least normal number as many go as the exponent is short of.
MMAPROBE_HD float truncated(double x) {
    const u64 bits = __builtin_bit_cast(u64, x), size = bits & ~u64(0) >> 1;
    const i32 field = i32(size >> 52), short_of = 897 - field;  // of 1023 - 126
    u32 code = u32(size >> 29) - (u32(896) << 23);
    if (short_of > 0) code = short_of < 25 ? (u32(size >> 29) & 0x7FFFFF | 0x800000) >> short_of : 0;
    if (field > 1150) code = 0x7F7FFFFF;
    return __builtin_bit_cast(float, code | u32(bits >> 32) & 0x80000000);
}
MMAPROBE_HD int ones(u32 x) { return __builtin_popcount(x); }
#elif !defined(__CUDACC__)
// Volatile: nothing moves over a change of the rounding mode.
template <class Change>
double rounded(Mode mode, const Change& change) {
    constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    const int before = fegetround();
    fesetround(modes[int(mode)]);
    const volatile double made = change();
    fesetround(before);
    return made;
}
template <Mode MODE>
double multiply_add(double x, double y, double z) {
    volatile double given = x;
    return rounded(MODE, [&] { return __builtin_fma(given, y, z); });
}
template <Mode MODE>
float multiply_add(float x, float y, float z) {
    volatile float given = x;
    return float(rounded(MODE, [&] { return double(__builtin_fmaf(given, y, z)); }));
}
inline float truncated(double x) {
    volatile double given = x;
    return float(rounded(Mode::TOWARDS_ZERO, [&] { return double(float(given)); }));
}
MMAPROBE_HD int ones(u32 x) { return __builtin_popcount(x); }
#endif

// The rounding of binary32 and binary64 in force between the two (AMD: bits 0 to 3 of register 1, MODE).  Operands of
// what is rounded are read from memory after the first, and what becomes of it goes into `counted`, which the second
// waits for: the compiler moves no operation out, folds none, and none of before or after comes in.
#if defined(__HIP__)
template <class Value>
MMAPROBE_HD void wait_for(Value& value) {
    asm volatile("" : "+v"(value)::"memory");
}
template <Mode MODE>
MMAPROBE_HD void begin_rounding() {
    constexpr int numbers[] = {0, 3, 2, 1};
    if constexpr (MODE != Mode::NEAREST)
        asm volatile("s_setreg_imm32_b32 hwreg(1, 0, 4), %0" ::"n"(numbers[int(MODE)] * 5) : "memory");
}
template <Mode MODE, class... Counted>
MMAPROBE_HD void end_rounding(Counted&... counted) {
    if constexpr (MODE != Mode::NEAREST) {
        (wait_for(counted), ...);
        asm volatile("s_setreg_imm32_b32 hwreg(1, 0, 4), 0" ::: "memory");
    }
}
#else
template <Mode>
MMAPROBE_HD void begin_rounding() {}
template <Mode, class... Counted>
MMAPROBE_HD void end_rounding(Counted&...) {}
#endif

// A finite x >= 0 times a power of two, which is exact; of 0 `least`, which is less than any other comes to.
MMAPROBE_HD double scaled(double x, double power, double least) {
#if defined(__CUDA_ARCH__)
    return __fma_rn(x, power, least);
#elif defined(__HIP__)
    return __builtin_fmax(x * power, least);
#else
    return x ? x * power : least;
#endif
}

MMAPROBE_HD double make_double(u32 high, u32 low) { return __builtin_bit_cast(double, u64(high) << 32 | low); }
MMAPROBE_HD u32 high_word(double x) { return u32(__builtin_bit_cast(u64, x) >> 32); }

}  // namespace compiled
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
