// One fused multiply-add of the processor's own, rounded as the name says: a GPU's instruction, or the host's under
// the rounding mode.
#pragma once
#include "compiled_program.hpp"
#if !defined(__CUDACC__)
#include <cfenv>
#endif

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace compiled {

enum class Mode { NEAREST, TOWARDS_ZERO, DOWN, UP };  // as ChainRow::rounding counts

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

MMAPROBE_HD double make_double(u32 high, u32 low) {
    return __builtin_bit_cast(double, u64(high) << 32 | low);
}
MMAPROBE_HD u32 high_word(double x) { return u32(__builtin_bit_cast(u64, x) >> 32); }

}  // namespace compiled
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
