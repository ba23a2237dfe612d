// Whole tiles in which every pair of codes has its turn, straight into the engine layout.  The rule is told in
// generators/tiles_codes.py.
#pragma once
#include "cpu/generators/layout.hpp"
#include "model/circuit.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {
namespace {

class CodeTiles {
    const Domain t;
    const u64 counted_from;
    Place p;
    char* origin[5];

    int bits() const { return t.a.bits + t.b.bits; }
    u64 code_a(u64 index) const { return (index + counted_from) & ((u64(1) << t.a.bits) - 1); }
    u64 code_b(u64 index) const {
        const u64 n = (index + counted_from) & ((u64(1) << bits()) - 1);
        return ((n >> t.a.bits) + code_a(index)) & ((u64(1) << t.b.bits) - 1);
    }

    template <class Item>
    void rows(u64 first, int lane, bool alone) {
        typedef Item Row __attribute__((vector_size(STRIP * sizeof(Item))));
        Item* to = reinterpret_cast<Item*>(p.at[0]);
        for (int strip = 0; strip < p.strips; ++strip) {
            Row codes, elsewhere;
            for (int row = 0; row < STRIP; ++row) {
                codes[row] = Item(code_a(first + u64(strip * STRIP + row)));
                elsewhere[row] = alone || Circuit<u64>::special(t.a, codes[row]) ? Item(0) : codes[row];
            }
            for (int k = 0; k < t.space.k; ++k, to += STRIP) memcpy(to, k == lane ? &codes : &elsewhere, sizeof codes);
        }
    }

    template <class Item>
    void columns(u64 first, int lane, bool alone) {
        Item* to = reinterpret_cast<Item*>(p.at[1]);
        const int live = t.space.live;
        for (int column = 0; column < p.n; ++column, to += live) {
            const u64 code = code_b(first + u64(column));
            if (alone || Circuit<u64>::special(t.b, code)) {
                memset(to, 0, size_t(live) * sizeof(Item));
                to[lane] = Item(code);
                continue;
            }
            const Item turns[2] = {Item(code), Item(Circuit<u64>::minus(t.b, code))};
            for (int k = 0; k < live; ++k) to[k] = turns[k & 1];
            to[live - 1] = turns[0];
        }
    }

    void tile(u64 first) {
        const u64 lap = first >> bits();
        const int lane = int(((first >> GROUP_BITS) + (lap >> 1)) % u64(t.space.live));
        t.a.item == 1 ? rows<uint8_t>(first, lane, lap & 1) : rows<uint16_t>(first, lane, lap & 1);
        t.b.item == 1 ? columns<uint8_t>(first, lane, lap & 1) : columns<uint16_t>(first, lane, lap & 1);
        if (t.c.present) memset(p.at[2], 0, size_t(p.bytes[2]));
        for (int role = 3; t.space.groups && role < 5; ++role)
            memset(p.at[role], i32(encode<u32>(t.scale, 0, 0, 0)), size_t(p.bytes[role]));
        p.next();
    }

public:
    CodeTiles(const Domain& domain, const Stream& words, const Place& place)
        : t(domain), counted_from(words.seed * ODD), p(place) {
        memcpy(origin, p.at, sizeof origin);
    }

    // Tiles, always to the same place.
    void run(u64 start, i64 count) {
        memcpy(p.at, origin, sizeof origin);
        for (i64 done = 0; done < count; ++done, start += u64(p.side)) tile(start);
    }
};

}  // namespace
}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
