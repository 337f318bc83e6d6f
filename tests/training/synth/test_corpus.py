"""The corpus: the same for the same seed, varied, clean, and without a feature that gives a label away."""

import itertools
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable

import pytest
from sklearn.metrics import roc_auc_score

from stepsight.core.files.jsonl import format_trace, parse_trace
from stepsight.core.trace import Label, Trace
from stepsight.training.synth.corpus import FAMILIES, HELD_OUT, TRAINED, generate
from stepsight.training.synth.formula import ErrorKind
from stepsight.training.synth.solution import EVIDENCE_RATE
from tests.messages import refused
from tests.training.synth.samples import calculates, sha256

SIZE = 4000


@pytest.fixture(scope="module")
def traces():
    return list(generate(7, SIZE, FAMILIES))


def test_the_corpus_does_not_change(traces):
    """What was trained and measured stays comparable. A new or changed story needs new hashes here, and the shipped
    evaluators are then no longer those of this corpus."""
    assert sha256(traces) == "975378413b1e0db983369544d88f0d0abb89c892f260e9936b45311125247b0e"
    assert (
        sha256(generate(8, 300, ["age", "circle", "quadratic"], consequences=True))
        == "237cf8698b23eec1c170d00422e6856d41cf210184ace4960ff12ad110451a67"
    )
    larger = generate(5, 300, FAMILIES, larger=True)
    assert sha256(larger) == "2800cef7dd0bb32fb8daa123fb88b27540822ca08eda3a9af4194455c41f3f0b"


@pytest.mark.slow
def test_the_whole_corpus_does_not_change():
    assert (
        sha256(generate(7, 10_000, FAMILIES)) == "53cc000d352f721e24c7625b8ee5d08462c180545e361852556b897c6a4f4191"
    )
    assert sha256(generate(0, 10_000)) == "c2bc7491a6135cb7b53ec3e33044a70e7a538dbb9d34aa75ada25b466d1ba367"


def test_stories_are_read_when_something_is_generated():
    code = """
import stepsight.training.synth.corpus
from stepsight.training.synth.corpus import read_family
print(read_family.cache_info().currsize)
"""
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "0"


def test_a_trace_depends_on_its_seed_and_number_alone():
    assert [t.digest for t in generate(7, 5)] == [t.digest for t in itertools.islice(generate(7, 10**9), 5)]
    assert [t.digest for t in generate(7, 5)] != [t.digest for t in generate(8, 5)]


def test_families_can_be_chosen():
    assert {t.meta["family"] for t in generate(1, 40, ["linear", "age"])} == {"linear", "age"}
    with refused():
        generate(1, 1, ["calculus"])


def test_families_held_out_of_training():
    assert len(HELD_OUT) >= 3
    assert set(HELD_OUT) < set(FAMILIES)
    assert {t.meta["family"] for t in generate(0, 1000)} == set(TRAINED) == set(FAMILIES) - set(HELD_OUT)


def test_larger_numbers_lie_beyond_those_of_training():
    def mean(larger: bool) -> float:
        traces = generate(5, 300, ["shopping", "linear", "rectangle", "travel", "quadratic"], larger)
        return sum(max(abs(float(v)) for v in t.meta["givens"].values()) for t in traces)

    assert mean(True) > 1.5 * mean(False)


def test_traces_survive_the_plain_format(traces):
    for trace in traces[:100]:
        assert parse_trace(format_trace(trace), "here") == trace


def test_labels_before_at_and_after_the_error(traces):
    for trace in traces:
        at, evidence = trace.meta["error_step"], trace.meta["evidence"]
        assert [i for i, label in enumerate(trace.labels) if label == Label.NEG] == ([] if at is None else [at])
        if at is None:
            assert None not in trace.labels
            continue
        assert None not in trace.labels[: at + 1]
        # After the error only the step that exposes it, and its redo, are labelled: pos.
        after = {i: label for i, label in enumerate(trace.labels) if i > at and label is not None}
        assert set(after) <= ({evidence["step"], evidence["step"] + 1} if evidence else set()), trace.id
        assert all(label == Label.POS for label in after.values())


def test_with_consequences_a_step_that_carries_the_error_on_is_right():
    pairs = zip(generate(9, 200), generate(9, 200, consequences=True), strict=True)
    for bare, whole in pairs:
        assert bare.substeps == whole.substeps
        assert None not in whole.labels
        assert all(label in (None, other) for label, other in zip(bare.labels, whole.labels, strict=True))
        assert whole.labels.count(Label.NEG) == (whole.meta["error"] is not None)


def test_the_evidence_stands_after_the_focus(traces):
    for trace in traces:
        evidence = trace.meta["evidence"]
        if evidence is not None:
            assert trace.meta["focus"] < evidence["step"] < len(trace.steps)
            assert trace.meta["later_check"]
            assert evidence["passes"] is (trace.meta["error"] is None)
            assert trace.labels[evidence["step"]] == Label.POS


_NUMBER = re.compile(r"\d+")


def largest(text):
    return max(map(int, _NUMBER.findall(text)), default=0)


