// Separate vectors of the families that aim lane by lane, row by row.
//
// A batch is cut into tiles of `pitch` vectors.  Everything about lane k of vector n of a tile stands at place
// k * pitch + n, so that loops over vectors are over neighbours: the compiler makes them as many at once as a register
// holds, and the rules of model/families.hpp and model/operands.hpp are the only text.
#pragma once
#include <vector>

#include "cpu/generators/rows.hpp"
#include "cpu/generators/tile.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {
namespace {

// Iterations of a loop that touch nothing of each other's.
#if defined(__clang__)
#define MMAPROBE_SIDE_BY_SIDE _Pragma("clang loop vectorize(assume_safety)")
#else
#define MMAPROBE_SIDE_BY_SIDE _Pragma("GCC ivdep")
#endif

constexpr int BINARY64_BITS = 53;  // of a significand
constexpr int VECTORS = 128;      // of a tile at most
constexpr int PLACES = 512;       // of a tile where it has more than 16 vectors
constexpr int LEAST_VECTORS = 16; // of a tile, so that a register has its fill

int vectors_of_tile(int live) { return clamp(PLACES / live / LEAST_VECTORS * LEAST_VECTORS, LEAST_VECTORS, VECTORS); }

// Words of `blocks` blocks of vectors start .. start + count - 1 (a multiple of PER): word j of block `number` goes to
// at(number, j)[n].
template <class At>
void draw_words(const Keys& keys, u64 start, int count, int blocks, Purpose purpose, const At& at) {
    constexpr int SETS = WIDTH == 64 ? 3 : 2;
    const int per_block = count / PER, units = blocks * per_block;
    for (int unit = 0; unit < units; unit += SETS) {
        State states[SETS];
        Four words[SETS];
        int number[SETS], first[SETS];
        for (int i = 0; i < SETS; ++i) {
            const int here = smaller(unit + i, units - 1);
            number[i] = here / per_block;
            first[i] = here % per_block * PER;
            states[i] = Indices(start + u64(first[i])).counters(keys, purpose, u32(number[i]));
        }
        philox_sets<0>(states, keys, words);
        for (int i = 0; i < SETS; ++i)
            for (int j = 0; j < 4; ++j) memcpy(at(number[i], j) + first[i], &words[i].w[j], WIDTH);
    }
}

// Four words of each place.
struct Words {
    u32* w[4];
    void draw(const Keys& keys, u64 start, int count, int blocks, int pitch, Purpose purpose) const {
        draw_words(keys, start, count, blocks, purpose, [&](int number, int j) { return w[j] + number * pitch; });
    }
};

// The words of each vector of a tile, 0 to 11.
struct VectorWords {
    u32 w[12][VECTORS];
    void draw(const Keys& keys, u64 start, int count, int blocks) {
        draw_words(keys, start, count, blocks, VECTOR, [&](int number, int j) { return w[4 * number + j]; });
    }
    struct All {
        u32 w[12];
    };
    MMAPROBE_HD All of(int n) const {
        return {{w[0][n], w[1][n], w[2][n], w[3][n], w[4][n], w[5][n], w[6][n], w[7][n], w[8][n], w[9][n], w[10][n],
                 w[11][n]}};
    }
};

// Aims of the lanes, member by member; `scale`: the exponent of their scales' product.
struct Aims {
    i32 *exponent, *exponent_a, *exponent_b, *scale;
    u32 *negative, *zero, *pattern_a, *pattern_b, *shared, *forced;

