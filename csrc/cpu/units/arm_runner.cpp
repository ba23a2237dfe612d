// The units of this machine as a program that speaks the process device's protocol with binary
// framing (docs/process_device.md), so that an emulator or another machine can run them.
// Control state: the modifier {rounding=rd|ru|rz} of a float unit sets FPCR.RMode.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "cpu/units/unit.hpp"

namespace {

using mmaprobe::cpu::Unit;

struct Entry {
    const Unit* unit;
    std::uint32_t control;
};

// Whether a unit obeys FPCR.RMode: of the floating-point ones all but those of FP8, and bf16's (arm.bf*).
bool rounds(const std::string& id) { return id.rfind("arm.f", 0) == 0 && id.find(".e") == std::string::npos; }

// The id with one more modifier: those of an id stand in the order of the alphabet, and vgx is the last.
std::string with(const std::string& id, const std::string& modifier) {
    const std::size_t last = id.find("vgx");
    if (last != std::string::npos) return id.substr(0, last) + modifier + "," + id.substr(last);
    return id.back() == '}' ? id.substr(0, id.size() - 1) + "," + modifier + "}" : id + "{" + modifier + "}";
}

// Everything that runs here, by id; those that round by FPCR in each of its modes.
std::map<std::string, Entry> entries() {
    const std::uint32_t state = mmaprobe::cpu::default_control;
    std::map<std::string, Entry> all;
    for (const Unit& unit : mmaprobe::cpu::units()) {
        if (!missing(unit).empty()) continue;
        all[unit.id] = {&unit, state};
        if (!rounds(unit.id)) continue;
        const std::pair<const char*, std::uint32_t> modes[] = {{"ru", 1}, {"rd", 2}, {"rz", 3}};
        for (const auto& [name, mode] : modes)
            all[with(unit.id, std::string("rounding=") + name)] = {&unit, state | mode << 22};
    }
    return all;
}

bool read_all(std::vector<char>& buffer) { return std::fread(buffer.data(), 1, buffer.size(), stdin) == buffer.size(); }

bool answer(const Entry& entry, std::size_t count) {
    const Unit& unit = *entry.unit;
    std::vector<char> a(count * unit.a), b(count * unit.b), c(count * unit.c), d(count * unit.d);
    if (!read_all(a) || !read_all(b) || !read_all(c)) return false;
    run(unit, entry.control, a.data(), b.data(), c.data(), d.data(), count);
    std::printf("ok %zu\n", count);
    std::fwrite(d.data(), 1, d.size(), stdout);
    return std::fflush(stdout) == 0;
}

}  // namespace

int main() {
    const auto known = entries();
    std::printf("mmaprobe 1 arm_runner aarch64 binary");
    for (const auto& [id, entry] : known) std::printf(" %s", id.c_str());
    std::printf("\n");
    std::fflush(stdout);
    char id[256];
    std::size_t count;
    while (std::scanf("run %255s %zu", id, &count) == 2 && std::getchar() == '\n') {
        const auto found = known.find(id);
        if (found == known.end()) {
            std::printf("error no instruction %s here\n", id);
            return 2;
        }
        if (!answer(found->second, count)) return 1;
    }
    return std::feof(stdin) ? 0 : 1;
}
