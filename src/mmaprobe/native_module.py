"""The compiled module and Python are of the same sources, or nothing of the module is used.

Both state what they number alike: the families of vectors, the columns of programs.  A module from before a family was
there would make other vectors without a word.
"""

from __future__ import annotations

from mmaprobe import _native
from mmaprobe.errors import NotHereError


def agree(name: str, here: object) -> None:
    """NotHereError where ``name()`` of the module, or that there is such a function, is not what Python says."""
    says = getattr(_native, name, None)
    if says is None or says() != here:
        raise NotHereError(
            f"{_native.__file__} was built from other sources than the Python beside it ({name} differs); "
            "build it again: pip install ."
        )
