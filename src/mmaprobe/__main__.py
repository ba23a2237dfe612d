"""``mmaprobe`` and ``python -m mmaprobe``: the command line, loaded so that an interrupt while it loads is one line."""

from __future__ import annotations

import sys

from mmaprobe.exit_codes import INTERRUPTED


def main() -> int:
    """Load the command line and run a command."""
    try:
        from mmaprobe.cli import main as run
    except KeyboardInterrupt:
        print("mmaprobe: interrupted", file=sys.stderr)
        return INTERRUPTED
    return run()


if __name__ == "__main__":
    sys.exit(main())
