"""Sparse instructions are derived as the dense ones of their kept lanes, and the selection of lanes is proven first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.catalog.sparsity import kept_positions, legal_items
from mmaprobe.cli import main
from mmaprobe.derivation import certify, derive
from mmaprobe.derivation.dense_view import KeptLanes, asked, dense_form, hostile, kept
from mmaprobe.derivation.metadata import prove_selection
from mmaprobe.derivation.vectors.mixtures import mixed_vectors
from mmaprobe.devices.base import Support, open_device
from mmaprobe.devices.model import ModelDevice
from mmaprobe.models.engine import evaluate_many
from mmaprobe.models.sparse import dense_vectors
from mmaprobe.operands.batch import Batch, Bits, check_vectors
from mmaprobe.operands.witness_batches import as_vectors
from mmaprobe.parameters.lookup import datapath_for, read_file
from mmaprobe.report.tables.certificates import certificate_lines
from mmaprobe.survey.smoke import smoke_vectors, validate_witnesses

FORMS = {
    "mma.sp.m16n8k16.f32.f16.f16.f32": "sm_80",
    "mma.sp.m16n8k8.f32.tf32.tf32.f32": "sm_90a",
    "mma.sp.m16n8k64.s32.s4.u4.s32": "sm_90a",
    "v_smfmac_f32_32x32x16_bf16": "gfx942",
    "tcgen05.mma.sp.cta_group::1.kind::mxf4.block_scale.m128n8k128.f32.e2m1.e2m1.ue8m0": "sm_100a",
}
EACH = [(instruction(name, architecture), architecture) for name, architecture in FORMS.items()]
F16 = EACH[0][0]


class Otherwise:
    """A model that is asked with its vectors changed: it reads metadata, or the lanes not named, in its own way."""

    def __init__(self, architecture: str, change: Any) -> None:
        self.inner = open_device(f"model:{architecture}")
        self.name = "otherwise"
        self.change = change

    def info(self) -> dict[str, str]:
        return self.inner.info()

    def instructions(self) -> Any:
        return self.inner.instructions()

    def supports(self, made: Instruction) -> Support:
        return self.inner.supports(made)

    def run(self, made: Instruction, batch: Batch) -> Bits:
        raise AssertionError("a device that answers separate vectors was asked whole tiles")

    def run_vectors(self, made: Instruction, vectors: Batch) -> Bits:
        assert isinstance(self.inner, ModelDevice)
        return self.inner.run_vectors(made, self.change(made, vectors))


@pytest.mark.parametrize(("made", "architecture"), EACH, ids=list(FORMS))
def test_a_dense_vector_becomes_one_sparse_vector(made: Instruction, architecture: str) -> None:
    dense = mixed_vectors(dense_form(made), 1, 600)
    sparse = asked(architecture, made, dense)
    check_vectors(made, sparse)
    for (name, before), (_, after) in zip(dense.items(), kept(architecture, made, sparse).items(), strict=True):
        np.testing.assert_array_equal(before, after, name)
    again = asked(architecture, made, dense.slice(200, 300))
    np.testing.assert_array_equal(again.metadata, sparse.slice(200, 300).metadata)
    np.testing.assert_array_equal(again.b, sparse.slice(200, 300).b)


@pytest.mark.parametrize(("made", "architecture"), EACH, ids=list(FORMS))
def test_every_item_comes_in_every_chunk_and_what_is_not_named_is_hostile(made: Instruction, architecture: str) -> None:
    sparse = asked(architecture, made, mixed_vectors(dense_form(made), 2, 600))
    view = KeptLanes.of(open_device(f"model:{architecture}"), made)
    assert sparse.metadata is not None
    for chunk in sparse.metadata.T:
        assert set(chunk.tolist()) == set(legal_items(made.chunk, view.unordered))
    named = np.zeros(sparse.b.shape, bool)
    np.put_along_axis(named, kept_positions(made, sparse.metadata), True, axis=1)
    others = sparse.b[~named]
    assert set(others.tolist()) == set(hostile(made.b).tolist())
    fmt = formats.get(made.b)
    if fmt.is_float and fmt.nan_code is not None:
        assert (formats.decode(fmt, others).kind == formats.NAN).mean() > 0.1


def test_later_lanes_come_first_only_where_the_compiler_sorts() -> None:
    for architecture in ("sm_80", "sm_90a"):
        found = asked(architecture, F16, mixed_vectors(dense_form(F16), 2, 100)).metadata
        assert found is not None
        sorted_first = open_device(f"model:{architecture}").sorts(F16)  # type: ignore[attr-defined]
        assert bool(((found & 3) > (found >> 2)).any()) == sorted_first


@pytest.mark.parametrize(("made", "architecture"), EACH, ids=list(FORMS))
def test_the_selection_of_a_model_is_proven_in_one_launch(made: Instruction, architecture: str) -> None:
    found = prove_selection(KeptLanes.of(open_device(f"model:{architecture}"), made))
    assert (found.reason, found.counterexample, found.launches) == ("", None, 1)
    assert found.tiles <= 110


def turned(made: Instruction, vectors: Batch) -> Batch:
    """The chunks' items in opposite order."""
    assert vectors.metadata is not None
    return replace(vectors, metadata=vectors.metadata[:, ::-1].copy())


