"""Whether silicon computed what a device answered: what identities say, and what older ones come to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mmaprobe
from mmaprobe.cli import main
from mmaprobe.devices.base import run_vectors
from mmaprobe.devices.recording import Recorded, Recording, Share, operands_of, write_recording
from mmaprobe.devices.replay import record
from mmaprobe.evidence import silicon
from mmaprobe.evidence.corpus import Corpus, write_corpus
from mmaprobe.evidence.store import Store
from mmaprobe.generators import generate
from mmaprobe.generators.families import VERSIONS
from mmaprobe.survey.parameter_entries import basis_of

EVIDENCE = sorted((Path(__file__).parents[2] / "validation" / "evidence").glob("*/manifest.json"))
ROCJITSU = silicon.emulated("rocjitsu 0.3.0")
MADD = "x86.pmaddwd"
KINDS = [
    ("hip:0", {"silicon": "yes"}, "silicon", "measured"),
    ("process:x", {"silicon": silicon.SAID}, "silicon", "measured"),
    ("hip:0", {"silicon": ROCJITSU}, "emulated", "predicted"),
    ("cpu", {"silicon": silicon.UNKNOWN}, "unknown", "predicted"),
    ("model:gfx942", {"silicon": silicon.MODEL, "parameters": "sha256:0"}, "model", "predicted"),
    ("hip:0, hip:1", {"silicon": f"yes; {silicon.SAID}"}, "silicon", "measured"),
    ("hip:0, hip:1", {"silicon": f"yes; {ROCJITSU}"}, "unknown", "predicted"),
    ("hip:0", {"silicon": "yes!"}, "unknown", "predicted"),
    ("hip:0", {"silicon": ""}, "unknown", "predicted"),
    ("replay:x", {"silicon": "yes", "recorded": "CUDA"}, "silicon", "recorded"),
    ("replay:x", {"silicon": ROCJITSU, "recorded": "mmaprobe hip:0"}, "emulated", "predicted"),
    # of older versions, and of other people's devices
    ("cpu", {}, "silicon", "measured"), ("cuda:3", {}, "silicon", "measured"), ("hip:0", {}, "silicon", "measured"),
    ("replay:x", {"recorded": "CUDA"}, "silicon", "recorded"),
    ("model:gfx942", {"parameters": "sha256:0"}, "model", "predicted"),
    ("process:hip:0", {}, "unknown", "predicted"), ("function:numpy:dot", {}, "unknown", "predicted"),
    ("acme:0", {"model_name": "Acme"}, "unknown", "predicted"), ("cpus", {}, "unknown", "predicted"),
]  # fmt: skip


@pytest.mark.parametrize(("device", "identity", "kind", "basis"), KINDS)
def test_what_computed_it_and_on_what_basis(device: str, identity: dict[str, str], kind: str, basis: str) -> None:
    assert silicon.kind_of(device, identity) == kind
    assert basis_of(device, identity) == basis
    said = silicon.said_by(device, identity)
    assert silicon.kind_of("hip:0", {silicon.KEY: said}) == kind


@pytest.mark.parametrize("manifest", EVIDENCE, ids=lambda path: path.parent.name)
def test_committed_evidence_is_of_silicon(manifest: Path) -> None:
    """It was written before identities said so, or says so."""
    said = json.loads(manifest.read_text("utf-8"))
    assert silicon.kind_of(said["device"], said["identity"]) == "silicon"


def test_what_is_said_of_it_where_it_stands() -> None:
    assert silicon.notice("hip:0", {"silicon": ROCJITSU}) == (
        "EMULATED: hip:0 is emulated by rocjitsu 0.3.0; nothing here is measured"
    )
    assert silicon.notice("process:x", {"silicon": silicon.UNKNOWN}) == (
        "process:x is not known to be silicon; nothing here is measured (process:silicon=yes COMMAND says that it is)"
    )
    assert silicon.notice("process:x", {"silicon": silicon.SAID}) == "process:x is silicon, as its user says"
    for device, said in (("cpu", silicon.YES), ("model:sm_90a", silicon.MODEL)):
        assert silicon.notice(device, {"silicon": said}) == silicon.remark(device, {"silicon": said}) == ""


@pytest.mark.parametrize(("name", "said"), [
    ("a; b\n c", "no, emulated by a, b c"), (" ", "no, emulated by a program without a name"),
])  # fmt: skip
def test_the_name_of_an_emulator_is_one_line_without_our_mark(name: str, said: str) -> None:
    assert silicon.emulated(name) == said
    assert silicon.kind_of("cpu", {silicon.KEY: said}) == "emulated"


@pytest.mark.parametrize(("name", "said"), [
    ("model:x86-64+intel", silicon.MODEL),
    ("mutant:x86-64+intel/DPPS[f32,f32->f32]/tree.x.to.rounding=RZ", silicon.MODEL),
    ("function:numpy:dot?k=2", silicon.UNKNOWN), ("misbehaving:zeros?of=model:x86-64+intel", silicon.UNKNOWN),
])  # fmt: skip
def test_every_device_says_it(name: str, said: str) -> None:
    assert mmaprobe.device(name).info()[silicon.KEY] == said


def test_a_recording_is_what_was_recorded(tmp_path: Path) -> None:
    """Of a model by a corpus, of an emulated GPU by an archive, of somebody else's hardware by what others wrote."""
    device = mmaprobe.device("model:x86-64+intel")
    made = device.named(MADD)
    corpus = record(device, [(made, generate(made, "uniform", 1, 0, 4))])
    write_corpus(tmp_path / "corpus", corpus, "a test")
    assert mmaprobe.device(f"replay:{tmp_path / 'corpus'}").info()[silicon.KEY] == silicon.MODEL
    assert Corpus.open(tmp_path / "corpus").sets() == corpus.sets()
    shares = (Share("uniform", VERSIONS["uniform"], 1, 0, 4),)
    vectors, digest = operands_of(made, shares)
    held = Recorded(made.id, shares, digest, run_vectors(device, made, vectors))
    for identity, said in (({"silicon": ROCJITSU}, ROCJITSU), ({}, silicon.YES)):
        path = tmp_path / f"{len(identity)}.tar.gz"
        whole = {"architecture": "x86-64+intel", "model_name": "Core", **identity}
        write_recording(path, Recording("cpu", whole, "0123456789ab", (held,), {}))
        replay = mmaprobe.device(f"replay:{path}")
        assert replay.info()[silicon.KEY] == said
        assert basis_of(replay.name, replay.info()) == ("recorded" if said == silicon.YES else "predicted")


def test_a_run_on_a_program_of_which_nobody_says_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Console, JUnit, Markdown and the summary that is read again say that it is not known to be silicon."""
    device = "misbehaving:zeros?of=model:x86-64+intel&after=1000000"
    out, junit, page = tmp_path / "e", tmp_path / "j.xml", tmp_path / "p.md"
    words = ["run", "-d", device, "-i", MADD, "-n", "1000", "--seed", "1", "--out", str(out), "--junit", str(junit)]
    main([*words, "--markdown", str(page)])
    assert f"{device} is not known to be silicon" in capsys.readouterr().out.replace("\n", " ")
    assert Store.open(out).header.identity[silicon.KEY] == silicon.UNKNOWN
    assert "(not known to be silicon)" in junit.read_text("utf-8")
    assert "is not known to be silicon" in page.read_text("utf-8")
    main(["evidence", "show", str(out)])
    assert "is not known to be silicon" in capsys.readouterr().out.replace("\n", " ")
