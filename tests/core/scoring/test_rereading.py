"""Second readings against forward passes of their own, whose inputs are written out by hand."""

import numpy as np
import pytest
import torch

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Mode
from stepsight.core.reading import CopyOf, FirstCopy, Reading, Rereading
from stepsight.core.scoring.forward import mode_inputs
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.checkpoints import write_evaluator, write_math_shepherd, write_qwen_prm, write_skywork
from tests.core.formats import test_math_shepherd, test_qwen_prm, test_value_head
from tests.core.formats.by_hand import EXACT, TRACES, check_modes, hidden_states, of_two, softmax
from tests.core.scoring.test_scorer import plain
from tests.messages import refused

TRACE = Trace.of("What is 2 + 3?", ["2 + 3 = 5.", ["So 5.", "Check: 5 - 3 = 2."], "Yes."], id="five")


def twice(trace, j):
    """What is read once in place of the first `j + 1` sub-steps."""
    steps = trace.substeps[: j + 1]
    return Trace.of(trace.problem + "\n\n" + "\n".join(steps), steps)


def check_twice(folder, rows):
    evaluator = load_evaluator(folder).reread(Rereading(Reading.TWICE))
    assert evaluator.sees_later_steps
    check_modes(evaluator, lambda trace, j: rows(twice(trace, j), j))


def test_qwens_evaluator_reads_twice(tmp_path):
    backbone, head = write_qwen_prm(tmp_path)

    def rows(trace, j):
        ids, places = test_qwen_prm.published(tmp_path, trace)
        read = hidden_states(backbone, ids)[places[: j + 1]]
        inner = (read @ head["score.0.weight"].T + head["score.0.bias"]).clamp(min=0)
        return of_two(softmax((inner @ head["score.2.weight"].T + head["score.2.bias"]).numpy())[:, 1])

    check_twice(tmp_path, rows)


def test_math_shepherd_reads_twice(tmp_path):
    folder = tmp_path / "math-shepherd-mistral-7b-prm"
    backbone, head = write_math_shepherd(folder)
    weight = head[[test_math_shepherd.MINUS, test_math_shepherd.PLUS]]

    def rows(trace, j):
        ids, tags = test_math_shepherd.published(folder, trace)
        return of_two(softmax((hidden_states(backbone, ids)[tags[: j + 1]] @ weight.T).numpy())[:, 1])

    check_twice(folder, rows)


def test_skyworks_evaluator_reads_twice(tmp_path):
    model, head = write_skywork(tmp_path)

    def rows(trace, j):
        ids, places = test_value_head.published(tmp_path, trace)
        return of_two(test_value_head.value_of(model, head, ids, places[: j + 1]))

    check_twice(tmp_path, rows)


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluator") / "causal"
    return load_evaluator(write_evaluator(folder, is_causal=True, max_position_embeddings=400))


def test_in_both_orders_a_step_has_the_mean_of_the_two(causal):
    def rows(trace, j):
        steps = trace.substeps[: j + 1]
        forward, back = (plain(causal, Trace.of(trace.problem, one))[-1] for one in (steps, steps[::-1]))
        return (forward + back[::-1]) / 2

    check_modes(causal.reread(Rereading(Reading.BOTH_ORDERS)), rows)


def test_with_nothing_before_the_steps_the_inputs_are_those_of_one_reading(causal):
    empty = causal.reread(Rereading(Reading.TWICE, FirstCopy(CopyOf.EMPTY)))
    once, again = causal.encode(TRACE), empty.encode(TRACE)
    for j, end in enumerate(once.ends):
        np.testing.assert_array_equal(again.prefix(j + 1).ids, once.ids[: end + 1])
        np.testing.assert_array_equal(again.prefix(j + 1).reads, once.reads[: j + 1])
    online = [Scorer(one).score_one(TRACE, Mode.ONLINE).online.probs for one in (causal, empty)]
    np.testing.assert_allclose(*online, atol=1e-5)


