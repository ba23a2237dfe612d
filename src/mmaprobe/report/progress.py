"""Progress of long work, on standard error: bars where a person watches, in a log a line now and then."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType

from rich.console import RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from mmaprobe.errors import printable
from mmaprobe.report.console import ENDLESS, Folded, PlainConsole
from mmaprobe.showing import human, per_second

BAR = 20
"""Columns of a bar; of half of it on a terminal narrower than ``NARROW``."""
NARROW = 140
"""Columns from which on an id, a whole bar and what it counts stand side by side."""
FIRST_LINE = 60.0
"""Seconds after which a log gets its first line; each time it takes twice as long to the next one."""
MOST_APART = 600.0
"""Seconds from one line to the next at most."""


def _line(task: Task) -> str:
    """The description as one line, escaped before its width is taken: no bar grows or leaves its place by it."""
    return printable(task.description).replace("\n", r"\n").replace("\t", r"\t")


class _Line(TextColumn):
    """The description before its bar, where the terminal is wide."""

    def render(self, task: Task) -> Text:
        return Text(_line(task), no_wrap=True, overflow="ellipsis")


class _Stacked(Progress):
    """Bars of a narrow terminal: what each is at stands above it, broken between words."""

    def get_renderables(self) -> Iterable[RenderableType]:
        for task in self.tasks:
            if task.visible:
                yield Folded(_line(task))
                yield self.make_tasks_table([task])


def _bars() -> Progress:
    console = PlainConsole(stderr=True)
    wide = console.width >= NARROW
    return (Progress if wide else _Stacked)(
        SpinnerColumn(),
        *[_Line("", table_column=Column())] * wide,
        BarColumn(BAR if wide else BAR // 2),
        TextColumn("{task.fields[count]}", table_column=Column(no_wrap=True)),
        TimeElapsedColumn(table_column=Column(no_wrap=True)),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )


def _left(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d} left"


def _pace(task: Task) -> str:
    """What a task does a second, and how long it takes yet; nothing before that is known."""
    told = f", {per_second(task.speed)}" if task.speed else ""
    return told + (f", {_left(task.time_remaining)}" if task.time_remaining else "")


class _Bars:
    def __init__(self) -> None:
        self.bars = _bars()
        self._apart = FIRST_LINE
        self._due: float | None = None

    def __enter__(self) -> _Bars:
        self.bars.start()
        return self

    def log(self) -> None:
        """Where there are no bars, a line if it is time for one: a log, too, tells whether anything goes on."""
        now = self.bars.get_time()
        if self._due is None:
            self._due = now + self._apart
        if not self.bars.disable or now < self._due:
            return
        self._apart = min(2 * self._apart, MOST_APART)
        self._due = now + self._apart
        parts = (f"{task.description}: {task.fields['count']}".strip(": ") for task in self.bars.tasks if task.visible)
        with suppress(OSError, ValueError):  # who closed the log does not end the work
            PlainConsole(stderr=True, width=ENDLESS).print(f"mmaprobe: {'; '.join(parts)}")

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bars.stop()


class CountProgress(_Bars):
    """One bar that counts vectors, with their rate and the time left; call it with the number just compared."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self.total = total
        self.task = self.bars.add_task("comparing", total=total, count="")

    def __enter__(self) -> CountProgress:
        super().__enter__()
        return self

    def of(self, total: int) -> None:
        """There are so many vectors to come."""
        self.total = total
        self.bars.update(self.task, total=total)

    def __call__(self, vectors: int) -> None:
        self.bars.advance(self.task, vectors)
        task = self.bars.tasks[self.task]
        count = f"{human(int(task.completed))} of {human(self.total)} vectors{_pace(task)}"
        self.bars.update(self.task, count=count)
        self.log()


class RunProgress(_Bars):
    """A run's, or a survey's, listener with two bars: what it is at, how many instructions are derived and what time is
    left; once there are any, the vectors compared and their rate."""

    def __init__(self) -> None:
        super().__init__()
        self.name = self.left = ""
        self.seen = self.done = 0
        self.all: int | None = None
        self.vectors: int | None = None
        self.derive = self.bars.add_task("beginning", total=None, count="")
        self.compare = self.bars.add_task("comparing", total=None, count="", visible=False)

    def __enter__(self) -> RunProgress:
        super().__enter__()
        return self

    def begin(self, instructions: int, vectors: int | None) -> None:
        """So many instructions are to come, and vectors, where anybody knows how many."""
        self.all = self.done + instructions
        self.vectors = None if vectors is None else self.seen + vectors
        self.bars.update(self.derive, total=self.all)
        self.bars.update(self.compare, total=self.vectors, visible=bool(self.vectors or self.seen))

    def step(self, name: str, purpose: str) -> None:
        """A slice of a step begins."""
        self.name = name
        self.bars.update(self.derive, description=f"{name}: {purpose}")

    def at(self, text: str, left: float | None) -> None:
        """What the step is at; ``left`` seconds of the budget."""
        self.left = "" if left is None else _left(left)
        said = ": ".join(filter(None, (self.name, text)))
        self.bars.update(self.derive, description=said, count=self._derived())
        self.log()

    def derived(self, instruction: str) -> None:
        """An instruction's derivation ended."""
        self.done += 1
        self.bars.update(self.derive, completed=self.done, count=self._derived())
        self.log()

    def compared(self, vectors: int) -> None:
        """So many vectors more were compared."""
        self.seen += vectors
        self.bars.update(self.compare, completed=self.seen, visible=True)
        of = "" if self.vectors is None else f" of {human(self.vectors)}"
        pace = _pace(self.bars.tasks[self.compare])
        self.bars.update(self.compare, count=f"{human(self.seen)}{of} vectors{pace}")
        self.log()

    def _derived(self) -> str:
        count = "" if self.all is None else f"{self.done} of {self.all} instructions"
        return ", ".join(filter(None, (count, self.left)))


class CallsProgress(_Bars):
    """A line that says what a product is asked about, and counts the calls; call it with both."""

    def __init__(self, budget: int) -> None:
        super().__init__()
        self.budget = budget
        self.task = self.bars.add_task("beginning", total=None, count="")

    def __enter__(self) -> CallsProgress:
        super().__enter__()
        return self

    def __call__(self, phase: str, calls: int) -> None:
        self.bars.update(self.task, description=phase, count=f"{calls:,} of at most {self.budget:,} calls")
        self.log()


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
        task = self.bars.tasks[self.task]
        left = f", {_left(task.time_remaining)}" if task.time_remaining else ""
        self.bars.update(
            self.task, description=instruction, count=f"{int(task.completed)} of {self.total} kernels{left}"
        )
        self.log()
