"""The evidence folder of a run: a manifest and one file an instruction, all deterministic text.

Each file appears whole or not at all, and the manifest, written after it, names
it with its SHA-256.  A file that the manifest names already is announced there
under ``next`` before it is written again.  So an interrupt, a kill or a full
disk at any moment leaves a folder that ``Store.open`` reads, with every part
saved before; and a file that is not one of those named is refused.

Digests guard against accidents and careless hands, not against one who computes
them anew.
"""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Literal
from urllib.parse import quote

from mmaprobe.catalog.outside import add_catalog
from mmaprobe.errors import UsageError
from mmaprobe.evidence import files, records_json
from mmaprobe.evidence.counts import ERRORS, check_counts
from mmaprobe.evidence.records import Finding, Mismatch, Witness
from mmaprobe.evidence.records_json import Json
from mmaprobe.evidence.steps import StepRecord, step_from_json
from mmaprobe.exit_codes import DEVICE_FAILED, EQUAL, INCONCLUSIVE, MISMATCH, USAGE

SCHEMA = 2
"""Schema 1 had no digests: it is read, and no run goes on in it."""
KIND = "mmaprobe evidence"
SHARD_KIND = "mmaprobe shard"
"""Of a shard's file, which ``campaigns.shard_file`` writes."""
MANIFEST = "manifest.json"
CATALOG = "catalog.toml"
"""What a run knew of its architecture from outside of the package (``catalog.outside``)."""
PartStatus = Literal["finished", "partial"]


def execution() -> dict[str, str]:
    """What tells this execution from every other one of the same settings: when it began, and a random number."""
    return {"begun": now(), "nonce": secrets.token_hex(8)}


def now() -> str:
    """The time in UTC, to seconds; that of ``SOURCE_DATE_EPOCH`` where it is set, so that results can be made again."""
    stated = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(stated), UTC) if stated.isdigit() else datetime.now(UTC)
    return moment.isoformat(timespec="seconds")


@dataclass(frozen=True)
class Header:
    """What a run is: device, package, toolchain, seed, settings, and which execution of these.

    ``run`` is the run's id; left empty it becomes 12 hex digits of the SHA-256
    of the other fields, so every execution has its own.  Runs of schema 1 do
    not say which ``execution`` they are.
    """

    device: str
    identity: Mapping[str, str]
    version: str
    seed: int
    toolchain: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    execution: Mapping[str, str] = field(default_factory=dict)
    run: str = ""

    def __post_init__(self) -> None:
        if not self.run:
            object.__setattr__(self, "run", files.digest_of(files.json_text(self.to_json()).encode())[:12])

    @property
    def is_campaign(self) -> bool:
        """Whether it is of a plan on two devices, not of a run: then it is finished where what its plan demands was
        compared."""
        return {"reference", "parts"} <= self.settings.keys() and isinstance(self.settings.get("plan"), Mapping)

    def to_json(self) -> Json:
        """The header's fields as JSON."""
        return {
            "device": self.device,
            "identity": dict(self.identity),
            "version": self.version,
            "seed": self.seed,
            "toolchain": dict(self.toolchain),
            "settings": records_json.json_value(dict(self.settings), "settings"),
            "run": self.run,
        } | ({"execution": dict(self.execution)} if self.execution else {})


@dataclass(frozen=True)
class Part:
    """Everything a run knows about one instruction.

    ``datapath`` is the derived datapath in its file form, ``comparison`` how it
    differs from the shipped one, ``validation`` the summary of what was compared
    (``vectors`` and ``mismatches`` are counts of vectors).
    """

    instruction: str
    status: PartStatus
    findings: tuple[Finding, ...] = ()
    datapath: Json | None = None
    comparison: Json | None = None
    validation: Json = field(default_factory=dict)
    vectors: int = 0
    mismatch_count: int = 0
    mismatches: tuple[Mismatch, ...] = ()
    witnesses: tuple[Witness, ...] = ()

    @property
    def exit_code(self) -> int:
        """From the counts: 0 equal, 1 mismatch, 4 nothing compared or derived, 5 answers that change; or an error's."""
        if "error" in self.validation:
            code = self.validation.get("error_code")
            return INCONCLUSIVE if code == USAGE else int(code) if code in ERRORS else DEVICE_FAILED
        if any(not example.stable for example in self.mismatches):
            return DEVICE_FAILED
        if self.mismatch_count:
            return MISMATCH
        if self.datapath is not None and not self.datapath.get("datapath"):
            return INCONCLUSIVE if self.datapath.get("again") is None else DEVICE_FAILED
        return EQUAL if self.vectors else INCONCLUSIVE

    def to_json(self, run: str) -> Json:
        """The part as its file holds it."""
        return {
            "schema": SCHEMA,
            "kind": KIND,
            "run": run,
            "instruction": self.instruction,
            "status": self.status,
            "findings": [records_json.finding_to_json(item) for item in self.findings],
            "datapath": records_json.json_value(self.datapath, "datapath"),
            "comparison": records_json.json_value(self.comparison, "comparison"),
            "validation": records_json.json_value(self.validation, "validation"),
            "vectors": int(self.vectors),
            "mismatch_count": int(self.mismatch_count),
            "mismatches": [records_json.mismatch_to_json(item) for item in self.mismatches],
            "witnesses": [records_json.witness_to_json(item) for item in self.witnesses],
        }


