"""The device ``replay:PATH``: answers recorded inputs with recorded outputs, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, Support, pad_lanes, run_vectors
from mmaprobe.devices.options import split_options
from mmaprobe.devices.recording import read_recording, unit_of
from mmaprobe.errors import UsageError, near
from mmaprobe.evidence import silicon
from mmaprobe.evidence.corpus import Corpus, Set, set_of
from mmaprobe.models.model import evaluate_tiles
from mmaprobe.operands.batch import PER_RESULT, Batch, Bits, check_batch


class Replay:
    """The recordings of one GPU (or other unit) out of a corpus.

    A set recorded with fewer lanes than the instruction's K is filled up with
    lanes of +0 times +0, which is what the recording did; a question is filled
    up in the same way, so both meet.
    """

    concurrent = True

    def __init__(self, name: str, corpus: Corpus, gpu: str) -> None:
        self.name = name
        self._corpus = corpus
        self._sets = [record for record in corpus.sets() if record.gpu == gpu]
        self._instructions: dict[str, Instruction] = {}
        self._recorded: dict[str, tuple[Batch, Bits]] = {}
        self._answers: dict[str, dict[bytes, int]] = {}
        for record in self._sets:
            self._load(record)

    def _load(self, record: Set) -> None:
        instruction = _instruction_of(record)
        vectors, d = self._corpus.vectors(record.key)
        if instruction.c is None:
            vectors = replace(vectors, c=None)
        vectors = pad_lanes(instruction, vectors)
        if instruction.id in self._recorded:
            before, d_before = self._recorded[instruction.id]
            joined = {name: np.concatenate([value, dict(vectors.items())[name]]) for name, value in before.items()}
            vectors, d = Batch(**joined), np.concatenate([d_before, d])
        answers = dict(zip(_keys(vectors), d.tolist(), strict=True))
        if any(answers[key] != value for key, value in zip(_keys(vectors), d.tolist(), strict=True)):
            raise UsageError(f"{self._corpus.path}: set {record.key} records two answers to the same vector")
        self._instructions[instruction.id] = instruction
        self._recorded[instruction.id] = vectors, d
        self._answers[instruction.id] = answers

    def info(self) -> dict[str, str]:
        """The recorded unit, its architecture, whether it is silicon, how it was recorded, the recording's licence."""
        first = self._sets[0]
        return {
            "device": self.name,
            "gpu": first.gpu,
            "architecture": first.architecture,
            silicon.KEY: silicon.together(record.silicon or silicon.YES for record in self._sets),
            "recorded": ", ".join(sorted({record.api for record in self._sets})),
            "licence": self._corpus.licence.partition("\n")[0] or "none stated",
        }

    def instructions(self) -> Sequence[Instruction]:
        """The instructions of which there are recordings."""
        return tuple(self._instructions.values())

    def supports(self, instruction: Instruction) -> Support:
        """Whether there are recordings of the instruction."""
        known = instruction.id in self._instructions
        return Support(known, "" if known else f"not recorded in {self._corpus.path}")

    def recorded(self, instruction: Instruction) -> tuple[Batch, Bits]:
        """Every recorded input of an instruction, in one-vector shapes of all its lanes, and its d (n,)."""
        if instruction.id not in self._recorded:
            raise UsageError(f"{self.name}: {instruction.id} is not recorded{near(instruction.id, self._recorded)}")
        return self._recorded[instruction.id]

    def run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        """The recorded d of each vector; UsageError naming the first one that was not recorded."""
        d = self.recorded(instruction)[1]
        answers = self._answers[instruction.id]
        found = [answers.get(key) for key in _keys(_checked(instruction, vectors))]
        if None in found:
            raise UsageError(f"{self.name}: {instruction.id} has no recording of {_spell(vectors, found.index(None))}")
        return np.array(found, dtype=d.dtype)

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        """D of whole tiles, every vector of which must be recorded; see ``run_vectors``."""
        return evaluate_tiles(partial(self.run_vectors, instruction), check_batch(instruction, batch))


