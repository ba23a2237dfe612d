// Kernels on row-major arrays: piece by piece into the engine layout and back. One build an instruction set.
#include <stdlib.h>

#include "cpu/kernels/tiles.hpp"
#include "cpu/kernels/transpose.hpp"
#include "model/program.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace {

constexpr i64 PIECE = 3 << 15;  // bytes of layout at a time: little enough for the second-level cache and the heap

// The pieces of a call: for each operand (a, b, c, scale_a, scale_b, d) its items in a row, their width, its rows with
// those of padding.
struct Pieces {
    const LayoutCall& rows;
    i64 k[6] = {}, bytes[6] = {}, lines[6] = {};
    char* at[6] = {};
    const char* from[5];
    char* memory = nullptr;
    i64 tiles = 1, strips, total;

    Pieces(const LayoutCall& call, i64 d_bytes)
        : rows(call), from{(const char*)call.a, (const char*)call.b, (const char*)call.c, (const char*)call.scale_a,
                           (const char*)call.scale_b},
          strips(call.n ? (call.m + STRIP - 1) / STRIP : 1),
          total(call.n ? call.count : (call.count + STRIP - 1) / STRIP) {
        const Header h{call.program};
        const Header::Column column[5] = {Header::a, Header::b, Header::c, Header::scale, Header::scale};
        i64 all = 0;
        for (int i = 0; i < 6; ++i) {
            if (i < 5 && !from[i]) continue;
            const bool by_row = i == 2 || i == 5;
            k[i] = by_row ? larger(call.n, 1) : i < 2 ? h[Header::k] : h[Header::k] / h[Header::scale_size];
            bytes[i] = i == 5 ? d_bytes : OperandRow{call.program + h[column[i]]}[OperandRow::bytes];
            lines[i] = call.n && (i == 1 || i == 4) ? call.n : strips * STRIP;
            all += k[i] * bytes[i] * lines[i];
        }
        tiles = larger(1, smaller(total, PIECE / all));
        memory = static_cast<char*>(aligned_alloc(64, size_t((tiles * all + 6 * 128 + 63) / 64 * 64)));
        char* here = memory;
        for (int i = 0; i < 6; ++i) {
            at[i] = k[i] ? here : nullptr;
            here += (k[i] * bytes[i] * lines[i] * tiles + 64 + 63) / 64 * 64;  // a register may be written past the end
        }
    }
    ~Pieces() { free(memory); }
    Pieces(const Pieces&) = delete;
    Pieces& operator=(const Pieces&) = delete;

    i64 size(int i) const { return k[i] * bytes[i] * lines[i]; }  // of a tile, or of 16 vectors
    i64 rows_of(int i) const { return rows.n && (i == 1 || i == 4) ? rows.n : rows.n ? rows.m : STRIP; }

    // Rows of k items into strips of 16; `live` of them are there.
    void into_strips(int i, const char* source, const char* end, i64 live, char* to) const {
        for (i64 first = 0; first < live; first += STRIP)
            transpose(bytes[i], source + first * k[i] * bytes[i], k[i] * bytes[i], int(smaller(STRIP, live - first)),
                      int(k[i]), end, to + first * k[i] * bytes[i], STRIP * bytes[i], live - first >= STRIP);
    }

    void read(int i, i64 tile, i64 count) const {
        const i64 items = rows_of(i) * k[i] * bytes[i];  // of a tile in rows
        const char* end = from[i] + (rows.n ? rows.count * items : rows.count * k[i] * bytes[i]);
        for (i64 t = 0; t < count; ++t) {
            const char* source = from[i] + (tile + t) * items;
            char* to = at[i] + t * size(i);
            if (rows.n && (i == 1 || i == 4))
                transpose(bytes[i], source, rows.n * bytes[i], int(k[i]), rows.n, end, to, k[i] * bytes[i], true);
            else if (rows.n)
                into_strips(i, source, end, rows.m, to);
            else if (i == 2)
                memcpy(to, source, size_t(smaller(STRIP * bytes[i], end - source)));
            else
                into_strips(i, source, end, smaller(STRIP, rows.count - (tile + t) * STRIP), to);
        }
    }

    void write(i64 tile, i64 count) const {
        char* d = static_cast<char*>(rows.d);
        if (!rows.n) {
            const i64 first = tile * STRIP, live = smaller(count * STRIP, rows.count - first);
            memcpy(d + first * bytes[5], at[5], size_t(live * bytes[5]));
            return;
        }
        const char* end = at[5] + count * size(5) + 64;
        for (i64 t = 0; t < count; ++t)
            for (i64 first = 0; first < rows.m; first += STRIP)
                transpose(bytes[5], at[5] + t * size(5) + first * rows.n * bytes[5], STRIP * bytes[5], rows.n,
                          int(smaller(STRIP, rows.m - first)), end,
                          d + ((tile + t) * rows.m + first) * rows.n * bytes[5], rows.n * bytes[5], false);
    }
};

}  // namespace

bool evaluate_rows(const LayoutCall& rows) {
    if (!has_layout_kernel(rows.program)) return false;
    const Header h{rows.program};
    const i64 d_bytes = (EncodeRow{rows.program + h[Header::d]}[EncodeRow::bits] +
                         EncodeRow{rows.program + h[Header::d]}[EncodeRow::padding] + 7) /
                        8;
    Pieces p(rows, d_bytes);
    if (!p.memory) return false;
    LayoutCall call = rows;
    const void** operands[5] = {&call.a, &call.b, &call.c, &call.scale_a, &call.scale_b};
    for (int i = 0; i < 5; ++i) *operands[i] = p.at[i];
    call.d = p.at[5];
    for (i64 tile = 0; tile < p.total; tile += p.tiles) {
        call.count = smaller(p.tiles, p.total - tile);
        for (int i = 0; i < 5; ++i)
            if (p.at[i]) p.read(i, tile, call.count);
        if (!evaluate_layout(call)) return false;
        p.write(tile, call.count);
    }
    return true;
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
