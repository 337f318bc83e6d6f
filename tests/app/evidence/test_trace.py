"""The evidence of one trace as a file: whole, small, and closed to whatever is not ours."""

import base64
import hashlib
import re
from datetime import UTC, datetime

import numpy as np
import pytest

from stepsight.app.evidence.evidence import Evidence, EvidenceAddress
from stepsight.app.evidence.trace import evidence_file, evidence_html
from stepsight.app.web.html import bundle
from stepsight.core.evaluator_summary import EvaluatorSummary
from stepsight.core.evidence import LeaveOneOut
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Hindsight, Outputs, StepScores, Thresholds
from stepsight.core.trace import Trace
from tests.app.injection import PAYLOADS

MADE = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


def evidence(problem="What is 1 + 1?", steps=("It is 3.", "Check."), name="mini"):
    """Probabilities drawn at random: how they are written takes as much room as any."""
    draw = np.random.default_rng(0)
    n = len(steps)
    rows = [draw.dirichlet([1, 1, 1], j + 1).astype(np.float32) for j in range(n)]
    left_out = LeaveOneOut(StepScores(rows[-1]), draw.dirichlet([1, 1, 1], (n, n)).astype(np.float32))
    judgment = Judgment(Trace.of(problem, list(steps)), Mode.HINDSIGHT, Hindsight(tuple(rows)))
    about = EvaluatorSummary(
        name, "f" * 64, "stepsight", "bidirectional", "float32", Outputs.THREE_WAY, 1, None, Thresholds()
    )
    found = Evidence(judgment, name, about, Thresholds(), None, ())
    return found, left_out


def written(*args, **options):
    found, left_out = evidence(*args, **options)
    return evidence_file(found, evidence_html(found, EvidenceAddress(), left_out=left_out), MADE)


def test_it_says_what_it_is_of():
    page = written()
    for part in ("What is 1 + 1?", "It is 3.", "mini", "f" * 64, "2026-03-01 12:30 UTC"):
        assert part in page


def test_it_asks_for_nothing():
    page = written("Solve $x^2$.", ["$x = 1$"])
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:|//|/)""", page.partition("<script>")[0])
    assert not re.search(r"url\((?!data:)", page.partition("</style>")[0])
    assert "default-src 'none'" in page


def test_only_its_own_scripts_may_run():
    page = written("Solve $x^2$.", ["$x = 1$"])
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 2
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in page
    assert "unsafe-inline" not in page.partition("script-src")[2].partition(";")[0]


def test_formulas_bring_the_fonts_that_they_need():
    plain, maths = written(), written("Solve $x^2$.", ["$x = 1$"])
    bold = written("Solve $\\mathbf{x}^2$.", ["$x = 1$"])
    assert plain.count("data:font") == 0
    assert "katex.render" not in plain.partition("</main>")[0]
    assert maths.count("data:font") == 7
    assert "Permission is hereby granted" in maths
    assert bold.count("data:font") == 9
    assert len(plain) < 170_000
    assert len(maths) < 700_000


@pytest.mark.parametrize("n", [60, 120, 200])
def test_a_long_trace_stays_below_one_megabyte(n):
    text = "Then $\\mathbf{x} = \\mathcal{O}(1)$ follows."
    page = written("Solve $x^2$.", [f"{i}. {text}" for i in range(n)])
    assert len(page.encode()) < (1_000_000 if n <= 120 else 2_500_000)


def test_a_wild_trace_stays_text():
    page = written(PAYLOADS[1], PAYLOADS[:40], name='"><script>alert(1)</script>')
    assert len(re.findall("<script", page)) == len(re.findall("</script", page)) <= 2
    body = page.partition("<main")[2].partition("</main>")[0]
    assert "<img" not in body
    assert "<svg" not in body


def test_modules_become_one_script():
    for name in ("main.js", "evidence/evidence.js"):
        script = bundle(name)
        assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)
    # What is imported comes before what imports it.
    names = ("shared/dom", "shared/keys", "evidence/curve", "evidence/evidence")
    places = [script.index(f'modules["{name}.js"] = {{}}') for name in names]
    assert places == sorted(places)
    assert script.count('modules["shared/dom.js"] = {}') == 1
