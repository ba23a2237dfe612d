// The kernel of flushed chains of fused multiply-adds (VDPBF16PS): products of bfloat16 in an order of their own, summed in
// binary32 from C, each sum rounded to nearest even; subnormal operands and sums are zeros of their signs.
//
// The processor's own vfmadd under denormals-are-zero and flush-to-zero is the rule: other circuits than those of its
// dot products.  A NaN is the first one in the rule's order of all operands, quieted, or the code of an invalid operation.
#pragma once
#include "cpu/kernels/floats.hpp"
#include "cpu/kernels/registers.hpp"
#include "model/program.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace flushed_chain {

#if defined(MMAPROBE_HAS_FMA) && defined(__x86_64__)
// A result that is a NaN: `code(lane, name)` gives the binary32 code of an operand.
template <class Code>
u32 nan_of(const i64* program, const Header& header, const Code& code) {
    const i64* const order = program + header[Header::priority];
    for (i64 i = 0; i < header[Header::priority_count]; ++i) {
        const u32 found = code(order[i] / 3, order[i] % 3);
        if ((found & 0x7FFFFFFF) > 0x7F800000) return found | 0x00400000;
    }
    return u32(header[Header::nan_code]);
}

// LANES results at item `to`: row(k) and column(k) give operands, column_code(j, k) the code of lane j's.
template <class Column, class ColumnCode>
MMAPROBE_HD void run_lanes(const LayoutCall& call, const Header& header, const i64* order, const uint16_t* a, i64 to,
                           const Column& column, const ColumnCode& column_code) {
    const int k = int(header[Header::k]);
    const u32* const c = static_cast<const u32*>(call.c) + to;
    F32s sum = F32s(load<U32s>(c));
    for (int i = 0; i < k; ++i) sum = fused_multiply(F32s(widen(a + order[i] * STRIP) << 16), column(order[i]), sum);
    u32* const d = static_cast<u32*>(call.d) + to;
    u32 kept[LANES];
    const U32s bad = U32s(sum != sum);
    if (any(bad)) {
        memcpy(kept, c, sizeof kept);  // d may be where c is
        store(d, U32s(sum));
        for (int j = 0; j < LANES; ++j)
            if (bad[j])
                d[j] = nan_of(call.program, header, [&](i64 lane, i64 name) {
                    return name == NAME_C   ? kept[j]
                           : name == NAME_A ? u32(a[lane * STRIP + j]) << 16
                                            : u32(column_code(j, lane)) << 16;
                });
        return;
    }
    store(d, U32s(sum));
}

__attribute__((noinline)) inline void run(const LayoutCall& call, const Header& header, const i64* order) {
    const i64 k = header[Header::k], strips = call.n ? (call.m + STRIP - 1) / STRIP : 1;
    const auto *all_a = static_cast<const uint16_t*>(call.a), *all_b = static_cast<const uint16_t*>(call.b);
    for (i64 strip = 0; strip < call.count * strips; ++strip)
        for (int part = 0; part < STRIP; part += LANES) {
            const uint16_t* const a = all_a + strip * k * STRIP + part;
            if (!call.n) {
                const uint16_t* const b = all_b + strip * k * STRIP + part;
                run_lanes(
                    call, header, order, a, strip * STRIP + part,
                    [&](i64 i) { return F32s(widen(b + i * STRIP) << 16); },
                    [&](int j, i64 i) { return b[i * STRIP + j]; });
            }
            for (i64 n = 0; n < call.n; ++n) {
                const uint16_t* const b = all_b + (strip / strips * call.n + n) * k;
                run_lanes(
                    call, header, order, a, (strip * call.n + n) * STRIP + part,
                    [&](i64 i) { return F32s(splat<U32s>(u32(b[i]) << 16)); }, [&](int, i64 i) { return b[i]; });
            }
        }
}

inline bool evaluate(const LayoutCall& call) {
    const Header header{call.program};
    const Environment environment;
    const FlushTiny flush(true);
    run(call, header, call.program + FlushedChainRow{call.program + header[Header::rules]}[FlushedChainRow::order]);
    return true;
}
#else
inline bool evaluate(const LayoutCall&) { return false; }
#endif

}  // namespace flushed_chain
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
