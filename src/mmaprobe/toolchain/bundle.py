"""A folder for a machine without network or compiler: wheels, kernels of one architecture, and how to install them."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlparse

from mmaprobe.errors import CannotWriteError, NotHereError, UsageError
from mmaprobe.evidence.files import write_bytes
from mmaprobe.vendors import vendor_of

WHEELS, KERNELS, SCRIPT = "wheels", "pack", "install.sh"

INSTALL = """\
#!/bin/sh
# mmaprobe {version} with kernels for {architecture}, without network or compiler; Python {python} on {machine}.
#   sh {script} [FOLDER]    makes a virtual environment (FOLDER: ./venv) and installs mmaprobe into it
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${{1:-venv}}
python3 -m venv "$folder"
"$folder/bin/python" -m pip install --no-index --find-links "$here/{wheels}" 'mmaprobe{extra}'
echo "next: $folder/bin/mmaprobe run --device {device} --pack $here/{kernels} --out evidence"
"""


def needs(architecture: str) -> tuple[str, str]:
    """The extra that runs kernels with a GPU's driver alone, and the GPU; UsageError for what no GPU has."""
    vendor = vendor_of(architecture)
    if vendor is None:
        raise UsageError(f"{architecture}: a bundle is for a GPU")
    return f"[{vendor.driver}]" if vendor.driver else "", vendor.first()


def requirement(architecture: str, source: str = "") -> str:
    """What pip makes the wheel of mmaprobe from: ``source``, the folder that it was installed from, or the index."""
    extra, _ = needs(architecture)
    if source:
        if not (Path(source) / "pyproject.toml").exists() and not Path(source).is_file():
            raise UsageError(f"{source} is neither a checkout nor a wheel of mmaprobe")
        return f"{Path(source).resolve()}{extra}"
    told = metadata.distribution("mmaprobe").read_text("direct_url.json")
    folder = Path(unquote(urlparse(json.loads(told)["url"]).path)) if told else None
    if folder is not None and folder.exists():
        return f"{folder}{extra}"
    return f"mmaprobe{extra}=={metadata.version('mmaprobe')}"


def gather(folder: Path, wanted: str, pip: Sequence[str] = (sys.executable, "-m", "pip")) -> list[str]:
    """The wheels of mmaprobe and of all that it needs for a run, put into ``folder/wheels``; their names.

    NotHereError with pip's own last line where it fails.
    """
    wheels = folder / WHEELS
    try:
        wheels.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWriteError(f"cannot write {wheels}: {error.strerror}; choose another folder") from error
    command = [*pip, "wheel", "--quiet", "--wheel-dir", str(wheels), wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise NotHereError(f"pip could not gather {wanted}: {said[-1] if said else 'no reason given'}")
    return sorted(path.name for path in wheels.glob("*.whl"))


def write_script(folder: Path, architecture: str) -> Path:
    """The script that installs the bundle, beside its wheels and kernels."""
    path = folder / SCRIPT
    extra, device = needs(architecture)
    python, machine = f"{sys.version_info.major}.{sys.version_info.minor}", f"{platform.system()} {platform.machine()}"
    text = INSTALL.format(
        version=metadata.version("mmaprobe"), architecture=architecture, python=python, machine=machine,
        script=SCRIPT, extra=extra, device=device, wheels=WHEELS, kernels=KERNELS,
    )  # fmt: skip
    write_bytes(path, text.encode(), "choose another folder with --bundle")
    return path
