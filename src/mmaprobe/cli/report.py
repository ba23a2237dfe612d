"""The command that says what a run found: in the terminal, or as a page."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmaprobe.cli.evidence import evidence_show
from mmaprobe.cli.plain_help import PlainCommand
from mmaprobe.cli.terminal import JsonOption, app, emit, out, path, refuse, tell
from mmaprobe.exit_codes import INCONCLUSIVE
from mmaprobe.showing import counted

if TYPE_CHECKING:
    from mmaprobe.evidence.store import Store
    from mmaprobe.report.page.page import Beside, PageContent, SideRow

PAGE = "report.html"
"""The page's name in the run's folder, where no other file is named."""
HTML = "--html"
UNNAMED = "."
"""What stands for no FILE behind ``--html``; a folder's name, which no page can have."""


class ReportCommand(PlainCommand):
    """A command whose ``--html`` may stand without a FILE: at the end, or before another option."""

    def parse_args(self, context: Any, words: list[str]) -> Any:
        """As click's, each bare ``--html`` with a word behind it."""
        filled: list[str] = []
        for word, after in zip_longest(words, words[1:], fillvalue="-"):
            filled += [word, UNNAMED] if word == HTML and after.startswith("-") else [word]
        return super().parse_args(context, filled)


@app.command("report", cls=ReportCommand)
def report_command(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(metavar="RUN", parser=path, help="Evidence folder of a run.")],
    html: Annotated[
        Path | None,
        typer.Option(HTML, metavar="[FILE]", parser=path, help=f"Write one HTML page; without FILE it is RUN/{PAGE}."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="RUN", parser=path, help="Beside this older run: what changed since."),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Say what a run found: in the terminal, or as one page with pictures that needs no network."""
    if html is None:
        refuse(context, ("against",), f"goes with {HTML}; in the terminal: mmaprobe evidence diff OLD NEW")
        return evidence_show(run, as_json)
    from mmaprobe.evidence.store import Store
    from mmaprobe.report.page import filling, page

    chosen = html != Path(UNNAMED)
    if chosen:
        filling.refuse_name(html, html / PAGE)
    store = Store.open(run)
    if not store.parts:
        nothing = f"mmaprobe: {run} tells of no instruction yet; go on with: mmaprobe run --resume --out {run}"
        tell(nothing)
        return INCONCLUSIVE
    file = html if chosen else store.path / PAGE
    content = _content(store, None if against is None else Store.open(against))
    size = filling.write(page.render(content), file)
    if as_json:
        emit({"schema": 1, "kind": "mmaprobe page", "page": str(file), "bytes": size, **page.counts(content)})
    else:
        shown = page.counts(content)
        instructions = counted(shown["instructions"], "instruction")
        said = f"{instructions}, {counted(shown['rivals'], 'rival')}, {counted(shown['mismatches'], 'mismatch')}"
        out().print(f"{file}: {said}")
    return 0


def _content(store: Store, older: Store | None) -> PageContent:
    """Everything that the page of a run shows."""
    from mmaprobe.baselines.grounds import gate_lines
    from mmaprobe.evidence.store import read_manifest
    from mmaprobe.report.page.cards import cards_of
    from mmaprobe.report.page.page import PageContent
    from mmaprobe.report.page.provenance import command_of, files_of
    from mmaprobe.runs.asking import answers_of
    from mmaprobe.runs.kept import kept_rows, kept_summary
    from mmaprobe.runs.open_questions.answer_rows import rows_of

    asked = [each for each in answers_of(store) if each.status != "not here"]
    return PageContent(
        summary=kept_summary(store),
        header=store.header,
        finished=store.settled,
        cards=cards_of(store, kept_rows(store)),
        questions=rows_of(asked, str(store.header.identity.get("architecture", ""))),
        lines=tuple(gate_lines(store)),
        files=files_of(read_manifest(store.path)),
        command=command_of(store.header),
        beside=None if older is None else _beside(older, store),
    )


def _beside(older: Store, store: Store) -> Beside:
    """What changed from the older run, and every instruction's counts in both."""
    from mmaprobe.baselines.difference import compare_runs
    from mmaprobe.baselines.facts import facts_of
    from mmaprobe.baselines.wording import differences
    from mmaprobe.report.page.page import Beside, ShownChange
    from mmaprobe.report.vectors import vector_text

    found = compare_runs(facts_of(older), facts_of(store))
    changes = [
        ShownChange(f"{each.name} {each.about}".strip(), each.kind, each.lines)
        if each.vector is None
        else ShownChange(
            each.name, each.kind, each.lines, vector_text(each.vector), f"{each.other:#x}", f"{each.vector.d:#x}"
        )
        for each in found.changes
    ]
    other = (f"of two devices: {found.other_device}",) if found.other_device else ()
    remarks = tuple(f"{name}: {said}" for name, said in found.remarks)
    total = f"There {'are' if len(changes) > 1 else 'is'} {differences(len(changes))}"
    total += f"; of {counted(found.alike, 'instruction')} both say the same"
    return Beside(
        found.old.name, total, (*other, *found.context, *remarks), tuple(changes), tuple(_sides(older, store))
    )


def _sides(older: Store, store: Store) -> Iterator[SideRow]:
    """Every row of both runs by its instruction, of however many control states it tells in each."""
    from mmaprobe.report.page.page import SideRow
    from mmaprobe.runs.kept import kept_rows

    old, new = ({row.instruction.partition(" ")[0]: row for row, _ in kept_rows(each)} for each in (older, store))
    for name in dict.fromkeys((*new, *old)):
        before, after = (
            f"{side[name].outcome}, {side[name].vectors:,} vectors, {side[name].mismatches:,} mismatches"
            if name in side
            else ""
            for side in (old, new)
        )
        yield SideRow(name, before, after, _told(old.get(name)) != _told(new.get(name)))


def _told(row: Any) -> Any:
    """What of a row is a difference."""
    return None if row is None else (row.outcome, dict(row.phrases))
