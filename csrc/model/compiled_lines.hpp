// Rows and columns of a dot product whose operands are made for the multiply-add rounded down
// (compiled_fused_model.hpp), and what sums of them have in common.  Form says where they lie (Sides), FLOOR, the label
// that takes part in every sum, and PARTS: the products of every PARTS-th lane are a sum of their own.
#pragma once
#include "compiled_fused.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace compiled {

// max(x + y, z) of two signed halves each.
MMAPROBE_HD u32 add_max_halves(u32 x, u32 y, u32 z) {
#if defined(__CUDA_ARCH__)
    return __viaddmax_s16x2(x, y, z);
#elif defined(__HIP__)
    typedef short Halves __attribute__((ext_vector_type(2)));
    const Halves sum = __builtin_bit_cast(Halves, x) + __builtin_bit_cast(Halves, y);
    return __builtin_bit_cast(u32, __builtin_elementwise_max(sum, __builtin_bit_cast(Halves, z)));
#else
    u32 out = 0;
    for (int at = 0; at < 32; at += 16) {
        const short sum = short(short(x >> at) + short(y >> at)), other = short(z >> at);
        out |= u32(uint16_t(sum > other ? sum : other)) << at;
    }
    return out;
#endif
}

template <class Form>
struct Lines {
    struct RowLine : FusedItems<LIVE>, ScaleCodes<GROUPS>, Meets {};
    struct ColumnLine : FusedItems<K>, ScaleCodes<GROUPS> {};
    struct Row : Padded<RowLine> {};
    struct Column : Padded<ColumnLine> {};
    static constexpr int STEP = Form::STEP, PARTS = Form::PARTS;
    static constexpr Mode ROUNDING = Mode::DOWN;

    MMAPROBE_HD static void put_a(Row& row, int k, u64 code) { put_item<Form::A>(row, k, u32(code)); }
    MMAPROBE_HD static void put_b(Column& column, int k, u64 code) { put_item<Form::B>(column, k, u32(code)); }
    MMAPROBE_HD static void put_scale_a(Row& row, int g, u64 code) { row.put_scale(g, code); }
    MMAPROBE_HD static void put_scale_b(Column& column, int g, u64 code) { column.put_scale(g, code); }
    MMAPROBE_HD static void put_metadata(Row& row, int chunk, u32 item) { row.Meets::put(chunk, item); }
    MMAPROBE_HD static void seal(Row& row) {
        for (int g = 0; g < GROUPS; ++g) scale_items<Form::SCALE>(row, g * GROUP, GROUP, row.scale_of(g));
        gather_signs<LIVE>(row);
    }
    MMAPROBE_HD static void seal(Column& column) {
        constexpr int size = GROUP * K / LIVE;
        for (int g = 0; g < GROUPS; ++g) scale_items<Form::SCALE>(column, g * size, size, column.scale_of(g));
        gather_signs<K>(column);
    }
    // Words of an operand from item k on: two levels, or four high words; where A is sparse, those that the row meets.
    MMAPROBE_HD static u32 levels(const Row& row, int k) { return row.levels[k / 8].word[k / 2 % 4]; }
    MMAPROBE_HD static u32 levels(const Row& row, const Column& column, int k) {
        if constexpr (CHUNK == 0) return column.levels[k / 8].word[k / 2 % 4];
        const Meets& meets = row;
        return u32(uint16_t(column.level[meets[k]])) | u32(column.level[meets[k + 1]]) << 16;
    }
    MMAPROBE_HD static Quad highs(const Row& row, const Column& column, int k) {
        if constexpr (CHUNK == 0) return column.highs[k / 4];
        const Meets& meets = row;
        return {column.high[meets[k]], column.high[meets[k + 1]], column.high[meets[k + 2]], column.high[meets[k + 3]]};
    }
    // How many products of a part of a step are negative.
    MMAPROBE_HD static u32 negatives(const Row& row, const Column& column, int first, int part) {
        u32 count = 0;
        const Meets& meets = row;
        if constexpr (CHUNK != 0) {
            MMAPROBE_UNROLLED
            for (int k = first + part; k < first + STEP; k += PARTS)
                count += (row.high[k] ^ column.high[meets[k]]) >> 31;
            return count;
        }
        const u32 own = PARTS == 1 ? ~u32(0) : u32(0x55555555) << part;
        MMAPROBE_UNROLLED
        for (int word = 0; word < Row::SIGNS; ++word) {
            const int low = first - 32 * word, high = first + STEP - 32 * word;
            if (low >= 32 || high <= 0) continue;
            const u32 mask = (high >= 32 ? ~u32(0) : (u32(1) << (high & 31)) - 1) & ~u32(0) << (low > 0 ? low : 0);
            count += u32(ones((row.signs[word] ^ column.signs[word]) & mask & own));
        }
        return count;
    }
    // The largest levels of each part, FLOOR's among them.
    template <int M, int N>
    MMAPROBE_HD static void largest_levels(const Row* const* rows, const Column* const* columns, int first,
                                           i32 (*largest)[PARTS]) {
        u32 pairs[M * N];
        MMAPROBE_UNROLLED
        for (int i = 0; i < M * N; ++i) pairs[i] = u32(Form::FLOOR + 2 * BIAS) * 0x10001;
        MMAPROBE_STEPPED
        for (int k = first; k < first + STEP; k += 2) MMAPROBE_UNROLLED
        for (int i = 0; i < M * N; ++i)
            pairs[i] = add_max_halves(levels(*rows[i / N], k), levels(*rows[i / N], *columns[i % N], k), pairs[i]);
        MMAPROBE_UNROLLED
        for (int i = 0; i < M * N; ++i) {
            const i32 low = short(pairs[i]), high = i32(pairs[i]) >> 16, larger = low > high ? low : high;
            largest[i][0] = PARTS == 1 ? larger : low;
            if constexpr (PARTS == 2) largest[i][1] = high;
        }
    }
    template <int M, int N>
    MMAPROBE_HD static void add_products(const Row* const* rows, const Column* const* columns, int first,
                                         double (*total)[PARTS]) {
        MMAPROBE_STEPPED
        for (int k = first; k < first + STEP; k += 4) {
            Quad a[M], b[M * N];
            MMAPROBE_UNROLLED
            for (int i = 0; i < M; ++i) a[i] = rows[i]->highs[k / 4];
            MMAPROBE_UNROLLED
            for (int i = 0; i < (CHUNK ? M * N : N); ++i) b[i] = highs(*rows[i / N], *columns[i % N], k);
            MMAPROBE_UNROLLED
            for (int t = 0; t < 4; ++t) MMAPROBE_UNROLLED
            for (int i = 0; i < M * N; ++i)
                total[i][t % PARTS] = multiply_add<ROUNDING>(make_double(a[i / N].word[t], 1),
                                                             make_double(b[CHUNK ? i : i % N].word[t], 1),
                                                             total[i][t % PARTS]);
        }
    }
    // Whether a product of the step that has an infinite factor is a NaN, +infinity, -infinity.
    struct Infinities {
        bool nan, plus, minus;
    };
    MMAPROBE_HD static Infinities infinities(const Row& row, const Column& column, int first) {
        const Meets& meets = row;
        Infinities found{};
        MMAPROBE_SELDOM
        for (int k = first; k < first + STEP; ++k) {
            const i32 a = row.level[k], b = column.level[meets[k]];
            if (a + b < INFINITE_FROM) continue;
            const bool negative = (row.high[k] ^ column.high[meets[k]]) >> 31;
            found.nan |= a <= ZERO_LEVEL || b <= ZERO_LEVEL;
            found.plus |= !negative;
            found.minus |= negative;
        }
        return found;
    }
};

