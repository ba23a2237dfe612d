// The kernel of sums by pairs in binary32 (model/pairs_lane.hpp) with the processor's own operations: subnormal operands
// (and zeros) are read as +0.
#pragma once
#include <memory>

#include "cpu/kernels/floats.hpp"
#include "cpu/kernels/registers.hpp"
#include "model/pairs_lane.hpp"
#include "model/program.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace pairs {

constexpr int MOST_K = 64;

// A rounded result, flushed: nothing may merge the operation that made it with the next.
struct Singles {
    using Number = F32s;
    MMAPROBE_HD static F32s settled(F32s x) {
#if defined(__AVX512F__)
        asm("" : "+v"(x));
        return x;
#elif defined(__x86_64__)
        asm("" : "+x"(x));
        return x;
#else
        const U32s tiny = U32s((U32s(x) & 0x7F800000) == 0);
        return F32s(U32s(x) & ~(tiny & 0x7FFFFFFF));
#endif
    }
};

// 16-bit operands: binary16, or the top of a binary32.
MMAPROBE_HD F32s read_items(const uint16_t* codes, bool top) {
    const U32s code = widen(codes), some = U32s((code & (top ? 0x7F80 : 0x7C00)) != 0);
    return F32s((top ? code << 16 : U32s(from_half(codes))) & some);
}

struct Rules {
    int k;
    bool a_top, b_top;
    u32 nan;

    explicit Rules(const i64* program, const Header& h)
        : k(int(h[Header::k])), a_top(OperandRow{program + h[Header::a]}[OperandRow::exponent_bits] == 8),
          b_top(OperandRow{program + h[Header::b]}[OperandRow::exponent_bits] == 8), nan(u32(h[Header::nan_code])) {}
};

template <int STEP, class B>
MMAPROBE_HD void run_lanes(const Rules& r, const LayoutCall& call, i64 at, const F32s* a, const B& b) {
    F32s sum{};
    if (call.c) {
        const U32s c = load<U32s>(static_cast<const u32*>(call.c) + at);
        sum = F32s(c & U32s((c & 0x7F800000) != 0));
    }
    sum = sum_steps<Singles, STEP>(sum, r.k, [&](int k) { return a[k]; }, b);
    const U32s is_nan = U32s(sum != sum);
    store(static_cast<u32*>(call.d) + at, (U32s(sum) & ~is_nan) | (is_nan & r.nan));
}

MMAPROBE_HD void read_rows(const void* base, i64 strip, int part, int k, bool top, F32s* out) {
    const auto* codes = static_cast<const uint16_t*>(base) + strip * k * STRIP + part;
    for (int i = 0; i < k; ++i) out[i] = read_items(codes + i * STRIP, top);
}

inline void read_columns(const void* base, i64 first, i64 items, bool top, float* out) {
    const auto* codes = static_cast<const uint16_t*>(base) + first;
    i64 i = 0;
    for (; i + LANES <= items; i += LANES) store(out + i, read_items(codes + i, top));
    uint16_t rest[LANES] = {};
    memcpy(rest, codes + i, size_t(items - i) * sizeof *rest);
    store(out + i, read_items(rest, top));
}

template <int STEP>
__attribute__((noinline)) void run(const Rules& r, const LayoutCall& call) {
    const i64 strips = (call.m + STRIP - 1) / STRIP, items = i64(call.n) * r.k;
    const std::unique_ptr<float[]> columns(new float[size_t(items + LANES)]);
    F32s a[MOST_K], b[MOST_K];
    for (i64 tile = 0; tile < call.count; ++tile) {
        if (call.n) read_columns(call.b, tile * items, items, r.b_top, columns.get());
        for (int part = 0; !call.n && part < STRIP; part += LANES) {
            read_rows(call.a, tile, part, r.k, r.a_top, a);
            read_rows(call.b, tile, part, r.k, r.b_top, b);
            run_lanes<STEP>(r, call, tile * STRIP + part, a, [&](int k) { return b[k]; });
        }
        for (i64 strip = tile * strips; call.n && strip < (tile + 1) * strips; ++strip)
            for (int part = 0; part < STRIP; part += LANES) {
                read_rows(call.a, strip, part, r.k, r.a_top, a);
                for (i64 n = 0; n < call.n; ++n) {
                    const float* column = columns.get() + n * r.k;
                    run_lanes<STEP>(r, call, (strip * call.n + n) * STRIP + part, a,
                                    [&](int k) { return broadcast(F32s{}, column[k]); });
                }
            }
    }
}

inline bool evaluate(const LayoutCall& call) {
    const Header header{call.program};
    const Rules rules(call.program, header);
    const Environment environment;
    [[maybe_unused]] const FlushTiny flush;
    switch (PairsRow{call.program + header[Header::rules]}[PairsRow::step]) {
        case 2: run<2>(rules, call); break;
        case 4: run<4>(rules, call); break;
        default: run<8>(rules, call);
    }
    return true;
}

}  // namespace pairs
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
