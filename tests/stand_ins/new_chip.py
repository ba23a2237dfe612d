"""A whole chip that a program stands for: ``python new_chip.py ARCH`` answers every instruction of an architecture.

It speaks the process protocol (docs/process_device.md), binary framing.  Its arithmetic is what ships of the
architecture where this program runs; who asks it may run where nothing of that ships.
"""

from __future__ import annotations

import math
import sys
from typing import BinaryIO

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.model import ModelDevice, open_model
from mmaprobe.operands.batch import Batch, Bits


def serve(architecture: str, requests: BinaryIO, answers: BinaryIO) -> None:
    """Say hello, then answer requests until they end."""
    chip = open_model(architecture)
    known = {made.id: made for made in chip.instructions() if chip.supports(made)}
    _say(answers, f"mmaprobe 1 new-chip {architecture} binary {' '.join(known)}\n".encode())
    while words := requests.readline().split():
        made, count = known[words[1].decode()], int(words[2])
        _say(answers, b"ok %d\n%s" % (count, _answer(chip, made, count, requests).tobytes()))


def _answer(chip: ModelDevice, made: Instruction, count: int, requests: BinaryIO) -> Bits:
    """D of so many tiles, whose operands follow one another."""
    operands = {}
    for name, shape in made.shapes(count).items():
        dtype = np.dtype(np.uint8) if name == "metadata" else made.formats()[name].dtype
        raw = requests.read(math.prod(shape) * dtype.itemsize)
        operands[name] = np.frombuffer(raw, dtype.newbyteorder("<")).reshape(shape).astype(dtype)
    d = chip.run(made, Batch(**operands))
    return d.astype(d.dtype.newbyteorder("<"))


def _say(answers: BinaryIO, text: bytes) -> None:
    answers.write(text)
    answers.flush()


if __name__ == "__main__":
    serve(sys.argv[1], sys.stdin.buffer, sys.stdout.buffer)
