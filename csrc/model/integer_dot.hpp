// Exact integer dot products, straight from the arrays: what a program whose header names such a kernel computes.
//
// d = c + sum_k a_k b_k, exact, then wrapped to d's bits or limited to its range (one step, or steps that wrap).
#pragma once
#include "program.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

struct IntegerDot {
    const void *a, *b, *c;  // rows of k items, rows of k items, one item a vector; c null where absent
    void* d;
    i64 vectors;
    int k;
    bool saturate;
};

template <class A, class B, class D, class Sum, int K>
MMAPROBE_CALL void integer_dots(const IntegerDot& call) {
    const A* a = static_cast<const A*>(call.a);
    const B* b = static_cast<const B*>(call.b);
    const int32_t* c = static_cast<const int32_t*>(call.c);
    D* d = static_cast<D*>(call.d);
    const int k = K ? K : call.k;
    const i64 most = (i64(1) << (8 * sizeof(D) - 1)) - 1;
    for (i64 v = 0; v < call.vectors; ++v, a += k, b += k) {
        Sum sum = 0;
        for (int i = 0; i < k; ++i) sum += Sum(a[i]) * Sum(b[i]);
        i64 total = i64(sum) + (c ? i64(c[v]) : 0);
        if (call.saturate) total = total > most ? most : total < -most - 1 ? -most - 1 : total;
        d[v] = D(total);
    }
}

template <class A, class B, class D, class Sum>
MMAPROBE_CALL void integer_dots_of(const IntegerDot& call) {
    switch (call.k) {
        case 2: return integer_dots<A, B, D, Sum, 2>(call);
        case 4: return integer_dots<A, B, D, Sum, 4>(call);
        case 8: return integer_dots<A, B, D, Sum, 8>(call);
        case 64: return integer_dots<A, B, D, Sum, 64>(call);
        default: return integer_dots<A, B, D, Sum, 0>(call);
    }
}

// The kernel for 8-bit operands: their products' sum fits 32 bits up to 2^15 lanes.
template <class D>
MMAPROBE_CALL bool narrow_dots(const IntegerDot& call, bool a_signed, bool b_signed) {
    if (call.k > 1 << 15) return false;
    if (a_signed)
        b_signed ? integer_dots_of<int8_t, int8_t, D, int32_t>(call) : integer_dots_of<int8_t, uint8_t, D, int32_t>(call);
    else
        b_signed ? integer_dots_of<uint8_t, int8_t, D, int32_t>(call)
                 : integer_dots_of<uint8_t, uint8_t, D, int32_t>(call);
    return true;
}

// Runs the kernel that fits the operands; false where none does, and the interpreter must.
MMAPROBE_CALL bool run_integer_dot(const i64* program, const IntegerDot& call, int out_bytes) {
    const Header header{program};
    const OperandRow a{program + header[Header::a]}, b{program + header[Header::b]};
    const i64 bytes = a[OperandRow::bytes];
    if (bytes != b[OperandRow::bytes]) return false;
    const bool a_signed = a[OperandRow::is_signed], b_signed = b[OperandRow::is_signed];
    if (bytes == 1 && out_bytes == 4) return narrow_dots<int32_t>(call, a_signed, b_signed);
    if (bytes == 1 && out_bytes == 2 && !call.c) return narrow_dots<int16_t>(call, a_signed, b_signed);
    if (bytes != 2 || out_bytes != 4 || !a_signed || !b_signed) return false;
    integer_dots_of<int16_t, int16_t, int32_t, i64>(call);
    return true;
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
