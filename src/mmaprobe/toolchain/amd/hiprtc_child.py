"""One compile by hiprtc, in a process of its own: LLVM ends it over a target or builtin that it does not know.

    python hiprtc_child.py FOLDER LIBRARIES OPTION...

compiles ``FOLDER/kernel.hip`` into ``FOLDER/kernel.co`` with the first of the ``LIBRARIES`` (separated by ``:``) that
is installed and has hiprtc; ``FOLDER/log.txt`` is what it said.  Exit status 0, ``REFUSED`` or ``ABSENT``.  Nothing of
mmaprobe is imported, so that it starts at once.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

REFUSED = 10
"""The exit status where the compiler refused."""
ABSENT = 11
"""The exit status where there is no hiprtc."""


def opened(libraries: list[str]) -> Any:
    """The first library that is there and has hiprtc's functions; None where none is."""
    for name in libraries:
        try:
            found = ctypes.CDLL(name)
        except OSError:
            continue
        if hasattr(found, "hiprtcCompileProgram"):
            return found
    return None


def compile_in(folder: Path, library: Any, options: list[str]) -> int:
    """Compile the folder's source; the exit status."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    text = (folder / "kernel.hip").read_bytes()
    status = library.hiprtcCreateProgram(ctypes.byref(program), text, b"kernel.hip", 0, None, None)
    if not status:
        given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        status = library.hiprtcCompileProgram(program, len(options), given)
    library.hiprtcGetErrorString.restype = ctypes.c_char_p
    said = b""
    if program.value and not library.hiprtcGetProgramLogSize(program, ctypes.byref(size)):
        log = ctypes.create_string_buffer(size.value + 1)
        library.hiprtcGetProgramLog(program, log)
        said = log.value
    (folder / "log.txt").write_bytes(said or (library.hiprtcGetErrorString(status) or b"an unknown status"))
    if status or library.hiprtcGetCodeSize(program, ctypes.byref(size)) or not size.value:
        return REFUSED
    code = ctypes.create_string_buffer(size.value)
    if library.hiprtcGetCode(program, code):
        return REFUSED
    (folder / "kernel.co").write_bytes(code.raw)
    return 0


def main(arguments: list[str]) -> int:
    """The exit status of one compile."""
    folder, libraries, *options = arguments
    library = opened(libraries.split(":"))
    return ABSENT if library is None else compile_in(Path(folder), library, options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