// A sum of Lines as a model: step after step, of several outputs at once.
template <class Sum>
struct Several : Sum {
    using typename Sum::Column;
    using typename Sum::Row;

    MMAPROBE_HD static u64 evaluate(const Row& row, const Column& column, u64 c) {
        const Row* const rows[] = {&row};
        const Column* const columns[] = {&column};
        u64 d;
        tile<1, 1>(rows, columns, &c, &d);
        return d;
    }
    MMAPROBE_HD static void evaluate_two(const Row& row, const Column& first, const Column& second, const u64* c,
                                         u64* d) {
        const Row* const rows[] = {&row};
        const Column* const columns[] = {&first, &second};
        tile<1, 2>(rows, columns, c, d);
    }
    MMAPROBE_HD static void evaluate_four(const Row& first_row, const Row& second_row, const Column& first,
                                          const Column& second, const u64* c, u64* d) {
        if constexpr (CHUNK != 0) {  // each row meets other items: four at once share little and take more registers
            evaluate_two(first_row, first, second, c, d);
            return evaluate_two(second_row, first, second, c + 2, d + 2);
        }
        const Row* const rows[] = {&first_row, &second_row};
        const Column* const columns[] = {&first, &second};
        tile<2, 2>(rows, columns, c, d);
    }

    template <int M, int N>
    MMAPROBE_HD static void tile(const Row* const* rows, const Column* const* columns, const u64* c, u64* d) {
        u32 code[M * N];
        MMAPROBE_UNROLLED
        for (int i = 0; i < M * N; ++i) code[i] = HAS_C ? u32(c[i]) : 0;
        Sum::template step<M, N, Sum::C>(rows, columns, 0, code);
        MMAPROBE_UNROLLED
        for (int first = Sum::STEP; first < LIVE; first += Sum::STEP)
            Sum::template step<M, N, Sum::CARRY>(rows, columns, first, code);
        MMAPROBE_UNROLLED
        for (int i = 0; i < M * N; ++i) d[i] = code[i];
    }
};

}  // namespace compiled
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
