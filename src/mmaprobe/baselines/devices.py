"""Whether two runs were on one device, and what else about their surroundings was another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mmaprobe.evidence import silicon
from mmaprobe.evidence.store import Header

NAMING = (
    "architecture", "uuid", "mig", "vendor", "family", "model", "stepping", "model_name", "gpu", "name", "function",
)  # fmt: skip
"""What of an identity names the device; the rest (driver, microcode, clocks, features, a model's parameters) may be
another tomorrow, and whether anything follows from it is what two runs of one device are compared for."""


def other_device(old: Header, new: Header) -> str:
    """How the device of ``new`` is another one than that of ``old``; empty where it is the same.

    A GPU is known by its UUID, whatever its number is today; what has none by the name it was opened with, too.
    Silicon and an emulator of it are two devices; an emulator of another version is one.
    """
    said: list[tuple[str, object, object]] = [("device", old.device, new.device)] if _renamed(old, new) else []
    said += [each for each in _changed(old.identity, new.identity) if each[0] in NAMING]
    before, now = (silicon.kind_of(each.device, each.identity) for each in (old, new))
    said += [(silicon.KEY, before, now)] if before != now else []
    return "; ".join(f"{name} was {was}, is {is_}" for name, was, is_ in said)


def _renamed(old: Header, new: Header) -> bool:
    return old.device != new.device and not ("uuid" in old.identity and "uuid" in new.identity)


def other_reference(old: Header, new: Header) -> str:
    """How the reference of a campaign is another one than that of an earlier one, or computes by other parameters;
    empty where it is the same, and of runs that have none."""
    if not (old.is_campaign and new.is_campaign):
        return ""
    before, now = map(_reference, (old, new))
    was, is_ = (each.identity.get("parameters") for each in (before, now))
    said = [other_device(before, now), "its parameters are others" if was != is_ else ""]
    return "; ".join(filter(None, said))


def _reference(campaign: Header) -> Header:
    """The reference of a campaign as the header of a run of it would name it."""
    identity = campaign.settings.get("reference_identity")
    said = {name: str(value) for name, value in identity.items()} if isinstance(identity, Mapping) else {}
    return Header(str(campaign.settings["reference"]), said, "", 0)


def surroundings(old: Header, new: Header) -> list[str]:
    """What else differs about how two runs of a device were made, a line each: no difference of what was found."""
    number = [] if _renamed(old, new) else [("device", old.device, new.device)]
    pairs = [
        *number, ("mmaprobe", old.version, new.version), ("seed", old.seed, new.seed),
        *(each for each in _changed(old.identity, new.identity) if each[0] not in NAMING),
        *((f"toolchain: {name}", *rest) for name, *rest in _changed(old.toolchain, new.toolchain)),
        *((f"settings: {name}", *rest) for name, *rest in _changed(old.settings, new.settings)),
    ]  # fmt: skip
    return [f"{name}: {before} -> {now}" for name, before, now in pairs if before != now]


def _changed(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[tuple[str, object, object]]:
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield name, old.get(name, "not said"), new.get(name, "not said")
