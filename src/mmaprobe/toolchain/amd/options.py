"""What a compiler for AMD is told: of the language, of the target, of the wave.  Each option stands here alone."""

from __future__ import annotations

from mmaprobe.toolchain.source import Source

LANGUAGE = ("-std=c++17", "-O2", "-ffp-contract=off")
"""Every compiler: a product and a sum that the source rounds one by one stay two operations."""
DEVICE = ("-x", "hip", "-nogpuinc", "-nogpulib", "-c", "--cuda-device-only", "--no-gpu-bundle-output")
"""clang, which would else make a program of host and device."""
USUAL = 5
"""The version of code objects that older ROCm loads too, wherever a target has it."""
GENERIC = 6
"""The version of code objects of other targets."""


def target(architecture: str, usual: int | None = None) -> tuple[str, ...]:
    """The exact architecture and the version of its code objects; without a ``usual`` one the compiler's own."""
    version = GENERIC if "generic" in architecture else usual
    named = () if version is None else (f"-mcode-object-version={version}",)
    return (f"--offload-arch={architecture}", *named)


def wave(source: Source) -> str:
    """How many lanes a wave has."""
    return "-mwavefrontsize64" if source.threads == 64 else "-mno-wavefrontsize64"


def of_hiprtc(source: Source) -> tuple[str, ...]:
    """All that hiprtc is told; the version of code objects is ROCm's own, which its runtime loads."""
    return (*target(source.architecture), wave(source), *LANGUAGE)


def of_clang(source: Source) -> tuple[str, ...]:
    """All that clang is told."""
    return (*LANGUAGE, *DEVICE, *target(source.architecture, USUAL), wave(source))
