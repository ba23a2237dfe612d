"""The Python API: devices, instructions and models by name, and the verbs that work on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation import Derivation
from mmaprobe.derivation import derive as _derive
from mmaprobe.derivation.budget import ALLOWANCE
from mmaprobe.derivation.deriving import OPTIONS as DERIVE
from mmaprobe.devices.base import Device, Support, is_device, open_device, reads_gpu_memory, run_tiles, run_vectors
from mmaprobe.errors import NotHereError, UsageError, brief
from mmaprobe.evidence.records import Finding, Findings
from mmaprobe.generators.recipe import Recipe, is_recipe
from mmaprobe.generators.seeds import seed_of
from mmaprobe.models.model import Model
from mmaprobe.models.model import model as _model
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.operands.bound import BoundInstruction
from mmaprobe.options import NAMES, PATH, TEXT, checked, or_none
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import add_catalog as add_catalog
from mmaprobe.probing import probe as _probe
from mmaprobe.probing.long_sums.probe import BUDGET, VECTORS, probe_long_sum
from mmaprobe.probing.long_sums.probe import OPTIONS as READ_TREE
from mmaprobe.probing.published import suites
from mmaprobe.probing.published.replicate import Replication
from mmaprobe.probing.published.replicate import replicate as _replicate
from mmaprobe.probing.suite import checked as checked_questions
from mmaprobe.report.tables.instructions import FormFilter, form_rows
from mmaprobe.showing import Results, html_table
from mmaprobe.survey.layouts import probe_open, unsettled
from mmaprobe.survey.smoke import validate_witnesses as _validate_witnesses
from mmaprobe.validation import Summary
from mmaprobe.validation import validate as _validate
from mmaprobe.validation.mismatch_file import check_target, read_saved, save_mismatches, saved_of
from mmaprobe.validation.replaying import Replayed, device_of, replay_recipe, replay_saved
from mmaprobe.validation.stream import THREADS, Progress, Stop, check_options

FEW = 8
"""So many instructions are named where one is asked for that a device does not have."""


class OpenDevice:
    """A device with callables for its instructions; itself a device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.name = device.name
        self.concurrent = getattr(device, "concurrent", False)

    def info(self) -> dict[str, str]:
        """Identity: what evidence records about the device."""
        return self._device.info()

    def instructions(self) -> Results[Instruction]:
        """Every instruction of the device's architecture, whether or not it runs here."""
        return Results(self._device.instructions())

    def named(self, identifier: str | Instruction) -> Instruction:
        """The instruction of this id: the device's own, else the catalog's; UsageError with the near ids otherwise."""
        return _named(self._device, identifier)

    def supports(self, instruction: Instruction | str) -> Support:
        """Whether the instruction runs here, and if not, why."""
        return self._device.supports(_named(self._device, instruction))

    def run(self, instruction: Instruction | str, batch: Batch) -> Bits:
        """D of shape (batch, [blocks,] M, N)."""
        if not isinstance(batch, Batch):
            raise UsageError(f"operands {brief(batch)}: run takes a Batch of bit patterns")
        return run_tiles(self._device, _named(self._device, instruction), batch)

    def run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        """d of shape (n,) for separate vectors."""
        return run_vectors(self._device, instruction, vectors)

    def instruction(self, identifier: str | Instruction) -> BoundInstruction:
        """The instruction as a callable ``m(A, B, C)`` with ``m.dot(a, b, c)``, like ``mmaprobe.model``."""
        wanted = _named(self._device, identifier)
        support = self._device.supports(wanted)
        if not support:
            raise NotHereError(f"{wanted.id} does not run on {self.name}: {support.reason}")
        on_gpu: dict[str, Any] = {}
        if reads_gpu_memory(self._device):
            on_gpu = {"run_operands": partial(self._device.run_operands, wanted), "resident": self._device.resident}
        return BoundInstruction(
            wanted,
            lambda batch: run_tiles(self._device, wanted, batch),
            lambda vectors: run_vectors(self._device, wanted, vectors),
            owner=self.name,
            **on_gpu,
        )

    def __repr__(self) -> str:
        return f"<mmaprobe device {self.name}>"

    def _repr_html_(self) -> str:
        return html_table(f"device {self.name}", [{"what": key, "is": value} for key, value in self.info().items()])


