"""What evidence, a corpus, a recording or a pack says, held against its digests, its counts and its shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction as lookup
from mmaprobe.catalog.outside import add_catalog
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.devices.recording import read_recording
from mmaprobe.errors import UsageError
from mmaprobe.evidence.corpus import Corpus
from mmaprobe.evidence.files import LOCK, check_seal, digest_of, read_json
from mmaprobe.evidence.folders import PARTS, evidence_below, holds_evidence
from mmaprobe.evidence.gate_record import RECORD, recorded_code
from mmaprobe.evidence.records import Witness
from mmaprobe.evidence.store import (
    CATALOG,
    KIND,
    MANIFEST,
    Named,
    Part,
    digest_named,
    part_name,
    read_manifest,
    step_name,
)
from mmaprobe.exit_codes import DEVICE_FAILED, EQUAL, INCONCLUSIVE, MISMATCH, PRECEDENCE, USAGE
from mmaprobe.operands.witness_batches import as_vectors
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.table import from_table
from mmaprobe.report.run_summary import PRODUCT
from mmaprobe.report.vectors import vector_text
from mmaprobe.showing import counted, mismatches_in
from mmaprobe.survey.comparison import compare
from mmaprobe.toolchain.kernel import file_name
from mmaprobe.toolchain.pack import LIST, open_pack

VERDICTS = {
    EQUAL: "equal", MISMATCH: "mismatch", USAGE: "not what was written",
    INCONCLUSIVE: "inconclusive, unfinished or unsealed", DEVICE_FAILED: "the device failed",
}  # fmt: skip
"""What an exit code means."""
FETCH = "Fetch the folder from where it was written"
NAMED = 6
"""Files that are not what was written and are named below the table; of others their number."""
OURS = "mmaprobe "
"""How the kind of every text of ours begins."""
CPU = "cpu"
OTHER_STATES = "control_state"
"""The question whose witnesses are answers in other control states than the part's."""
UNNAMED = "not named by the manifest: no part of the run"
UNSEALED = "without digests: written by an older mmaprobe, nothing shows that it is what was written"


Reader = Callable[[Path], tuple[str, int]]
"""What a file says that no manifest names, and the exit code that its counts make; UsageError where it is not what was
written."""
Readers = Mapping[str, Reader]
"""Readers by the ends of the names of their files."""


@dataclass(frozen=True)
class File:
    """One file: its SHA-256, what it holds, and what is wrong with it."""

    file: str
    sha256: str = ""
    says: str = ""
    wrong: str = ""


