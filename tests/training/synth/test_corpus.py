"""The corpus: the same for the same seed, varied, clean, and without a feature that gives a label away."""

import itertools
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from stepsight.core.files.jsonl import format_trace, parse_trace
from stepsight.core.label import Label
from stepsight.core.trace import Trace
from stepsight.training.synth.corpus import TRAINED, generate
from stepsight.training.synth.families import FAMILIES, HELD_OUT
from stepsight.training.synth.mistakes import ErrorKind
from stepsight.training.synth.solution import EVIDENCE_RATE
from tests.messages import refused
from tests.training.synth.samples import calculates, sha256

SIZE = 4000
REDUNDANT = ("restating", "detour", "aside")


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    return list(generate(7, SIZE, FAMILIES))


@pytest.mark.slow
def test_the_corpus_does_not_change():
    """What was trained and measured stays comparable. A new or changed story needs new hashes here, and the shipped
    evaluators are then no longer those of this corpus."""
    assert (
        sha256(generate(7, 10_000, FAMILIES)) == "53cc000d352f721e24c7625b8ee5d08462c180545e361852556b897c6a4f4191"
    )
    assert sha256(generate(0, 10_000)) == "c2bc7491a6135cb7b53ec3e33044a70e7a538dbb9d34aa75ada25b466d1ba367"
    larger = generate(5, 300, FAMILIES, larger=True)
    assert sha256(larger) == "2800cef7dd0bb32fb8daa123fb88b27540822ca08eda3a9af4194455c41f3f0b"


def test_stories_are_read_when_something_is_generated():
    code = """
import stepsight.training.synth.corpus
from stepsight.training.synth.families import read_family
print(read_family.cache_info().currsize)
"""
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "0"


def test_the_same_seed_gives_the_same_traces():
    assert [t.digest for t in generate(3, 50)] == [t.digest for t in generate(3, 50)]
    assert [t.digest for t in generate(3, 50)] != [t.digest for t in generate(4, 50)]


def test_a_shorter_corpus_is_the_beginning_of_a_longer_one():
    longer = [format_trace(t) for t in generate(11, 100)]
    assert [format_trace(t) for t in generate(11, 10)] == longer[:10]


def test_it_streams():
    assert len(list(itertools.islice(generate(1, 10**9), 3))) == 3


def test_no_two_traces_are_the_same(traces):
    assert len({trace.digest for trace in traces}) > 0.999 * SIZE


def test_families_can_be_chosen(traces):
    assert {t.meta["family"] for t in generate(1, 40, ["linear", "age"])} == {"linear", "age"}
    assert {t.meta["family"] for t in traces} == set(FAMILIES)
    with refused():
        generate(1, 1, ["calculus"])


def test_families_held_out_of_training():
    assert len(FAMILIES) >= 20
    assert len(HELD_OUT) >= 3
    assert set(HELD_OUT) < set(FAMILIES)
    assert not {t.meta["family"] for t in generate(0, 1000)} & set(HELD_OUT)
    assert set(TRAINED) | set(HELD_OUT) == set(FAMILIES)


def test_larger_numbers_lie_beyond_those_of_training():
    def largest(larger: bool) -> float:
        sizes = [
            max((abs(int(v)) for v in t.meta["givens"].values() if re.fullmatch(r"-?\d+", v)), default=0)
            for t in generate(5, 300, ["shopping", "linear", "rectangle", "travel"], larger)
        ]
        return sum(sizes) / len(sizes)

    assert largest(True) > 1.5 * largest(False)


def test_traces_survive_the_plain_format(traces):
    for trace in traces[:100]:
        assert parse_trace(format_trace(trace), "here") == trace


def test_labels_before_at_and_after_the_error(traces):
    for trace in traces:
        at, evidence = trace.meta["error_step"], trace.meta["evidence"]
        assert [i for i, label in enumerate(trace.labels) if label == Label.NEG] == ([] if at is None else [at])
        assert trace.first_error == at
        if at is None:
            assert None not in trace.labels
            continue
        assert None not in trace.labels[: at + 1]
        # After the error only the step that exposes it, and its redo, are labelled: pos.
        after = {i: label for i, label in enumerate(trace.labels) if i > at and label is not None}
        assert set(after) <= ({evidence["step"], evidence["step"] + 1} if evidence else set()), trace.id
        assert all(label == Label.POS for label in after.values())


def test_the_evidence_stands_after_the_focus(traces):
    for trace in traces:
        evidence, wrong = trace.meta["evidence"], trace.meta["error"] is not None
        if evidence is None:
            continue
        assert trace.meta["focus"] < evidence["step"] < len(trace.steps)
        assert trace.meta["later_check"]
        assert evidence["passes"] is not wrong
        assert trace.labels[evidence["step"]] == Label.POS