def device(name: str) -> OpenDevice:
    """The device called ``name``: ``cpu``, ``cuda:0``, ``model:sm_90a``, ``replay:PATH``, ``process:CMD``, ...

    >>> import numpy as np, mmaprobe
    >>> hopper = mmaprobe.device("model:H200")
    >>> hopper.supports("mma.m16n8k16.f32.f16.f16.f32")
    Support(ok=True, reason='')
    >>> ones = np.ones(16, np.float16)
    >>> hopper.instruction("mma.m16n8k16.f32.f16.f16.f32").dot(ones, ones, np.float32(0.5))
    array(16.5, dtype=float32)

    UsageError (a ValueError) with the near names for an unknown one, NotHereError
    where its hardware or driver is missing.
    """
    return OpenDevice(open_device(name))


def architectures() -> tuple[str, ...]:
    """Every architecture whose instructions are known, as its compiler spells it.

    >>> import mmaprobe
    >>> "sm_90a" in mmaprobe.architectures()
    True
    """
    return lookup.architectures()


def instructions(
    architecture: str,
    glob: str = "*",
    *,
    family: str | None = None,
    format: str | None = None,
    kind: str | None = None,
    basis: str | None = None,
) -> Results[Instruction]:
    """The instructions of an architecture whose id or short form matches a glob: of those that differ in a size or a
    modifier alone, the first.

    ``family`` is a family or a glob of families, ``format`` one of the operands, scales or result; ``kind`` is native,
    split or emulated, and ``basis`` one of a parameter file's, modelled or none.

    >>> import mmaprobe
    >>> [each.id for each in mmaprobe.instructions("gfx942", "*16x16x32*", format="e4m3fnuz", family="mfma*")][:1]
    ['v_mfma_f32_16x16x32_bf8_fp8']
    """
    options = {"family": family, "format": format, "kind": kind, "basis": basis}
    checked("instructions", options, dict.fromkeys(options, or_none(TEXT)))
    checked("instructions", {"architecture": architecture, "glob": glob}, {"architecture": TEXT, "glob": TEXT})
    rows = form_rows(architecture, FormFilter(glob, **options))
    return Results(lookup.instruction(row["first"], architecture) for row in rows)


def instruction(identifier: str, architecture: str | None = None) -> Instruction:
    """The instruction with this id, its short form, or another name that says the same of it.

    ``architecture`` decides where a name takes other formats on another one.

    >>> import mmaprobe
    >>> mmaprobe.instruction("mma.m16n8k16.f32.bf16.bf16.f32").shapes(1)
    {'a': (1, 16, 16), 'b': (1, 16, 8), 'c': (1, 16, 8)}

    UsageError with the near ids for an unknown name, and with all of them for one that may mean several.
    """
    checked("instruction", {"architecture": architecture}, {"architecture": or_none(TEXT)})
    return lookup.instruction(identifier, architecture)


def model(architecture: str | Path, instruction: str | Instruction) -> Model:
    """The bit-accurate model of an instruction: ``m(A, B, C)`` on tiles, ``m.dot(a, b, c)`` on vectors.

    ``architecture`` is its name, or the path of a parameter file, which ends in ``.toml``.  Operands are arrays of
    exactly the operand's format, or unsigned integers that hold its bit patterns; results are of the same kind.

    >>> import numpy as np, mmaprobe
    >>> hopper = mmaprobe.model("sm_90a", "mma.m16n8k16.f32.f16.f16.f32")
    >>> a = np.array([4096] + [1] * 15, np.float16)
    >>> float(hopper.dot(a, a, np.float32(0)))  # the exact sum is 16777231
    16777230.0
    >>> hopper(np.eye(16, dtype=np.float16), np.ones((16, 8), np.float16), np.ones((16, 8), np.float32)).shape
    (16, 8)
    """
    if not isinstance(architecture, (str, Path)):
        raise UsageError(f"architecture {brief(architecture)}: a model's is a name such as sm_90a, H200 or gfx942")
    return _model(str(architecture), instruction.id if isinstance(instruction, Instruction) else instruction)


