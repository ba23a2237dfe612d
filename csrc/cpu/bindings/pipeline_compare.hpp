// Results in the engine layout against others there, or in rows.
#pragma once
#include "cpu/bindings/pipeline.hpp"
#include "cpu/bindings/pipeline_units.hpp"

namespace mmaprobe {
namespace {

// Codes of d that are NaN, from the generator's integers of d (generators/domain.py, Layout).
class NanCodes {
    uint64_t sign, infinity, largest;
    int64_t rule, padding;

public:
    explicit NanCodes(const int64_t* domain) {
        const int64_t* d = domain + DOMAIN_D;
        padding = d[LAYOUT_PADDING];
        largest = uint64_t(d[LAYOUT_LARGEST]);
        sign = uint64_t(d[LAYOUT_SIGN]);
        infinity = uint64_t(d[LAYOUT_INFINITY]);
        rule = d[LAYOUT_IS_FLOAT] ? d[LAYOUT_NAN_RULE] : 0;
    }
    bool operator()(uint64_t code) const {
        if (rule == 3) return code == sign;
        const uint64_t magnitude = (code & (sign - 1)) >> padding;
        return rule == 1 ? magnitude > infinity : rule == 2 && magnitude > largest;
    }
};

class Comparison {
    const PipelineCall& call;
    const Unit& unit;
    const NanCodes nan;
    const RowsFunction rows_agree_with;
    PipelineResult& result;

    void differ(int64_t place, uint64_t x, uint64_t y) {
        if (call.any_nan && nan(x) && nan(y)) return;
        if (result.mismatches++ < call.limit) result.places.push_back(place);
    }

    // Whether the results of one tile or group are those of the rows.
    bool rows_agree(const void* x, const void* rows) const {
        if (!unit.n) return std::memcmp(x, rows, size_t(unit.out_bytes * STRIP)) == 0;
        return rows_agree_with(x, rows, int(unit.out_bytes), unit.m, unit.n);
    }

    // Results of one tile or group against others in the same layout, or in rows (`answers`).
    template <class Item>
    void unit_of(const Item* x, const Item* y, bool in_rows, int64_t first, int64_t count) {
        for (int64_t v = 0; v < count; ++v) {
            const int64_t row = unit.n ? v / unit.n : v, column = unit.n ? v % unit.n : 0;
            const int64_t at = ((row / STRIP) * unit.columns + column) * STRIP + row % STRIP;
            const Item other = y[in_rows ? v : at];
            if (x[at] != other) differ(first + v, x[at], other);
        }
    }

    template <class Item>
    void units(const char* x, const char* y, bool in_rows, int64_t first, int64_t count) {
        const auto* left = reinterpret_cast<const Item*>(x);
        const auto* right = reinterpret_cast<const Item*>(y);
        for (; count > 0; count -= unit.vectors, first += unit.vectors) {
            const bool whole = count >= unit.vectors;
            const bool same = whole && (in_rows ? rows_agree(left, right)
                                                : std::memcmp(left, right, sizeof(Item) * size_t(unit.results)) == 0);
            if (!same) unit_of(left, right, in_rows, first, whole ? unit.vectors : count);
            left += unit.results;
            right += in_rows ? unit.vectors : unit.results;
        }
    }

public:
    Comparison(const PipelineCall& c, const Unit& u, RowsFunction rows, PipelineResult& to)
        : call(c), unit(u), nan(c.vectors.domain), rows_agree_with(rows), result(to) {}

    // Results of `count` vectors, the first of them number `first`.
    void run(const char* x, const char* y, bool in_rows, int64_t first, int64_t count) {
        const int64_t full = (count + unit.vectors - 1) / unit.vectors * unit.results;
        if (!in_rows && std::memcmp(x, y, size_t(full * unit.out_bytes)) == 0) return;
        switch (unit.out_bytes) {
            case 1: return units<uint8_t>(x, y, in_rows, first, count);
            case 2: return units<uint16_t>(x, y, in_rows, first, count);
            case 4: return units<uint32_t>(x, y, in_rows, first, count);
            default: return units<uint64_t>(x, y, in_rows, first, count);
        }
    }
};

}  // namespace
}  // namespace mmaprobe
