"""rocjitsu, AMD's emulator of its GPUs: a library that is preloaded below HIP and answers in the kernel driver's place.

Source: ROCm/rocm-systems, emulation/rocjitsu (docs/rocjitsu-cli.md): ``librocjitsu.so``, before that
``librocjitsu_kmd.so``, in LD_PRELOAD, its machine in RJ_CONFIG, a daemon's socket in ROCJITSU_RUNTIME_DIR.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mmaprobe.devices.emulators import digested, mapped, named
from mmaprobe.evidence.silicon import emulated

_LIBRARY = re.compile("rocjitsu")
_VARIABLE = re.compile("ROCJITSU_|RJ_(CONFIG|SCHEMA)$")


def below_hip(environment: Mapping[str, str], maps: str) -> str:
    """What an identity says of silicon where rocjitsu lies below HIP in this process, else empty; ``maps`` is
    ``/proc/self/maps``.

    It shows as a library that is mapped or preloaded, and by the environment variables of its launchers.
    """
    preloaded = re.split(r"[\s:]+", environment.get("LD_PRELOAD", ""))
    library = next(mapped(maps, _LIBRARY), "") or next((each for each in preloaded if named(each, _LIBRARY)), "")
    if library:
        return emulated(f"rocjitsu, {digested(library)}")
    seen = any(_VARIABLE.match(name) for name in environment)
    return emulated("rocjitsu, whose library is not seen") if seen else ""
