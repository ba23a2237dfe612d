// Philox4x32 (Salmon, Moraes, Dror, Shaw, SC 2011): a counter and a key to four random words, without state.
// The same stream as mmaprobe/generators/philox.py.
#pragma once
#include "types.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {

using u32 = unsigned int;
using i32 = int;

struct Block {
    u32 w0, w1, w2, w3;
};

// All 64 bits of a product.  Told so, NVRTC leaves out the product with a constant's upper half, which is 0.
#if defined(__CUDA_ARCH__)
MMAPROBE_HD u64 wide_product(u32 x, u32 y) {
    u64 out;
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(out) : "r"(x), "r"(y));
    return out;
}
#else
MMAPROBE_HD u64 wide_product(u32 x, u32 y) { return u64(x) * y; }
#endif

constexpr int ROUNDS = 10, FEWER_ROUNDS = 7;

MMAPROBE_HD Block philox(u32 c0, u32 c1, u32 c2, u32 c3, u32 k0, u32 k1, int rounds = ROUNDS) {
    MMAPROBE_UNROLLED for (int round = 0; round < rounds; ++round) {
        const u64 left = wide_product(c0, 0xD2511F53u), right = wide_product(c2, 0xCD9E8D57u);
        c0 = u32(right >> 32) ^ c1 ^ k0;
        c1 = u32(right);
        c2 = u32(left >> 32) ^ c3 ^ k1;
        c3 = u32(left);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {c0, c1, c2, c3};
}

// What a block of random words is for: the upper half of counter word 2 (the lower half numbers the blocks).
enum Purpose : u32 { VECTOR, LANE, WIDE, OVERLAY, IDLE, METADATA, SCALE, SHARED };

struct Stream {
    u64 seed;
    u32 number;  // family number and version: counter word 3

    MMAPROBE_HD Block draw(u64 index, Purpose purpose, u32 count, int rounds = ROUNDS) const {
        return philox(u32(index), u32(index >> 32), purpose << 16 | count, number, u32(seed), u32(seed >> 32), rounds);
    }
};

// A number below count from 32 random bits, and from the low 16 of them.
MMAPROBE_HD i32 pick(u32 word, i32 count) { return i32(u64(word) * u32(count) >> 32); }
MMAPROBE_HD i32 pick16(u32 half, i32 count) { return i32((half & 0xFFFF) * u32(count) >> 16); }

}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
