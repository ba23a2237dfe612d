// One dot-product instruction of this machine, and the loop that runs it over a batch.
//
// Operands are bit patterns, row-major: a (count, M, K), b (count, K, N), c and d (count, M, N).
// A step executes the instruction once on `lanes` consecutive vectors (or on one tile); a last step
// that is not full is padded with zeros.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mmaprobe::cpu {

struct Unit {
    const char* id;        // opcode, then {width=...} where it is not 128
    const char* features;  // all that it needs, space-separated, in the compiler's spelling
    int lanes;             // vectors or tiles that one step computes
    int a, b, c, d;        // bytes of one vector or tile; c = 0: no accumulator
    void (*step)(const void* a, const void* b, const void* c, void* d);  // null: the compiler knew no such instruction
    void (*begin)() = nullptr;  // before the first step of a batch, and
    void (*end)() = nullptr;  // after the last one
};

// Every instruction that this build knows; rows of one id are alternative encodings, best first.
const std::vector<Unit>& units();
std::vector<Unit> x86_units();
std::vector<Unit> amx_units();
std::vector<Unit> arm_units();

// The first row of this id that runs here, else its first row, else null.
const Unit* find_unit(const std::string& id);

// Features that both the CPU and the operating system have, in the compiler's spelling.
std::vector<std::string> features();
// Why a feature cannot be used: "needs amx-fp16"; empty where it can.
std::string missing_feature(const std::string& name);
// The same for all features of a unit, or that this build could not compile it.
std::string missing(const Unit& unit);
// vendor, family, model, stepping, model_name, as far as the CPU itself tells.
std::vector<std::pair<std::string, std::string>> identity();

// The control register (MXCSR, FPCR) at its default: round to nearest, no flushing, exceptions masked.
extern const std::uint32_t default_control;

// Bits that the units of FP8 (aarch64) set in FPMR beside those of their form, such as LSCALE; of the batch that runs.
extern thread_local std::uint32_t fpmr_bits;

// d = unit(a, b, c) for `count` vectors or tiles, meanwhile with the control register and FPMR's bits that `control`
// has in its low and in its high half.
void run(const Unit& unit, std::uint64_t control, const void* a, const void* b, const void* c, void* d,
         std::size_t count);

// Execute the unit once in a forked child: 0, or the signal that ended it (SIGILL: the instruction
// is masked although the CPU's feature bits announce it); -1 where no child could be made.
int trial(const Unit& unit);

}  // namespace mmaprobe::cpu
