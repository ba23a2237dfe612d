"""Seed one fault after the other into a copy of the checkout and run the tests that must notice.

``python tests/mutants/run.py`` runs every row of the tables beside it; ``--only 'engine*'`` some; ``--seconds 120``
what fits, other rows each day; ``--whole`` runs the whole suite on what its own tests let live.  It prints a line a
fault and ends with 1 where one survives or a test fails without a fault, with 2 where a row no longer applies; rows
whose tools are not here are counted and named.  Faults in C++ build the native module again (cmake, ninja and pybind11
must be there), in a folder that ``--work`` keeps.
"""

from __future__ import annotations

import argparse
import datetime
import fcntl
import fnmatch
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mutants.table import ROOT, TABLES, BadTable, Fault, faults

LIMIT = 90
"""Seconds after which tests that have not ended are hung: by the fault, or because the machine has too much to do."""
FIRST_BUILD, NEXT_BUILD = 75, 30
"""Seconds a build of the native module is taken to need, where time is counted."""
NOT_LOADED = ("ERROR collecting", "ImportError while loading conftest", "INTERNALERROR")
"""What pytest says where files of tests cannot be loaded; with the same exit code it says that a test is not there."""


@dataclass(frozen=True)
class Outcome:
    """What became of a fault: killed, hung (its tests do not end), survived, broken (its tests fail without it too) or
    absent (the tools for its tests are, or this CPU lacks what they need)."""

    fault: Fault
    state: str
    seconds: float
    said: str = ""


class Tree:
    """A copy of the checkout in which faults are seeded, one at a time."""

    def __init__(self, root: Path, work: Path, name: str) -> None:
        self.root, self.at, self.build = root, work / name, work / f"{name}-build"
        self.changed, self.sound = False, False
        copy(root, self.at)
        place(self.at)

    def tests(self, fault: Fault, names: Iterable[str], limit: float, first: bool = True) -> tuple[int, str]:
        """Exit code and last lines of a run of tests in the copy, as a stranger would have them run."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MMAPROBE_", "PYTEST_")) or k in fault.needs}
        paths = [str(self.at / "src"), os.environ.get("PYTHONPATH", "")]
        environment = kept | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
        command = [sys.executable, "-m", "pytest", "-o", "addopts=", "-q", "-p", "no:cacheprovider", "-n", "0"]
        command += ["--tb=line", "-rs", *["-x"] * first, "-m", "" if fault.long else "not long", *names]
        try:
            done = subprocess.run(
                command, cwd=self.at, env=environment, timeout=limit, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, errors="replace",
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return -1, f"did not end within {limit:.0f} s"
        return done.returncode, done.stdout + done.stderr

    def refused(self) -> str:
        """What the import of the package says where it fails: a native module of another checkout, mostly."""
        if not (self.at / "src" / "mmaprobe").is_dir():
            return ""
        environment = os.environ | {"PYTHONPATH": str(self.at / "src")}
        command = [sys.executable, "-c", "import mmaprobe.models.engine"]
        done = subprocess.run(command, cwd=self.at, env=environment, capture_output=True, text=True, errors="replace")
        return (done.stderr.splitlines() or ["nothing was said"])[-1] if done.returncode else ""

    def seed(self, fault: Fault) -> Callable[[], None]:
        """Put a fault into the copy; what is returned takes it out."""
        path = self.at / fault.file
        sound = path.read_bytes()

        def put(content: bytes) -> None:
            path.write_bytes(content)
            if path.suffix == ".py":  # compiled code is told from old by seconds and size, which may be the same
                Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)

        put(fault.applied(self.at).encode())
        return lambda: put(sound)

    def compile(self, jobs: int) -> str:
        """Build the native module of the copy as it is now; what the compiler said where it fails."""
        launch = self.build / "launch.sh"
        if not launch.exists():
            self.build.mkdir(parents=True, exist_ok=True)
            launch.write_text('#!/bin/sh\nexec "$@" -O1\n')  # the last -O counts
            launch.chmod(0o755)
        if not (self.build / "build.ninja").exists():
            told = subprocess.run(
                [sys.executable, "-m", "pybind11", "--cmakedir"], capture_output=True, text=True, check=True
            )
            made = run("cmake", "-S", str(self.at), "-B", str(self.build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None",
                       f"-DCMAKE_CXX_COMPILER_LAUNCHER={launch}", f"-DPython_EXECUTABLE={sys.executable}",
                       f"-Dpybind11_DIR={told.stdout.strip()}")  # fmt: skip
            if made:
                return made
        said = run("ninja", "-C", str(self.build), "-j", str(jobs))
        for module in [] if said else self.build.glob("_native*.so"):
            copied = self.at / "src" / "mmaprobe" / module.name
            copied.unlink(missing_ok=True)
            shutil.copy2(module, copied)
        return said

    def judge(self, fault: Fault, whole: bool, jobs: int) -> Outcome:
        """Seed a fault, run its tests, take it out again."""
        began = time.monotonic()

        def outcome(state: str, said: str = "") -> Outcome:
            return Outcome(fault, state, time.monotonic() - began, said)

        absent = [name for name in fault.needs if not (os.environ.get(name) or shutil.which(name))]
        if absent:
            return outcome("absent", f"needs {', '.join(absent)}")
        if fault.built and not self.changed:
            self.changed = True
            said = self.compile(jobs)
            if said:
                return outcome("broken", f"the native module does not build: {said}")
        code, said = (
            (0, " passed")
            if self.sound and not (fault.long or fault.needs)
            else self.tests(fault, fault.killers, 4 * LIMIT, first=False)
        )
        if code == 0 and " passed" not in said and (lacking := lacks(said)):
            return outcome("absent", f"this CPU: {lacking}")
        if code or " passed" not in said:
            return outcome("broken", f"without the fault: {last(said)}")
        restore = self.seed(fault)
        try:
            if fault.built and self.compile(jobs):
                return outcome("killed", "it does not build")
            code, said = self.tests(fault, fault.killers, LIMIT)
            if not noticed(code, said) and whole:
                code, said = self.tests(fault, ["tests"], 20 * LIMIT)
        finally:
            restore()
        if code == -1:
            return outcome("hung", said)
        if code == 4 and not noticed(code, said):
            return outcome("broken", last(said))
        if code == 0 and (lacking := lacks(said)):
            return outcome("absent", f"this CPU: {lacking}")
        return outcome("killed" if noticed(code, said) else "survived", last(said))


def lacks(said: str) -> str:
    """What the tests that were skipped need of a CPU; nothing where another reason was given, or none was skipped."""
    reasons = re.findall(r"(?m)^SKIPPED .*?: (.*)$", said)
    needs = [re.search(r"\bneeds [\w-]+$", reason) for reason in reasons]
    return reasons[0] if reasons and all(needs) else ""


def noticed(code: int, said: str) -> bool:
    """Whether a run of tests failed, did not end, crashed (by a signal), or could not load what the fault broke."""
    return code < 0 or code in (1, 2, 3) or (code == 4 and any(words in said for words in NOT_LOADED))


def sound(tree: Tree, rows: list[Fault]) -> bool:
    """Whether the tests of all bare rows pass without a fault, none of them skipped, in one run."""
    bare = [row for row in rows if not row.long and not row.needs]
    names = list(dict.fromkeys(name for row in bare for name in row.killers))
    code, said = tree.tests(bare[0], names, 40 * LIMIT, first=False) if bare else (1, "")
    return code == 0 and " skipped" not in said and " passed" in said


def run(*command: str) -> str:
    """Run a command; its last lines where it fails, nothing where it does not."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    return last(done.stdout + done.stderr) if done.returncode else ""


