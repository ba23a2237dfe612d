// What the native generator reads and writes: domains as Python packs them, codes into arrays.
#pragma once
#include <stdint.h>
#include <string.h>

#include <initializer_list>

#include "cpu/generators/philox.hpp"
#include "model/circuit.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {
namespace {

template <class To, class From>
void copy_codes(void* out, i64 at, const From* codes, int count) {
    To* to = static_cast<To*>(out) + at;
    for (int n = 0; n < count; ++n) to[n] = To(codes[n]);
}
template <class From>
void store(const Layout& f, void* out, i64 at, const From* codes, int count) {
    switch (f.item) {
        case 1: return copy_codes<uint8_t>(out, at, codes, count);
        case 2: return copy_codes<uint16_t>(out, at, codes, count);
        case 4: return copy_codes<uint32_t>(out, at, codes, count);
        default: return copy_codes<uint64_t>(out, at, codes, count);
    }
}

i64 number(const i64*& p) { return *p++; }

Layout read_layout(const i64*& p) {
    Layout f;
    f.present = i32(number(p));
    f.is_float = i32(number(p));
    f.bits = i32(number(p));
    f.item = i32(number(p));
    f.fraction = i32(number(p));
    f.implicit = u64(number(p));
    f.normal = i32(number(p));
    f.low = i32(number(p));
    f.top = i32(number(p));
    f.padding = i32(number(p));
    f.largest = u64(number(p));
    f.sign = u64(number(p));
    f.infinity = u64(number(p));
    f.nan_rule = i32(number(p));
    return f;
}

Domain read_domain(const i64* p) {
    Domain t;
    for (Layout* f : {&t.a, &t.b, &t.c, &t.d, &t.scale}) *f = read_layout(p);
    Space& s = t.space;
    for (i32* field :
         {&s.k, &s.live, &s.chunk, &s.groups, &s.group_lanes, &s.product_top, &s.product_normal, &s.product_low,
          &s.anchor_top, &s.anchor_low, &s.c_top, &s.d_top, &s.d_normal, &s.d_low, &s.d_fraction})
        *field = i32(number(p));
    return t;
}

}  // namespace
}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
