// Blocks of matrix products by a schedule; CMake compiles this file once for each instruction set, products never fused
// with sums but where it says so.
#include <algorithm>
#include <new>
#include <vector>

#include "cpu/kernels/engine.hpp"
#include "cpu/kernels/gemm.hpp"
#include "cpu/kernels/gemm_chain.hpp"
#include "cpu/kernels/transpose.hpp"
#include "model/program.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

#define MMAPROBE_NAME(name) name,
enum class Operation : i64 { MMAPROBE_GEMM_OPERATIONS(MMAPROBE_NAME) };
struct OperationRow {
    enum Column { MMAPROBE_GEMM_OPERATION(MMAPROBE_NAME) SIZE };
    const i64* at;
    i64 operator[](Column c) const { return at[c]; }
};
#undef MMAPROBE_NAME
using Row = OperationRow;

namespace {

constexpr i64 SLICE = 256;  // products that a chain takes at a time: what of a block is then packed fits the cache
constexpr i64 VECTORS = 64;  // of a program without a kernel for tiles, at a time
constexpr i64 NOWHERE = INT64_MIN;  // a product without an item: of zeros
constexpr i64 SPARE = 64;  // bytes: a register may be read or written past the end

class Memory {
    char* at = nullptr;
    size_t held = 0;

public:
    Memory() = default;
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    Memory(Memory&& other) { swap(other); }
    Memory& operator=(Memory&& other) {
        swap(other);
        return *this;
    }
    void swap(Memory& other) {
        std::swap(at, other.at);
        std::swap(held, other.held);
    }
    ~Memory() { free(at); }
    // So many bytes, what they hold unsaid; null: there is no memory.
    char* room(i64 bytes) {
        const size_t needed = (size_t(bytes) + SPARE + 63) / 64 * 64;
        if (needed > held) {
            free(at);
            at = static_cast<char*>(aligned_alloc(64, needed));
            held = at ? needed : 0;
        }
        return at;
    }
};

template <class Out, class In>
struct Itself {
    Out operator()(In x) const { return Out(x); }
};
template <class Out, class In>
struct ByTable {
    const Out* values;
    Out operator()(In x) const { return values[x]; }
};
template <class T, class Word>
struct AsNumber {
    T operator()(Word x) const {
        if constexpr (sizeof(Word) == 4)
            return T(__builtin_bit_cast(float, x));
        else
            return T(__builtin_bit_cast(double, x));
    }
};

// Runs the operations on one block after the other.
class Block {
    const GemmCall& call;
    i64 first_row = 0, first_column = 0;
    i64 m = 0, n = 0, strips = 0, padded = 0;  // padded: columns with those that fill tiles
    std::vector<Memory> slots;
    std::vector<int> widths;
    size_t top = 0;
    Memory packed_a, packed_b, more_a, more_b, ones;
    std::vector<i64> places;

    static char* of(Memory& memory, i64 bytes) {
        char* const found = memory.room(bytes);
        if (!found) throw std::bad_alloc{};
        return found;
    }
    i64 packed_columns() const { return (padded + STRIP - 1) / STRIP * STRIP; }
    i64 values() const { return strips * STRIP * padded; }
    char* push(int bytes) {
        widths[top] = bytes;
        return of(slots[top++], values() * bytes);
    }
    char* at(size_t slot) { return of(slots[slot], values() * widths[slot]); }

    // Bytes from the start of a row of A, or of a column of B, to each product's item.
    void find_places(const Row& row, i64 skip, i64 count, i64 step) {
        const i64 *order = row[Row::order] == ABSENT ? nullptr : call.order + row[Row::order], size = row[Row::size];
        places.resize(size_t(count));
        for (i64 i = 0; i < count; ++i) {
            const i64 t = skip + i, taken = order ? t - t % size + order[t % size] : t;
            const i64 k = row[Row::first] + taken / row[Row::run] * row[Row::stride] + taken % row[Row::run];
            places[size_t(i)] = k < row[Row::end] ? k * step : NOWHERE;
        }
    }

