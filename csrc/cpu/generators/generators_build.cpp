// The native generator on tiles of vectors: random words and codes in flat loops over lanes, aims vector by vector.
#include <memory>

#include "cpu/generators/generators.hpp"
#include "cpu/generators/layout.hpp"
#include "cpu/generators/rows.hpp"
#include "cpu/generators/tile.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {
namespace {

struct Maker {
    Domain t;
    Stream stream;
    Keys keys;
    GeneratorCall call;
    int tile;  // vectors
    Grid vectors{3}, lanes;
    Words words, lane;
    u32 v[LANES][12];
    Aims aims;
    Addend addends[LANES];
    u32 low_a[LANES], low_b[LANES];

    explicit Maker(const GeneratorCall& c)
        : t(read_domain(c.domain)), stream{c.seed, c.stream}, keys(stream), call(c),
          tile(larger(1, WANTED / larger(t.space.live, 3))), lanes(t.space.live) {}
    void run();
    void floats(i64 done, int count);
    void integers(i64 done, int count);
    void circuits(i64 done, int count);
    template <class Family>
    void aim(int count);
    void aim_family(int count);
    void scales(i64 done, int vector);
    void share_words(int places);
    template <class Code>
    void encode_lanes(Code* a, Code* b, int places) const;
    template <class Code>
    void emit(i64 done, int count);
    template <class Code>
    void specials(i64 done, int vector, Code* a, Code* b, u64& c);
    void special_scales(i64 done, int vector) const;
    template <class Code>
    void emit_b(i64 done, int count, const Code* b);
    u32 metadata(i64 done, int vector, int chunk) const;
};

void Maker::run() {
    if (streamed(call)) return StreamMaker(t, stream, call, call.family == CLUSTERED).run();
    for (i64 done = 0; done < call.count; done += tile) {
        const int count = int(call.count - done < tile ? call.count - done : tile);
        if (call.family >= CODES) {
            circuits(done, count);
            continue;
        }
        words.fill(keys, call.start + u64(done), vectors, 3 * count, VECTOR);
        words.interleave(&v[0][0], 3 * count);
        lane.fill(keys, call.start + u64(done), lanes, count * t.space.live, LANE);
        t.a.is_float ? floats(done, count) : integers(done, count);
    }
}

template <class Family>
void Maker::aim(int count) {
    const int live = t.space.live;
    for (int vector = 0; vector < count; ++vector) {
        const Family family(t, v[vector]);
        for (int k = 0, n = vector * live; k < live; ++k, ++n) aims.put(n, family.lane(t, k, lane.w0[n], lane.w3[n]));
        addends[vector] = family.addend(t, v[vector]);
    }
}

void Maker::aim_family(int count) {
    switch (call.family) {
        case CANCEL: return aim<Cancel>(count);
        case ULP: return aim<Ulp>(count);
        case TIE: return aim<Tie>(count);
        case ZLAD: return aim<Zlad>(count);
        case TINY: return aim<Tiny>(count);
        case SUBNORMALS: return aim<Subnormals>(count);
        case EXTREMES: return aim<Extremes>(count);
        case CONLY: return aim<Conly>(count);
        case ZEROS: return aim<Zeros>(count);
        default: return aim<Clustered>(count);
    }
}

void Maker::scales(i64 done, int vector) {
    const Space& s = t.space;
    const u32* w = v[vector];
    const i32 reach = smaller(t.a.top + t.b.top - t.a.normal - t.b.normal, 3) + 1;
    const u32 pattern = (w[11] & 3) == 0 ? FULL : POW2;
    for (int g = 0; g < s.groups; ++g) {
        const Block b = stream.draw(call.start + u64(done + vector), SCALE, u32(g));
        const int first = vector * s.live + g * s.group_lanes, last = first + s.group_lanes;
        i32 most = INT32_MIN;
        u32 any_shared = 0;
        for (int n = first; n < last; ++n) {
            most = larger(most, aims.zero[n] ? s.product_low : aims.exponent[n]);
            any_shared |= aims.shared[n];
        }
        const u32 choice = any_shared ? w[7] : b.w0;
        const i32 wanted = clamp(most - (t.a.top + t.b.top) + pick16(choice, reach), 2 * t.scale.normal,
                                 2 * t.scale.top);
        const Pair e = split(t.scale, t.scale, wanted, choice >> 16);
        const u32 codes[2] = {encode<u32>(t.scale, 0, e.a, fraction_of<u32>(t.scale, pattern, b.w1, 0)),
                              encode<u32>(t.scale, 0, e.b, fraction_of<u32>(t.scale, pattern, b.w2, 0))};
        for (int side = 0; side < 2; ++side)
            store(t.scale, call.out[3 + side], (done + vector) * s.groups + g, codes + side, 1);
        for (int n = first; n < last; ++n) {
            aims.scale[n] = e.a + e.b;
            const u32 small = aims.exponent[n] - (e.a + e.b) < t.a.low + t.b.low;
            aims.zero[n] |= small & (w[11] >> 2);
        }
    }
}

// Shared lanes take their words from the vector.
void Maker::share_words(int places) {
    for (int n = 0; n < places; ++n) {
        const u32* w = v[lanes.vector[n]];
        lane.w1[n] = aims.shared[n] ? w[4] : lane.w1[n];
        lane.w2[n] = aims.shared[n] ? w[5] : lane.w2[n];
        lane.w3[n] = aims.shared[n] ? w[6] : lane.w3[n];
        low_a[n] = aims.shared[n] ? 0 : low_a[n];
        low_b[n] = aims.shared[n] ? 0 : low_b[n];
    }
}

template <class Code>
void Maker::encode_lanes(Code* a, Code* b, int places) const {
    const Domain domain = t;
    for (int n = 0; n < places; ++n) {
        const Codes<Code> code = products<Code>(domain, aims.get(n), aims.scale[n], lane.w1[n], lane.w2[n], lane.w3[n],
                                                low_a[n], low_b[n]);
        a[n] = code.a;
        b[n] = code.b;
    }
}

void Maker::floats(i64 done, int count) {
    const int places = count * t.space.live;
    aim_family(count);
    memset(aims.scale, 0, sizeof(u32) * size_t(places));
    memset(low_a, 0, sizeof(u32) * size_t(places));
    memset(low_b, 0, sizeof(u32) * size_t(places));
    if (t.a.fraction > 31 || t.b.fraction > 31) {
        words.fill(keys, call.start + u64(done), lanes, places, WIDE);
        memcpy(low_a, words.w0, sizeof(u32) * size_t(places));
        memcpy(low_b, words.w1, sizeof(u32) * size_t(places));
    }
    share_words(places);
    if (t.space.groups)
        for (int vector = 0; vector < count; ++vector) scales(done, vector);
    const bool wide = t.a.fraction > 31 || t.b.fraction > 31;
    wide ? emit<u64>(done, count) : emit<u32>(done, count);
}

template <class Code>
void Maker::emit(i64 done, int count) {
    const int live = t.space.live;
    Code a[LANES], b[LANES];
    u64 c[LANES];
    encode_lanes(a, b, count * live);
    if (t.c.present)
        for (int vector = 0; vector < count; ++vector) {
            const int at = vector * live + larger(addends[vector].mirror, 0);
            c[vector] = addend(t, addends[vector], v[vector][8], v[vector][9], a[at], b[at], aims.scale[at]);
        }
    if (call.family == SPECIALS) {
        words.fill(keys, call.start + u64(done), lanes, count * live, OVERLAY);
        for (int vector = 0; vector < count; ++vector)
            specials(done, vector, a + vector * live, b + vector * live, c[vector]);
    }
    store(t.a, call.out[0], done * live, a, count * live);
    if (t.c.present) store(t.c, call.out[2], done, c, count);
    emit_b(done, count, b);
}

// One slot, two slots (infinities and NaNs only) or a quarter of all operands become special values, sometimes a scale.
template <class Code>
void Maker::specials(i64 done, int vector, Code* a, Code* b, u64& c) {
    const Space& s = t.space;
    const u32* w = v[vector];
    const i32 slots = 2 * s.live + (t.c.is_float ? 1 : 0), first = pick16(w[2] >> 16, slots);
    const u32 mode = w[0] & 3;
    const i32 second = mode == 2 ? pick16(w[2], slots) : first;
    const auto kind = [&](u32 word) { return mode == 2 && (word & 7) > 4 ? word - 3 : word; };
    const auto chosen = [&](i32 slot, u32 word) {
        return mode == 3 ? (word >> 8 & 3) == 0 : slot == first || slot == second;
    };
    for (i32 k = 0; k < s.live; ++k) {
        if (mode != 3 && k != first >> 1 && k != second >> 1) continue;
        const int n = vector * s.live + k;
        if (chosen(2 * k, words.w0[n])) a[k] = Code(special_code(t.a, kind(words.w0[n]), words.w1[n], words.w1[n]));
        if (chosen(2 * k + 1, words.w2[n])) b[k] = Code(special_code(t.b, kind(words.w2[n]), words.w3[n], words.w3[n]));
    }
    if (t.c.is_float && chosen(2 * s.live, w[11])) c = special_code(t.c, kind(w[11]), w[8], w[9]);
    if (s.groups) special_scales(done, vector);
}

void Maker::special_scales(i64 done, int vector) const {
    const u32* w = v[vector];
    if (w[7] >> 16 & 7) return;
    const u32 code = u32(special_code(t.scale, w[7] >> 21, w[5], w[6]));
    const i64 at = (done + vector) * t.space.groups + pick16(w[7], t.space.groups);
    for (int side = 0; side < 2; ++side)
        if (w[7] >> (19 + side) & 1) store(t.scale, call.out[3 + side], at, &code, 1);
}

// Draws one metadata item, and stores it where wanted.
u32 Maker::metadata(i64 done, int vector, int chunk) const {
    const Space& s = t.space;
    const u32 item = metadata_item(s.chunk, stream.draw(call.start + u64(done + vector), METADATA, u32(chunk)).w0);
    if (call.out[5]) static_cast<uint8_t*>(call.out[5])[(done + vector) * (s.k / s.chunk) + chunk] = uint8_t(item);
    return item;
}

// b: the live elements in place; where A is sparse, any value in the others.
template <class Code>
void Maker::emit_b(i64 done, int count, const Code* b) {
    const Space& s = t.space;
    if (!s.chunk) return store(t.b, call.out[1], done * s.k, b, count * s.k);
    const int kept = s.chunk / 2;
    Code full[2 * LANES];
    for (int vector = 0; vector < count; ++vector) {
        for (int k = 0; k < s.k; ++k) {
            const Block x = stream.draw(call.start + u64(done + vector), IDLE, u32(k));
            const i32 exponent = t.b.low + pick(x.w0, t.b.top - t.b.low + 1);
            full[k] = t.b.is_float ? encode<Code>(t.b, x.w3 & 1, exponent, fraction_of<Code>(t.b, FULL, x.w1, x.w2))
                                   : Code(raw_code(t.b, x.w1, 0));
        }
        for (int chunk = 0; chunk < s.k / s.chunk; ++chunk) {
            const u32 item = metadata(done, vector, chunk);
            for (int i = 0; i < kept; ++i)
                full[chunk * s.chunk + metadata_element(s.chunk, item, i)] = b[vector * s.live + chunk * kept + i];
        }
        store(t.b, call.out[1], (done + vector) * s.k, full, s.k);
    }
}

void Maker::integers(i64 done, int count) {
    const int live = t.space.live;
    const u32 share = call.family == EXTREMES ? 4 : 1;
    u64 a[LANES], b[LANES];
    for (int n = 0; n < count * live; ++n) {
        const u32* w = v[lanes.vector[n]];
        const bool same = share == 4 && (w[0] & 1);
        a[n] = (lane.w0[n] >> 8 & 3) < share ? edge_code(t.a, same ? w[4] : lane.w0[n]) : raw_code(t.a, lane.w1[n], 0);
        b[n] = (lane.w3[n] >> 8 & 3) < share ? edge_code(t.b, same ? w[5] : lane.w3[n]) : raw_code(t.b, lane.w2[n], 0);
    }
    store(t.a, call.out[0], done * live, a, count * live);
    emit_b(done, count, b);
    for (int vector = 0; t.c.present && vector < count; ++vector) {
        const u32* w = v[vector];
        const u32 kind = w[10] & 3;
        const u64 c = kind == 0   ? edge_code(t.c, w[10] >> 2)
                      : kind == 3 ? raw_code(t.c, w[8], w[9])
                                  : near_limit(t.c, w[10] >> 8, w[8]);
        store(t.c, call.out[2], done + vector, &c, 1);
    }
}

void Maker::circuits(i64 done, int count) {
    const int live = t.space.live;
    const u64 unit = unit_scale(t);
    u64 a[LANES], b[LANES];
    for (int vector = 0; vector < count; ++vector) {
        const u64 index = call.start + u64(done + vector);
        const Circuit circuit(t, call.family, stream, index, stream.draw(index, VECTOR, 0),
                              stream.draw(index, VECTOR, 1));
        for (int k = 0, n = vector * live; k < live; ++k, ++n) {
            const Codes<u64> codes = circuit.of(k);
            a[n] = codes.a;
            b[n] = codes.b;
        }
        if (t.c.present) store(t.c, call.out[2], done + vector, &circuit.c, 1);
        for (int side = 0; side < 2; ++side)
            for (int g = 0; g < t.space.groups; ++g)
                store(t.scale, call.out[3 + side], (done + vector) * t.space.groups + g, &unit, 1);
    }
    store(t.a, call.out[0], done * live, a, count * live);
    emit_b(done, count, b);
}

}  // namespace
}  // namespace generators

