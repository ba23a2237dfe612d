"""The site of the documentation, and the pages of it that are made from the package: ``nox -s docs``."""

from __future__ import annotations

import inspect
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import mmaprobe
from mmaprobe.catalog.architectures import every, ships, tables
from mmaprobe.probing.questions import PROBES
from mmaprobe.report.datapath.known import parameter_lines, parameter_rows

project = "mmaprobe"
copyright = "the mmaprobe authors, under the Apache License 2.0"
release = metadata.version("mmaprobe")
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = f"mmaprobe {release}"
html_static_path = ["style"]
html_css_files = ["site.css"]
exclude_patterns = ["recipes", "notebooks"]
suppress_warnings = ["toc.not_included"]  # the pages of architectures, which a table names
myst_heading_anchors = 4
autodoc_typehints = "description"
DOCS = Path(__file__).parent
ASKED = (
    ("V100, f16", "sm_70", "mma.m8n8k4.f32.f16.f16.f32"),
    ("A100, f16", "sm_80", "mma.m16n8k16.f32.f16.f16.f32"),
    ("H100, f16", "sm_90a", "mma.m16n8k16.f32.f16.f16.f32"),
    ("H100, FP8", "sm_90a", "wgmma.mma_async.m64n8k32.f32.e4m3.e4m3"),
    ("H100, f64", "sm_90a", "mma.m8n8k4.f64.f64.f64.f64"),
    ("RTX 5090, FP8", "sm_120a", "mma.m16n8k32.f32.e4m3.e4m3.f32"),
    ("MI200, f16", "gfx90a", "v_mfma_f32_16x16x16f16"),
    ("MI300, f16", "gfx942", "v_mfma_f32_16x16x16_f16"),
    ("RX 7900, f16", "gfx1100", "v_wmma_f32_16x16x16_f16"),
    ("x86 AVX-512, bf16", "x86-64", "x86.vdpbf16ps"),
)
"""Units whose models are asked every question: what each is called, its architecture, an instruction."""
MADE = DOCS / "made"


def answers() -> dict[str, dict[str, list[str]]]:
    """By question: each answer with the units that give it."""
    found: dict[str, dict[str, list[str]]] = {}
    for title, name, instruction in ASKED:
        for question, finding in mmaprobe.probe(f"model:{name}", instruction).items():
            found.setdefault(question, {}).setdefault(finding.text, []).append(title)
    return found


def answers_table(units: dict[str, list[str]]) -> Iterator[str]:
    """The answers to a question, those that units share in one row."""
    yield "\n| unit | answer |\n|---|---|"
    for text, titles in units.items():
        said = text.replace("\\", r"\\").replace("|", r"\|").replace("*", r"\*").replace("_", r"\_").replace("<", r"\<")
        yield f"| {'; '.join(titles)} | {said} |"
    yield ""


def questions() -> Iterator[str]:
    """A section a question: what it asks, the experiment as its file states it, the rivals, its source, and what the
    models of some units answer."""
    found = answers()
    yield "# How each question works\n"
    yield "In the order in which they are asked. Each is a file of its own that knows no model and no parameter file."
    yield "Below each stands what models of some units answer; [their pages](architectures.md) say on what these rest."
    for name, probe in PROBES.items():
        module = inspect.getmodule(probe.experiment)
        assert module is not None
        yield f"\n## {name}\n\n*{probe.asks[0].upper()}{probe.asks[1:]}?*\n"
        yield inspect.cleandoc(str(module.__doc__)).replace("``", "`") + "\n"
        yield f"Rivals: {probe.rivals}. Source: `src/{module.__name__.replace('.', '/')}.py`."
        yield from answers_table(found.get(name, {}))


def architecture(name: str) -> Iterator[str]:
    """What is known of every primitive, as ``mmaprobe parameters show`` says it."""
    yield f"# {name}\n"
    yield f"`mmaprobe parameters show {name}` prints this page; every line is explained in [the words](../words.md).\n"
    yield "```text"
    yield from parameter_lines(name)
    yield "```"


def architectures(names: Iterable[str]) -> Iterator[str]:
    """A row an architecture: its products, how many primitives have a datapath, and on what these rest."""
    products = {name: each for table in tables()["products"] for name, each in table.items() if name != "source"}
    yield "# Architectures\n"
    yield "What ships, and on what it rests: each primitive counted by the basis of its datapath.\n"
    yield "| architecture | products | primitives | measured | recorded | published | predicted |"
    yield "|---|---|---|---|---|---|---|"
    for name in names:
        count = Counter(row["basis"] for row in parameter_rows(name))
        cells = (str(count[basis]) for basis in ("measured", "recorded", "published", "predicted"))
        called = ", ".join(products.get(name, []))
        yield f"| [{name}](architecture_{name}.md) | {called} | {count.total()} | {' | '.join(cells)} |"


def notebook(path: Path) -> Iterator[str]:
    """An executed notebook as a page: its texts, its code, what each cell showed; tables as a browser draws them."""
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        text = "".join(cell["source"])
        yield (text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```") + "\n"
        for output in cell.get("outputs", ()):
            shown = output.get("data", {"text/plain": output.get("text", "")})
            kind = "text/html" if "text/html" in shown else "text/plain"
            text = "".join(shown[kind])
            if kind == "text/html":  # a wide table scrolls by itself
                text = f'<div style="overflow-x: auto">{text}</div>'
            yield f"```{'{raw} html' if kind == 'text/html' else 'text'}\n{text}\n```\n"
    yield f"The notebook itself: `{path.relative_to(DOCS.parent).as_posix()}`; `nox -s docs` executes it again."


def make(*_: Any) -> None:
    """Write the pages of ``docs/made``."""
    MADE.mkdir(exist_ok=True)
    names = [name for name in every().names if ships(name)]
    pages = {"questions": questions(), "architectures": architectures(names)}
    pages |= {f"architecture_{name}": architecture(name) for name in names}
    pages |= {path.stem: notebook(path) for path in sorted(DOCS.glob("notebooks/*.ipynb"))}
    for name, lines in pages.items():
        (MADE / f"{name}.md").write_text("\n".join(lines) + "\n", "utf-8")


def inside(_: Any, __: str, text: list[str]) -> None:
    """A page as the site can show it: files of a checkout are named, not linked; diagrams are text."""
    text[0] = re.sub(r"\[([^\]]*)\]\((?:\.\./)+((?!docs/)[^)#]*\.md)[^)]*\)", outside, text[0])
    text[0] = text[0].replace("```mermaid", "```text")


def outside(link: re.Match[str]) -> str:
    """What stands for a link that may lead out of the folder."""
    path = link[2]
    return link[0] if (DOCS / path).exists() or (DOCS / "made" / path).exists() else f"{link[1]} (`{path}`)"


def setup(app: Any) -> None:
    """Pages are made before Sphinx looks for them."""
    app.connect("source-read", inside)
    make()
