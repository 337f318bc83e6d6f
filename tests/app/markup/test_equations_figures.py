"""The figures of the evaluator `equations`, which pages show, are those of the manual and of the rules today."""

import json
import re
from pathlib import Path

import pytest

from stepsight.app.markup.text import TERMS
from stepsight.core.equations.evaluator import checks_of
from stepsight.storage.importers import KINDS

MANUAL = Path(__file__).resolve().parents[3] / "docs" / "evaluators.md"
ROW = re.compile(r"^\| (.+?) \| [\d,]+ of [\d,]+ \| (\d+) \|.*\| (\d+) of ([\d,]+) \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def measured():
    """For each benchmark, the number of steps that are flagged, of those that are wrong, and of all wrong ones."""
    rows = ROW.findall(MANUAL.read_text(encoding="utf-8"))
    return {name: tuple(int(count.replace(",", "")) for count in counts) for name, *counts in rows}


def test_pages_sum_up_the_table_of_the_manual(measured):
    flagged, found, wrong = map(sum, zip(*measured.values(), strict=True))
    assert len(measured) == 4
    assert f"four benchmarks {flagged} steps had" in TERMS["equations"]
    assert f"gold calls {found} of them ({100 * found / flagged:.0f} %) wrong" in TERMS["equations"]
    assert f"Of all {wrong:,} wrong steps these are {100 * found / wrong:.0f} %:" in TERMS["equations"]


def test_mr_math_is_measured_again(measured, data):
    flagged, wrong = set(), set()
    for line in (data / "mr-math" / "mr-math_invalid_errors.json").read_text(encoding="utf-8").splitlines():
        trace = KINDS["mr-math-invalid"].read(json.loads(line))
        labelled = {i for i, step in enumerate(trace.steps) if step.valid is not None}
        wrong |= {(trace.id, i) for i in labelled if not trace.steps[i].valid}
        failing = {
            trace.owners[i] for i, part in enumerate(checks_of(trace)) if not all(check.holds for check in part)
        }
        flagged |= {(trace.id, i) for i in failing & labelled}
    assert (len(flagged), len(flagged & wrong), len(wrong)) == measured["MR-MATH, invalid steps"]
