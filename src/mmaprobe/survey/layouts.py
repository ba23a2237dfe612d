"""Open layouts settled on hardware: the kernel of each claim is asked, and exactly one may be right."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.layout_claims import KEY
from mmaprobe.catalog.layouts import layout, operands
from mmaprobe.devices.base import Device, has
from mmaprobe.devices.gpu.known_answer import WrongAnswerError
from mmaprobe.devices.gpu.open_layouts import OpenLayouts
from mmaprobe.evidence.records import Finding
from mmaprobe.probing.suite import QUESTIONS, probe, probe_layout_alone, probe_one_hot_alone

if TYPE_CHECKING:
    from typing_extensions import TypeIs


class Settles(Device, Protocol):
    """A GPU, which knows what is open on it, and can run without known answers."""

    @property
    def layouts(self) -> OpenLayouts:
        """What is open, and what was settled."""
        ...

    def unproven(self) -> AbstractContextManager[None]:
        """No batch inside is held against a known answer."""
        ...


def settles(device: Device) -> TypeIs[Settles]:
    """Whether it knows what is open on it."""
    return has(device, "layouts", "unproven")


def unsettled(device: Device, made: Instruction) -> bool:
    """Whether a device would run an instruction once its open layout is settled."""
    return settles(device) and bool(device.layouts.claims(made))


def settle(device: Device, made: Instruction, seed: int = 0) -> Finding:
    """Which claim of an instruction's open layout is right; the device runs it so from here on.

    Each claim's kernel must give known answers, in a child process first, and
    the product of random tiles; then one value of A at a time shows which k it
    meets.  ``bounded``: one claim is right in all of it, its name is the answer's
    ``claim``.  ``contradictory``: none is, and the text says where values go.
    ``inconclusive``: several are.
    """
    assert settles(device)
    claims = device.layouts.claims(made)
    architecture = device.info()["architecture"]
    whole = {each.modifier[KEY]: _wrong(device, each, seed) for each in claims}
    single = {}
    for each in claims:
        with device.unproven():
            single[each.modifier[KEY]] = probe_one_hot_alone(device, each, seed)
    right = [name for name in whole if not whole[name] and single[name].status == "bounded"]
    answer = {
        "claim": right[0] if len(right) == 1 else None,
        "claims": {name: {"tiles": why or "as named", "one_hot": single[name].answer} for name, why in whole.items()},
    }
    tiles, launches = (sum(getattr(one, name) for one in single.values()) for name in ("tiles", "launches"))

    def found(status: Any, text: str) -> Finding:
        return Finding("layout", status, answer, text, tiles=tiles, launches=launches)

    if len(right) > 1:
        return found("inconclusive", f"{' and '.join(right)} both answer right: nothing here tells them apart")
    if not right:
        plain = min(single, key=lambda name: str(single[name].answer).count("?"))
        also = f", but {whole[plain]}" if single[plain].status == "bounded" else ""
        return found("contradictory", f"no claim is right ({', '.join(single)}); by {plain} {single[plain].text}{also}")
    device.layouts.settle(made, right[0])
    others = ", ".join(name for name in single if name != right[0])
    by = next(each for each in claims if each.modifier[KEY] == right[0])
    return found("bounded", f"settled here: layout={right[0]}, not {others}; {_where(by, architecture)}")


def _wrong(device: Settles, by: Instruction, seed: int) -> str:
    """Empty where a claim's kernel gives known answers and products; else how it failed."""
    try:
        found = probe_layout_alone(device, by, seed)
    except WrongAnswerError as error:
        return str(error)
    return "" if found.status == "bounded" else found.text


def _where(by: Instruction, architecture: str) -> str:
    """The records of the data that say so, which an edit makes the shipped layout."""
    found = [layout(by, architecture, operand) for operand in operands(by)]
    names = ", ".join(dict.fromkeys(f"{one.name} ({one.source})" for one in found if one.claim))
    return f"elsewhere `{by.id}` runs so; in catalog/data/layouts drop the other claims and the status of {names}"


def probe_open(
    device: Device, made: Instruction, questions: Sequence[str] | None = None, seed: int = 0
) -> dict[str, Finding]:
    """``probe`` of an instruction whose layout is open: it is settled first, and where it is not that is all."""
    found = settle(device, made, seed)
    rest = [name for name in (QUESTIONS if questions is None else questions) if name != "layout"]
    if found.status != "bounded" or not rest:
        return {"layout": found}
    return {"layout": found, **probe(device, made, rest, seed)}
