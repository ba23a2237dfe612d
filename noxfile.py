"""Sessions of the project: ``nox -s lint tests`` runs what every change must pass.

``wheel`` builds what users install and uses it outside the checkout; ``aarch64`` cross-builds another;
``docs`` redraws the pictures and builds the site;
``stranger`` runs the README's two commands on a machine with what they ask for;
``long`` runs what its test command leaves out; ``sanitize`` runs random records
under sanitizers; ``interpreters`` compares the
engine with the NumPy stages and the oracle at length; ``recovery`` derives
datapaths blind from models whose answer is known; ``new_chip`` regenerates two
parameter files from chips of which none ships; ``campaigns`` kills workers of
clusters and whole campaigns; ``browser`` looks at the pages of reports; ``torch`` runs what needs PyTorch;
``emulators`` asks programs of other machines; ``rocjitsu`` runs ``hip:0`` on AMD's emulator; ``gemm`` holds schedules
of matrix products against their libraries; ``mutants`` counts which seeded faults the tests
kill; ``compile`` and ``volta`` compile every NVIDIA form; ``gpu`` runs the
suites on a GPU.
"""

from __future__ import annotations

import os
import platform
import sys
import zipfile
from pathlib import Path

import nox

nox.options.sessions = ["lint", "tests"]
nox.options.default_venv_backend = "venv"

MODEL_CALL = """
import numpy as np, mmaprobe
hopper = mmaprobe.model("sm_90a", "mma.m16n8k16.f32.f16.f16.f32")
ones = np.ones((1, 16), np.float16)
assert float(hopper.dot(ones, ones, np.zeros(1, np.float32))[0]) == 16.0
print("model called from", mmaprobe.__file__)
"""
ELF_AARCH64 = 183
"""The machine that an ELF file for aarch64 names."""
WHEEL = os.environ.get("MMAPROBE_WHEEL", "")
"""A wheel that was built already, which some sessions install instead of building one."""
RECOVERED = ("x86-64+amd", "x86-64+intel", "aarch64")


@nox.session
def lint(session: nox.Session) -> None:
    """Format of Python and C++, style, types and import order."""
    session.install(".[dev]")
    session.run("ruff", "format", "--check")
    sources = session.run("git", "ls-files", "*.hpp", "*.cpp", "*.cuh", external=True, silent=True)
    session.run("clang-format", "--dry-run", "--Werror", *str(sources).split())
    session.run("ruff", "check")
    session.run("mypy")
    session.run("lint-imports")


@nox.session
def tests(session: nox.Session) -> None:
    """The bare test command, on all cores, some minutes; arguments go to pytest."""
    session.install(".[test]")
    session.run("pytest", *session.posargs)


@nox.session
def long(session: nox.Session) -> None:
    """What the bare test command leaves out, on all cores: minutes; ``-m ''`` behind ``--`` runs all tests."""
    session.install(".[test]")
    session.run("pytest", "-m", "long", *session.posargs)


@nox.session
def stranger(session: nox.Session) -> None:
    """The README's two commands as CI runs them: a clone, a fresh environment, no compiler beyond g++; ten minutes."""
    session.run(".ci/stranger", "run", session.create_tmp(), external=True)


@nox.session
def interpreters(session: nox.Session) -> None:
    """Engine against stages (10^7 vectors) and oracle (20,000) on every distinct datapath; hours of processor time.

    It goes on where an earlier run of the same code ended; MMAPROBE_SHARD=1/4 takes a quarter of the datapaths.
    """
    session.install(".[test]")
    where = {"MMAPROBE_DEPTH": "full", "MMAPROBE_FINISHED": str(session.cache_dir.resolve() / "interpreters")}
    session.run(
        "pytest", "-m", "", "-n", "auto", "-rs", "tests/models/test_interpreters.py", *session.posargs, env=where
    )