    Aims from(int place) const {
        return {exponent + place, exponent_a + place, exponent_b + place, scale + place,  negative + place,
                zero + place,     pattern_a + place,  pattern_b + place,  shared + place, forced + place};
    }
    MMAPROBE_HD Lane get(int n) const {
        return {exponent[n], negative[n], zero[n],       pattern_a[n], pattern_b[n],
                shared[n],   forced[n],   exponent_a[n], exponent_b[n]};
    }
};

struct Addends {
    i32 exponent[VECTORS], mirror[VECTORS], delta[VECTORS];
    u32 negative[VECTORS], zero[VECTORS], pattern[VECTORS];
    MMAPROBE_HD Addend get(int n) const { return {exponent[n], negative[n], zero[n], pattern[n], mirror[n], delta[n]}; }
};

// Aims of lane k of `count` vectors; the arrays have nothing in common.
template <class Family>
__attribute__((noinline)) void aim_lanes(const Domain& domain, const VectorWords& words, const u32* role,
                                         const u32* rest, int k, int count, const Aims& aims) {
    const Domain t = domain;
    const u32(*const v)[VECTORS] = words.w;
    const Aims to = aims;
    MMAPROBE_SIDE_BY_SIDE for (int n = 0; n < count; ++n) {
        const u32 own[12] = {v[0][n], v[1][n], v[2][n], v[3][n], v[4][n],  v[5][n],
                             v[6][n], v[7][n], v[8][n], v[9][n], v[10][n], v[11][n]};
        const Lane lane = Family(t, own).lane(t, k, role[n], rest[n]);
        to.exponent[n] = lane.exponent;
        to.negative[n] = lane.negative;
        to.zero[n] = lane.zero;
        to.pattern_a[n] = lane.pattern_a;
        to.pattern_b[n] = lane.pattern_b;
        to.shared[n] = lane.shared;
        to.forced[n] = lane.forced;
        to.exponent_a[n] = lane.exponent_a;
        to.exponent_b[n] = lane.exponent_b;
    }
}

template <class Family>
__attribute__((noinline)) void aim_addends(const Domain& domain, const VectorWords& v, int count, Addends& to) {
    const Domain t = domain;
    for (int n = 0; n < count; ++n) {
        const VectorWords::All words = v.of(n);
        const Addend aim = Family(t, words.w).addend(t, words.w);
        to.exponent[n] = aim.exponent;
        to.negative[n] = aim.negative;
        to.zero[n] = aim.zero;
        to.pattern[n] = aim.pattern;
        to.mirror[n] = aim.mirror;
        to.delta[n] = aim.delta;
    }
}

// Codes of one lane of `count` vectors: `words` are the lane's; shared lanes take theirs from the vector.  wide_a and
// wide_b: further random bits, where codes need them.
template <class Code>
__attribute__((noinline)) void encode_lanes(const Domain& domain, const VectorWords& v, const Aims& aims,
                                            const Words& words, const u32* __restrict wide_a,
                                            const u32* __restrict wide_b, int count, Code* __restrict a,
                                            Code* __restrict b) {
    const Domain t = domain;
    const u32* __restrict own_a = words.w[1], * __restrict own_b = words.w[2], * __restrict own_rest = words.w[3];
    for (int n = 0; n < count; ++n) {
        const Lane lane = aims.get(n);
        const u32 shared = 0 - lane.shared;  // all ones, or none
        const u32 low_a = sizeof(Code) > 4 ? wide_a[n] & ~shared : 0,
                  low_b = sizeof(Code) > 4 ? wide_b[n] & ~shared : 0;
        const Codes<Code> codes = products<Code>(t, lane, aims.scale[n], (v.w[4][n] & shared) | (own_a[n] & ~shared),
                                                 (v.w[5][n] & shared) | (own_b[n] & ~shared),
                                                 (v.w[6][n] & shared) | (own_rest[n] & ~shared), low_a, low_b);
        a[n] = codes.a;
        b[n] = codes.b;
    }
}

// C of `count` vectors but for what mirrors a product.
template <class Code>
__attribute__((noinline)) void encode_addends(const Domain& domain, const VectorWords& v, const Addends& aims,
                                              int count, u64* __restrict c) {
    const Layout f = domain.c;
    const Code bits = Code(~u64(0) >> (64 - 8 * f.item));
    for (int n = 0; n < count; ++n) {
        const Addend aim = aims.get(n);
        const Code code = encode<Code>(f, aim.negative, aim.exponent,
                                       fraction_of<Code>(f, aim.pattern, v.w[8][n], v.w[9][n]));
        c[n] = (aim.zero ? with_sign<Code>(f, aim.negative, 0) : code) & bits;
    }
}

// What mirrors the product of two codes: binary64 gives its leading bit, and what follows, cut.  Codes of 32 bits are of
// products that are exact there.
template <class Code>
MMAPROBE_HD u64 mirrored_code(const Domain& t, Code a, Code b, i32 scale, i32 delta) {
    typedef std::conditional_t<sizeof(Code) == 8, i64, i32> Number;
    const Code bits = Code(~u64(0) >> (64 - 8 * t.c.item));
    const Significand x = significand(t.a, a), y = significand(t.b, b);
    const double u = double(Number(x.value)), v = double(Number(y.value)), product = u * v;
    u64 code = __builtin_bit_cast(u64, product);
    if constexpr (sizeof(Code) == 8) code -= __builtin_fma(u, v, -product) < 0;
    const u32 negative = u32((a & Code(t.a.sign)) != 0) ^ u32((b & Code(t.b.sign)) == 0);
    const i32 exponent = i32(code >> 52) - 1023 + x.exponent + y.exponent + scale;
    const Code fraction = Code((code & ((u64(1) << 52) - 1)) >> (52 - t.c.fraction));
    const Code moved = encode<Code>(t.c, negative, exponent, fraction) + (Code(i64(delta)) << t.c.padding);
    return (code ? moved : with_sign<Code>(t.c, negative, 0)) & bits;
}

// In place of the c of vectors that mirror one of their products.
template <class Code>
__attribute__((noinline)) void mirror_products(const Domain& domain, const Addends& aims, const Code* a, const Code* b,
                                               const i32* scale, int pitch, int count, u64* c) {
    const Domain t = domain;
    MMAPROBE_SIDE_BY_SIDE for (int n = 0; n < count; ++n) {
        const int at = larger(aims.mirror[n], 0) * pitch + n;
        const u64 found = mirrored_code<Code>(t, a[at], b[at], scale[at], aims.delta[n]);
        c[n] = aims.mirror[n] < 0 ? c[n] : found;
    }
}

// The c of vectors first .. last - 1 that all mirror the product of their pair.
template <class Code>
__attribute__((noinline)) void mirror_pairs(const Domain& domain, const Code* a, const Code* b, int first, int last,
                                            u64* __restrict c) {
    const Domain t = domain;
    MMAPROBE_SIDE_BY_SIDE for (int n = first; n < last; ++n) c[n] = mirrored_code<Code>(t, a[n], b[n], 0, 0);
}

// What vectors of a tile hold in their lanes and in C, member by member of `Circuit`; what a group has in common stays
// with it.
template <class Code>
struct Circuits {
    Code a[VECTORS], b[VECTORS], a_other[VECTORS], b_other[VECTORS], a_third[VECTORS], b_third[VECTORS], c[VECTORS];
    i32 third[VECTORS];

