// The builds of hot code: which of them this machine can run, whether they are compiled in or not.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <string>
#include <vector>

namespace mmaprobe::cpu {

#if defined(__x86_64__)
// CPUID 0x80000001, ECX bit 5; not every compiler takes its name.
inline bool has_lzcnt() {
    unsigned a, b, c, d;
    return __get_cpuid(0x80000001, &a, &b, &c, &d) && (c >> 5 & 1);
}
#endif

// By name, the fastest last.
inline std::vector<std::string> runnable_builds() {
    std::vector<std::string> out{"baseline"};
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") &&
        has_lzcnt())
        out.push_back("avx2");
    if (out.size() > 1 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        out.push_back("avx512");
#endif
    return out;
}

inline bool runs(const char* build) {
    for (const std::string& name : runnable_builds())
        if (name == build) return true;
    return false;
}

}  // namespace mmaprobe::cpu
