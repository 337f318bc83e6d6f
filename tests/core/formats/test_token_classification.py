"""Token classifiers against the logits of Transformers' own class at places counted here."""

import json

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.formats.token_classification import class_order, class_words
from stepsight.core.scores import Outputs
from stepsight.core.scoring.packed import PackedForward
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.cases import each
from tests.checkpoints import write_token_classifier
from tests.core.formats.by_hand import EXACT, TRACES, check_modes, of_two, softmax
from tests.messages import refused
from tests.vocabularies import TEXTS, byte_level, sentencepiece

DECODERS, ENCODERS = ("llama", "qwen2", "gemma2"), ("modernbert", "eurobert", "roberta")
ONE = {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}, "num_labels": 1}
THREE = {"id2label": {"0": "pos", "1": "neg", "2": "neu"}, "label2id": {"pos": 0, "neg": 1, "neu": 2}}


def trl(folder, trace, j, separator="\n"):
    """TRL's input for the sub-steps up to `j`, with the last token of each step's separator."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def tokens(text):
        return tokenizer.encode(text, add_special_tokens=False).ids

    bos = json.loads((folder / "tokenizer_config.json").read_text()).get("bos_token")
    ids = ([] if bos is None else [tokenizer.token_to_id(bos)]) + tokens(trace.problem)
    places = []
    for step in trace.substeps[: j + 1]:
        ids += tokens(step) + tokens(separator)
        places.append(len(ids) - 1)
    return ids, places


@torch.inference_mode()
def logits_of(model, ids, places):
    return model(input_ids=torch.tensor([ids])).logits[0, places].numpy()


def validity_of_one(logits):
    return of_two(1 / (1 + np.exp(-logits[:, 0].astype(np.float64))))


# What is written into config.json, and how the classes are read.
CLASSES = {
    "two": ({}, lambda logits: of_two(softmax(logits)[:, 1])),
    # neg is class 1, neu class 2, pos class 0.
    "three": (THREE, lambda logits: softmax(logits)[:, [1, 2, 0]]),
    "one": (ONE, validity_of_one),
}


@pytest.mark.parametrize(
    ("kind", "classes"),
    [
        *((kind, "two") for kind in (*DECODERS, *ENCODERS)),
        *((kind, "three") for kind in ("llama", "modernbert")),
        *((kind, "one") for kind in ("llama", "qwen2", "modernbert")),
    ],
)
def test_every_number_of_classes_in_every_mode(tmp_path, kind, classes):
    changes, judge = CLASSES[classes]
    model = write_token_classifier(tmp_path / kind, kind, **changes)
    evaluator = load_evaluator(tmp_path / kind)
    assert evaluator.format == "token-classification"
    assert evaluator.outputs == (Outputs.THREE_WAY if classes == "three" else Outputs.VALIDITY)
    assert evaluator.attention == ("causal" if kind in DECODERS else "bidirectional")
    # The fast pass is for Llama's family, and computes the same.
    assert PackedForward.supports(evaluator.model) == (kind in ("llama", "mistral", "qwen2"))
    check_modes(evaluator, lambda trace, j: judge(logits_of(model, *trl(tmp_path / kind, trace, j))))


def test_math_minos_reads_its_tag_in_the_prompt_that_its_card_names(tmp_path):
    """Mistral with one class: the input of PRMBench, as one text, with the tag's letters found by id."""
    tokenizer = sentencepiece(places={"▁и": 839}, texts=[*TEXTS, " и" * 9])
    template = {
        "prompt": "Human: {problem}\n\nAssistant:",
        "step": "Step {number}: {step}",
        "separator": "▁и",
        "separator_is": "token",
        "between": "\n",
        "bos": "<s>",
        "joined": True,
    }
    model = write_token_classifier(
        tmp_path / "minos", "llama", tokenizer=tokenizer, card={"template": template}, **ONE
    )

    def rows(trace, j):
        steps = [
            f"{step} и" if step.startswith("Step ") else f"Step {number}: {step} и"
            for number, step in enumerate(trace.substeps, start=1)
        ]
        text = f"Human: {trace.problem}\n\nAssistant:" + "\n".join(steps)
        ids = Tokenizer.from_file(str(tmp_path / "minos" / "tokenizer.json")).encode(text).ids
        places = [place for place, token in enumerate(ids) if token == 839]
        return validity_of_one(logits_of(model, ids, places[: j + 1]))

    check_modes(load_evaluator(tmp_path / "minos"), rows)


