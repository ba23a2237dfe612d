"""The devices that there are: those of this machine, what the others need, and those that take a file or a program."""

from __future__ import annotations

from dataclasses import dataclass

from mmaprobe.devices.base import open_device, schemes
from mmaprobe.errors import MmaprobeError
from mmaprobe.evidence.silicon import remark
from mmaprobe.showing import Results, Row, Showing, counted
from mmaprobe.vendors import vendor_called

USAGE = {
    "model": ("model:ARCH or model:FILE.toml", "a parameter file, as a device"),
    "mutant": ("mutant:ARCH/PRIMITIVE/FIELD=VALUE", "a model with one seeded fault"),
    "replay": ("replay:PATH", "recorded inputs and outputs"),
    "process": ("process:COMMAND", "another program over lines or frames"),
    "function": ("function:MODULE:NAME", "a Python callable that computes dot products"),
    "gemm": ("gemm:SCHEDULE?m=M&n=N&k=K", "a whole matrix product in the order of its schedule"),
    "misbehaving": ("misbehaving:KIND?of=DEVICE", "a device that lies, for testing the harness"),
}
"""Schemes that need no hardware: how one is named, and what it is."""


@dataclass(frozen=True, repr=False)
class DeviceRow(Showing):
    """A device that there is, or could be: its name, whether it is here, and what it is or needs."""

    device: str
    here: bool
    what: str

    def in_a_line(self) -> str:
        """The name, and what it is."""
        return f"device {self.device}: {'here' if self.here else 'not here'}: {self.what}"

    def as_row(self) -> Row:
        """The same in three columns."""
        return {"device": self.device, "here": "yes" if self.here else "no", "what": self.what}


def listed() -> Results[DeviceRow]:
    """Every registered scheme: whether a device of it opens here, and what that is."""
    rows: Results[DeviceRow] = Results()
    for scheme in schemes():
        if scheme in USAGE:
            name, what = USAGE[scheme]
            rows.append(DeviceRow(name, True, what))
        else:
            rows += map(_device_row, device_names(scheme))
    return rows


def device_names(scheme: str) -> list[str]:
    """The devices of a scheme that are here, each GPU by number; the scheme's own name where there is none of them."""
    try:
        siblings = getattr(open_device(scheme), "siblings", None)
    except MmaprobeError:
        return [scheme]
    return list(siblings()) if siblings else [scheme]


def gpu_names(device: str) -> list[str]:
    """The GPUs that a device's name stands for: those of its maker that are here for one without a number (``cuda``,
    ``hip:?pack=FOLDER``), with the options of the name; itself for a numbered one; none for what is no GPU, or not
    here."""
    scheme, _, argument = device.partition(":")
    number, mark, options = argument.partition("?")
    if vendor_called(scheme) is None:
        return []
    if number:
        return [device]
    return [f"{name}{mark}{options}" for name in device_names(scheme) if name != scheme]


def _device_row(name: str) -> DeviceRow:
    try:
        device = open_device(name)
        here = [i for i in device.instructions() if device.supports(i)]
        info = device.info()
        what = (
            f"{info.get('model_name', '')} {info.get('architecture', '')}: {counted(len(here), 'instruction')} run here"
        )
        beside = remark(name, info)
        return DeviceRow(name, True, what.strip() + (f"; {beside}" if beside else ""))
    except MmaprobeError as error:
        return DeviceRow(name, False, str(error))
