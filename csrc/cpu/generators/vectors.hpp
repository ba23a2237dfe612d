// Vectors of more bytes than a register has, as two of half as many: compilers go through such a vector of their own item by
// item wherever it is compared, chosen from or narrowed.
#pragma once
#include <type_traits>

#include "cpu/generators/words.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {
namespace {

// A vector's items and its halves.
template <class V>
struct Parts {
    typedef std::remove_reference_t<decltype(std::declval<V&>()[0])> Item;
    typedef Item Half __attribute__((vector_size(sizeof(V) / 2)));
    static constexpr bool ONE = true;
};
template <class V>
struct Two {
    typedef V Register;  // or two of half as many
    V low, high;

    Two() = default;
    MMAPROBE_HD Two(V first, V last) : low(first), high(last) {}
    template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
    MMAPROBE_HD Two(Number x) : low(V{} + typename Parts<V>::Item(x)), high(low) {}
    template <class From>
    MMAPROBE_HD explicit Two(const Two<From>& x) : low(V(x.low)), high(V(x.high)) {}

#define MMAPROBE_OPERATOR(op) \
    friend MMAPROBE_HD Two operator op(const Two& x, const Two& y) { \
        return {V(x.low op y.low), V(x.high op y.high)}; \
    } \
    MMAPROBE_HD Two& operator op## = (const Two& y) { return *this = *this op y; }
    MMAPROBE_OPERATOR(+)
    MMAPROBE_OPERATOR(-)
    MMAPROBE_OPERATOR(*)
    MMAPROBE_OPERATOR(/)
    MMAPROBE_OPERATOR(&)
    MMAPROBE_OPERATOR(|)
    MMAPROBE_OPERATOR(^)
    MMAPROBE_OPERATOR(<<)
    MMAPROBE_OPERATOR(>>)
#undef MMAPROBE_OPERATOR
    friend MMAPROBE_HD Two operator<<(const Two& x, int places) { return {V(x.low << places), V(x.high << places)}; }
    friend MMAPROBE_HD Two operator>>(const Two& x, int places) { return {V(x.low >> places), V(x.high >> places)}; }
    MMAPROBE_HD Two operator~() const { return {~low, ~high}; }

    typedef Two<decltype(V{} == V{})> Mask;
#define MMAPROBE_OPERATOR(op) \
    friend MMAPROBE_HD Mask operator op(const Two& x, const Two& y) { return {x.low op y.low, x.high op y.high}; }
    MMAPROBE_OPERATOR(==)
    MMAPROBE_OPERATOR(!=)
    MMAPROBE_OPERATOR(<)
    MMAPROBE_OPERATOR(>)
#undef MMAPROBE_OPERATOR
};

template <class V>
struct Parts<Two<V>> {
    typedef typename Parts<V>::Item Item;
    typedef V Half;
    static constexpr bool ONE = false;
};

// Registers with so many bytes of items.
template <class Item, int BYTES, bool FITS = BYTES <= WIDTH>
struct Registers {
    typedef Item type __attribute__((vector_size(BYTES)));
};
template <class Item, int BYTES>
struct Registers<Item, BYTES, false> {
    typedef Two<typename Registers<Item, BYTES / 2>::type> type;
};
// A vector of so many bytes; one that every build's compiler takes as it is where there are few.
constexpr int FEW_BYTES = 32;
template <class Item, int BYTES>
using Vector = typename Registers<Item, BYTES, (BYTES <= WIDTH || BYTES <= FEW_BYTES)>::type;

template <class V>
MMAPROBE_HD Two<typename Parts<V>::Half> split(const V& x) {
    Two<typename Parts<V>::Half> parts;
    memcpy(&parts, &x, sizeof parts);
    return parts;
}

// Items as those of another kind, as many of them.
template <class To, class From>
MMAPROBE_HD To converted(const From& x) {
    if constexpr (Parts<To>::ONE && Parts<From>::ONE) {
        return __builtin_convertvector(x, To);
    } else {
        typedef typename Parts<To>::Half Half;
        const auto parts = split(x);
        const Two<Half> found = {converted<Half>(parts.low), converted<Half>(parts.high)};
        To whole;
        memcpy(&whole, &found, sizeof whole);
        return whole;
    }
}

// Of two vectors by a mask, whose items are 0 or -1.
template <class Mask, class V>
MMAPROBE_HD V chosen(const Mask& where, const V& x, const V& y) {
    if constexpr (Parts<V>::ONE)
        return where ? x : y;
    else
        return (x & V(where)) | (y & ~V(where));
}
template <class V>
MMAPROBE_HD V least_of(const V& x, const V& y) {
    if constexpr (Parts<V>::ONE)
        return x < y ? x : y;
    else
        return {least_of(x.low, y.low), least_of(x.high, y.high)};
}
template <class V>
MMAPROBE_HD V most_of(const V& x, const V& y) {
    if constexpr (Parts<V>::ONE)
        return x > y ? x : y;
    else
        return {most_of(x.low, y.low), most_of(x.high, y.high)};
}

// Numbers without sign shifted by as many places as each has.
template <class V>
MMAPROBE_HD V shifted_down(const V& x, const V& places) {
#if defined(__AVX2__) && !defined(__AVX512BW__)  // shifts lanes of 32 bits and more
    if constexpr (sizeof(typename Parts<V>::Item) == 2) {
        typedef Vector<u32, sizeof(V)> Pairs;
        const Pairs lower = (Pairs(x) & 0xFFFF) >> (Pairs(places) & 0xFFFF),
                    upper = Pairs(x) >> 16 >> (Pairs(places) >> 16);
        return V(lower | upper << 16);
    }
#endif
    return x >> places;
}

// The upper halves of products of 16 bits without sign.
template <class V>
MMAPROBE_HD V upper_products(const V& x, const V& y) {
    if constexpr (sizeof(V) > WIDTH) {
        const auto of_x = split(x), of_y = split(y);
        const decltype(of_x) found = {upper_products(of_x.low, of_y.low), upper_products(of_x.high, of_y.high)};
        V whole;
        memcpy(&whole, &found, sizeof whole);
        return whole;
    } else if constexpr (sizeof(V) == WIDTH) {
        return V(times_high(U16(x), U16(y)));
    } else {
        static_assert(sizeof(V) == 32 && WIDTH == 64, "half a register of AVX-512");
#if defined(__AVX2__)
        return V(_mm256_mulhi_epu16(__m256i(x), __m256i(y)));
#endif
    }
}

template <class V>
MMAPROBE_HD void store(const V& x, void* out) {
    memcpy(out, &x, sizeof x);
}
template <class V>
MMAPROBE_HD V load(const void* from) {
    V x;
    memcpy(&x, from, sizeof x);
    return x;
}

}  // namespace
}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
