"""Readings in both orders, against forward passes over each order."""

import pytest

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.reading import Reading, Rereading
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.checkpoints import write_evaluator
from tests.core.formats.by_hand import TRACES, check_candidates, check_judgments
from tests.core.scoring.test_scorer import plain
from tests.messages import refused


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluator") / "causal"
    return load_evaluator(write_evaluator(folder, is_causal=True, max_position_embeddings=400))


def in_both_orders(evaluator, window=None):
    return Scorer(evaluator).reread(Rereading(Reading.BOTH_ORDERS, window)).evaluator


def test_in_both_orders_a_step_has_the_mean_of_the_two(causal):
    def rows(trace, j):
        steps = trace.substeps[: j + 1]
        forward, back = (plain(causal, Trace.of(trace.problem, one))[-1] for one in (steps, steps[::-1]))
        return (forward + back[::-1]) / 2

    evaluator = in_both_orders(causal)
    assert evaluator.sees_later_steps
    by_prefix = [[rows(trace, j) for j in range(len(trace.substeps))] for trace in TRACES]
    check_judgments(Scorer(evaluator), by_prefix, TRACES)
    check_candidates(Scorer(evaluator), by_prefix, TRACES)


def test_a_reading_is_asked_for_by_name_and_an_evaluators_own_is_left_as_it_is(tmp_path):
    folder = write_evaluator(tmp_path / "it", is_causal=True)
    named = load_evaluator(f"{folder}, read in both orders")
    assert (named.name, named.attention) == ("it, read in both orders", "causal, read in both orders")
    own = load_evaluator(folder)
    assert own.reread(Rereading(Reading.ONCE)) is own
    assert load_evaluator(f"{folder}, read once").name == "it"
    assert named.reread(Rereading(Reading.BOTH_ORDERS)) is named
    assert named.reread(Rereading(Reading.ONCE)).attention == "causal"


def test_what_cannot_be_read_in_both_orders_is_named(tmp_path, causal):
    write_evaluator(tmp_path / "bidir")
    for spec in (tmp_path / "bidir", "equations", "vllm:http://localhost:1", "critic:http://localhost:1"):
        with refused():
            load_evaluator(f"{spec}, read in both orders")
    long = Trace.of("q", ["2 " * 120, "3 " * 120], id="long")
    with refused():
        in_both_orders(causal).encode(long)


def test_a_template_that_reads_twice_is_refused(tmp_path):
    folder = write_evaluator(tmp_path / "it", is_causal=True)
    card = folder / "stepsight.json"
    card.write_text(card.read_text().replace('"bos": null', '"bos": null, "reading": "twice"'))
    with refused():
        load_evaluator(folder)