    // Sixteen lines from these places on, the codes of each place together; nothing is a zero.
    template <class In>
    static void gather(const char* const (&from)[STRIP], const i64* place, i64 count, In (&codes)[STRIP][STRIP]) {
        bool whole = count == STRIP, along = whole, beside = true;
        for (int i = 0; whole && i < STRIP; ++i) {
            whole = place[i] != NOWHERE;
            along &= place[i] == place[0] + i * i64(sizeof(In));
            beside &= from[i] == from[0] + i * i64(sizeof(In));
        }
        if (whole && beside) {
            for (int i = 0; i < STRIP; ++i) memcpy(codes[i], from[0] + place[i], sizeof codes[i]);
        } else if (whole && along) {
            In lines[STRIP][STRIP];
            for (int line = 0; line < STRIP; ++line) memcpy(lines[line], from[line] + place[0], sizeof lines[line]);
            transpose<sizeof(In)>(reinterpret_cast<const char*>(lines), sizeof lines[0], STRIP, STRIP, nullptr,
                                  reinterpret_cast<char*>(codes), sizeof codes[0], false);
        } else {
            for (i64 i = 0; i < count; ++i)
                for (int line = 0; line < STRIP; ++line) {
                    codes[i][line] = 0;
                    if (place[i] != NOWHERE) memcpy(&codes[i][line], from[line] + place[i], sizeof(In));
                }
        }
    }
    // Their values; of A those of each place together, of B those of each line.
    template <bool OF_A, class In, class Out, class Value>
    void pack_lines(const char* const (&from)[STRIP], Out* to, const Value& value) const {
        const i64 all = i64(places.size());
        for (i64 first = 0; first < all; first += STRIP) {
            const i64 count = std::min<i64>(STRIP, all - first);
            In codes[STRIP][STRIP];
            Out values[STRIP][STRIP];
            gather(from, places.data() + first, count, codes);
            for (i64 i = 0; i < count; ++i)
                for (int line = 0; line < STRIP; ++line) values[i][line] = value(codes[i][line]);
            if (OF_A)
                memcpy(to + first * STRIP, values, size_t(count) * sizeof values[0]);
            else if (count == STRIP)
                transpose<sizeof(Out)>(reinterpret_cast<const char*>(values), sizeof values[0], STRIP, STRIP, nullptr,
                                       reinterpret_cast<char*>(to + first), all * i64(sizeof(Out)), false);
            else
                for (int line = 0; line < STRIP; ++line)
                    for (i64 i = 0; i < count; ++i) to[line * all + first + i] = values[i][line];
        }
    }
    template <class In, class Out, class Value>
    void pack_rows(Out* to, const Value& value) const {
        const i64 count = i64(places.size());
        for (i64 strip = 0; strip < strips; ++strip) {
            const char* from[STRIP];
            for (i64 r = 0; r < STRIP; ++r)
                from[r] = call.a.base + call.a.rows[first_row + std::min(strip * STRIP + r, m - 1)] * call.a.row;
            pack_lines<true, In>(from, to + strip * count * STRIP, value);
        }
    }
    template <class In, class Out, class Value>
    void pack_columns(Out* to, const Value& value) const {
        const i64 count = i64(places.size());
        for (i64 first = 0; first < padded; first += STRIP) {
            const char* from[STRIP];
            for (i64 j = 0; j < STRIP; ++j)
                from[j] = call.b.base + call.b.columns[first_column + std::min(first + j, n - 1)] * call.b.column;
            pack_lines<false, In>(from, to + first * count, value);
        }
    }
    template <bool OF_A, class In, class Out, class Value>
    void pack(void* to, const Value& value) {
        if constexpr (OF_A)
            pack_rows<In>(static_cast<Out*>(to), value);
        else
            pack_columns<In>(static_cast<Out*>(to), value);
    }
    template <bool OF_A, class T>
    void pack_numbers(char* to) {
        const GemmOperand& operand = OF_A ? call.a : call.b;
        const T* const values = static_cast<const T*>(operand.values);
        switch (operand.bytes) {
            case 1: return pack<OF_A, uint8_t, T>(to, ByTable<T, uint8_t>{values});
            case 2: return pack<OF_A, uint16_t, T>(to, ByTable<T, uint16_t>{values});
            case 4: return pack<OF_A, u32, T>(to, AsNumber<T, u32>{});
            default: return pack<OF_A, u64, T>(to, AsNumber<T, u64>{});
        }
    }
    template <bool OF_A>
    void pack_codes(char* to) {
        switch ((OF_A ? call.a : call.b).bytes) {
            case 1: return pack<OF_A, uint8_t, uint8_t>(to, Itself<uint8_t, uint8_t>{});
            case 2: return pack<OF_A, uint16_t, uint16_t>(to, Itself<uint16_t, uint16_t>{});
            case 4: return pack<OF_A, u32, u32>(to, Itself<u32, u32>{});
            default: return pack<OF_A, u64, u64>(to, Itself<u64, u64>{});
        }
    }

