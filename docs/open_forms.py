"""Write ``docs/open_forms.md``: ``python docs/open_forms.py [--check]``.

Which forms have no datapath and which layouts are open says the catalog; what they may compute, who says so and what
decides says ``open_forms.toml``; the vectors between two answers are searched for, and their results computed.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

from mmaprobe.catalog.architectures import every
from mmaprobe.catalog.formula import Formula
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lanes import format_lanes
from mmaprobe.catalog.layouts import candidates as fragments
from mmaprobe.catalog.layouts import claims, layout, open_reason, operands
from mmaprobe.catalog.lookup import architectures, forms, instruction, instructions
from mmaprobe.catalog.names import device_of
from mmaprobe.catalog.search import short
from mmaprobe.catalog.variants import variants
from mmaprobe.derivation.dense_view import dense_form
from mmaprobe.devices.base import open_device
from mmaprobe.errors import UsageError
from mmaprobe.operands.batch import Batch, Bits, Witness, take
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import basis_for, datapath_for
from mmaprobe.parameters.table import from_table, to_table
from mmaprobe.report.tables.open_questions import word
from mmaprobe.report.vectors import vector_text
from mmaprobe.runs.open_questions.contest import Ring, Rival
from mmaprobe.survey.file_comparison import compare_datapaths

HERE = Path(__file__).parent
PAGE, DATA = HERE / "open_forms.md", HERE / "open_forms.toml"
WITH_VARIANTS = ("sm_100a", "sm_103a", "sm_107a", "sm_110a")
"""Architectures of which a form's other sizes and placements have open layouts that its first instruction has not."""
SHOWN = 4
"""Opcodes of a group that the page writes out: they trade length, no answer depends on it."""
_SIZE = re.compile(r"(?<=\d)n\d+|\.collector::[ab]::\w+")
"""What of an id says nothing of a layout: N, and what a collector keeps."""
_WORD = re.compile(r"\{([\w/*+ -]+)\}")
GROUP = 16
"""Products that an FP4 unit sums exactly."""
_GROUPS = re.compile(r"groups of 16 in (\d+)\.\.(\d+)")

HEAD = """# Forms without a model, and open layouts

Written by `docs/open_forms.py` from the catalog and `docs/open_forms.toml`. A form is open where no datapath ships for
it: nobody has measured, recorded or published what it computes. Forms stand in groups by architecture, kind of
instruction, formats and block scales; the forms of a group have the same candidates. A candidate is a datapath that
ships for a relative, or a variant of one, with who says so; "nobody" marks a variant that no source claims. The vectors
are those that tell the candidates apart as far as any found does: the project's own search finds them, makes them
simple, and the engine computes what each candidate gives. All results are numbers; NaN codes are decided later.

`mmaprobe derive`, with the device, needs no candidate: it finds what fits the answers. The vectors say what to look
for, and a device that answers one of them rules the others out. Vectors are written as the command line takes them,
lanes that are not written being zero; of a sparse form they are those of the kept lanes. Beside them stands d.
"""


LAYOUTS = """## Open layouts

A form whose layout is open is refused, with one line that says why. Where the catalog has claims each has a kernel, and
`mmaprobe probe ID -d DEVICE --question layout`, or the step `layouts` of `mmaprobe run`, says which is right. Where it
has none no kernel is rendered. The claims below are then those of the sources; one becomes a kernel as a `[[fragment]]`
with a `claim` ([layouts](layouts.md#the-files)), and the same probe decides. An experiment takes several tiles where a
format has too few numbers to name every place:
"""


@dataclass(frozen=True)
class OpenForm:
    """A form of an architecture without a datapath."""

    architecture: str
    made: Instruction

    @property
    def facts(self) -> dict[str, Any]:
        """What ``applies`` may name."""
        made, form = self.made, dense_form(self.made)
        kind, _, last = made.family.rpartition(".")
        table = "yes" if "decompress::lut::b" in made.opcode else "no"
        home = every().line(self.architecture)[-1]
        return {
            "architecture": home, "kind": kind, "last": last, "table": table, "k": form.k,
            "a": made.a, "b": made.b, "c": made.c or "", "d": made.d, "scale": made.scale or "",
        }  # fmt: skip


@dataclass(frozen=True)
class Group:
    """Forms of like properties, on architectures that are alike."""

    key: tuple[Any, ...]
    forms: tuple[OpenForm, ...]

    @property
    def architectures(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(form.architecture for form in self.forms))

    @property
    def first(self) -> OpenForm:
        """The form that stands for the group: of the largest K the first."""
        return max(self.forms, key=lambda form: dense_form(form.made).k)

    @property
    def candidates(self) -> tuple[Mapping[str, Any], ...]:
        return candidates_of(self.first)


