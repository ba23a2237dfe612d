// The kernel of sums that C joins last (FP8's mma.sync where two f16 sums emulate it): fused sums of the products alone,
// step after step from +0 in an order of lanes of their own, and C added to what they make, to nearest even.
//
// The sums are a program of their own in the program, for the kernel of fused sums; that takes lanes in ascending order,
// so that operands are put in order first.  The processor's own addition is the rule of the last one: results of 16 bits
// are added as binary32 numbers, which round a sum of two of them so little that it is rounded once.
#pragma once
#include <memory>

#include "cpu/kernels/floats.hpp"
#include "cpu/kernels/fused_exact.hpp"
#include "cpu/kernels/registers.hpp"
#include "model/program.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

bool fused_sums(const LayoutCall& call);  // fused_build.cpp

namespace late_c {

constexpr i64 PIECE = 1 << 17;  // bytes of operands and sums at a time: they stay in the second cache

// The order of lanes, by two where they lie so: places of items, and how many an item has.
struct Order {
    int places[fused::MOST_K], count, together;

    Order(const i64* lanes, int k) : count(k), together(1) {
        bool by_two = k % 2 == 0;
        for (int i = 0; i + 1 < k; i += 2)
            by_two = by_two && lanes[i + 1] == lanes[i] + 1;  // from even places: it is all lanes
        if (by_two) count = k / 2, together = 2;
        for (int i = 0; i < count; ++i) places[i] = int(lanes[i * together] / together);
    }

    template <int BYTES>
    void put(const char* from, char* to, i64 lines) const {
        for (i64 line = 0; line < lines; ++line, from += count * BYTES)
            for (int i = 0; i < count; ++i, to += BYTES) memcpy(to, from + places[i] * BYTES, BYTES);
    }
    // Lines of K items of so many bytes.
    void operator()(const char* from, char* to, i64 lines, int bytes) const {
        switch (bytes * together) {
            case 1: return put<1>(from, to, lines);
            case 2: return put<2>(from, to, lines);
            case 4: return put<4>(from, to, lines);
            case 8: return put<8>(from, to, lines);
            case 16: return put<16>(from, to, lines);
            case 32: return put<32>(from, to, lines);
            case 64: return put<64>(from, to, lines);
            default: return put<128>(from, to, lines);
        }
    }
};

// d = sum + c of `count` results, a multiple of LANES; a NaN is the code.
inline void add_floats(const float* sums, const float* c, u32* d, i64 count, u32 nan) {
    for (i64 i = 0; i < count; i += LANES) {
        const F32s sum = load<F32s>(sums + i) + load<F32s>(c + i);
        const U32s is_nan = U32s(sum != sum);
        store(d + i, (U32s(sum) & ~is_nan) | (is_nan & nan));
    }
}
inline void add_halves(const uint16_t* sums, const uint16_t* c, uint16_t* d, i64 count, u32 nan) {
    for (i64 i = 0; i < count; i += LANES) {
        const F32s sum = from_half(sums + i) + from_half(c + i);
        const U32s is_nan = U32s(sum != sum);
        uint16_t codes[LANES];
        to_half(codes, sum);
        narrow(d + i, (widen(codes) & ~is_nan) | (is_nan & nan));
    }
}

inline bool evaluate(const LayoutCall& call) {
    const Header header{call.program};
    const LateCRow row{call.program + header[Header::rules]};
    const int k = int(header[Header::k]);
    const auto bytes = [&](Header::Column c) { return int(OperandRow{call.program + header[c]}[OperandRow::bytes]); };
    const int a_bytes = bytes(Header::a), b_bytes = bytes(Header::b), d_bytes = bytes(Header::c);
    if (d_bytes == 2 && !HAS_HALVES) return false;
    const Order order(call.program + row[LateCRow::order], k);
    // of a tile, or of a group: lines of rows and of columns, results, bytes
    const i64 a_lines = call.n ? (call.m + STRIP - 1) / STRIP : 1, b_lines = call.n ? call.n : 1;
    const int a_item = a_bytes * STRIP, b_item = call.n ? b_bytes : b_bytes * STRIP;
    const i64 results = a_lines * (call.n ? call.n : 1) * STRIP;
    const i64 a_size = a_lines * k * a_item, b_size = b_lines * k * b_item, d_size = results * d_bytes;
    const i64 units = larger(1, smaller(call.count, PIECE / larger(1, a_size + b_size + d_size)));
    const std::unique_ptr<char[]> memory(new char[size_t(units * (a_size + b_size + d_size))]);
    char *const sums = memory.get(), *const a = sums + units * d_size, *const b = a + units * a_size;  // all aligned
    const Environment environment;
    for (i64 first = 0; first < call.count; first += units) {
        const i64 count = smaller(units, call.count - first);
        order(static_cast<const char*>(call.a) + first * a_size, a, count * a_lines, a_item);
        order(static_cast<const char*>(call.b) + first * b_size, b, count * b_lines, b_item);
        const LayoutCall piece{
            call.program + row[LateCRow::sums], a, b, nullptr, nullptr, nullptr, sums, count, call.m, call.n};
        if (!fused_sums(piece)) return false;
        const char* const c = static_cast<const char*>(call.c) + first * d_size;
        char* const d = static_cast<char*>(call.d) + first * d_size;
        const u32 nan = u32(header[Header::nan_code]);
        if (d_bytes == 2)
            add_halves(reinterpret_cast<const uint16_t*>(sums), reinterpret_cast<const uint16_t*>(c),
                       reinterpret_cast<uint16_t*>(d), count * results, nan);
        else
            add_floats(reinterpret_cast<const float*>(sums), reinterpret_cast<const float*>(c),
                       reinterpret_cast<u32*>(d), count * results, nan);
    }
    return true;
}

}  // namespace late_c
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