    template <class T>
    void chain(const Row& row) {
        bool fresh = row[Row::fresh];
        if (fresh) push(sizeof(T));
        for (i64 done = 0; done < row[Row::count]; done += SLICE) {
            const i64 count = std::min(SLICE, row[Row::count] - done);
            char* const a = of(packed_a, strips * STRIP * count * i64(sizeof(T)));
            char* const b = of(packed_b, packed_columns() * count * i64(sizeof(T)));
            find_places(row, row[Row::skip] + done, count, call.a.column);
            pack_numbers<true, T>(a);
            find_places(row, row[Row::skip] + done, count, call.b.row);
            pack_numbers<false, T>(b);
            const gemm::ChainBlock<T> block{reinterpret_cast<T*>(a),
                                            reinterpret_cast<T*>(b),
                                            reinterpret_cast<T*>(at(top - 1)),
                                            strips,
                                            padded,
                                            count,
                                            fresh,
                                            row[Row::product] != 0};
            row[Row::rounded] ? gemm::chain_tiles<T, true>(block) : gemm::chain_tiles<T, false>(block);
            fresh = false;
        }
    }

    void steps(const Row& row) {
        const i64* const program = call.programs[row[Row::program]];
        const i64 count = row[Row::count];
        char* const a = of(packed_a, strips * STRIP * count * call.a.bytes);
        char* const b = of(packed_b, packed_columns() * count * call.b.bytes);
        find_places(row, row[Row::skip], count, call.a.column);
        pack_codes<true>(a);
        find_places(row, row[Row::skip], count, call.b.row);
        pack_codes<false>(b);
        if (row[Row::fresh]) push(int(row[Row::bytes]));
        const char* const c = row[Row::fresh] ? nullptr : at(top - 1);
        char* const d = of(slots[top], values() * row[Row::bytes]);
        if (!evaluate_layout({program, a, b, c, nullptr, nullptr, d, 1, int(m), int(padded)}))
            by_vectors(row, program, a, b, c, d);
        std::swap(slots[top - 1], slots[top]);
    }

    // A program without a kernel for tiles: each pair of a row and a column by itself.
    void by_vectors(const Row& row, const i64* program, const char* a, const char* b, const char* c, char* d) {
        const i64 count = row[Row::count], bytes = row[Row::bytes];
        char* const rows = of(more_a, VECTORS * count * call.a.bytes);
        char* const columns = of(more_b, VECTORS * count * call.b.bytes);
        for (i64 first = 0; first < values(); first += VECTORS) {
            const i64 live = std::min(VECTORS, values() - first);
            for (i64 i = 0; i < live; ++i) {
                const i64 column = (first + i) / STRIP % padded, strip = (first + i) / STRIP / padded;
                const char* const line = a + (strip * count * STRIP + (first + i) % STRIP) * call.a.bytes;
                for (i64 k = 0; k < count; ++k)
                    memcpy(rows + (i * count + k) * call.a.bytes, line + k * STRIP * call.a.bytes,
                           size_t(call.a.bytes));
                memcpy(columns + i * count * call.b.bytes, b + column * count * call.b.bytes,
                       size_t(count * call.b.bytes));
            }
            run_vectors(program, rows, columns, c ? c + first * bytes : nullptr, d + first * bytes, live, count,
                        int(bytes));
        }
    }

    static void run_vectors(const i64* program, const char* a, const char* b, const char* c, char* d, i64 vectors,
                            i64 k, int bytes) {
        if (evaluate_rows({program, a, b, c, nullptr, nullptr, d, vectors, STRIP, 0})) return;
        void* out = d;
        if (!evaluate({&program, &out, 1, {a, b, c, nullptr, nullptr, nullptr}, {k, k, 1, 0, 0, 0}, vectors, bytes}))
            throw std::bad_alloc{};
    }

    // A code of 1 as often as there are values.
    const char* code_ones(i64 code, int bytes) {
        char* const all = of(ones, values() * bytes);
        for (i64 i = 0; i < values(); ++i) memcpy(all + i * bytes, &code, size_t(bytes));
        return all;
    }

