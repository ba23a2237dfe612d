// A libhiprtc with a clang of the machine (CLANG) behind it and a HEADER before every source; for UNKNOWN it aborts, as
// that of ROCm 5.2 does for targets that its LLVM does not know.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

struct Program {
    std::string text, log, code;
};

static std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

extern "C" {
int hiprtcVersion(int* major, int* minor) {
    *major = 9;
    *minor = 0;
    return 0;
}

int hiprtcCreateProgram(Program** made, const char* text, const char*, int, const char**, const char**) {
    *made = new Program{text, "", ""};
    return 0;
}

int hiprtcCompileProgram(Program* program, int count, const char** options) {
    char folder[] = "/tmp/hiprtcXXXXXX";
    if (!mkdtemp(folder)) return 11;
    const std::string base = std::string(folder) + "/k";
    std::string command = CLANG
        " -x hip -nogpuinc -nogpulib -c --cuda-device-only --no-gpu-bundle-output -w -O3 -std=c++14 "
        "-D__HIPCC_RTC__ -DHIP_VERSION_MAJOR=6 -DHIP_VERSION_MINOR=3 -DHIP_VERSION_PATCH=42131 -include " HEADER;
    for (int i = 0; i < count; ++i) {
        if (std::strstr(options[i], UNKNOWN)) std::abort();
        command += std::string(" '") + options[i] + "'";
    }
    std::ofstream(base + ".hip") << program->text;
    const int status = std::system((command + " -o " + base + ".co " + base + ".hip > " + base + ".txt 2>&1").c_str());
    program->log = content(base + ".txt");
    program->code = content(base + ".co");
    (void)!std::system((std::string("rm -r ") + folder).c_str());
    return status ? 6 : 0;
}

const char* hiprtcGetErrorString(int status) { return status ? "HIPRTC_ERROR_COMPILATION" : "HIPRTC_SUCCESS"; }

int hiprtcGetProgramLogSize(Program* program, size_t* size) {
    *size = program->log.size();
    return 0;
}

int hiprtcGetProgramLog(Program* program, char* log) {
    std::memcpy(log, program->log.data(), program->log.size());
    return 0;
}

int hiprtcGetCodeSize(Program* program, size_t* size) {
    *size = program->code.size();
    return 0;
}

int hiprtcGetCode(Program* program, char* code) {
    std::memcpy(code, program->code.data(), program->code.size());
    return 0;
}
}