    template <Family FAMILY>
    MMAPROBE_HD void put(int n, const Circuit<Code>& circuit) {
        a[n] = circuit.a;
        b[n] = circuit.b;
        b_other[n] = circuit.b_other;
        c[n] = circuit.c;
        if (FAMILY == MULTIPLIER) return;
        a_other[n] = circuit.a_other;
        a_third[n] = circuit.a_third;
        b_third[n] = circuit.b_third;
        third[n] = circuit.third;
    }
    template <Family FAMILY>
    MMAPROBE_HD CircuitLanes<Code> get(int n, i32 live, const CircuitGroup& group) const {
        if (FAMILY == MULTIPLIER) return {a[n], b[n], 0, b_other[n], 0, 0, live, group.lane, -1, -1, group.dropped};
        return {a[n], b[n],        a_other[n],  b_other[n], a_third[n], b_third[n],
                live, group.large, group.small, third[n],   -1};
    }
};

// Vectors first .. last - 1 of a tile, all of one group; the first vector of the tile has the index `start`.
template <Family FAMILY, class Code>
__attribute__((noinline)) void aim_circuits(const Domain& domain, const Stream& stream, const VectorWords& words,
                                            const CircuitGroup& group, u64 start, int first, int last,
                                            Circuits<Code>& to) {
    Domain t = domain;
    t.a.is_float = 1;  // as the compiler does not know
    const Stream drawn = stream;
    const CircuitGroup turns = group;
    const u32(*const v)[VECTORS] = words.w;
    MMAPROBE_SIDE_BY_SIDE for (int n = first; n < last; ++n) {
        const u32 own[8] = {v[0][n], v[1][n], v[2][n], v[3][n], v[4][n], v[5][n], v[6][n], v[7][n]};
        to.template put<FAMILY>(n, Circuit<Code>(t, FAMILY, drawn, start + u64(n), own, turns));
    }
}

// Codes of lane k of the same vectors.
template <Family FAMILY, class Code>
__attribute__((noinline)) void circuit_lanes(const Circuits<Code>& from, i32 live, const CircuitGroup& group, int k,
                                             int first, int last, Code* __restrict a, Code* __restrict b) {
    const CircuitGroup turns = group;
    for (int n = first; n < last; ++n) {
        const Codes<Code> pair = from.template get<FAMILY>(n, live, turns).of(k);
        a[n] = pair.a;
        b[n] = pair.b;
    }
}

// The same of all lanes, into strips of 16 vectors.
template <Family FAMILY>
__attribute__((noinline)) void circuit_strips(const Circuits<u64>& from, i32 live, const CircuitGroup& group, int first,
                                              int last, u64* __restrict a, u64* __restrict b) {
    const CircuitGroup turns = group;
    for (int n = first, next; n < last; n = next) {
        next = smaller(last, n - n % LEAST_VECTORS + LEAST_VECTORS);
        for (int k = 0; k < live; ++k) {
            const int strip = n / LEAST_VECTORS * live + k, at = strip * LEAST_VECTORS + n % LEAST_VECTORS;
            const auto put = [&](int count) MMAPROBE_INLINED {
                for (int i = 0; i < count; ++i) {
                    const Codes<u64> pair = from.template get<FAMILY>(n + i, live, turns).of(k);
                    a[at + i] = pair.a;
                    b[at + i] = pair.b;
                }
            };
            next - n == LEAST_VECTORS ? put(LEAST_VECTORS) : put(next - n);
        }
    }
}

// Places to rows of `items` items.
template <int Items, class To, class Code>
void rows_of(To* __restrict to, const Code* __restrict codes, int items, int pitch, int count) {
    const int all = Items ? Items : items;
    for (int n = 0; n < count; ++n)
        for (int k = 0; k < all; ++k) to[i64(n) * all + k] = To(codes[k * pitch + n]);
}
template <class To, class Code>
void store_rows(void* out, i64 first, const Code* codes, int items, int pitch, int count) {
    To* const to = static_cast<To*>(out) + first * items;
    switch (items) {
        case 1: return rows_of<1>(to, codes, items, pitch, count);
        case 2: return rows_of<2>(to, codes, items, pitch, count);
        case 4: return rows_of<4>(to, codes, items, pitch, count);
        case 16: return rows_of<16>(to, codes, items, pitch, count);
        default: return rows_of<0>(to, codes, items, pitch, count);
    }
}
// Vectors `first` and following of an operand.
template <class Code>
void store_rows(const Layout& f, void* out, i64 first, const Code* codes, int items, int pitch, int count) {
    switch (f.item) {
        case 1: return store_rows<uint8_t>(out, first, codes, items, pitch, count);
        case 2: return store_rows<uint16_t>(out, first, codes, items, pitch, count);
        case 4: return store_rows<uint32_t>(out, first, codes, items, pitch, count);
        default: return store_rows<uint64_t>(out, first, codes, items, pitch, count);
    }
}

// The same with 16 vectors side by side, item by item: whole strips, from a vector on that begins one.
template <class To, class Code>
void strips_of(void* out, i64 first, const Code* codes, int items, int pitch, int count) {
    To* to = static_cast<To*>(out) + first * items;
    for (int n = 0; n < count; n += LEAST_VECTORS)
        for (int k = 0; k < items; ++k, to += LEAST_VECTORS) {
            const Code* const from = codes + k * pitch + n;
            for (int i = 0; i < LEAST_VECTORS; ++i) to[i] = To(from[i]);
        }
}
template <class Code>
void store_strips(const Layout& f, void* out, i64 first, const Code* codes, int items, int pitch, int count) {
    switch (f.item) {
        case 1: return strips_of<uint8_t>(out, first, codes, items, pitch, count);
        case 2: return strips_of<uint16_t>(out, first, codes, items, pitch, count);
        case 4: return strips_of<uint32_t>(out, first, codes, items, pitch, count);
        default: return strips_of<uint64_t>(out, first, codes, items, pitch, count);
    }
}

// Makes the vectors of a call; `strips` are the operands, bit by bit, that lie in strips of 16 of them.
class Separate {
    const Domain t;
    const Stream stream;
    const Keys keys;
    GeneratorCall call;
    const u32 strips;
    const int live, pitch;
    VectorWords v;
    Addends addends;
    Circuits<u32> narrow_pairs;
    Circuits<u64> wide_pairs;
    std::vector<u32> memory;
    std::vector<u64> codes, whole;  // of a, then of b; of a whole vector's b
    Words lane, wide, scale;
    Aims aims;
    u64 c[VECTORS];