@dataclass
class Store:
    """An evidence folder that is being written or read.

    ``enough``: a budget ended it, and everything had its least; what is written of a part later takes that back.
    ``sealed``: it has digests; ``lock``: this process alone writes into it, until ``close``; ``advice``: what to do
    where it cannot be written, else how a run goes on.
    """

    path: Path
    header: Header
    finished: bool = False
    sealed: bool = True
    lock: files.Lock | None = None
    advice: str = ""
    enough: bool = False
    _parts: dict[str, Part] = field(default_factory=dict)
    _steps: dict[str, StepRecord] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict)
    """Of every file that is named, by its path inside the folder."""

    @classmethod
    def create(cls, path: str | Path, header: Header, advice: str = "") -> Store:
        """A new evidence folder at ``path``; ``advice``: what to do where it cannot be written.

        Raises UsageError where there is evidence already, CannotWriteError
        where nothing can be written.
        """
        folder = Path(path)
        if (folder / MANIFEST).exists():
            raise UsageError(f"{folder} holds evidence already; go on with --resume, or choose another --out")
        store = cls(folder, header, advice=advice)
        store._write_manifest()
        return store

    @classmethod
    def open(cls, path: str | Path) -> Store:
        """The evidence folder at ``path``; UsageError naming file and key where it is not a whole one, or where a file
        is not the one that the manifest names.  What the run knew of an architecture that does not ship is added to
        the catalog."""
        named = read_manifest(Path(path))
        store = cls(named.folder, named.header, named.finished, named.sealed, enough=named.enough)
        for name in named.parts:
            store._parts[name] = named.read_part(name)
        for name in named.steps:
            store._steps[name] = named.read_step(name)
        store._digests = {name: digest_named(named.folder, name, accepted) for name, accepted in named.accepted.items()}
        named.check_totals(store._parts)
        if CATALOG in store._digests:
            add_catalog(store.path / CATALOG)
        return store

    def close(self) -> None:
        """Let other processes write into the folder."""
        if self.lock is not None:
            self.lock.release()

    @property
    def parts(self) -> dict[str, Part]:
        """The parts saved so far, by instruction id."""
        return dict(self._parts)

    @property
    def steps(self) -> dict[str, StepRecord]:
        """The steps begun so far, by name."""
        return dict(self._steps)

    @property
    def settled(self) -> bool:
        """Whether nothing that was to be compared is missing: it is finished, or a budget left it ``enough``."""
        return self.finished or self.enough

    def is_finished(self, instruction: str) -> bool:
        """Whether the part of this instruction id is there and finished."""
        return instruction in self._parts and self._parts[instruction].status == "finished"

    def save(self, part: Part) -> Path:
        """Write a part (a later one of the same instruction replaces it), then the manifest.

        Returns the part's file.  Raises CannotWriteError; earlier parts stay
        valid.
        """
        name, self.enough = part_name(part.instruction), False
        self._write({name: part.to_json(self.header.run)})
        self._parts[part.instruction] = part
        self._write_manifest()
        return self.path / name

    def save_step(self, step: StepRecord, parts: Iterable[Part] = ()) -> None:
        """Write what a slice of a step found: the parts, the step's own file, then the manifest that names them all.
        Raises CannotWriteError; what the manifest named before stays valid."""
        found, self.enough = {part.instruction: part for part in parts}, False
        documents = {part_name(name): part.to_json(self.header.run) for name, part in found.items()}
        document = {"schema": SCHEMA, "kind": KIND, "run": self.header.run, "step": step.name, "result": step.result}
        self._write(documents | {step_name(step.name): document})
        self._parts |= found
        self._steps[step.name] = step
        self._write_manifest()

    def attach(self, name: str, content: bytes) -> None:
        """Put a file made from the evidence (a summary, an archive) beside it, named by the manifest as all are."""
        self._write_bytes({name: content})
        self._write_manifest()

    def finish(self) -> None:
        """Mark the run as finished."""
        self.finished = True
        self._write_manifest()

    def leave(self) -> None:
        """Mark the run as ended by its budget after everything had its least."""
        self.enough = True
        self._write_manifest()

    def _write(self, found: Mapping[str, Json]) -> None:
        self._write_bytes({name: files.json_text(files.sealed(each)).encode() for name, each in found.items()})

    def _write_bytes(self, contents: Mapping[str, bytes]) -> None:
        """Write files; those that the manifest names with another digest are announced there first."""
        new = {name: files.digest_of(content) for name, content in contents.items()}
        again = {name: digest for name, digest in new.items() if self._digests.get(name, digest) != digest}
        if again:
            self._write_manifest(again)
        for name, content in contents.items():
            files.write_bytes(self.path / name, content, self._advice, self.path)
        self._digests |= new

    @property
    def _advice(self) -> str:
        return self.advice or f"what was finished is kept; then: mmaprobe run --resume --out {self.path}"

    def _write_manifest(self, announced: Mapping[str, str] | None = None) -> None:
        parts = {
            name: {
                "file": part_name(name),
                "status": part.status,
                "vectors": part.vectors,
                "mismatches": part.mismatch_count,
            }
            for name, part in self._parts.items()
        }
        document = {
            "schema": SCHEMA,
            "kind": KIND,
            "status": "finished" if self.finished else "partial",
            "counts": totals(self._parts.values()),
            "parts": parts,
            "files": self._digests,
            **self.header.to_json(),
        }
        if self._steps:
            document["steps"] = {name: step.to_json() for name, step in self._steps.items()}
        if self.enough:
            document["enough"] = True
        if announced:
            document["next"] = dict(announced)
        files.write_json(self.path / MANIFEST, files.sealed(document), self._advice, self.path)


