"""PathFinder-PRM against the authors' reward model: two calls a step, the second with what the first filled in."""

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import PreTrainedTokenizerFast

from stepsight.core.evaluator_summary import Rereading
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.hubs.checkpoint_files import INDEX
from stepsight.core.scores import Outputs
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.checkpoints import QWEN2, pickled, write_language_model, write_shards
from tests.core.formats.by_hand import TRACES, check_modes, of_two
from tests.messages import refused
from tests.vocabularies import byte_level

NAME = "PathFinder-PRM-7B"
TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<+>", "<->", "<extra>")
TEMPLATE = (
    "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nBe helpful.<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ASKED = (
    "You are a Math Teacher. Given a question and a student's solution, evaluate the mathematical correctness, "
    "logic consistency of the current step and whether it will lead to the correct final solution"
)
MORE = [Trace.of("q?", ["5.\n\n", " a\n\nb", "x "]), Trace.of("q", ["(1)", "So $18.", "é", "<extra>?", "<+>"])]


def write(folder, **changes):
    tokenizer = byte_level(TOKENS, added=(), learnt=("\n\n", ".\n\n", "Step", ": "))
    special = {"chat_template": TEMPLATE, "pad_token": "<|endoftext|>", "eos_token": "<|im_end|>"}
    config = QWEN2 | {"max_position_embeddings": 1024} | changes
    return divided(folder / NAME, write_language_model(folder / NAME, config, tokenizer, special))


@torch.inference_mode()
def divided(folder, model):
    """The model with rows of <+> and <-> that divide the places where they are read, four to one: random weights
    would say the same everywhere."""
    evaluator = load_evaluator(folder)
    states = torch.cat(
        [
            model.base_model(torch.tensor(call.ids)[None])[0][0, call.reads]
            for trace in TRACES
            for step in evaluator.encode(trace).calls
            for call in step
        ]
    )
    mean = states.mean(0)
    torch.manual_seed(5)
    row = torch.randn(len(mean))
    sides = states @ row
    row += (0.8 * sides.std() - sides.mean()) * mean / (mean @ mean)
    row /= (states @ row).std()
    good, bad = (evaluator.encoder.tokenizer.token_to_id(token) for token in ("<+>", "<->"))
    model.lm_head.weight[good], model.lm_head.weight[bad] = row, -row
    save_file(model.state_dict(), folder / "model.safetensors", {"format": "pt"})
    return model


