"""Whether silicon computed what a device answered: the key ``silicon`` of every identity.

``yes``: a unit of this machine, or of a GPU in it.  ``yes, says its user``: a program of which its user says so.
``no, a model``: a parameter file, whole or with a fault.  ``no, emulated by NAME``: an emulator, with its version.
``not known``: any other program, and any function.  Nothing but silicon is ever the basis ``measured``, and what
silicon answered is never held together with what something else did.

An identity of several devices (a campaign's) has each value once, with ``; `` between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from mmaprobe.vendors import every

Kind = Literal["silicon", "emulated", "model", "unknown"]

KEY = "silicon"
"""The key of an identity."""
YES = "yes"
SAID = "yes, says its user"
MODEL = "no, a model"
UNKNOWN = "not known"
_EMULATED = "no, emulated by "
_KINDS: Mapping[str, Kind] = {YES: "silicon", SAID: "silicon", MODEL: "model"}
_WITHOUT_KEY: Mapping[Kind, str] = {"silicon": YES, "model": MODEL, "unknown": UNKNOWN}
TO_SAY = "process:silicon=yes COMMAND says that it is"


def emulated(name: str) -> str:
    """The value of an emulator called ``name``, with its version."""
    return _EMULATED + (" ".join(name.replace(";", ",").split()) or "a program without a name")


def said_by(device: str, identity: Mapping[str, str]) -> str:
    """The value of the key, of an identity without it what it comes to."""
    said = identity.get(KEY)
    return _WITHOUT_KEY[_without_key(device, identity)] if said is None else str(said)


def together(values: Iterable[str]) -> str:
    """Several values as one: each once."""
    return "; ".join(sorted(set(values)))


def kind_of(device: str, identity: Mapping[str, str]) -> Kind:
    """What computed the answers of a device with this name and identity.

    An identity without the key is of an older version, or of somebody else's device.  It is a model where it names
    parameters, silicon where it is a recording, of the CPU or of a known maker's GPU, and else unknown.
    """
    kinds: set[Kind] = {_kind(each) for each in said_by(device, identity).split("; ")}
    return kinds.pop() if len(kinds) == 1 else "unknown"


def _kind(said: str) -> Kind:
    return "emulated" if said.startswith(_EMULATED) else _KINDS.get(said, "unknown")


def _without_key(device: str, identity: Mapping[str, str]) -> Kind:
    if "parameters" in identity:
        return "model"
    own = {"cpu", *(vendor.scheme for vendor in every())}
    if "recorded" in identity or device.partition(":")[0] in own:
        return "silicon"
    return "unknown"


def remark(device: str, identity: Mapping[str, str]) -> str:
    """What has to be said beside a device's name wherever it stands; empty for silicon and for models, whose name says
    what they are."""
    kind, said = kind_of(device, identity), str(identity.get(KEY, ""))
    if kind == "emulated":
        return f"emulated by {said.removeprefix(_EMULATED)}"
    if kind == "unknown":
        return "not known to be silicon"
    return "silicon, as its user says" if SAID in said else ""


def notice(device: str, identity: Mapping[str, str]) -> str:
    """The line of every report of a device that is not silicon, or of which only its user says so; else empty."""
    said, kind = remark(device, identity), kind_of(device, identity)
    if kind == "emulated":
        return f"EMULATED: {device} is {said}; nothing here is measured"
    if kind == "unknown":
        process = device.startswith("process:")
        return f"{device} is {said}; nothing here is measured" + (f" ({TO_SAY})" if process else "")
    return f"{device} is {said}" if said else ""
