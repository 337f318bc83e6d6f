"""Evaluators behind a server of vLLM's wire format against the same checkpoints here."""

import json

import numpy as np
import pytest
from tokenizers import Tokenizer

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.inference_servers import server as requests
from stepsight.core.judgment import Mode
from stepsight.core.models.model import SIGMOID, THREE_WAY, VALIDITY
from stepsight.core.scores import Outputs
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.checkpoints import (
    write_actprm,
    write_evaluator,
    write_math_shepherd,
    write_qwen_prm,
    write_reasoneval,
    write_skywork,
    write_token_classifier,
)
from tests.core.formats.by_hand import TRACES
from tests.hub import Hub, point_to
from tests.messages import refused
from tests.vllm_server import Classifier, Converted, Day, LanguageModel, VllmServer, token_id

pytestmark = pytest.mark.slow

# The goal is 1e-3; both sides compute in float32.
CLOSE = 1e-5


def qwen(folder, **options):
    write_qwen_prm(folder)
    return VllmServer(Classifier(folder, VALIDITY), folder, step_tag=token_id(folder, "<extra_0>"), **options)


def shepherd(folder, **options):
    write_math_shepherd(folder, card={"format": "math-shepherd"})
    return VllmServer(LanguageModel(folder), folder, **options)


def classifier(folder, kind="llama", **options):
    write_token_classifier(folder, kind)
    return VllmServer(Classifier(folder, VALIDITY), folder, **options)


def converted(folder, **options):
    server = shepherd(folder, **options)
    server.network = Converted(folder, [token_id(folder, "▁-"), token_id(folder, "▁+")])
    return server


def value_head(folder, **options):
    write_skywork(folder)
    return VllmServer(Classifier(folder, SIGMOID), folder, **options)


def reasoneval(folder, size="34B", **options):
    write_reasoneval(folder, size=size)
    return VllmServer(Classifier(folder, THREE_WAY), folder, **options)


def own(folder, **options):
    write_evaluator(folder)
    return VllmServer(Classifier(folder, THREE_WAY), folder, **options)


def encoder(folder, **options):
    return classifier(folder, "modernbert", **options)


def seven(folder, **options):
    return reasoneval(folder, "7B", **options)


FAMILIES = [qwen, shepherd, converted, classifier, encoder, value_head, reasoneval, seven, own]


def rows_of(judgment):
    return judgment.result.rows if judgment.mode == Mode.HINDSIGHT else (judgment.result.probs,)


@pytest.mark.parametrize("make", FAMILIES)
def test_scores_equal_the_local_ones_in_every_mode(tmp_path, make):
    server = make(tmp_path / "model")
    here = load_evaluator(tmp_path / "model")
    with server.running() as url:
        there = load_evaluator(server.address(url))
        assert (there.format, there.attention, there.outputs) == (here.format, here.attention, here.outputs)
        assert there.name == "prm (vllm)"
        for mode in Mode:
            expected, judged = Scorer(here).score(TRACES, mode), Scorer(there).score(TRACES, mode)
            for mine, other in zip(expected, judged, strict=True):
                assert (other.trace, other.mode) == (mine.trace, mode)
                for row, by_hand in zip(rows_of(other), rows_of(mine), strict=True):
                    np.testing.assert_allclose(row, by_hand, atol=CLOSE)
        *before, last = TRACES[0].substeps
        np.testing.assert_allclose(
            Scorer(there).score_next(TRACES[0].problem, before, [last, "So 7."]),
            Scorer(here).score_next(TRACES[0].problem, before, [last, "So 7."]),
            atol=CLOSE,
        )


def requests_for(make, tmp_path, mode, trace):
    """The bodies that scoring one trace takes."""
    server = make(tmp_path / "model")
    with server.running() as url:
        scorer = Scorer(load_evaluator(server.address(url)))
        server.day.bodies.clear()
        scorer.score_one(trace, mode)
    return server.day.bodies