def auc(items: Sequence[tuple[float, bool]]) -> float:
    """ROC AUC, ties counted half. By hand: scores 1, 2, 2 with the first 2 and no other true give 0.75."""
    ranked = sorted(items)
    positives = sum(truth for _, truth in ranked)
    rank_sum, start = 0.0, 0
    for _, group in itertools.groupby(ranked, key=lambda item: item[0]):
        truths = [truth for _, truth in group]
        rank_sum += (start + (len(truths) + 1) / 2) * sum(truths)
        start += len(truths)
    return (rank_sum - positives * (positives + 1) / 2) / (positives * (len(ranked) - positives))


def test_auc_by_hand():
    assert auc([(1, False), (2, True), (2, False)]) == 0.75


_CHECKS = re.compile(
    r"Check|To check|Wait|Hmm|Looking back|Verify|To verify|Sanity|Let me double|Now test|As a check"
)
_NUMBER = re.compile(r"\d+")


def largest(text: str) -> int:
    return max(map(int, _NUMBER.findall(text)), default=0)


TRACE_FEATURES: dict[str, Callable[[Trace], float]] = {
    "number of steps": lambda t: len(t.steps),
    "length": lambda t: sum(len(s.text) for s in t.steps),
    "length of the problem": lambda t: len(t.problem),
    "largest number of the problem": lambda t: largest(t.problem),
    "length of the last step": lambda t: len(t.steps[-1].text),
    "length of the first step": lambda t: len(t.steps[0].text),
    "presence of a check": lambda t: any(_CHECKS.match(s.text) for s in t.steps),
    "number of checks": lambda t: sum(bool(_CHECKS.match(s.text)) for s in t.steps),
    "ends with a check": lambda t: bool(_CHECKS.match(t.steps[-1].text)),
    "ends with an answer": lambda t: "nswer" in t.steps[-1].text or "boxed" in t.steps[-1].text,
    "says wait": lambda t: any("Wait" in s.text for s in t.steps),
    "begins with so": lambda t: sum(s.text.startswith("So ") for s in t.steps),
    "LaTeX": lambda t: "\\" in "".join(s.text for s in t.steps),
    "sign of times": lambda t: sum(s.text.count("×") + s.text.count("\\times") for s in t.steps),
    "redundant and redone steps": lambda t: sum(role in (*REDUNDANT, "redo") for role in t.meta["roles"]),
    "family": lambda t: FAMILIES.index(t.meta["family"]),
    "question mark": lambda t: "?" in t.problem,
}

STEP_FEATURES: dict[str, Callable[[Trace, int], float]] = {
    "position": lambda t, i: i,
    "relative position": lambda t, i: i / len(t.steps),
    "distance to the end": lambda t, i: len(t.steps) - i,
    "last step": lambda t, i: i == len(t.steps) - 1,
    "first step": lambda t, i: i == 0,
    "length": lambda t, i: len(t.steps[i].text),
    "digits": lambda t, i: sum(c.isdigit() for c in t.steps[i].text),
    "numbers": lambda t, i: len(_NUMBER.findall(t.steps[i].text)),
    "largest number": lambda t, i: largest(t.steps[i].text),
    "a number that ends in 0": lambda t, i: bool(re.search(r"\d0\b", t.steps[i].text)),
    "a fraction": lambda t, i: bool(re.search(r"frac|\d/\d", t.steps[i].text)),
    "a decimal": lambda t, i: bool(re.search(r"\d\.\d", t.steps[i].text)),
    "a minus": lambda t, i: "-" in t.steps[i].text,
    "an equation": lambda t, i: "=" in t.steps[i].text,
    "being a check": lambda t, i: bool(_CHECKS.match(t.steps[i].text)),
    "a check follows": lambda t, i: i + 1 < len(t.steps) and bool(_CHECKS.match(t.steps[i + 1].text)),
}


def of_trace(traces: Sequence[Trace], feature: Callable[[Trace], float]) -> float:
    return auc([(feature(t), t.meta["error"] is not None) for t in traces])


def of_step(
    traces: Sequence[Trace], feature: Callable[[Trace, int], float], wanted: Callable[[Trace, int], bool]
) -> float:
    """On the labelled steps that are `wanted`."""
    return auc(
        [
            (feature(t, i), step.label == Label.NEG)
            for t in traces
            for i, step in enumerate(t.steps)
            if step.label is not None and wanted(t, i)
        ]
    )


