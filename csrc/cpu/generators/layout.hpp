// Vectors straight into the engine layout (tiles.hpp): whole tiles, or groups of 16 separate vectors.
//
// A tile is max(M, N) consecutive vectors: row i of A is the a of its vector i, column j of B the b of its vector j, and
// C[i, j] the c of vector i where i + j is even, else of vector j (generators/tiles.py).
#pragma once
#include "cpu/generators/stream.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {
namespace {

// Where the operands of one tile, or of one group, lie.
struct Place {
    const Domain& t;
    int m, n, strips, side;  // n = 0: groups
    int whole_m, whole_n;  // of the tile whose first rows and columns these are
    char* at[5];
    i64 bytes[5];  // of a tile or group

    Place(const Domain& domain, int rows, int columns, void* const* out, int all_rows = 0, int all_columns = 0)
        : t(domain), m(rows), n(columns), strips(n ? (m + STRIP - 1) / STRIP : 1), whole_m(larger(m, all_rows)),
          whole_n(larger(n, all_columns)) {
        side = n ? larger(whole_m, whole_n) : STRIP;
        for (int role = 0; role < 5; ++role) {
            at[role] = static_cast<char*>(out[role]);
            const i64 units = role == 2 ? i64(strips) * STRIP * larger(n, 1) : by_rows(role) ? n : strips * STRIP;
            bytes[role] = units * (role == 2 ? 1 : items(role)) * layout(role).item;
        }
    }
    const Layout& layout(int role) const { return role == 0 ? t.a : role == 1 ? t.b : role == 2 ? t.c : t.scale; }
    int items(int role) const {
        return role == 0 ? t.space.live : role == 1 ? t.space.k : role == 2 ? t.c.present : t.space.groups;
    }
    bool by_rows(int role) const { return n && (role == 1 || role == 4); }
    // Whether vectors `first` and above of a tile have a part in an operand.
    bool needs(int role, int first) const { return !n || role == 2 || first < (by_rows(role) ? n : m); }
    void next() {
        for (int role = 0; role < 5; ++role)
            if (at[role]) at[role] += bytes[role];
    }
};

// c of a tile from the c of its vectors, of which there are a multiple of 16; a register of rows at a time.
template <class Item>
void spread_addends(const Place& p, const void* vectors) {
    constexpr int ROWS = sizeof(Item) < 8 ? STRIP : STRIP / 2;
    typedef Item Row __attribute__((vector_size(ROWS * sizeof(Item))));
    const Item* c = static_cast<const Item*>(vectors);
    Row even;
    for (int i = 0; i < ROWS; ++i) even[i] = i % 2 ? Item(0) : Item(~Item(0));
    for (int first = 0; first < p.strips * STRIP; first += ROWS) {
        Row rows;
        memcpy(&rows, c + first, sizeof rows);
        Item* to = reinterpret_cast<Item*>(p.at[2]) + i64(first / STRIP) * p.n * STRIP + first % STRIP;
        const auto put = [&](const Row& keep, Item column) {
            const Row out = (rows & keep) | (column & ~keep);
            memcpy(to, &out, sizeof out);
            to += STRIP;
        };
        for (int j = 0; j < p.n; ++j) {
            put(even, c[j]);
            if (++j < p.n) put(~even, c[j]);
        }
    }
}

void spread_addends(const Place& p, const void* vectors) {
    switch (p.t.c.item) {
        case 1: return spread_addends<uint8_t>(p, vectors);
        case 2: return spread_addends<uint16_t>(p, vectors);
        case 4: return spread_addends<uint32_t>(p, vectors);
        default: return spread_addends<uint64_t>(p, vectors);
    }
}

// Rows of 16 vectors with `items` items each, to columns.
template <class Item>
void turn(const char* from, char* to, int items, int vectors) {
    for (int k = 0; k < items; ++k)
        for (int n = 0; n < vectors; ++n)
            reinterpret_cast<Item*>(to)[k * STRIP + n] = reinterpret_cast<const Item*>(from)[n * items + k];
}

void turn(const Layout& f, const char* from, char* to, int items, int vectors) {
    switch (f.item) {
        case 1: return turn<uint8_t>(from, to, items, vectors);
        case 2: return turn<uint16_t>(from, to, items, vectors);
        case 4: return turn<uint32_t>(from, to, items, vectors);
        default: return turn<uint64_t>(from, to, items, vectors);
    }
}

// Families whose streams have their operands at whole words.
class LayoutStreams {
    Streams& streams;
    Place p;
    std::vector<signed char> span_of;  // of each word; -1: none
    std::vector<char> addends;
    char* origin[5];
    std::vector<std::vector<Step>> steps;  // of each PER vectors
    std::vector<Step> own, shared;  // of those, what two tiles draw each, and together

