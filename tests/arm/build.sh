#!/bin/sh
# Cross-compile the Arm runner: tests/arm/build.sh OUTPUT
# Needs g++-aarch64-linux-gnu; run it with qemu-aarch64-static -cpu max OUTPUT.
set -e
root=$(cd "$(dirname "$0")/../.." && pwd)
${CXX:-aarch64-linux-gnu-g++} -std=c++17 -O2 -Wall -Wextra -static -I"$root/csrc" \
  "$root"/csrc/cpu/units/arm_runner.cpp "$root"/csrc/cpu/units/unit.cpp \
  "$root"/csrc/cpu/units/features_*.cpp "$root"/csrc/cpu/units/instructions_*.cpp -o "${1:?usage: build.sh OUTPUT}"
