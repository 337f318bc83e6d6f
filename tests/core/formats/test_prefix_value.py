"""Universal-PRM against its card's loop: the steps up to each one as an input, read at its last token."""

from functools import partial

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerFast

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scores import Outputs
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.checkpoints import QWEN2, pickled, random_model, write_checkpoint
from tests.core.formats.by_hand import TRACES, check_modes, hidden_states, of_two
from tests.messages import refused
from tests.vocabularies import byte_level

NAME = "Universal-PRM-7B"
TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
MORE = [Trace.of("q?", ["5.\n\n", "\n\na\n\nb", "x "])]


def one_layer(width):
    return {"score.weight": torch.randn(1, width)}


def two_layers(width):
    first = {"score.0.weight": torch.randn(width, width) / 4, "score.0.bias": torch.randn(width)}
    return first | {"score.2.weight": torch.randn(1, width), "score.2.bias": torch.randn(1)}


def write(folder, head):
    tokenizer = byte_level(TOKENS, added=(), learnt=("\n\n", ".\n\n"))
    config = QWEN2 | {"vocab_size": tokenizer.get_vocab_size(), "architectures": ["Qwen2ForRewardModel"]}
    backbone = random_model(config)
    torch.manual_seed(3)
    tensors = head(config["hidden_size"])
    named = {f"model.{name}": tensor for name, tensor in backbone.state_dict().items()}
    write_checkpoint(folder / NAME, config, named | tensors, tokenizer, {"eos_token": "<|im_end|>"})
    return backbone, tensors


def output(tensors, state):
    if "score.weight" in tensors:
        return tensors["score.weight"] @ state
    inner = torch.relu(tensors["score.0.weight"] @ state + tensors["score.0.bias"])
    return tensors["score.2.weight"] @ inner + tensors["score.2.bias"]


def call_by_call(folder, backbone, tensors, trace, j):
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(folder / NAME / "tokenizer.json"), chat_template=TEMPLATE, eos_token="<|im_end|>"
    )
    asked = f"{trace.problem}\n\n###\n\nThe reference answer is: There is no reference answer for this question."
    chat = [{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": asked}]
    prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
    values = []
    for count in range(1, j + 2):
        answer = "\n\n".join(trace.substeps[:count]) + "\n\n"
        ids = [*prompt, *tokenizer(answer)["input_ids"], tokenizer.eos_token_id]
        state = hidden_states(backbone, ids)[-1].float()
        values.append(torch.sigmoid(output({n: t.float() for n, t in tensors.items()}, state)).item())
    return of_two(np.array(values, np.float32))


@pytest.mark.parametrize("head", [one_layer, two_layers])
def test_every_mode_equals_a_call_for_each_step(tmp_path, head):
    backbone, tensors = write(tmp_path, head)
    # The authors publish pickles.
    evaluator = load_evaluator(pickled(tmp_path / NAME))
    assert (evaluator.name, evaluator.format, evaluator.outputs) == (NAME, "prefix-value", Outputs.VALIDITY)
    rows = partial(call_by_call, tmp_path, backbone, tensors)
    check_modes(evaluator, rows, [*TRACES, *MORE], one_pass=False)


def test_in_bfloat16_and_in_shards_it_scores_nearly_alike(tmp_path):
    backbone, tensors = write(tmp_path, one_layer)
    small = load_evaluator(pickled(tmp_path / NAME, 3), dtype="bfloat16")
    backbone = backbone.to(torch.bfloat16)
    for judgment in Scorer(small).score(TRACES):
        last = len(judgment.trace.substeps) - 1
        expected = call_by_call(tmp_path, backbone, tensors, judgment.trace, last)
        np.testing.assert_allclose(judgment.offline.probs, expected, atol=0.1)


def test_another_head_is_refused_by_the_names_that_it_has(tmp_path):
    write(tmp_path, lambda width: {"v_head.weight": torch.randn(1, width)})
    with refused():
        load_evaluator(tmp_path / NAME)
    write(tmp_path, lambda width: {"score.weight": torch.randn(2, width)})
    with refused():
        load_evaluator(tmp_path / NAME)


def test_no_step_sees_the_end_of_one_before_it(tmp_path):
    """Each input ends with the token that the others must not have within."""
    write(tmp_path, one_layer)
    evaluator = load_evaluator(tmp_path / NAME)
    end = evaluator.encoder.separator
    for (call,) in evaluator.encode(TRACES[0]).calls:
        # One ends the system line, one the question.
        assert (list(call.ids).count(end), call.ids[-1], list(call.reads)) == (3, end, [len(call) - 1])