@torch.inference_mode()
def reward(folder, model, problem, steps):
    """The probability of <+> for correctness after both other marks, or 0 where one of them is <->."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(folder / NAME / "tokenizer.json"), chat_template=TEMPLATE
    )
    good, bad, mask = (tokenizer.convert_tokens_to_ids(token) for token in ("<+>", "<->", "<extra>"))

    def logits(answer):
        chat = [{"role": "user", "content": f"{ASKED}\n\n Question: {problem}"},
                {"role": "assistant", "content": answer}]  # fmt: skip
        ids = tokenizer.apply_chat_template(chat, return_dict=False)
        asked = [place - 1 for place, number in enumerate(ids) if number == mask]
        return model(torch.tensor([ids])).logits[0, asked][:, [good, bad]].float()

    before = "\n\n".join(steps[:-1]) + "\n\n" if len(steps) > 1 else ""
    answer = f"{before}Current Step: {steps[-1]} Math reasoning: <extra>, Consistency: <extra>"
    filled = ["<+>" if number == 0 else "<->" for number in logits(answer).argmax(-1)]
    if "<->" in filled:
        return 0.0
    for token in filled:
        answer = answer.replace("<extra>", token, 1)
    return logits(f"{answer}, Correctness: <extra>").softmax(-1)[0, 0].item()


def rows(folder, model):
    return lambda trace, j: of_two(
        [reward(folder, model, trace.problem, trace.substeps[: count + 1]) for count in range(j + 1)]
    )


def plain(traces):
    """Without those that spell a token, which is a token for the authors and only text for us."""
    return [trace for trace in traces if not any(token in step for step in trace.substeps for token in TOKENS)]


def test_windows_ask_about_the_steps_of_their_blocks_alone(tmp_path):
    model = write(tmp_path)
    own = load_evaluator(tmp_path / NAME)
    trace = Trace.of("q", [f"{i} + 1 = {i + 1}." for i in range(12)])
    alone = len(own.encode(Trace.of("q", trace.substeps[:1])))
    evaluator = own.reread(Rereading(window=alone + 60))
    windows = evaluator.encode(trace).windows
    assert sum(len(one.encoded.calls) for one in windows) == 12
    assert len(windows) > 1

    def by_window(trace, j):
        parts = []
        for one in windows:
            if one.first <= j:
                seen = Trace.of("q", trace.substeps[one.start : min(one.end, j + 1)])
                parts.append(rows(tmp_path, model)(seen, len(seen.steps) - 1)[one.first - one.start :])
        return np.concatenate(parts)

    check_modes(evaluator, by_window, [trace], one_pass=False)


def test_every_mode_equals_two_calls_for_each_step(tmp_path):
    model = write(tmp_path)
    evaluator = load_evaluator(tmp_path / NAME)
    assert (evaluator.name, evaluator.format, evaluator.outputs) == (NAME, "masked-tokens", Outputs.VALIDITY)
    assert evaluator.attention == "causal"
    traces = plain([*TRACES, *MORE])
    check_modes(evaluator, rows(tmp_path, model), traces, one_pass=False)
    judged = np.concatenate([one.offline.validity for one in Scorer(evaluator).score(traces)])
    # Both ways of the first call are met.
    assert (judged == 0).any()
    assert (judged > 0).any()


def test_a_text_that_spells_a_mark_is_only_text(tmp_path):
    write(tmp_path)
    evaluator = load_evaluator(tmp_path / NAME)
    encoded = evaluator.encode(MORE[1])
    mask, right = (evaluator.encoder.tokenizer.token_to_id(token) for token in ("<extra>", "<+>"))
    for first, second in encoded.calls:
        assert (list(first.ids).count(mask), list(second.ids).count(mask)) == (1, 0)
        assert (list(first.ids).count(right), list(second.ids).count(right)) == (0, 2)


def test_shards_pickles_and_bfloat16_score_alike(tmp_path):
    model = write(tmp_path)
    folder = tmp_path / NAME
    traces = plain(TRACES)
    before = [one.offline.probs for one in Scorer(load_evaluator(folder)).score(traces)]
    write_shards(folder, load_file(folder / "model.safetensors"))
    (folder / "model.safetensors").unlink()
    assert (folder / INDEX).is_file()
    sharded = [one.offline.probs for one in Scorer(load_evaluator(folder)).score(traces)]
    small = load_evaluator(folder, dtype="bfloat16")
    assert small.name == f"{NAME} (bfloat16)"
    check_small(small, model.to(torch.bfloat16), tmp_path, traces)
    (folder / INDEX).unlink()
    from_pickles = [one.offline.probs for one in Scorer(load_evaluator(pickled(folder, 2))).score(traces)]
    for one, other, third in zip(before, sharded, from_pickles, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, third)


def check_small(evaluator, model, folder, traces):
    """A mark may turn over by rounding; where both have a probability, they are near each other."""
    judged = np.concatenate([one.offline.validity for one in Scorer(evaluator).score(traces)])
    by_hand = rows(folder, model)
    expected = np.concatenate([by_hand(trace, len(trace.substeps) - 1)[:, 2] for trace in traces])
    assert ((judged > 0) == (expected > 0)).mean() >= 0.8
    both = (judged > 0) & (expected > 0)
    assert both.any()
    np.testing.assert_allclose(judged[both], expected[both], atol=0.05)


def test_one_too_long_is_refused_by_the_longest_of_its_calls(tmp_path):
    write(tmp_path, max_position_embeddings=300)
    evaluator = load_evaluator(tmp_path / NAME)
    with refused():
        evaluator.encode(Trace.of("q", ["1 + 1 = 2. " * 20] * 3))
