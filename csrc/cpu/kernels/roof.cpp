// The roof of one build; CMake compiles this file once for each instruction set (MMAPROBE_BUILD names it).
//
// The mixes are those that a kernel cannot do without, for 16 lanes:
//   fused  multiply, multiply by a power of two, truncate to an integer, add; 0.75 of a maximum of bytes
//   lane   add and maximum of exponents; multiply, subtract, shift, exclusive or of three, add
//   dots   multiply-add of four bytes
//   other  a third each of add, shift and three-input logic
#include "cpu/kernels/roof.hpp"

#include <stdint.h>
#include <time.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace {

#if defined(__AVX512F__)
constexpr int WIDTH = 64;
#define MMAPROBE_KEEP(x) asm volatile("" : "+v"(x))
#elif defined(__AVX2__)
constexpr int WIDTH = 32;
#define MMAPROBE_KEEP(x) asm volatile("" : "+x"(x))
#elif defined(__x86_64__)
constexpr int WIDTH = 16;
#define MMAPROBE_KEEP(x) asm volatile("" : "+x"(x))
#elif defined(__aarch64__)
constexpr int WIDTH = 16;
#define MMAPROBE_KEEP(x) asm volatile("" : "+w"(x))
#else
constexpr int WIDTH = 16;
#define MMAPROBE_KEEP(x) asm volatile("" : "+m"(x))
#endif
constexpr int REGISTERS = 64 / WIDTH;  // of 16 lanes
constexpr int FEW = WIDTH == 64 ? 8 : 4, MANY = WIDTH == 64 ? 12 : 8;  // chains that the registers hold
constexpr int TURNS = 2000, REPEATS = 12;

typedef float F32 __attribute__((vector_size(WIDTH)));
typedef int32_t I32 __attribute__((vector_size(WIDTH)));
typedef uint32_t U32 __attribute__((vector_size(WIDTH)));
typedef int8_t I8 __attribute__((vector_size(WIDTH)));

double now() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// Seconds for one call of `term` on each of 16 lanes, from independent chains.
template <class Chain, int Chains, class Term>
double measure(const Term& term) {
    double best = 1;
    for (int repeat = 0; repeat < REPEATS; ++repeat) {
        Chain chains[Chains] = {};
        const double start = now();
        for (int turn = 0; turn < TURNS; ++turn) {
#pragma GCC unroll 12
            for (int i = 0; i < Chains; ++i) term(chains[i], i);
        }
        const double seconds = (now() - start) / (double(TURNS) * Chains) * REGISTERS;
        best = seconds < best ? seconds : best;
        for (Chain& chain : chains) chain.end();
    }
    return best;
}

struct Fused {
    I32 sum;
    I8 largest;
    void end() {
        MMAPROBE_KEEP(sum);
        MMAPROBE_KEEP(largest);
    }
};

struct Lane {
    I32 sum, largest;
    void end() {
        MMAPROBE_KEEP(sum);
        MMAPROBE_KEEP(largest);
    }
};

struct One {
    U32 value;
    void end() { MMAPROBE_KEEP(value); }
};

double fused() {
    F32 a = F32{} + 1.5f, b = F32{} + 1.25f, power = F32{} + 1024.0f;
    I8 exponents = I8{} + int8_t(3);
    return measure<Fused, FEW>([&](Fused& chain, int i) {
        MMAPROBE_KEEP(a);
        F32 product = a * b;
        MMAPROBE_KEEP(product);
        product *= power;
        chain.sum += __builtin_convertvector(product, I32);
        MMAPROBE_KEEP(chain.sum);
        if (i % 4 == 3) return;
        MMAPROBE_KEEP(exponents);
        chain.largest = chain.largest > exponents ? chain.largest : exponents;
        MMAPROBE_KEEP(chain.largest);
    });
}

double lane() {
    I32 a = I32{} + 1021, b = I32{} + 2047, sign = I32{} - 1, exponent_a = I32{} + 3, exponent_b = I32{} + 5;
    return measure<Lane, FEW>([&](Lane& chain, int) {
        MMAPROBE_KEEP(exponent_a);
        I32 label = exponent_a + exponent_b;
        MMAPROBE_KEEP(label);
        chain.largest = chain.largest > label ? chain.largest : label;
        MMAPROBE_KEEP(a);
        I32 product = a * b;
        I32 away = label - exponent_b;
        MMAPROBE_KEEP(away);
        product = I32(U32(product) >> U32(away));
        product ^= sign ^ a;
        MMAPROBE_KEEP(product);
        chain.sum += product;
        MMAPROBE_KEEP(chain.sum);
        MMAPROBE_KEEP(chain.largest);
    });
}

double other() {
    U32 mask = U32{} + 0x00FFFF00u;
    return measure<One, MANY>([&](One& chain, int) {
               chain.value += mask;
               MMAPROBE_KEEP(chain.value);
               chain.value >>= 3;
               MMAPROBE_KEEP(chain.value);
               chain.value ^= mask;
               MMAPROBE_KEEP(chain.value);
           }) /
           3;
}

// Where the machine has no such instruction: 16-bit pairs, 32-bit pairs, the sum.
double dots() {
    U32 a = U32{} + 0x01020304u, b = U32{} + 0x04030201u;
#if defined(__AVX512F__)
    if (__builtin_cpu_supports("avx512vnni"))
        return measure<One, MANY>([&](One& chain, int) {
            asm volatile("vpdpbusd %2, %1, %0" : "+v"(chain.value) : "v"(a), "v"(b));
        });
#endif
    typedef int16_t I16 __attribute__((vector_size(WIDTH)));
    return measure<One, MANY>([&](One& chain, int) {
        MMAPROBE_KEEP(a);
        I16 pairs = I16(a) * I16(b);
        MMAPROBE_KEEP(pairs);
        U32 both = U32(pairs) + b;
        MMAPROBE_KEEP(both);
        chain.value += both;
        MMAPROBE_KEEP(chain.value);
    });
}

}  // namespace

Roof measure_roof() { return {fused(), lane(), dots(), other()}; }

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
