// The kernel of chains of fused multiply-adds in binary32 or binary64: d = fma(a_K-1, b_K-1, .. fma(a_0, b_0, c)).
//
// The processor's own operation is the rule: one IEEE rounding, subnormals kept. Only NaNs get another code. Where every
// link hands one on, x86 does it by the order of an instruction's operands; elsewhere the chain is gone through again with
// what each link hands on.
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

// How a chain comes by its NaNs: what a link makes of x, y and the sum so far, and what becomes of the last sum.
struct OneNan {  // the rule's code, whatever it was
    template <class V>
    static V link(V x, V y, V sum) {
        return fused_multiply(x, y, sum);
    }
    template <class V, class T, class X, class Y>
    static V end(const Header&, T nan, int, const X&, const Y&, V, V sum) {
        return sum == sum ? sum : broadcast(V{}, nan);
    }
};
struct HandedOn {  // what every link hands on, found afterwards
    template <class V>
    static V link(V x, V y, V sum) {
        return fused_multiply(x, y, sum);
    }
    template <class V, class T, class X, class Y>
    static V end(const Header& header, T, int k, const X& x, const Y& y, V c, V sum) {
        using Word = std::conditional_t<sizeof(T) == 8, u64, u32>;
        using Words = std::conditional_t<sizeof(T) == 8, U64s, U32s>;
        if (!any(U32s(sum != sum))) return sum;
        return nan_of_chain<Word, Words>(header, k, x, y, c, [](V u, V v, V z) { return fused_multiply(u, v, z); });
    }
};

#if defined(__x86_64__)
// x y + sum by an instruction of x86, which hands on the first NaN among x, y and sum, quieted, and where an operation is
// invalid the negative quiet one without payload.
MMAPROBE_HD F32s link_in_order(F32s x, F32s y, F32s sum) {
    asm("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(x), "vm"(y));
    return sum;
}
MMAPROBE_HD F64s link_in_order(F64s x, F64s y, F64s sum) {
    asm("vfmadd231pd %2, %1, %0" : "+v"(sum) : "v"(x), "vm"(y));
    return sum;
}

// The same in the rule's order: how many factors come before the sum, and whether y comes before x. A factor behind a sum
// that is a NaN has no say: 1 stands in its place.
template <int BEFORE_SUM, bool Y_FIRST>
struct InOrder {
    template <class V>
    static V link(V x, V y, V sum) {
        const auto behind = [&](V factor) { return sum == sum ? factor : broadcast(V{}, 1); };
        const V first = Y_FIRST ? y : x, second = Y_FIRST ? x : y;
        return link_in_order(BEFORE_SUM > 0 ? first : behind(first), BEFORE_SUM > 1 ? second : behind(second), sum);
    }
    template <class V, class T, class X, class Y>
    static V end(const Header&, T, int, const X&, const Y&, V, V sum) {
        return sum;
    }
};
#endif

// K lanes; 0: known at run time only.
template <class V, class T, int K, class Nans>
void run(const LayoutCall& call, int lanes, T nan) {
    constexpr int width = sizeof(V) / sizeof(T);
    const int k = K ? K : lanes;
    const Header header{call.program};
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
                for (int i = 0; i < k; ++i) acc = Nans::link(x(i), y(i), acc);
                acc = Nans::end(header, nan, k, x, y, c, acc);
                memcpy(static_cast<T*>(call.d) + to, &acc, sizeof acc);
            }
}

template <class V, class T, class Nans>
void run_lanes(const LayoutCall& call, int k, T nan) {
    switch (k) {
        case 1: return run<V, T, 1, Nans>(call, k, nan);
        case 2: return run<V, T, 2, Nans>(call, k, nan);
        case 4: return run<V, T, 4, Nans>(call, k, nan);
        case 8: return run<V, T, 8, Nans>(call, k, nan);
        case 16: return run<V, T, 16, Nans>(call, k, nan);
        default: return run<V, T, 0, Nans>(call, k, nan);
    }
}

#if defined(__x86_64__)
template <class V, class T>
void run_in_order(const LayoutCall& call, int k, T nan, i64 order) {
    const auto at = [&](int place) { return order >> 2 * place & 3; };
    const bool y_first = at(0) == 2 || (at(0) == 3 && at(1) == 2);
    switch (at(0) == 3 ? 0 : at(1) == 3 ? 1 : 2) {
        case 0: return (y_first ? run_lanes<V, T, InOrder<0, true>> : run_lanes<V, T, InOrder<0, false>>)(call, k, nan);
        case 1: return (y_first ? run_lanes<V, T, InOrder<1, true>> : run_lanes<V, T, InOrder<1, false>>)(call, k, nan);
        default:
            return (y_first ? run_lanes<V, T, InOrder<2, true>> : run_lanes<V, T, InOrder<2, false>>)(call, k, nan);
    }
}
#endif

template <class V, class T>
void run_nans(const LayoutCall& call, int k, u64 nan) {
    using Word = std::conditional_t<sizeof(T) == 8, u64, u32>;
    const Header header{call.program};
    const T code = __builtin_bit_cast(T, Word(nan));
    if (header[Header::nan] != LOCAL) return run_lanes<V, T, OneNan>(call, k, code);
#if defined(__x86_64__)
    if (nan == (sizeof(T) == 8 ? 0xFFF8000000000000u : 0xFFC00000u))
        return run_in_order<V, T>(call, k, code, header[Header::fma_order]);
#endif
    run_lanes<V, T, HandedOn>(call, k, code);
}

inline bool evaluate(const LayoutCall& call) {
    const Header header{call.program};
    const ChainRow rules{call.program + header[Header::rules]};
    const Environment environment(ROUNDINGS[rules[ChainRow::rounding]]);
    const int k = int(header[Header::k]);
    if (OperandRow{call.program + header[Header::a]}[OperandRow::bytes] == 4)
        run_nans<F32s, float>(call, k, u64(header[Header::nan_code]));
    else
        run_nans<F64s, double>(call, k, u64(header[Header::nan_code]));
    return true;
}
#else
inline bool evaluate(const LayoutCall&) { return false; }
#endif

}  // namespace chain
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
