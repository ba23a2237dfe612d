"""Calls, ids and answers that nobody should make end in one clear error."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import mmaprobe
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.process import Process
from mmaprobe.errors import DeviceError, UsageError
from mmaprobe.parameters.files import from_text

MFMA = "v_mfma_f32_4x4x1_16b_f32"
BROKEN = [
    "", "{", f"{MFMA}{{cbsz=1;2}}", f"{MFMA}{{cbsz=x}}", f"{MFMA}{{cbsz}}", f"{MFMA}{{cbsz=1", f"{MFMA}{{cbsz=1}}}}",
    f"{MFMA}{{cbsz=1,cbsz=2}}", f"{MFMA}{{cbsz=99999999999}}", f"{MFMA}{{cbsz=²}}", f"{MFMA}{{=,=}}", "x" * 100_000,
    "x86.dpps{rounding}", "x86.dpps{rounding=rz;x}", "x86.dpps{}{}",
]  # fmt: skip


@pytest.mark.parametrize("identifier", [None, 5, [], b"x", *BROKEN], ids=lambda value: repr(value)[:40])
def test_a_broken_id_is_a_usage_error(identifier: Any) -> None:
    for call in (mmaprobe.instruction, lambda name: mmaprobe.model("sm_90a", name)):
        with pytest.raises(UsageError) as found:
            call(identifier)
        assert len(str(found.value)) < 600


@pytest.mark.parametrize("architecture", [None, 5, [], b"sm_90a", ""])
def test_a_model_of_no_architecture_is_a_usage_error(architecture: Any) -> None:
    with pytest.raises(UsageError):
        mmaprobe.model(architecture, "mma.m16n8k16.f32.f16.f16.f32")


@pytest.mark.parametrize("name", [None, "", 5, [], object(), "x" * 10_000])
def test_a_device_that_is_no_name_is_a_usage_error(name: Any) -> None:
    for call in (
        mmaprobe.device,
        lambda it: mmaprobe.probe(it, "x86.dpps"),
        lambda it: mmaprobe.derive(it, "x86.dpps"),
    ):
        with pytest.raises(UsageError) as found:
            call(name)
        assert len(str(found.value)) < 600


def test_calls_without_operands_are_usage_errors() -> None:
    bound: Any = mmaprobe.model("sm_90a", "mma.m16n8k16.f32.f16.f16.f32")
    for call in (bound, bound.dot):
        for operand in (None, "", 5, [], {}, "abc", object()):
            with pytest.raises(UsageError):
                call(operand, operand, operand)


@pytest.mark.parametrize("text", ['x"', "x;", "x\ny", "x*/", "x\\", "x%0", "", "x y", None])
def test_an_instruction_made_by_hand_brings_no_text_into_a_kernel(text: Any) -> None:
    for fields in ({"id": text}, {"opcode": text}, {"modifiers": (("k", text or "a b"),)}):
        with pytest.raises(UsageError):
            Instruction(
                **{"id": "t", "opcode": "t", **fields}, family="t", m=1, n=1, k=1, a="f16", b="f16", c=None, d="f32"
            )


def test_a_first_line_without_end_is_not_read_and_what_it_says_steers_no_terminal() -> None:
    endless = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
    with pytest.raises(DeviceError, match="longer than 1048576 bytes"):
        Process((sys.executable, "-c", endless), 30.0)
    steering = "import sys; sys.stderr.write('\\x1b[2Jgone\\x07'); print('\\x1b]0;title\\x07')"
    with pytest.raises(DeviceError) as found:
        Process((sys.executable, "-c", steering), 30.0)
    assert "\x1b" not in str(found.value)
    assert "\x07" not in str(found.value)


X86, DPPS = "model:x86-64+intel", "x86.dpps"
NO_DEVICE = "process:/nowhere/no_program"
"""A device that cannot be opened: whoever opens it fails otherwise."""
CALLS: dict[str, Any] = {
    "validate": lambda **options: mmaprobe.validate(NO_DEVICE, X86, DPPS, 1000, 1, **options),
    "probe": lambda **options: mmaprobe.probe(NO_DEVICE, DPPS, **options),
    "derive": lambda **options: mmaprobe.derive(NO_DEVICE, DPPS, **options),
    "read_tree": lambda **options: mmaprobe.read_tree(NO_DEVICE, DPPS, **options),
    "replay": lambda **options: mmaprobe.replay(**{"what": NO_DEVICE, **options}),
    "replicate": lambda suite: mmaprobe.replicate(NO_DEVICE, suite),
    "validate_witnesses": lambda instructions: mmaprobe.validate_witnesses(NO_DEVICE, X86, instructions),
    "run": lambda **options: mmaprobe.run(**{"device": NO_DEVICE, **options}),
    "bring_up": lambda **options: mmaprobe.bring_up(**{"device": NO_DEVICE, **options}),
    "instruction": lambda architecture: mmaprobe.instruction(DPPS, architecture),
}
A_FUNCTION, A_WHOLE = "it must be a function", "it must be a whole number"
TRUTH, A_LIST = "it must be True or False", "it must be a list of names"
WRONG: list[tuple[str, str, list[Any], str]] = [
    ("validate", "threads", ["two", 0, -1, True, 2.0, None, 1025, []], "it must be a whole number of 1 to 1,024"),
    ("validate", "nan", ["none", 3, None, True, ["bits"], "x" * 9999], "it must be bits or any"),
    ("validate", "progress", ["x", 3], A_FUNCTION), ("validate", "stop", ["x"], A_FUNCTION),
    ("validate", "said", [3], A_FUNCTION), ("validate", "campaign", ["no", 1, None], TRUTH),
    ("validate", "save", [5, b"x"], "it must be a path"),
    ("validate", "generators", ["uniform", 5, [3]], A_LIST), ("validate", "generators", [[], ()], "must name a family"),
    ("probe", "questions", ["layout", 5, [5], [[]], True], A_LIST),
    ("probe", "seed", ["x", True], "a seed is a whole number"), ("read_tree", "seed", ["x", -1], "a seed is a whole"),
    ("derive", "start", ["x", 5], "it must be a Datapath"), ("derive", "fresh", ["x", -1, True, 1.5], A_WHOLE),
    ("derive", "findings", ["x", 5, {"a": 5}], "it must be findings by question"),
    ("derive", "allowance", ["x", -1, True], A_WHOLE), ("derive", "say", ["x"], A_FUNCTION),
    ("read_tree", "budget", ["x", -1, True], A_WHOLE), ("read_tree", "vectors", ["x", -1, True, 0], A_WHOLE),
    ("read_tree", "at", ["x", "00", 5, (0,), (True, 0), (0, -1)], "it must be a row and a column"),
    ("replicate", "suite", [5, None, []], "it must be a text"),
    ("replay", "device", [5, []], "it must be a device or its name"), ("replay", "ref", [5], "it must be a device or"),
    ("replay", "what", [5, None, "", b"x"], "is neither a file nor a recipe"),
    ("validate_witnesses", "instructions", [5, None, ["x"]], "it must be a text"),
    *((call, *rest) for call in ("run", "bring_up") for rest in (
        ("device", [5, []], "it must be a device or its name"), ("instruction", [5, None, ["x"]], "it must be a text"),
        ("budget", ["x", True, []], "it must be a number"), ("out", [5, b"x"], "it must be a path"),
        ("resume", ["x", 1], TRUTH), ("check", ["x", 1, None], TRUTH), ("least", ["x", True, 1.5], A_WHOLE),
        ("listener", ["x", 5], "it must be something with the methods"),
        ("seed", ["x", True, -1], "a seed is a whole number"),
    )),
    ("bring_up", "steps", ["validation", 5, [5]], A_LIST), ("bring_up", "clock", [5], A_FUNCTION),
    ("instruction", "architecture", [5, ["x"], b"sm_90a"], "it must be a text"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "name", "values", "said"), WRONG, ids=[f"{call} {name} {said[:16]}" for call, name, _, said in WRONG]
)
def test_an_option_that_cannot_be_is_refused_before_a_device_is_opened(
    call: str, name: str, values: list[Any], said: str
) -> None:
    for value in values:
        with pytest.raises(UsageError) as found:
            CALLS[call](**{name: value})
        assert said in str(found.value), value
        assert name in str(found.value) or call == "replay"
        assert len(str(found.value)) < 600


def test_numbers_of_numpy_are_options_too() -> None:
    assert mmaprobe.validate(X86, X86, DPPS, np.int64(100), np.int64(1), threads=np.int32(1)).vectors == 100


FILE = 'schema = 1\narchitecture = "x"\n'
MANY = f"[{', '.join([f'[{{a = {list(range(999))}}}]'] * 9)}]"


def axed(source: str, axes: str) -> str:
    """A file of one table with these axes."""
    table = f'[[primitive]]\nname = "p"\nbasis = "predicted"\nsource = "{source}"\naxes = {axes}\n'
    return FILE + table + "[end]\nprimitives = 1\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FILE + f"x = {'[' * 5000}{']' * 5000}", "deeper in each other"),
        (FILE + f"x = {'9' * 5000}", "digits"), (FILE + f"{'.'.join('a' * 3000)} = 1", "deeper in each other"),
        (f"schema = {'9' * 4000}", "schema is a number of"), (FILE + "primitive = 5", "list of tables"),
        (FILE + "common = 5", "common a table"), (FILE + "primitive = [5]\n[end]\nprimitives = 1", "expected a table"),
        (axed("s", MANY), "write fewer"), (axed("{a}" * 9999, f'[[{{a = "{"x" * 99999}"}}]]'), "write fewer"),
    ],
)  # fmt: skip
def test_a_parameter_file_that_stands_for_too_much_is_refused_before_it_is_made(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as found:
        from_text(text, "file")
    assert len(str(found.value)) < 600