void generate(const GeneratorCall& call) { std::make_unique<generators::Maker>(call)->run(); }

void generate_layout(const GeneratorCall& call, int m, int n, int64_t step, const Ready& ready) {
    using namespace generators;
    if (generate_aimed_tiles(call, m, n, step, ready)) return;
    const Domain t = read_domain(call.domain);
    const Place place(t, m, n, call.out);
    const i64 units = n ? call.count : (call.count + STRIP - 1) / STRIP;
    const auto each = [&](const auto& make) {
        for (i64 done = 0; done < units; done += step) {
            make(done, units - done < step ? units - done : step);
            ready();
        }
    };
    if (streamed(call)) {
        Streams streams(t, {call.seed, call.stream}, call.family == CLUSTERED, call.out);
        if (LayoutStreams::fits(streams)) {
            LayoutStreams layout(streams, place);
            return each([&](i64 done, i64 count) { layout.run(call.start + u64(done * place.side), count); });
        }
    }
    const auto maker = std::make_unique<Maker>(call);
    each([&](i64 done, i64 count) {
        const i64 first = done * place.side, left = n ? count * place.side : call.count - first;
        turn_vectors(place, count, left, [&](i64 from, i64 vectors, void* const* out) {
            maker->call.start = call.start + u64(first + from);
            maker->call.count = vectors;
            memcpy(maker->call.out, out, sizeof maker->call.out);
            maker->run();
        });
    });
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