    // Where the columns of an operand begin for the vectors from `first` on.
    char* columns_of(const Span& span, int first) {
        if (span.role == 2 && p.n) return addends.data() + i64(first - first % STRIP) * span.format->item;
        return p.at[span.role] + (p.n ? i64(first / STRIP) * span.bytes() * STRIP : 0);
    }
    void columns(const Span& span, const Four& words, int i, int k, int first) {
        char* to = columns_of(span, first);
        const int lane = first % STRIP;
        switch (span.format->item) {
            case 1: return store_items<uint8_t>(words.w[i], to, k, span.items, lane);
            case 2: return store_items<uint16_t>(words.w[i], to, k, span.items, lane);
            case 4: return store_items<uint32_t>(words.w[i], to, k, span.items, lane);
            default:
                if (i % 2) store_wide(words.w[i - 1], words.w[i], to, k, lane);
        }
    }
    template <class Item>
    void four_columns(const Span& span, const Four& words, int k, int first) {
        constexpr int PER_WORD = 4 / sizeof(Item);
        char* to = columns_of(span, first);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) store_items<Item>(words.w[i], to, k + i * PER_WORD, first % STRIP);
    }
    // `rows`: how many of the vectors have a part in operands by rows.
    template <class Items>
    MMAPROBE_HD void whole(const Step& step, const Four& words, int first, int rows) {
        const Span& span = *step.whole;
        const int offset = 16 * step.block - span.offset;
        if (p.by_rows(span.role)) {
            char* to = p.at[span.role] + i64(first) * span.bytes() + offset;
            if (rows - first >= PER) return store_rows(words, to, span.bytes());
            return store_rows(words, to, span.bytes(), rows - first);
        }
        switch (Items::ITEM ? Items::ITEM : span.format->item) {
            case 1: return four_columns<uint8_t>(span, words, offset, first);
            case 2: return four_columns<uint16_t>(span, words, offset / 2, first);
            case 4: return four_columns<uint32_t>(span, words, offset / 4, first);
            default:
                for (int i = 1; i < 4; i += 2) columns(span, words, i, offset / 8 + i / 2, first);
        }
    }

    void rows(const Span& span, U32 word, int offset, int first) const {
        const int pitch = span.bytes(), bytes = smaller(4, pitch - offset);
        char* to = p.at[span.role] + i64(first) * pitch + offset;
        for (int n = 0; n < PER && first + n < p.n; ++n, to += pitch) {
            const u32 value = word[n];
            memcpy(to, &value, size_t(bytes));
        }
    }

    __attribute__((noinline)) void parts(const Step& step, Four& words, int first) {
        for (int i = 0; i < 4; ++i) {
            const int at = span_of[size_t(4 * step.block + i)];
            if (at < 0 || !p.needs(streams.spans[size_t(at)].role, first)) continue;
            const Span& span = streams.spans[size_t(at)];
            const int offset = 4 * (4 * step.block + i) - span.offset;
            if (span.unused) words.w[i] &= span.used;
            p.by_rows(span.role) ? rows(span, words.w[i], offset, first)
                                 : columns(span, words, i, offset / span.format->item, first);
        }
    }

    bool holds(int block, int first) const {
        for (int word = 4 * block; word < 4 * block + 4; ++word)
            if (const int at = span_of[size_t(word)]; at >= 0 && p.needs(streams.spans[size_t(at)].role, first))
                return true;
        return false;
    }

    template <class Items>
    void draw(const Indices& indices, const std::vector<Step>& wanted, int first, int rows_) {
        streams.each<Items>(
            indices, wanted, [&](const Step& step, const Four& words) { whole<Items>(step, words, first, rows_); },
            [&](const Step& step, Four& words) { parts(step, words, first); });
    }

    // `each`: the blocks of each PER vectors.
    template <class Items>
    void one(u64 start, const std::vector<Step>* each) {
        for (int first = 0; first < p.side; first += PER)
            draw<Items>(Indices(start + u64(first)), each[first / PER], first, p.n);
        if (p.n && p.t.c.present) spread_addends(p, addends.data());
        p.next();
    }

    // Two tiles whose columns fill the lanes together: what lies by rows is drawn for both at once.
    template <class Items>
    void two(u64 start) {
        const u64 second = start + u64(p.side);
        char *begin[5], *end[5];
        Cluster aims[5];
        memcpy(begin, p.at, sizeof begin);
        one<Items>(start, &own);
        streams.save_aims(aims);
        one<Items>(second, &own);
        streams.join_aims(aims);
        memcpy(end, p.at, sizeof end);
        memcpy(p.at, begin, sizeof begin);
        draw<Items>(Indices(start, second), shared, 0, 2 * p.n);
        memcpy(p.at, end, sizeof end);
    }

