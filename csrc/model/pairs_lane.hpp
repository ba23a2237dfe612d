// Sums by pairs, lane by lane: d = c + ((p0 + p1) + (p2 + p3)), step after step, each product and each sum settled:
// rounded to nearest even, a subnormal one a zero of its sign.
#pragma once
#include "types.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace pairs {

// Numbers: Number, and settled(x) of what an operation made.
template <class Numbers, int COUNT, class A, class B>
MMAPROBE_HD typename Numbers::Number sum_products(const A& a, const B& b, int first) {
    if constexpr (COUNT == 1)
        return Numbers::settled(a(first) * b(first));
    else
        return Numbers::settled(sum_products<Numbers, COUNT / 2>(a, b, first) +
                                sum_products<Numbers, COUNT / 2>(a, b, first + COUNT / 2));
}

template <class Numbers, int STEP, class A, class B>
MMAPROBE_HD typename Numbers::Number sum_steps(typename Numbers::Number sum, int k, const A& a, const B& b) {
    MMAPROBE_UNROLLED
    for (int first = 0; first < k; first += STEP)
        sum = Numbers::settled(sum + sum_products<Numbers, STEP>(a, b, first));
    return sum;
}

}  // namespace pairs
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
