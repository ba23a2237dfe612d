// The engine layout: how tiles and groups of vectors lie in memory for kernels, and the calls that take them.
//
// Items are containers of the datapath's formats (1, 2, 4 or 8 bytes, 4- and 6-bit elements in the low bits of a
// byte), lowest index last:
//
//   tiles    a [tile][strip][K][16]   scale_a [tile][strip][K/S][16]   strip: 16 rows; M / 16 of them, rounded up
//            b [tile][N][K]           scale_b [tile][N][K/S]
//            c, d [tile][strip][N][16]
//   groups   a, b [group][K][16]      scale_a, scale_b [group][K/S][16]
//            c, d [group][16]         vector 16 g + i is lane i of group g, with a row and a column of its own
//
// Rows at and above M in a tile's last strip hold anything, and so do lanes above the number of vectors in the last
// group; what becomes of them in d is not said. So an M of 8 takes as long as an M of 16.
//
// A sum over K knows no order inside a step: whoever fills a layout keeps lane k at place k all the same.
// Metadata of sparse forms is resolved before (b holds the selected items).
//
// evaluate_layout returns false where the program has no kernel; the interpreter (engine.hpp) then takes rows.
//
// A kernel evaluates one family of datapaths on these layouts. To add one: a file with a function
// bool NAME(const LayoutCall&) that returns false where the call is not its own, its number in program.hpp
// (MMAPROBE_KERNELS) and models/kernels.py, which gives it to datapaths by their structure alone, and a line in
// kernels_build.cpp. The program's header names the kernel; `rules` in it points at the kernel's own row, if any.
#pragma once
#include <stdint.h>

#include <string>

#include "cpu/kernels/engine.hpp"

namespace mmaprobe {

constexpr int STRIP = 16;  // rows of a strip, vectors of a group

struct LayoutCall {
    const int64_t* program;
    const void *a, *b, *c, *scale_a, *scale_b;  // null where absent
    void* d;
    int64_t count;  // tiles or groups
    int m, n;       // of a tile; n = 0: groups
};

using LayoutFunction = bool (*)(const LayoutCall&);

#define MMAPROBE_DECLARE(build) \
    namespace build { \
    bool evaluate_layout(const LayoutCall& call); /* false: the program has no kernel, or none here */ \
    bool has_layout_kernel(const int64_t* program); \
    bool evaluate_rows(const LayoutCall& call); \
    }
MMAPROBE_DECLARE(baseline)
MMAPROBE_DECLARE(avx2)
MMAPROBE_DECLARE(avx512)
#undef MMAPROBE_DECLARE

struct EngineBuild {
    const char* name;
    EngineFunction run;
    LayoutFunction run_layout;
    LayoutFunction run_rows;  // the same on row-major arrays: a [tile][M][K], b [tile][K][N], ...; n = 0: vectors
};

// The named build, or the fastest that this machine can run; std::invalid_argument where there is none.
const EngineBuild& engine_build(const std::string& name);

}  // namespace mmaprobe
