// What an x86-64 CPU announces (CPUID), and what the operating system saves (XCR0, arch_prctl).
// Sources: Intel SDM volume 1 chapter 13 and volume 2 CPUID; Linux Documentation/arch/x86/xstate.rst.
#include "cpu/units/unit.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

namespace mmaprobe::cpu {
namespace {

enum { eax, ebx, ecx, edx };
constexpr std::uint64_t sse_state = 0, avx_state = 0x6, avx512_state = 0xe6, tile_state = 0x60006;

struct Feature {
    const char* name;
    unsigned leaf, subleaf;
    int where, bit;
    std::uint64_t state;  // XCR0 bits of the registers it uses
};

constexpr Feature table[] = {
    {"sse2", 1, 0, edx, 26, sse_state},          {"ssse3", 1, 0, ecx, 9, sse_state},
    {"sse4.1", 1, 0, ecx, 19, sse_state},        {"avx", 1, 0, ecx, 28, avx_state},
    {"fma", 1, 0, ecx, 12, avx_state},           {"avx2", 7, 0, ebx, 5, avx_state},
    {"avxvnni", 7, 1, eax, 4, avx_state},        {"avx512f", 7, 0, ebx, 16, avx512_state},
    {"avx512vl", 7, 0, ebx, 31, avx512_state},   {"avx512bw", 7, 0, ebx, 30, avx512_state},
    {"avx512vnni", 7, 0, ecx, 11, avx512_state}, {"avx512bf16", 7, 1, eax, 5, avx512_state},
    {"avx512fp16", 7, 0, edx, 23, avx512_state}, {"amx-tile", 7, 0, edx, 24, tile_state},
    {"amx-bf16", 7, 0, edx, 22, tile_state},     {"amx-int8", 7, 0, edx, 25, tile_state},
    {"amx-fp16", 7, 1, eax, 21, tile_state},
};

struct Leaf {
    unsigned value[4] = {};
    Leaf(unsigned leaf, unsigned subleaf) {
        __get_cpuid_count(leaf, subleaf, &value[eax], &value[ebx], &value[ecx], &value[edx]);
    }
    bool bit(int where, int number) const { return value[where] >> number & 1; }
};

std::uint64_t enabled_state() {
    if (!Leaf(1, 0).bit(ecx, 27)) return 0;  // OSXSAVE
    std::uint32_t low, high;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return std::uint64_t{high} << 32 | low;
}

// Linux gives the 8 KiB of tile data only to a process that asks.
std::string refused_tiles() {
    constexpr int request_permission = 0x1023, tile_data = 18;
    static const int error = syscall(SYS_arch_prctl, request_permission, tile_data) == 0 ? 0 : errno;
    return error ? std::string(" granted by the kernel: ") + std::strerror(error) : "";
}

std::string absence(const Feature& row) {
    const std::string needs = std::string("needs ") + row.name;
    if (!Leaf(row.leaf, row.subleaf).bit(row.where, row.bit)) return needs;
    if ((enabled_state() & row.state) != row.state) return needs + " enabled by the operating system";
    return row.state == tile_state && !refused_tiles().empty() ? needs + refused_tiles() : "";
}

}  // namespace

std::string missing_feature(const std::string& name) {
    static const std::map<std::string, std::string> reasons = [] {
        std::map<std::string, std::string> found;
        for (const Feature& row : table) found[row.name] = absence(row);
        return found;
    }();
    const auto row = reasons.find(name);
    return row == reasons.end() ? "needs " + name : row->second;
}

std::vector<std::string> features() {
    std::vector<std::string> names;
    for (const Feature& row : table)
        if (missing_feature(row.name).empty()) names.push_back(row.name);
    return names;
}

std::vector<std::pair<std::string, std::string>> identity() {
    const Leaf vendor(0, 0), version(1, 0);
    const unsigned order[] = {vendor.value[ebx], vendor.value[edx], vendor.value[ecx]};
    const unsigned v = version.value[eax];
    const unsigned base = v >> 8 & 15, family = base == 15 ? base + (v >> 20 & 255) : base;
    const unsigned model = (v >> 4 & 15) | (base == 6 || base == 15 ? (v >> 16 & 15) << 4 : 0);
    std::string name;
    for (unsigned leaf = 0x80000002; leaf <= 0x80000004; ++leaf)
        name.append(reinterpret_cast<const char*>(Leaf(leaf, 0).value), 16);
    name = name.c_str();
    return {{"vendor", std::string(reinterpret_cast<const char*>(order), 12)},
            {"family", std::to_string(family)},
            {"model", std::to_string(model)},
            {"stepping", std::to_string(v & 15)},
            {"model_name", name}};
}

}  // namespace mmaprobe::cpu
#endif
