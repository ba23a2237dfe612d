// Exact integer dot products, straight from the arrays: what a program whose header names such a kernel computes.
//
// d = c + sum_k a_k b_k, exact, then wrapped to d's bits or limited to its range (one step, or steps that wrap).
// Items of fewer bits than their container have anything above them; bits (b1) are multiplied by AND or XOR.
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

// An item in the low bits of a container.
template <class Container, int Bits>
struct LowBits {
    Container code;
    MMAPROBE_CALL int32_t value() const {
        constexpr int unused = 8 * int(sizeof(Container)) - Bits;
        return Container(Container(code << unused)) >> unused;
    }
};

template <class A, class B, class D, class Sum, bool Xor, int K>
MMAPROBE_CALL void integer_dots(const IntegerDot& call) {
    const A* a = static_cast<const A*>(call.a);
    const B* b = static_cast<const B*>(call.b);
    const int32_t* c = static_cast<const int32_t*>(call.c);
    D* d = static_cast<D*>(call.d);
    const int k = K ? K : call.k;
    const i64 most = (i64(1) << (8 * sizeof(D) - 1)) - 1;
    for (i64 v = 0; v < call.vectors; ++v, a += k, b += k) {
        Sum sum = 0;
        for (int i = 0; i < k; ++i) {
            const int32_t x = a[i].value(), y = b[i].value();
            sum += Xor ? Sum(x ^ y) : Sum(x) * Sum(y);
        }
        const i64 total = i64(sum) + (c ? i64(c[v]) : 0);
        d[v] = D(call.saturate ? saturated(total, most) : total);
    }
}

template <class A, class B, class D, class Sum, bool Xor = false>
MMAPROBE_CALL void integer_dots_of(const IntegerDot& call) {
    switch (call.k) {
        case 2: return integer_dots<A, B, D, Sum, Xor, 2>(call);
        case 4: return integer_dots<A, B, D, Sum, Xor, 4>(call);
        case 8: return integer_dots<A, B, D, Sum, Xor, 8>(call);
        case 16: return integer_dots<A, B, D, Sum, Xor, 16>(call);
        case 32: return integer_dots<A, B, D, Sum, Xor, 32>(call);
        case 64: return integer_dots<A, B, D, Sum, Xor, 64>(call);
        default: return integer_dots<A, B, D, Sum, Xor, 0>(call);
    }
}

// Operands in bytes: the sum of their products fits 32 bits up to 2^15 lanes.
template <int Bits, class D>
MMAPROBE_CALL void narrow_dots(const IntegerDot& call, bool a_signed, bool b_signed) {
    using S = LowBits<int8_t, Bits>;
    using U = LowBits<uint8_t, Bits>;
    if (a_signed)
        b_signed ? integer_dots_of<S, S, D, int32_t>(call) : integer_dots_of<S, U, D, int32_t>(call);
    else
        b_signed ? integer_dots_of<U, S, D, int32_t>(call) : integer_dots_of<U, U, D, int32_t>(call);
}

MMAPROBE_CALL bool byte_dots(const IntegerDot& call, const OperandRow& a, const OperandRow& b, int out_bytes,
                             bool exclusive) {
    const bool a_signed = a[OperandRow::is_signed], b_signed = b[OperandRow::is_signed];
    using Bit = LowBits<uint8_t, 1>;
    if (out_bytes == 2 && a[OperandRow::bits] == 8 && !call.c) {
        narrow_dots<8, int16_t>(call, a_signed, b_signed);
        return true;
    }
    if (out_bytes != 4) return false;
    switch (a[OperandRow::bits]) {
        case 8: return narrow_dots<8, int32_t>(call, a_signed, b_signed), true;
        case 4: return narrow_dots<4, int32_t>(call, a_signed, b_signed), true;
        case 1:
            exclusive ? integer_dots_of<Bit, Bit, int32_t, int32_t, true>(call)
                      : integer_dots_of<Bit, Bit, int32_t, int32_t>(call);
            return true;
        default: return false;
    }
}

// Runs the kernel that fits the operands; false where none does, and the interpreter must.
MMAPROBE_CALL bool run_integer_dot(const i64* program, const IntegerDot& call, int out_bytes) {
    const Header header{program};
    const OperandRow a{program + header[Header::a]}, b{program + header[Header::b]};
    if (a[OperandRow::bytes] != b[OperandRow::bytes] || a[OperandRow::bits] != b[OperandRow::bits]) return false;
    if (a[OperandRow::bytes] == 1)
        return call.k <= 1 << 15 && byte_dots(call, a, b, out_bytes, header[Header::multiply] == XOR);
    const bool sixteen = a[OperandRow::bits] == 16 && a[OperandRow::is_signed] && b[OperandRow::is_signed];
    if (!sixteen || out_bytes != 4) return false;
    using Half = LowBits<int16_t, 16>;
    integer_dots_of<Half, Half, int32_t, i64>(call);
    return true;
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
