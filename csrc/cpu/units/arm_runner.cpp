// The units of this machine as a program that speaks the process device's protocol with binary
// framing (docs/process_device.md), so that an emulator or another machine can run them.
// Control state: the modifier {rounding=rd|ru|rz} of a float unit sets FPCR.RMode, {lscale=N} of one of FP8
// FPMR.LSCALE; of its values the powers of two are here and the largest one.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "cpu/units/unit.hpp"

namespace {

using mmaprobe::cpu::Unit;

struct Entry {
    const Unit* unit;
    std::uint64_t control;
};

// Whether a unit multiplies FP8.
bool scales(const std::string& id) { return id.find(".e") != std::string::npos; }

// Whether a unit obeys FPCR.RMode: of the floating-point ones all but those of FP8, and bf16's (arm.bf*).
bool rounds(const std::string& id) { return id.rfind("arm.f", 0) == 0 && !scales(id); }

// The id with one more modifier: those of an id stand in the order of the alphabet.
std::string with(const std::string& id, const std::string& modifier) {
    const std::size_t size = id.size();
    if (id.back() != '}') return id + "{" + modifier + "}";
    std::size_t place = id.find('{') + 1;
    while (place < size && id.substr(place, id.find_first_of(",}", place) - place) < modifier)
        place = id.find_first_of(",}", place) + 1;
    if (place == size) return id.substr(0, size - 1) + "," + modifier + "}";
    return id.substr(0, place) + modifier + "," + id.substr(place);
}

// The unit's forms under other values of FPMR.LSCALE than 0: of four bits where D is f16, else of seven.
void add_scaled(std::map<std::string, Entry>& all, const Unit& unit) {
    const std::string id = unit.id;
    const std::uint64_t most = id.find(".f16") != std::string::npos ? 15 : 127;
    const auto add = [&](std::uint64_t scale) {
        all[with(id, "lscale=" + std::to_string(scale))] = {&unit, mmaprobe::cpu::default_control | scale << 48};
    };
    for (std::uint64_t scale = 1; scale < most; scale *= 2) add(scale);
    add(most);
}

// Everything that runs here, by id; those that round by FPCR in each of its modes, those of FP8 with scales.
std::map<std::string, Entry> entries() {
    const std::uint64_t state = mmaprobe::cpu::default_control;
    std::map<std::string, Entry> all;
    for (const Unit& unit : mmaprobe::cpu::units()) {
        if (!missing(unit).empty()) continue;
        all[unit.id] = {&unit, state};
        if (scales(unit.id)) add_scaled(all, unit);
        if (!rounds(unit.id)) continue;
        const std::pair<const char*, std::uint64_t> modes[] = {{"ru", 1}, {"rd", 2}, {"rz", 3}};
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