def last(text: str) -> str:
    """The line of a test run that says most."""
    lines = [line for line in text.splitlines() if line.strip()]
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR", "E  "))]
    return (failed or lines or ["nothing was said"])[-1][:150]


def copy(root: Path, to: Path) -> None:
    """Bring a copy of the checkout up to date: what git tracks or would track; equal files keep their time."""
    told = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"], capture_output=True, check=True
    )
    names = {name for name in told.stdout.decode().split("\0") if name and (root / name).is_file()}
    for path in [p for p in to.rglob("*") if p.is_file()]:
        made = path.name.startswith("_native.") or "__pycache__" in path.parts
        if not made and str(path.relative_to(to)) not in names:
            path.unlink()
    for name in names:
        here, there = root / name, to / name
        if not there.exists() or there.read_bytes() != here.read_bytes():
            there.parent.mkdir(parents=True, exist_ok=True)
            there.unlink(missing_ok=True)
            shutil.copyfile(here, there)
            there.chmod(here.stat().st_mode & 0o777)


def place(tree: Path) -> None:
    """Put the native module of the mmaprobe that runs this into the copy."""
    found = importlib.util.find_spec("mmaprobe._native")
    if found and found.origin:
        there = tree / "src" / "mmaprobe" / Path(found.origin).name
        there.parent.mkdir(parents=True, exist_ok=True)
        there.unlink(missing_ok=True)
        shutil.copyfile(found.origin, there)


def turn(rows: list[Fault], day: str) -> list[Fault]:
    """The rows in an order of their own for each day."""
    return sorted(rows, key=lambda row: hashlib.sha256(f"{day} {row.name}".encode()).digest())


