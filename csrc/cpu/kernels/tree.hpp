// The kernel of trees of products, sums and fused multiply-adds, each rounded to the format of the result in one of the
// four modes, with the processor's own operations (DPPS, DPPD, VFMADD231PH, AMX's tiles of floats).
//
// DPPS, DPPD and the tiles are other instructions than these, and binary16 is rounded here out of binary64; of the
// flushed VFMADD231PS and PD the operation is the rule, as in chain.hpp.  What judges all of it are the stages, which
// compute by integers.  Where every operation hands on a NaN, a register that ends in any is computed again, each
// operation followed by its choice.
#pragma once
#include <memory>

#include "cpu/kernels/tree_numbers.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace tree {

template <class N>
struct Rules {
    using Number = typename N::Number;
    Source a, b, c;
    bool has_c, local, signalling_first, b_first;
    i64 fma_order;
    int k;
    const i64 *begin, *end;  // operations
    N numbers;
    Number nan;

    Rules(const LayoutCall& call, const Header& h, const TreeRow& row)
        : a(OperandRow{call.program + h[Header::a]}), b(OperandRow{call.program + h[Header::b]}),
          c(OperandRow{call.program + (h[Header::c] == ABSENT ? h[Header::a] : h[Header::c])}),
          has_c(call.c != nullptr), local(h[Header::nan] == LOCAL), signalling_first(h[Header::signalling_first] != 0),
          b_first(h[Header::product_order] != 0), fma_order(h[Header::fma_order]), k(int(h[Header::k])),
          begin(call.program + row[TreeRow::operations]), end(begin + row[TreeRow::count]),
          numbers(ROUNDINGS[row[TreeRow::rounding]]), nan(N::nan(h[Header::nan_code])) {}
};

// The result of an operation on `operands`, in order of precedence: where it is a NaN, the first NaN among them, quieted,
// or the first signalling one, or the code of an invalid operation.
template <class N, int COUNT>
MMAPROBE_HD typename N::Number handed_on(const Rules<N>& r, typename N::Number x,
                                         const typename N::Number (&operands)[COUNT]) {
    using Word = typename N::Word;
    Word is_nan[COUNT], loud[COUNT], any_loud{}, code = Word(r.nan);
    for (int i = 0; i < COUNT; ++i) {
        is_nan[i] = Word(operands[i] != operands[i]);
        loud[i] = is_nan[i] & Word((Word(operands[i]) & N::QUIET) == 0);
        if (r.signalling_first) any_loud |= loud[i];
    }
    for (int i = COUNT - 1; i >= 0; --i) {
        const Word taken = is_nan[i] & (~any_loud | loud[i]);
        code = (code & ~taken) | (taken & (Word(operands[i]) | N::QUIET));
    }
    const Word bad = Word(x != x);
    return typename N::Number((Word(x) & ~bad) | (code & bad));
}

template <class N, bool TOLD>
MMAPROBE_HD typename N::Number sum(const Rules<N>& r, typename N::Number x, typename N::Number y) {
    const auto made = r.numbers.settled(x + y);
    if constexpr (TOLD) return handed_on<N, 2>(r, made, {x, y});
    return made;
}

template <class N, bool TOLD>
MMAPROBE_HD typename N::Number product(const Rules<N>& r, typename N::Number x, typename N::Number y) {
    const auto made = r.numbers.settled(x * y);
    if constexpr (TOLD) return r.b_first ? handed_on<N, 2>(r, made, {y, x}) : handed_on<N, 2>(r, made, {x, y});
    return made;
}

template <class N, bool TOLD>
MMAPROBE_HD typename N::Number fused(const Rules<N>& r, typename N::Number x, typename N::Number y,
                                     typename N::Number z) {
    const auto made = r.numbers.settled(N::fused(x, y, z));
    if constexpr (TOLD) {
        const typename N::Number all[3] = {x, y, z};
        const auto in_order = [&](int place) { return all[(r.fma_order >> 2 * place) % 4 - 1]; };
        return handed_on<N, 3>(r, made, {in_order(0), in_order(1), in_order(2)});
    }
    return made;
}

// A zero of its sign where x is a subnormal.
template <class N>
MMAPROBE_HD typename N::Number dropped(typename N::Number x) {
    using Word = typename N::Word;
    const Word some = Word((Word(x) & N::INFINITE) != 0);
    return typename N::Number(Word(x) & (some | N::SIGN));
}