    bool in_strips(int role) const { return strips >> role & 1; }
    template <class Code>
    void put(int role, const Layout& f, i64 first, const Code* from, int items, int count) const {
        in_strips(role) ? store_strips(f, call.out[role], first, from, items, pitch, count)
                        : store_rows(f, call.out[role], first, from, items, pitch, count);
    }

    // Whether codes need 64 bits.
    bool is_wide() const { return t.a.fraction > 31 || t.b.fraction > 31; }

    void lay_out() {
        const int places = pitch * larger(live, t.space.groups);
        memory.resize(size_t(22 * places));
        codes.resize(size_t(2 * pitch * live));
        if (t.space.chunk) whole.resize(size_t(t.space.k));
        u32* at = memory.data();
        const auto next = [&] { return at += places, at - places; };
        for (Words* words : {&lane, &wide, &scale})
            for (u32*& w : words->w) w = next();
        for (u32** member : {&aims.negative, &aims.zero, &aims.pattern_a, &aims.pattern_b, &aims.shared, &aims.forced})
            *member = next();
        for (i32** member : {&aims.exponent, &aims.exponent_a, &aims.exponent_b, &aims.scale})
            *member = reinterpret_cast<i32*>(next());
    }

    template <class Family>
    void aim(int count) {
        for (int k = 0, place = 0; k < live; ++k, place += pitch)
            aim_lanes<Family>(t, v, lane.w[0] + place, lane.w[3] + place, k, count, aims.from(place));
        aim_addends<Family>(t, v, count, addends);
    }