def open_replay(argument: str) -> Replay:
    """The device ``replay:PATH`` of a corpus' folder or a recording's archive, or
    ``replay:PATH?gpu=NAME`` where the corpus holds several units.

    Raises UsageError for a broken corpus, an unknown ``gpu``, and where one
    must be chosen.
    """
    path, options = split_options(argument, ("gpu",))
    if not path:
        raise UsageError("replay: needs the folder of a corpus or the archive of a recording, as in replay:PATH")
    corpus = read_recording(Path(path)) if Path(path).is_file() else Corpus.open(path)
    units = list(dict.fromkeys(record.gpu for record in corpus.sets()))
    if not units:
        raise UsageError(f"{path}: the corpus holds no set")
    if "gpu" not in options and len(units) > 1:
        raise UsageError(f"{path} holds recordings of {', '.join(units)}; choose one: replay:{path}?gpu={units[0]}")
    gpu = options.get("gpu", units[0])
    if gpu not in units:
        raise UsageError(f"{path}: no recordings of {gpu!r}{near(gpu, units)}")
    return Replay(f"replay:{argument}", corpus, gpu)


def record(device: Device, questions: Iterable[tuple[Instruction, Batch]], licence: str = "") -> Corpus:
    """Run vectors (one-vector shapes) on a device and keep inputs and outputs as a corpus.

    ``evidence.corpus.write_corpus`` puts it on disk; ``replay:`` answers from it.
    """
    identity = device.info()
    unit = unit_of(identity, device.name)
    sets: list[Set] = []
    arrays: dict[str, Bits] = {}
    for instruction, vectors in questions:
        full = pad_lanes(instruction, vectors)
        d = run_vectors(device, instruction, full)
        key = f"{unit}/{instruction.id}"
        architecture = identity.get("architecture", "")
        api, said = f"mmaprobe {device.name}", silicon.said_by(device.name, identity)
        sets.append(set_of(instruction, unit, architecture, api, full.size, key, said))
        arrays |= {f"{key}/{name}": value for name, value in [*full.items(), ("d", d)]}
    return Corpus(sets, arrays, licence)


def _instruction_of(record: Set) -> Instruction:
    """The catalog's instruction of a set, or a lane-wise one made from the record where it has none."""
    try:
        found = lookup.instruction(record.instruction, record.architecture)
    except UsageError:
        return Instruction(
            record.instruction, record.instruction.partition("{")[0], "recorded", 1, 1, record.k, record.a, record.b,
            record.c_format, record.d, chunk=record.chunk, scale=record.scale or None, scale_size=record.scale_size,
            random=record.random or None,
        )  # fmt: skip
    spoken = (
        record.a,
        record.b,
        record.d,
        record.scale or None,
        record.scale_size,
        record.chunk,
        record.random or None,
    )
    if spoken != (found.a, found.b, found.d, found.scale, found.scale_size, found.chunk, found.random):
        raise UsageError(f"set {record.key}: its formats are not those of {found.id}")
    if record.c_format != found.c and not (found.c is None and record.c == "zero"):
        raise UsageError(f"set {record.key}: C is {record.c}, but {found.id} takes {found.c or 'none'}")
    return found


def _checked(instruction: Instruction, vectors: Batch) -> Batch:
    """Vectors of native layout, held against the instruction's formats and number of lanes."""
    lane_wise = replace(instruction, m=1, n=1, blocks=1)
    axes: dict[str, int | tuple[int, int]] = {"b": 2, "scale_b": 2} | dict.fromkeys(PER_RESULT, (1, 2))
    tiles = {name: np.expand_dims(value, axes.get(name, 1)) for name, value in vectors.items()}
    ready = check_batch(lane_wise, Batch(**tiles))
    return Batch(**{name: np.squeeze(value, axes.get(name, 1)) for name, value in ready.items()})


def _keys(vectors: Batch) -> list[bytes]:
    """One key a vector: the bytes of all its operands."""
    if vectors.size == 0:
        return []
    rows = [np.ascontiguousarray(value).reshape(vectors.size, -1).view(np.uint8) for _, value in vectors.items()]
    joined = np.concatenate(rows, axis=1)
    whole, width = joined.tobytes(), joined.shape[1]
    return [whole[start : start + width] for start in range(0, len(whole), width)]


def _spell(vectors: Batch, index: int) -> str:
    """A vector as hex, operand by operand."""
    one = vectors.slice(index, index + 1)
    return " ".join(f"{name}={','.join(f'{code:#x}' for code in np.ravel(value))}" for name, value in one.items())
