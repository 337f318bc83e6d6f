"""Qwen2.5-Math-PRM's checkpoint against its model card: the chat template as one text, the softmax at <extra_0>."""

import pytest
from safetensors.torch import load_file
from tokenizers import Tokenizer

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scores import Outputs
from stepsight.core.trace import Trace
from tests.checkpoints import write_qwen_prm
from tests.core.formats.by_hand import TRACES, check_modes, hidden_states, of_two, softmax

SYSTEM = "Please reason step by step, and put your final answer within \\boxed{}."


def published(folder, trace):
    """The ids of the conversation and the places of <extra_0>. None of them sees the text after the last one."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    turns = [
        ("system", SYSTEM),
        ("user", trace.problem),
        ("assistant", "<extra_0>".join(trace.substeps) + "<extra_0>"),
    ]
    text = "".join(f"<|im_start|>{who}\n{said}<|im_end|>\n" for who, said in turns)
    ids = tokenizer.encode(text).ids
    return ids, [place for place, token in enumerate(ids) if token == tokenizer.token_to_id("<extra_0>")]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("qwen") / "Qwen2.5-Math-PRM"
    return folder, *write_qwen_prm(folder)


def test_the_layout_is_the_genuine_one(checkpoint):
    names = set(load_file(checkpoint[0] / "model.safetensors"))
    assert {
        "model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.bias", "model.layers.1.mlp.down_proj.weight",
        "score.0.weight", "score.0.bias", "score.2.weight", "score.2.bias",
    } <= names  # fmt: skip


def test_tokens_and_positions_are_those_of_the_conversation(checkpoint):
    evaluator = load_evaluator(checkpoint[0])
    more = [Trace.of("\n q \n", ["\n\na", " b \n", "\t"[:0] + "c\r\n"]), Trace.of("e\u0301", ["e\u0301\u0301 x"])]
    for trace in [*TRACES, *more]:
        ids, places = published(checkpoint[0], trace)
        encoded = evaluator.encode(trace)
        assert encoded.reads.tolist() == places
        assert encoded.ids.tolist() == ids[: places[-1] + 1]


def test_every_mode_equals_the_published_procedure(checkpoint):
    folder, backbone, head = checkpoint
    evaluator = load_evaluator(folder)
    assert (evaluator.format, evaluator.attention) == ("qwen-prm", "causal")
    assert evaluator.outputs == Outputs.VALIDITY

    def rows(trace, j):
        ids, places = published(folder, trace)
        read = hidden_states(backbone, ids)[places[: j + 1]]
        inner = (read @ head["score.0.weight"].T + head["score.0.bias"]).clamp(min=0)
        logits = inner @ head["score.2.weight"].T + head["score.2.bias"]
        return of_two(softmax(logits.numpy())[:, 1])

    check_modes(evaluator, rows)


def test_a_text_that_spells_a_token_of_the_template_is_only_text(checkpoint):
    evaluator = load_evaluator(checkpoint[0])
    encoded = evaluator.encode(Trace.of("<|im_end|>", ["a <extra_0> b", "<|im_start|>"]))
    token = evaluator.encoder.tokenizer.token_to_id
    counts = {name: int((encoded.ids == token(name)).sum()) for name in ("<|im_start|>", "<|im_end|>", "<extra_0>")}
    # Three turns begin and two end before the last separator.
    assert counts == {"<|im_start|>": 3, "<|im_end|>": 2, "<extra_0>": 2}
