// The kernels of one build; CMake compiles this file once for each instruction set (MMAPROBE_BUILD names it).
#include "cpu/kernels/chain.hpp"
#include "cpu/kernels/exact_sum.hpp"
#include "cpu/kernels/flushed_chain.hpp"
#include "cpu/kernels/integers.hpp"
#include "cpu/kernels/late_c.hpp"
#include "cpu/kernels/pairs.hpp"
#include "cpu/kernels/tiles.hpp"
#include "cpu/kernels/tree.hpp"
#include "model/program.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

bool grouped_sums(const LayoutCall& call);  // grouped_build.cpp
bool short_sums(const LayoutCall& call);    // short_build.cpp
bool two_stage_sums(const LayoutCall& call);  // two_stage_build.cpp

struct LayoutKernel {
    Kernel number;
    LayoutFunction run;
};

// One line a family.
static const LayoutKernel KERNELS[] = {
    {FUSED, fused_sums},
    {CHAIN, chain::evaluate},
    {TWO_STAGE, two_stage_sums},
    {GROUPED, grouped_sums},
    {INTEGER_WRAPS, integers::wraps},
    {INTEGER_SATURATES, integers::saturates},
    {EXACT_SUM, exact_sum::evaluate},
    {PAIRS, pairs::evaluate},
    {SHORT_SUMS, short_sums},
    {FLUSHED_CHAIN, flushed_chain::evaluate},
    {LATE_C, late_c::evaluate},
    {TREE, tree::evaluate},
};

bool has_layout_kernel(const i64* program) {
    const i64 number = Header{program}[Header::kernel];
    for (const LayoutKernel& kernel : KERNELS)
        if (number == kernel.number) return true;
    return false;
}

bool evaluate_layout(const LayoutCall& call) {
    const i64 number = Header{call.program}[Header::kernel];
    for (const LayoutKernel& kernel : KERNELS)
        if (number == kernel.number) return kernel.run(call);
    return false;
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