    // Whether blocks of one operand alone have only items of this kind.
    bool all_are(Shape shape, int item) const {
        for (const std::vector<Step>& of : steps)
            for (const Step& step : of)
                if (const Span* span = step.whole;
                    span && (span->replacer.kind() != shape || span->format->item != item))
                    return false;
        return true;
    }

    template <class Items>
    void run_items(u64 start, i64 count) {
        const bool paired = 2 * p.n == PER && p.side <= PER;
        i64 unit = 0;
        for (; paired && unit + 2 <= count; unit += 2, start += 2 * u64(p.side)) two<Items>(start);
        for (; unit < count; ++unit, start += u64(p.side)) one<Items>(start, steps.data());
    }

public:
    LayoutStreams(Streams& s, const Place& place)
        : streams(s), p(place), span_of(size_t(4 * s.blocks), -1),
          addends(size_t((p.side + STRIP - 1) / STRIP * STRIP * larger(p.t.c.item, 1))) {
        memcpy(origin, p.at, sizeof origin);
        for (size_t i = 0; i < streams.spans.size(); ++i)
            for (int word = streams.spans[i].first_word(); word < streams.spans[i].end_word(); ++word)
                span_of[size_t(word)] = static_cast<signed char>(i);
        for (int first = 0; first < p.side; first += PER)
            steps.push_back(streams.steps([&](int block) { return holds(block, first); }));
        for (const Step& step : steps[0]) (step.whole && p.by_rows(step.whole->role) ? shared : own).push_back(step);
    }

    static bool fits(const Streams& s) {
        for (const Span& span : s.spans)
            if (span.offset % larger(span.format->item, 4)) return false;
        return true;
    }

    // Tiles or groups, always to the same place.
    void run(u64 start, i64 count) {
        memcpy(p.at, origin, sizeof origin);
        if (all_are(EVERY_CODE, 1)) return run_items<KnownItems<EVERY_CODE, 1>>(start, count);
        if (all_are(EVERY_CODE, 2)) return run_items<KnownItems<EVERY_CODE, 2>>(start, count);
        if (all_are(LARGEST_LEFT_OUT, 1)) return run_items<KnownItems<LARGEST_LEFT_OUT, 1>>(start, count);
        run_items<AnyItems>(start, count);
    }
};

// Every other family: separate vectors, where they can at once in their place, else turned afterwards.
class TurnedVectors {
    const Place place;
    const i64 step;  // tiles or groups at a time
    std::vector<char> vectors[5];
    u32 own = 0, strips = 0;  // operands, bit by bit: with vectors of their own; whose vectors come in strips

    bool whole_strips() const { return !place.n || place.side == place.strips * STRIP; }
    static void turn_unit(const Place& p, int role, const char* from, i64 size) {
        if (role == 2 && p.n) return spread_addends(p, from);
        if (p.by_rows(role)) {
            memcpy(p.at[role], from, size_t(p.n * size));
            return;
        }
        for (int strip = 0; strip < p.strips; ++strip)
            turn(p.layout(role), from + strip * STRIP * size, p.at[role] + strip * STRIP * size, p.items(role), STRIP);
    }

public:
    // `can_strip`: whether the maker of vectors takes operands in strips.
    TurnedVectors(const Place& p, bool can_strip) : place(p), step(larger(1, 512 / p.side)) {
        for (int role = 0; role < 5; ++role) {
            if (!p.items(role) || !p.at[role]) continue;
            const bool by_columns = can_strip && !p.by_rows(role) && whole_strips() && !(role == 2 && p.n);
            if (by_columns)
                strips |= 1u << role;
            else if (!p.by_rows(role) || p.n != p.side)
                own |= 1u << role;
            if (own >> role & 1)
                vectors[role].resize(size_t((step * p.side + STRIP) * p.items(role) * p.layout(role).item));
        }
    }

    // Operands that come in strips, bit by bit.
    u32 in_strips() const { return strips; }

    // Tiles or groups, always to the same place; `make`: (first, count, where to).
    template <class MakeVectors>
    void run(i64 count, i64 last, const MakeVectors& make) {
        Place p = place;
        for (i64 done = 0; done < count; done += step) {
            const i64 here = count - done < step ? count - done : step;
            const i64 wanted = here * p.side, left = last - done * p.side;
            void* out[6] = {};
            for (int role = 0; role < 5; ++role)
                if (p.items(role) && p.at[role]) out[role] = own >> role & 1 ? vectors[role].data() : p.at[role];
            make(done * p.side, wanted < left ? wanted : left, out);
            for (i64 unit = 0; unit < here; ++unit, p.next())
                for (int role = 0; role < 5; ++role) {
                    const i64 size = p.items(role) * p.layout(role).item;
                    if (own >> role & 1) turn_unit(p, role, vectors[role].data() + unit * p.side * size, size);
                }
        }
    }
};

}  // namespace
}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