@dataclass
class Verified:
    """What was found of one path; ``codes`` are what its counts make."""

    path: Path
    kind: str
    files: list[File] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    text: str = ""
    readers: Readers = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """2 where anything is wrong, else what its counts make: that of the run which wrote it."""
        if any(each.wrong for each in self.files):
            return USAGE
        return next((code for code in PRECEDENCE if code in self.codes), 0)

    def check(self, name: str, read: Callable[[], str]) -> None:
        """One more file: what reading it says, or what is wrong with it."""
        path = self.path / name if name else self.path
        try:
            digest = digest_of(path.read_bytes())
        except FileNotFoundError:
            self.files.append(File(name or path.name, wrong="missing, though the list of files names it"))
            return
        except OSError as error:
            self.files.append(File(name or path.name, wrong=str(error.strerror)))
            return
        try:
            self.files.append(File(name or path.name, digest, read()))
        except UsageError as error:
            self.files.append(File(name or path.name, digest, wrong=str(error)))

    def to_json(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return {"path": str(self.path), "kind": self.kind, "files": [asdict(each) for each in self.files],
                "verdict": self.text, "exit_code": self.exit_code}  # fmt: skip


def verdict(told: Verified) -> list[str]:
    """Of a path what it is worth, below its table; where something is wrong the files by name, and what to do."""
    wrong = list(dict.fromkeys(each.file for each in told.files if each.wrong))
    words = VERDICTS | ({0: "whole"} if told.kind != "evidence" else {})
    text = f"; {told.text}" if told.text else ""
    if not wrong:
        said = words.get(told.exit_code, f"exit code {told.exit_code}")
        return [f"{told.path}: {told.kind}: {said}{text}"]
    names = ", ".join(wrong[:NAMED]) + (f" and {len(wrong) - NAMED} more" if len(wrong) > NAMED else "")
    counted = f"{len(wrong)} of {len(told.files)} files" if len(told.files) > 1 else "1 file"
    lines = [f"{told.path}: {told.kind}: {words[USAGE]}: {counted}: {names}"]
    if told.kind == "evidence":
        left = f"The other files: {told.text}.  " if told.text else ""
        lines.append(f"{left}{FETCH}, or run anew with --out ANOTHER_FOLDER")
    return lines


def verify_all(path: Path, readers: Readers | None = None) -> list[Verified]:
    """What a path names, verified: itself, or every run below it where it is a folder of runs.

    A run without its manifest is wrong as one that was altered is; UsageError where nothing of ours is there.
    """
    readers = readers or {}
    if path.is_dir() and not any((path / name).exists() for name in (MANIFEST, LIST, PARTS)):
        if holds_evidence(path):
            return [_verified(each, readers) for each in evidence_below(path)]
        if alone := sorted(each for each in path.iterdir() if reader_of(readers, each)):
            return [verify(each, readers) for each in alone]
    return [verify(path, readers)]


def reader_of(readers: Readers, path: Path) -> Reader | None:
    """What reads a file of this name; None where nothing does."""
    return next((read for end, read in readers.items() if path.name.endswith(end)), None)


def _verified(path: Path, readers: Readers) -> Verified:
    try:
        return verify(path, readers)
    except UsageError as error:
        return Verified(path, "evidence", [File(MANIFEST, wrong=str(error))])


def verify(path: Path, readers: Readers | None = None) -> Verified:
    """Everything about a folder, an archive or a file of ``readers``; UsageError where it is none of ours."""
    if path.is_file() and (read := reader_of(readers or {}, path)):
        return _read(path, read)
    if path.is_file():
        return _document(path) or _one(path, "recording", "", lambda: _corpus(read_recording(path)))
    if (path / LIST).exists():
        return _pack(path)
    if (path / MANIFEST).exists():
        told = Verified(path, "evidence")
        try:
            value = read_json(path / MANIFEST).value
        except UsageError as error:
            told.files.append(File(MANIFEST, wrong=str(error)))
            return told
        if isinstance(value, dict) and value.get("kind") == KIND:
            return _evidence(path, readers or {})
        return _one(path, "corpus", MANIFEST, lambda: _corpus(Corpus.open(path)))
    if (path / PARTS).is_dir():
        raise UsageError(f"{path}: has instructions but no {MANIFEST}, which names them.  {FETCH}")
    raise UsageError(f"{path}: neither evidence nor a corpus, a recording or a pack; name its folder or archive")


def _document(path: Path) -> Verified | None:
    """A single sealed text, such as saved mismatches; None where the file begins as no text of ours does."""
    try:
        with path.open("rb") as file:
            begins = file.read(1)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    if begins != b"{":
        return None
    told, kind = Verified(path, "document"), str(read_json(path).typed(dict).get("kind", ""))
    if not kind.startswith(OURS):
        raise UsageError(
            f"{path}: no kind of mmaprobe's texts; name evidence, a corpus, a recording, a pack or a shard"
        )
    told.kind = kind.removeprefix(OURS)
    told.check("", lambda: _seal(path))
    told.text = told.files[0].wrong or told.files[0].says
    return told


def _seal(path: Path) -> str:
    check_seal(read_json(path), 1)
    return "as it was written"


def _one(path: Path, kind: str, name: str, read: Callable[[], tuple[str, bool]]) -> Verified:
    """What is read as a whole or not at all."""
    told = Verified(path, kind)

    def says() -> str:
        text, sealed = read()
        told.codes += [] if sealed else [INCONCLUSIVE]
        return text if sealed else f"{text}; {UNSEALED}"

    told.check(name, says)
    told.text = told.files[0].wrong or told.files[0].says
    return told


def _read(path: Path, read: Reader) -> Verified:
    """A file by its reader."""
    told = Verified(path, "file")

    def says() -> str:
        text, code = read(path)
        told.codes.append(code)
        return text

    told.check("", says)
    told.text = told.files[0].wrong or told.files[0].says
    return told


def _corpus(corpus: Corpus) -> tuple[str, bool]:
    sets = corpus.sets()
    return f"{counted(len(sets), 'set')}, {counted(sum(each.count for each in sets), 'vector')}", corpus.sealed


def _pack(path: Path) -> Verified:
    told = Verified(path, "pack")

    def listed() -> str:
        pack = open_pack(path)
        campaigns = counted(len(pack.campaigns), "campaign")
        told.text = f"{counted(len(pack.kernels), 'kernel')} and {campaigns} for {pack.architecture}"
        return told.text

    told.check(LIST, listed)
    if told.exit_code == 0:
        pack = open_pack(path)
        for packed in (*pack.kernels.values(), *pack.campaigns.values()):
            told.check(file_name(packed.binary, pack.architecture), lambda each=packed: pack.read(each).instruction)  # type: ignore[misc]
    return told


def _evidence(path: Path, readers: Readers) -> Verified:
    """A run's folder: every file that the manifest names, and the verdict that its counts make."""
    told = Verified(path, "evidence", readers=readers)
    found: list[Named] = []

    def manifest() -> str:
        found.append(read_manifest(path))
        return f"run {found[0].header.run}"

    told.check(MANIFEST, manifest)
    if not found:
        return told
    named, parts, statuses = found[0], dict[str, Part](), list[str]()
    with suppress(UsageError):  # said below, where each file has its line
        if CATALOG in named.accepted and digest_named(path, CATALOG, named.accepted[CATALOG]):
            add_catalog(path / CATALOG)
    for name in named.parts:
        told.check(part_name(name), lambda name=name: _part(told, named, name, parts))  # type: ignore[misc]
    for name in named.steps:
        told.check(step_name(name), lambda name=name: _step(told, named, name, statuses))  # type: ignore[misc]
    for name in sorted(named.accepted.keys() - {*map(part_name, named.parts), *map(step_name, named.steps)}):
        told.check(name, lambda name=name: _attached(told, named, name))  # type: ignore[misc]
    if not any(each.wrong for each in told.files):
        try:
            named.check_totals(parts)
        except UsageError as error:
            told.files.append(File(MANIFEST, wrong=str(error)))
    _beside(told, named)
    told.codes += [part.exit_code for part in parts.values()] or [INCONCLUSIVE] * (PRODUCT not in named.steps)
    if told.exit_code != USAGE:  # what an altered catalog says of an instruction, or no longer says, is nothing
        told.codes += [_standing(named, part) for part in parts.values()]
    told.codes += [DEVICE_FAILED] * ("failed" in statuses) + [INCONCLUSIVE] * (not named.settled or not named.sealed)
    vectors, wrong = (sum(getattr(part, key) for part in parts.values()) for key in ("vectors", "mismatch_count"))
    counts = f"{counted(len(parts), 'instruction')}, {mismatches_in(wrong, vectors)}"
    held = "a product" if PRODUCT in named.steps and not parts else counts
    told.text = f"{named.ended}, {held}"
    told.text += "" if named.sealed else f"; {UNSEALED}"
    return told


def _attached(told: Verified, named: Named, name: str) -> str:
    """A file made from the evidence; what a run came to beside its baseline is part of how it ended."""
    digest_named(named.folder, name, named.accepted[name])
    if name == RECORD:
        told.codes.append(recorded_code(named.folder / name))
    return "as it was written"


def _part(told: Verified, named: Named, name: str, parts: dict[str, Part]) -> str:
    part, architecture = named.read_part(name), named.header.identity.get("architecture", "")
    try:
        made = lookup(name, architecture or None)
    except UsageError:
        made = None  # of a function, say, which no catalog knows
    count = sum(check_witness(made, each, name) for each in _witnesses(part)) if made is not None else 0
    said = _asked_again(told, made, part, architecture) if made is not None else ""
    parts[name] = part
    return f"{part.status}, {mismatches_in(part.mismatch_count, part.vectors)}, {counted(count, 'witness')}{said}"


def _step(told: Verified, named: Named, name: str, statuses: list[str]) -> str:
    step = named.read_step(name)
    statuses += [str(each.get("status")) for each in step.result.get("answers", ())]
    told.codes += [_product_code(step.result)] if name == PRODUCT and "exit_code" in step.result else []
    inner = named.folder / CPU
    if name == CPU and (inner / MANIFEST).exists():
        run, said = read_manifest(inner).header.run, step.result.get("summary", {}).get("run")
        if said is not None and run != said:
            raise UsageError(f"{inner} holds run {run}, but the step tells of {said}")
    return f"{step.status}: {step.text}" if step.text else step.status


def _product_code(result: Mapping[str, Any]) -> int:
    """What a held product comes to by its calls; UsageError where its counts are not those."""
    verdict = result.get("verdict")
    if verdict is None:
        return int(result["exit_code"])
    elements, differing = (sum(row[name] for row in verdict["rows"]) for name in ("elements", "differing"))
    code = MISMATCH if differing else EQUAL if elements else INCONCLUSIVE
    if (elements, differing, code) != (verdict["elements"], verdict["differing"], result["exit_code"]):
        raise UsageError(
            f"{PRODUCT}: {differing:,} of {elements:,} elements differ by its calls, but it says otherwise"
        )
    return code


def _beside(told: Verified, named: Named) -> None:
    """What else is in the folder: a CPU's evidence, and files that the manifest does not name."""
    inner = told.path / CPU
    if (inner / MANIFEST).exists():
        below = _evidence(inner, told.readers)
        told.files += [File(f"{CPU}/{each.file}", each.sha256, each.says, each.wrong) for each in below.files]
        told.codes += below.codes
    known = {MANIFEST, LOCK, *named.accepted, *map(part_name, named.parts), *map(step_name, named.steps)}
    for path in sorted(told.path.rglob("*")):
        name = path.relative_to(told.path).as_posix()
        if path.is_file() and name not in known and not path.is_relative_to(inner):
            read = reader_of(told.readers, path)
            told.check(name, lambda path=path, read=read: read(path)[0] if read else UNNAMED)  # type: ignore[misc]


def _standing(named: Named, part: Part) -> int:
    """1 where a vector tells what was derived from what ships now."""
    architecture, table = named.header.identity.get("architecture", ""), (part.datapath or {}).get("datapath")
    if not table or not architecture:
        return 0
    made = lookup(part.instruction, architecture)
    return int(compare(architecture, made, from_table(table, part.instruction), named.header.seed).changed)


def _asked_again(told: Verified, made: Instruction, part: Part, architecture: str) -> str:
    """What the models say to a part's vectors, where they say otherwise.

    UsageError where what was derived does not answer a witness of its own derivation as the device did: every answer
    was agreed with then, so one of the two is not what was written; and where a mismatch is none.  A finding's witness
    that it does not answer is a mismatch: a device may have answered otherwise before.
    """
    table, said = (part.datapath or {}).get("datapath"), list[str]()
    derived = from_table(table, part.instruction) if table else None
    for witness, answer in _answered(made, derived, part.witnesses):
        if answer != witness.d:
            what = f"what was derived answers {answer:#x} to {vector_text(witness)}"
            raise UsageError(f"{part.instruction}: {what}, its witness says {witness.d:#x}")
    asked = (finding for finding in part.findings if finding.question != OTHER_STATES)
    found = [each for finding in asked for each in finding.witnesses]
    otherwise = sum(answer != witness.d for witness, answer in _answered(made, derived, found))
    if otherwise:
        told.codes.append(MISMATCH)
        said.append(f"{otherwise} of {len(found)} answers to probes are not what was derived")
    for mismatch in part.mismatches:
        if mismatch.vector.d == mismatch.expected:
            raise UsageError(f"{part.instruction}: a mismatch gives {mismatch.expected:#x} on both sides")
    lost = _unexplained(made, derived, part, architecture)
    said += [f"{counted(lost, 'mismatch')} whose expected answer neither datapath gives, derived or shipped"] * bool(
        lost
    )
    return "".join(f"; {each}" for each in said)


def _answered(made: Instruction, datapath: Datapath | None, asked: Sequence[Witness]) -> Iterator[tuple[Witness, int]]:
    """Each witness with the answer of a datapath, where there is one."""
    if datapath is not None and asked:
        answers = DatapathDevice(made, datapath).run_vectors(made, as_vectors(made, asked))
        yield from zip(asked, map(int, answers), strict=True)


def _unexplained(made: Instruction, derived: Datapath | None, part: Part, architecture: str) -> int:
    """Mismatches whose expected answer no model at hand gives; none where there is no model."""
    try:
        shipped = datapath_for(architecture, made)
    except UsageError:
        shipped = None
    vectors = [mismatch.vector for mismatch in part.mismatches]
    models = [
        [answer for _, answer in _answered(made, path, vectors)] for path in (derived, shipped) if path is not None
    ]
    if not models:
        return 0
    expected = [mismatch.expected for mismatch in part.mismatches]
    return sum(each not in given for each, *given in zip(expected, *models, strict=True))


def _witnesses(part: Part) -> Iterator[Witness]:
    yield from part.witnesses
    yield from (each for finding in part.findings for each in finding.witnesses)
    for mismatch in part.mismatches:
        yield mismatch.vector
        if mismatch.shrunk is not None:
            yield mismatch.shrunk


def check_witness(made: Instruction, witness: Witness, name: str) -> int:
    """1; UsageError where a witness has not the lanes or the codes of its instruction."""
    k = made.k
    lanes = {"a": made.selected, "b": k, "scale_a": k // made.scale_size if made.scale else 0,
             "metadata": k // made.chunk if made.chunk else 0, "c": int(made.c is not None),
             "random": int(made.random is not None), "d": 1}  # fmt: skip
    lanes["scale_b"] = lanes["scale_a"]
    limits = {role: fmt.code_limit for role, fmt in made.formats().items()}
    for role, count in lanes.items():
        value = getattr(witness, role)
        codes = value if isinstance(value, tuple) else () if value is None else (value,)
        if len(codes) != count or any(not 0 <= code < limits.get(role, 256) for code in codes):
            raise UsageError(f"a witness of {name} has no {counted(count, 'code')} of {role} in its format")
    return 1
