// Programs on row-major operands, read from stdin: so that an emulator or another machine can run the kernels.
// A call is seven 64-bit numbers (words of the program, count, m, n, bytes of a result, bytes of all results, 0), the
// program, five operands each after its bytes (0 where absent); the answer is whether a kernel took it, and d.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "cpu/kernels/tiles.hpp"

static bool get(void* to, std::size_t bytes) { return std::fread(to, 1, bytes, stdin) == bytes; }

int main() {
    int64_t head[7];
    while (get(head, sizeof head)) {
        std::vector<int64_t> program(static_cast<std::size_t>(head[0]));
        if (!get(program.data(), program.size() * 8)) return 1;
        std::vector<char> operand[5], d(static_cast<std::size_t>(head[5]));
        for (auto& x : operand) {
            int64_t bytes = 0;
            if (!get(&bytes, sizeof bytes)) return 1;
            x.resize(static_cast<std::size_t>(bytes));
            if (!get(x.data(), x.size())) return 1;
        }
        const auto at = [&](int i) { return operand[i].empty() ? nullptr : operand[i].data(); };
        const mmaprobe::LayoutCall call{program.data(), at(0),    at(1),   at(2),        at(3),
                                        at(4),          d.data(), head[1], int(head[2]), int(head[3])};
        const int64_t taken = mmaprobe::baseline::evaluate_rows(call);
        std::fwrite(&taken, sizeof taken, 1, stdout);
        std::fwrite(d.data(), 1, d.size(), stdout);
        std::fflush(stdout);
    }
    return std::feof(stdin) ? 0 : 1;
}
