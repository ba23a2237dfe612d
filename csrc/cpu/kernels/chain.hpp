// The kernel of chains of fused multiply-adds in binary32 or binary64: d = fma(a_K-1, b_K-1, .. fma(a_0, b_0, c)).
//
// The processor's own operation is the rule: one IEEE rounding, subnormals kept. Only NaNs get another code, or, where
// every link hands one on, the chain is gone through again with what each link hands on.
#pragma once
#include <type_traits>

#include "cpu/kernels/floats.hpp"
#include "model/chain_nans.hpp"
#include "model/program.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace chain {

#if defined(MMAPROBE_HAS_FMA)
template <class V, class T>
MMAPROBE_HD V load(const void* base, i64 index) {
    V out;
    memcpy(&out, static_cast<const T*>(base) + index, sizeof out);
    return out;
}

// K lanes; 0: known at run time only.
template <class V, class T, int K>
void run(const LayoutCall& call, int lanes, T nan) {
    using Word = std::conditional_t<sizeof(T) == 8, u64, u32>;
    using Words = std::conditional_t<sizeof(T) == 8, U64s, U32s>;
    constexpr int width = sizeof(V) / sizeof(T);
    const int k = K ? K : lanes;
    const Header header{call.program};
    const bool local = header[Header::nan] == LOCAL;
    const i64 strips = call.n ? (call.m + STRIP - 1) / STRIP : 1, columns = call.n ? call.n : 1;
    const T* b = static_cast<const T*>(call.b);
    for (i64 strip = 0; strip < call.count * strips; ++strip)
        for (i64 n = 0; n < columns; ++n)
            for (int part = 0; part < STRIP; part += width) {
                const i64 to = (strip * columns + n) * STRIP + part, at = strip * k * STRIP + part;
                const T* column = b + (strip / strips * columns + n) * k;
                const auto x = [&](int i) { return load<V, T>(call.a, at + i * STRIP); };
                const auto y = [&](int i) {
                    return call.n ? broadcast(V{}, column[i]) : load<V, T>(call.b, at + i * STRIP);
                };
                const V c = call.c ? load<V, T>(call.c, to) : V{};
                V acc = c;
                for (int i = 0; i < k; ++i) acc = fused_multiply(x(i), y(i), acc);
                if (!local)
                    acc = acc == acc ? acc : broadcast(V{}, nan);
                else if (any(U32s(acc != acc)))
                    acc = nan_of_chain<Word, Words>(header, k, x, y, c,
                                                    [](V u, V v, V z) { return fused_multiply(u, v, z); });
                memcpy(static_cast<T*>(call.d) + to, &acc, sizeof acc);
            }
}

template <class V, class T>
void run_lanes(const LayoutCall& call, int k, T nan) {
    switch (k) {
        case 1: return run<V, T, 1>(call, k, nan);
        case 2: return run<V, T, 2>(call, k, nan);
        case 4: return run<V, T, 4>(call, k, nan);
        case 8: return run<V, T, 8>(call, k, nan);
        case 16: return run<V, T, 16>(call, k, nan);
        default: return run<V, T, 0>(call, k, nan);
    }
}

inline bool evaluate(const LayoutCall& call) {
    const Header header{call.program};
    const ChainRow rules{call.program + header[Header::rules]};
    const Environment environment(ROUNDINGS[rules[ChainRow::rounding]]);
    const int k = int(header[Header::k]);
    if (OperandRow{call.program + header[Header::a]}[OperandRow::bytes] == 4)
        run_lanes<F32s, float>(call, k, __builtin_bit_cast(float, u32(header[Header::nan_code])));
    else
        run_lanes<F64s, double>(call, k, __builtin_bit_cast(double, header[Header::nan_code]));
    return true;
}
#else
inline bool evaluate(const LayoutCall&) { return false; }
#endif

}  // namespace chain
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