def probe(
    device: str | Device,
    instruction: str | Instruction,
    questions: Sequence[str] | None = None,
    seed: int | None = 0,
) -> Findings:
    """Ask a device every question about one instruction, or those named; findings by question.

    An open layout is settled first.  A ``seed`` of None is drawn.

    >>> import mmaprobe
    >>> mmaprobe.probe("model:sm_90a", "mma.m16n8k16.f32.f16.f16.f32", ["result_rounding"])
    {'result_rounding': <finding result_rounding: exact: 23 fraction bits, RZ>}
    """
    checked_questions(questions)
    seed = seed_of(seed)
    opened = _opened(device)
    wanted = _named(opened, instruction)
    ask = probe_open if unsettled(opened, wanted) else _probe
    return Findings(ask(opened, wanted, questions=questions, seed=seed))


def read_tree(
    device: str | Device,
    instruction: str | Instruction,
    *,
    budget: int = BUDGET,
    seed: int | None = 0,
    at: tuple[int, int] = (0, 0),
    vectors: int = VECTORS,
) -> Finding:
    """How a device adds a long sum: its tree, what each step does, and the proof on random vectors.

    ``budget`` bounds the calls of the device, ``at`` is the row and column of the result that is asked for, and on so
    many ``vectors`` the tree as a program is held against the device.

    >>> import mmaprobe
    >>> numpy = mmaprobe.device("function:numpy:sum?k=40")
    >>> mmaprobe.read_tree(numpy, numpy.instructions()[0]).status
    'exact'
    """
    checked("read_tree", {"budget": budget, "at": at, "vectors": vectors}, READ_TREE)
    seed = seed_of(seed)
    opened = _opened(device)
    return probe_long_sum(opened, _named(opened, instruction), budget, seed, at, vectors)


def replicate(device: str | Device, suite: str, instruction: str | Instruction | None = None) -> Results[Replication]:
    """Run a published suite (``fasi2021``, ``gnft2025``, ...) on an instruction, or on all that it fits.

    >>> import mmaprobe
    >>> mmaprobe.replicate("model:sm_70", "fasi2021", "wmma.mma.row.col.m16n16k16.f32.f32")
    [<fasi2021 on wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32: 32 experiments, answers as published of volta>]
    """
    checked("replicate", {"suite": suite}, {"suite": TEXT})
    wanted = suites.suite(suite)
    opened = _opened(device)
    chosen = None if instruction is None else _named(opened, instruction)
    return Results(_replicate(opened, wanted, chosen))


def derive(
    device: str | Device,
    instruction: str | Instruction,
    *,
    seed: int | None = 0,
    start: Datapath | None = None,
    fresh: int | None = None,
    findings: dict[str, Finding] | None = None,
    allowance: int = ALLOWANCE,
    say: Callable[[str], None] | None = None,
) -> Derivation:
    """Find an instruction's datapath from the device's answers alone, with its certificate.

    The datapath must get ``fresh`` vectors right that the search never saw.  ``start`` is a hypothesis to begin with,
    ``findings`` are those of ``probe`` where it was asked already, and ``say`` is told what is being done.  After
    ``allowance`` units of work the search ends without an answer.

    >>> import mmaprobe
    >>> found = mmaprobe.derive("model:x86-64+intel", "x86.pmaddwd", fresh=10_000)
    >>> found.status, found.datapath is not None
    ('exact', True)
    """
    options = {"start": start, "fresh": fresh, "findings": findings, "allowance": allowance, "say": say}
    checked("derive", options, DERIVE)
    seed = seed_of(seed)
    opened = _opened(device)
    made = _named(opened, instruction)
    return _derive(opened, made, seed=seed, start=start, fresh=fresh, findings=findings, allowance=allowance, say=say)


