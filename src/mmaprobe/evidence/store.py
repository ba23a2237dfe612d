"""The evidence folder of a run: a manifest and one file an instruction, all deterministic text.

Each file appears whole or not at all.  A part's own file says whether it is
finished; the manifest repeats that for a reader, and is written after it.  So
an interrupt or a full disk at any moment leaves a folder that ``Store.open``
reads, with every part saved before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from mmaprobe.errors import UsageError
from mmaprobe.evidence import documents, files
from mmaprobe.evidence.documents import Json
from mmaprobe.evidence.records import Finding, Mismatch, Witness
from mmaprobe.evidence.steps import StepRecord, step_from_json

SCHEMA = 1
KIND = "mmaprobe evidence"
PartStatus = Literal["finished", "partial"]


@dataclass(frozen=True)
class Header:
    """What a run is: device, package, toolchain, seed and settings.

    ``run`` is the run's id; left empty it becomes 12 hex digits of the SHA-256
    of the other fields, so the same run on the same device has the same id.
    """

    device: str
    identity: Mapping[str, str]
    version: str
    seed: int
    toolchain: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    run: str = ""

    def __post_init__(self) -> None:
        if not self.run:
            digest = hashlib.sha256(files.json_text(self.to_json()).encode()).hexdigest()
            object.__setattr__(self, "run", digest[:12])

    def to_json(self) -> Json:
        """The header's fields as JSON."""
        return {
            "device": self.device,
            "identity": dict(self.identity),
            "version": self.version,
            "seed": self.seed,
            "toolchain": dict(self.toolchain),
            "settings": documents.plain(dict(self.settings), "settings"),
            "run": self.run,
        }


@dataclass(frozen=True)
class Part:
    """Everything a run knows about one instruction.

    ``datapath`` is the derived datapath in its file form, ``comparison`` how it
    differs from the shipped one, ``validation`` the summary of the campaign
    (``vectors`` and ``mismatches`` are counts of vectors).
    """

    instruction: str
    status: PartStatus
    findings: tuple[Finding, ...] = ()
    datapath: Json | None = None
    comparison: Any = None
    validation: Json = field(default_factory=dict)
    vectors: int = 0
    mismatch_count: int = 0
    mismatches: tuple[Mismatch, ...] = ()
    witnesses: tuple[Witness, ...] = ()

    def to_json(self, run: str) -> Json:
        """The part as its file holds it."""
        return {
            "schema": SCHEMA,
            "kind": KIND,
            "run": run,
            "instruction": self.instruction,
            "status": self.status,
            "findings": [documents.finding_to_json(item) for item in self.findings],
            "datapath": documents.plain(self.datapath, "datapath"),
            "comparison": documents.plain(self.comparison, "comparison"),
            "validation": documents.plain(self.validation, "validation"),
            "vectors": int(self.vectors),
            "mismatch_count": int(self.mismatch_count),
            "mismatches": [documents.mismatch_to_json(item) for item in self.mismatches],
            "witnesses": [documents.witness_to_json(item) for item in self.witnesses],
        }