def totals(parts: Iterable[Part]) -> dict[str, int]:
    """What the manifest counts over the parts."""
    every = list(parts)
    return {
        "parts": len(every),
        "vectors": sum(part.vectors for part in every),
        "mismatches": sum(part.mismatch_count for part in every),
    }


def part_name(instruction: str) -> str:
    """The file of an instruction's part inside the folder."""
    return f"instructions/{quote(instruction, safe='{}=,+')}.json"


def step_name(step: str) -> str:
    """The file of a step inside the folder."""
    return f"steps/{step}.json"


@dataclass(frozen=True)
class Named:
    """What a manifest says is in its folder: parts and steps by name, and of each file the digests that it may have."""

    folder: Path
    manifest: files.FileValue
    header: Header
    finished: bool
    enough: bool
    sealed: bool
    parts: tuple[str, ...]
    steps: tuple[str, ...]
    accepted: Mapping[str, tuple[str, ...]]

    @property
    def settled(self) -> bool:
        """Whether nothing that was to be compared is missing."""
        return self.finished or self.enough

    @property
    def ended(self) -> str:
        """How it ended, in a word or a line."""
        return "finished" if self.finished else "ended by its budget after its least" if self.enough else "partial"

    def read_part(self, name: str) -> Part:
        """The part of this instruction id; UsageError where it is not the one that is named, or does not add up."""
        entry = self.manifest["parts"][name]
        file = part_name(name)
        entry["file"].one_of(file)
        part = _part_of(self._document(file), name)
        said = {"status": part.status, "vectors": part.vectors, "mismatches": part.mismatch_count}
        for key, value in said.items():
            if not self._announced(file) and entry[key].value != value:
                raise entry[key].wrong(f"is {entry[key].value!r:.60}, but {file} says {value!r}")
        return part

    def read_step(self, name: str) -> StepRecord:
        """The step of this name; UsageError where its file is not the one that is named."""
        document = self._document(step_name(name))
        if document["step"].text != name:
            raise document["step"].wrong(f"is not {name!r}")
        return step_from_json(name, self.manifest["steps"][name], document["result"].typed(dict))

    def check_totals(self, parts: Mapping[str, Part]) -> None:
        """UsageError where the manifest's counts are not those of the parts, none of which was announced anew."""
        if any(self._announced(part_name(name)) for name in parts):
            return
        for key, value in totals(parts.values()).items():
            if self.manifest["counts"][key].value != value:
                raise self.manifest["counts"][key].wrong(f"is not {value:,}, which its parts make")

    def _announced(self, file: str) -> bool:
        return len(self.accepted.get(file, ())) > 1

    def _document(self, file: str) -> files.FileValue:
        path = self.folder / file
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}; {_verifying(self.folder)}") from error
        if self.sealed:
            _check_digest(path, content, self.accepted.get(file, ()))
        document = _checked(path, content)
        if document["run"].text != self.header.run:
            raise document["run"].wrong(f"is {document['run'].text!r}, but the manifest's run is {self.header.run!r}")
        return document