// All operations on a register of each operand, from C; TOLD: with what becomes of NaNs.
template <class N, bool TOLD, class B>
MMAPROBE_HD typename N::Number evaluate(const Rules<N>& r, const typename N::Number* a, const B& b,
                                        typename N::Number c) {
    typename N::Number stack[TREE_DEPTH + 1], top{};
    auto* next = stack;
    for (const i64* word = r.begin; word != r.end; ++word) {
        const u64 lane = u64(*word) / TREE_LANE;
        switch (Opcode(u64(*word) % TREE_ENCODED)) {
            case Opcode::LOAD_C: *next++ = top, top = c; break;
            case Opcode::ZERO: *next++ = top, top = typename N::Number{}; break;
            case Opcode::PRODUCT: *next++ = top, top = product<N, TOLD>(r, a[lane], b(int(lane))); break;
            case Opcode::FMA: top = fused<N, TOLD>(r, a[lane], b(int(lane)), top); break;
            case Opcode::ADD: top = sum<N, TOLD>(r, *--next, top); break;
            default: c = top, top = *--next;  // STORE
        }
        if (*word & TREE_ENCODED) top = dropped<N>(top);
    }
    return c;
}

template <class N, class B>
MMAPROBE_HD void run_lanes(const Rules<N>& r, const LayoutCall& call, i64 at, const typename N::Number* a, const B& b) {
    using Number = typename N::Number;
    using Word = typename N::Word;
    const Number c = r.has_c ? N::read(r.c, call.c, at) : Number{};
    Number d = evaluate<N, false>(r, a, b, c);
    const Word bad = Word(d != d);
    if (any(U32s(bad))) d = r.local ? evaluate<N, true>(r, a, b, c) : Number((Word(d) & ~bad) | (Word(r.nan) & bad));
    N::write(call.d, at, d);
}

// Items first .. first + items - 1 of columns, to which a register may be written past the end.
template <class N>
void read_columns(const Source& source, const void* base, i64 first, i64 items, typename N::Item* to) {
    const char* const from = static_cast<const char*>(base) + first * source.bytes;
    i64 i = 0;
    for (; i + N::COUNT <= items; i += N::COUNT) store(to + i, N::read(source, from, i));
    u64 rest[N::COUNT] = {};
    memcpy(rest, from + i * source.bytes, size_t((items - i) * source.bytes));
    store(to + i, N::read(source, rest, 0));
}

template <class N>
__attribute__((noinline)) void run(const Rules<N>& r, const LayoutCall& call) {
    using Number = typename N::Number;
    using Item = typename N::Item;
    const i64 strips = call.n ? (call.m + STRIP - 1) / STRIP : 1, items = i64(call.n) * r.k;
    const std::unique_ptr<Item[]> columns(new Item[size_t(items + N::COUNT)]);
    Number a[TREE_LANES], b[TREE_LANES];
    const auto read_rows = [&](const Source& source, const void* base, i64 strip, int part, Number* to) {
        for (int i = 0; i < r.k; ++i) to[i] = N::read(source, base, (strip * r.k + i) * STRIP + part);
    };
    for (i64 strip = 0; strip < call.count * strips; ++strip) {
        if (call.n && strip % strips == 0) read_columns<N>(r.b, call.b, strip / strips * items, items, columns.get());
        for (int part = 0; part < STRIP; part += N::COUNT) {
            read_rows(r.a, call.a, strip, part, a);
            if (!call.n) {
                read_rows(r.b, call.b, strip, part, b);
                run_lanes<N>(r, call, strip * STRIP + part, a, [&](int k) { return b[k]; });
            }
            for (i64 n = 0; n < call.n; ++n)
                run_lanes<N>(r, call, (strip * call.n + n) * STRIP + part, a,
                             [&](int k) { return broadcast(Number{}, columns[size_t(n * r.k + k)]); });
        }
    }
}

template <class N>
bool run(const LayoutCall& call, const Header& header, const TreeRow& row) {
    const auto fuses = [](i64 word) { return Opcode(word % TREE_ENCODED) == Opcode::FMA; };
    const Rules<N> rules(call, header, row);
    if (!N::FUSES)
        for (const i64* word = rules.begin; word != rules.end; ++word)
            if (fuses(*word)) return false;
    run<N>(rules, call);
    return true;
}

inline bool evaluate(const LayoutCall& call) {
    const Header header{call.program};
    const TreeRow row{call.program + header[Header::rules]};
    const bool flush = row[TreeRow::flush] != 0;
    if (flush && !Environment::FLUSHES) return false;
    const Environment environment(ROUNDINGS[row[TreeRow::rounding]], flush);
    const EncodeRow d{call.program + header[Header::d]};
    const i64 bits = d[EncodeRow::bits] + d[EncodeRow::padding];
    return bits <= 16   ? run<Halves>(call, header, row)
           : bits <= 32 ? run<Singles>(call, header, row)
                        : run<Doubles>(call, header, row);
}

}  // namespace tree
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
