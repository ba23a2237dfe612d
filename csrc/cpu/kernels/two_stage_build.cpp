// The kernel of sums in two stages, compiled on its own.
#include "cpu/kernels/two_stage_tiles.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

bool two_stage_sums(const LayoutCall& call) { return two_stage::evaluate(call); }

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
