#include "cpu/units/unit.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace mmaprobe::cpu {
namespace {

// The control register and FPMR's bits for the length of a scope.  Reads, writes and the instructions between them
// are volatile asm, which a compiler keeps in order.
#if defined(__x86_64__)
std::uint32_t read_control() {
    std::uint32_t value;
    asm volatile("stmxcsr %0" : "=m"(value)::"memory");
    return value;
}
void write_control(std::uint32_t value) { asm volatile("ldmxcsr %0" ::"m"(value) : "memory"); }
#elif defined(__aarch64__)
std::uint32_t read_control() {
    std::uint64_t value;
    asm volatile("mrs %0, fpcr" : "=r"(value)::"memory");
    return static_cast<std::uint32_t>(value);
}
void write_control(std::uint32_t value) {
    asm volatile("msr fpcr, %0" ::"r"(static_cast<std::uint64_t>(value)) : "memory");
}
#else
std::uint32_t read_control() { return 0; }
void write_control(std::uint32_t) {}
#endif

class Control {
public:
    explicit Control(std::uint64_t value) : before_(read_control()) {
        write_control(static_cast<std::uint32_t>(value));
        fpmr_bits = static_cast<std::uint32_t>(value >> 32);
    }
    ~Control() {
        write_control(before_);
        fpmr_bits = 0;
    }
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;

private:
    std::uint32_t before_;
};

constexpr std::size_t register_bytes = 64;

void padded_step(const Unit& unit, const char* a, const char* b, const char* c, char* d, std::size_t count) {
    alignas(64) char full[4][register_bytes] = {};
    std::memcpy(full[0], a, count * unit.a);
    std::memcpy(full[1], b, count * unit.b);
    if (unit.c) std::memcpy(full[2], c, count * unit.c);
    unit.step(full[0], full[1], full[2], full[3]);
    std::memcpy(d, full[3], count * unit.d);
}

}  // namespace

#if defined(__x86_64__)
const std::uint32_t default_control = 0x1f80;
#else
const std::uint32_t default_control = 0;
#endif

thread_local std::uint32_t fpmr_bits = 0;

const std::vector<Unit>& units() {
    static const std::vector<Unit> all = [] {
        std::vector<Unit> list;
        for (const auto& family : {x86_units(), amx_units(), arm_units()})
            list.insert(list.end(), family.begin(), family.end());
        return list;
    }();
    return all;
}

const Unit* find_unit(const std::string& id) {
    const Unit* first = nullptr;
    for (const Unit& unit : units()) {
        if (id != unit.id) continue;
        if (missing(unit).empty()) return &unit;
        if (!first) first = &unit;
    }
    return first;
}

std::string missing(const Unit& unit) {
    const std::string names = unit.features;
    if (!unit.step) return "this build's compiler lacks " + names.substr(0, names.find(' '));
    for (std::size_t start = 0; start < names.size();) {
        const std::size_t stop = std::min(names.find(' ', start), names.size());
        const std::string reason = missing_feature(names.substr(start, stop - start));
        if (!reason.empty()) return reason;
        start = stop + 1;
    }
    return "";
}

void run(const Unit& unit, std::uint64_t control, const void* a, const void* b, const void* c, void* d,
         std::size_t count) {
    auto* pa = static_cast<const char*>(a);
    auto* pb = static_cast<const char*>(b);
    auto* pc = static_cast<const char*>(c);
    auto* pd = static_cast<char*>(d);
    const std::size_t lanes = unit.lanes;
    const Control scope(control);
    if (unit.begin) unit.begin();
    for (; count >= lanes; count -= lanes) {
        unit.step(pa, pb, pc, pd);
        pa += lanes * unit.a;
        pb += lanes * unit.b;
        pc += lanes * unit.c;
        pd += lanes * unit.d;
    }
    if (count) padded_step(unit, pa, pb, pc, pd, count);
    if (unit.end) unit.end();
}

int trial(const Unit& unit) {
    const std::size_t lanes = unit.lanes;
    const std::vector<char> a(lanes * unit.a), b(lanes * unit.b), c(lanes * unit.c + 1);
    std::vector<char> d(lanes * unit.d);
    const pid_t child = fork();
    if (child < 0) return -1;
    if (child == 0) {
        for (int number : {SIGILL, SIGSEGV, SIGBUS, SIGALRM}) signal(number, SIG_DFL);
        const rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        alarm(10);
        run(unit, default_control, a.data(), b.data(), c.data(), d.data(), lanes);
        _exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace mmaprobe::cpu
