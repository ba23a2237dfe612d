"""The bench of one instruction on one device: it carries out what the questions of a round request."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, run_tiles, run_vectors, vectors_per_tile
from mmaprobe.operands.batch import Batch
from mmaprobe.probing.session.rounds import Asking, Request, T
from mmaprobe.probing.session.vectors import Vector, pack


@dataclass
class Bench:
    """Runs rounds, remembers every answer, counts tiles and launches by question.

    The vectors of a round are one launch, in which each new vector runs ``twice``, in two orders; its
    whole tiles are another.  A vector asked before is not run again.  A launch counts for the first
    question in it, a tile of vectors for the question that begins it: the sums are what was run.
    ``vectors`` counts those that ran.  ``unstable`` says how the device contradicted itself, if it did.
    ``facts``: what several questions need to know, found out once.
    """

    device: Device
    instruction: Instruction
    seed: int = 0
    twice: bool = True
    answers: dict[Vector, int] = field(default_factory=dict)
    conflicts: dict[Vector, int] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    tiles: Counter[str] = field(default_factory=Counter)
    launches: Counter[str] = field(default_factory=Counter)
    vectors: int = 0
    unstable: str | None = None

    def run(self, task: Asking[T]) -> T:
        """The task's result, round after round."""
        try:
            while True:
                requests = task.send(None)
                self._run_vectors(requests)
                self._run_tiles([request for request in requests if request.tiles is not None])
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            task.close()

    def _run_vectors(self, requests: list[Request]) -> None:
        owners: dict[Vector, str] = {}
        for request in requests:
            for vector in request.vectors:
                if vector not in self.answers:
                    owners.setdefault(vector, request.question)
        if not owners:
            return
        vectors = list(owners)
        asked = [*vectors, *(reversed(vectors) if self.twice else ())]
        codes = run_vectors(self.device, self.instruction, pack(self.instruction, asked)).tolist()
        again = reversed(codes) if self.twice else codes
        for vector, first, second in zip(vectors, codes, again, strict=False):
            self.answers[vector] = first
            if first != second:
                self.conflicts[vector] = second
                self.unstable = f"the same vector gave {first:#x} and {second:#x}"
        self.vectors += len(asked)
        each = vectors_per_tile(self.instruction)
        names = [owners[vector] for vector in asked]
        self.tiles.update(names[::each])
        self.launches[names[0]] += 1

    def _run_tiles(self, requests: list[Request]) -> None:
        if not requests:
            return
        batches = [dict(request.tiles.items()) for request in requests if request.tiles is not None]
        joined = Batch(**{name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]})
        d = run_tiles(self.device, self.instruction, joined)
        start = 0
        for request, batch in zip(requests, batches, strict=True):
            size = len(batch["a"])
            request.answer = d[start : start + size]
            start += size
            self.tiles[request.question] += size
        self.launches[requests[0].question] += 1
