"""The peer's names of forms, and ours for the same instruction."""

from __future__ import annotations

import re

ARCHITECTURES = {
    "Volta": "sm_70", "Turing": "sm_75", "Ampere": "sm_80", "Ada Lovelace": "sm_89", "Hopper": "sm_90a",
    "Blackwell": "sm_100a", "RTX Blackwell": "sm_120a", "CDNA1": "gfx908", "CDNA2": "gfx90a", "CDNA3": "gfx942",
}  # fmt: skip

SCALE_VECTOR = {"mxf4nvf4.block32": "2X", "mxf4nvf4.block16": "4X"}


def form_key(kind: str, name: str) -> str:
    """A name without what its arithmetic does not depend on: M and N of the asynchronous instructions."""
    return re.sub(r"^m\d+n\d+", "", name) if kind.startswith(("WGMMA", "TCGen05")) else name


def our_id(kind: str, name: str) -> str:
    """Our id, or its short form, of an instruction that the peer calls ``name``."""
    if kind == "MFMA":
        return f"v_mfma_{name}"
    if kind == "MMA":
        return f"mma.{name}"
    if kind == "WGMMA":
        return f"wgmma.mma_async.{name}"
    if kind == "MMABlockScale":
        match = re.fullmatch(r"(\w+)\.kind::(\w+)\.(block\d+)\.(.*)", name)
        assert match is not None
        shape, flavour, block, types = match.groups()
        vector = SCALE_VECTOR.get(f"{flavour}.{block}")
        return f"mma.{shape}.kind::{flavour}.block_scale{f'.scale_vec::{vector}' if vector else ''}.{types}"
    return tcgen05_id(name)


def tcgen05_id(name: str) -> str:
    """tcgen05.mma of one CTA with A in shared memory."""
    shape, flavour, *types = name.split(".")
    if types[0].startswith("block"):
        flavour += f".block_scale.{types.pop(0)}"
    return f"tcgen05.mma.cta_group::1.{flavour}.{shape}.{'.'.join(types)}"
