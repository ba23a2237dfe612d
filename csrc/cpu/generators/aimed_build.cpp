// Tiles that a family makes by a rule of their own.
#include <type_traits>
#include <vector>

#include "cpu/generators/aimed_tiles.hpp"
#include "cpu/generators/generators.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

uint32_t tile_version(int family) { return generators::tile_family(family).rows ? 2 : 0; }

bool generate_aimed_tiles(const GeneratorCall& call, int m, int n, int64_t step, const Ready& ready) {
    using namespace generators;
    const uint32_t version = tile_version(call.family);
    if (!n || !version || call.stream >> 16 != version) return false;
    const Domain t = read_domain(call.domain);
    AimedTiles tiles(t, {call.seed, call.stream}, call.family, Place(t, m, n, call.out));
    const i64 side = larger(m, n);
    for (i64 done = 0; done < call.count; done += step) {
        tiles.run(call.start + u64(done * side), call.count - done < step ? call.count - done : step);
        ready();
    }
    return true;
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
