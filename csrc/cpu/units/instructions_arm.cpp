// Dot-product and matrix instructions of aarch64, one step each: one execution of the instruction.
//
// The matrix instructions multiply A (2, K) by the transpose of their second source, so B (K, 2) is
// transposed on the way in.  FMMLA of f32 and the dot products of 16 bits to 64 are SVE instructions,
// which work on each 128 or 64 bits apart; the low 128 bits are used, at any vector length.  So it is
// of the outer products of SME: 4 x 4 words of ZA (2 x 2 doublewords, 8 x 8 halves), K items beside
// one another in each of both sources.
// Of SME2's dot products the first vector of several is used, of its vertical ones all of them.
// Source: Arm Architecture Reference Manual, A64.
#include <cstring>
#include <list>
#include <string>
#include <type_traits>
#include <utility>

#include "cpu/units/unit.hpp"

namespace mmaprobe::cpu {

#if defined(__aarch64__)
namespace {

// Entering and leaving streaming mode zeroes every vector and predicate register.
#define STREAMING_CLOBBERS \
    "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", \
        "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "p0", \
        "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15", "x8", "x12", \
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
ACCUMULATE(usdot, "arch=armv8.2-a+i8mm", "usdot %0.4s, %1.16b, %2.16b")
ACCUMULATE(bfdot_by_element, "arch=armv8.2-a+bf16", "bfdot %0.4s, %1.8h, %2.2h[0]")
ACCUMULATE(sdot_by_element, "arch=armv8.2-a+dotprod", "sdot %0.4s, %1.16b, %2.4b[0]")
ACCUMULATE(udot_by_element, "arch=armv8.2-a+dotprod", "udot %0.4s, %1.16b, %2.4b[0]")
ACCUMULATE(usdot_by_element, "arch=armv8.2-a+i8mm", "usdot %0.4s, %1.16b, %2.4b[0]")
ACCUMULATE(sudot_by_element, "arch=armv8.2-a+i8mm", "sudot %0.4s, %1.16b, %2.4b[0]")
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

// Dot products of four items of 16 bits into doublewords: d in z0, a in z1, b in z2.
template <unsigned INSTRUCTION>
__attribute__((target("arch=armv8.2-a+sve"))) void wide_dots(const void* a, const void* b, const void* c, void* d) {
    asm volatile(
        "ptrue p0.d, vl2\n\t"
        "ld1d {z0.d}, p0/z, [%2]\n\t"
        "ld1d {z1.d}, p0/z, [%0]\n\t"
        "ld1d {z2.d}, p0/z, [%1]\n\t"
        ".inst %c[instruction]\n\t"
        "st1d {z0.d}, p0, [%3]" ::"r"(a),
        "r"(b), "r"(c), "r"(d), [instruction] "i"(INSTRUCTION)
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
struct Halves {
    static constexpr unsigned row = 0x2558e100;  // ptrue p0.h, vl8
    static constexpr unsigned load = 0xe05f0040;  // ld1h {za0h.h[w12, 0]}, p0/z, [x2]
    static constexpr unsigned store = 0xe07f0060;  // st1h {za0h.h[w12, 0]}, p0, [x3]
    static constexpr int rows = 8;
};
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

constexpr unsigned no_fp8 = ~0u;  // FPMR stays as it is: machines without FP8 have none

// FPMR = x9, of a form of FP8; entering streaming mode makes it 0.
#define SET_FPMR \
    ".if %c[fpmr] != -1\n\t" \
    ".inst 0xd51b4449\n\t" /* msr fpmr, x9 */ \
    ".endif\n\t"

// Rows 0 to 7 of ZA, as far as there are, each from the next 16 bytes or to them.
#define ZA_ROW(WORD, POINTER, ROW) \
    ".if %c[rows] > " #ROW \
    "\n\t" \
    ".inst %c[" WORD "] + " #ROW "\n\tadd " POINTER ", " POINTER \
    ", #16\n\t" \
    ".endif\n\t"
#define ZA_ROWS(WORD, POINTER) \
    ZA_ROW(WORD, POINTER, 0) \
    ZA_ROW(WORD, POINTER, 1) \
    ZA_ROW(WORD, POINTER, 2) \
    ZA_ROW(WORD, POINTER, 3) \
    ZA_ROW(WORD, POINTER, 4) ZA_ROW(WORD, POINTER, 5) ZA_ROW(WORD, POINTER, 6) ZA_ROW(WORD, POINTER, 7)

// An outer product into ZA, in streaming mode, which ends with the step: nothing but this text may run in it.
template <class Of, unsigned INSTRUCTION, unsigned FPMR = no_fp8>
__attribute__((target("arch=armv8.2-a+sve"))) void outer(const void* a, const void* b, const void* c, void* d) {
    register const void* x0 asm("x0") = a;
    register const void* x1 asm("x1") = b;
    register const void* x2 asm("x2") = c;
    register void* x3 asm("x3") = d;
    register const std::uint64_t x9 asm("x9") = FPMR | fpmr_bits;
    asm volatile(".inst 0xd503477f\n\t"  // smstart
                 SET_FPMR
                 ".inst %c[row]\n\t"
                 ".inst 0x2518e121\n\t"  // ptrue p1.b, vl16
                 ".inst 0xa400a400\n\t"  // ld1b {z0.b}, p1/z, [x0]
                 ".inst 0xa400a421\n\t"  // ld1b {z1.b}, p1/z, [x1]
                 "mov w12, wzr\n\t" ZA_ROWS("load", "x2") ".inst %c[instruction]\n\t"  // za0, p1/m, p1/m, z0, z1
                 ZA_ROWS("store", "x3") ".inst 0xd503467f"  // smstop
                 : "+r"(x2), "+r"(x3)
                 : "r"(x0), "r"(x1), "r"(x9), [instruction] "i"(INSTRUCTION), [row] "i"(Of::row), [load] "i"(Of::load),
                   [store] "i"(Of::store), [rows] "i"(Of::rows), [fpmr] "i"(static_cast<int>(FPMR))
                 : STREAMING_CLOBBERS);
}

// What the registers of a dot product into vectors of ZA are filled with: A into z0 on, x0 of p1; B into z4, x1 of p1;
// C into z24 on, x2 of p1; to ZA's vectors; from them; D from z24 on, x3 of p1.
struct OneVector {
    static constexpr unsigned a = 0xa400a400;  // ld1b {z0.b}, p1/z, [x0]
    static constexpr unsigned b = 0xa400a424;  // ld1b {z4.b}, p1/z, [x1]
    static constexpr unsigned c = 0xa400a458;  // ld1b {z24.b}, p1/z, [x2]
    static constexpr unsigned to = 0xc0040b00;  // mova za.d[w8, 0, vgx2], {z24.d-z25.d}
    static constexpr unsigned from = 0xc0060818;  // mova {z24.d-z25.d}, za.d[w8, 0, vgx2]
    static constexpr unsigned d = 0xe400e478;  // st1b {z24.b}, p1, [x3]
};
// Vertical: row m is element m of each of the registers of A.
struct FourVectors {
    static constexpr unsigned to = 0xc0040f00;  // mova za.d[w8, 0, vgx4], {z24.d-z27.d}
    static constexpr unsigned from = 0xc0060c18;  // mova {z24.d-z27.d}, za.d[w8, 0, vgx4]
};
struct PairsOfHalves : OneVector {
    static constexpr unsigned a = 0xa4a0e400;  // ld2h {z0.h-z1.h}, p1/z, [x0]
    static constexpr unsigned b = 0x8540c424;  // ld1rw {z4.s}, p1/z, [x1]
    static constexpr unsigned c = 0xa520e458;  // ld2w {z24.s-z25.s}, p1/z, [x2]
    static constexpr unsigned d = 0xe530e478;  // st2w {z24.s-z25.s}, p1, [x3]
};
struct PairsOfBytes : OneVector {
    static constexpr unsigned a = 0xa420e400;  // ld2b {z0.b-z1.b}, p1/z, [x0]
    static constexpr unsigned b = 0x84c0a424;  // ld1rh {z4.h}, p1/z, [x1]
    static constexpr unsigned c = 0xa4a0e458;  // ld2h {z24.h-z25.h}, p1/z, [x2]
    static constexpr unsigned d = 0xe4b0e478;  // st2h {z24.h-z25.h}, p1, [x3]
};
struct FoursOfBytes : FourVectors {
    static constexpr unsigned a = 0xa460e400;  // ld4b {z0.b-z3.b}, p1/z, [x0]
    static constexpr unsigned b = 0x8540c424;  // ld1rw {z4.s}, p1/z, [x1]
    static constexpr unsigned c = 0xa560e458;  // ld4w {z24.s-z27.s}, p1/z, [x2]
    static constexpr unsigned d = 0xe570e478;  // st4w {z24.s-z27.s}, p1, [x3]
};
struct PairsOfBytesToWords : FoursOfBytes {
    static constexpr unsigned a = PairsOfBytes::a;
    static constexpr unsigned b = PairsOfBytes::b;  // the lower pair of each group and the higher one are the same
};
struct FoursOfHalves : FourVectors {
    static constexpr unsigned a = 0xa4e0e400;  // ld4h {z0.h-z3.h}, p1/z, [x0]
    static constexpr unsigned b = 0x85c0e424;  // ld1rd {z4.d}, p1/z, [x1]
    static constexpr unsigned c = 0xa5e0e458;  // ld4d {z24.d-z27.d}, p1/z, [x2]
    static constexpr unsigned d = 0xe5f0e478;  // st4d {z24.d-z27.d}, p1, [x3]
};

// Multiply-adds of bytes: product i of N neighbours goes to vector i of N neighbours of ZA.
struct AlternateHalves : OneVector {
    static constexpr unsigned c = PairsOfBytes::c;
    static constexpr unsigned to = 0xc0040300;  // mova za0h.b[w12, 0:1], {z24.b-z25.b}
    static constexpr unsigned from = 0xc0060018;  // mova {z24.b-z25.b}, za0h.b[w12, 0:1]
    static constexpr unsigned d = PairsOfBytes::d;
};
struct AlternateWords : OneVector {
    static constexpr unsigned c = FoursOfBytes::c;
    static constexpr unsigned to = 0xc0040700;  // mova za0h.b[w12, 0:3], {z24.b-z27.b}
    static constexpr unsigned from = 0xc0060418;  // mova {z24.b-z27.b}, za0h.b[w12, 0:3]
    static constexpr unsigned d = FoursOfBytes::d;
};

// By element: one group of B in every place of z4, of which number 0 is taken.
struct ByHalf : OneVector {
    static constexpr unsigned b = PairsOfBytes::b;
};
struct ByWord : OneVector {
    static constexpr unsigned b = PairsOfHalves::b;
};
struct ByDoubleword : OneVector {
    static constexpr unsigned b = FoursOfHalves::b;
};
struct ByByteToHalves : AlternateHalves {
    static constexpr unsigned b = 0x84408424;  // ld1rb {z4.b}, p1/z, [x1]
};
struct ByByteToWords : AlternateWords {
    static constexpr unsigned b = ByByteToHalves::b;
};

// Dot products into vectors of ZA, in streaming mode: za[w8, 0], registers from z0 on, z4.
template <class Of, unsigned INSTRUCTION, unsigned FPMR = no_fp8>
__attribute__((target("arch=armv8.2-a+sve"))) void dots(const void* a, const void* b, const void* c, void* d) {
    register const void* x0 asm("x0") = a;
    register const void* x1 asm("x1") = b;
    register const void* x2 asm("x2") = c;
    register void* x3 asm("x3") = d;
    register const std::uint64_t x9 asm("x9") = FPMR | fpmr_bits;
    asm volatile(".inst 0xd503477f\n\t"  // smstart
                 SET_FPMR
                 ".inst 0x2518e121\n\t"  // ptrue p1.b, vl16
                 "mov w8, wzr\n\tmov w12, wzr\n\t"
                 ".inst %c[load_a]\n\t"
                 ".inst %c[load_b]\n\t"
                 ".inst %c[load_c]\n\t"
                 ".inst %c[to]\n\t"
                 ".inst %c[instruction]\n\t"
                 ".inst %c[from]\n\t"
                 ".inst %c[store]\n\t"
                 ".inst 0xd503467f"  // smstop
                 ::"r"(x0),
                 "r"(x1), "r"(x2), "r"(x3),
                 "r"(x9), [instruction] "i"(INSTRUCTION), [load_a] "i"(Of::a), [load_b] "i"(Of::b), [load_c] "i"(Of::c),
                 [to] "i"(Of::to), [from] "i"(Of::from), [store] "i"(Of::d), [fpmr] "i"(static_cast<int>(FPMR))
                 : STREAMING_CLOBBERS);
}

// An instruction on vector registers: d in v0, a in v1, b in v2.
template <unsigned INSTRUCTION, unsigned FPMR>
void fp8_vectors(const void* a, const void* b, const void* c, void* d) {
    register const std::uint64_t x9 asm("x9") = FPMR | fpmr_bits;
    asm volatile(SET_FPMR
                 "ldr q0, [%2]\n\tldr q1, [%0]\n\tldr q2, [%1]\n\t"
                 ".inst %c[instruction]\n\t"
                 "str q0, [%3]" ::"r"(a),
                 "r"(b), "r"(c), "r"(d), "r"(x9), [instruction] "i"(INSTRUCTION), [fpmr] "i"(static_cast<int>(FPMR))
                 : "v0", "v1", "v2", "memory");
}

// By element: a second source of BYTES, which are number 0 of their size.
template <decltype(Unit::step) Step, int BYTES>
void by_element(const void* a, const void* b, const void* c, void* d) {
    std::uint8_t y[16] = {};
    std::memcpy(y, b, BYTES);
    Step(a, y, c, d);
}

// Bytes in the places number PLACE of each SPACING; all others are as the next one.
template <int SPACING, int PLACE>
void spread(const void* from, std::uint8_t* to) {
    for (int i = 0; i < 16; ++i)
        to[i] = static_cast<const std::uint8_t*>(from)[(i / SPACING + (i % SPACING != PLACE)) % (16 / SPACING)];
}

// A multiply-add of one byte in each SPACING bytes, number PLACE, of the first source or of both.
template <decltype(Unit::step) Step, int SPACING, int PLACE>
void first_spaced(const void* a, const void* b, const void* c, void* d) {
    std::uint8_t x[16];
    spread<SPACING, PLACE>(a, x);
    Step(x, b, c, d);
}
template <decltype(Unit::step) Step, int SPACING, int PLACE>
void spaced(const void* a, const void* b, const void* c, void* d) {
    std::uint8_t y[16];
    spread<SPACING, PLACE>(b, y);
    first_spaced<Step, SPACING, PLACE>(a, y, c, d);
}

// Two matrix products of 2 x 2 results side by side, of 2 x 4 by 4 x 2 bytes, with each B transposed on the way in.
template <decltype(Unit::step) Step>
void two_matrices(const void* a, const void* b, const void* c, void* d) {
    std::uint8_t columns[16];
    for (int i = 0; i < 16; ++i) columns[i] = static_cast<const std::uint8_t*>(b)[i / 8 * 8 + i % 4 * 2 + i % 8 / 4];
    Step(a, columns, c, d);
}

// A step of N x N results of items T, with B (K, N) transposed to (N, K).
template <class T, decltype(Unit::step) Step, int N = 4>
void outer_of(const void* a, const void* b, const void* c, void* d) {
    constexpr int k = 16 / N / sizeof(T);
    T columns[N * k];
    for (int i = 0; i < k; ++i)
        for (int j = 0; j < N; ++j) columns[j * k + i] = static_cast<const T*>(b)[i * N + j];
    Step(a, columns, c, d);
}

constexpr Unit outer_tile(const char* id, const char* features, decltype(Unit::step) step) {
    return {id, features, 1, 16, 16, 64, 64, step};
}
constexpr Unit outer_double(const char* id, const char* features, decltype(Unit::step) step) {
    return {id, features, 1, 16, 16, 32, 32, step};
}
constexpr Unit register_by_element(const char* id, const char* features, int bytes, decltype(Unit::step) step) {
    return {id, features, 1, 16, bytes, 16, 16, step};
}
constexpr Unit words(const char* id, const char* features, decltype(Unit::step) step) {
    return {id, features, 4, 4, 4, 4, 4, step};
}
constexpr Unit tile(const char* id, const char* features, decltype(Unit::step) step) {
    return {id, features, 1, 16, 16, 16, 16, step};
}

constexpr unsigned four_registers = 1u << 20;
constexpr unsigned four_registers_by_element = 1u << 15;

// SME2: two forms of 16 bytes a step, of two registers and of four, whose words differ in one bit.
template <unsigned INSTRUCTION, int BYTES = 4>
void two_and_four(std::vector<Unit>& all, const char* id, const char* of_four, const char* features = "sme2") {
    constexpr int lanes = 16 / BYTES;
    all.push_back({id, features, lanes, BYTES, BYTES, BYTES, BYTES, dots<OneVector, INSTRUCTION>});
    all.push_back(
        {of_four, features, lanes, BYTES, BYTES, BYTES, BYTES, dots<OneVector, INSTRUCTION | four_registers>});
}

// The same by element: a group of BYTES of the second source for all sums.
template <unsigned INSTRUCTION, int BYTES = 4>
void two_and_four_by_element(std::vector<Unit>& all, const char* id, const char* of_four,
                             const char* features = "sme2") {
    using Of = std::conditional_t<BYTES == 4, ByWord, ByDoubleword>;
    all.push_back({id, features, 1, 16, BYTES, 16, 16, dots<Of, INSTRUCTION>});
    all.push_back({of_four, features, 1, 16, BYTES, 16, 16, dots<Of, INSTRUCTION | four_registers_by_element>});
}

void sme2_units(std::vector<Unit>& all) {
    two_and_four<0xc1241000>(all, "arm.fdot.za.f16", "arm.fdot.za.f16{vgx=4}");
    two_and_four<0xc1241010>(all, "arm.bfdot.za.bf16", "arm.bfdot.za.bf16{vgx=4}");
    two_and_four<0xc1241400>(all, "arm.sdot.za.s8", "arm.sdot.za.s8{vgx=4}");
    two_and_four<0xc1241410>(all, "arm.udot.za.u8", "arm.udot.za.u8{vgx=4}");
    two_and_four<0xc1241418>(all, "arm.sudot.za.s8", "arm.sudot.za.s8{vgx=4}");
    two_and_four<0xc1241408>(all, "arm.usdot.za.u8", "arm.usdot.za.u8{vgx=4}");
    two_and_four<0xc1641408>(all, "arm.sdot.za.s16", "arm.sdot.za.s16{vgx=4}");
    two_and_four<0xc1641418>(all, "arm.udot.za.u16", "arm.udot.za.u16{vgx=4}");
    const char* wide = "sme2 sme-i16i64";
    two_and_four<0xc1641400, 8>(all, "arm.sdot.za.s16.s64", "arm.sdot.za.s16.s64{vgx=4}", wide);
    two_and_four<0xc1641410, 8>(all, "arm.udot.za.u16.s64", "arm.udot.za.u16.s64{vgx=4}", wide);
    two_and_four_by_element<0xc1541008>(all, "arm.fdot.za.f16{b=element}", "arm.fdot.za.f16{b=element,vgx=4}");
    two_and_four_by_element<0xc1541018>(all, "arm.bfdot.za.bf16{b=element}", "arm.bfdot.za.bf16{b=element,vgx=4}");
    two_and_four_by_element<0xc1541020>(all, "arm.sdot.za.s8{b=element}", "arm.sdot.za.s8{b=element,vgx=4}");
    two_and_four_by_element<0xc1541030>(all, "arm.udot.za.u8{b=element}", "arm.udot.za.u8{b=element,vgx=4}");
    two_and_four_by_element<0xc1541038>(all, "arm.sudot.za.s8{b=element}", "arm.sudot.za.s8{b=element,vgx=4}");
    two_and_four_by_element<0xc1541028>(all, "arm.usdot.za.u8{b=element}", "arm.usdot.za.u8{b=element,vgx=4}");
    two_and_four_by_element<0xc1541000>(all, "arm.sdot.za.s16{b=element}", "arm.sdot.za.s16{b=element,vgx=4}");
    two_and_four_by_element<0xc1541010>(all, "arm.udot.za.u16{b=element}", "arm.udot.za.u16{b=element,vgx=4}");
    two_and_four_by_element<0xc1d40008, 8>(all, "arm.sdot.za.s16.s64{b=element}",
                                           "arm.sdot.za.s16.s64{b=element,vgx=4}", wide);
    two_and_four_by_element<0xc1d40018, 8>(all, "arm.udot.za.u16.s64{b=element}",
                                           "arm.udot.za.u16.s64{b=element,vgx=4}", wide);
    all.insert(all.end(), {
                              {"arm.svdot.s16.s64", wide, 1, 64, 8, 64, 64, dots<FoursOfHalves, 0xc1d48808>},
                              {"arm.uvdot.u16.s64", wide, 1, 64, 8, 64, 64, dots<FoursOfHalves, 0xc1d48818>},
                              {"arm.fvdot.f16", "sme2", 1, 32, 4, 32, 32, dots<PairsOfHalves, 0xc1540008>},
                              {"arm.bfvdot.bf16", "sme2", 1, 32, 4, 32, 32, dots<PairsOfHalves, 0xc1540018>},
                              {"arm.svdot.s16", "sme2", 1, 32, 4, 32, 32, dots<PairsOfHalves, 0xc1540020>},
                              {"arm.uvdot.u16", "sme2", 1, 32, 4, 32, 32, dots<PairsOfHalves, 0xc1540030>},
                              {"arm.svdot.s8", "sme2", 1, 64, 4, 64, 64, dots<FoursOfBytes, 0xc1548020>},
                              {"arm.uvdot.u8", "sme2", 1, 64, 4, 64, 64, dots<FoursOfBytes, 0xc1548030>},
                              {"arm.suvdot.s8", "sme2", 1, 64, 4, 64, 64, dots<FoursOfBytes, 0xc1548038>},
                              {"arm.usvdot.u8", "sme2", 1, 64, 4, 64, 64, dots<FoursOfBytes, 0xc1548028>},
                          });
}

// FP8 of one state of FPMR: its bits 0 and 3 are the formats of A and B, 0 for e5m2; bit 14 is OSM.
template <unsigned A, unsigned B, unsigned OSM>
void fp8_units(std::vector<Unit>& all) {
    constexpr unsigned fpmr = A | B << 3 | OSM << 14;
    constexpr const char* names[] = {"e5m2", "e4m3"};
    static std::list<std::string> ids;
    const auto id = [&](const std::string& name, const char* d, const std::string& vgx = "",
                        const std::string& b = "") {
        std::string state;
        for (const std::string& each : {b, std::string(OSM ? "osm" : ""), vgx})
            if (!each.empty()) state += (state.empty() ? "{" : ",") + each;
        ids.push_back("arm." + name + "." + names[A] + "." + names[B] + "." + d + state + (state.empty() ? "" : "}"));
        return ids.back().c_str();
    };
    const Unit more[] = {
        {id("fdot", "f16"), "fp8dot2", 8, 2, 2, 2, 2, fp8_vectors<0x4e42fc20, fpmr>},
        {id("fdot", "f32"), "fp8dot4", 4, 4, 4, 4, 4, fp8_vectors<0x4e02fc20, fpmr>},
        {id("fmlalb", "f16"), "fp8fma", 8, 1, 1, 2, 2, spaced<fp8_vectors<0x0ec2fc20, fpmr>, 2, 0>},
        {id("fmlalt", "f16"), "fp8fma", 8, 1, 1, 2, 2, spaced<fp8_vectors<0x4ec2fc20, fpmr>, 2, 1>},
        {id("fmlallbb", "f32"), "fp8fma", 4, 1, 1, 4, 4, spaced<fp8_vectors<0x0e02c420, fpmr>, 4, 0>},
        {id("fmlallbt", "f32"), "fp8fma", 4, 1, 1, 4, 4, spaced<fp8_vectors<0x0e42c420, fpmr>, 4, 1>},
        {id("fmlalltb", "f32"), "fp8fma", 4, 1, 1, 4, 4, spaced<fp8_vectors<0x4e02c420, fpmr>, 4, 2>},
        {id("fmlalltt", "f32"), "fp8fma", 4, 1, 1, 4, 4, spaced<fp8_vectors<0x4e42c420, fpmr>, 4, 3>},
        register_by_element(id("fdot", "f16", "", "b=element"), "fp8dot2", 2,
                            by_element<fp8_vectors<0x4f420020, fpmr>, 2>),
        register_by_element(id("fdot", "f32", "", "b=element"), "fp8dot4", 4,
                            by_element<fp8_vectors<0x4f020020, fpmr>, 4>),
        {id("fmlalb", "f16", "", "b=element"), "fp8fma", 1, 8, 1, 16, 16,
         by_element<first_spaced<fp8_vectors<0x0fc20020, fpmr>, 2, 0>, 1>},
        {id("fmlalt", "f16", "", "b=element"), "fp8fma", 1, 8, 1, 16, 16,
         by_element<first_spaced<fp8_vectors<0x4fc20020, fpmr>, 2, 1>, 1>},
        {id("fmlallbb", "f32", "", "b=element"), "fp8fma", 1, 4, 1, 16, 16,
         by_element<first_spaced<fp8_vectors<0x2f028020, fpmr>, 4, 0>, 1>},
        {id("fmlallbt", "f32", "", "b=element"), "fp8fma", 1, 4, 1, 16, 16,
         by_element<first_spaced<fp8_vectors<0x2f428020, fpmr>, 4, 1>, 1>},
        {id("fmlalltb", "f32", "", "b=element"), "fp8fma", 1, 4, 1, 16, 16,
         by_element<first_spaced<fp8_vectors<0x6f028020, fpmr>, 4, 2>, 1>},
        {id("fmlalltt", "f32", "", "b=element"), "fp8fma", 1, 4, 1, 16, 16,
         by_element<first_spaced<fp8_vectors<0x6f428020, fpmr>, 4, 3>, 1>},
        {id("fmmla", "f16"), "f8f16mm", 2, 8, 8, 8, 8, two_matrices<fp8_vectors<0x6e02ec20, fpmr>>},
        {id("fmmla", "f32"), "f8f32mm", 1, 16, 16, 16, 16, matrix<std::uint8_t, fp8_vectors<0x6e82ec20, fpmr>>},
        {id("fdot.za", "f16"), "sme-f8f16", 8, 2, 2, 2, 2, dots<OneVector, 0xc1241008, fpmr>},
        {id("fdot.za", "f16", "vgx=4"), "sme-f8f16", 8, 2, 2, 2, 2, dots<OneVector, 0xc1241008 | four_registers, fpmr>},
        {id("fdot.za", "f32"), "sme-f8f32", 4, 4, 4, 4, 4, dots<OneVector, 0xc1241018, fpmr>},
        {id("fdot.za", "f32", "vgx=4"), "sme-f8f32", 4, 4, 4, 4, 4, dots<OneVector, 0xc1241018 | four_registers, fpmr>},
        {id("fmlal.za", "f16", "vgx=1"), "sme-f8f16", 16, 1, 1, 2, 2, dots<AlternateHalves, 0xc1340c00, fpmr>},
        {id("fmlal.za", "f16"), "sme-f8f16", 16, 1, 1, 2, 2, dots<AlternateHalves, 0xc1240804, fpmr>},
        {id("fmlal.za", "f16", "vgx=4"), "sme-f8f16", 16, 1, 1, 2, 2,
         dots<AlternateHalves, 0xc1240804 | four_registers, fpmr>},
        {id("fmlall.za", "f32", "vgx=1"), "sme-f8f32", 16, 1, 1, 4, 4, dots<AlternateWords, 0xc1340400, fpmr>},
        {id("fmlall.za", "f32"), "sme-f8f32", 16, 1, 1, 4, 4, dots<AlternateWords, 0xc1240002, fpmr>},
        {id("fmlall.za", "f32", "vgx=4"), "sme-f8f32", 16, 1, 1, 4, 4,
         dots<AlternateWords, 0xc1240002 | four_registers, fpmr>},
        {id("fdot.za", "f16", "", "b=element"), "sme-f8f16", 1, 16, 2, 16, 16, dots<ByHalf, 0xc1d40020, fpmr>},
        {id("fdot.za", "f16", "vgx=4", "b=element"), "sme-f8f16", 1, 16, 2, 16, 16, dots<ByHalf, 0xc1149040, fpmr>},
        {id("fdot.za", "f32", "", "b=element"), "sme-f8f32", 1, 16, 4, 16, 16, dots<ByWord, 0xc1540038, fpmr>},
        {id("fdot.za", "f32", "vgx=4", "b=element"), "sme-f8f32", 1, 16, 4, 16, 16, dots<ByWord, 0xc1548008, fpmr>},
        {id("fmlal.za", "f16", "vgx=1", "b=element"), "sme-f8f16", 1, 16, 1, 32, 32,
         dots<ByByteToHalves, 0xc1c40000, fpmr>},
        {id("fmlal.za", "f16", "", "b=element"), "sme-f8f16", 1, 16, 1, 32, 32, dots<ByByteToHalves, 0xc1941030, fpmr>},
        {id("fmlal.za", "f16", "vgx=4", "b=element"), "sme-f8f16", 1, 16, 1, 32, 32,
         dots<ByByteToHalves, 0xc1949020, fpmr>},
        {id("fmlall.za", "f32", "vgx=1", "b=element"), "sme-f8f32", 1, 16, 1, 64, 64,
         dots<ByByteToWords, 0xc1440000, fpmr>},
        {id("fmlall.za", "f32", "", "b=element"), "sme-f8f32", 1, 16, 1, 64, 64, dots<ByByteToWords, 0xc1940020, fpmr>},
        {id("fmlall.za", "f32", "vgx=4", "b=element"), "sme-f8f32", 1, 16, 1, 64, 64,
         dots<ByByteToWords, 0xc1148040, fpmr>},
        {id("fvdot", "f16"), "sme-f8f16", 1, 32, 2, 32, 32, dots<PairsOfBytes, 0xc1d41020, fpmr>},
        {id("fvdotb", "f32"), "sme-f8f32", 1, 32, 2, 64, 64, dots<PairsOfBytesToWords, 0xc1d40800, fpmr>},
        {id("fvdott", "f32"), "sme-f8f32", 1, 32, 2, 64, 64, dots<PairsOfBytesToWords, 0xc1d40810, fpmr>},
        {id("fmopa", "f16"), "sme-f8f16", 1, 16, 16, 128, 128,
         outer_of<std::uint8_t, outer<Halves, 0x80a12408, fpmr>, 8>},
        {id("fmopa", "f32"), "sme-f8f32", 1, 16, 16, 64, 64, outer_of<std::uint8_t, outer<Words, 0x80a12400, fpmr>>},
    };
    all.insert(all.end(), std::begin(more), std::end(more));
}

}  // namespace

std::vector<Unit> arm_units() {
    std::vector<Unit> all = {
        words("arm.bfdot", "bf16", bfdot),
        tile("arm.bfmmla", "bf16", matrix<std::uint16_t, bfmmla>),
        tile("arm.fmmla", "sve f32mm", matrix<std::uint32_t, fmmla>),
        words("arm.sdot", "dotprod", sdot),
        words("arm.udot", "dotprod", udot),
        words("arm.usdot", "i8mm", usdot),
        register_by_element("arm.bfdot{b=element}", "bf16", 4, by_element<bfdot_by_element, 4>),
        register_by_element("arm.sdot{b=element}", "dotprod", 4, by_element<sdot_by_element, 4>),
        register_by_element("arm.udot{b=element}", "dotprod", 4, by_element<udot_by_element, 4>),
        register_by_element("arm.usdot{b=element}", "i8mm", 4, by_element<usdot_by_element, 4>),
        register_by_element("arm.sudot{b=element}", "i8mm", 4, by_element<sudot_by_element, 4>),
        tile("arm.smmla", "i8mm", matrix<std::uint8_t, smmla>),
        tile("arm.ummla", "i8mm", matrix<std::uint8_t, ummla>),
        tile("arm.usmmla", "i8mm", matrix<std::uint8_t, usmmla>),
        outer_tile("arm.fmopa.f32", "sme-f32f32", outer_of<std::uint32_t, outer<Words, 0x80812400>>),
        outer_tile("arm.fmopa.f32{neg_a}", "sme-f32f32", outer_of<std::uint32_t, outer<Words, 0x80812410>>),
        outer_tile("arm.fmopa.f16", "sme-f16f32", outer_of<std::uint16_t, outer<Words, 0x81a12400>>),
        outer_tile("arm.fmopa.f16{neg_a}", "sme-f16f32", outer_of<std::uint16_t, outer<Words, 0x81a12410>>),
        outer_tile("arm.bfmopa", "sme-b16f32", outer_of<std::uint16_t, outer<Words, 0x81812400>>),
        outer_tile("arm.bfmopa{neg_a}", "sme-b16f32", outer_of<std::uint16_t, outer<Words, 0x81812410>>),
        outer_double("arm.fmopa.f64", "sme-f64f64", outer<Doublewords, 0x80c12400>),
        outer_double("arm.fmopa.f64{neg_a}", "sme-f64f64", outer<Doublewords, 0x80c12410>),
        outer_tile("arm.smopa", "sme-i8i32", outer_of<std::uint8_t, outer<Words, 0xa0812400>>),
        outer_tile("arm.umopa", "sme-i8i32", outer_of<std::uint8_t, outer<Words, 0xa1a12400>>),
        outer_tile("arm.sumopa", "sme-i8i32", outer_of<std::uint8_t, outer<Words, 0xa0a12400>>),
        outer_tile("arm.usmopa", "sme-i8i32", outer_of<std::uint8_t, outer<Words, 0xa1812400>>),
        outer_double("arm.smopa.s16.s64", "sme-i16i64", outer_of<std::uint16_t, outer<Doublewords, 0xa0c12400>, 2>),
        outer_double("arm.umopa.u16.s64", "sme-i16i64", outer_of<std::uint16_t, outer<Doublewords, 0xa1e12400>, 2>),
        outer_double("arm.sumopa.s16.s64", "sme-i16i64", outer_of<std::uint16_t, outer<Doublewords, 0xa0e12400>, 2>),
        outer_double("arm.usmopa.u16.s64", "sme-i16i64", outer_of<std::uint16_t, outer<Doublewords, 0xa1c12400>, 2>),
        outer_tile("arm.smopa.s16", "sme2", outer_of<std::uint16_t, outer<Words, 0xa0812408>>),
        outer_tile("arm.umopa.u16", "sme2", outer_of<std::uint16_t, outer<Words, 0xa1812408>>),
        {"arm.sdot.s16.s64", "sve", 2, 8, 8, 8, 8, wide_dots<0x44c20020>},
        {"arm.udot.u16.s64", "sve", 2, 8, 8, 8, 8, wide_dots<0x44c20420>},
        register_by_element("arm.sdot.s16.s64{b=element}", "sve", 8, by_element<wide_dots<0x44e20020>, 8>),
        register_by_element("arm.udot.u16.s64{b=element}", "sve", 8, by_element<wide_dots<0x44e20420>, 8>),
    };
    sme2_units(all);
    fp8_units<0, 0, 0>(all), fp8_units<0, 1, 0>(all), fp8_units<1, 0, 0>(all), fp8_units<1, 1, 0>(all);
    fp8_units<0, 0, 1>(all), fp8_units<0, 1, 1>(all), fp8_units<1, 0, 1>(all), fp8_units<1, 1, 1>(all);
    return all;
}

#else
std::vector<Unit> arm_units() { return {}; }
#endif

}  // namespace mmaprobe::cpu
