"""Every check of the equations of real benchmarks: their numbers, and eight digits for each trace, in its order."""

import hashlib

import pytest

from stepsight.core.equations.evaluator import checks_of
from stepsight.storage.importers import find_kind, read_traces
from tests.messages import same_text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "file"),
    [
        ("mr-math-invalid", "mr-math/mr-math_invalid_errors.json"),
        ("mr-math-redundant", "mr-math/mr-math_redundant_errors.json"),
        ("mr-gsm8k", "mr-gsm8k/MR-GSM8K_partial.json"),
        ("perturbation", "perturbation/perturbation.json"),
        ("prm800k", "prm800k/test.jsonl"),
    ],
)
def test_checks_stand_where_they_stood(data, kind, file):
    with open(data / file, "rb") as lines:
        checks = [checks_of(trace) for _, trace in read_traces(find_kind(kind), lines, file, lambda *_: None)]
    every = [check for trace in checks for step in trace for check in step]
    places = [[[(c.start, c.end, c.holds, str(c.method)) for c in step] for step in trace] for trace in checks]
    digests = [hashlib.sha256(repr(trace).encode()).hexdigest()[:8] for trace in places]
    same_text(f"{len(every)} checks, {sum(not check.holds for check in every)} failing")
    for start in range(0, len(digests), 16):
        same_text(" ".join(digests[start : start + 16]))