def validate(
    dut: str | Device,
    ref: str | Device,
    instruction: str | Instruction,
    vectors: int = 1_000_000,
    seed: int | None = None,
    generators: Sequence[str] | None = None,
    *,
    save: str | Path | None = None,
    nan: str = "bits",
    threads: int = THREADS,
    progress: Progress | None = None,
    stop: Stop | None = None,
    said: Callable[[str], None] | None = None,
    campaign: bool = True,
    first: int = 0,
    examined: bool = True,
    covered: bool = True,
    enumerated: str = "",
) -> Summary:
    """Run vectors through two devices and compare every bit; without a ``seed`` one is drawn (``Summary.seed``).

    Mismatches are saved to the file ``save``, for ``replay``; where there are none, it is not written.  ``generators``
    are families of vectors (all that fit where None), from the vector after the ``first`` so many on; ``enumerated``
    names an enumeration instead, which counts through every vector of a kind.  ``nan="any"`` takes any two NaNs as
    equal.  ``progress`` is told of vectors compared, ``said`` in words of what goes another way, and ``stop`` is asked
    whether to end.  ``campaign``: a GPU compares by itself where it can; ``examined``: a few mismatches are asked again
    and shrunk; ``covered``: what a sample of the vectors reached is counted.

    >>> import mmaprobe
    >>> mmaprobe.validate("model:sm_90a", "model:sm_80", "mma.m16n8k16.f32.f16.f16.f32", 2000, seed=1).mismatches
    463
    """
    checked("validate", {"generators": generators, "save": save}, {"generators": or_none(NAMES), "save": or_none(PATH)})
    if generators is not None and not generators:
        raise UsageError("generators is empty; it must name a family, or be None for all that fit")
    options: dict[str, Any] = {
        "nan": nan, "threads": threads, "progress": progress, "stop": stop, "said": said, "campaign": campaign,
        "first": first, "examined": examined, "covered": covered, "enumerated": enumerated,
    }  # fmt: skip
    check_options(vectors, **options)
    seed = seed_of(seed)
    if save is not None:
        check_target(Path(save))
    tested = _opened(dut)
    made = _named(tested, instruction)
    summary = _validate(tested, _opened(ref), made, vectors, seed, generators, **options)
    if save is not None and summary.examples:
        save_mismatches(Path(save), saved_of(summary), made)
    return summary


def replay(what: str | Path, device: str | Device | None = None, ref: str | Device | None = None) -> Results[Replayed]:
    """Ask again what was answered wrongly: the mismatches of a file that ``validate`` saved, of a shard, of a part of
    an evidence folder or of the whole folder, or the vector of a recipe, for which both devices are named.

    ``device`` and ``ref`` take the place of those that were compared; a reference that cannot be opened any more is
    replaced by its recorded answers.  No file chooses what is run: a device that runs a program or a function must be
    named.  UsageError for a broken file, NotHereError where the device is not here.

    >>> import mmaprobe
    >>> recipe = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32/cancel.2/1/0@0,0"
    >>> [each.outcome for each in mmaprobe.replay(recipe, "model:sm_90a", "model:sm_80")]
    ['wrong again']
    """
    for name, it in (("device", device), ("ref", ref)):
        if not (it is None or isinstance(it, str) or is_device(it)):
            raise UsageError(f"{name} {brief(it)}: it must be a device or its name")
    if not isinstance(what, (str, Path)) or not str(what):
        raise UsageError(f"replay: {brief(what)} is neither a file nor a recipe")
    if is_recipe(str(what)) and not Path(what).exists():
        recipe = Recipe.parse(str(what))
        if device is None or ref is None:
            raise UsageError("a recipe names no devices: name both, with --device and --ref")
        tested = _opened(device)
        return Results([replay_recipe(recipe, tested, _opened(ref), _named(tested, recipe.instruction))])
    found: Results[Replayed] = Results()
    for saved in read_saved(Path(what)):
        tested = device_of(saved) if device is None else _opened(device)
        made = _named(tested, saved.instruction)
        found += replay_saved(saved, tested, None if ref is None else _opened(ref), made)
    return found


def validate_witnesses(dut: str | Device, ref: str | Device, instructions: str = "*") -> Results[Summary]:
    """Hold two devices against the witnesses of every instruction that matches: the smoke test.

    >>> import mmaprobe
    >>> [summary.verdict for summary in mmaprobe.validate_witnesses("model:x86-64+amd", "model:x86-64+amd", "x86.dpps")]
    ['equal']
    """
    checked("validate_witnesses", {"instructions": instructions}, {"instructions": TEXT})
    return Results(_validate_witnesses(_opened(dut), _opened(ref), instructions))


def _opened(device: str | Device) -> Device:
    if isinstance(device, OpenDevice):
        return device._device
    return device if is_device(device) else open_device(device)


def _named(device: Device, wanted: str | Instruction) -> Instruction:
    """The device's own instruction of that id where it has one, else the catalog's."""
    if isinstance(wanted, Instruction):
        return wanted
    own = {i.id: i for i in device.instructions()}
    if wanted in own:
        return own[wanted]
    try:
        return lookup.instruction(wanted, device.info().get("architecture"))
    except UsageError:
        if len(own) > FEW:
            raise
        raise UsageError(f"{device.name} has no instruction {wanted!r}; it has {', '.join(own)}") from None