class Store:
    """An evidence folder that is being written or read."""

    def __init__(
        self, path: Path, header: Header, parts: dict[str, Part], finished: bool, steps: dict[str, StepRecord]
    ) -> None:
        self.path = path
        self.header = header
        self.finished = finished
        self._parts = parts
        self._steps = steps

    @classmethod
    def create(cls, path: str | Path, header: Header) -> Store:
        """A new evidence folder at ``path``.

        Raises UsageError where there is evidence already, CannotWriteError
        where nothing can be written.
        """
        folder = Path(path)
        if (folder / "manifest.json").exists():
            raise UsageError(f"{folder} holds evidence already; go on with --resume, or choose another --out")
        store = cls(folder, header, {}, finished=False, steps={})
        store._write_manifest()
        return store

    @classmethod
    def open(cls, path: str | Path) -> Store:
        """The evidence folder at ``path``; UsageError naming file and key where it is not a whole one."""
        folder = Path(path)
        manifest = _checked(folder / "manifest.json")
        header = Header(
            device=manifest["device"].text,
            identity=manifest["identity"].typed(dict),
            version=manifest["version"].text,
            seed=manifest["seed"].whole,
            toolchain=manifest["toolchain"].typed(dict),
            settings=manifest["settings"].typed(dict),
            run=manifest["run"].text,
        )
        finished = manifest["status"].one_of("finished", "partial") == "finished"
        parts: dict[str, Part] = {}
        for name in manifest["parts"].typed(dict):
            parts[name] = _read_part(_part_path(folder, name), name, header.run)
        named = manifest["steps"] if "steps" in manifest.typed(dict) else None
        steps = {name: _read_step(folder, name, named[name], header.run) for name in named.typed(dict)} if named else {}
        return cls(folder, header, parts, finished, steps)

    @property
    def parts(self) -> dict[str, Part]:
        """The parts saved so far, by instruction id."""
        return dict(self._parts)

    @property
    def steps(self) -> dict[str, StepRecord]:
        """The steps begun so far, by name."""
        return dict(self._steps)

    def is_finished(self, instruction: str) -> bool:
        """Whether the part of this instruction id is there and finished."""
        return instruction in self._parts and self._parts[instruction].status == "finished"

    def save(self, part: Part) -> Path:
        """Write a part (a later one of the same instruction replaces it), then the manifest.

        Returns the part's file.  Raises CannotWriteError; earlier parts stay
        valid.
        """
        path = self._write_part(part)
        self._write_manifest()
        return path

    def save_step(self, step: StepRecord, parts: Iterable[Part] = ()) -> None:
        """Write what a slice of a step found: the parts, the step's own file, then the manifest, all at once for a
        reader.  Raises CannotWriteError; what the manifest named before stays valid."""
        for part in parts:
            self._write_part(part)
        document = {"schema": SCHEMA, "kind": KIND, "run": self.header.run, "step": step.name, "result": step.result}
        files.write_json(_step_path(self.path, step.name), document, self._advice)
        self._steps[step.name] = step
        self._write_manifest()

    def _write_part(self, part: Part) -> Path:
        path = _part_path(self.path, part.instruction)
        files.write_json(path, part.to_json(self.header.run), self._advice)
        self._parts[part.instruction] = part
        return path

    def finish(self) -> None:
        """Mark the run as finished."""
        self.finished = True
        self._write_manifest()

    @property
    def _advice(self) -> str:
        return f"what was finished is kept; then: mmaprobe run --resume --out {self.path}"

    def _write_manifest(self) -> None:
        parts = {
            name: {
                "file": _part_path(Path(), name).as_posix(),
                "status": part.status,
                "vectors": part.vectors,
                "mismatches": part.mismatch_count,
            }
            for name, part in self._parts.items()
        }
        counts = {
            "parts": len(parts),
            "vectors": sum(part.vectors for part in self._parts.values()),
            "mismatches": sum(part.mismatch_count for part in self._parts.values()),
        }
        document = {
            "schema": SCHEMA,
            "kind": KIND,
            "status": "finished" if self.finished else "partial",
            "counts": counts,
            "parts": parts,
            **self.header.to_json(),
        }
        if self._steps:
            document["steps"] = {name: step.to_json() for name, step in self._steps.items()}
        files.write_json(self.path / "manifest.json", document, self._advice)


def _step_path(folder: Path, name: str) -> Path:
    return folder / "steps" / f"{name}.json"


def _read_step(folder: Path, name: str, entry: files.Field, run: str) -> StepRecord:
    document = _checked(_step_path(folder, name))
    _same_run(document, run)
    if document["step"].text != name:
        raise document["step"].wrong(f"is not {name!r}")
    return step_from_json(name, entry, document["result"].typed(dict))


def _part_path(folder: Path, instruction: str) -> Path:
    return folder / "instructions" / (quote(instruction, safe="{}=,+") + ".json")


def _checked(path: Path) -> files.Field:
    document = files.read_json(path)
    document["kind"].one_of(KIND)
    schema = document["schema"]
    if schema.whole > SCHEMA:
        raise schema.wrong(f"is {schema.whole}; this package reads up to {SCHEMA}: pip install --upgrade mmaprobe")
    return document


def _same_run(document: files.Field, run: str) -> None:
    if document["run"].text != run:
        raise document["run"].wrong(f"is {document['run'].text!r}, but the manifest's run is {run!r}")


def _read_part(path: Path, instruction: str, run: str) -> Part:
    document = _checked(path)
    _same_run(document, run)
    if document["instruction"].text != instruction:
        raise document["instruction"].wrong(f"is not {instruction!r}")
    datapath = document["datapath"]
    return Part(
        instruction=instruction,
        status=document["status"].one_of("finished", "partial"),
        findings=tuple(documents.finding_from_json(item) for item in document["findings"]),
        datapath=None if datapath.value is None else datapath.typed(dict),
        comparison=document["comparison"].value,
        validation=document["validation"].typed(dict),
        vectors=document["vectors"].whole,
        mismatch_count=document["mismatch_count"].whole,
        mismatches=tuple(documents.mismatch_from_json(item) for item in document["mismatches"]),
        witnesses=tuple(documents.witness_from_json(item) for item in document["witnesses"]),
    )