@pytest.mark.parametrize(
    ("make", "mode", "count"),
    [
        # One pass gives everything of a causal classifier.
        (qwen, "offline", 1),
        (qwen, "hindsight", 1),
        # A language model answers behind each step.
        (shepherd, "offline", 3),
        (shepherd, "hindsight", 3),
        # The prefix of each step, of which the second has two sub-steps; of each sub-step.
        (own, "offline", 1),
        (own, "online", 2),
        (own, "hindsight", 3),
    ],
)
def test_each_prefix_is_asked_for_once(tmp_path, make, mode, count):
    bodies = requests_for(make, tmp_path, mode, TRACES[1])
    prefixes = [tuple(body.get("input") or body["prompt"]) for body in bodies]
    assert len(prefixes) == len(set(prefixes)) == count


def test_tokens_are_sent_and_never_text(tmp_path):
    (body,) = requests_for(qwen, tmp_path, "offline", TRACES[0])
    assert body["input"] == load_evaluator(tmp_path / "model").encode(TRACES[0]).ids.tolist()


def test_rows_of_all_tokens_are_read_at_step_ends(tmp_path):
    server = qwen(tmp_path / "model")
    expected = Scorer(load_evaluator(tmp_path / "model")).score_one(TRACES[0], "offline").result.probs
    server.step_tag = None
    with server.running() as url:
        judged = Scorer(load_evaluator(server.address(url))).score_one(TRACES[0], "offline").result.probs
    np.testing.assert_allclose(judged, expected, atol=CLOSE)


@pytest.mark.parametrize("make", [classifier, value_head])
def test_a_server_that_gives_probabilities_alone(tmp_path, make):
    server = make(tmp_path / "model", activates=True)
    here = load_evaluator(tmp_path / "model")
    with server.running() as url:
        judged = list(Scorer(load_evaluator(server.address(url))).score(TRACES))
    for mine, other in zip(Scorer(here).score(TRACES), judged, strict=True):
        np.testing.assert_allclose(other.result.probs, mine.result.probs, atol=CLOSE)


def test_one_class_of_the_difference_between_two_tokens(tmp_path):
    """vLLM's from_2_way_softmax keeps the difference of the two rows."""
    server = converted(tmp_path / "model")
    both = server.network

    class Difference(Converted):
        def classes(self, ids):
            logits = both.classes(ids)
            return logits[:, 1:] - logits[:, :1]

    server.network = Difference(tmp_path / "model", [])
    here = load_evaluator(tmp_path / "model")
    with server.running() as url:
        judged = Scorer(load_evaluator(server.address(url))).score_one(TRACES[0], "offline")
    np.testing.assert_allclose(
        judged.result.probs, Scorer(here).score_one(TRACES[0], "offline").result.probs, atol=CLOSE
    )


def test_the_share_of_the_whole_vocabulary(tmp_path):
    write_math_shepherd(tmp_path / "model")
    card = {
        "format": "two-token",
        "softmax": "vocabulary",
        "tokens": {"right": 648, "wrong": 387},
        "template": {"prompt": "{problem} ", "separator": " ки"},
    }
    (tmp_path / "model" / "stepsight.json").write_text(json.dumps(card))
    server = VllmServer(LanguageModel(tmp_path / "model"), tmp_path / "model")
    expected = Scorer(load_evaluator(tmp_path / "model")).score_one(TRACES[0], "offline").result.probs
    with server.running() as url:
        judged = Scorer(load_evaluator(server.address(url))).score_one(TRACES[0], "offline").result.probs
    np.testing.assert_allclose(judged, expected, atol=CLOSE)
    server.network = Converted(tmp_path / "model", [387, 648])
    check_refused(server)