TRACE_FEATURES: dict[str, Callable[[Trace], float]] = {
    "number of steps": lambda t: len(t.steps),
    "length": lambda t: sum(len(s.text) for s in t.steps),
    "largest number of the problem": lambda t: largest(t.problem),
    "length of the last step": lambda t: len(t.steps[-1].text),
    "number of checks": lambda t: t.meta["roles"].count("check"),
    "redundant and redone steps": lambda t: len(t.steps) - t.meta["roles"].count("line"),
    "LaTeX": lambda t: "\\" in "".join(s.text for s in t.steps),
    "family": lambda t: FAMILIES.index(t.meta["family"]),
}
STEP_FEATURES: dict[str, Callable[[Trace, int], float]] = {
    "position": lambda t, i: i,
    "distance to the end": lambda t, i: len(t.steps) - i,
    "length": lambda t, i: len(t.steps[i].text),
    "numbers": lambda t, i: len(_NUMBER.findall(t.steps[i].text)),
    "largest number": lambda t, i: largest(t.steps[i].text),
    "a number that ends in 0": lambda t, i: bool(re.search(r"\d0\b", t.steps[i].text)),
    "an equation": lambda t, i: "=" in t.steps[i].text,
    "a check follows": lambda t, i: t.meta["roles"][i + 1 : i + 2] == ["check"],
}


@pytest.mark.parametrize("name", TRACE_FEATURES)
def test_no_feature_of_a_trace_tells_whether_it_is_wrong(traces, name):
    # Nothing is drawn differently for a wrong trace, so only chance is left: five standard errors at 4,000.
    auc = roc_auc_score([t.meta["error"] is not None for t in traces], list(map(TRACE_FEATURES[name], traces)))
    assert abs(auc - 0.5) < 0.046


@pytest.mark.parametrize("name", STEP_FEATURES)
def test_no_feature_of_a_step_tells_its_label(traces, name):
    steps = [(t, i) for t in traces for i, step in enumerate(t.steps) if step.label is not None]
    # Checks and redundant steps are never wrong, and what comes after an error has no label, so that errors lean to
    # later calculations.
    for chosen, margin in ((steps, 0.12), ([step for step in steps if calculates(*step)], 0.15)):
        wrong = [t.labels[i] == Label.NEG for t, i in chosen]
        assert abs(roc_auc_score(wrong, [STEP_FEATURES[name](t, i) for t, i in chosen]) - 0.5) < margin


def test_rates(traces):
    wrong = [t for t in traces if t.meta["error"]]
    right = [t for t in traces if not t.meta["error"]]
    assert len(wrong) / SIZE == pytest.approx(0.5, abs=0.04)
    for group in (wrong, right):
        share = sum(t.meta["evidence"] is not None for t in group) / len(group)
        assert share == pytest.approx(EVIDENCE_RATE, abs=0.05)
    assert sum(Label.NEU in t.labels for t in right) / len(right) == pytest.approx(0.33, abs=0.06)
    kinds = Counter(t.meta["error"] for t in wrong)
    assert set(kinds) == set(ErrorKind)
    assert min(kinds.values()) > 0.01 * len(wrong)
    assert max(kinds.values()) < 0.4 * len(wrong)
    # Errors after which no check fails, or none comes at all.
    assert sum(t.meta["later_check"] and t.meta["evidence"] is None for t in wrong) > 0.04 * len(wrong)
    assert sum(not t.meta["later_check"] for t in wrong) > 0.2 * len(wrong)


def test_wording_varies(traces):
    assert len({trace.digest for trace in traces}) > 0.999 * SIZE
    openings = Counter(" ".join(s.text.split()[:2]) for t in traces for s in t.steps)
    assert len([count for count in openings.values() if count >= 10]) > 150
    assert len({t.meta["evidence"]["kind"] for t in traces if t.meta["evidence"]}) >= 10
    latex = sum("\\" in t.problem + "".join(s.text for s in t.steps) or "$" in t.steps[-1].text for t in traces)
    assert 0.35 * SIZE < latex < 0.65 * SIZE
    assert len({(t.meta["family"], _NUMBER.sub("#", t.problem)) for t in traces}) > 1000


FAULTS = {
    # Braces after a command, a bracket, ^ or _ are LaTeX's own.
    "a place that is not filled": r"(?<![\w}^\]])\{|@\{|[\[\]]|None|Fraction|(?<![\w}])\{[+(]",
    "spaces and stops": r"  |^\s|\s$|(?<!\.)\.\.(?!\.)|\?\?|,,| [,;?!]| \.(?![\d.])|\$\$|\(\s|,\.",
    "a small letter at the start": r"^(?!gcd|lcm|sqrt|log)[a-z]{2,}\b(?! ?[(=])",
    "no stop at the end": r"^(?!# Answer)[\s\S]*[^.!?]$",
}


def test_texts_are_clean(traces):
    assert re.search(FAULTS["a place that is not filled"], "{name} buys 3 cups")
    assert not re.search(FAULTS["a place that is not filled"], "$\\frac{3}{4} + x^{12} = \\text{lcm}(2, 3)$")
    plural = re.compile(
        r"(?<![\d./-])\b1 (?!(?:is|was|has|this|as|us|plus|minus|times|less|divides|gives|yes|\w*ss)\b)[a-z]+s\b"
    )
    plurals = 0
    for text in (text for trace in traces for text in (trace.problem, *trace.substeps)):
        assert not [fault for fault, pattern in FAULTS.items() if re.search(pattern, text)], text
        assert text.replace("\\$", "").count("$") % 2 == 0 or not re.search(r"\\[a-z]", text), text
        plurals += plural.search(text) is not None
    # "1 cakes": a quantity of one is avoided or said in the singular.
    assert plurals < 0.004 * SIZE
