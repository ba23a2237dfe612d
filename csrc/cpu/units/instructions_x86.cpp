// Lane-wise dot-product instructions of x86-64, one step each: one execution of the instruction.
//
// The instruction itself is volatile asm, so that no compiler folds it or moves it out of the
// control register's scope.  Sources: Intel 64 and IA-32 Architectures Software Developer's Manual,
// volume 2; AMD64 Architecture Programmer's Manual, volumes 4 and 6.
#include "cpu/units/unit.hpp"

#include <cstring>

namespace mmaprobe::cpu {

#if defined(__x86_64__)
namespace {

template <int bytes>
struct Register {
    typedef unsigned char type __attribute__((vector_size(bytes), aligned(1), may_alias));
};
using Xmm = Register<16>::type;
using Ymm = Register<32>::type;
using Zmm = Register<64>::type;

// acc = acc + a . b with three operands: first source a, second source b, destination c and d.
#define ACCUMULATE(NAME, TARGET, VECTOR, MNEMONIC) \
    __attribute__((target(TARGET))) void NAME(const void* a, const void* b, const void* c, void* d) { \
        const VECTOR x = *static_cast<const VECTOR*>(a), y = *static_cast<const VECTOR*>(b); \
        VECTOR sum = *static_cast<const VECTOR*>(c); \
        asm volatile(MNEMONIC " %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y)); \
        *static_cast<VECTOR*>(d) = sum; \
    }
// The legacy two-operand forms without accumulator: destination and first source a, second b.
#define COMBINE(NAME, TARGET, CODE, BYTES) \
    __attribute__((target(TARGET))) void NAME(const void* a, const void* b, const void*, void* d) { \
        Xmm x = *static_cast<const Xmm*>(a); \
        const Xmm y = *static_cast<const Xmm*>(b); \
        asm volatile(CODE " %1, %0" : "+x"(x) : "x"(y)); \
        std::memcpy(d, &x, BYTES); \
    }

// What this build's compiler is too old for has no step.
#if defined(MMAPROBE_WITHOUT_AVX512BF16)
constexpr decltype(Unit::step) vdpbf16ps_128 = nullptr, vdpbf16ps_256 = nullptr, vdpbf16ps_512 = nullptr;
#else
ACCUMULATE(vdpbf16ps_128, "avx512bf16,avx512vl", Xmm, "vdpbf16ps")
ACCUMULATE(vdpbf16ps_256, "avx512bf16,avx512vl", Ymm, "vdpbf16ps")
ACCUMULATE(vdpbf16ps_512, "avx512bf16,avx512f", Zmm, "vdpbf16ps")
#endif

// Form 231: destination = first source * second source + destination, so a and b are the
// multiplicands and c the addend; the form decides which NaN operand wins.
ACCUMULATE(vfmadd_f32, "fma", Xmm, "vfmadd231ps")
ACCUMULATE(vfmadd_f64, "fma", Xmm, "vfmadd231pd")
#if defined(MMAPROBE_WITHOUT_AVX512FP16)
constexpr decltype(Unit::step) vfmadd_f16 = nullptr;
#else
ACCUMULATE(vfmadd_f16, "avx512fp16,avx512vl", Xmm, "vfmadd231ph")
#endif

ACCUMULATE(vpdpbusd_128, "avx512vnni,avx512vl", Xmm, "vpdpbusd")
ACCUMULATE(vpdpbusd_256, "avx512vnni,avx512vl", Ymm, "vpdpbusd")
ACCUMULATE(vpdpbusd_512, "avx512vnni,avx512f", Zmm, "vpdpbusd")
ACCUMULATE(vpdpbusds_128, "avx512vnni,avx512vl", Xmm, "vpdpbusds")
ACCUMULATE(vpdpbusds_256, "avx512vnni,avx512vl", Ymm, "vpdpbusds")
ACCUMULATE(vpdpbusds_512, "avx512vnni,avx512f", Zmm, "vpdpbusds")
ACCUMULATE(vpdpwssd_128, "avx512vnni,avx512vl", Xmm, "vpdpwssd")
ACCUMULATE(vpdpwssd_256, "avx512vnni,avx512vl", Ymm, "vpdpwssd")
ACCUMULATE(vpdpwssd_512, "avx512vnni,avx512f", Zmm, "vpdpwssd")
ACCUMULATE(vpdpwssds_128, "avx512vnni,avx512vl", Xmm, "vpdpwssds")
ACCUMULATE(vpdpwssds_256, "avx512vnni,avx512vl", Ymm, "vpdpwssds")
ACCUMULATE(vpdpwssds_512, "avx512vnni,avx512f", Zmm, "vpdpwssds")

#if defined(MMAPROBE_WITHOUT_AVXVNNI)
constexpr decltype(Unit::step) vex_vpdpbusd_128 = nullptr, vex_vpdpbusd_256 = nullptr, vex_vpdpbusds_128 = nullptr,
                               vex_vpdpbusds_256 = nullptr, vex_vpdpwssd_128 = nullptr, vex_vpdpwssd_256 = nullptr,
                               vex_vpdpwssds_128 = nullptr, vex_vpdpwssds_256 = nullptr;
#else
ACCUMULATE(vex_vpdpbusd_128, "avxvnni", Xmm, "%{vex%} vpdpbusd")
ACCUMULATE(vex_vpdpbusd_256, "avxvnni", Ymm, "%{vex%} vpdpbusd")
ACCUMULATE(vex_vpdpbusds_128, "avxvnni", Xmm, "%{vex%} vpdpbusds")
ACCUMULATE(vex_vpdpbusds_256, "avxvnni", Ymm, "%{vex%} vpdpbusds")
ACCUMULATE(vex_vpdpwssd_128, "avxvnni", Xmm, "%{vex%} vpdpwssd")
ACCUMULATE(vex_vpdpwssd_256, "avxvnni", Ymm, "%{vex%} vpdpwssd")
ACCUMULATE(vex_vpdpwssds_128, "avxvnni", Xmm, "%{vex%} vpdpwssds")
ACCUMULATE(vex_vpdpwssds_256, "avxvnni", Ymm, "%{vex%} vpdpwssds")
#endif

// Immediate: every product taken (0xf., 0x3.), the sum written to element 0 (0x.1).
COMBINE(dpps, "sse4.1", "dpps $0xf1,", 4)
COMBINE(dppd, "sse4.1", "dppd $0x31,", 8)
COMBINE(pmaddubsw, "ssse3", "pmaddubsw", 16)
COMBINE(pmaddwd, "sse2", "pmaddwd", 16)

// Items of 32 bits (a, b and c alike), as many as the register holds.
constexpr Unit words(const char* id, const char* features, int width, decltype(Unit::step) step) {
    return {id, features, width / 32, 4, 4, 4, 4, step};
}

}  // namespace

std::vector<Unit> x86_units() {
    const char *bf16 = "avx512bf16 avx512vl", *bf16_512 = "avx512bf16 avx512f";
    const char *vnni = "avx512vnni avx512vl", *vnni_512 = "avx512vnni avx512f", *vex = "avxvnni";
    return {
        words("x86.vdpbf16ps", bf16, 128, vdpbf16ps_128),
        words("x86.vdpbf16ps{width=256}", bf16, 256, vdpbf16ps_256),
        words("x86.vdpbf16ps{width=512}", bf16_512, 512, vdpbf16ps_512),
        {"x86.dpps", "sse4.1", 1, 16, 16, 0, 4, dpps},
        {"x86.dppd", "sse4.1", 1, 16, 16, 0, 8, dppd},
        words("x86.vfmadd.f32", "fma", 128, vfmadd_f32),
        {"x86.vfmadd.f64", "fma", 2, 8, 8, 8, 8, vfmadd_f64},
        {"x86.vfmadd.f16", "avx512fp16 avx512vl", 8, 2, 2, 2, 2, vfmadd_f16},
        words("x86.vpdpbusd", vnni, 128, vpdpbusd_128),
        words("x86.vpdpbusd{width=256}", vnni, 256, vpdpbusd_256),
        words("x86.vpdpbusd{width=512}", vnni_512, 512, vpdpbusd_512),
        words("x86.vpdpbusds", vnni, 128, vpdpbusds_128),
        words("x86.vpdpbusds{width=256}", vnni, 256, vpdpbusds_256),
        words("x86.vpdpbusds{width=512}", vnni_512, 512, vpdpbusds_512),
        words("x86.vpdpwssd", vnni, 128, vpdpwssd_128),
        words("x86.vpdpwssd{width=256}", vnni, 256, vpdpwssd_256),
        words("x86.vpdpwssd{width=512}", vnni_512, 512, vpdpwssd_512),
        words("x86.vpdpwssds", vnni, 128, vpdpwssds_128),
        words("x86.vpdpwssds{width=256}", vnni, 256, vpdpwssds_256),
        words("x86.vpdpwssds{width=512}", vnni_512, 512, vpdpwssds_512),
        words("x86.vpdpbusd", vex, 128, vex_vpdpbusd_128),
        words("x86.vpdpbusd{width=256}", vex, 256, vex_vpdpbusd_256),
        words("x86.vpdpbusds", vex, 128, vex_vpdpbusds_128),
        words("x86.vpdpbusds{width=256}", vex, 256, vex_vpdpbusds_256),
        words("x86.vpdpwssd", vex, 128, vex_vpdpwssd_128),
        words("x86.vpdpwssd{width=256}", vex, 256, vex_vpdpwssd_256),
        words("x86.vpdpwssds", vex, 128, vex_vpdpwssds_128),
        words("x86.vpdpwssds{width=256}", vex, 256, vex_vpdpwssds_256),
        {"x86.pmaddubsw", "ssse3", 8, 2, 2, 0, 2, pmaddubsw},
        {"x86.pmaddwd", "sse2", 4, 4, 4, 0, 4, pmaddwd},
    };
}

#else
std::vector<Unit> x86_units() { return {}; }
#endif

}  // namespace mmaprobe::cpu
