"""Help for who has never seen the code: whole sentences, names of what is wanted in place of Python's types."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup

from mmaprobe.exit_codes import USAGE

LENGTH = 1000
"""Characters that no command's first sentence has."""
_TYPE = re.compile(r" <[^<>]*>$")
"""A type behind an argument's name."""


def name_values(name: str, annotation: Any) -> None:
    """Say what a parameter's value is where nobody did: N for a number, FILE for a path, else its own name."""
    annotated, *infos = get_args(annotation) or (annotation,)
    kinds = set(get_args(annotated)) | {annotated}
    for info in infos:
        if info.metavar is not None or bool in kinds:
            continue
        number, path = kinds & {int, float}, Path in kinds and isinstance(info, typer.models.OptionInfo)
        long = next((each for each in info.param_decls or () if each.startswith("--")), name)
        info.metavar = "N" if number else "FILE" if path else long.lstrip("-").replace("_", "-").upper()
        if path and "folder" in (info.help or "").lower():
            info.metavar = "FOLDER"


class PlainCommand(TyperCommand):
    """A command whose help names what is wanted: ``RUN``, and not ``{RUN}`` and ``RUN <Path>``."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What must be given as it is, what may be left out in brackets."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, then options, each with a sentence."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx)
            if record is not None:
                of = "Arguments" if each.param_type_name == "argument" else "Options"
                sections[of].append((_TYPE.sub("", record[0]), record[1]))
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class PlainGroup(TyperGroup):
    """A group whose list has each command's first sentence whole, and not as much as a line holds."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As click's; without a word the help, on standard error, which ends as a command that is not whole."""
        if not args and not ctx.resilient_parsing:
            with suppress(OSError):
                typer.echo(ctx.get_help(), err=True)
            raise typer.Exit(USAGE)
        words: list[str] = super().parse_args(ctx, args)
        return words

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands in the order in which they were made."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.get_short_help_str(LENGTH)) for name, each in commands if each is not None])
