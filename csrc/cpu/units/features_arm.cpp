// What an aarch64 kernel announces (getauxval) and what it tells of the CPU (MIDR_EL1).
// Sources: Linux Documentation/arch/arm64/elf_hwcaps.rst; Arm Architecture Reference Manual, MIDR_EL1.
#include "cpu/units/unit.hpp"

#if defined(__aarch64__)
#include <sys/auxv.h>

#include <algorithm>

namespace mmaprobe::cpu {
namespace {

struct Feature {
    const char* name;
    unsigned long vector;
    int bit;
};

constexpr unsigned long cpuid_bit = 1ul << 11;  // HWCAP_CPUID: reads of MIDR_EL1 are emulated
constexpr Feature table[] = {
    {"dotprod", AT_HWCAP, 20},     {"sve", AT_HWCAP, 22},         {"f8f32mm", AT_HWCAP, 35},
    {"f8f16mm", AT_HWCAP, 36},     {"f32mm", AT_HWCAP2, 10},      {"i8mm", AT_HWCAP2, 13},
    {"bf16", AT_HWCAP2, 14},       {"ebf16", AT_HWCAP2, 32},      {"sme", AT_HWCAP2, 23},
    {"sme-i16i64", AT_HWCAP2, 24}, {"sme-f64f64", AT_HWCAP2, 25}, {"sme-i8i32", AT_HWCAP2, 26},
    {"sme-f16f32", AT_HWCAP2, 27}, {"sme-b16f32", AT_HWCAP2, 28}, {"sme-f32f32", AT_HWCAP2, 29},
    {"sme2", AT_HWCAP2, 37},       {"fp8fma", AT_HWCAP2, 52},     {"fp8dot4", AT_HWCAP2, 53},
    {"fp8dot2", AT_HWCAP2, 54},    {"sme-f8f16", AT_HWCAP2, 58},  {"sme-f8f32", AT_HWCAP2, 59},
};

}  // namespace

std::string missing_feature(const std::string& name) {
    const auto row = std::find_if(std::begin(table), std::end(table), [&](const Feature& f) { return name == f.name; });
    const bool here = row != std::end(table) && getauxval(row->vector) >> row->bit & 1;
    return here ? "" : "needs " + name;
}

std::vector<std::string> features() {
    std::vector<std::string> names;
    for (const Feature& row : table)
        if (missing_feature(row.name).empty()) names.push_back(row.name);
    return names;
}

std::vector<std::pair<std::string, std::string>> identity() {
    if (!(getauxval(AT_HWCAP) & cpuid_bit)) return {};
    std::uint64_t midr;
    asm("mrs %0, midr_el1" : "=r"(midr));
    return {{"vendor", std::to_string(midr >> 24 & 255)},
            {"family", std::to_string(midr >> 16 & 15)},
            {"model", std::to_string(midr >> 4 & 4095)},
            {"stepping", std::to_string((midr >> 20 & 15) << 4 | (midr & 15))}};
}

}  // namespace mmaprobe::cpu
#endif