    void aim_family(int count) {
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

    // The exponents of scale block g, and its codes.
    void scales_of(int g, int padded, u32* code_a, u32* code_b) {
        const Domain domain = t;
        const i32 reach = smaller(t.a.top + t.b.top - t.a.normal - t.b.normal, 3) + 1;
        i32 most[VECTORS];
        u32 any_shared[VECTORS] = {};
        for (int n = 0; n < padded; ++n) most[n] = INT32_MIN;
        const int first = g * t.space.group_lanes, last = first + t.space.group_lanes;
        for (int k = first; k < last; ++k) {
            const Aims own = aims.from(k * pitch);
            for (int n = 0; n < padded; ++n) {
                most[n] = larger(most[n], own.zero[n] ? domain.space.product_low : own.exponent[n]);
                any_shared[n] |= own.shared[n];
            }
        }
        const u32 *own_choice = scale.w[0] + g * pitch, *fraction_a = scale.w[1] + g * pitch,
                  *fraction_b = scale.w[2] + g * pitch;
        for (int n = 0; n < padded; ++n) {
            const u32 choice = any_shared[n] ? v.w[7][n] : own_choice[n];
            const i32 wanted = clamp(most[n] - (domain.a.top + domain.b.top) + pick16(choice, reach),
                                     2 * domain.scale.normal, 2 * domain.scale.top);
            const u32 pattern = (v.w[11][n] & 3) == 0 ? FULL : POW2;
            const Pair e = split(domain.scale, domain.scale, wanted, choice >> 16);
            code_a[n] = encode<u32>(domain.scale, 0, e.a, fraction_of<u32>(domain.scale, pattern, fraction_a[n], 0));
            code_b[n] = encode<u32>(domain.scale, 0, e.b, fraction_of<u32>(domain.scale, pattern, fraction_b[n], 0));
            most[n] = e.a + e.b;
        }
        for (int k = first; k < last; ++k) {
            const Aims own = aims.from(k * pitch);
            for (int n = 0; n < padded; ++n) {
                own.scale[n] = most[n];
                const u32 small = own.exponent[n] - most[n] < domain.a.low + domain.b.low;
                own.zero[n] |= small & (v.w[11][n] >> 2);
            }
        }
    }

    void scales(i64 done, int count, int padded) {
        const int groups = t.space.groups;
        scale.draw(keys, call.start + u64(done), padded, groups, pitch, SCALE);
        std::vector<u32> found(size_t(2 * groups * pitch));
        u32 *code_a = found.data(), *code_b = code_a + groups * pitch;
        for (int g = 0; g < groups; ++g) scales_of(g, padded, code_a + g * pitch, code_b + g * pitch);
        put(3, t.scale, done, code_a, groups, count);
        put(4, t.scale, done, code_b, groups, count);
    }

    void floats(i64 done, int count, int padded) {
        aim_family(padded);
        memset(aims.scale, 0, sizeof(u32) * size_t(pitch * live));
        if (is_wide()) wide.draw(keys, call.start + u64(done), padded, live, pitch, WIDE);
        if (t.space.groups) scales(done, count, padded);
        is_wide() ? emit<u64>(done, count, padded) : emit<u32>(done, count, padded);
    }

    template <class Code>
    void emit(i64 done, int count, int padded) {
        Code *const a = reinterpret_cast<Code*>(codes.data()), *const b = a + pitch * live;
        for (int place = 0; place < pitch * live; place += pitch) {
            const Words own = {{lane.w[0] + place, lane.w[1] + place, lane.w[2] + place, lane.w[3] + place}};
            encode_lanes(t, v, aims.from(place), own, wide.w[0] + place, wide.w[1] + place, padded, a + place,
                         b + place);
        }
        if (t.c.present) addends_of(a, b, count, padded);
        if (call.family == SPECIALS) {
            lane.draw(keys, call.start + u64(done), padded, live, pitch, OVERLAY);
            for (int vector = 0; vector < count; ++vector) specials(done, vector, a + vector, b + vector);
        }
        put(0, t.a, done, a, live, count);
        if (t.c.present) store(t.c, call.out[2], done, c, count);
        emit_b(done, count, b);
    }

    template <class Code>
    void addends_of(const Code* a, const Code* b, int count, int padded) {
        if (!t.c.is_float) {
            for (int n = 0; n < count; ++n) c[n] = raw_code(t.c, v.w[8][n], v.w[9][n]);
            return;
        }
        t.c.item > 4 ? encode_addends<u64>(t, v, addends, padded, c) : encode_addends<u32>(t, v, addends, padded, c);
        if (sizeof(Code) == 8 || (t.c.item <= 4 && t.a.fraction + t.b.fraction + 2 <= BINARY64_BITS))
            return mirror_products<Code>(t, addends, a, b, aims.scale, pitch, padded, c);
        for (int n = 0; n < count; ++n) {
            if (addends.mirror[n] < 0) continue;
            const int at = addends.mirror[n] * pitch + n;
            c[n] = addend(t, addends.get(n), v.w[8][n], v.w[9][n], a[at], b[at], aims.scale[at]);
        }
    }

    // One slot, two slots (infinities and NaNs only) or a quarter of all operands become special values, sometimes a
    // scale.
    template <class Code>
    void specials(i64 done, int vector, Code* a, Code* b) {
        const VectorWords::All all = v.of(vector);
        const u32* w = all.w;
        const i32 slots = 2 * live + (t.c.is_float ? 1 : 0), first = pick16(w[2] >> 16, slots);
        const u32 mode = w[0] & 3;
        const i32 second = mode == 2 ? pick16(w[2], slots) : first;
        const auto kind = [&](u32 word) { return mode == 2 && (word & 7) > 4 ? word - 3 : word; };
        const auto chosen = [&](i32 slot, u32 word) {
            return mode == 3 ? (word >> 8 & 3) == 0 : slot == first || slot == second;
        };
        const auto replace = [&](i32 k) {
            const int n = k * pitch + vector;
            const u32 own[4] = {lane.w[0][n], lane.w[1][n], lane.w[2][n], lane.w[3][n]};
            if (chosen(2 * k, own[0])) a[k * pitch] = Code(special_code(t.a, kind(own[0]), own[1], own[1]));
            if (chosen(2 * k + 1, own[2])) b[k * pitch] = Code(special_code(t.b, kind(own[2]), own[3], own[3]));
        };
        if (mode == 3)
            for (i32 k = 0; k < live; ++k) replace(k);
        else
            for (i32 slot : {first, second})
                if (slot < 2 * live) replace(slot >> 1);
        if (t.c.is_float && chosen(2 * live, w[11])) c[vector] = special_code(t.c, kind(w[11]), w[8], w[9]);
        if (t.space.groups) special_scales(done + vector, w);
    }

    void special_scales(i64 vector, const u32* w) const {
        if (w[7] >> 16 & 7) return;
        const u32 code = u32(special_code(t.scale, w[7] >> 21, w[5], w[6]));
        const i64 groups = t.space.groups, group = pick16(w[7], t.space.groups), lane = vector % LEAST_VECTORS;
        for (int side = 0; side < 2; ++side) {
            const i64 at = in_strips(3 + side) ? (vector - lane) * groups + group * LEAST_VECTORS + lane
                                               : vector * groups + group;
            if (w[7] >> (19 + side) & 1) store(t.scale, call.out[3 + side], at, &code, 1);
        }
    }

    // Draws one metadata item, and stores it where wanted.
    u32 metadata(i64 vector, int chunk) const {
        const Space& s = t.space;
        const u32 item = metadata_item(s.chunk, stream.draw(call.start + u64(vector), METADATA, u32(chunk)).w0);
        if (call.out[5]) static_cast<uint8_t*>(call.out[5])[vector * (s.k / s.chunk) + chunk] = uint8_t(item);
        return item;
    }

    // b: the live elements in place; where A is sparse, any value in the others.
    template <class Code>
    void emit_b(i64 done, int count, const Code* b) {
        const Space& s = t.space;
        if (!s.chunk) return put(1, t.b, done, b, s.k, count);
        const int kept = s.chunk / 2;
        for (int vector = 0; vector < count; ++vector) {
            for (int k = 0; k < s.k; ++k) {
                const Block x = stream.draw(call.start + u64(done + vector), IDLE, u32(k));
                const i32 exponent = t.b.low + pick(x.w0, t.b.top - t.b.low + 1);
                whole[size_t(k)] = t.b.is_float
                                       ? encode<Code>(t.b, x.w3 & 1, exponent, fraction_of<Code>(t.b, FULL, x.w1, x.w2))
                                       : Code(raw_code(t.b, x.w1, 0));
            }
            for (int chunk = 0; chunk < s.k / s.chunk; ++chunk) {
                const u32 item = metadata(done + vector, chunk);
                for (int i = 0; i < kept; ++i)
                    whole[size_t(chunk * s.chunk + metadata_element(s.chunk, item, i))] =
                        b[(chunk * kept + i) * pitch + vector];
            }
            store(t.b, call.out[1], (done + vector) * s.k, whole.data(), s.k);
        }
    }

    void integers(i64 done, int count) {
        const u32 share = call.family == EXTREMES ? 4 : 1;
        u64 *const a = codes.data(), *const b = a + pitch * live;
        for (int place = 0; place < pitch * live; place += pitch)
            for (int vector = 0, n = place; vector < count; ++vector, ++n) {
                const bool same = share == 4 && (v.w[0][vector] & 1);
                const u32 w0 = lane.w[0][n], w3 = lane.w[3][n];
                a[n] = (w0 >> 8 & 3) < share ? edge_code(t.a, same ? v.w[4][vector] : w0)
                                             : raw_code(t.a, lane.w[1][n], 0);
                b[n] = (w3 >> 8 & 3) < share ? edge_code(t.b, same ? v.w[5][vector] : w3)
                                             : raw_code(t.b, lane.w[2][n], 0);
            }
        put(0, t.a, done, a, live, count);
        emit_b(done, count, b);
        if (!t.c.present) return;
        for (int n = 0; n < count; ++n) {
            const u32 word = v.w[10][n], kind = word & 3;
            c[n] = kind == 0   ? edge_code(t.c, word >> 2)
                   : kind == 3 ? raw_code(t.c, v.w[8][n], v.w[9][n])
                               : near_limit(t.c, word >> 8, v.w[8][n]);
        }
        store(t.c, call.out[2], done, c, count);
    }

    // Scales of 1.
    void unit_scales(i64 done, int count) {
        const u64 unit = unit_scale(t);
        for (int side = 0; side < 2; ++side) {
            const int all = in_strips(3 + side) ? (count + LEAST_VECTORS - 1) / LEAST_VECTORS * LEAST_VECTORS : count;
            for (i64 at = done * t.space.groups; at < (done + all) * t.space.groups; ++at)
                store(t.scale, call.out[3 + side], at, &unit, 1);
        }
    }

    // Whether what C mirrors is exact in binary64, and codes have 32 bits at most.
    bool is_narrow() const {
        return !is_wide() && t.a.fraction + t.b.fraction + 2 <= BINARY64_BITS && (!t.c.present || t.c.item <= 4);
    }

    template <class Code>
    void circuit_addends(const Circuits<Code>& pairs, bool mirrors, int first, int last) {
        if (!mirrors) {
            const Code bits = Code(~u64(0) >> (64 - 8 * t.c.item));
            for (int n = first; n < last; ++n) c[n] = pairs.c[n] & bits;
            return;
        }
        mirror_pairs<Code>(t, pairs.a, pairs.b, first, last, c);
    }

    // Circuits of floats, group by group.
    template <Family FAMILY, class Code>
    void float_circuits(i64 done, int count, int padded, Circuits<Code>& pairs) {
        const u64 start = call.start + u64(done);
        Code *const a = reinterpret_cast<Code*>(codes.data()), *const b = a + pitch * live;
        const bool as_they_lie = sizeof(Code) == 8 && t.a.item == 8 && t.b.item == 8 && in_strips(0) && in_strips(1) &&
                                 !t.space.chunk;
        const auto out = [&](int role) { return static_cast<u64*>(call.out[role]) + done * live; };
        for (int first = 0, last; first < padded; first = last) {
            const u64 index = start + u64(first);
            last = smaller(padded, first + (1 << GROUP_BITS) - int(index & ((1u << GROUP_BITS) - 1)));
            const CircuitGroup group(t, FAMILY, index, stream.draw(index >> GROUP_BITS, SHARED, 0));
            aim_circuits<FAMILY>(t, stream, v, group, start, first, last, pairs);
            if constexpr (sizeof(Code) == 8)
                if (as_they_lie) circuit_strips<FAMILY>(pairs, live, group, first, last, out(0), out(1));
            for (int k = 0; !as_they_lie && k < live; ++k)
                circuit_lanes<FAMILY>(pairs, live, group, k, first, last, a + k * pitch, b + k * pitch);
            if (t.c.present) circuit_addends(pairs, group.mirrors, first, last);
        }
        if (!as_they_lie) return store_circuits(done, count, a, b);
        if (t.c.present) store(t.c, call.out[2], done, c, count);
    }
    template <Family FAMILY>
    void float_circuits(i64 done, int count, int padded) {
        is_narrow() ? float_circuits<FAMILY>(done, count, padded, narrow_pairs)
                    : float_circuits<FAMILY>(done, count, padded, wide_pairs);
    }

    template <class Code>
    void store_circuits(i64 done, int count, const Code* a, const Code* b) {
        unit_scales(done, count);
        if (t.c.present) store(t.c, call.out[2], done, c, count);
        put(0, t.a, done, a, live, count);
        emit_b(done, count, b);
    }

    void circuits(i64 done, int count, int padded) {
        v.draw(keys, call.start + u64(done), padded, 2);
        if (t.a.is_float && (!t.c.present || t.c.is_float)) {
            if (call.family == MULTIPLIER) return float_circuits<MULTIPLIER>(done, count, padded);
            if (call.family == CARRIES) return float_circuits<CARRIES>(done, count, padded);
        }
        u64 *const a = codes.data(), *const b = a + pitch * live;
        CircuitGroup group(t, call.family, call.start, Block{});
        for (int vector = 0; vector < count; ++vector) {
            const u64 index = call.start + u64(done + vector);
            if (vector == 0 || (index & ((1u << GROUP_BITS) - 1)) == 0)
                group = {t, call.family, index, stream.draw(index >> GROUP_BITS, SHARED, 0)};
            const VectorWords::All w = v.of(vector);
            const Circuit<u64> circuit(t, call.family, stream, index, w.w, group);
            for (int k = 0, n = vector; k < live; ++k, n += pitch) {
                const Codes<u64> pair = circuit.of(k);
                a[n] = pair.a;
                b[n] = pair.b;
            }
            c[vector] = circuit.addend(t);
        }
        store_circuits(done, count, a, b);
    }

public:
    explicit Separate(const GeneratorCall& given, u32 in_strips_of = 0)
        : t(read_domain(given.domain)), stream{given.seed, given.stream}, keys(stream), call(given),
          strips(in_strips_of), live(t.space.live), pitch(vectors_of_tile(live)) {
        lay_out();
    }

    // Others of the same call.
    void run(u64 start, i64 count, void* const* out) {
        call.start = start;
        call.count = count;
        memcpy(call.out, out, sizeof call.out);
        run();
    }

    void run() {
        if (streamed(call)) return StreamMaker(t, stream, call, call.family == CLUSTERED).run();
        for (i64 done = 0; done < call.count; done += pitch) {
            const int count = int(call.count - done < pitch ? call.count - done : pitch);
            const int padded = (count + LEAST_VECTORS - 1) / LEAST_VECTORS * LEAST_VECTORS;
            if (call.family >= CODES) {
                circuits(done, count, padded);
                continue;
            }
            v.draw(keys, call.start + u64(done), padded, 3);
            lane.draw(keys, call.start + u64(done), padded, live, pitch, LANE);
            t.a.is_float ? floats(done, count, padded) : integers(done, count);
        }
    }
};

}  // namespace
}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
