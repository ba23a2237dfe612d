// Tiles that a family makes by a rule of their own.
#include <type_traits>
#include <vector>

#include "cpu/generators/aimed_tiles.hpp"
#include "cpu/generators/code_tiles.hpp"
#include "cpu/generators/generators.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

uint32_t tile_version(int family) {
    return family == generators::CODES || generators::tile_family(family).rows ? 2 : 0;
}

bool generate_aimed_tiles(const GeneratorCall& call, int m, int n, int64_t step, const Ready& ready) {
    using namespace generators;
    const uint32_t version = tile_version(call.family);
    if (!n || !version || call.stream >> 16 != version) return false;
    const Domain t = read_domain(call.domain);
    const Stream words{call.seed, call.stream};
    const Place place(t, m, n, call.out, call.whole_m, call.whole_n);
    const auto run = [&](auto tiles) {
        for (i64 done = 0; done < call.count; done += step) {
            tiles.run(call.start + u64(done * place.side), call.count - done < step ? call.count - done : step);
            ready();
        }
    };
    if (call.family == CODES)
        run(CodeTiles(t, words, place));
    else
        run(AimedTiles(t, words, call.family, place));
    return true;
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
