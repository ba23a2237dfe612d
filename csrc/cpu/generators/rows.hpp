// Separate vectors, row by row, of the families that cut their operands out of a stream of bytes.
#pragma once
#include "cpu/generators/stream.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {
namespace generators {
namespace {

// Items below `bits` only.
template <class Item>
void cut_unused(void* out, i64 items, int bits) {
    const Item mask = Item(~u64(0) >> (64 - bits));
    for (i64 n = 0; mask != Item(~Item(0)) && n < items; ++n) static_cast<Item*>(out)[n] &= mask;
}

// Size 0: known at run time only.
template <int Size>
void gather_bytes(char* out, const char* bytes, int count, i64 pitch, int size) {
    for (int vector = 0; vector < count; ++vector, bytes += pitch, out += Size ? Size : size)
        memcpy(out, bytes, size_t(Size ? Size : size));
}

// An operand's bytes out of `count` byte streams that lie `pitch` apart.
void cut_bytes(const Span& span, i64 first, int count, const char* bytes, i64 pitch) {
    const int size = span.bytes();
    char* out = static_cast<char*>(span.out) + first * size;
    bytes += span.offset;
    switch (size) {
        case 4: gather_bytes<4>(out, bytes, count, pitch, size); break;
        case 8: gather_bytes<8>(out, bytes, count, pitch, size); break;
        case 16: gather_bytes<16>(out, bytes, count, pitch, size); break;
        case 32: gather_bytes<32>(out, bytes, count, pitch, size); break;
        case 64: gather_bytes<64>(out, bytes, count, pitch, size); break;
        default: gather_bytes<0>(out, bytes, count, pitch, size);
    }
    const i64 items = i64(count) * span.items;
    switch (span.format->item) {
        case 1: return cut_unused<uint8_t>(out, items, span.format->bits);
        case 2: return cut_unused<uint16_t>(out, items, span.format->bits);
        case 4: return cut_unused<uint32_t>(out, items, span.format->bits);
        default: return cut_unused<uint64_t>(out, items, span.format->bits);
    }
}

// Metadata items of vectors start .. start + count - 1, (count, K / chunk) bytes.
void fill_metadata(const Stream& stream, const Space& s, u64 start, i64 count, uint8_t* out) {
    const int chunks = s.k / s.chunk;
    const Keys keys(stream);
    for (i64 first = 0; first < count; first += PER) {
        const Indices indices(start + u64(first));
        for (int chunk = 0; chunk < chunks; ++chunk) {
            State states[1] = {indices.counters(keys, METADATA, u32(chunk))};
            Four words[1];
            philox_sets<0>(states, keys, words);
            for (int n = 0; n < PER && first + n < count; ++n)
                out[(first + n) * chunks + chunk] = uint8_t(metadata_item(s.chunk, words[0].w[0][n]));
        }
    }
}

// Separate vectors, row by row.
struct StreamMaker {
    static constexpr int WANTED_BYTES = 1 << 14;

    const Domain& t;
    const Stream stream;
    const GeneratorCall& call;
    Streams streams;

    StreamMaker(const Domain& domain, const Stream& words, const GeneratorCall& c, bool clusters)
        : t(domain), stream(words), call(c), streams(domain, words, clusters, c.out) {}

    void run() {
        const i64 pitch = 16 * streams.blocks;
        const int step = larger(1, int(WANTED_BYTES / pitch / PER)) * PER;
        std::vector<char> rows(size_t(step * pitch));
        const std::vector<Step> steps = streams.steps([](int) { return true; });
        for (i64 done = 0; done < call.count; done += step) {
            const int count = int(call.count - done < step ? call.count - done : step);
            for (int n = 0; n < count; n += PER) {
                const Indices indices(call.start + u64(done + n));
                char* to = rows.data() + n * pitch;
                const auto store = [&](const Step& of, const Four& words) {
                    store_rows(words, to + 16 * of.block, pitch);
                };
                streams.each<AnyItems>(indices, steps, store, store);
            }
            for (const Span& span : streams.spans) cut_bytes(span, done, count, rows.data(), pitch);
        }
        if (t.space.chunk && call.out[5])
            fill_metadata(stream, t.space, call.start, call.count, static_cast<uint8_t*>(call.out[5]));
    }
};

}  // namespace
}  // namespace generators
}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
