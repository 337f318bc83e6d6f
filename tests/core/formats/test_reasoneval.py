"""ReasonEval's checkpoints against its own way of finding the tokens that are read."""

import numpy as np
import pytest
from safetensors.torch import load_file
from tokenizers import Tokenizer

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scores import Outputs
from stepsight.core.trace import Trace
from tests.checkpoints import write_reasoneval
from tests.core.formats.by_hand import TRACES, check_modes, hidden_states, softmax
from tests.messages import refused
from tests.vocabularies import sentencepiece

PROMPT = "Question:\n{}\nAnswer:\nLet's think step by step.\n"


def official(folder, trace, size):
    """Ids and read positions by the official procedure: everything is turned into tokens at once, the separators
    are taken out, and each marks the token before it, counted without separators; for 7B the token that begins an
    input is a separator too, and put back in front, which moves the tokens and not the marks."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    pad = "<s>" if size == "7B" else "</s>"
    text = PROMPT.format(trace.problem) + pad + "".join(step + pad for step in trace.substeps)
    ids, marks = [], []
    for token in tokenizer.encode(text).ids:
        if token == tokenizer.token_to_id(pad):
            marks.append(len(ids) - 1)
        else:
            ids.append(token)
    if size == "7B":
        return [1, *ids], marks[2:]
    return ids, marks[1:]


@pytest.fixture(params=["7B", "34B"])
def size(request):
    return request.param


@pytest.fixture
def checkpoint(tmp_path, size):
    folder = tmp_path / "ReasonEval"
    return folder, *write_reasoneval(folder, size=size)


def test_the_layout_is_the_genuine_one(checkpoint, size):
    folder = checkpoint[0]
    names = set(load_file(folder / "model.safetensors"))
    assert {
        "model.embed_tokens.weight", "model.layers.1.self_attn.k_proj.weight", "model.norm.weight",
        "model.layers.0.mlp.gate_proj.weight", "model.layers.1.input_layernorm.weight", "score_head.weight",
    } <= names  # fmt: skip
    assert ("score_head.bias" in names) == (size == "34B")


def test_tokens_and_positions_are_those_of_the_official_procedure(checkpoint, size):
    evaluator = load_evaluator(checkpoint[0])
    for trace in TRACES:
        ids, marks = official(checkpoint[0], trace, size)
        encoded = evaluator.encode(trace)
        assert encoded.ids.tolist() == ids
        assert encoded.reads.tolist() == marks
        # The shift of 7B: one before the last token of each step, the last of which ends the input.
        assert encoded.ends[-1] == len(ids) - 1
        assert (encoded.ends - encoded.reads).tolist() == [int(size == "7B")] * len(marks)


def test_every_mode_equals_a_plain_forward_pass(checkpoint, size):
    folder, backbone, head = checkpoint
    evaluator = load_evaluator(folder)
    assert (evaluator.format, evaluator.attention, evaluator.outputs) == ("reasoneval", "causal", Outputs.THREE_WAY)

    def rows(trace, j):
        ids, marks = official(folder, trace, size)
        read = hidden_states(backbone, ids)[marks[: j + 1]]
        logits = read @ head["score_head.weight"].T + head.get("score_head.bias", 0)
        return softmax(logits.numpy())

    check_modes(evaluator, rows)


def test_the_shift_can_be_switched_off(tmp_path):
    write_reasoneval(tmp_path / "shifted")
    write_reasoneval(tmp_path / "straight", card={"template": {"read": "last"}})
    shifted, straight = load_evaluator(tmp_path / "shifted"), load_evaluator(tmp_path / "straight")
    first, second = shifted.encode(TRACES[0]), straight.encode(TRACES[0])
    np.testing.assert_array_equal(first.ids, second.ids)
    np.testing.assert_array_equal(first.reads + 1, second.reads)
    assert shifted.fingerprint != straight.fingerprint
    assert "each step read at the second-to-last token" in shifted.described
    assert "each step read at the last token" in straight.described


def test_a_step_that_spells_the_separator_is_one_step(checkpoint):
    evaluator = load_evaluator(checkpoint[0])
    trace = Trace.of("<s> q </s>", ["a <s> b", "</s>", "c"])
    encoded = evaluator.encode(trace)
    assert len(encoded.reads) == 3
    assert (encoded.ids < 3).sum() == 1  # <unk>, <s> and </s> are the first three: only the one in front


@pytest.mark.parametrize("metaspace", [False, True])
def test_both_kinds_of_space_mark_give_the_tokens_of_one_long_text(tmp_path, metaspace):
    write_reasoneval(tmp_path / "tiny", tokenizer=sentencepiece(metaspace=metaspace))
    evaluator = load_evaluator(tmp_path / "tiny")
    for trace in TRACES:
        assert evaluator.encode(trace).ids.tolist() == official(tmp_path / "tiny", trace, "7B")[0]


def test_the_rotation_and_the_window_are_those_of_the_config(tmp_path):
    write_reasoneval(tmp_path / "tiny", size="34B")
    assert load_evaluator(tmp_path / "tiny").model.config.rope_parameters["rope_theta"] == 1000000
    backbone, head = write_reasoneval(tmp_path / "narrow", sliding_window=6)
    evaluator = load_evaluator(tmp_path / "narrow")
    assert evaluator.model.config.window(0) == 6

    def rows(trace, j):
        ids, marks = official(tmp_path / "narrow", trace, "7B")
        return softmax((hidden_states(backbone, ids)[marks[: j + 1]] @ head["score_head.weight"].T).numpy())

    check_modes(evaluator, rows)


def test_two_classes_and_a_tokenizer_without_separator_are_refused(tmp_path):
    folder = tmp_path / "tiny"
    write_reasoneval(folder)
    path = folder / "config.json"
    config = path.read_text()
    path.write_text(config.replace('"score_dimension": 3', '"score_dimension": 2'))
    with refused():
        load_evaluator(folder)
    path.write_text(config)
    (folder / "tokenizer_config.json").write_text('{"pad_token": {"content": "<sep>"}}')
    with refused():
        load_evaluator(folder)
    (folder / "tokenizer_config.json").unlink()
    with refused():
        load_evaluator(folder)
    (folder / "stepsight.json").write_text('{"template": {"separator": "</s>"}}')
    assert load_evaluator(folder).encoder.template.separator == "</s>"
    (folder / "stepsight.json").unlink()
    (folder / "special_tokens_map.json").write_text('{"pad_token": "<s>"}')
    assert load_evaluator(folder).encoder.template.separator == "<s>"
