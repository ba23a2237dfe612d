// The kernel of short sums, compiled on its own: it has a form for every shape of step.
#include "cpu/kernels/short_sums.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

bool short_sums(const LayoutCall& call) { return short_steps::evaluate(call); }

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
