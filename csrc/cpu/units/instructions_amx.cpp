// Intel AMX: tiles of 16 x 16 32-bit results, K = 32 (16-bit items) or 64 (8-bit items).
//
// A goes into its tile as it lies; B (K, 16) is repacked so that each 32-bit element of a row holds
// the two or four items of one column that are multiplied together; C is loaded into the result tile.
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2.
#include "cpu/units/unit.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace mmaprobe::cpu {

#if defined(__x86_64__)
namespace {

constexpr int tile_bytes = 1024;

#if defined(MMAPROBE_WITHOUT_AMX)
constexpr decltype(Unit::begin) configure = nullptr, release = nullptr;
constexpr decltype(Unit::step) tdpbf16ps = nullptr, tdpfp16ps = nullptr, tdpbssd = nullptr, tdpbsud = nullptr,
                               tdpbusd = nullptr, tdpbuud = nullptr;
#else
struct alignas(64) TileConfig {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16};
};

__attribute__((target("amx-tile"))) void configure() {
    static const TileConfig config;
    asm volatile("ldtilecfg %0" ::"m"(config));
}

__attribute__((target("amx-tile"))) void release() { asm volatile("tilerelease" ::: "memory"); }

// Rows 2r and 2r+1 of 16-bit items -> row r of pairs.
void pairs(const __m128i* b, __m128i* out) {
    for (int row = 0; row < 16; ++row, b += 4) {
        for (int half = 0; half < 2; ++half) {
            const __m128i even = _mm_loadu_si128(b + half), odd = _mm_loadu_si128(b + 2 + half);
            *out++ = _mm_unpacklo_epi16(even, odd);
            *out++ = _mm_unpackhi_epi16(even, odd);
        }
    }
}

// Rows 4r to 4r+3 of 8-bit items -> row r of quadruples.
void quadruples(const __m128i* b, __m128i* out) {
    for (int row = 0; row < 16; ++row, b += 4) {
        const __m128i b0 = _mm_loadu_si128(b), b1 = _mm_loadu_si128(b + 1);
        const __m128i b2 = _mm_loadu_si128(b + 2), b3 = _mm_loadu_si128(b + 3);
        const __m128i low01 = _mm_unpacklo_epi8(b0, b1), low23 = _mm_unpacklo_epi8(b2, b3);
        const __m128i high01 = _mm_unpackhi_epi8(b0, b1), high23 = _mm_unpackhi_epi8(b2, b3);
        *out++ = _mm_unpacklo_epi16(low01, low23);
        *out++ = _mm_unpackhi_epi16(low01, low23);
        *out++ = _mm_unpacklo_epi16(high01, high23);
        *out++ = _mm_unpackhi_epi16(high01, high23);
    }
}

// tmm0 (c, d) += tmm1 (a) . tmm2 (b)
#define TILE(NAME, TARGET, REPACK, CODE) \
    __attribute__((target(TARGET))) void NAME(const void* a, const void* b, const void* c, void* d) { \
        alignas(64) __m128i repacked[tile_bytes / 16]; \
        const long stride = 64; \
        REPACK(static_cast<const __m128i*>(b), repacked); \
        asm volatile("tileloadd (%0,%1,1), %%tmm0" ::"r"(c), "r"(stride) : "memory"); \
        asm volatile("tileloadd (%0,%1,1), %%tmm1" ::"r"(a), "r"(stride) : "memory"); \
        asm volatile("tileloadd (%0,%1,1), %%tmm2" ::"r"(repacked), "r"(stride) : "memory"); \
        asm volatile(CODE); \
        asm volatile("tilestored %%tmm0, (%0,%1,1)" ::"r"(d), "r"(stride) : "memory"); \
    }

TILE(tdpbf16ps, "amx-tile,amx-bf16", pairs, "tdpbf16ps %tmm2, %tmm1, %tmm0")
// Assemblers before 2024 do not know the name: tdpfp16ps %tmm2, %tmm1, %tmm0
TILE(tdpfp16ps, "amx-tile", pairs, ".byte 0xc4, 0xe2, 0x6b, 0x5c, 0xc1")
TILE(tdpbssd, "amx-tile,amx-int8", quadruples, "tdpbssd %tmm2, %tmm1, %tmm0")
TILE(tdpbsud, "amx-tile,amx-int8", quadruples, "tdpbsud %tmm2, %tmm1, %tmm0")
TILE(tdpbusd, "amx-tile,amx-int8", quadruples, "tdpbusd %tmm2, %tmm1, %tmm0")
TILE(tdpbuud, "amx-tile,amx-int8", quadruples, "tdpbuud %tmm2, %tmm1, %tmm0")
#endif

constexpr Unit tile(const char* id, const char* features, decltype(Unit::step) step) {
    return {id, features, 1, tile_bytes, tile_bytes, tile_bytes, tile_bytes, step, configure, release};
}

}  // namespace

std::vector<Unit> amx_units() {
    return {
        tile("x86.tdpbf16ps", "amx-tile amx-bf16", tdpbf16ps), tile("x86.tdpfp16ps", "amx-tile amx-fp16", tdpfp16ps),
        tile("x86.tdpbssd", "amx-tile amx-int8", tdpbssd),     tile("x86.tdpbsud", "amx-tile amx-int8", tdpbsud),
        tile("x86.tdpbusd", "amx-tile amx-int8", tdpbusd),     tile("x86.tdpbuud", "amx-tile amx-int8", tdpbuud),
    };
}

#else
std::vector<Unit> amx_units() { return {}; }
#endif

}  // namespace mmaprobe::cpu
