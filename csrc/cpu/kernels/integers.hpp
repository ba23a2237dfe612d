// The kernel of exact integer sums on the engine layout: 16 rows at a time, two lanes of K an operation.
//
// Items of at most 8 bits become 16-bit numbers, two neighbours of K in one 32-bit lane; their sums fit 32 bits. Bits
// that are multiplied by XOR become 1 and -1: of K such products p the bits that differ are (K - sum p) / 2.
#pragma once
#include <string.h>

#include "cpu/kernels/tiles.hpp"
#include "model/program.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace integers {

typedef int32_t Sixteen __attribute__((vector_size(4 * STRIP)));
typedef int8_t Codes __attribute__((vector_size(STRIP)));

constexpr int MOST_LANES = 1024, COLUMNS = 4;

// a_even b_even + a_odd b_odd in each 32-bit lane.
MMAPROBE_HD Sixteen pair_products(Sixteen a, Sixteen b) {
#if defined(__AVX512BW__)
    return Sixteen(_mm512_madd_epi16(__m512i(a), __m512i(b)));
#elif defined(__AVX2__)
    __m256i x[2], y[2];
    memcpy(x, &a, sizeof a);
    memcpy(y, &b, sizeof b);
    for (int half = 0; half < 2; ++half) x[half] = _mm256_madd_epi16(x[half], y[half]);
    memcpy(&a, x, sizeof a);
    return a;
#else
    return (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
}

// How the items of an operand become numbers.
struct Reading {
    int unused;  // bits above the item in 16
    bool is_signed, flips;

    Reading(const OperandRow& row, bool exclusive)
        : unused(int(16 - row[OperandRow::bits])), is_signed(row[OperandRow::is_signed]), flips(exclusive) {}

    // Rows of 16 codes each for two neighbouring lanes, as the pairs of 16 rows.
    MMAPROBE_HD Sixteen pairs(const int8_t* even, const int8_t* odd) const {
        return (rows(even) & 0xffff) | rows(odd) << 16;
    }
    MMAPROBE_HD Sixteen rows(const int8_t* from) const {
        Codes codes;
        memcpy(&codes, from, sizeof codes);
        const Sixteen wide = __builtin_convertvector(codes, Sixteen) << (16 + unused);
        const Sixteen value = is_signed ? wide >> (16 + unused) : Sixteen((wide >> (16 + unused)) & mask());
        return flips ? 1 - 2 * value : value;
    }
    MMAPROBE_HD int mask() const { return (1 << (16 - unused)) - 1; }
    // One column of K codes as K 16-bit numbers.
    void column(const int8_t* codes, int k, int16_t* out) const {
        if (is_signed)
            for (int i = 0; i < k; ++i) out[i] = int16_t(int16_t(codes[i] << unused) >> unused);
        else
            for (int i = 0; i < k; ++i) out[i] = int16_t(codes[i] & mask());
        if (flips)
            for (int i = 0; i < k; ++i) out[i] = int16_t(1 - 2 * out[i]);
    }
};

struct Sums {
    const LayoutCall& call;
    Reading a, b;
    int k, pairs;
    bool exclusive, limited;
    Sixteen rows[MOST_LANES / 2];                 // of a strip, by pair of lanes
    int16_t columns[COLUMNS][MOST_LANES] = {};    // of B

    explicit Sums(const LayoutCall& c, const Header& h, bool limit)
        : call(c), a(OperandRow{c.program + h[Header::a]}, h[Header::multiply] == XOR),
          b(OperandRow{c.program + h[Header::b]}, h[Header::multiply] == XOR), k(int(h[Header::k])), pairs((k + 1) / 2),
          exclusive(h[Header::multiply] == XOR), limited(limit) {}

    void read_rows(const void* base, i64 strip, const Reading& reading, Sixteen* out) const {
        const int8_t* codes = static_cast<const int8_t*>(base) + strip * k * STRIP;
        for (int i = 0; i + 1 < k; i += 2) out[i / 2] = reading.pairs(codes + i * STRIP, codes + (i + 1) * STRIP);
        if (k & 1) out[pairs - 1] = reading.rows(codes + (k - 1) * STRIP) & 0xffff;
    }

    // d of 16 vectors from the sum of their products.
    void finish(i64 at, Sixteen sum) const {
        if (exclusive) sum = (k - sum) >> 1;
        if (call.c) {
            Sixteen c;
            memcpy(&c, static_cast<const int32_t*>(call.c) + at * STRIP, sizeof c);
            typedef uint32_t Unsigned __attribute__((vector_size(4 * STRIP)));
            const Sixteen total = Sixteen(Unsigned(sum) + Unsigned(c));
            const Sixteen over = ((sum ^ total) & (c ^ total)) >> 31, limit = (c >> 31) ^ 0x7fffffff;
            sum = limited ? (total & ~over) | (limit & over) : total;
        }
        memcpy(static_cast<int32_t*>(call.d) + at * STRIP, &sum, sizeof sum);
    }

    void groups() {
        Sixteen other[MOST_LANES / 2];
        for (i64 group = 0; group < call.count; ++group) {
            read_rows(call.a, group, a, rows);
            read_rows(call.b, group, b, other);
            Sixteen sum = {};
            for (int i = 0; i < pairs; ++i) sum += pair_products(rows[i], other[i]);
            finish(group, sum);
        }
    }

    void tiles() {
        const i64 strips = (call.m + STRIP - 1) / STRIP;
        for (i64 strip = 0; strip < call.count * strips; ++strip) {
            read_rows(call.a, strip, a, rows);
            const int8_t* codes = static_cast<const int8_t*>(call.b) + strip / strips * call.n * k;
            for (int first = 0; first < call.n; first += COLUMNS) {
                const int count = call.n - first < COLUMNS ? call.n - first : COLUMNS;
                for (int n = 0; n < count; ++n) b.column(codes + i64(first + n) * k, k, columns[n]);
                Sixteen sums[COLUMNS] = {};
                for (int i = 0; i < pairs; ++i)
                    for (int n = 0; n < COLUMNS; ++n) {
                        int32_t pair;
                        memcpy(&pair, &columns[n][2 * i], sizeof pair);
                        sums[n] += pair_products(rows[i], pair - Sixteen{});
                    }
                for (int n = 0; n < count; ++n) finish(strip * call.n + first + n, sums[n]);
            }
        }
    }
};

inline bool evaluate(const LayoutCall& call, bool limited) {
    const Header header{call.program};
    const OperandRow a{call.program + header[Header::a]}, b{call.program + header[Header::b]};
    const bool bytes = a[OperandRow::bytes] == 1 && b[OperandRow::bytes] == 1;
    const bool words = EncodeRow{call.program + header[Header::d]}[EncodeRow::bits] == 32;
    if (!bytes || !words || header[Header::k] > MOST_LANES) return false;
    Sums sums(call, header, limited);
    call.n ? sums.tiles() : sums.groups();
    return true;
}

inline bool wraps(const LayoutCall& call) { return evaluate(call, false); }
inline bool saturates(const LayoutCall& call) { return evaluate(call, true); }

}  // namespace integers
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
