// Exact integer dot products: items as signed or unsigned bytes, four products at a time.
#pragma once
#include "compiled_program.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace compiled {

// z + sum of the products of four bytes.
template <bool X_SIGNED, bool Y_SIGNED>
MMAPROBE_HD u32 add_products_of_four(u32 x, u32 y, u32 z) {
#if defined(__CUDA_ARCH__)
    u32 out;
    if (X_SIGNED && Y_SIGNED)
        asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(out) : "r"(x), "r"(y), "r"(z));
    else if (X_SIGNED)
        asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(out) : "r"(x), "r"(y), "r"(z));
    else if (Y_SIGNED)
        asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(out) : "r"(x), "r"(y), "r"(z));
    else
        asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(out) : "r"(x), "r"(y), "r"(z));
    return out;
#else
#if defined(__GFX11__) || defined(__GFX12__)
    if constexpr (DOTS) return u32(__builtin_amdgcn_sudot4(X_SIGNED, i32(x), Y_SIGNED, i32(y), i32(z), false));
#elif defined(__GFX9__)
    if constexpr (DOTS && X_SIGNED && Y_SIGNED)
        return u32(__builtin_amdgcn_sdot4(i32(x), i32(y), i32(z), false));
    else if constexpr (DOTS && !X_SIGNED && !Y_SIGNED)
        return __builtin_amdgcn_udot4(x, y, z, false);
#endif
    for (int at = 0; at < 32; at += 8) {
        const i32 a = X_SIGNED ? i32(int8_t(x >> at)) : i32(uint8_t(x >> at));
        const i32 b = Y_SIGNED ? i32(int8_t(y >> at)) : i32(uint8_t(y >> at));
        u32 product = u32(a * b);
#if defined(__HIP__)
        if constexpr (!DOTS) asm("" : "+v"(product));  // of what it knows the compiler makes a dot product
#endif
        z += product;
    }
    return z;
#endif
}

template <bool SATURATES>
struct Integers : OneByOne<Integers<SATURATES>> {
    static constexpr bool FITS = of_operand(Header::a, OperandRow::bits) <= 8 &&
                                 of_operand(Header::b, OperandRow::bits) <= 8 && LIVE % 4 == 0 && LIVE <= 1 << 14 &&
                                 result_bytes() == 4;
    struct Row {
        alignas(4) uint8_t item[LIVE];
        Meets meets;
    };
    struct Column {
        alignas(4) uint8_t item[K];
    };

    // The value as a byte: what a container holds above the format's bits does not count.
    template <Header::Column NAME>
    MMAPROBE_HD static uint8_t byte_of(u64 code) {
        constexpr int unused = 32 - int(of_operand(NAME, OperandRow::bits));
        const u32 top = u32(code) << unused;
        return uint8_t(of_operand(NAME, OperandRow::is_signed) ? u32(i32(top) >> unused) : top >> unused);
    }
    MMAPROBE_HD static void put_a(Row& row, int k, u64 code) { row.item[k] = byte_of<Header::a>(code); }
    MMAPROBE_HD static void put_b(Column& column, int k, u64 code) { column.item[k] = byte_of<Header::b>(code); }
    MMAPROBE_HD static void put_scale_a(Row&, int, u64) {}
    MMAPROBE_HD static void put_scale_b(Column&, int, u64) {}
    MMAPROBE_HD static void put_metadata(Row& row, int chunk, u32 item) { row.meets.put(chunk, item); }
    MMAPROBE_HD static void seal(Row&) {}
    MMAPROBE_HD static void seal(Column&) {}

    MMAPROBE_HD static u32 four(const uint8_t* items) { return *reinterpret_cast<const Four*>(items); }
    MMAPROBE_HD static u32 met(const Row& row, const Column& column, int k) {
        if constexpr (CHUNK == 0) return four(column.item + k);
        u32 out = 0;
        MMAPROBE_UNROLLED
        for (int i = 0; i < 4; ++i) out |= u32(column.item[row.meets[k + i]]) << 8 * i;
        return out;
    }
    MMAPROBE_HD static u64 evaluate(const Row& row, const Column& column, u64 c) {
        constexpr bool a_signed = of_operand(Header::a, OperandRow::is_signed);
        constexpr bool b_signed = of_operand(Header::b, OperandRow::is_signed);
        u32 sum = 0;
        MMAPROBE_UNROLLED
        for (int k = 0; k < LIVE; k += 4) {
            const u32 x = four(row.item + k), y = met(row, column, k);
            sum = header(Header::multiply) == XOR ? add_products_of_four<false, false>(x ^ y, 0x01010101, sum)
                                                  : add_products_of_four<a_signed, b_signed>(x, y, sum);
        }
        const i64 total = i64(i32(sum)) + (HAS_C ? i64(i32(u32(c))) : 0);
        return u32(SATURATES ? saturated(total, 0x7FFFFFFF) : total);
    }

    typedef u32 __attribute__((may_alias)) Four;
};

}  // namespace compiled
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
