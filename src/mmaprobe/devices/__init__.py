"""Devices: anything that runs an instruction on a batch; called, this room lists what is in it: ``devices()``."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mmaprobe.devices.listed import DeviceRow
    from mmaprobe.showing import Results


class _Room(ModuleType):
    """A package that is a public verb, too: the name stands for both."""

    def __call__(self) -> Results[DeviceRow]:
        """The devices: those of this machine, what the others need, and those that take a file or a program.

        >>> import mmaprobe
        >>> [each.device for each in mmaprobe.devices() if each.device.startswith("model")]
        ['model:ARCH or model:FILE.toml']
        """
        from mmaprobe.devices.listed import listed

        return listed()


sys.modules[__name__].__class__ = _Room