@nox.session
def sanitize(session: nox.Session) -> None:
    """Random datapath records, legal and not, on an engine built with AddressSanitizer and UndefinedBehaviorSanitizer.

    Arguments go to ``tests/record_fuzz.py`` (``--seconds 3600``, ``--start 100000``, ``--seed 7``).
    """
    session.install("-C", "cmake.define.MMAPROBE_SANITIZE=ON", "-C", "build-dir=build/sanitize", ".[test]")
    asked = (os.environ.get("CXX", "g++"), "-print-file-name=libasan.so")
    asan = str(session.run(*asked, external=True, silent=True)).strip()
    stdcpp = str(session.run(asked[0], "-print-file-name=libstdc++.so.6", external=True, silent=True)).strip()
    where = {"LD_PRELOAD": f"{asan} {stdcpp}", "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
    session.run("python", "tests/record_fuzz.py", *(session.posargs or ["--seconds", "600"]), env=where)


@nox.session
def arm(session: nox.Session) -> None:
    """Cross-compile the Arm runner and test it under QEMU; needs g++-aarch64-linux-gnu and qemu-user-static."""
    session.install(".[test]")
    runner = Path(session.create_tmp()).resolve() / "arm_runner"
    session.run("tests/arm/build.sh", str(runner), external=True)
    kernels = runner.with_name("arm_kernels")
    session.run("tests/arm/build_kernels.sh", str(kernels), external=True)
    where = {"MMAPROBE_ARM_RUNNER": str(runner), "MMAPROBE_ARM_KERNELS": str(kernels)}
    session.run(
        "pytest",
        "-m",
        "",
        "-rs",
        "tests/devices/test_arm_units.py",
        "tests/models/test_kernels_arm.py",
        *session.posargs,
        env=where,
    )


@nox.session
def emulators(session: nox.Session) -> None:
    """Programs of other machines under QEMU, and RISC-V's dot products under Spike where spike and pk are (PATH)."""
    session.install(".[test]")
    session.run("pytest", "-m", "", "-rs", "tests/devices/test_emulated_program.py", *session.posargs)


@nox.session
def rocjitsu(session: nox.Session) -> None:
    """``hip:0`` under AMD's emulator, which must be here beside ROCm: ``nox -s rocjitsu -- gfx942_cdna3_kmd.json ...``.

    Of each machine a run of its main forms, and a page of what its arithmetic gets right: docs/emulators.md.
    """
    session.install(".[rocm]")
    for config in session.posargs:
        below, name = ("rocjitsu", "--config", config, "--"), Path(config).stem
        architecture = name.partition("_")[0]
        out = Path("build") / "rocjitsu" / name
        run = ("run", "--device", "hip:0", "--budget", "30", "--out", str(out))
        session.run(*below, "mmaprobe", *run, external=True, success_codes=[0, 1, 4])
        page = ("--plan", "push", "--budget", "30", "--markdown", str(out.with_suffix(".md")))
        compared = ("validate", "hip:0", f"model:{architecture}", *page)
        session.run(*below, "mmaprobe", *compared, external=True, success_codes=[0, 1, 4])


@nox.session
def campaigns(session: nox.Session) -> None:
    """Campaigns on a real dask and (root; slurm-wlm, munge) a real Slurm, a worker lost in each; 100 kills over two."""
    session.install(".[test,cluster]")
    session.run("pytest", "-m", "", "-rs", "tests/campaigns", *session.posargs)
    session.run("python", "tests/campaigns/kills.py", "--kills", "100")


@nox.session
def wheel(session: nox.Session) -> None:
    """Build the sdist and a wheel from it (or take MMAPROBE_WHEEL), install that alone, and use it elsewhere."""
    session.install("build", "auditwheel")
    built = Path(session.create_tmp()).resolve()
    for old in built.glob("mmaprobe-*"):
        old.unlink()
    if not WHEEL:
        session.run("python", "-m", "build", "--outdir", str(built))
    made = Path(WHEEL) if WHEEL else next(built.glob("*.whl"))
    session.run("auditwheel", "show", str(made))
    bare = built / "bare"
    session.run("python", "-m", "venv", "--clear", str(bare))
    with session.chdir(built):
        session.run(str(bare / "bin" / "pip"), "install", "--quiet", str(made), external=True)
        session.run(str(bare / "bin" / "python"), "-I", "-c", MODEL_CALL, external=True)
        mmaprobe = str(bare / "bin" / "mmaprobe")
        session.run(mmaprobe, "doctor", external=True)
        job = ("run", "--instruction", "x86.pmaddwd", "--vectors", "10000", "--out", str(bare / "evidence"))
        if platform.machine() == "x86_64":
            session.run(mmaprobe, *job, external=True)


@nox.session
def aarch64(session: nox.Session) -> None:
    """The wheel for aarch64, cross-built on x86-64 (``apt install g++-aarch64-linux-gnu``) into build/aarch64."""
    session.install("scikit-build-core>=0.11", "pybind11>=3.0", "cmake", "ninja")
    suffix = f".cpython-3{sys.version_info.minor}-aarch64-linux-gnu.so"
    defined = {
        "CMAKE_SYSTEM_NAME": "Linux", "CMAKE_SYSTEM_PROCESSOR": "aarch64",
        "CMAKE_CXX_COMPILER": "aarch64-linux-gnu-g++", "PYTHON_MODULE_EXTENSION": suffix,
    }  # fmt: skip
    options = [word for name, value in defined.items() for word in ("-C", f"cmake.define.{name}={value}")]
    target = {"_PYTHON_HOST_PLATFORM": "linux-aarch64", "SETUPTOOLS_EXT_SUFFIX": suffix}
    built = Path("build/aarch64").resolve()
    session.run("pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(built), ".", *options, env=target)
    with zipfile.ZipFile(next(built.glob("mmaprobe-*aarch64.whl"))) as wheel:
        module = wheel.read(f"mmaprobe/_native{suffix}")
    if module[:4] != b"\x7fELF" or int.from_bytes(module[18:20], "little") != ELF_AARCH64:
        session.error("the wheel's module is not for aarch64")


@nox.session
def compile(session: nox.Session) -> None:
    """Every NVIDIA form for every architecture that has it: compiled, disassembled, held against the catalog; an hour.

    What ``build/compiled.jsonl`` holds is not compiled again; arguments go to ``tests/compiled.py`` (``--most 400``).
    """
    session.install(".[cuda13]")
    given = session.posargs or ["--out", "build/compiled.jsonl", "--refused", "1000"]
    Path("build").mkdir(exist_ok=True)
    session.run("python", "tests/compiled.py", *given)


@nox.session
def volta(session: nox.Session) -> None:
    """The same for sm_70, which CUDA 12 alone compiles for and whose code only an nvdisasm of CUDA 12 reads."""
    session.install(f"mmaprobe[cuda12] @ file://{WHEEL}" if WHEEL else ".[cuda12]")
    tools = Path(session.create_tmp()).resolve()
    session.run("pip", "install", "--quiet", "--no-deps", "--target", str(tools), "triton==3.3.1")
    where = {"MMAPROBE_NVDISASM": str(tools / "triton" / "backends" / "nvidia" / "bin" / "nvdisasm")}
    session.run("python", "tests/compiled.py", "--only", "sm_70", *session.posargs, env=where)


@nox.session
def recovery(session: nox.Session) -> None:
    """Blind recovery at length: all shipped datapaths, 10,000 random ones, what is claimed of as many others from the
    truth, and what no datapath fits; hours.

    What ``build/recovery`` holds is not derived again: shipped datapaths one by one, random ones by the hundred.
    Arguments go to ``tests/recovery/whole.py`` (``--cases 1000``, ``--minutes 90``).
    """
    session.install(".[test]")
    jobs = str(os.cpu_count() or 1)
    depth = {"MMAPROBE_DEPTH": "full"}
    session.run("pytest", "-m", "", "-n", jobs, "tests/recovery", "-k", "not seed_", env=depth)
    session.run("python", "tests/recovery/sweep.py", "--out", "build/recovery/shipped.jsonl", "--jobs", jobs)
    session.run("python", "tests/recovery/whole.py", "build/recovery/random.jsonl", "--jobs", jobs, *session.posargs)
    session.run("python", "tests/recovery/claims.py", "--seeds", "10000-19999", "--jobs", jobs)
    answers = ("--units", "51000-51014", "--out", "build/recovery/same_answer.jsonl", "--least", "12")
    session.run("python", "tests/recovery/same_answer.py", *answers, "--jobs", jobs)
    out = Path(session.create_tmp()).resolve()
    for architecture in RECOVERED:
        report = ("--vectors", "1000000", "--out", str(out / architecture))
        session.run("mmaprobe", "run", "--check", "--device", f"model:{architecture}", *report)


@nox.session
def new_chip(session: nox.Session) -> None:
    """Regenerate gfx942.toml and sm_90a.toml where they are not there, from stand-ins of the chips: no function may
    differ from what ships. Some minutes and some hours; what ``build/new_chip`` holds goes on.

    Arguments go to ``tests/recovery/regenerate.py`` (``gfx942``: that one alone).
    """
    session.install(".[test]")
    session.run("python", "tests/recovery/regenerate.py", "--out", "build/new_chip", *session.posargs)


@nox.session
def mutants(session: nox.Session) -> None:
    """The kill matrix: single-field faults of datapaths against the generators; then faults of the project's own text,
    each against the tests that must notice. Arguments go to ``tests/mutants/run.py`` (``--only``, ``--seconds``)."""
    session.install(".[test]", "cmake", "ninja", "pybind11")
    session.run("pytest", "-m", "", "tests/devices/test_mutants.py")
    session.run("python", "tests/mutants/run.py", "--jobs", str(os.cpu_count() or 1), *session.posargs)


@nox.session
def gpu(session: nox.Session) -> None:
    """The suites on a GPU, and our own products on NVIDIA's; red without one. Arguments go to the suites
    (``--device hip:0``)."""
    given = session.posargs or ["--device", "cuda:0"]
    session.install(".[test,rocm]" if any("hip:" in word for word in given) else ".[test,cuda13]")
    session.run("pytest", "probes", "--require-gpu", *given)
    session.run("pytest", "validation", "--require-gpu", "--plan", "bringup", *given)
    if not any("hip:" in word for word in given):
        session.run("pytest", "tests/devices/products_on_gpu.py")


@nox.session
def peer(session: nox.Session) -> None:
    """Models against mmasim 2.1.1, bits and speed; installs it and a CPU build of torch; --out docs/peer.md writes."""
    session.install(".")
    session.run("python", "benchmarks/compare_peer.py", *session.posargs)


@nox.session(name="torch")
def tensors(session: nox.Session) -> None:
    """What needs PyTorch, which it installs: its tensors in and out, its functions as devices.  A CPU build will do."""
    session.install(".[test]", "torch")
    session.run("pytest", "-m", "", "tests/operands/torch_tensors.py", *session.posargs)
    session.run("pytest", "-m", "", "tests/devices/test_function.py", "tests/probing/test_long_sums.py", "-k", "torch")


@nox.session
def gemm(session: nox.Session) -> None:
    """Every schedule that ships against its library, installed for it: 20 shapes, seven families, every element.

    What the processor lacks is listed with the reason. TORCH_INDEX: where to get a CPU build of torch.
    """
    index = ["--extra-index-url", os.environ["TORCH_INDEX"]] if "TORCH_INDEX" in os.environ else []
    session.install(".[test]", *index, "-r", "tests/real_products/requirements.txt")
    session.run("pytest", "-m", "", "-rsP", "-n", "auto", "tests/real_products", *session.posargs)


@nox.session
def browser(session: nox.Session) -> None:
    """Pages of reports in a headless Chromium (apt-get install -y chromium), red without one; pictures of them are left
    in ``build/browser``: on a desk, on a telephone, in the dark, printed."""
    session.install(".[test]")
    shots = Path("build") / "browser"
    shots.mkdir(parents=True, exist_ok=True)
    where = {"MMAPROBE_SHOTS": str(shots.resolve())}
    session.run("pytest", "-m", "browser", "tests/report", *session.posargs, env=where)


@nox.session
def docs(session: nox.Session) -> None:
    """Redraw the pictures, run the Python of README and docs/layouts.md, build the site without a warning, execute the
    notebook again."""
    session.install(".[plot,docs]")
    session.install("nbclient", "nbformat", "ipykernel")
    session.run("sphinx-build", "-W", "--keep-going", "-q", "-b", "html", "docs", "build/site")
    session.run("python", "docs/pictures.py")
    session.run("python", "docs/word_pictures.py")
    session.run("python", "-m", "doctest", "README.md", "docs/layouts.md")
    session.run("python", "docs/notebook.py", "--check")


@nox.session
def bench(session: nox.Session) -> None:
    """Every benchmark; arguments go to each, for example --smoke."""
    session.install(".")
    for script in sorted(Path("benchmarks").glob("bench_*.py")):
        session.run("python", str(script), *session.posargs)
