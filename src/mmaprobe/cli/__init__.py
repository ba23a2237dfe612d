"""The command line: one function a command, each a thin layer over the API.

A command imports what it needs when it runs, so that ``--help`` and mistakes
in the words of a command cost no more than reading them.
"""

from __future__ import annotations

import sys

import typer

from mmaprobe.cli import ask, derive, files, kernels, look, trees
from mmaprobe.cli.terminal import app, typed
from mmaprobe.errors import MmaprobeError

__all__ = ["ask", "derive", "files", "kernels", "look", "main", "trees"]


def main(arguments: list[str] | None = None) -> int:
    """Run a command; every error is one line on standard error and an exit code."""
    typed[:] = sys.argv[1:] if arguments is None else arguments
    try:
        code = app(arguments, standalone_mode=False)
    except MmaprobeError as error:
        return _fail(str(error), error.exit_code)
    except typer.Exit as error:
        return int(error.exit_code)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except BrokenPipeError:
        sys.stderr.close()
        return 6
    except Exception as error:
        if hasattr(error, "format_message"):  # a click usage error
            return _fail(error.format_message(), 2)
        raise
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int) -> int:
    print(f"mmaprobe: {message}", file=sys.stderr)
    return code
