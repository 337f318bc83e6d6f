"""Implicit PRMs against the authors' ProcessBench script: two language models, the boundaries counted as there."""

import json

import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scores import Outputs
from stepsight.core.trace import Trace
from tests.checkpoints import QWEN2, pickled, random_model, write_checkpoint, write_language_model
from tests.core.formats.by_hand import TRACES, check_modes, of_two
from tests.messages import refused
from tests.vocabularies import byte_level

TEMPLATE = (
    "{% for message in messages %}{% if loop.first %}<|im_start|>system\nThink.<|im_end|>\n{% endif %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
)
LLAMA = (
    "{{ bos_token }}{% for message in messages %}<|start_header_id|>{{ message['role'] }}<|end_header_id|>\n\n"
    "{{ message['content'] | trim }}<|eot_id|>{% endfor %}"
)
MORE = [Trace.of("q?", ["5.", "a\n\nb", "x "]), Trace.of("q", ["(1)", "So $18.", "é"])]


def write(folder, coefficient=0.02, tokenizer=None, chat_template=TEMPLATE, **card):
    """The evaluator's folder and its reference's, with the same tokenizer and other weights."""
    tokenizer = tokenizer or byte_level(learnt=("\n\n", ".\n\n", "Step", "assistant"))
    special = {"chat_template": chat_template, "pad_token": "<|endoftext|>", "bos_token": "<|begin_of_text|>"}
    card = {"format": "log-ratio", "reference": str(folder / "reference"), "coefficient": coefficient} | card
    model = write_language_model(folder / "prm", QWEN2, tokenizer, special, card)
    config = QWEN2 | {"vocab_size": tokenizer.get_vocab_size()}
    reference = random_model(config, AutoModelForCausalLM, seed=1)
    write_checkpoint(folder / "reference", config, reference.state_dict(), tokenizer, special)
    return model, reference


@torch.inference_mode()
def published(folder, models, trace, coefficient=0.02):
    """The sigmoid of each step's sum, for the whole trace in one pass."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "prm" / "tokenizer.json"), chat_template=TEMPLATE
    )
    steps = [
        step if step.startswith("Step ") else f"Step {number}: {step}"
        for number, step in enumerate(trace.substeps, start=1)
    ]

    def chat(solution):
        return [{"role": "user", "content": trace.problem}, {"role": "assistant", "content": solution}]

    ids = torch.tensor([tokenizer.apply_chat_template(chat("\n\n".join(steps)), return_dict=False)])
    bounds = []
    for count in range(len(steps) + 1):
        text = tokenizer.apply_chat_template(chat("\n\n".join(steps[:count])), tokenize=False).strip()
        text += "\n\n" if 0 < count < len(steps) else ""
        bounds.append(len(tokenizer.encode(text, add_special_tokens=False)) - 2)
    logs = [
        model(ids).logits[:, :-1].double().log_softmax(-1).gather(2, ids[:, 1:, None])[0, :, 0] for model in models
    ]
    reward = coefficient * (logs[0] - logs[1])
    reward[: bounds[0]] = 0
    return torch.sigmoid(reward.cumsum(0)[bounds[1:]]).float().numpy()


def test_every_mode_equals_the_published_procedure(tmp_path):
    models = write(tmp_path)
    evaluator = load_evaluator(tmp_path / "prm")
    assert (evaluator.format, evaluator.attention, evaluator.outputs) == ("log-ratio", "causal", Outputs.VALIDITY)
    traces = [*TRACES, *MORE]
    for trace in traces:
        values = published(tmp_path, models, trace)
        # No sum is so large that its sigmoid would hide what it is.
        assert ((values > 0.01) & (values < 0.99)).all()
    check_modes(evaluator, lambda trace, j: of_two(published(tmp_path, models, trace)[: j + 1]), traces)


@torch.inference_mode()
def published_for_llama(folder, models, trace, coefficient=0.02):
    """As `published`, by the authors' code for ImplicitPRM, which removes Llama's token at the end of a turn."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "prm" / "tokenizer.json"), chat_template=LLAMA, bos_token="<|begin_of_text|>"
    )
    steps = [f"Step {number}: {step.strip()}" for number, step in enumerate(trace.substeps, start=1)]

    def tokens(count):
        text = tokenizer.apply_chat_template(
            [
                {"role": "user", "content": trace.problem},
                {"role": "assistant", "content": "\n\n".join(steps[:count])},
            ],
            tokenize=False,
        ).strip()
        if count < len(steps):
            text = text.removesuffix("<|eot_id|>") + ("\n\n" if count else "")
        return tokenizer.encode(text, add_special_tokens=False)

    ids, marks = torch.tensor([tokens(len(steps))]), [len(tokens(count)) - 2 for count in range(len(steps) + 1)]
    logs = [
        model(ids).logits[:, :-1].double().log_softmax(-1).gather(2, ids[:, 1:, None])[0, :, 0] for model in models
    ]
    # The mask, which is of tokens, is shifted by one against the log-probabilities.
    mask = torch.tensor([0] * marks[0] + [1] * (ids.shape[1] - marks[0]))[1:]
    rewards = coefficient * ((logs[0] - logs[1]) * mask).cumsum(0)
    return torch.sigmoid(rewards[marks[1:]]).float().numpy()


