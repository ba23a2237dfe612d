// Dot-product and matrix instructions of aarch64, one step each: one execution of the instruction.
//
// The matrix instructions multiply A (2, K) by the transpose of their second source, so B (K, 2) is
// transposed on the way in.  FMMLA is an SVE instruction that works on each 128 bits apart; the low
// 128 bits are used, at any vector length.  Source: Arm Architecture Reference Manual, A64.
#include "cpu/units/unit.hpp"

namespace mmaprobe::cpu {

#if defined(__aarch64__)
namespace {

typedef unsigned char Register __attribute__((vector_size(16), aligned(1), may_alias));

// acc = acc + a . b on registers: first source a, second source b, destination c and d.
#define ACCUMULATE(NAME, TARGET, CODE) \
    __attribute__((target(TARGET))) void NAME(const void* a, const void* b, const void* c, void* d) { \
        const Register x = *static_cast<const Register*>(a), y = *static_cast<const Register*>(b); \
        Register sum = *static_cast<const Register*>(c); \
        asm volatile(CODE : "+w"(sum) : "w"(x), "w"(y)); \
        *static_cast<Register*>(d) = sum; \
    }

ACCUMULATE(bfdot, "arch=armv8.2-a+bf16", "bfdot %0.4s, %1.8h, %2.8h")
ACCUMULATE(bfmmla, "arch=armv8.2-a+bf16", "bfmmla %0.4s, %1.8h, %2.8h")
ACCUMULATE(sdot, "arch=armv8.2-a+dotprod", "sdot %0.4s, %1.16b, %2.16b")
ACCUMULATE(udot, "arch=armv8.2-a+dotprod", "udot %0.4s, %1.16b, %2.16b")
ACCUMULATE(smmla, "arch=armv8.2-a+i8mm", "smmla %0.4s, %1.16b, %2.16b")
ACCUMULATE(ummla, "arch=armv8.2-a+i8mm", "ummla %0.4s, %1.16b, %2.16b")
ACCUMULATE(usmmla, "arch=armv8.2-a+i8mm", "usmmla %0.4s, %1.16b, %2.16b")

__attribute__((target("arch=armv8.2-a+sve+f32mm"))) void fmmla(const void* a, const void* b, const void* c, void* d) {
    asm volatile(
        "ptrue p0.s, vl4\n\t"
        "ld1w {z0.s}, p0/z, [%2]\n\t"
        "ld1w {z1.s}, p0/z, [%0]\n\t"
        "ld1w {z2.s}, p0/z, [%1]\n\t"
        "fmmla z0.s, z1.s, z2.s\n\t"
        "st1w {z0.s}, p0, [%3]" ::"r"(a),
        "r"(b), "r"(c), "r"(d)
        : "v0", "v1", "v2", "p0", "memory");
}

// A matrix instruction of 2 x 2 results with B (K, 2) transposed to (2, K); items of type T, 16 bytes in all.
template <class T, decltype(Unit::step) Step>
void matrix(const void* a, const void* b, const void* c, void* d) {
    constexpr int k = 8 / sizeof(T);
    T columns[2 * k];
    for (int i = 0; i < k; ++i)
        for (int j = 0; j < 2; ++j) columns[j * k + i] = static_cast<const T*>(b)[i * 2 + j];
    Step(a, columns, c, d);
}

constexpr Unit words(const char* id, const char* features, decltype(Unit::step) step) {
    return {id, features, 4, 4, 4, 4, 4, step};
}
constexpr Unit tile(const char* id, const char* features, decltype(Unit::step) step) {
    return {id, features, 1, 16, 16, 16, 16, step};
}

}  // namespace

std::vector<Unit> arm_units() {
    return {
        words("arm.bfdot", "bf16", bfdot),
        tile("arm.bfmmla", "bf16", matrix<std::uint16_t, bfmmla>),
        tile("arm.fmmla", "sve f32mm", matrix<std::uint32_t, fmmla>),
        words("arm.sdot", "dotprod", sdot),
        words("arm.udot", "dotprod", udot),
        tile("arm.smmla", "i8mm", matrix<std::uint8_t, smmla>),
        tile("arm.ummla", "i8mm", matrix<std::uint8_t, ummla>),
        tile("arm.usmmla", "i8mm", matrix<std::uint8_t, usmmla>),
    };
}

#else
std::vector<Unit> arm_units() { return {}; }
#endif

}  // namespace mmaprobe::cpu