@pytest.mark.parametrize("name", TRACE_FEATURES)
def test_no_feature_of_a_trace_tells_whether_it_is_wrong(traces, name):
    # Nothing is drawn differently for a wrong trace, so only chance is left: five standard errors at 4,000.
    assert abs(of_trace(traces, TRACE_FEATURES[name]) - 0.5) < 0.046


@pytest.mark.parametrize("name", STEP_FEATURES)
def test_no_feature_of_a_step_tells_its_label(traces, name):
    # Checks and redundant steps are never wrong, and what comes after an error has no label.
    assert abs(of_step(traces, STEP_FEATURES[name], lambda t, i: True) - 0.5) < 0.12


@pytest.mark.parametrize("name", STEP_FEATURES)
def test_no_feature_of_a_calculation_tells_its_label(traces, name):
    # Errors lean to later calculations: those after an error have no label.
    assert abs(of_step(traces, STEP_FEATURES[name], calculates) - 0.5) < 0.15


def test_rates(traces):
    wrong = [t for t in traces if t.meta["error"]]
    right = [t for t in traces if not t.meta["error"]]
    assert len(wrong) / SIZE == pytest.approx(0.5, abs=0.04)
    for group in (wrong, right):
        share = sum(t.meta["evidence"] is not None for t in group) / len(group)
        assert share == pytest.approx(EVIDENCE_RATE, abs=0.05)
    redundant = sum(Label.NEU in t.labels for t in right) / len(right)
    assert redundant == pytest.approx(0.33, abs=0.06)
    kinds = Counter(t.meta["error"] for t in wrong)
    assert set(kinds) == set(ErrorKind)
    assert min(kinds.values()) > 0.01 * len(wrong)
    assert max(kinds.values()) < 0.4 * len(wrong)


def test_errors_after_which_no_check_fails(traces):
    wrong = [t for t in traces if t.meta["error"]]
    elsewhere = [t for t in wrong if t.meta["later_check"] and t.meta["evidence"] is None]
    silent = [t for t in wrong if not t.meta["later_check"]]
    assert len(elsewhere) > 0.04 * len(wrong)
    assert len(silent) > 0.2 * len(wrong)


def test_wording_varies(traces):
    openings = Counter(" ".join(s.text.split()[:2]) for t in traces for s in t.steps)
    assert len([count for count in openings.values() if count >= 10]) > 150
    assert len({t.meta["evidence"]["kind"] for t in traces if t.meta["evidence"]}) >= 10
    latex = sum("\\" in t.problem + "".join(s.text for s in t.steps) or "$" in t.steps[-1].text for t in traces)
    assert 0.35 * SIZE < latex < 0.65 * SIZE
    asked = Counter((t.meta["family"], _NUMBER.sub("#", t.problem)) for t in traces)
    assert len(asked) > 1000


# Braces after a command, a bracket, ^ or _ are LaTeX's own.
_PLACE = re.compile(r"(?<![\w}^\]])\{|@\{|[\[\]]|None|Fraction|(?<![\w}])\{[+(]")


def test_every_place_of_a_template_is_filled(traces):
    assert _PLACE.search("{name} buys 3 cups")
    assert not _PLACE.search("$\\frac{3}{4} + x^{12} = \\text{lcm}(2, 3)$")
    for trace in traces:
        for text in (trace.problem, *trace.substeps):
            assert not _PLACE.search(text), text


def test_spaces_and_stops(traces):
    for trace in traces:
        for text in (trace.problem, *trace.substeps):
            assert "  " not in text, text
            assert text == text.strip(), text
            assert not re.search(r"(?<!\.)\.\.(?!\.)|\?\?|,,| [,;?!]| \.(?![\d.])|\$\$|\(\s|,\.", text), text
            assert text.replace("\\$", "").count("$") % 2 == 0 or not re.search(r"\\[a-z]", text), text


def test_sentences_begin_and_end_as_they_should(traces):
    for trace in traces:
        for text in trace.substeps:
            assert not re.match(r"[a-z]{2,}\b(?! ?[(=])", text) or text.startswith(("gcd", "lcm", "sqrt", "log")), (
                text
            )
            assert text[-1] in ".!" or text.startswith("# Answer"), text
        assert trace.problem[-1] in ".?", trace.problem


def test_one_thing_is_not_several(traces):
    """No "1 cakes": a quantity of one is avoided or said in the singular."""
    plural = re.compile(
        r"(?<![\d./-])\b1 (?!(?:is|was|has|this|as|us|plus|minus|times|less|divides|gives|yes|\w*ss)\b)[a-z]+s\b"
    )
    wrong = [text for trace in traces for text in (trace.problem, *trace.substeps) if plural.search(text)]
    assert len(wrong) < 0.004 * SIZE, wrong[:10]
