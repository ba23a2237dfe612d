#include "cpu/unit.hpp"

namespace mmaprobe::cpu {
std::vector<Unit> arm_units() { return {}; }
}  // namespace mmaprobe::cpu
