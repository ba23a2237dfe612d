"""Questions side by side: coroutines that ask in rounds; what is asked in one round goes out together.

A coroutine that wants answers yields its requests and goes on when they have been
carried out.  ``together`` runs several as one, so that all of a suite's questions
are one coroutine, and each of its rounds one launch.  Everything happens in a
fixed order: the same device gets the same launches every time.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Sequence
from dataclasses import dataclass
from types import coroutine
from typing import Any, TypeVar

from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.probing.session.vectors import Vector

T = TypeVar("T")


@dataclass(eq=False)
class Request:
    """What one question wants from the next launch: vectors, or whole tiles (``answer``: their D)."""

    question: str
    vectors: Sequence[Vector] = ()
    tiles: Batch | None = None
    answer: Bits | None = None


Asking = Coroutine[list[Request], None, T]
"""A computation that asks in rounds."""


@coroutine
def wait(requests: list[Request]) -> Generator[list[Request], None, None]:
    """End the round; go on when the requests have been carried out."""
    yield requests


@coroutine
def _together(tasks: Sequence[Asking[T]]) -> Generator[list[Request], None, list[T]]:
    results: dict[int, T] = {}
    try:
        while True:
            requests: list[Request] = []
            for number, task in enumerate(tasks):
                if number in results:
                    continue
                try:
                    requests += task.send(None)
                except StopIteration as done:
                    results[number] = done.value
            if len(results) == len(tasks):
                return [results[number] for number in range(len(tasks))]
            yield requests
    finally:
        for task in tasks:
            task.close()


async def together(*tasks: Asking[Any]) -> list[Any]:
    """The results of all tasks, each of their rounds shared; the first error ends them all."""
    return await _together(tasks)