    template <class T, class Combine>
    void combine_numbers(char* x, const char* y, const char* z, const Combine& combine) const {
        using V = typename gemm::Numbers<T>::Register;
        const V nan = broadcast(V{}, gemm::quiet_nan<T>());
        for (i64 i = 0; i < values() * i64(sizeof(T)); i += i64(sizeof(V))) {
            const V found = combine(load<V>(x + i), load<V>(y + i), load<V>(z + i));
            store(x + i, found == found ? found : nan);
        }
    }
    template <class T>
    void combine_numbers(const Row& row, char* x, const char* y, const char* z) const {
        using V = typename gemm::Numbers<T>::Register;
        using Words = decltype(V{} == V{});
        const bool propagates = row[Row::propagates];
        // of zeros the larger is +0: what both have is their sign's, and for the smaller one what one of them has
        const auto extremum = [&](V u, V v, auto less, bool largest) {
            const V one = less(u, v) ? v : u, both = largest ? V(Words(u) & Words(v)) : V(Words(u) | Words(v));
            const V found = u == v ? both : one;
            if (propagates) return u == u ? (v == v ? found : v) : u;
            return u == u ? (v == v ? found : u) : v;
        };
        switch (Operation(row[Row::operation])) {
            case Operation::ADD: return combine_numbers<T>(x, y, z, [](V u, V v, V) { return u + v; });
            case Operation::MULTIPLY: return combine_numbers<T>(x, y, z, [](V u, V v, V) { return u * v; });
            case Operation::FMA: return combine_numbers<T>(x, y, z, [](V u, V v, V w) { return gemm::link(u, v, w); });
            case Operation::FMA_ONTO:
                return combine_numbers<T>(x, y, z, [](V u, V v, V w) { return gemm::link(v, w, u); });
            case Operation::MAXIMUM:
                return combine_numbers<T>(
                    x, y, z, [&](V u, V v, V) { return extremum(u, v, [](V s, V t) { return s < t; }, true); });
            default:
                return combine_numbers<T>(
                    x, y, z, [&](V u, V v, V) { return extremum(u, v, [](V s, V t) { return s > t; }, false); });
        }
    }

    // The topmost two or three become one.
    void combine(const Row& row) {
        const Operation what = Operation(row[Row::operation]);
        const bool onto = what == Operation::FMA_ONTO, three = onto || what == Operation::FMA;
        const int bytes = int(row[Row::bytes]);
        top -= three ? 2 : 1;
        char *const x = at(top - 1), *const y = at(top), *const z = three ? at(top + 1) : y;
        if (row[Row::program] == ABSENT)
            return bytes == 4 ? combine_numbers<float>(row, x, y, z) : combine_numbers<double>(row, x, y, z);
        const bool adds = what == Operation::ADD;
        char* const d = of(slots[size_t(call.depth)], values() * bytes);
        run_vectors(call.programs[row[Row::program]], onto ? y : x,
                    adds   ? code_ones(row[Row::code], bytes)
                    : onto ? z
                           : y,
                    onto    ? x
                    : adds  ? y
                    : three ? z
                            : nullptr,
                    d, values(), 1, bytes);
        std::swap(slots[top - 1], slots[size_t(call.depth)]);
    }

    template <class From, class To>
    void convert_numbers(const char* from, char* to) const {
        for (i64 i = 0; i < values(); ++i) {
            From x;
            memcpy(&x, from + i * i64(sizeof x), sizeof x);
            const To y = x == x ? To(x) : gemm::quiet_nan<To>();
            memcpy(to + i * i64(sizeof y), &y, sizeof y);
        }
    }

    void convert(const Row& row) {
        const int bytes = int(row[Row::bytes]), was = widths[top - 1];
        const char* const x = at(top - 1);
        char* const d = of(slots[top], values() * bytes);
        if (row[Row::program] != ABSENT)
            run_vectors(call.programs[row[Row::program]], x, code_ones(row[Row::code], was), nullptr, d, values(), 1,
                        bytes);
        else if (bytes == 8)
            convert_numbers<float, double>(x, d);
        else
            convert_numbers<double, float>(x, d);
        std::swap(slots[top - 1], slots[top]);
        widths[top - 1] = bytes;
    }

