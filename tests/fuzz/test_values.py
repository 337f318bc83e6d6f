"""Values as programs print them: generated variants of lists, labels and first errors whose reading is known."""

import json
import random

import numpy as np
import pytest

from stepsight.storage.importers.column_mapping import ColumnMap, columns_kind
from stepsight.storage.importers.kind import json_rows
from tests.fuzz.attack import COUNT

pytestmark = pytest.mark.slow

TEXTS = (
    "Let x = 1.",
    "It's 2.",
    'He says "5".',
    r"\frac{1}{2}",
    "a\nb",
    "[1, 2]",
    "é − ½ 😀",
    "… and so on ...",
    "{x}",
    "'",
)
GAPS = (None, float("nan"), "", "N/A", "NaN", "<NA>", " null ")
FORMS = {
    True: (1, 1.0, "1", "1.0", True, "True", "+", "correct", "Yes"),
    False: (0, 0.0, "0", "0.", False, "-", "wrong"),
}


def test_lists_of_steps_and_labels() -> None:
    for number in range(COUNT):
        rng = random.Random(f"lists:{number}")
        texts = [rng.choice(TEXTS) for _ in range(rng.randint(1, 6))]
        valid = [rng.choice((True, False, None)) for _ in texts]
        labels = [rng.choice(GAPS) if one is None else rng.choice(FORMS[one]) for one in valid]
        steps = rng.choice((texts, json.dumps(texts), repr(texts), str(np.array(texts, dtype=object))))
        row = {"q": "?", "s": steps, "l": rng.choice((labels, json.dumps(labels), repr(labels)))}
        trace = columns_kind(ColumnMap("q", "s", "l", "validity"), json_rows).parse(row, "f")
        assert [step.text for step in trace.steps] == texts, (number, row)
        assert [step.valid for step in trace.steps] == valid, (number, row)


def test_first_errors() -> None:
    for number in range(COUNT):
        rng = random.Random(f"errors:{number}")
        steps, start = ["a"] * rng.randint(1, 9), rng.randint(0, 1)
        error = rng.choice((None, *range(-1, len(steps))))
        forms = (
            GAPS[:3] if error is None else [form(error + start) for form in (int, float, str, lambda x: f" {x}.0")]
        )
        row = {"q": "?", "s": steps, "l": rng.choice(forms)}
        trace = columns_kind(ColumnMap("q", "s", "l", f"error-from-{start}"), json_rows).parse(row, "f")
        assert trace.has_gold == (error is not None), (number, row)
        assert trace.first_error == (None if error in (None, -1) else error), (number, row)
