"""Sessions of the project: ``nox -s lint tests`` runs what every change must pass.

``compile`` builds what users install and tries it outside the checkout;
``recovery`` derives datapaths blind from models whose answer is known;
``mutants`` counts which seeded faults the tests kill; ``gpu`` runs what needs
a GPU and fails where there is none.
"""

from __future__ import annotations

from pathlib import Path

import nox

nox.options.sessions = ["lint", "tests"]
nox.options.default_venv_backend = "venv"

RECOVERED = ("x86-64+amd", "x86-64+intel", "aarch64")


@nox.session
def lint(session: nox.Session) -> None:
    """Format, style, types and import order."""
    session.install(".[dev]")
    session.run("ruff", "format", "--check")
    session.run("ruff", "check")
    session.run("mypy")
    session.run("lint-imports")


@nox.session
def tests(session: nox.Session) -> None:
    """The test suite, two workers; arguments go to pytest."""
    session.install(".[test]")
    session.run("pytest", "-n", "2", *session.posargs)


@nox.session
def arm(session: nox.Session) -> None:
    """Cross-compile the Arm runner and test it under QEMU; needs g++-aarch64-linux-gnu and qemu-user-static."""
    session.install(".[test]")
    runner = Path(session.create_tmp()).resolve() / "arm_runner"
    session.run("tests/arm/build.sh", str(runner), external=True)
    session.run("pytest", "-rs", "tests/test_arm.py", *session.posargs, env={"MMAPROBE_ARM_RUNNER": str(runner)})


@nox.session
def compile(session: nox.Session) -> None:
    """Build sdist and wheel, install the wheel, run its doctor outside the checkout.

    Kernels for GPUs are not compiled yet; the doctor names what is missing.
    """
    session.install("build")
    built = Path(session.create_tmp()).resolve()
    session.run("python", "-m", "build", "--outdir", str(built))
    session.install("--force-reinstall", *map(str, built.glob("*.whl")))
    with session.chdir(built):
        session.run("mmaprobe", "doctor")


@nox.session
def recovery(session: nox.Session) -> None:
    """Derive every datapath of the CPU architectures blind from its model, and compare."""
    session.install(".")
    out = Path(session.create_tmp()).resolve()
    for architecture in RECOVERED:
        report = ("--vectors", "1000000", "--out", str(out / architecture))
        session.run("mmaprobe", "run", "--device", f"model:{architecture}", *report)


@nox.session
def mutants(session: nox.Session) -> None:
    """The kill matrix: seeded single-field faults against the generators."""
    session.install(".[test]")
    session.run("pytest", "tests/test_mutants.py", *session.posargs)


@nox.session
def gpu(session: nox.Session) -> None:
    """What this machine lacks, then the suites that need a GPU, which fail without one."""
    session.install(".[test]")
    session.run("mmaprobe", "doctor")
    session.run("pytest", "--require-gpu", "--device", "cuda:0", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Redraw the pictures from the shipped parameters, and run README's Python."""
    session.install(".[plot]")
    session.run("python", "docs/pictures.py")
    session.run("python", "-m", "doctest", "-o", "NORMALIZE_WHITESPACE", "README.md")


@nox.session
def bench(session: nox.Session) -> None:
    """Every benchmark; arguments go to each, for example --smoke."""
    session.install(".")
    for script in sorted(Path("benchmarks").glob("bench_*.py")):
        session.run("python", str(script), *session.posargs)
