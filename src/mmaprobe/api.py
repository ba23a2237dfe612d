"""The Python API: devices, instructions and models by name, and the verbs that work on them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation import Derivation
from mmaprobe.derivation import derive as _derive
from mmaprobe.derivation.deriving import OPTIONS as DERIVE
from mmaprobe.devices.base import Device, Support, is_device, open_device, reads_gpu_memory, run_tiles, run_vectors
from mmaprobe.errors import NotHereError, UsageError, brief
from mmaprobe.evidence.records import Finding
from mmaprobe.generators.recipe import Recipe, is_recipe
from mmaprobe.generators.seeds import seed_of
from mmaprobe.models.model import Model
from mmaprobe.models.model import model as _model
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.operands.bound import BoundInstruction
from mmaprobe.options import ANY, NAMES, PATH, TEXT, checked, or_none
from mmaprobe.parameters.lookup import add_catalog as add_catalog
from mmaprobe.probing import probe as _probe
from mmaprobe.probing.long_sums.probe import OPTIONS as READ_TREE
from mmaprobe.probing.long_sums.probe import probe_long_sum
from mmaprobe.probing.published import suites
from mmaprobe.probing.published.replicate import Replication
from mmaprobe.probing.published.replicate import replicate as _replicate
from mmaprobe.probing.suite import checked as checked_questions
from mmaprobe.survey.layouts import probe_open, unsettled
from mmaprobe.survey.smoke import validate_witnesses as _validate_witnesses
from mmaprobe.validation import Summary
from mmaprobe.validation import validate as _validate
from mmaprobe.validation.mismatch_file import check_target, read_saved, save_mismatches, saved_of
from mmaprobe.validation.replaying import Replayed, device_of, replay_recipe, replay_saved
from mmaprobe.validation.stream import check_options

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

    def instructions(self) -> Sequence[Instruction]:
        """Every instruction of the device's architecture, whether or not it runs here."""
        return self._device.instructions()

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
            **on_gpu,
        )

    def __repr__(self) -> str:
        return f"<mmaprobe device {self.name}>"


def device(name: str) -> OpenDevice:
    """The device called ``name``: ``cpu``, ``model:sm_90a``, ``replay:PATH``, ``process:CMD``, ...

    UsageError (a ValueError) with the near names for an unknown one, NotHereError
    where its hardware or driver is missing.
    """
    return OpenDevice(open_device(name))


def instruction(identifier: str, architecture: str | None = None) -> Instruction:
    """The instruction with this id (or its short form); UsageError with the near ids otherwise.

    ``architecture`` decides where the id takes other formats on another one.
    """
    checked("instruction", {"architecture": architecture}, {"architecture": or_none(TEXT)})
    return lookup.instruction(identifier, architecture)


def model(architecture: str | Path, instruction: str | Instruction) -> Model:
    """The bit-accurate model of an instruction: ``m(A, B, C)`` on tiles, ``m.dot(a, b, c)`` on vectors.

    ``architecture`` is its name, or the path of a parameter file, which ends in ``.toml``.
    """
    if not isinstance(architecture, (str, Path)):
        raise UsageError(f"architecture {brief(architecture)}: a model's is a name such as sm_90a, H200 or gfx942")
    return _model(str(architecture), instruction.id if isinstance(instruction, Instruction) else instruction)


def probe(device: str | Device, instruction: str | Instruction, **options: Any) -> dict[str, Finding]:
    """Ask a device every question about one instruction; findings by question.  An open layout is settled first."""
    checked("probe", options, {"questions": ANY, "seed": ANY})
    checked_questions(options.get("questions"))
    _seed(options)
    opened = _opened(device)
    wanted = _named(opened, instruction)
    ask = probe_open if unsettled(opened, wanted) else _probe
    return ask(opened, wanted, **options)


def read_tree(device: str | Device, instruction: str | Instruction, **options: Any) -> Finding:
    """How a device adds a long sum: tree, steps and proof (the options are those of ``probe_long_sum``)."""
    checked("read_tree", options, READ_TREE)
    _seed(options)
    opened = _opened(device)
    return probe_long_sum(opened, _named(opened, instruction), **options)


def replicate(device: str | Device, suite: str, instruction: str | Instruction | None = None) -> list[Replication]:
    """Run a published suite (``fasi2021``, ``gnft2025``, ...) on an instruction, or on all that it fits."""
    checked("replicate", {"suite": suite}, {"suite": TEXT})
    wanted = suites.suite(suite)
    opened = _opened(device)
    chosen = None if instruction is None else _named(opened, instruction)
    return _replicate(opened, wanted, chosen)


def derive(device: str | Device, instruction: str | Instruction, **options: Any) -> Derivation:
    """Find an instruction's datapath from the device's answers alone, with its certificate."""
    checked("derive", options, DERIVE)
    _seed(options)
    opened = _opened(device)
    return _derive(opened, _named(opened, instruction), **options)


def validate(
    dut: str | Device,
    ref: str | Device,
    instruction: str | Instruction,
    vectors: int = 1_000_000,
    seed: int | None = None,
    generators: Sequence[str] | None = None,
    *,
    save: str | Path | None = None,
    **options: Any,
) -> Summary:
    """Run vectors through two devices and compare every bit; without a ``seed`` one is drawn (``Summary.seed``).

    Mismatches are saved to the file ``save``, for ``replay``; where there are none, it is not written.
    """
    checked("validate", {"generators": generators, "save": save}, {"generators": or_none(NAMES), "save": or_none(PATH)})
    if generators is not None and not generators:
        raise UsageError("generators is empty; it must name a family, or be None for all that fit")
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


def replay(what: str | Path, device: str | Device | None = None, ref: str | Device | None = None) -> list[Replayed]:
    """Ask again what was answered wrongly: the mismatches of a file that ``validate`` saved, of a part of an evidence
    folder or of the whole folder, or the vector of a recipe, for which both devices are named.

    ``device`` and ``ref`` take the place of those that were compared; a reference that cannot be opened any more is
    replaced by its recorded answers.  No file chooses what is run: a device that runs a program or a function must be
    named.  UsageError for a broken file, NotHereError where the device is not here.
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
        return [replay_recipe(recipe, tested, _opened(ref), _named(tested, recipe.instruction))]
    found: list[Replayed] = []
    for saved in read_saved(Path(what)):
        tested = device_of(saved) if device is None else _opened(device)
        made = _named(tested, saved.instruction)
        found += replay_saved(saved, tested, None if ref is None else _opened(ref), made)
    return found


def validate_witnesses(dut: str | Device, ref: str | Device, instructions: str = "*") -> list[Summary]:
    """Hold two devices against the witnesses of every instruction that matches: the smoke test."""
    checked("validate_witnesses", {"instructions": instructions}, {"instructions": TEXT})
    return list(_validate_witnesses(_opened(dut), _opened(ref), instructions))


def _seed(options: dict[str, Any]) -> None:
    """The seed among the options as a number; one that is None is drawn."""
    if "seed" in options:
        options["seed"] = seed_of(options["seed"])


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
