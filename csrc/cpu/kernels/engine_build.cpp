// One build of the engine; CMake compiles this file once for each instruction set (MMAPROBE_BUILD names it).
#include "cpu/kernels/engine.hpp"

#include <stdlib.h>

#include "model/integer_dot.hpp"
#include "model/machine.hpp"

namespace mmaprobe {
namespace MMAPROBE_BUILD {

template <class W, int V>
static bool evaluate_as(const EngineCall& call) {
    using Values = Register<W, V>;
    const Header header{call.program};
    const i64 bytes = header[Header::registers] * i64(sizeof(Values));
    auto* registers = static_cast<Values*>(aligned_alloc(64, size_t((bytes + 63) / 64 * 64)));
    if (!registers) return false;
    const Sources sources{{call.base[0], call.row[0]},
                          {call.base[1], call.row[1]},
                          {call.base[2], call.row[2]},
                          {call.base[3], call.row[3]},
                          {call.base[4], call.row[4]}};
    for (i64 first = 0; first < call.vectors; first += V) {
        const int count = int(smaller(V, call.vectors - first));
        run(Context<W, V>{call.program, header, sources, registers, first, count}, call.out, call.out_bytes);
    }
    free(registers);
    return true;
}

bool evaluate(const EngineCall& call) {
    const Header header{call.program};
    if (header[Header::kernel] == INTEGER_WRAPS || header[Header::kernel] == INTEGER_SATURATES) {
        const IntegerDot dots{
            call.base[0], call.base[1],           header[Header::c] == ABSENT ? nullptr : call.base[2], call.out,
            call.vectors, int(header[Header::k]), header[Header::kernel] == INTEGER_SATURATES};
        if (run_integer_dot(call.program, dots, call.out_bytes)) return true;
    }
    switch (Header{call.program}[Header::width]) {
        case 64: return evaluate_as<u64, 64>(call);
        case 128: return evaluate_as<u128, 32>(call);
        case 320: return evaluate_as<Limbs<5>, 16>(call);
        default: return evaluate_as<Limbs<10>, 16>(call);
    }
}

}  // namespace MMAPROBE_BUILD
}  // namespace mmaprobe
