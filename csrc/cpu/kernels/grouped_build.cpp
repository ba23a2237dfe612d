// The kernel of scaled group sums, compiled on its own: it comes in several kinds.
#include "cpu/kernels/grouped.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

bool grouped_sums(const LayoutCall& call) { return grouped::evaluate(call); }

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