def test_another_first_copy_is_as_long_and_never_passes_for_the_evaluators_own(causal):
    others = (Trace.of(TRACE.problem, ["mine"]), Trace.of("a", ["b", "c"]), Trace.of("d", ["e"]))
    texts = {
        CopyOf.OWN: {"2 + 3 = 5.", "So 5.", "Check: 5 - 3 = 2."},
        CopyOf.SHUFFLED: {"2 + 3 = 5.", "So 5.", "Check: 5 - 3 = 2."},
        CopyOf.OTHER: {"b", "c", "e"},
    }
    first, found = Trace.of(TRACE.problem, TRACE.substeps[:3]), {}
    for of, expected in texts.items():
        copy = FirstCopy(of, others if of == CopyOf.OTHER else ())
        problem, text = copy.before(first, TRACE).problem.split("\n\n")
        assert (problem, set(text.split("\n"))) == (TRACE.problem, expected)
        found[of] = causal.reread(Rereading(Reading.TWICE, copy))
    assert [one.name for one in found.values()] == [
        "causal, read twice", "causal, read twice, first copy shuffled", "causal, read twice, first copy other",
    ]  # fmt: skip
    # Where no other problem is left, it is the gallery's.
    assert FirstCopy(CopyOf.OTHER, others[:1]).before(first, TRACE) == FirstCopy(CopyOf.OTHER).before(first, TRACE)
    gallery = causal.reread(Rereading(Reading.TWICE, FirstCopy(CopyOf.OTHER)))
    assert len({one.fingerprint for one in (causal, gallery, *found.values())}) == 5


def test_the_beginning_that_prefixes_share_is_read_once_and_changes_nothing(causal):
    evaluator = causal.reread(Rereading(Reading.TWICE))
    scorer, runs = Scorer(evaluator), []
    run = scorer._continued.run
    scorer._continued.run = lambda *asked: runs.append(asked) or run(*asked)
    for trace in [*TRACES, TRACE]:
        found = scorer.score_one(trace).hindsight.rows
        inputs = mode_inputs(trace, evaluator.encode(trace), Mode.HINDSIGHT, causal=True)
        for row, one in zip(found, inputs, strict=True):
            ids = torch.from_numpy(one.ids)[None]
            out = evaluator.model(ids, torch.ones_like(ids), torch.from_numpy(one.reads)[None])
            np.testing.assert_allclose(row, out["logits"][0].softmax(-1).detach().numpy(), atol=EXACT)
    assert len(runs) == sum(len(trace.substeps) > 1 for trace in [*TRACES, TRACE])


def test_a_reading_is_asked_for_by_name_and_an_evaluators_own_is_left_as_it_is(tmp_path):
    folder = write_evaluator(tmp_path / "it", is_causal=True)
    named = load_evaluator(f"{folder}, read twice")
    assert (named.name, named.attention) == ("it, read twice", "causal, read twice")
    card = folder / "stepsight.json"
    card.write_text(card.read_text().replace('"bos": null', '"bos": null, "reading": "twice"'))
    own = load_evaluator(folder)
    assert (own.name, own.attention) == ("it", "causal, read twice")
    assert own.reread(Rereading(Reading.TWICE)) is own
    once = load_evaluator(f"{folder}, read once")
    assert (once.name, once.attention) == ("it, read once", "causal")


def test_what_cannot_be_read_twice_is_named(tmp_path, causal):
    write_evaluator(tmp_path / "bidir")
    for spec in (tmp_path / "bidir", "equations", "vllm:http://localhost:1", "critic:http://localhost:1"):
        for reading in ("twice", "in both orders"):
            with refused():
                load_evaluator(f"{spec}, read {reading}")
    with refused():
        load_evaluator(f"{tmp_path / 'bidir'}, read in both orders, first copy other")
    long = Trace.of("q", ["2 " * 60, "3 " * 60], id="long")
    assert len(causal.encode(long)) < causal.context
    with refused():
        causal.reread(Rereading(Reading.TWICE)).encode(long)