def test_the_fingerprint_covers_all_that_the_server_reveals(tmp_path):
    server = qwen(tmp_path / "model")
    with server.running() as url:
        first = load_evaluator(server.address(url))
        again = load_evaluator(server.address(url, requests=3))
    with server.running() as elsewhere:
        moved = load_evaluator(server.address(elsewhere))
    assert first.fingerprint == again.fingerprint == moved.fingerprint
    server.name = "other"
    with server.running() as url:
        renamed = load_evaluator(server.address(url))
    (tmp_path / "model" / "stepsight.json").write_text(json.dumps({"template": {"prompt": "{problem}\n"}}))
    with server.running() as url:
        other_template = load_evaluator(server.address(url))
    tokenizer = Tokenizer.from_file(str(tmp_path / "model" / "tokenizer.json"))
    tokenizer.add_tokens(["new"])
    tokenizer.save(str(tmp_path / "model" / "tokenizer.json"))
    with server.running() as url:
        other_tokenizer = load_evaluator(server.address(url))
    found = {one.fingerprint for one in (first, renamed, other_template, other_tokenizer)}
    assert len(found) == 4
    assert first.fingerprint != load_evaluator(tmp_path / "model").fingerprint
    assert (first.dtype, first.parameters, first.context) == ("served", 0, 256)
    assert "Its weights are not accessible" in first.described


def test_a_language_model_served_as_a_classifier_is_the_same(tmp_path):
    server = shepherd(tmp_path / "model")
    with server.running() as url:
        first = load_evaluator(server.address(url))
    second = converted(tmp_path / "model")
    with second.running() as url:
        assert load_evaluator(second.address(url)).fingerprint == first.fingerprint


def test_the_tokenizer_comes_from_the_model_or_the_servers_path(tmp_path):
    folder = tmp_path / "model"
    server = qwen(folder, name=str(folder))
    with server.running() as url:
        named = load_evaluator(f"vllm:{url}#{folder}")
    server.name = "alias"
    with server.running() as url:
        alias = load_evaluator(f"vllm:{url}#alias")
    assert (named.name, alias.name) == ("model (vllm)", "alias (vllm)")
    assert named.format == alias.format == "qwen-prm"


def test_a_models_description_comes_from_the_hub_without_its_weights(tmp_path, monkeypatch):
    folder = tmp_path / "published"
    server = classifier(folder, name="lab/tiny-prm")
    hub = Hub()
    hub.folders[server.name] = folder
    point_to(monkeypatch, hub.url, tmp_path / "cache")
    with hub.running(), server.running() as url:
        evaluator = load_evaluator(f"vllm:{url}#lab/tiny-prm")
    assert (evaluator.name, evaluator.format) == ("tiny-prm (vllm)", "token-classification")
    assert hub.sent("tokenizer.json")
    assert hub.sent("model.safetensors") == []


def test_a_trace_that_is_too_long_for_the_server(tmp_path):
    server = classifier(tmp_path / "model", context=60)
    left_out = []
    with server.running() as url:
        evaluator = load_evaluator(server.address(url))
        assert evaluator.context == 60
        traces = [TRACES[1], Trace.of("q", ["7" * 500], id="long"), TRACES[1]]
        judged = list(Scorer(evaluator).score(traces, "offline", lambda trace, error: left_out.append(error)))
        assert len(judged) == 2
        with refused():
            list(Scorer(evaluator).score(traces))
    assert len(left_out) == 1


def check_refused(server, **options):
    with server.running() as url, refused():
        load_evaluator(server.address(url, **options))


def test_a_server_that_is_not_there(tmp_path):
    server = classifier(tmp_path / "model")
    with server.running() as url:
        pass
    with refused():
        load_evaluator(server.address(url))


def test_a_server_with_another_model(tmp_path):
    server = classifier(tmp_path / "model", name="qwen")
    with server.running() as url, refused():
        load_evaluator(f"vllm:{url}#prm,tokenizer={tmp_path / 'model'}")


def test_a_server_with_another_tokenizer(tmp_path):
    server = classifier(tmp_path / "model")
    write_token_classifier(tmp_path / "other", "qwen2")
    check_refused(server, tokenizer=tmp_path / "other")
    # One that does not tell is believed.
    server.tokenizes = False
    with server.running() as url:
        load_evaluator(server.address(url))


def test_a_model_that_nothing_describes(tmp_path):
    server = classifier(tmp_path / "model", root="/models/prm")
    with server.running() as url, refused():
        load_evaluator(f"vllm:{url}#prm")
    check_refused(server, tokenizer="/nowhere")


