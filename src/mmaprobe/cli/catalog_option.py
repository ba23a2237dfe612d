"""The option ``--catalog``, which every command takes: rows and architectures from outside of the package."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from mmaprobe.cli.plain_help import PlainCommand, PlainGroup, name_values

CatalogOption = Annotated[
    list[Path] | None,
    typer.Option("--catalog", metavar="FILE", help="Add what FILE says: a catalog or parameter file. May be repeated."),
]
C = TypeVar("C", bound=Callable[..., Any])

named: list[Path] = []
"""The files of ``--catalog`` of the command under way, for whatever it begins in another process."""


class Commands(typer.Typer):
    """A group of commands that add what ``--catalog`` names to the catalog before they begin, and whose help is
    plain."""

    def __init__(self, **given: Any) -> None:
        super().__init__(cls=PlainGroup, **given)

    def command(self, name: str | None = None, **given: Any) -> Callable[[C], C]:
        """As ``typer.Typer.command``."""
        register = super().command(name, **{"cls": PlainCommand, **given})

        def decorate(function: C) -> C:
            register(_with_catalog(function))
            return function

        return decorate


def _with_catalog(function: Callable[..., Any]) -> Callable[..., Any]:
    """The command with one more option."""

    @wraps(function)
    def command(*args: Any, catalog: list[Path] | None, **given: Any) -> Any:
        named[:] = [path.resolve() for path in catalog or ()]
        if catalog:
            from mmaprobe.parameters.lookup import add_catalog

            for path in catalog:
                add_catalog(path)
        return function(*args, **given)

    option = inspect.Parameter("catalog", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=CatalogOption)
    own = inspect.signature(function, eval_str=True)
    every = [*own.parameters.values(), option]
    for each in every:
        name_values(each.name, each.annotation)
    command.__annotations__ = {each.name: each.annotation for each in every}
    command.__dict__["__signature__"] = own.replace(parameters=every)
    return command