def test_on_llama_3_every_mode_equals_the_authors_other_procedure(tmp_path):
    specials = ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
    tokenizer = byte_level(specials, added=(), bos=specials[0], learnt=("\n\n", ".\n\n", "Step", "assistant"))
    models = write(tmp_path, tokenizer=tokenizer, chat_template=LLAMA)
    evaluator = load_evaluator(tmp_path / "prm")
    traces = [one for one in [*TRACES, *MORE] if not one.substeps[0].startswith("Step")]
    check_modes(evaluator, lambda trace, j: of_two(published_for_llama(tmp_path, models, trace)[: j + 1]), traces)


def test_long_inputs_are_computed_in_chunks(tmp_path, monkeypatch):
    models = write(tmp_path)
    evaluator = load_evaluator(tmp_path / "prm")
    monkeypatch.setattr("stepsight.core.formats.log_ratio._CHUNK", 7)
    check_modes(evaluator, lambda trace, j: of_two(published(tmp_path, models, trace)[: j + 1]), TRACES[:2])


def test_reference_and_coefficient_are_part_of_the_fingerprint(tmp_path):
    write(tmp_path)
    first = load_evaluator(tmp_path / "prm")
    path = tmp_path / "prm" / "stepsight.json"
    card = json.loads(path.read_text())
    path.write_text(json.dumps(card | {"coefficient": 0.25}))
    other = load_evaluator(tmp_path / "prm")
    path.write_text(json.dumps(card | {"reference": str(tmp_path / "prm")}))
    same = load_evaluator(tmp_path / "prm")
    assert len({first.fingerprint, other.fingerprint, same.fingerprint}) == 3


def test_both_may_be_pickled_and_in_bfloat16(tmp_path):
    write(tmp_path, 0.01)
    exact = load_evaluator(tmp_path / "prm").fingerprint
    pickled(tmp_path / "prm", shards=2)
    pickled(tmp_path / "reference")
    assert load_evaluator(tmp_path / "prm").fingerprint == exact
    assert load_evaluator(tmp_path / "prm", dtype="bfloat16").dtype == "bfloat16"


def test_the_reference_has_to_be_named_there_and_of_the_same_vocabulary(tmp_path):
    write(tmp_path)
    path = tmp_path / "prm" / "stepsight.json"
    card = json.loads(path.read_text())
    path.write_text(json.dumps({"format": "log-ratio"}))
    with refused():
        load_evaluator(tmp_path / "prm")
    path.write_text(json.dumps(card | {"reference": "no/such/model"}))
    with refused():
        load_evaluator(tmp_path / "prm")
    path.write_text(json.dumps(card | {"coefficient": -1}))
    with refused():
        load_evaluator(tmp_path / "prm")
    path.write_text(json.dumps(card))
    write_language_model(tmp_path / "reference", QWEN2, byte_level(learnt=("other words",)))
    with refused():
        load_evaluator(tmp_path / "prm")
