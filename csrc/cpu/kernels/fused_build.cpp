// The kernel of fused sums, compiled on its own: it is the largest.
#include "cpu/kernels/fused_tiles.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

bool fused_sums(const LayoutCall& call) { return fused::evaluate(call); }

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
