"""Formats as other libraries know them, for the tests of formats and of rounding."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from gfloat import formats as gf
from gfloat.types import Domain, FormatInfo

from mmaprobe import formats

DECLARED = (
    "e5m10f", "e5m2f", "e3m4ieee", "e2m3ieee", "e5m6fn", "e4m3b11fnuz", "ue4m4f", "e4m3b22fn", "e5m2b142ieee",
)  # fmt: skip
"""Formats that their names declare, with and without infinities, NaNs, a sign, a bias of their own and a 1."""
FLOATS = [*(name for name, fmt in formats.FORMATS.items() if fmt.is_float), *DECLARED]
SHORT = [name for name in FLOATS if formats.get(name).bits <= 16]
BYTES = [name for name in SHORT if formats.get(name).bits <= 8]
INTEGERS = [name for name, fmt in formats.FORMATS.items() if not fmt.is_float]

ML_DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "e5m2": ml_dtypes.float8_e5m2, "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn, "e2m1": ml_dtypes.float4_e2m1fn, "ue8m0": ml_dtypes.float8_e8m0fnu,
    "e3m4ieee": ml_dtypes.float8_e3m4, "e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
}  # fmt: skip


def _finite(name: str, bits: int, precision: int, bias: int, negative_zero: bool) -> FormatInfo:
    return FormatInfo(
        name, bits, precision, bias=bias, is_signed=True, domain=Domain.Finite, has_nz=negative_zero, num_high_nans=0,
        has_subnormals=True, is_twos_complement=False,
    )  # fmt: skip


GFLOAT: dict[str, FormatInfo] = {
    "f16": gf.format_info_binary16, "bf16": gf.format_info_bfloat16, "e5m2": gf.format_info_ocp_e5m2,
    "e4m3": gf.format_info_ocp_e4m3, "e3m2": gf.format_info_ocp_e3m2, "e2m3": gf.format_info_ocp_e2m3,
    "e2m1": gf.format_info_ocp_e2m1, "ue8m0": gf.format_info_ocp_e8m0,
    "e5m2fnuz": _finite("e5m2fnuz", 8, 3, 16, False), "e4m3fnuz": _finite("e4m3fnuz", 8, 4, 8, False),
    "e4m3b11fnuz": _finite("e4m3b11fnuz", 8, 4, 11, False), "e5m10f": _finite("e5m10f", 16, 11, 15, True),
    "e5m2f": _finite("e5m2f", 8, 3, 15, True),
    "ue5m3": FormatInfo("ue5m3", 8, 4, bias=15, is_signed=False, domain=Domain.Finite, has_nz=False, num_high_nans=1,
                        has_subnormals=True, is_twos_complement=False),
}  # fmt: skip
