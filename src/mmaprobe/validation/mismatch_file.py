"""A mismatch file: what one comparison of an instruction found wrong, whole and sealed, so that any machine asks it
again.

JSON with the seal of evidence.  A mismatch has its vector, both answers, its recipe and what was found when it was
asked again; one that is only wrong in its place in a tile has the tile.  A part of an evidence folder and the file of a
shard are read too: their tiles are made again from the recipes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.outside import add_catalog
from mmaprobe.errors import UsageError, brief
from mmaprobe.evidence import files, records_json
from mmaprobe.evidence.files import FileValue
from mmaprobe.evidence.records import Mismatch, Witness
from mmaprobe.evidence.records_json import Json
from mmaprobe.evidence.store import CATALOG, MANIFEST, SHARD_KIND, Named, Part, digest_named, part_name, read_manifest
from mmaprobe.evidence.store import KIND as EVIDENCE
from mmaprobe.generators import Recipe, generate_tiles, regenerate
from mmaprobe.generators.recipe import is_recipe
from mmaprobe.operands.batch import Batch, Bits, check_batch, check_vectors
from mmaprobe.operands.witness_batches import as_vectors
from mmaprobe.validation.examine import Example
from mmaprobe.validation.summary import Summary

SCHEMA = 1
"""Of mismatch files."""
KIND = "mmaprobe mismatches"
ADVICE = "choose another file with --save"
MOST_SLOTS = 1 << 16
"""Places of separate vectors at most: more than any tile's diagonal or unit has."""


@dataclass(frozen=True)
class SavedTile:
    """A tile as a file holds it: the rows of each operand as hexadecimal texts, and the place of the output."""

    place: tuple[int, int]
    rows: Mapping[str, tuple[str, ...]]

    def batch(self, made: Instruction) -> Batch:
        """The tile, or MFMA block; UsageError where it is none of the instruction."""
        made = replace(made, blocks=1)
        types = {name: fmt.dtype for name, fmt in made.formats().items()}
        shapes = made.shapes(1)
        if self.rows.keys() != shapes.keys():
            raise UsageError(f"its tile has {', '.join(self.rows) or 'nothing'}, not {', '.join(shapes)}")
        codes = {name: [[int(code, 16) for code in row.split()] for row in self.rows[name]] for name in shapes}
        tile = {name: np.array([codes[name]], types.get(name, np.dtype(np.uint8))) for name in shapes}
        row, column = self.place
        if not (0 <= row < made.m and 0 <= column < made.n):
            raise UsageError(f"place {row}, {column} is outside of its tile")
        return check_batch(made, Batch(**tile))


@dataclass(frozen=True)
class Saved:
    """The mismatches of one instruction between two devices, as a file holds them.

    ``tiles`` has, by the number of a mismatch, the tile that it needs; ``datapath`` the derived one, where that was the
    reference; ``read`` is where each mismatch stands in its file.
    """

    instruction: str
    dut: str
    ref: str
    nan: str
    version: str
    mismatches: tuple[Mismatch, ...]
    tiles: Mapping[int, SavedTile] = field(default_factory=dict)
    datapath: Json | None = None
    read: tuple[FileValue, ...] = ()

    def example(self, number: int, made: Instruction) -> Example:
        """A mismatch as it is asked again; UsageError naming file and key where it is no vector of the instruction."""
        mismatch, place = self.mismatches[number], self.read[number]
        try:
            vector = _vector(mismatch.vector, mismatch.expected, made)
            if mismatch.shrunk is not None and mismatch.shrunk_expected is not None:
                _vector(mismatch.shrunk, mismatch.shrunk_expected, made)
            if not 0 <= mismatch.slot < MOST_SLOTS:
                raise UsageError(f"slot is {brief(mismatch.slot)}, and there are {MOST_SLOTS}")
            tile, at = _tile_of(mismatch, self.tiles.get(number), made)
        except (UsageError, ValueError, TypeError, OverflowError) as error:
            raise place.wrong(f"is no mismatch of {made.id}: {error!s:.200}") from None
        return Example(mismatch.recipe, vector, tile, at, mismatch.slot, mismatch.vector.d)


def _vector(witness: Witness, expected: int, made: Instruction) -> Batch:
    """The vector of a witness; UsageError where it, or one of the answers, is none of the instruction."""
    limit = made.formats()["d"].code_limit
    for code in (witness.d, expected):
        if not 0 <= code < limit:
            raise UsageError(f"d is outside its {limit.bit_length() - 1} bits")
    return check_vectors(made, as_vectors(made, [witness]))


def saved_of(summary: Summary) -> Saved:
    """The examples of a comparison, to be saved."""
    return Saved(
        summary.instruction, summary.dut, summary.ref, summary.nan, metadata.version("mmaprobe"), summary.examples
    )


def check_target(path: Path) -> None:
    """UsageError where a file is there that is no mismatch file: it would be lost; CannotWriteError where none can be
    written, before hours of vectors are compared."""
    if path.exists() and (not path.is_file() or _kind(path) != KIND):
        raise UsageError(f"{path} is there and is no mismatch file; {ADVICE}")
    files.check_place(path, ADVICE)


def _kind(path: Path) -> object:
    try:
        document = files.read_json(path).value
    except UsageError:
        return None
    return document.get("kind") if isinstance(document, dict) else None