def test_a_language_model_in_place_of_a_classifier(tmp_path):
    server = qwen(tmp_path / "model")
    write_math_shepherd(tmp_path / "text")
    server.network, server.tokenizes = LanguageModel(tmp_path / "text"), False
    check_refused(server)


def test_a_server_that_gives_no_chosen_probabilities(tmp_path):
    check_refused(shepherd(tmp_path / "model", ignores_chosen=True))


def test_a_format_that_no_server_gives(tmp_path):
    write_actprm(tmp_path / "model")
    server = VllmServer(Classifier(tmp_path / "model", VALIDITY), tmp_path / "model")
    check_refused(server)


def test_another_number_of_classes(tmp_path):
    server = classifier(tmp_path / "model")
    write_reasoneval(tmp_path / "three")
    server.network = Classifier(tmp_path / "three", THREE_WAY)
    check_refused(server)


def test_rows_of_other_tokens_than_those_that_end_a_step(tmp_path):
    server = qwen(tmp_path / "model")
    server.step_tag = 5
    check_refused(server)


def test_a_server_that_does_not_run_a_bidirectional_model_as_one(tmp_path):
    server = own(tmp_path / "model")
    write_evaluator(tmp_path / "causal", is_causal=True)
    server.network = Classifier(tmp_path / "causal", THREE_WAY)
    check_refused(server)


@pytest.mark.parametrize("text", ["0", "x", "1" * 9, "2000"])
def test_an_invalid_number_of_requests_is_refused(tmp_path, text):
    with refused():
        load_evaluator(f"vllm:http://localhost:1/v1#prm,requests={text}")


def test_an_option_that_there_is_not():
    with refused():
        load_evaluator("vllm:http://localhost:1/v1#prm,samples=3")


@pytest.mark.parametrize(
    "bad", [{"fails_every": 3}, {"halves_every": 3}, {"breaks_every": 4}, {"refuses_every": 5}]
)
def test_bad_days_change_no_judgment(tmp_path, bad, monkeypatch):
    monkeypatch.setattr(requests, "_FIRST_PAUSE", 0.001)
    traces = [
        Trace.of(f"What is {number} + 3?", [f"{number} + 3 = 5.", "So 5."], id=str(number)) for number in range(40)
    ]
    server = classifier(tmp_path / "model")
    expected = list(Scorer(load_evaluator(tmp_path / "model")).score(traces))
    with server.running() as url:
        evaluator = load_evaluator(server.address(url))
        server.day = day = Day(**bad)
        judged = list(Scorer(evaluator).score(traces))
    assert day.asks > len(traces)
    assert [one.trace.id for one in judged] == [str(number) for number in range(40)]
    for mine, other in zip(expected, judged, strict=True):
        np.testing.assert_allclose(other.result.probs, mine.result.probs, atol=CLOSE)


def test_judgments_from_before_the_servers_death_are_given(tmp_path, monkeypatch):
    monkeypatch.setattr(requests, "_FIRST_PAUSE", 0.001)
    traces = [Trace.of("q", [f"{number} = 1."], id=str(number)) for number in range(50)]
    server = classifier(tmp_path / "model")
    with server.running() as url:
        # One after the other: of several under way, an early one may be the last to be answered.
        evaluator = load_evaluator(server.address(url, requests=1))
        server.day = Day(dies_after=20)
        judged = Scorer(evaluator).score(traces)
        ids = [next(judged).trace.id for _ in range(10)]
        with refused():
            ids.extend(one.trace.id for one in judged)
    assert ids == [str(number) for number in range(20)]


def test_outputs_and_thresholds_are_those_of_the_card(tmp_path):
    server = own(tmp_path / "model")
    card = json.loads((tmp_path / "model" / "stepsight.json").read_text())
    card["thresholds"] = {"validity": 0.4, "redundancy": 0.2}
    (tmp_path / "model" / "stepsight.json").write_text(json.dumps(card))
    with server.running() as url:
        evaluator = load_evaluator(server.address(url))
    assert evaluator.outputs == Outputs.THREE_WAY
    assert (evaluator.thresholds.validity, evaluator.thresholds.redundancy) == (0.4, 0.2)
    assert evaluator.provenance == {"made": "by a test"}