@pytest.mark.parametrize(
    ("name", "template", "separator"),
    [
        ("Qwen2.5-0.5B-Math-Shepherd-PRM-0.2", {}, "\n"),
        ("Mistral-7B-v0.1-Math-Shepherd-PRM-0.1", {}, "\n"),
        ("Qwen2.5-Math-7B-Instruct-PRM-0.1", {}, "\n\n"),
        ("models--plaguss--Qwen2.5-Math-1.5B-Instruct-PRM-0.2/snapshots/0a1b", {}, "\n\n"),
        ("models--HuggingFaceH4--Qwen2.5-Math-1.5B-Instruct-PRM-0.2/snapshots/0a1b", {}, "\\n\\n"),
        # Two owners have a model of that name, with another separator each.
        ("Qwen2.5-Math-7B-Instruct-PRM-0.2", {"separator": "\n\n"}, "\n\n"),
    ],
)
def test_the_separator_follows_the_repository_and_can_be_the_other_reading(tmp_path, name, template, separator):
    tokenizer = byte_level(learnt=("\n\n",))
    model = write_token_classifier(tmp_path / name, "qwen2", card={"template": template}, tokenizer=tokenizer)
    evaluator = load_evaluator(tmp_path / name)
    assert evaluator.encoder.template.separator == separator

    def rows(trace, j):
        return of_two(softmax(logits_of(model, *trl(tmp_path / name, trace, j, separator)))[:, 1])

    check_modes(evaluator, rows, TRACES[:2])


@pytest.mark.parametrize(
    "name",
    [
        "prm",
        "Qwen2.5-Math-7B-Instruct-PRM-0.2",
        "models--nobody--Qwen2.5-0.5B-Math-Shepherd-PRM-0.2/snapshots/0a1b",
        "models--wls04--math_bi7b/snapshots/0a1b",
        "models--ZaandaTeika--Qwen2.5-Math-1.5B-Instruct-SHARP-Math-PRM/snapshots/0a1b",
    ],
)
def test_a_separator_that_nothing_states_is_asked_for(tmp_path, name):
    write_token_classifier(tmp_path / name, "qwen2", card={"template": {}})
    with refused():
        load_evaluator(tmp_path / name)
    card = {"attention": "causal", "template": {"separator": "<step>", "separator_is": "text"}}
    (tmp_path / name / "stepsight.json").write_text(json.dumps(card))
    assert load_evaluator(tmp_path / name).encoder.template.separator == "<step>"


def test_bert_reads_steps_at_a_token_that_stepsight_json_names(tmp_path):
    card = {"template": {"separator": "[SEP]", "bos": "[CLS]"}}
    model = write_token_classifier(tmp_path / "bert", "bert", card=card)
    evaluator = load_evaluator(tmp_path / "bert")
    assert (evaluator.attention, evaluator.context) == ("bidirectional", 256)
    begin = evaluator.encoder.tokenizer.token_to_id("[CLS]")

    def rows(trace, j):
        ids, places = trl(tmp_path / "bert", trace, j, "[SEP]")
        return of_two(softmax(logits_of(model, [begin, *ids], np.array(places) + 1))[:, 1])

    check_modes(evaluator, rows)
    encoded = evaluator.encode(Trace.of("[CLS]", ["a [SEP] b", "c"]))
    assert (encoded.ids == evaluator.encoder.separator).sum() == 2


def test_bert_drops_line_breaks_and_says_so(tmp_path):
    write_token_classifier(tmp_path / "bert", "bert")
    with refused():
        load_evaluator(tmp_path / "bert")
    card = {"template": {"separator": "", "read": "last"}}
    model = write_token_classifier(tmp_path / "last", "bert", card=card)

    def rows(trace, j):
        return of_two(softmax(logits_of(model, *trl(tmp_path / "last", trace, j, "")))[:, 1])

    check_modes(load_evaluator(tmp_path / "last"), rows)


