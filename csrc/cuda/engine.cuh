// The model's engine on a GPU: the interpreter of csrc/model, a thread a vector, registers in memory of the caller's.
#include "model/machine.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

// MMAPROBE_WIDTH: how wide the sums of the program are (its header's width), one source for each.
#if MMAPROBE_WIDTH == 64
using Wide = u64;
#elif MMAPROBE_WIDTH == 128
using Wide = u128;
#else
using Wide = Limbs<MMAPROBE_WIDTH / 64>;
#endif

// One vector of a program, in registers of the caller's.
MMAPROBE_HD void evaluate_one(const i64* program, const Sources& sources, void* registers, i64 vector, void* out,
                              int bytes) {
    const Context<Wide, 1> context{program, {program}, sources, static_cast<Register<Wide, 1>*>(registers), vector, 1};
    run(context, out, bytes);
}

// Bytes of registers that a thread needs.
MMAPROBE_HD i64 register_bytes(const i64* program) {
    return Header{program}[Header::registers] * i64(sizeof(Register<Wide, 1>));
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe

// Operands in the order a, b, c, scale_a, scale_b: items one behind the other, `row` of them a vector.
struct EngineOperands {
    const void* base[5];
    long long row[5];
};

#if defined(__CUDACC__)
extern "C" __global__ void mmaprobe_run(const long long* program, EngineOperands given, char* scratch, void* out,
                                        int bytes, long long vectors, unsigned long long* done) {
    using namespace mmaprobe::MMAPROBE_BUILD;
    const i64* words = reinterpret_cast<const i64*>(program);
    if (Header{words}[Header::random] != ABSENT) return;  // nothing is done: there is no such operand
    const i64 thread = i64(blockIdx.x) * blockDim.x + threadIdx.x, threads = i64(gridDim.x) * blockDim.x;
    const Sources sources = {{given.base[0], given.row[0]},
                             {given.base[1], given.row[1]},
                             {given.base[2], given.row[2]},
                             {given.base[3], given.row[3]},
                             {given.base[4], given.row[4]}};
    for (i64 vector = thread; vector < vectors; vector += threads) {
        evaluate_one(words, sources, scratch + thread * register_bytes(words), vector, out, bytes);
        atomicAdd(done, 1ull);
    }
}
#endif
