"""What an instruction descriptor of tcgen05 says: the bit fields of PTX ISA 9.4, "Instruction descriptor", restated."""

from __future__ import annotations

PLAIN = {
    "selector": (0, 2), "sparse": (2, 1), "saturate": (3, 1), "d": (4, 2), "a": (7, 3), "b": (10, 3),
    "neg_a": (13, 1), "neg_b": (14, 1), "trans_a": (15, 1), "trans_b": (16, 1), "n": (17, 6), "m": (24, 5),
    "k": (29, 1), "shift": (30, 2),
}  # fmt: skip
SCALED = {
    "sparse": (2, 1), "scale_b_id": (4, 2), "a": (7, 3), "b": (10, 3), "neg_a": (13, 1), "neg_b": (14, 1),
    "trans_a": (15, 1), "trans_b": (16, 1), "n": (17, 6), "scale": (23, 1), "lanes": (26, 1), "m": (27, 2),
    "scale_a_id": (29, 2), "k": (31, 1),
}  # fmt: skip
FOUR = {
    "sparse": (2, 1), "k_high": (3, 1), "scale_b_id": (4, 2), "a": (7, 3), "b": (10, 2), "version": (12, 1),
    "neg_a": (13, 1), "neg_b": (14, 1), "n": (17, 6), "scale": (23, 2), "lanes": (26, 1), "m": (27, 2),
    "scale_a_id": (29, 2), "k": (31, 1),
}  # fmt: skip
NARROW = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
TYPES = {
    "f16": {0: "f16", 1: "bf16"}, "tf32": {2: "tf32"}, "f8f6f4": NARROW, "i8": {0: "u8", 1: "s8"}, "ti16": {3: "ti16"},
    "mxf8f6f4": NARROW, "mxf4": {1: "e2m1"}, "mxf4nvf4": {1: "e2m1"},
}  # fmt: skip
RESULTS = {0: "f16", 1: "f32", 2: "s32"}
SCALES = {0: "ue4m3", 1: "ue8m0", 2: "ue5m3"}


def said(word: int, kind: str) -> dict[str, int | str]:
    """Every field of a descriptor of a kind; KeyError for a type the kind lacks, AssertionError for reserved bits."""
    fields = FOUR if kind.startswith("mxf4") else SCALED if kind.startswith("mx") else PLAIN
    known = sum(((1 << bits) - 1) << low for low, bits in fields.values())
    assert not word & ~known, f"{word:#010x}: reserved bits"
    out: dict[str, int | str] = {name: word >> low & ((1 << bits) - 1) for name, (low, bits) in fields.items()}
    out["n"], out["m"] = int(out["n"]) * 8, int(out["m"]) * (16 if fields is PLAIN else 128)
    out |= {name: TYPES[kind][int(out[name])] for name in "ab"}
    if "d" in out:
        out["d"] = RESULTS[int(out["d"])]
    if "scale" in out:
        out["scale"] = SCALES[int(out["scale"])]
    return out
