"""A maker of GPUs that there is not: its record and what its folders would hold."""

from __future__ import annotations

from mmaprobe.vendors import Vendor

PRETEND = Vendor(
    "Pretend",
    scheme="pretend",
    begins="ptd",
    example="ptd1",
    device="stand_ins.pretend.device:open_pretend",
    tools="stand_ins.pretend.tools",
    products="",
    suffix=".ptd",
    compilers=("ptdcc",),
    programs=("ptd++",),
    extras={"pretend": ("no_module_of_pretend",)},
    driver="pretend",
    memory=14,
    stream=0,
)
