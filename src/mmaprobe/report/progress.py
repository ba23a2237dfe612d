"""Progress of long work, on standard error, only where a person watches."""

from __future__ import annotations

from types import TracebackType

from rich.progress import BarColumn, Progress, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device
from mmaprobe.errors import plain
from mmaprobe.report.console import Plain


class _Line(TextColumn):
    """The description as one line, escaped before its width is taken: no bar grows or leaves its place by it."""

    def render(self, task: Task) -> Text:
        return Text(plain(task.description).replace("\n", r"\n").replace("\t", r"\t"))


def _bars() -> Progress:
    console = Plain(stderr=True)
    return Progress(
        SpinnerColumn(),
        _Line(""),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )


def human(count: int) -> str:
    """A count of vectors as people say it: 12.3 M."""
    for limit, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= limit:
            return f"{count / limit:.3g} {unit}" if count % limit else f"{count // limit} {unit}"
    return str(count)


class _Bars:
    def __init__(self) -> None:
        self.bars = _bars()

    def __enter__(self) -> _Bars:
        self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bars.stop()


class CountProgress(_Bars):
    """One bar that counts vectors; call it with the number just compared."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self.total = total
        self.task = self.bars.add_task("comparing", total=total, count="")

    def __enter__(self) -> CountProgress:
        super().__enter__()
        return self

    def __call__(self, vectors: int) -> None:
        self.bars.advance(self.task, vectors)
        done = int(self.bars.tasks[self.task].completed)
        self.bars.update(self.task, count=f"{human(done)} of {human(self.total)} vectors")


class RunProgress(_Bars):
    """Two bars of the main job: instructions derived, vectors compared."""

    def __init__(self) -> None:
        super().__init__()
        self.states = self.vectors = self.done = self.seen = 0
        self.derive = self.bars.add_task("deriving", total=None, count="")
        self.compare = self.bars.add_task("comparing", total=None, count="")

    def __enter__(self) -> RunProgress:
        super().__enter__()
        return self

    def begin(self, device: Device, states: int, vectors: int) -> None:
        """The run knows its size now."""
        self.states, self.vectors = states, vectors
        self.bars.update(self.derive, total=states, description=f"{device.name}: deriving")
        self.bars.update(self.compare, total=vectors)

    def deriving(self, instruction: Instruction, step: str) -> None:
        """A step of the derivation of an instruction begins."""
        self.bars.update(self.derive, description=f"{instruction.id}: {step}")

    def derived(self, instruction: Instruction) -> None:
        """An instruction's derivation ended."""
        self.done += 1
        self.bars.update(self.derive, completed=self.done, count=f"{self.done} of {self.states} states")

    def compared(self, vectors: int) -> None:
        """So many vectors more were compared."""
        self.seen += vectors
        self.bars.update(
            self.compare, completed=self.seen, count=f"{human(self.seen)} of {human(self.vectors)} vectors"
        )


class SurveyProgress(_Bars):
    """One bar that counts the instructions derived or recognised."""

    def __init__(self) -> None:
        super().__init__()
        self.total = self.done = 0
        self.task = self.bars.add_task("deriving", total=None, count="")

    def __enter__(self) -> SurveyProgress:
        super().__enter__()
        return self

    def begin(self, device: Device, instructions: int) -> None:
        """The survey knows its size now."""
        self.total = instructions
        self.bars.update(self.task, total=instructions, description=f"{device.name}: deriving")

    def deriving(self, instruction: Instruction, step: str) -> None:
        """A step of one instruction begins."""
        self.bars.update(self.task, description=f"{instruction.id}: {step}")

    def derived(self, instruction: Instruction) -> None:
        """An instruction is settled, or given up."""
        self.done += 1
        self.bars.update(self.task, completed=self.done, count=f"{self.done} of {self.total} instructions")


class StepProgress(_Bars):
    """One bar of a bring-up: the step, what it is at, vectors compared, time left."""

    def __init__(self) -> None:
        super().__init__()
        self.name, self.vectors, self.left = "", 0, ""
        self.task = self.bars.add_task("beginning", total=None, count="")

    def __enter__(self) -> StepProgress:
        super().__enter__()
        return self

    def step(self, name: str, purpose: str) -> None:
        """A slice of a step begins."""
        self.name = name
        self.bars.update(self.task, description=f"{name}: {purpose}")

    def at(self, text: str, left: float | None) -> None:
        """A piece of the step is done; ``left`` seconds of the budget."""
        self.left = "" if left is None else f", {int(left) // 60}:{int(left) % 60:02d} left"
        self.bars.update(self.task, description=f"{self.name}: {text}")
        self.compared(0)

    def compared(self, vectors: int) -> None:
        """So many vectors more were compared."""
        self.vectors += vectors
        self.bars.update(self.task, count=f"{human(self.vectors)} vectors{self.left}")


class KernelProgress(_Bars):
    """One bar that counts kernels; call it with the instruction just compiled."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self.total = total
        self.task = self.bars.add_task("compiling", total=total, count="")

    def __enter__(self) -> KernelProgress:
        super().__enter__()
        return self

    def __call__(self, instruction: str) -> None:
        self.bars.advance(self.task)
        done = int(self.bars.tasks[self.task].completed)
        self.bars.update(self.task, description=instruction, count=f"{done} of {self.total} kernels")
