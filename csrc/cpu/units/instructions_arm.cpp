// Dot-product and matrix instructions of aarch64, one step each: one execution of the instruction.
//
// The matrix instructions multiply A (2, K) by the transpose of their second source, so B (K, 2) is
// transposed on the way in.  FMMLA is an SVE instruction that works on each 128 bits apart; the low
// 128 bits are used, at any vector length.  So it is of the outer products of SME: 4 x 4 words of ZA
// (2 x 2 doublewords), K items beside one another in each of both sources.
// Source: Arm Architecture Reference Manual, A64.
#include "cpu/units/unit.hpp"

namespace mmaprobe::cpu {

#if defined(__aarch64__)
namespace {

// Entering and leaving streaming mode zeroes every vector and predicate register.
#define STREAMING_CLOBBERS \
    "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", \
        "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "p0", \
        "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15", "x12", \
        "memory"

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

// What ZA is made of in an outer product: a predicate of a row, p0; a load into its first row, x2 of p0; a store of
// that, x3 of p0; how many rows.  The numbers are the words of the instructions beside them, for assemblers that do not
// know SME; the row is their last places.
struct Words {
    static constexpr unsigned row = 0x2598e080;  // ptrue p0.s, vl4
    static constexpr unsigned load = 0xe09f0040;  // ld1w {za0h.s[w12, 0]}, p0/z, [x2]
    static constexpr unsigned store = 0xe0bf0060;  // st1w {za0h.s[w12, 0]}, p0, [x3]
    static constexpr int rows = 4;
};
struct Doublewords {
    static constexpr unsigned row = 0x25d8e040;  // ptrue p0.d, vl2
    static constexpr unsigned load = 0xe0df0040;  // ld1d {za0h.d[w12, 0]}, p0/z, [x2]
    static constexpr unsigned store = 0xe0ff0060;  // st1d {za0h.d[w12, 0]}, p0, [x3]
    static constexpr int rows = 2;
};

// An outer product into ZA, in streaming mode, which ends with the step: nothing but this text may run in it.
template <class Of, unsigned INSTRUCTION>
__attribute__((target("arch=armv8.2-a+sve"))) void outer(const void* a, const void* b, const void* c, void* d) {
    register const void* x0 asm("x0") = a;
    register const void* x1 asm("x1") = b;
    register const void* x2 asm("x2") = c;
    register void* x3 asm("x3") = d;
    asm volatile(
        ".inst 0xd503477f\n\t"  // smstart
        ".inst %c[row]\n\t"
        ".inst 0x2518e121\n\t"  // ptrue p1.b, vl16
        ".inst 0xa400a400\n\t"  // ld1b {z0.b}, p1/z, [x0]
        ".inst 0xa400a421\n\t"  // ld1b {z1.b}, p1/z, [x1]
        "mov w12, wzr\n\t"
        ".inst %c[load]\n\tadd x2, x2, #16\n\t"
        ".inst %c[load] + 1\n\tadd x2, x2, #16\n\t"
        ".if %c[rows] > 2\n\t"
        ".inst %c[load] + 2\n\tadd x2, x2, #16\n\t"
        ".inst %c[load] + 3\n\t"
        ".endif\n\t"
        ".inst %c[instruction]\n\t"  // za0, p1/m, p1/m, z0, z1
        ".inst %c[store]\n\tadd x3, x3, #16\n\t"
        ".inst %c[store] + 1\n\tadd x3, x3, #16\n\t"
        ".if %c[rows] > 2\n\t"
        ".inst %c[store] + 2\n\tadd x3, x3, #16\n\t"
        ".inst %c[store] + 3\n\t"
        ".endif\n\t"
        ".inst 0xd503467f"  // smstop
        : "+r"(x2), "+r"(x3)
        : "r"(x0), "r"(x1), [instruction] "i"(INSTRUCTION), [row] "i"(Of::row), [load] "i"(Of::load),
          [store] "i"(Of::store), [rows] "i"(Of::rows)
        : STREAMING_CLOBBERS);
}

// A step of 4 x 4 results of items T, with B (K, 4) transposed to (4, K).
template <class T, decltype(Unit::step) Step>
void outer_of(const void* a, const void* b, const void* c, void* d) {
    constexpr int k = 4 / sizeof(T);
    T columns[4 * k];
    for (int i = 0; i < k; ++i)
        for (int j = 0; j < 4; ++j) columns[j * k + i] = static_cast<const T*>(b)[i * 4 + j];
    Step(a, columns, c, d);
}

constexpr Unit outer_tile(const char* id, const char* features, decltype(Unit::step) step) {
    return {id, features, 1, 16, 16, 64, 64, step};
}
constexpr Unit outer_double(const char* id, decltype(Unit::step) step) {
    return {id, "sme-f64f64", 1, 16, 16, 32, 32, step};
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
        outer_tile("arm.fmopa.f32", "sme-f32f32", outer_of<std::uint32_t, outer<Words, 0x80812400>>),
        outer_tile("arm.fmopa.f32{neg_a}", "sme-f32f32", outer_of<std::uint32_t, outer<Words, 0x80812410>>),
        outer_tile("arm.fmopa.f16", "sme-f16f32", outer_of<std::uint16_t, outer<Words, 0x81a12400>>),
        outer_tile("arm.fmopa.f16{neg_a}", "sme-f16f32", outer_of<std::uint16_t, outer<Words, 0x81a12410>>),
        outer_tile("arm.bfmopa", "sme-b16f32", outer_of<std::uint16_t, outer<Words, 0x81812400>>),
        outer_tile("arm.bfmopa{neg_a}", "sme-b16f32", outer_of<std::uint16_t, outer<Words, 0x81812410>>),
        outer_double("arm.fmopa.f64", outer<Doublewords, 0x80c12400>),
        outer_double("arm.fmopa.f64{neg_a}", outer<Doublewords, 0x80c12410>),
        outer_tile("arm.smopa", "sme-i8i32", outer_of<std::uint8_t, outer<Words, 0xa0812400>>),
        outer_tile("arm.umopa", "sme-i8i32", outer_of<std::uint8_t, outer<Words, 0xa1a12400>>),
        outer_tile("arm.sumopa", "sme-i8i32", outer_of<std::uint8_t, outer<Words, 0xa0a12400>>),
        outer_tile("arm.usmopa", "sme-i8i32", outer_of<std::uint8_t, outer<Words, 0xa1812400>>),
    };
}

#else
std::vector<Unit> arm_units() { return {}; }
#endif

}  // namespace mmaprobe::cpu