def one_item(made: Instruction, vectors: Batch) -> Batch:
    """Item 0xd of chunk 2 keeps lanes 2 and 3."""
    assert vectors.metadata is not None
    metadata = vectors.metadata.copy()
    metadata[:, 2] = np.where(metadata[:, 2] == 0xD, 0xE, metadata[:, 2])
    return replace(vectors, metadata=metadata)


def leaking(made: Instruction, vectors: Batch) -> Batch:
    """A NaN in lane 5 of B reaches the sum, named or not."""
    spoiled = formats.decode(formats.get(made.b), vectors.b[:, 5]).kind == formats.NAN
    c = np.where(spoiled, vectors.c.dtype.type(formats.get(str(made.c)).nan_code), vectors.c)
    return replace(vectors, c=c.astype(formats.get(str(made.c)).dtype))


@pytest.mark.parametrize("change", [turned, one_item, leaking])
def test_metadata_read_otherwise_is_inconclusive_with_the_vector_that_shows_it(change: Any) -> None:
    device = Otherwise("sm_80", change)
    found = derive(device, F16)
    assert (found.status, found.datapath) == ("inconclusive", None)
    assert found.reason.startswith("metadata is read otherwise")
    shown = found.counterexample
    assert shown is not None
    assert np.count_nonzero(shown.a) == 1
    if change is not leaking:
        assert np.count_nonzero(shown.b) == 1
    vector = as_vectors(F16, [shown])
    assert device.run_vectors(F16, vector)[0] == shown.d
    truth = evaluate_many([datapath_for("sm_80", F16)], dense_vectors(F16, vector, sorts=True))
    assert truth[0, 0] != shown.d


def test_an_element_that_shows_nowhere_is_inconclusive() -> None:
    def deaf(made: Instruction, vectors: Batch) -> Batch:
        return replace(vectors, a=np.where(np.arange(made.selected) == 3, 0, vectors.a).astype(vectors.a.dtype))

    found = derive(Otherwise("sm_80", deaf), F16)
    assert found.status == "inconclusive"
    assert "stored element 3 of A shows in no answer" in found.reason


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", list(FORMS)[:3])
def test_a_sparse_form_is_derived_with_sparse_witnesses(name: str) -> None:
    architecture = FORMS[name]
    made, device = instruction(name, architecture), open_device(f"model:{architecture}")
    found = derive(device, made)
    assert found.datapath is not None, found.reason
    vectors = as_vectors(made, found.witnesses)
    check_vectors(made, vectors)
    dense = kept(architecture, made, vectors)
    answers = [witness.d for witness in found.witnesses]
    assert evaluate_many([found.datapath, datapath_for(architecture, made)], dense).tolist() == [answers, answers]
    for entry in found.certificate.entries:
        assert (entry.verdict == "refuted") == (entry.witness is not None)
        assert entry.witness is None or entry.witness.metadata


@pytest.mark.long
def test_open_fields_of_a_sparse_form_name_the_vectors_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certify, "argument", lambda *_: None)  # what is the same function stays open
    found = derive(open_device("model:sm_89"), instruction("mma.sp.m16n8k64.f32.e4m3.e4m3.f32", "sm_89"))
    assert found.status == "bounded"
    text = "\n".join(certificate_lines(found))
    for pool in found.certificate.pools:
        assert f"{pool.vectors:,} vectors, seed {pool.seed}" in text
    assert f"{sum(map(len, found.certificate.open_fields.values()))} open" in text
    assert found.certificate.pools


@pytest.mark.parametrize(("made", "architecture"), EACH, ids=list(FORMS))
def test_witnesses_of_sparse_forms_are_a_smoke_test(made: Instruction, architecture: str) -> None:
    smoke = smoke_vectors(architecture, made)
    check_vectors(made, smoke.vectors)
    device = open_device(f"model:{architecture}")
    [summary] = validate_witnesses(device, device, made.id)
    assert (summary.mismatches, summary.vectors) == (0, smoke.vectors.size)
    [summary] = validate_witnesses(Otherwise(architecture, turned), device, made.id)
    assert summary.mismatches


@pytest.mark.long
def test_a_file_of_sparse_forms_is_written_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two widths, wrapping and saturating, each its own primitive, with witnesses that have metadata."""
    file = tmp_path / "sm_90a.toml"
    given = ["derive", "mma.sp.m16n8k*.s32.s8.s8.s32", "-d", "model:sm_90a", "--write", str(file)]
    assert main(given) == 0
    assert "0 derived" not in capsys.readouterr().out
    entries = read_file(file).entries
    assert len(entries) == 4
    assert all(witness.metadata for entry in entries.values() for witness in entry.witnesses)
    assert main([*given, "--check"]) == 0
    assert "no change" in capsys.readouterr().out
    assert main([*given[:4], "--check"]) == 0
    assert "no change" in capsys.readouterr().out
