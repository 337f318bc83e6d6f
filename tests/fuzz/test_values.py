"""Labels as programs write them: generated variants whose reading is known."""

import json
from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest

from stepsight.storage.importers import KINDS
from tests.fuzz.attack import COUNT
from tests.seeds import chance

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
# By what they say of a step: words, and numbers in a column of ratings or of validity.
WORDS: dict[str, tuple[Any, ...]] = {
    "neg": ("neg", " Negative", "-", "−", "wrong", False, "FALSE"),
    "neu": ("neu", "NEUTRAL "),
    "pos": ("pos", "Positive\xa0"),
    "valid": ("+", "correct", True, "True", "yes", "ok"),
}
NUMBERS: dict[str, tuple[Any, ...]] = {"neg": (0, 0.0, "0", "0."), "valid": (1, 1.0, "1", "1.0", "+1")}
RATINGS: dict[str, tuple[Any, ...]] = {
    "neg": (-1, -1.0, "-1", "−1.0"),
    "neu": (0, 0.0, "0"),
    "pos": (1, 1.0, " 1", "+1"),
}
Row = dict[str, Any]


def joined(*forms):
    return {gold: sum((one.get(gold, ()) for one in forms), ()) for gold in dict.fromkeys(chain(*forms))}


def rated(texts, values):
    pairs = zip(texts, values, strict=True)
    steps = [{"completions": [{"text": text, "rating": value}], "chosen_completion": 0} for text, value in pairs]
    return {"question": {"problem": "?"}, "label": {"steps": steps}}


# The rows of kinds with a label for each step, and what the kind says of each label that it has a name for.
KINDS_OF_LABELS: dict[str, tuple[Callable[[list[str], list[Any]], Row], dict[str, tuple[Any, ...]]]] = {
    "plain": (lambda texts, values: {"id": 1, "problem": "?", "steps": texts, "labels": values}, WORDS),
    "stepwise": (
        lambda texts, values: {"prompt": "?", "completions": texts, "labels": values},
        joined(WORDS, NUMBERS),
    ),
    "prm800k": (rated, joined(WORDS, RATINGS)),
    "mr-math-redundant": (
        lambda texts, values: {
            "id": 1,
            "question": "?",
            "model_output_step_format": [[text] for text in texts],
            "rating": values,
        },
        joined(WORDS, RATINGS),
    ),
}


@pytest.mark.parametrize("kind", KINDS_OF_LABELS)
def test_labels_of_kinds(kind):
    row_of, forms = KINDS_OF_LABELS[kind]
    for number in range(COUNT):
        rng = chance(f"{kind}:{number}")
        texts = [rng.choice(TEXTS) for _ in range(rng.randint(1, 6))]
        golds = [rng.choice((None, *forms)) for _ in texts]
        row = row_of(texts, [rng.choice(GAPS) if one is None else rng.choice(forms[one]) for one in golds])
        trace = KINDS[kind].parse(json.loads(json.dumps(row)), "f")
        assert [step.gold for step in trace.steps] == golds, (number, row)
        assert [step.text for step in trace.steps] == texts
