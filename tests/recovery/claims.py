"""Wrong claims without a search: ``python tests/recovery/claims.py --seeds 40000-40499 --jobs 2``.

Each random architecture is settled from its own true datapath, as a search that found it would settle it: what is said
simpler than the truth and is another function is a claim that would be wrong; ``left open`` where the certificate names
a neighbour that is the truth.  That takes half as long as a derivation, and tries those, too, that no search finds.
``unseen`` are fields left open although vectors of the judge tell them: kinds of vectors that the settlement lacks.
What agreed as well is not held to what refutes neighbours, since the truth itself would be among it.
Exit status 1 where a claim is wrong or left open.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Literal

from outcomes import BlackBox, judged, unrefuted, verdict_on
from random_architectures import Case, case
from seeds import seeds_of, spread

from mmaprobe.derivation.budget import ALLOWANCE, Allowance, SpentError
from mmaprobe.derivation.certificate import OTHERWISE, Certificate
from mmaprobe.derivation.certify import Settlement
from mmaprobe.derivation.deriving import usual_fresh
from mmaprobe.derivation.search.stages import Search
from mmaprobe.derivation.session import Ended, Session, State
from mmaprobe.errors import DeviceError
from mmaprobe.models.engine import evaluate_many
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.diff import datapath_changes

Verdict = Literal["recovered", "left open", "wrong", "unsettled"]


@dataclass(frozen=True)
class Claim:
    """What became of a true datapath: the verdict; of a wrong claim how many judged vectors tell it, and the fields in
    which it is written otherwise; open fields that judged vectors tell."""

    seed: int
    kind: str
    verdict: Verdict
    seconds: float
    differing: int = 0
    changes: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        return json.dumps(asdict(self))


def claim(seed: int, allowance: int = ALLOWANCE) -> Claim:
    """Settle the architecture of a seed from the truth, and judge what is claimed."""
    drawn = case(seed)
    began = time.thread_time()
    settled = _settled(drawn, allowance)
    seconds = round(time.thread_time() - began, 2)
    if settled is None:
        return Claim(seed, drawn.kind, "unsettled", seconds)
    claimed, certificate = settled
    vectors = judged(drawn.instruction, drawn.datapath)
    others = {key: path for key, path in unrefuted(claimed, certificate).items() if key[0] != OTHERWISE}
    true, mine, *rows = evaluate_many([drawn.datapath, claimed, *others.values()], vectors)
    verdict = verdict_on(true, mine, rows)
    if verdict != "recovered":
        changes = tuple(f"{path}: {true} -> {got}" for path, true, got in datapath_changes(drawn.datapath, claimed))
        return Claim(seed, drawn.kind, verdict, seconds, int((mine != true).sum()), changes)
    told = (" ".join(key) for key, row in zip(others, rows, strict=True) if (row != true).any())
    return Claim(seed, drawn.kind, verdict, seconds, unseen=tuple(told))


def _settled(drawn: Case, allowance: int) -> tuple[Datapath, Certificate] | None:
    """What is claimed, and its certificate; None where there is none within the allowance."""
    box = BlackBox(drawn.instruction, drawn.datapath)
    state = State(Session(box, drawn.instruction, drawn.seed, lambda _: None, Allowance(allowance)), {})
    try:
        found = Settlement(Search(state), others=0).run(drawn.datapath, usual_fresh(drawn.instruction))
    except (SpentError, DeviceError):
        return None
    return None if isinstance(found, Ended) else (state.current, found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seeds_of, required=True, help="the seeds: 7,100-120")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    for each in spread(claim, given.seeds, given.jobs):
        counts[each.verdict] += 1
        counts["with unseen fields"] += bool(each.unseen)
        if each.verdict in ("left open", "wrong") or each.unseen:
            print(each.line, flush=True)
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return bool(counts["wrong"] or counts["left open"])


if __name__ == "__main__":
    sys.exit(main())
