"""Two answer tokens at a tag, against their authors' reading: one text, all logits, the tags found by id."""

import json

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scores import Outputs
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.checkpoints import LLAMA3, QWEN2, write_language_model
from tests.core.formats.by_hand import TRACES, check_modes, of_two, softmax
from tests.messages import refused
from tests.vocabularies import byte_level

BEGIN = "<|begin_of_text|>"
LEARNT = (" \n\n\n\n\n", " \n\n\n\n", " \n\n", " +", " -", " ки", "+", "-")


def numbered(steps):
    return [step if step.startswith("Step ") else f"Step {number}: {step}" for number, step in enumerate(steps, 1)]


def math_psa(trace):
    return f"{trace.problem} " + " ".join(f"{step} \n\n\n\n\n" for step in numbered(trace.substeps))


def versa_prm(trace):
    return f"{trace.problem.strip()} \n\n" + "".join(f"{step.strip()} \n\n\n\n" for step in trace.substeps)


def er_prm(trace):
    return f"{trace.problem} " + "".join(f"{step} ки" for step in numbered(trace.substeps))


# By the name of the repository: its kind, the text of an input, the tag, and the texts for right and wrong.
FAMILIES = {
    "Math-psa": (QWEN2, math_psa, " \n\n\n\n\n", " +", " -"),
    "VersaPRM": (LLAMA3, versa_prm, " \n\n\n\n", "+", "-"),
    "Qwen-PRM800K": (QWEN2, versa_prm, " \n\n\n\n", "+", "-"),
    "dPRM-8B": (LLAMA3, versa_prm, " \n\n\n\n", "+", "-"),
    "dPRM-14B": (QWEN2, versa_prm, " \n\n\n\n", "+", "-"),
    "Llama3.1-Math-PRM": (LLAMA3, er_prm, " ки", " +", " -"),
}


def tokenizer_of(config):
    if config is LLAMA3:
        return byte_level((BEGIN, "<|eot_id|>"), added=(), bos=BEGIN, learnt=LEARNT)
    return byte_level(learnt=LEARNT)


def write(folder, name, card=None):
    config = FAMILIES[name][0]
    special = {"bos_token": BEGIN} if config is LLAMA3 else {}
    return write_language_model(folder / name, config, tokenizer_of(config), special, card)


@torch.inference_mode()
def by_hand(folder, model, name, trace, j, *, everything=False):
    """The authors' arithmetic, over the logits of both answers, or of the whole vocabulary."""
    _, text, tag, right, wrong = FAMILIES[name]
    tokenizer = Tokenizer.from_file(str(folder / name / "tokenizer.json"))
    ids = tokenizer.encode(text(trace)).ids
    tag_id, *candidates = (tokenizer.encode(one).ids[-1] for one in (tag, right, wrong))
    logits = model(torch.tensor([ids])).logits[0].numpy()
    probs = softmax(logits)[:, candidates[0]] if everything else softmax(logits[:, candidates])[:, 0]
    return ids, of_two(probs[[place for place, token in enumerate(ids) if token == tag_id]][: j + 1])


@pytest.mark.parametrize("name", FAMILIES)
def test_every_mode_equals_the_logits_of_the_whole_text(tmp_path, name):
    model = write(tmp_path, name)
    evaluator = load_evaluator(tmp_path / name)
    assert (evaluator.name, evaluator.format, evaluator.outputs) == (name, "two-token", Outputs.VALIDITY)
    for trace in [*TRACES, Trace.of("A  b\nc", ["x  y", "+ - +", "1\n\n2", "é"])]:
        assert evaluator.encode(trace).ids.tolist() == by_hand(tmp_path, model, name, trace, 0)[0]
    check_modes(evaluator, lambda trace, j: by_hand(tmp_path, model, name, trace, j)[1])


def test_a_text_that_spells_the_tag_is_read_once(tmp_path):
    write(tmp_path, "VersaPRM")
    evaluator = load_evaluator(tmp_path / "VersaPRM")
    encoded = evaluator.encode(Trace.of("q \n\n\n\n q", ["a \n\n\n\nb", "c"]))
    assert len(encoded.reads) == 2
    assert encoded.reads.tolist() == encoded.ends.tolist()


def test_the_softmax_may_be_over_the_whole_vocabulary(tmp_path):
    model = write(tmp_path, "Math-psa", {"softmax": "vocabulary"})
    whole = load_evaluator(tmp_path / "Math-psa")
    check_modes(whole, lambda trace, j: by_hand(tmp_path, model, "Math-psa", trace, j, everything=True)[1])
    (tmp_path / "Math-psa" / "stepsight.json").write_text('{"softmax": "answers"}')
    answers = load_evaluator(tmp_path / "Math-psa")
    assert whole.fingerprint != answers.fingerprint
    (tmp_path / "Math-psa" / "stepsight.json").write_text('{"softmax": "all"}')
    with refused():
        load_evaluator(tmp_path / "Math-psa")


def test_any_language_model_can_be_described_and_its_tokens_named_by_id(tmp_path):
    tokenizer = tokenizer_of(QWEN2)
    right, wrong = (tokenizer.encode(text).ids[-1] for text in (" +", " -"))
    card = {
        "format": "two-token",
        "template": {"prompt": "{problem} ", "step": "Step {number}: {step}", "separator": " ки"},
    }
    folders = []
    for name, tokens in (("texts", {"right": " +", "wrong": " -"}), ("ids", {"right": right, "wrong": wrong})):
        write_language_model(tmp_path / name, QWEN2, tokenizer, card=card | {"tokens": tokens})
        folders.append(tmp_path / name)
    texts, ids = map(load_evaluator, folders)
    assert texts.fingerprint == ids.fingerprint
    turned = card | {"tokens": {"right": " -", "wrong": " +"}}
    (folders[1] / "stepsight.json").write_text(json.dumps(turned))
    other = load_evaluator(folders[1])
    first, second = (Scorer(one).score_one(TRACES[0], "offline").offline for one in (texts, other))
    np.testing.assert_allclose(first.validity, 1 - second.validity, atol=1e-6)
    assert other.fingerprint != texts.fingerprint


@pytest.mark.parametrize(
    "changes",
    [
        {"tokens": None},
        {"tokens": {"right": "+"}},
        {"tokens": {"right": 9, "wrong": 9}},
        {"tokens": {"right": 10**9, "wrong": 3}},
        {"tokens": {"right": "", "wrong": 3}},
        {"template": {"prompt": "{problem}"}},
        {"template": {}},
    ],
)
def test_an_incomplete_description_is_refused(tmp_path, changes):
    card = {"format": "two-token", "tokens": {"right": "+", "wrong": "-"}} | {
        "template": {"prompt": "{problem}", "separator": "\n"}
    }
    write_language_model(tmp_path / "prm", QWEN2, tokenizer_of(QWEN2), card=card | changes)
    with refused():
        load_evaluator(tmp_path / "prm")