def test_absolute_positions_limit_the_context(tmp_path):
    card = {"template": {"separator": "[SEP]"}}
    write_token_classifier(tmp_path / "bert", "bert", card=card, max_position_embeddings=12)
    # RoBERTa's positions begin at 2: of 14 places 12 are left.
    write_token_classifier(tmp_path / "roberta", "roberta", card=card, max_position_embeddings=14)
    for name in ("bert", "roberta"):
        evaluator = load_evaluator(tmp_path / name)
        assert evaluator.context == 12
        fits = "5 " * 9 if name == "bert" else "5" * 9
        trace = Trace.of("q", [fits.strip()])
        # A problem, nine fives and the separator, with BERT's q in a word of its own.
        assert len(evaluator.encode(trace)) <= 12
        assert len(Scorer(evaluator).score_one(trace, "offline").offline) == 1
        with refused():
            evaluator.encode(Trace.of("q", [fits.strip() + " 5 5 5 5"]))


def test_labels_of_stepsight_json_come_first_and_change_the_fingerprint(tmp_path):
    names = {"id2label": {"0": "B", "1": "I"}, "label2id": {"B": 0, "I": 1}}
    folders = [tmp_path / name for name in ("unknown", "straight", "turned")]
    write_token_classifier(folders[0], "llama", **names)
    with refused():
        load_evaluator(folders[0])
    write_token_classifier(folders[1], "llama", card={"labels": ["wrong", "right"]}, **names)
    write_token_classifier(folders[2], "llama", card={"labels": ["pos", "neg"]}, **names)
    straight, turned = load_evaluator(folders[1]), load_evaluator(folders[2])
    first, second = (Scorer(one).score_one(TRACES[0], "offline").offline for one in (straight, turned))
    np.testing.assert_allclose(first.validity, 1 - second.validity, atol=EXACT)
    assert straight.fingerprint != turned.fingerprint
    (folders[2] / "stepsight.json").write_text('{"labels": ["pos"], "template": {"separator": "\\n"}}')
    with refused():
        load_evaluator(folders[2])


def test_a_decoder_may_be_made_bidirectional_and_an_encoder_not_causal(tmp_path):
    write_token_classifier(tmp_path / "llama", "llama", card={"attention": "bidirectional"})
    evaluator = load_evaluator(tmp_path / "llama")
    assert evaluator.attention == "bidirectional"
    assert np.abs(Scorer(evaluator).score_one(TRACES[0]).hindsight.retroactive).max() > EXACT
    write_token_classifier(tmp_path / "eurobert", "eurobert", card={"attention": "causal"})
    # Transformers makes it causal in batches without padding, and not in others.
    with refused():
        load_evaluator(tmp_path / "eurobert")


@each(
    "words, order",
    [
        (["LABEL_0", "LABEL_1"], (0, None, 1)),
        (["0", "1"], (0, None, 1)),
        (["1", "-1"], (1, None, 0)),
        (["wrong", "right"], (0, None, 1)),
        (["Good", " BAD "], (1, None, 0)),
        (["+", "-"], (1, None, 0)),
        (["False", "True"], (0, None, 1)),
        (["LABEL_0", "LABEL_1", "LABEL_2"], (0, 1, 2)),
        (["-1", "0", "1"], (0, 1, 2)),
        (["+1", "0", "-1"], (2, 1, 0)),
        (["pos", "neg", "neu"], (1, 2, 0)),
        (["Negative", "Neutral", "Positive"], (0, 1, 2)),
        (["redundant", "correct", "incorrect"], (2, 0, 1)),
        (["LABEL_0"], (None, None, 0)),
    ],
)
def test_words_that_are_known(words, order):
    assert class_order(words) == order


@pytest.mark.parametrize(
    "words",
    [
        ["B-PER", "I-PER"],
        ["good", "right"],
        ["neu", "pos"],
        ["2", "1"],
        ["0", "2", "1", "3"],
        [],
        ["0", "good"],
        ["-1", "-1"],
    ],
)
def test_words_that_are_refused(words):
    with refused():
        class_order(words)


def test_words_come_by_number_from_either_map():
    assert class_words({"id2label": {"1": "b", "0": "a"}, "label2id": {"x": 0}}) == ["a", "b"]
    assert class_words({"label2id": {"b": 1, "a": 0}}) == ["a", "b"]
    assert class_words({"num_labels": 3}) == ["LABEL_0", "LABEL_1", "LABEL_2"]
    assert class_words({}) == ["LABEL_0", "LABEL_1"]


@pytest.mark.parametrize(
    "config", [{"id2label": {"1": "a", "2": "b"}}, {"id2label": {"x": "a"}}, {"num_labels": "z"}]
)
def test_numbers_that_make_no_sense_are_refused(config):
    with refused():
        class_words(config)
