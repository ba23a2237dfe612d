// Random words for as many vectors at once as a register has 32-bit lanes.
#pragma once
#include "cpu/generators/words.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {
namespace {

constexpr int LAST_ROUNDS = FEWER_ROUNDS - 2;  // unrolled: what 7 rounds leave after an opening
constexpr u32 TIMES_LEFT = 0xD2511F53u, TIMES_RIGHT = 0xCD9E8D57u;

// A stream with the keys of its rounds.
struct Keys {
    int rounds;
    u64 number, left[ROUNDS], right[ROUNDS];

    explicit Keys(const Stream& stream, int most = ROUNDS) : rounds(most), number(stream.number) {
        u32 k0 = u32(stream.seed), k1 = u32(stream.seed >> 32);
        for (int round = 0; round < rounds; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
            left[round] = k0;
            right[round] = k1;
        }
    }
};

// The counters of PER blocks on their way through the rounds: of even and of odd lanes, in the lower halves of the items;
// the upper halves hold what does not matter.
struct State {
    U64 c0[2], c1[2], c2[2], c3[2];
};

// One round but the last of `Sets` sets of blocks side by side, so that one's multiplications hide in another's.
template <int Sets>
MMAPROBE_HD void philox_round(State (&s)[Sets], const Keys& keys, int round) {
    const U64 k0 = U64{} + keys.left[round], k1 = U64{} + keys.right[round];
#pragma GCC unroll 8
    for (int i = 0; i < 2 * Sets; ++i) {
        State& x = s[i / 2];
        const int half = i % 2;
        const U64 left = times_low(x.c0[half], TIMES_LEFT), right = times_low(x.c2[half], TIMES_RIGHT);
        x.c0[half] = (right >> 32) ^ x.c1[half] ^ k0;
        x.c1[half] = right;
        x.c2[half] = (left >> 32) ^ x.c3[half] ^ k1;
        x.c3[half] = left;
    }
}

// Rounds First and following.
template <int First, int Sets>
MMAPROBE_HD void philox_sets(State (&s)[Sets], const Keys& keys, Four (&out)[Sets]) {
    const int last = keys.rounds - 1, unrolled = keys.rounds - LAST_ROUNDS;
    for (int round = First; round < unrolled; ++round) philox_round(s, keys, round);
#pragma GCC unroll 8
    for (int i = 0; i < LAST_ROUNDS - 1; ++i) philox_round(s, keys, unrolled + i);
    const U32 k0 = U32{} + u32(keys.left[last]), k1 = U32{} + u32(keys.right[last]);
#pragma GCC unroll 4
    for (int i = 0; i < Sets; ++i) {
        const U64 left[2] = {times_low(s[i].c0[0], TIMES_LEFT), times_low(s[i].c0[1], TIMES_LEFT)};
        const U64 right[2] = {times_low(s[i].c2[0], TIMES_RIGHT), times_low(s[i].c2[1], TIMES_RIGHT)};
        out[i] = {{join_high(right[0], right[1]) ^ join_low(s[i].c1[0], s[i].c1[1]) ^ k0, join_low(right[0], right[1]),
                   join_high(left[0], left[1]) ^ join_low(s[i].c3[0], s[i].c3[1]) ^ k1, join_low(left[0], left[1])}};
    }
}

// Numbers of PER vectors, of even and of odd lanes.
struct Indices {
    U64 index[2];
    explicit Indices(u64 first) {
        U64 even;
        for (int i = 0; i < WIDTH / 8; ++i) even[i] = 2 * u64(i);
        index[0] = even + first;
        index[1] = even + (first + 1);
    }
    // The first half of the lanes from one vector on, the second half from another.
    Indices(u64 first, u64 second) : Indices(first) {
        U64 upper;
        for (int i = 0; i < WIDTH / 8; ++i) upper[i] = i < WIDTH / 16 ? 0 : ~u64(0);
        upper &= second - first - PER / 2;
        index[0] += upper;
        index[1] += upper;
    }
    // From one number on, so far apart.
    static Indices spaced(u64 first, u64 apart) {
        Indices found(0);
        for (U64& index : found.index) index = index * apart + first;
        return found;
    }
    // Before the first round, for block `number` of a purpose.
    State counters(const Keys& keys, Purpose purpose, u32 number) const {
        const U64 c2 = U64{} + (u32(purpose) << 16 | number), c3 = U64{} + keys.number;
        return {{index[0], index[1]}, {index[0] >> 32, index[1] >> 32}, {c2, c2}, {c3, c3}};
    }
};

// What a block's number becomes in the first round.
struct Opened {
    u64 high, low;
    Opened(const Keys& keys, Purpose purpose, u32 number) {
        const u64 product = u64(u32(purpose) << 16 | number) * TIMES_RIGHT;
        high = product >> 32 ^ keys.left[0];
        low = u32(product);
    }
};

// The first two rounds of PER vectors, but for what depends on the number of the block.
class Opening {
    U64 upper[2], c0[2], c1[2], c2[2];

public:
    Opening(const Indices& indices, const Keys& keys) {
        for (int i = 0; i < 2; ++i) {
            const U64 left = times_low(indices.index[i], TIMES_LEFT);
            upper[i] = indices.index[i] >> 32;
            c1[i] = times_low((left >> 32) ^ (keys.number ^ keys.right[0]), TIMES_RIGHT);
            c0[i] = (c1[i] >> 32) ^ keys.left[1];
            c2[i] = left ^ keys.right[1];
        }
    }
    // After two rounds.
    MMAPROBE_HD State state(const Opened& block) const {
        State s;
        for (int i = 0; i < 2; ++i) {
            s.c3[i] = times_low(upper[i] ^ block.high, TIMES_LEFT);
            s.c0[i] = c0[i] ^ block.low;
            s.c1[i] = c1[i];
            s.c2[i] = (s.c3[i] >> 32) ^ c2[i];
        }
        return s;
    }
};

}  // namespace
}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
