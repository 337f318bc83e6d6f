"""What is particular to the formats of two answers; `test_conformance` compares them with their authors."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from stepsight.core.evaluator_summary import Reading
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.files.child import Bounds
from stepsight.core.formats import chat
from stepsight.core.hubs.checkpoint_files import INDEX
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.cases import each
from tests.checkpoints import QWEN2, pickled, write_language_model, write_math_shepherd, write_shards
from tests.core.formats.by_hand import TRACES, check_modes
from tests.core.formats.cases import (
    BEGIN,
    CASES,
    DATED,
    MARKS,
    MINUS,
    PATHFINDER,
    PLAIN,
    PLUS,
    TAG,
    call_by_call,
    first_of_all,
    math_shepherd,
    pathfinder,
    tokenizer_in,
    tokenizer_of,
    two_token,
    without,
    write_chat,
    write_pathfinder,
    write_two_token,
)
from tests.messages import refused

CHAT = "Llama3.1-8B-PRM-Mistral-Data"


def offline(folder, traces=TRACES, **options):
    return [one.offline for one in Scorer(load_evaluator(folder, **options)).score(traces)]


@pytest.fixture(scope="module")
def shepherd(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub") / "math-shepherd-mistral-7b-prm"
    return folder, *write_math_shepherd(folder)


def test_the_tokenizer_of_math_shepherd_has_the_genuine_ids(shepherd):
    tokenizer = tokenizer_in(shepherd[0])
    assert tokenizer.encode("+ -").ids[1:] == [PLUS, MINUS]
    assert tokenizer.encode("ки").ids[-1] == TAG
    rows = load_file(shepherd[0] / "model.safetensors")["lm_head.weight"].shape
    assert rows == (tokenizer.get_vocab_size(), 24)


def test_piece_by_piece_gives_the_tokens_of_the_whole_text(shepherd):
    evaluator = load_evaluator(shepherd[0])
    for trace in (
        Trace.of("A  b\nc", ["x  y", "\tz", "+ - +", "Step 12: q", "ки", "к и"]),
        Trace.of("ки?", ["1 + 1 = 2. Щ", "é\né", "$$x^2$$", "-", "…"]),
    ):
        ids, tags = math_shepherd(shepherd[0], trace)
        encoded = evaluator.encode(trace)
        assert encoded.ids.tolist() == ids
        assert set(encoded.reads.tolist()) <= set(tags)


def test_a_step_with_the_letters_of_the_tag_is_read_once(shepherd):
    evaluator = load_evaluator(shepherd[0])
    encoded = evaluator.encode(Trace.of("What is ки?", ["It is ки ки", "a"]))
    assert (encoded.ids == TAG).sum() == 5
    # What is read is the last of the first step, before its line break, and the last of all.
    newline = evaluator.encoder.tokenizer.token_to_id("<0x0A>")
    assert encoded.reads.tolist() == [int(np.flatnonzero(encoded.ids == newline)[0]) - 1, len(encoded) - 1]


def test_a_step_that_ends_in_spaces_still_gets_its_tag(shepherd):
    trace = Trace.of("q", ["a ", "b"])
    # In one text the space would join the tag's, and the step would have no score.
    assert len(math_shepherd(shepherd[0], trace)[1]) == 1
    encoded = load_evaluator(shepherd[0]).encode(trace)
    assert encoded.ids[encoded.reads].tolist() == [TAG, TAG]


def test_only_two_rows_of_the_head_are_kept(shepherd):
    folder, backbone, head = shepherd
    evaluator = load_evaluator(folder)
    assert "validity only" in evaluator.described
    parameters = sum(p.numel() for p in backbone.parameters()) + 3 * 24 + 3
    assert evaluator.parameters == parameters
    torch.testing.assert_close(evaluator.model.score.weight[[0, 2]], head[[MINUS, PLUS]])


def test_tied_embeddings_are_the_head(tmp_path):
    folder = tmp_path / "math-shepherd-mistral-7b-prm"
    backbone, _ = write_math_shepherd(folder, tie_word_embeddings=True)
    tensors = load_file(folder / "model.safetensors")
    del tensors["lm_head.weight"]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    weight = load_evaluator(folder).model.score.weight
    torch.testing.assert_close(weight[2], backbone.embed_tokens.weight[PLUS])


def test_it_is_known_by_its_name_or_by_stepsight_json(tmp_path):
    write_math_shepherd(tmp_path / "prm")
    with refused():
        load_evaluator(tmp_path / "prm")
    (tmp_path / "prm" / "stepsight.json").write_text('{"format": "math-shepherd"}')
    assert load_evaluator(tmp_path / "prm").format == "math-shepherd"
    cache = tmp_path / "models--peiyi9979--math-shepherd-mistral-7b-prm" / "snapshots" / "0a1b"
    write_math_shepherd(cache)
    evaluator = load_evaluator(cache)
    assert (evaluator.name, evaluator.format) == ("math-shepherd-mistral-7b-prm", "math-shepherd")


def test_a_text_that_spells_the_tag_is_read_once(tmp_path):
    write_two_token(tmp_path, "VersaPRM")
    encoded = load_evaluator(tmp_path / "VersaPRM").encode(Trace.of("q \n\n\n\n q", ["a \n\n\n\nb", "c"]))
    assert len(encoded.reads) == 2
    assert encoded.reads.tolist() == encoded.ends.tolist()


def test_the_softmax_may_be_over_the_whole_vocabulary(tmp_path):
    made, folder = write_two_token(tmp_path, "Math-psa", {"softmax": "vocabulary"}), tmp_path / "Math-psa"
    whole = load_evaluator(folder)

    @torch.inference_mode()
    def rows(trace, j):
        ids, places = two_token("Math-psa")(folder, trace)
        return first_of_all(made, ids, places[: j + 1])

    check_modes(whole, rows)
    (folder / "stepsight.json").write_text('{"softmax": "answers"}')
    assert whole.fingerprint != load_evaluator(folder).fingerprint
    (folder / "stepsight.json").write_text('{"softmax": "all"}')
    with refused():
        load_evaluator(folder)
    model = write_chat(tmp_path, CHAT, card={"softmax": "vocabulary"})
    check_modes(
        load_evaluator(tmp_path / CHAT),
        lambda trace, j: call_by_call(tmp_path / CHAT, model, trace, j, everything=True),
        TRACES[:2],
    )


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
    first, second = (offline(folder, TRACES[:1])[0] for folder in folders)
    np.testing.assert_allclose(first.validity, 1 - second.validity, atol=1e-6)
    assert load_evaluator(folders[1]).fingerprint != texts.fingerprint


@each(
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


def test_a_folder_of_another_name_needs_to_name_the_format_alone(tmp_path):
    write_chat(tmp_path, CHAT)
    write_chat(tmp_path, "mine", PLAIN, {"format": "chat-two-token"})
    ours, theirs = (offline(tmp_path / name, TRACES[:1])[0].probs for name in ("mine", CHAT))
    assert np.array_equal(ours, theirs)


def test_the_date_does_not_follow_the_calendar(tmp_path):
    today = DATED.replace("{%- if not", "{%- if strftime_now is defined and not")
    today = today.replace('set date_string = "26 Jul 2024"', 'set date_string = strftime_now("%d %b %Y")')
    write_chat(tmp_path, CHAT, today)
    assert "26 Jul 2024" in load_evaluator(tmp_path / CHAT).encoder.template.prompt


def test_the_template_may_be_in_a_file_or_in_a_list(tmp_path):
    write_chat(tmp_path, CHAT)
    fingerprint, path = load_evaluator(tmp_path / CHAT).fingerprint, tmp_path / CHAT / "tokenizer_config.json"
    listed = [{"name": "tool_use", "template": "x"}, {"name": "default", "template": PLAIN}]
    path.write_text(json.dumps({"bos_token": BEGIN, "chat_template": listed}))
    assert load_evaluator(tmp_path / CHAT).fingerprint == fingerprint
    path.write_text(json.dumps({"bos_token": BEGIN}))
    (tmp_path / CHAT / "chat_template.jinja").write_text(PLAIN)
    assert load_evaluator(tmp_path / CHAT).fingerprint == fingerprint


@pytest.mark.slow
@each(
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
def test_an_invalid_chat_template_is_refused(tmp_path, template):
    if not (tmp_path / CHAT).exists():
        write_chat(tmp_path, CHAT)
    special = {"bos_token": BEGIN} | ({"chat_template": template} if template else {})
    (tmp_path / CHAT / "tokenizer_config.json").write_text(json.dumps(special))
    with refused():
        load_evaluator(tmp_path / CHAT)


def test_a_chat_template_that_never_ends_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(chat, "BOUNDS", Bounds(seconds=1, memory=500_000_000))
    ever = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    write_chat(tmp_path, CHAT, ever)
    with refused():
        load_evaluator(tmp_path / CHAT)


@pytest.fixture(scope="module")
def marked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pathfinder")
    return folder / PATHFINDER, write_pathfinder(folder)


def test_windows_ask_about_the_steps_of_their_blocks_alone(marked):
    folder, model = marked
    own = load_evaluator(folder)
    trace = Trace.of("q", [f"{i} + 1 = {i + 1}." for i in range(12)])
    alone = len(own.encode(Trace.of("q", trace.substeps[:1])))
    evaluator = own.read_as(Reading(window=alone + 60))
    windows = evaluator.encode(trace).windows
    assert sum(len(window.encoded.calls) for window in windows) == 12
    assert len(windows) > 1

    def by_window(trace, j):
        parts = []
        for window in windows:
            if window.first <= j:
                seen = Trace.of("q", trace.substeps[window.start : min(window.end, j + 1)])
                rows = pathfinder(folder, model, seen, len(seen.steps) - 1)
                parts.append(rows[window.first - window.start :])
        return np.concatenate(parts)

    check_modes(evaluator, by_window, [trace], one_pass=False)


def test_both_ways_of_the_first_call_are_met(marked):
    judged = np.concatenate([scores.validity for scores in offline(marked[0], CASES["PathFinder-PRM"].traces)])
    assert (judged == 0).any()
    assert (judged > 0).any()


def test_shards_pickles_and_bfloat16_score_alike(tmp_path):
    model, folder = write_pathfinder(tmp_path), tmp_path / PATHFINDER
    traces = without(TRACES, *MARKS)
    before = offline(folder, traces)
    write_shards(folder, load_file(folder / "model.safetensors"))
    (folder / "model.safetensors").unlink()
    sharded = offline(folder, traces)
    assert load_evaluator(folder, dtype="bfloat16").name == f"{PATHFINDER} (bfloat16)"
    judged = np.concatenate([scores.validity for scores in offline(folder, traces, dtype="bfloat16")])
    half = model.to(torch.bfloat16)
    expected = np.concatenate([pathfinder(folder, half, one, len(one.substeps) - 1)[:, 2] for one in traces])
    # A mark may turn over by rounding; where both have a probability, they are near each other.
    assert ((judged > 0) == (expected > 0)).mean() >= 0.8
    both = (judged > 0) & (expected > 0)
    assert both.any()
    np.testing.assert_allclose(judged[both], expected[both], atol=0.05)
    (folder / INDEX).unlink()
    for scores, other, third in zip(before, sharded, offline(pickled(folder, 2), traces), strict=True):
        np.testing.assert_array_equal(scores.probs, other.probs)
        np.testing.assert_array_equal(scores.probs, third.probs)


def test_one_too_long_is_refused_by_the_longest_of_its_calls(tmp_path):
    write_pathfinder(tmp_path, max_position_embeddings=300)
    with refused():
        load_evaluator(tmp_path / PATHFINDER).encode(Trace.of("q", ["1 + 1 = 2. " * 20] * 3))
