"""What a person can get wrong about AMD's instructions, each in one line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from emulator.batches import random_batch
from mmaprobe.catalog.lookup import instruction
from mmaprobe.cli import main
from mmaprobe.devices.model import open_model
from mmaprobe.errors import UsageError
from stand_ins.fake_hip import FakeHip, device

WRONG = [
    ("gfx999", "*", "unknown architecture 'gfx999'; did you mean gfx950"),
    ("gfx942", "v_wmma_f32_16x16x16_f16", "gfx942 has no wmma; gfx1100"),
    ("gfx942", "v_mfma_f32_4x4x1_16b_f32{cbsz=5}", "cbsz=5 is not legal here; it is one of cbsz=0, cbsz=1"),
    ("gfx942", "v_mfma_f32_4x4x1_16b_f32{abid=2,cbsz=1}", "abid=2 is not legal here; it is one of abid=0, abid=1"),
    ("gfx942", "v_mfma_f32_16x16x16_f16{cbsz=1}", "cbsz=1 is not legal here; it is one of cbsz=0"),
    ("gfx942", "v_mfma_f32_16x16x16_f16{blgp=9}", "blgp=9 is not legal here"),
    ("gfx942", "v_mfma_f32_16x16x16_f16{neg=100}", "takes no modifier neg; known: abid, blgp, cbsz"),
    ("gfx942", "v_mfma_f64_16x16x4_f64{neg=2}", "neg=2 is not legal here; it is one of neg=000"),
    ("gfx942", "v_smfmac_f32_16x16x32_f16{abid=4}", "abid=4 is not legal here; it is one of abid=0, abid=1, abid=2"),
    ("gfx942", "v_smfmac_f32_16x16x32_f16{index_key=1}", "takes no modifier index_key; known: abid"),
    ("gfx1200", "v_swmmac_f32_16x16x32_f16{index_key=2}", "index_key=2 is not legal here; it is one of index_key=0"),
    ("gfx1100", "v_wmma_f32_16x16x16_f16{clamp}", "takes no modifier clamp; known: neg_hi, neg_lo"),
]


@pytest.mark.parametrize(("home", "name", "said"), WRONG)
def test_a_wrong_architecture_index_set_or_modifier(
    home: str, name: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", "--arch", home, "--instruction", name]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.startswith("mmaprobe: ")
    assert told.count("\n") == 1


@pytest.mark.parametrize("wrong", [0b0101, 0b0001, 0x10])
def test_metadata_that_selects_nothing(wrong: int) -> None:
    """A place twice, the later one first, no item at all: the same line from GPU and model, and no launch."""
    made = instruction("v_smfmac_f32_16x16x32_f16", "gfx942")
    batch = random_batch(made, 3, 1)
    assert batch.metadata is not None
    metadata = batch.metadata.copy()
    metadata[1, 2, 3] = wrong
    hip = FakeHip("gfx942")
    said = set()
    for opened in (device(hip), open_model("gfx942")):
        with pytest.raises(UsageError) as raised:
            opened.run(made, replace(batch, metadata=metadata.astype(np.uint8)))
        said.add(str(raised.value))
    assert said == {
        f"{made.id}: metadata of item 1, row 2, chunk 3 is {wrong:#x}; it must be one of 0x4 0x8 0x9 0xc 0xd 0xe"
    }
    assert not hip.launches
