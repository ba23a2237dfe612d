"""GPUs for the workers of pytest-xdist: a GPU that is named without its number is another one for each worker."""

from __future__ import annotations

from typing import Any

import pytest

DEVICE = "mmaprobe_device"
"""The word of a worker's input that names its device."""


class GpuEach:
    """Gives each worker a GPU of its own; that of a worker which died goes to the one in its place."""

    def __init__(self, names: list[str]) -> None:
        self.names, self.free = names, list(names)
        self.held: dict[str, str] = {}

    @classmethod
    def begin(cls, config: pytest.Config) -> None:
        """Share out the GPUs that ``--device`` stands for, where it has no number."""
        from mmaprobe.devices.listed import gpu_names  # every session of pytest loads the plug-in

        device = str(config.getoption("--device"))
        names = gpu_names(device)
        if names and names != [device]:
            config.pluginmanager.register(cls(names))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Name the worker's device; pytest.UsageError where all GPUs are taken."""
        if not self.free:
            raise pytest.UsageError(f"there are more workers than GPUs ({', '.join(self.names)}): pytest -n auto")
        self.held[node.gateway.id] = node.workerinput[DEVICE] = self.free.pop(0)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take the GPU of a worker that ended."""
        if node.gateway.id in self.held:
            self.free.append(self.held.pop(node.gateway.id))