    // each(value, item) for every element of the block: `from` is its values.
    template <class Each>
    void elements(char* from, const GemmOperand& matrix, const Each& each) const {
        for (i64 r = 0; r < m; ++r) {
            const char* const line = matrix.base + matrix.rows[first_row + r] * matrix.row;
            for (i64 j = 0; j < n; ++j)
                each(from + ((r / STRIP * padded + j) * STRIP + r % STRIP) * matrix.bytes,
                     line + matrix.columns[first_column + j] * matrix.column);
        }
    }
    template <class Word>
    void load_elements(const GemmOperand& matrix, char* to) const {
        elements(to, matrix, [](char* value, const char* item) { memcpy(value, item, sizeof(Word)); });
    }
    template <class Word>
    void store_elements(char* from) const {
        elements(from, call.d,
                 [](const char* value, const char* item) { memcpy(const_cast<char*>(item), value, sizeof(Word)); });
    }
    template <class Word>
    void largest_size(const Row& row, char* from) const {
        const Word bits = Word(row[Row::code]);
        u64 most = 0;
        GemmOperand all = call.d;
        all.bytes = sizeof(Word);
        elements(from, all, [&](const char* value, const char*) {
            Word code;
            memcpy(&code, value, sizeof code);
            most = std::max(most, u64(code & bits));
        });
        std::atomic<uint64_t>& held = call.largest[row[Row::number]];
        uint64_t was = held;
        while (was < most && !held.compare_exchange_weak(was, most)) {
        }
    }

    void constant(const Row& row) {
        const int bytes = int(row[Row::bytes]);
        char* const to = push(bytes);
        if (row[Row::code] == 0)
            memset(to, 0, size_t(values() * bytes));
        else
            for (i64 i = 0; i < values(); ++i) memcpy(to + i * bytes, row.at + Row::code, size_t(bytes));
    }

    void load_input(const Row& row) {
        GemmOperand input = call.inputs[row[Row::number]];
        input.base += row[Row::first] * input.row + row[Row::skip] * input.column;
        char* const to = push(input.bytes);
        memset(to, 0, size_t(values() * input.bytes));
        switch (input.bytes) {
            case 1: return load_elements<uint8_t>(input, to);
            case 2: return load_elements<uint16_t>(input, to);
            case 4: return load_elements<u32>(input, to);
            default: return load_elements<u64>(input, to);
        }
    }

    void store_d() {
        char* const from = at(top - 1);
        switch (call.d.bytes) {
            case 1: return store_elements<uint8_t>(from);
            case 2: return store_elements<uint16_t>(from);
            case 4: return store_elements<u32>(from);
            default: return store_elements<u64>(from);
        }
    }

    void amax(const Row& row) {
        char* const from = at(top - 1);
        switch (row[Row::bytes]) {
            case 1: return largest_size<uint8_t>(row, from);
            case 2: return largest_size<uint16_t>(row, from);
            case 4: return largest_size<u32>(row, from);
            default: return largest_size<u64>(row, from);
        }
    }

    void run(const Row& row) {
        switch (Operation(row[Row::operation])) {
            case Operation::CONSTANT: return constant(row);
            case Operation::LOAD: return load_input(row);
            case Operation::CHAIN: return call.chained == 4 ? chain<float>(row) : chain<double>(row);
            case Operation::STEPS: return steps(row);
            case Operation::ADD:
            case Operation::MULTIPLY:
            case Operation::FMA:
            case Operation::FMA_ONTO:
            case Operation::MAXIMUM:
            case Operation::MINIMUM: return combine(row);
            case Operation::CONVERT: return convert(row);
            case Operation::AMAX: return amax(row);
            case Operation::DROP: --top; return;
        }
    }

public:
    explicit Block(const GemmCall& of_call)
        : call(of_call), slots(size_t(call.depth) + 1), widths(size_t(call.depth) + 1) {}

    void run_all(i64 row, i64 column) {
        const i64 unit = call.chained ? gemm::TILE_ROWS : STRIP, whole = call.chained ? gemm::TILE_COLUMNS : 1;
        first_row = row;
        first_column = column;
        m = std::min(call.most_rows, call.m - row);
        n = std::min(call.most_columns, call.n - column);
        strips = (m + unit - 1) / unit * unit / STRIP;
        padded = (n + whole - 1) / whole * whole;
        top = 0;
        for (i64 i = 0; i < call.count; ++i) run(Row{call.operations + i * Row::SIZE});
        store_d();
    }
};

}  // namespace

bool gemm_blocks(const GemmCall& call, std::atomic<int64_t>& next) {
    const Environment environment;
    const i64 down = (call.m + call.most_rows - 1) / call.most_rows,
              across = (call.n + call.most_columns - 1) / call.most_columns;
    try {
        Block one(call);
        for (i64 block; (block = next++) < down * across;)
            one.run_all(block / across * call.most_rows, block % across * call.most_columns);
    } catch (const std::bad_alloc&) {
        return false;
    }
    return true;
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
