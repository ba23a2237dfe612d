"""Where a page's facts come from: the command that runs the same again, and the files of the evidence."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from mmaprobe.evidence.files import SEAL
from mmaprobe.evidence.store import MANIFEST, Header, Named


def command_of(header: Header) -> str:
    """The command that runs the same on the same device; of a plan of somebody's own it names the plan, not its
    file."""
    settings: Mapping[str, Any] = header.settings
    if header.is_campaign:
        named = ["validate", header.device, str(settings["reference"]), "--plan", str(settings["plan"].get("name", ""))]
        return shlex.join(["mmaprobe", *named, "--seed", str(header.seed)])
    words = ["mmaprobe", "run", "--device", header.device]
    if settings.get("instruction", "*") != "*":
        words += ["--instruction", str(settings["instruction"])]
    validation = settings.get("validation")
    if isinstance(validation, Mapping):
        words += ["--plan", str(validation.get("name", ""))]
    elif settings.get("vectors") is not None:
        words += ["--vectors", str(settings["vectors"])]
    return shlex.join([*words, "--seed", str(header.seed)])


def files_of(named: Named) -> dict[str, str]:
    """The SHA-256 of the manifest's content and of every file that it names."""
    own = str(named.manifest.typed(dict).get(SEAL, "none: an older mmaprobe wrote it"))
    return {MANIFEST: own} | {name: digests[0] for name, digests in sorted(named.accepted.items())}
