"""What a record says of its fields: every one, alike everywhere, and enough that a new one needs no list elsewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cases import strategies
from cases.linked_package import PACKAGE, linked
from mmaprobe.errors import UsageError
from mmaprobe.parameters.datapath import FIELDS, RECORDS, Encode
from mmaprobe.parameters.described import choices, descriptions, value_in_words
from mmaprobe.parameters.diff import in_words
from mmaprobe.parameters.moves import MOVES
from mmaprobe.parameters.rewrite import ENDS

CASES = Path(strategies.__file__).parent
READERS = [
    *(PACKAGE / "parameters" / f"{name}.py" for name in ("neighbours", "diff", "mutate", "table", "checks", "rewrite")),
    *(CASES / f"{name}.py" for name in ("strategies", "records")),
]
PLAINLY_NAMED = ("tininess", "underflow")
"""Rules of a result whose names are no other words too."""


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_every_field_is_described_and_means_the_same_in_every_record(record: type) -> None:
    for name, each in descriptions(record).items():
        known = FIELDS[name]
        assert (each.words, each.kind, each.where, each.place, each.ends, each.values) == (
            known.words, known.kind, known.where, known.place, known.ends, known.values), name  # fmt: skip
        assert in_words(name) == each.words
        assert not each.choices or each.kind != "word" or choices(record, name)[0] == each.plain


def test_a_change_of_structure_has_words_too() -> None:
    """A certificate's rows are headed by them."""
    assert [name for name in MOVES if name not in FIELDS and in_words(name) == name] == []
    assert in_words("cut") == "where terms are cut"


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_readers_keep_no_list_of_fields_of_their_own(reader: Path) -> None:
    text = reader.read_text("utf-8")
    assert [name for name in PLAINLY_NAMED if f'"{name}"' in text] == []


def test_what_a_person_reads_for_a_value_stands_with_the_field() -> None:
    """Pages, tables and explanations say it in one way: none has these words of its own."""
    words = [text for record in RECORDS for each in descriptions(record).values() for text in each.values.values()]
    assert {"saturates", "never -0", "flushed to +0", "-|{}|"} <= set(words)
    for reader in sorted((PACKAGE / "report" / "datapath").glob("*.py")):
        text = reader.read_text("utf-8")
        assert [each for each in words if f'"{each}"' in text and each not in ("{}", "kept")] == [], reader.name
    assert [value_in_words(to, "overflow") for to in (Encode(), Encode(overflow="largest"))] == ["ieee", "saturates"]


@pytest.mark.parametrize("name", ENDS)
def test_another_word_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"^{name} is 'other'; it must be one of "):
        Encode(**{name: "other"})


NEW = 'residue: Literal["lost", "kept"] = field(default="lost", metadata=says("residues", "word", "float", ends=True))'
ASK = """
from dataclasses import replace
from mmaprobe.errors import UsageError
from mmaprobe.models.kernels import INTERPRETER, kernel
from mmaprobe.parameters.datapath import Encode
from mmaprobe.parameters.diff import datapath_changes, in_words
from mmaprobe.parameters.lookup import load
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.neighbours import neighbours
from mmaprobe.parameters.rewrite import simpler
from mmaprobe.parameters.table import from_table, to_table
from mmaprobe.derivation.search.fields import ends
from cases.strategies import words

path = next(e.datapath for e in load("sm_90a").entries.values() if e.datapath.a == "f16")
assert kernel(path) != INTERPRETER
assert "tree.to.residue" in {each.field for each in neighbours(path)}
other = mutate(path, "tree.to.residue", "kept")
assert from_table(to_table(other)) == other != path
assert list(datapath_changes(path, other)) == [("tree.to.residue", "lost", "kept")]
assert in_words("tree.to.residue") == "residues of the result of the sum"
assert path in simpler(other)
assert words(Encode)["residue"] == ("lost", "kept")
assert "kept" in {edit(base).root.residue for base, axes in ends(path) for axis in axes for edit in axis}
assert kernel(other) == INTERPRETER
try:
    Encode(residue="elsewhere")
except UsageError as error:
    print(error)
"""


def test_a_new_field_is_varied_written_named_checked_and_drawn(tmp_path: Path) -> None:
    """A field added to a copy of ``Encode``, in that one line: neighbours, files, differences, simplifications, the
    search and random records have it, and a kernel that does not know it refuses the datapath."""
    package = linked(tmp_path, "parameters")
    text = (PACKAGE / "parameters" / "datapath.py").read_text("utf-8")
    (package / "parameters" / "datapath.py").unlink()
    (package / "parameters" / "datapath.py").write_text(
        text.replace("    first: tuple", f"    {NEW}\n    first: tuple", 1)
    )
    way = f"import sys; sys.path[:0] = [{str(package.parent)!r}, {str(CASES.parent)!r}]\n{ASK}"
    done = subprocess.run([sys.executable, "-c", way], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "residue is 'elsewhere'; it must be one of lost, kept\n"), done.stderr