def work_off(trees: list[Tree], rows: list[Fault], until: float | None, whole: bool) -> list[Outcome]:
    """Judge rows, a thread a copy; the first copy alone takes what must be built, and those first."""
    lock, found = threading.Lock(), []
    built, others = [r for r in rows if r.built], [r for r in rows if not r.built]
    if until is None:
        built.sort(key=lambda row: row.file)

    def fits(seconds: float) -> bool:
        return until is None or time.monotonic() + seconds <= until

    def worker(tree: Tree) -> None:
        while True:
            with lock:
                build = FIRST_BUILD + NEXT_BUILD if not tree.changed else NEXT_BUILD
                if tree is trees[0] and built and fits(build):
                    row = built.pop(0)
                elif others and fits(10):
                    row = others.pop(0)
                else:
                    return
            made = tree.judge(row, whole, len(trees))
            with lock:
                found.append(made)
                print(f"{made.state:9} {made.seconds:6.1f}  {row.kind:6}  {row.name}", flush=True)
                if made.state != "killed":
                    print(f"{'':19}{row.file}: {row.why}\n{'':19}{made.said}", flush=True)

    threads = [threading.Thread(target=worker, args=(tree,)) for tree in trees]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def report(found: list[Outcome], asked: int) -> int:
    """Print the sums; 0 where every fault that was tried died."""
    kinds = ("python", "c++", "data", "ci")
    states = ("killed", "hung", "survived", "broken", "absent")
    print(f"\n{'':9}" + "".join(f"{state:>10}" for state in states) + f"{'seconds':>10}")
    for kind in (*kinds, "all"):
        some = [o for o in found if kind in (o.fault.kind, "all")]
        counts = "".join(f"{sum(o.state == state for o in some):10}" for state in states)
        print(f"{kind:9}{counts}{sum(o.seconds for o in some):10.0f}")
    bare = sum(o.state == "killed" and not o.fault.long and not o.fault.needs for o in found)
    print(f"{len(found)} of {asked} faults were tried; {bare} died by tests of the bare command")
    bad = [o for o in found if o.state in ("survived", "broken")]
    for one in bad:
        print(f"{one.state}: {one.fault.name} ({one.fault.file})")
    return 1 if bad or not any(o.state in ("killed", "hung") for o in found) else 0


def main(words: list[str] | None = None) -> int:
    """The command line; its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", help="a glob of names or files")
    parser.add_argument("--kind", choices=("python", "c++", "data", "ci"), help="faults of one kind")
    parser.add_argument("--seconds", type=float, help="begin nothing that does not fit; other rows each day")
    parser.add_argument("--whole", action="store_true", help="the whole suite on what the named tests let live")
    parser.add_argument("--passed", action="store_true", help="the tests have just passed here: not once more")
    parser.add_argument("--jobs", type=int, default=1, help="copies of the checkout at work at a time")
    parser.add_argument("--work", type=Path, help="where the copies and the build lie; build/mutants unless given")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    parser.add_argument("--tables", type=Path, default=TABLES, help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    until = time.monotonic() + given.seconds if given.seconds else None
    try:
        every = faults(given.tables)
        rows = [f for f in every if any(fnmatch.fnmatch(x, given.only) for x in (f.name, f.file))]
        rows = [f for f in rows if given.kind in (None, f.kind)]
        for row in rows:
            row.applied(given.root)
    except BadTable as error:
        print(f"the table of faults: {error}", file=sys.stderr)
        return 2
    if not rows:
        print(f"no fault is named {given.only}", file=sys.stderr)
        return 2
    if until is not None:
        rows = turn(rows, datetime.date.today().isoformat())
    work = (given.work or given.root / "build" / "mutants").resolve()
    work.mkdir(parents=True, exist_ok=True)
    held = (work / "lock").open("w")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"another run is at work in {work}: wait for it, or choose another folder with --work", file=sys.stderr)
        return 2
    with held:
        return over(given, rows, until, work)


def over(given: argparse.Namespace, rows: list[Fault], until: float | None, work: Path) -> int:
    """Try the rows in copies of the checkout below ``work``; the exit code."""
    trees = [Tree(given.root.resolve(), work, f"tree{n}") for n in range(max(1, given.jobs))]
    if refused := trees[0].refused():
        print(f"without a fault nothing is imported, so every test would fail: {refused}", file=sys.stderr)
        return 2
    if given.passed or (until is None and len(rows) > 1 and sound(trees[0], rows)):
        for tree in trees:
            tree.sound = True
    return report(work_off(trees, rows, until, given.whole), len(rows))


if __name__ == "__main__":
    sys.exit(main())