def save_mismatches(path: Path, saved: Saved, made: Instruction) -> None:
    """Write a mismatch file in the place of another one, or of none; CannotWriteError."""
    check_target(path)
    document = {
        "schema": SCHEMA, "kind": KIND, "instruction": saved.instruction, "dut": saved.dut, "ref": saved.ref,
        "nan": saved.nan, "version": saved.version, "mismatches": [_to_json(each, made) for each in saved.mismatches],
    }  # fmt: skip
    files.write_json(path, files.sealed(document), ADVICE)


def _to_json(mismatch: Mismatch, made: Instruction) -> Json:
    """A mismatch with the tile that it needs."""
    tile, place = _made_again(mismatch, made) if mismatch.vector.note else (None, (0, 0))
    rows = {} if tile is None else {"place": list(place)} | {name: _rows(value) for name, value in tile.items()}
    return records_json.mismatch_to_json(mismatch) | ({"tile": rows} if rows else {})


def _made_again(mismatch: Mismatch, made: Instruction) -> tuple[Batch | None, tuple[int, int]]:
    """The tile of a mismatch's recipe; none where that is no recipe."""
    return tile_of(Recipe.parse(mismatch.recipe), made) if is_recipe(mismatch.recipe) else (None, (0, 0))


def tile_of(recipe: Recipe, made: Instruction) -> tuple[Batch | None, tuple[int, int]]:
    """The tile that a recipe names and the place in it; none where it names a vector alone."""
    if recipe.place is None:
        return None, (0, 0)
    regenerate(recipe, made)  # says what is wrong with it
    return generate_tiles(made, recipe.family, recipe.seed, recipe.index, 1, recipe.version), recipe.place


def _rows(operand: Bits) -> list[str]:
    """An operand of one tile, a text a row."""
    return [" ".join(f"{code:x}" for code in row) for row in operand.reshape(-1, operand.shape[-1]).tolist()]


def _tile_of(mismatch: Mismatch, saved: SavedTile | None, made: Instruction) -> tuple[Batch | None, tuple[int, int]]:
    """The tile of a file, else the one that the recipe names."""
    return _made_again(mismatch, made) if saved is None else (saved.batch(made), saved.place)


def read_saved(path: Path) -> list[Saved]:
    """What a mismatch file or that of a shard holds, or the part or whole of an evidence folder; UsageError for
    anything else."""
    if path.is_dir():
        return _of_folder(path)
    document = files.read_json(path)
    kind = document["kind"].one_of(KIND, SHARD_KIND, EVIDENCE)
    if kind == EVIDENCE:
        return _of_part(path, document)
    if document["schema"].whole > SCHEMA:
        raise document["schema"].wrong(f"is newer than {SCHEMA}: pip install --upgrade mmaprobe")
    files.check_seal(document, SCHEMA)
    if kind == SHARD_KIND:
        return list(_of_shard(document))
    listed = tuple(document["mismatches"])
    return [Saved(
        instruction=document["instruction"].text, dut=document["dut"].text, ref=document["ref"].text,
        nan=document["nan"].one_of("bits", "any"), version=document["version"].text, read=listed,
        mismatches=tuple(records_json.mismatch_from_json(each) for each in listed),
        tiles={number: _saved_tile(each["tile"]) for number, each in enumerate(listed) if "tile" in each.typed(dict)},
    )]  # fmt: skip


def _of_shard(document: FileValue) -> Iterator[Saved]:
    """The mismatches of each part of a shard."""
    for part in document["done"]:
        listed = tuple(part["mismatches"]) if "mismatches" in part.typed(dict) else ()
        if listed:
            said = part["compared"]
            yield Saved(
                instruction=part["instruction"].text, dut=said["dut"].text, ref=said["ref"].text,
                nan=said["nan"].one_of("bits", "any"), version=document["version"].text, read=listed,
                mismatches=tuple(records_json.mismatch_from_json(each) for each in listed),
            )  # fmt: skip


def _saved_tile(tile: FileValue) -> SavedTile:
    place = [number.whole for number in tile["place"]]
    if len(place) != 2:
        raise tile["place"].wrong("must be a row and a column")
    names = (name for name in tile.typed(dict) if name != "place")
    return SavedTile((place[0], place[1]), {name: tuple(row.text for row in tile[name]) for name in names})


def _of_folder(folder: Path) -> list[Saved]:
    named = _manifest(folder)
    parts = (named.read_part(name) for name in named.parts)
    return [_of(named, part) for part in parts if part.mismatches]


def _of_part(path: Path, document: FileValue) -> list[Saved]:
    folder = path.resolve().parents[1]
    if not (folder / MANIFEST).exists() or folder / part_name(document["instruction"].text) != path.resolve():
        raise UsageError(f"{path} is no part of an evidence folder; name a file below its folder instructions")
    named = _manifest(folder)
    if document["instruction"].text not in named.parts:
        raise document["instruction"].wrong("is not among the parts that the manifest names")
    return [_of(named, named.read_part(document["instruction"].text))]


def _manifest(folder: Path) -> Named:
    named = read_manifest(folder)
    if CATALOG in named.accepted:
        digest_named(folder, CATALOG, named.accepted[CATALOG])
        add_catalog(folder / CATALOG)
    return named


def _of(named: Named, part: Part) -> Saved:
    """The mismatches of a part, between the devices of the last comparison that it tells of."""
    said = (part.validation.get("runs") or [part.validation])[-1]
    file = named.folder / part_name(part.instruction)
    return Saved(
        part.instruction, str(said.get("dut", named.header.device)), str(said.get("ref", "")),
        str(said.get("nan", "bits")), named.header.version, part.mismatches, datapath=part.datapath,
        read=tuple(FileValue(file, f"mismatches[{number}]", None) for number in range(len(part.mismatches))),
    )  # fmt: skip
