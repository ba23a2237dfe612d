// What the native generator works on: tiles of vectors as flat arrays over their lanes.
#pragma once
#include <stdint.h>
#include <string.h>

#include <initializer_list>

#include "cpu/generators/philox.hpp"
#include "model/circuit.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {
namespace {

constexpr int LANES = 1024;  // of a tile at most: vectors times live lanes
constexpr int WANTED = 256;  // of a tile where the instruction has fewer

// Which vector and which block of it each place of a tile is.
struct Grid {
    int per;
    u32 vector[LANES], number[LANES];
    explicit Grid(int per_vector) : per(per_vector) {
        for (int n = 0; n < LANES; ++n) {
            vector[n] = u32(n / per);
            number[n] = u32(n % per);
        }
    }
};

U64 load(const u32* words) {
    U64 out;
    memcpy(&out, words, WIDTH);
    return out;
}

struct Words {
    u32 w0[LANES], w1[LANES], w2[LANES], w3[LANES];

    void fill(const Keys& keys, u64 start, const Grid& grid, int places, Purpose purpose) {
        constexpr int SETS = 2;
        for (int n = 0; n < places; n += SETS * PER) {
            State counters[SETS];
            Four words[SETS];
            for (int i = 0; i < SETS; ++i) {
                const U64 vector = load(grid.vector + n + i * PER), block = load(grid.number + n + i * PER);
                const U64 index[2] = {start + (vector & 0xFFFFFFFFu), start + (vector >> 32)};
                const U64 tag = U64{} + (u32(purpose) << 16), number = U64{} + keys.number;
                counters[i] = {{index[0], index[1]},
                               {index[0] >> 32, index[1] >> 32},
                               {tag | block, tag | block >> 32},
                               {number, number}};
            }
            philox_sets<0>(counters, keys, words);
            for (int i = 0; i < SETS; ++i) {
                u32* out[4] = {w0, w1, w2, w3};
                for (int w = 0; w < 4; ++w) memcpy(out[w] + n + i * PER, &words[i].w[w], WIDTH);
            }
        }
    }
    void interleave(u32* out, int places) const {
        for (int n = 0; n < places; ++n) {
            out[4 * n] = w0[n];
            out[4 * n + 1] = w1[n];
            out[4 * n + 2] = w2[n];
            out[4 * n + 3] = w3[n];
        }
    }
};

// Aims of the lanes of a tile, member by member.
struct Aims {
    i32 exponent[LANES], exponent_a[LANES], exponent_b[LANES], scale[LANES];
    u32 negative[LANES], zero[LANES], pattern_a[LANES], pattern_b[LANES], shared[LANES], forced[LANES];

    void put(int n, const Lane& lane) {
        exponent[n] = lane.exponent;
        negative[n] = lane.negative;
        zero[n] = lane.zero;
        pattern_a[n] = lane.pattern_a;
        pattern_b[n] = lane.pattern_b;
        shared[n] = lane.shared;
        forced[n] = lane.forced;
        exponent_a[n] = lane.exponent_a;
        exponent_b[n] = lane.exponent_b;
    }
    Lane get(int n) const {
        return {exponent[n], negative[n], zero[n],       pattern_a[n], pattern_b[n],
                shared[n],   forced[n],   exponent_a[n], exponent_b[n]};
    }
};

template <class To, class From>
void copy_codes(void* out, i64 at, const From* codes, int count) {
    To* to = static_cast<To*>(out) + at;
    for (int n = 0; n < count; ++n) to[n] = To(codes[n]);
}
template <class From>
void store(const Layout& f, void* out, i64 at, const From* codes, int count) {
    switch (f.item) {
        case 1: return copy_codes<uint8_t>(out, at, codes, count);
        case 2: return copy_codes<uint16_t>(out, at, codes, count);
        case 4: return copy_codes<uint32_t>(out, at, codes, count);
        default: return copy_codes<uint64_t>(out, at, codes, count);
    }
}

i64 number(const i64*& p) { return *p++; }

Layout read_layout(const i64*& p) {
    Layout f;
    f.present = i32(number(p));
    f.is_float = i32(number(p));
    f.bits = i32(number(p));
    f.item = i32(number(p));
    f.fraction = i32(number(p));
    f.implicit = u64(number(p));
    f.normal = i32(number(p));
    f.low = i32(number(p));
    f.top = i32(number(p));
    f.padding = i32(number(p));
    f.largest = u64(number(p));
    f.sign = u64(number(p));
    f.infinity = u64(number(p));
    f.nan_rule = i32(number(p));
    return f;
}

Domain read_domain(const i64* p) {
    Domain t;
    for (Layout* f : {&t.a, &t.b, &t.c, &t.d, &t.scale}) *f = read_layout(p);
    Space& s = t.space;
    for (i32* field :
         {&s.k, &s.live, &s.chunk, &s.groups, &s.group_lanes, &s.product_top, &s.product_normal, &s.product_low,
          &s.anchor_top, &s.anchor_low, &s.c_top, &s.d_top, &s.d_normal, &s.d_low, &s.d_fraction})
        *field = i32(number(p));
    return t;
}

}  // namespace
}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
