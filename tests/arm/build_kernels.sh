#!/bin/sh
# Cross-compile the engine's kernels: tests/arm/build_kernels.sh OUTPUT
# Needs g++-aarch64-linux-gnu; run it with qemu-aarch64-static OUTPUT.
set -e
root=$(cd "$(dirname "$0")/../.." && pwd)
${CXX:-aarch64-linux-gnu-g++} -std=gnu++17 -O2 -fwrapv -Wall -Wextra -static -I"$root/csrc" "$root"/tests/arm/kernel_runner.cpp \
  "$root"/csrc/cpu/kernels/kernels_build.cpp "$root"/csrc/cpu/kernels/fused_build.cpp "$root"/csrc/cpu/kernels/grouped_build.cpp \
  "$root"/csrc/cpu/kernels/short_build.cpp "$root"/csrc/cpu/kernels/two_stage_build.cpp \
  "$root"/csrc/cpu/kernels/row_major_build.cpp \
  -o "${1:?usage: build_kernels.sh OUTPUT}"
