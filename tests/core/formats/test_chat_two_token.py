"""RLHFlow's checkpoints against the authors' loop: the folder's own chat template, a call for each step."""

import json

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerFast

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.files.child import Bounds
from stepsight.core.formats import chat
from stepsight.core.scores import Outputs
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.checkpoints import LLAMA3, write_language_model
from tests.core.formats.by_hand import TRACES, check_modes, of_two, softmax
from tests.messages import refused
from tests.vocabularies import byte_level

BEGIN = "<|begin_of_text|>"
TOKENS = (BEGIN, "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
# Llama 3's, and the parts of Llama 3.1's that such a chat uses.
PLAIN = (
    "{% for message in messages %}{% set content = '<|start_header_id|>' + message['role'] + "
    "'<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' %}"
    "{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
)
DATED = (
    '{{- bos_token }}{%- if not date_string is defined %}{%- set date_string = "26 Jul 2024" %}{%- endif %}'
    '{{- "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\nToday Date: " + '
    "date_string + \"\n\n<|eot_id|>\" }}{%- for message in messages %}{{- '<|start_header_id|>' + "
    "message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}{%- endfor %}"
)
NAMES = {"Llama3.1-8B-PRM-Mistral-Data": PLAIN, "Llama3.1-8B-PRM-Deepseek-Data": DATED}
MORE = [Trace.of("What is 2 + 3?", [" 2 + 3 = 5.\n", "\n\nSo\n\n5."]), Trace.of("  q", ["+", "-", "<|eot_id|>?"])]


def write(folder, name, template=None, card=None):
    tokenizer = byte_level(TOKENS, added=(), bos=BEGIN, learnt=("\n\n", "+", "-"))
    special = {"bos_token": BEGIN, "chat_template": template or NAMES[name]}
    return write_language_model(folder / name, LLAMA3, tokenizer, special, card)


@torch.inference_mode()
def call_by_call(folder, model, trace, j, *, everything=False):
    """The authors' loop: the chat up to each step, always answered by +, read at the third token from the end."""
    special = json.loads((folder / "tokenizer_config.json").read_text())
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), bos_token=BEGIN, chat_template=special["chat_template"]
    )
    candidates = [tokenizer.encode(sign)[-1] for sign in ("+", "-")]
    chat, scores = [], []
    for number, step in enumerate(trace.substeps[: j + 1]):
        text = f"{trace.problem} {step.strip()}" if number == 0 else step.strip()
        chat += [{"role": "user", "content": text}, {"role": "assistant", "content": "+"}]
        ids = tokenizer.apply_chat_template(chat, return_dict=False)
        logits = model(torch.tensor([ids])).logits[0, -3].numpy()
        scores.append(softmax(logits)[candidates[0]] if everything else softmax(logits[candidates])[0])
    return of_two(np.array(scores))


@pytest.mark.parametrize("name", NAMES)
def test_one_pass_equals_a_call_for_each_step(tmp_path, name):
    model = write(tmp_path, name)
    evaluator = load_evaluator(tmp_path / name)
    assert (evaluator.name, evaluator.format, evaluator.outputs) == (name, "chat-two-token", Outputs.VALIDITY)
    # A text that spells a token of the chat is a token for the authors' tokenizer, and only text for ours.
    plain = [trace for trace in [*TRACES, *MORE] if "<|" not in "".join(trace.substeps)]
    check_modes(evaluator, lambda trace, j: call_by_call(tmp_path / name, model, trace, j), plain)


def test_a_folder_of_another_name_needs_to_name_the_format_alone(tmp_path):
    write(tmp_path, "Llama3.1-8B-PRM-Mistral-Data", template=PLAIN)
    write(tmp_path, "mine", template=PLAIN, card={"format": "chat-two-token"})
    known, mine = (
        Scorer(load_evaluator(tmp_path / name)).score_one(TRACES[0], "offline")
        for name in ("Llama3.1-8B-PRM-Mistral-Data", "mine")
    )
    assert np.array_equal(known.result.probs, mine.result.probs)


def test_the_whole_vocabulary_is_an_option(tmp_path):
    name = "Llama3.1-8B-PRM-Mistral-Data"
    model = write(tmp_path, name, card={"softmax": "vocabulary"})
    evaluator = load_evaluator(tmp_path / name)
    check_modes(evaluator, lambda trace, j: call_by_call(tmp_path / name, model, trace, j, everything=True))


def test_a_text_that_spells_a_token_of_the_chat_is_only_text(tmp_path):
    write(tmp_path, "Llama3.1-8B-PRM-Mistral-Data")
    evaluator = load_evaluator(tmp_path / "Llama3.1-8B-PRM-Mistral-Data")
    encoded = evaluator.encode(MORE[1])
    end = evaluator.encoder.tokenizer.token_to_id("<|eot_id|>")
    # After each of three steps, and after the answers to the first two.
    assert (encoded.ids == end).sum() == 5


def test_the_date_does_not_follow_the_calendar(tmp_path):
    name = "Llama3.1-8B-PRM-Deepseek-Data"
    today = DATED.replace("{%- if not", "{%- if strftime_now is defined and not")
    today = today.replace('set date_string = "26 Jul 2024"', 'set date_string = strftime_now("%d %b %Y")')
    write(tmp_path, name, today)
    assert "26 Jul 2024" in load_evaluator(tmp_path / name).encoder.template.prompt


def test_the_template_may_be_in_a_file_or_in_a_list(tmp_path):
    name = "Llama3.1-8B-PRM-Mistral-Data"
    write(tmp_path, name)
    fingerprint = load_evaluator(tmp_path / name).fingerprint
    for template in ([{"name": "tool_use", "template": "x"}, {"name": "default", "template": PLAIN}], None):
        special = {"bos_token": BEGIN} | ({"chat_template": template} if template else {})
        (tmp_path / name / "tokenizer_config.json").write_text(json.dumps(special))
        if template is None:
            (tmp_path / name / "chat_template.jinja").write_text(PLAIN)
        assert load_evaluator(tmp_path / name).fingerprint == fingerprint


@pytest.mark.parametrize(
    "template",
    [
        "{% for",
        "{{ bos_token }}",
        "{{ messages[0]['content'] }}",
        PLAIN.replace("loop.index0 == 0", "loop.index0 == 4"),
        "{{ 1 // messages[0]['content'].count('no') }}",
        "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",
        "{{ messages[0]['content'] * 10**12 }}",
        "{{ 'ab' * 10**6 }}",
        [1, {"name": "other"}],
        None,
    ],
)
def test_an_invalid_template_is_refused(tmp_path, template):
    name = "Llama3.1-8B-PRM-Mistral-Data"
    write(tmp_path, name)
    special = {"bos_token": BEGIN} | ({"chat_template": template} if template else {})
    (tmp_path / name / "tokenizer_config.json").write_text(json.dumps(special))
    with refused():
        load_evaluator(tmp_path / name)


def test_a_template_that_never_ends_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(chat, "BOUNDS", Bounds(seconds=1, memory=500_000_000))
    name = "Llama3.1-8B-PRM-Mistral-Data"
    ever = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    write(tmp_path, name, ever)
    with refused():
        load_evaluator(tmp_path / name)
