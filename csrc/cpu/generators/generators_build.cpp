// The native generator: separate vectors row by row, tiles and groups in the engine layout.
#include <memory>

#include "cpu/generators/generators.hpp"
#include "cpu/generators/layout.hpp"
#include "cpu/generators/separate.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

void generate(const GeneratorCall& call) { std::make_unique<generators::Separate>(call)->run(); }

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
    TurnedVectors turned(place, !streamed(call) && !t.space.chunk);
    const auto vectors = std::make_unique<Separate>(call, turned.in_strips());
    each([&](i64 done, i64 count) {
        const i64 first = done * place.side, left = n ? count * place.side : call.count - first;
        turned.run(count, left, [&](i64 from, i64 some, void* const* out) {
            vectors->run(call.start + u64(first + from), some, out);
        });
    });
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