@cache
def data() -> Mapping[str, Any]:
    """The data file, with [common] filled in."""
    found = tomllib.loads(DATA.read_text(encoding="utf-8"))
    common = found.pop("common")
    filled: Mapping[str, Any] = {key: _filled(value, common) for key, value in found.items()}
    return filled


def _filled(value: Any, known: Mapping[str, Any]) -> Any:
    """The value with what ``{name}`` or ``{formula}`` in its texts says, where all of its names are known."""
    if isinstance(value, dict):
        return {key: _filled(item, known) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, known) for item in value]
    if not isinstance(value, str):
        return value
    if whole := _WORD.fullmatch(value):
        return _said(whole[1], known, value)
    return _WORD.sub(lambda found: str(_said(found[1], known, found[0])), value)


def _said(text: str, known: Mapping[str, Any], otherwise: str) -> Any:
    if text in known:
        return _filled(known[text], known)
    formula = Formula(text)
    numbers = {name: known[name] for name in formula.names if name in known}
    return int(formula(**numbers)) if numbers.keys() == formula.names else otherwise


def _holds(applies: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    return all(
        any(
            fnmatchcase(facts[key], one) if isinstance(one, str) else facts[key] == one
            for one in (wanted if isinstance(wanted, list) else [wanted])
        )
        for key, wanted in applies.items()
    )


def said_of(form: OpenForm, table: str) -> tuple[Mapping[str, Any], ...]:
    """The records of a table of the data file that hold for a form."""
    return tuple(record for record in data()[table] if _holds(record["applies"], form.facts))


def candidates_of(form: OpenForm) -> tuple[Mapping[str, Any], ...]:
    return said_of(form, "candidate")


def names_of(form: OpenForm) -> tuple[str, ...]:
    """The names of a form's candidates."""
    return tuple(candidate["name"] for candidate in candidates_of(form))


# -- what is open


def is_open(home: str, made: Instruction) -> bool:
    """Whether no datapath ships for an instruction."""
    try:
        basis_for(home, made)
    except UsageError:
        return True
    return False


@cache
def open_forms() -> tuple[OpenForm, ...]:
    """Every form without a datapath."""
    return tuple(OpenForm(home, made) for home in architectures() for made in instructions(home) if is_open(home, made))


@cache
def _formats_of(home: str, family: str) -> tuple[str, ...]:
    """The formats that a family of an architecture takes as A or B."""
    made = [each for each in instructions(home) if each.family == family]
    return tuple(dict.fromkeys(name for each in made for name in (each.a, each.b)))


@cache
def groups() -> tuple[Group, ...]:
    """The open forms by architecture (those that are alike together), kind, formats, scales and candidates."""
    found: dict[tuple[Any, ...], list[OpenForm]] = {}
    for form in open_forms():
        facts = form.facts
        formats = _formats_of(form.architecture, form.made.family)
        of_sum = (facts["c"], facts["d"], facts["scale"], facts["table"])
        found.setdefault((facts["architecture"], facts["kind"], formats, *of_sum, names_of(form)), []).append(form)
    return tuple(Group(key, tuple(inside)) for key, inside in found.items())


# -- candidates as datapaths


def rivals_of(form: OpenForm) -> list[Rival]:
    """Each candidate's datapath of the form (of a sparse one's kept lanes), without one that another has already."""
    found: dict[Datapath, Rival] = {}
    for candidate in candidates_of(form):
        path = datapath_of(candidate, form)
        found.setdefault(path, Rival(candidate["name"], path))
    return list(found.values())


def datapath_of(candidate: Mapping[str, Any], form: OpenForm) -> Datapath:
    """What a candidate says that a form computes, NaN codes apart; UsageError where that is no datapath."""
    made = dense_form(form.made)
    known = form.facts | {"id": made.id, "lanes": f"0..{made.k - 1}", "scale_size": made.scale_size}
    known["block"] = f"0..{made.scale_size - 1}"
    table = _relative(_filled(candidate["like"], known), form) if "like" in candidate else _chain(made)
    table |= _with_groups(_filled(candidate.get("set", {}), known))
    table |= {"a": made.a, "b": made.b, "c": made.c or "none", "d": made.d, "k": made.k}
    if made.scale:
        table["scale"] = {"format": made.scale, "size": made.scale_size, "where": candidate.get("where", "product")}
    return from_table(table, candidate["name"])


def _chain(made: Instruction) -> dict[str, Any]:
    """A chain of fused multiply-adds from C, k ascending, each rounded to the result's format."""
    return {"tree": {"node": "fma", "acc": "c", "lanes": f"0..{made.k - 1}", "to": {"format": made.d}}}


def _relative(text: str, form: OpenForm) -> dict[str, Any]:
    """The datapath that ships for a relative, its steps, and the order of their lanes, repeated over all lanes."""
    home, _, named = text.partition(" ")
    here = {made.id: made for made in instructions(home)}
    path = datapath_for(home, here.get(form.made.id) or instruction(named, home))
    table = to_table(path) | {"step": path.step_length}
    if path.order is not None:
        k = dense_form(form.made).k
        table["order"] = format_lanes(tuple(start + lane for start in range(0, k, path.k) for lane in path.order))
    table.pop("special", None)
    return table


def _with_groups(value: Any) -> Any:
    """The value with ``groups of 16 in 0..63`` in a list of terms as so many scaled exact sums."""
    if isinstance(value, dict):
        return {key: _with_groups(item) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    out: list[Any] = []
    for item in value:
        named = _GROUPS.fullmatch(item) if isinstance(item, str) else None
        starts = range(int(named[1]), int(named[2]), GROUP) if named else ()
        out += [{"node": "exact", "terms": [f"{n}..{n + GROUP - 1}"], "scaled": True} for n in starts]
        out += [] if named else [_with_groups(item)]
    return out


# -- what decides


@dataclass(frozen=True)
class Decided:
    """Vectors (dense form) that tell rivals apart, with d (rivals, n) by each."""

    rivals: tuple[Rival, ...]
    vectors: Batch
    table: Bits

    @property
    def alike(self) -> list[tuple[str, str]]:
        """Rivals that no vector tells apart."""
        both = combinations(range(len(self.rivals)), 2)
        same = [(i, j) for i, j in both if (self.table[i] == self.table[j]).all()]
        return [(self.rivals[i].name, self.rivals[j].name) for i, j in same]


def decided(form: OpenForm) -> Decided:
    """What tells the candidates of a form apart: few vectors, each as simple as it can be."""
    return _settled(form.architecture, dense_form(form.made), tuple(rivals_of(form)))


_SETTLED: dict[tuple[Rival, ...], Decided] = {}


def _settled(home: str, made: Instruction, rivals: tuple[Rival, ...]) -> Decided:
    """Searched once for the same datapaths, whatever the instruction is called."""
    if rivals not in _SETTLED:
        ring = Ring(open_device(f"model:{home}"), made, rivals, seed=0)
        _SETTLED[rivals] = Decided(rivals, *ring.settling(None, search=True))
    return _SETTLED[rivals]


def undecided(form: OpenForm) -> list[tuple[str, str]]:
    """Candidates of which no vector is known to show that they are different functions."""
    paths = [(rival.name, rival.datapath) for rival in rivals_of(form) if rival.datapath is not None]
    return [
        (one, other)
        for (one, first), (other, second) in combinations(paths, 2)
        if compare_datapaths(first, second).verdict != "another function"
    ]


# -- open layouts


@dataclass(frozen=True)
class OpenLayout:
    """Forms of which the same is not known of where their operands lie: why, and the operands by form."""

    reasons: tuple[str, ...]
    forms: tuple[OpenForm, ...]


def open_operands(form: OpenForm) -> dict[str, str]:
    """Why the layout of each operand is open, of those that are."""
    found = {}
    for operand in operands(form.made):
        said = f"{form.made.id}: the layout of {operand} is open: "
        try:
            layout(form.made, form.architecture, operand)
        except UsageError as error:
            if str(error).startswith(said):
                found[operand] = str(error).removeprefix(said).partition("; claims: ")[0]
    return found


@cache
def with_open_layout() -> tuple[OpenForm, ...]:
    """Every form whose first instruction has an operand of which the layout is open."""
    every_form = (OpenForm(home, made) for home in architectures() for made in instructions(home))
    return tuple(form for form in every_form if open_reason(form.made, form.architecture))


@cache
def open_layouts() -> tuple[OpenLayout, ...]:
    """The forms with an open layout, by what is not known of it."""
    found: dict[tuple[str, ...], list[OpenForm]] = {}
    for form in with_open_layout():
        found.setdefault(tuple(sorted(set(open_operands(form).values()))), []).append(form)
    return tuple(OpenLayout(reasons, tuple(inside)) for reasons, inside in found.items())


@cache
def open_in_variants() -> Mapping[str, Counter[str]]:
    """By reason and architecture: forms of which some other size or placement has it, and the first instruction not."""
    found: dict[str, Counter[str]] = {}
    for home in WITH_VARIANTS:
        for form in forms(home):
            placed = {_SIZE.sub("", made.id): made for made in variants(form, home)}
            said = {open_reason(made, home).partition(" is open: ")[2] for made in placed.values()}
            for reason in sorted(said - {"", *open_operands(OpenForm(home, form.first)).values()}):
                found.setdefault(reason, Counter())[home] += 1
    return found


def layout_said(reason: str) -> Mapping[str, Any] | None:
    """What the data file says of a reason."""
    found = [record for record in data()["layout"] if record["reason"] == reason]
    return found[0] if found else None


# -- the page


def page() -> str:
    """The whole page."""
    lines = [HEAD, *_summary()]
    by_home: dict[tuple[str, ...], list[Group]] = {}
    for group in groups():
        by_home.setdefault(group.architectures, []).append(group)
    for homes, inside in by_home.items():
        lines.append(f"\n## {', '.join(homes)}")
        for group in inside:
            lines += ["", *_about(group)]
    return "\n".join([*lines, "", *_layouts(), ""])


def _summary() -> Iterator[str]:
    opened = Counter(form.architecture for form in with_open_layout())
    unknown = Counter(form.architecture for form in open_forms())
    yield "| architecture | open forms | groups | with rivals | vectors that decide | forms with an open layout |"
    yield "|---|---|---|---|---|---|"
    for home in architectures():
        inside = [group for group in groups() if home in group.architectures]
        numbers = (unknown[home], len(inside), *_rivalry(inside), opened[home])
        if any(numbers):
            yield f"| {home} | {' | '.join(str(number or '') for number in numbers)} |"
    numbers = (unknown.total(), len(groups()), *_rivalry(groups()), opened.total())
    yield f"| all | {' | '.join(map(str, numbers))} |"
    once = f"{_once(open_forms())} open forms and {_once(with_open_layout())} with an open layout"
    yield f"\nArchitectures that are alike share groups and vectors. Counted once there are {once}."


def _rivalry(inside: Sequence[Group]) -> tuple[int, int]:
    """How many groups have candidates that stand against each other, and by how many vectors they are decided."""
    vectors = [decided(group.first).vectors.size for group in inside if len(group.candidates) > 1]
    return len(vectors), sum(vectors)


def _once(found: Sequence[OpenForm]) -> int:
    """How many there are, those of architectures that are alike counted once."""
    return len({(form.facts["architecture"], form.made.id) for form in found})


def title(group: Group) -> str:
    """What the forms of a group have in common."""
    facts = group.first.facts
    _, kind, _, c, d, scale, table, _ = group.key
    formats = dict.fromkeys(name for form in group.forms for name in (form.made.a, form.made.b))
    depths = sorted({form.made.k for form in group.forms})
    of = f"{kind} of {', '.join(formats)} to {d}" + (f" from C of {c}" if c != d else "")
    more = [f"scales {scale}"] * bool(scale) + ["B from a table"] * (table == "yes")
    return ", ".join([of, *more, f"K {' '.join(map(str, depths))}"]) + (" (s1z4m11)" if facts["a"] == "ti16" else "")


def _about(group: Group) -> Iterator[str]:
    yield f"### {group.first.facts['architecture']}: {title(group)}\n"
    ids = list(dict.fromkeys(f"`{short(form.made.id)}`" for form in group.forms))
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    yield f"{len(ids)} form{'s' * (len(ids) > 1)}: {', '.join(ids[:SHOWN])}{more}.\n"
    if known := [record["text"] for record in said_of(group.first, "known")]:
        yield " ".join(known) + "\n"
    yield "| candidate | who says so |\n|---|---|"
    yield from (f"| {candidate['name']} | {'; '.join(candidate['sources'])} |" for candidate in group.candidates)
    yield ""
    if len(group.candidates) > 1:
        yield from _deciding(group)
    yield from (f"{record['text']}\n" for record in said_of(group.first, "experiment"))
    yield from _asked(group.first)


def _deciding(group: Group) -> Iterator[str]:
    """The vectors, and whether every form's candidates are different functions."""
    found, made = decided(group.first), group.first.made
    kept = ", kept lanes" if made.chunk else ""
    yield f"| vector of `{short(made.id)}`{kept} | {' | '.join(rival.name for rival in found.rivals)} |"
    yield f"|---|{'---|' * len(found.rivals)}"
    for at in range(found.vectors.size):
        words = " | ".join(word(made.d, int(d)) for d in found.table[:, at])
        yield f"| `{written(take(found.vectors, [at]))}` | {words} |"
    yield ""
    for one, other in found.alike:
        yield f"No vector was found that tells *{one}* from *{other}*.\n"
    left = dict.fromkeys(f"`{short(form.made.id)}`" for form in group.forms if undecided(form))
    count = len({form.made.id for form in group.forms})
    if left:
        yield f"Some candidates are not told apart on {', '.join(left)}.\n"
    elif count > 1:
        yield f"On each of the {count} forms a vector tells every two candidates apart.\n"


def written(vector: Batch) -> str:
    """A vector without its last lanes of +0 times +0."""
    whole = Witness.of(vector, 0)
    last = max((lane for lane, pair in enumerate(zip(whole.a, whole.b, strict=True)) if pair != (0, 0)), default=0)
    return vector_text(replace(whole, a=whole.a[: last + 1], b=whole.b[: last + 1]))


def _asked(form: OpenForm) -> Iterator[str]:
    """The command that asks a device; first that for the layout where it is open."""
    name, device = short(form.made.id), device_of(form.architecture)
    derive = f"`mmaprobe derive '{name}' -d {device}`"
    if not open_reason(form.made, form.architecture):
        yield f"To ask: {derive}"
    elif claims(form.made, form.architecture):
        yield f"Its [layout](#open-layouts) is open. To ask: `mmaprobe probe '{name}' -d {device} --question layout`,"
        yield f"then {derive}"
    else:
        yield f"There is no kernel before its [layout](#open-layouts) is settled. To ask then: {derive}"


def _layouts() -> Iterator[str]:
    yield LAYOUTS
    yield from (f"- *{name}*: {text}" for name, text in data()["experiments"].items())
    for found in open_layouts():
        yield ""
        yield from _about_layout(found)
    yield "\n### In other sizes and placements alone\n"
    yield "The first instruction of these forms does not have the reason; some of their sizes or placements do."
    for reason, counts in open_in_variants().items():
        where = ", ".join(f"{home} {count}" for home, count in counts.items())
        yield f"\n#### {reason[:1].upper()}{reason[1:]}: {counts.total()}\n"
        yield f"{where}.\n"
        yield from _said_of_layout(reason)


def _about_layout(found: OpenLayout) -> Iterator[str]:
    where: dict[str, list[OpenForm]] = {}
    for form in found.forms:
        where.setdefault(form.architecture, []).append(form)
    named = sorted({operand for form in found.forms for operand in open_operands(form)})
    kinds = sorted({form.facts["kind"] for form in found.forms})
    yield f"### {', '.join(named)} of {', '.join(kinds)} on {', '.join(where)}: {len(found.forms)}\n"
    example = f"`{short(found.forms[0].made.id)}`"
    yield f"{', '.join(f'{home} {len(inside)}' for home, inside in where.items())}; such as {example}.\n"
    for reason in found.reasons:
        yield from _said_of_layout(reason)
    if claims(found.forms[0].made, found.forms[0].architecture):
        yield from _claimed(found)


def _said_of_layout(reason: str) -> Iterator[str]:
    """Why a layout is open; who claims what of it and which experiment decides, where the catalog has no claims."""
    yield f"*{reason[:1].upper()}{reason[1:]}.*\n"
    record = layout_said(reason)
    if record is None:
        return
    if record["sources"]:
        yield "| claim | who says so |\n|---|---|"
        yield from (f"| {claim} | {source} |" for claim, source in record["sources"])
        yield ""
    yield f"It is decided by the experiment *{record['experiment']}*."


def _claimed(found: OpenLayout) -> Iterator[str]:
    """The claims that the catalog has, operand by operand, and the command that settles them."""
    form = found.forms[0]
    yield "| operand | claim | who says so |\n|---|---|---|"
    for operand in open_operands(form):
        for each in fragments(form.made, form.architecture, operand):
            yield f"| {operand} | `{each.claim}` | {each.source} |"
    device = device_of(form.architecture)
    yield f"\nTo ask: `mmaprobe probe '{short(form.made.id)}' -d {device} --question layout`"


def main(arguments: Sequence[str]) -> int:
    """Write the page, or with ``--check`` say by 1 that it would change."""
    text = page()
    if list(arguments) == ["--check"]:
        return int(text != PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