def read_manifest(folder: Path) -> Named:
    """What the manifest of a folder says; UsageError where it is none, was changed, or its run's id is not its own."""
    path = folder / MANIFEST
    try:
        manifest = _checked(path, path.read_bytes())
    except FileNotFoundError:
        listed = "mmaprobe evidence list FOLDER lists the runs below a folder"
        raise UsageError(f"{path}: No such file, and so no evidence of a run; {listed}") from None
    except NotADirectoryError:
        raise UsageError(f"{folder} is a file; name the folder of the run that it is part of") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    given = manifest.typed(dict)
    optional = {name: manifest[name].typed(dict) if name in given else {} for name in ("steps", "next", "execution")}
    header = Header(
        device=manifest["device"].text,
        identity={name: manifest["identity"][name].text for name in manifest["identity"].typed(dict)},
        version=manifest["version"].text,
        seed=manifest["seed"].whole,
        toolchain=manifest["toolchain"].typed(dict),
        settings=manifest["settings"].typed(dict),
        execution=optional["execution"],
        run=manifest["run"].text,
    )
    if replace(header, run="").run != header.run:
        raise manifest["run"].wrong(f"is not {replace(header, run='').run}, the id of what the manifest says was run")
    sealed = files.SEAL in given
    digests = manifest["files"].typed(dict) if sealed else {}
    return Named(
        folder=folder,
        manifest=manifest,
        header=header,
        finished=manifest["status"].one_of("finished", "partial") == "finished",
        enough="enough" in given and bool(manifest["enough"].typed(bool)),
        sealed=sealed,
        parts=tuple(manifest["parts"].typed(dict)),
        steps=tuple(optional["steps"]),
        accepted={name: (digest, *([optional["next"][name]] if name in optional["next"] else []))
               for name, digest in digests.items()},
    )  # fmt: skip


def digest_named(folder: Path, name: str, accepted: tuple[str, ...]) -> str:
    """The digest of a named file; UsageError where it is not among those accepted, or leads out of the folder."""
    path = folder / name
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise UsageError(f"{folder / MANIFEST}: key files names {name!r}, which is not in the folder")
    try:
        return _check_digest(path, path.read_bytes(), accepted)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; {_verifying(folder)}") from error


def _verifying(folder: Path) -> str:
    """The command that says what of a folder is left."""
    return f"mmaprobe evidence verify {shlex.quote(str(folder))} says what else is damaged"


def _check_digest(path: Path, content: bytes, accepted: tuple[str, ...]) -> str:
    found = files.digest_of(content)
    if found not in accepted:
        raise UsageError(f"{path} is not the file that {MANIFEST} names: altered, damaged or of another run")
    return found


def _checked(path: Path, content: bytes) -> files.FileValue:
    document = files.parse_json(path, content)
    document["kind"].one_of(KIND)
    schema = document["schema"]
    if not 1 <= schema.whole <= SCHEMA:
        raise schema.wrong(f"is {schema.whole}; this package reads up to {SCHEMA}: pip install --upgrade mmaprobe")
    files.check_seal(document, SCHEMA)
    return document


def _part_of(document: files.FileValue, instruction: str) -> Part:
    if document["instruction"].text != instruction:
        raise document["instruction"].wrong(f"is not {instruction!r}")
    datapath, comparison = document["datapath"], document["comparison"]
    part = Part(
        instruction=instruction,
        status=document["status"].one_of("finished", "partial"),
        findings=tuple(records_json.finding_from_json(item) for item in document["findings"]),
        datapath=None if datapath.value is None else datapath.typed(dict),
        comparison=None if comparison.value is None else comparison.typed(dict),
        validation=document["validation"].typed(dict),
        vectors=document["vectors"].whole,
        mismatch_count=document["mismatch_count"].whole,
        mismatches=tuple(records_json.mismatch_from_json(item) for item in document["mismatches"]),
        witnesses=tuple(records_json.witness_from_json(item) for item in document["witnesses"]),
    )
    check_counts(document)
    return part
