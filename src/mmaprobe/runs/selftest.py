"""The step ``selftest``: a kernel of each kind, before minutes go into what does not run here.

Of each kind of instruction (``mma``, ``wgmma``, ``mfma``, ...) whose primitives are not another one's already the
main form is asked, with A in every place that it can come from; then one fused campaign proves itself.  On a GPU each
runs in a child process first.
"""

from __future__ import annotations

from collections.abc import Iterator

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import lowering
from mmaprobe.devices.gpu.known_answer import WrongAnswerError, answers, known_answer
from mmaprobe.errors import DeviceError, UsageError
from mmaprobe.runs.plan import MAIN_FORMATS, kind, place
from mmaprobe.runs.run_state import RunState, Work
from mmaprobe.runs.validating import ORDINARY, prove
from mmaprobe.showing import counted
from mmaprobe.survey.layouts import unsettled
from mmaprobe.validation.fused import UnsteadyLaunchError

WELL = "well"
ITEMS = 37
"""Items of the known answer: more than a CTA's groups run at a time, and no multiple of them."""
CAMPAIGN = "fused campaign"


class DeadError(DeviceError):
    """No kernel of the self-test came to a good end."""


def test_itself(run: RunState) -> Work:
    """Ask the kernels one after another, in one piece; what breaks the device is left out of what follows.

    DeadError where all break it; a wrong answer does not, and is the next step's to explain.
    """
    result = run.result("selftest")
    said: dict[str, str] = result.setdefault("kernels", {})
    every = kernels(run)
    for made in every:
        if made.id not in said:
            run.say(made.id)
            with run.asking(made):
                said[made.id] = _outcome(run, made)
            if run.left_out(made):
                said[made.id] = str(run.part(made).validation["error"]).removeprefix(f"{made.id}: ")
        result["text"] = _text(said)
    if every and all(run.left_out(made) for made in every):
        raise DeadError(
            f"{run.device.name}: none of the self-test's {counted(len(every), 'kernel')} came to a good end; "
            "see: mmaprobe doctor; --steps layouts asks the other instructions all the same"
        )
    if CAMPAIGN not in said:
        run.say(CAMPAIGN)
        said[CAMPAIGN] = _campaign(run, [made for made in every if said[made.id] == WELL])
        result["text"] = _text(said)
    yield CAMPAIGN


def lines(run: RunState) -> list[str]:
    """The kernels that did not go well and how, a line each."""
    said = run.result("selftest").get("kernels", {})
    return [f"self-test: {name}: {text}" for name, text in said.items() if _failed(text)]


def kernels(run: RunState) -> list[Instruction]:
    """The instructions that are asked."""
    plan, found = run.plan, dict[str, list[Instruction]]()
    for made in plan.bases:
        if not unsettled(run.device, made):
            found.setdefault(kind(made), []).append(made)
    main, covered, chosen = set(plan.main), set[str](), list[Instruction]()
    for each in found.values():
        first = min(each, key=lambda made: (made not in main, _rank(made)))
        inside = set(_primitives(first, plan.architecture))
        if not inside or not inside <= covered:
            chosen += [first, *_elsewhere(first, plan.others.get(first.id, ()))]
            covered |= inside
    return chosen


def _elsewhere(first: Instruction, others: tuple[Instruction, ...]) -> Iterator[Instruction]:
    """The first of each place that A can come from else, all else alike."""
    alike = [made for made in others if place(made) and len(made.modifiers) == 1 and made.opcode == first.opcode]
    return (made for made in alike if made == next(each for each in alike if place(each) == place(made)))


def _rank(made: Instruction) -> int:
    return next((number for number, name in enumerate(MAIN_FORMATS) if made.a.startswith(name)), len(MAIN_FORMATS))


def _primitives(made: Instruction, architecture: str) -> tuple[str, ...]:
    try:
        return lowering(made, architecture).primitives
    except UsageError:
        return ()


def _outcome(run: RunState, made: Instruction) -> str:
    """How a known answer goes."""
    try:
        batch, expected = known_answer(made, ITEMS, run.seed)
    except UsageError as error:
        return f"not asked: {error}"
    try:
        right = answers(made, run.device.run(made, batch), expected)
    except WrongAnswerError as error:
        return str(error).removeprefix(f"{made.id}: ")
    return WELL if right else "wrong known answer"


def _campaign(run: RunState, well: list[Instruction]) -> str:
    """How a fused campaign of the first instruction that has one here proves itself."""
    for made in well:
        try:
            found = prove(run, made)
        except UnsteadyLaunchError as error:
            run.flag(made, str(error))
            return f"{made.id}: {error}"
        if found is not None:
            return WELL if not found else f"{made.id}: proven; {found} of its vectors are not the shipped datapath's"
        if ORDINARY in run.part(made).validation:
            return f"{made.id}: {run.part(made).validation[ORDINARY]}"
    return "not asked: no fused kernel is at hand (mmaprobe compile --campaign)"


def _failed(text: str) -> bool:
    return text != WELL and not text.startswith("not asked")


def _text(said: dict[str, str]) -> str:
    failed = [name for name, text in said.items() if _failed(text)]
    return f"{list(said.values()).count(WELL)} of {len(said)} went well" + "".join(f"; not {name}" for name in failed)
