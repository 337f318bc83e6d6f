"""The routes of other servers of reward models, asked as their clients do."""

import numpy as np
import pytest
from pydantic import ValidationError

from stepsight.app.api.conversation import read_messages, read_text
from stepsight.app.api.models import ScoreRequest
from stepsight.app.api.rewards import _Asked, _RewardAsked
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.errors import UserError
from stepsight.core.models.location import EQUATIONS
from stepsight.core.trace import Trace
from tests.app.client import asking
from tests.messages import refused

PROBLEM, STEPS = "What is 2 + 3?", ["2 + 3 = 6.", "So 6."]
TRACE = Trace.of(PROBLEM, STEPS)
CHATML = (
    "<|im_start|>system\nPlease reason step by step.<|im_end|>\n<|im_start|>user\nWhat is 2 + 3?<|im_end|>\n"
    "<|im_start|>assistant\n2 + 3 = 6.<extra_0>So 6.<extra_0><|im_end|><|endoftext|>"
)
MESSAGES = [
    {"role": "system", "content": "Please reason step by step."},
    {"role": "user", "content": [{"type": "text", "text": PROBLEM}]},
    {"role": "assistant", "content": "2 + 3 = 6.<extra_0>So 6.<extra_0>"},
]


@pytest.mark.parametrize(
    "text",
    [
        CHATML,
        CHATML.removesuffix("<|im_end|><|endoftext|>"),
        "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nWhat is 2 + 3?<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n2 + 3 = 6.\n\nSo 6.<|eot_id|>",
        "<bos><start_of_turn>user\nWhat is 2 + 3?<end_of_turn>\n"
        "<start_of_turn>model\n2 + 3 = 6.\n\nSo 6.<end_of_turn>\n",
        "<s>[INST] What is 2 + 3? [/INST] 2 + 3 = 6. ки\nSo 6. ки</s>",
        "Question:\nWhat is 2 + 3?\nAnswer:\nLet's think step by step.\n2 + 3 = 6.\n\nSo 6.",
    ],
    ids=["chatml", "open", "llama-3", "gemma", "mistral", "plain"],
)
def test_the_templates_of_chats_are_read(text):
    trace = read_text(text).trace
    assert (trace.problem, list(trace.substeps)) == (PROBLEM, STEPS)


def test_a_text_without_turns_needs_its_prompt():
    assert read_text("What is it? 5.", "What is it?").trace.substeps == ("5.",)
    with refused():
        read_text("What is it? 5.")
    with refused():
        read_text("What is it? 5.", "Who is it?")


def test_a_word_of_the_language_is_no_step_token():
    chat = [{"role": "user", "content": "Сколько?"}, {"role": "assistant", "content": "Три точки. Две точки."}]
    assert read_messages(chat).trace.substeps == ("Три точки.", "Две точки.")


def test_of_a_long_chat_the_last_solution_counts():
    turns = [
        ("user", "first"),
        ("assistant", "a"),
        ("user", "second"),
        ("assistant", "b<extra_0>c"),
        ("user", "thanks"),
    ]
    trace = read_messages([{"role": role, "content": content} for role, content in turns]).trace
    assert (trace.problem, trace.substeps) == ("second", ("b", "c"))


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "assistant", "content": "a"}],
        [{"role": "user", "content": "a"}],
        [{"role": "user", "content": "a"}, {"role": "assistant"}],
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": [3]}],
        [{"role": "user", "content": " "}, {"role": "assistant", "content": "b"}],
    ],
    ids=repr,
)
def test_a_chat_without_a_solution_is_told(messages):
    with refused():
        read_messages(messages)


def test_a_hostile_text_takes_no_time():
    for text in ("[INST]" * 150_000, "<|im_start|>user\n" * 60_000, "</s>" * 200_000 + "x", "\n" * 900_000 + "x"):
        with pytest.raises(UserError):
            read_text(text)


@pytest.mark.parametrize(
    "body",
    [
        {"problem": "a", "steps": [0] * 100_000},
        {"problem": "a", "steps": [["a"] * 3 + [0] * 100_000]},
        {"problem": "a", "steps": ["a"], **{f"field {number}": 0 for number in range(100_000)}},
        {"query": [{}] * 100_000},
        {"input": [{}] * 100_000},
        {"messages": [0] * 100_000},
    ],
    ids=["steps", "sub-steps", "fields", "query", "input", "messages"],
)
def test_of_a_hundred_thousand_errors_few_are_made(body):
    kind = ScoreRequest if "steps" in body else _RewardAsked if "query" in body else _Asked
    with pytest.raises(ValidationError) as caught:
        kind.model_validate(body)
    assert caught.value.error_count() < 5


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_pooling_gives_a_row_of_two_for_each_step(client, evaluators, mode):
    expected = evaluators.scorer("tiny").score_one(TRACE, mode)
    expected = (expected.online if mode == "online" else expected.offline).validity
    for asked in ({"input": CHATML}, {"input": [CHATML]}, {"messages": MESSAGES}):
        body = {"model": "tiny", "use_activation": True, "mode": mode, **asked}
        answer = client.post("/pooling", json=body).json()
        assert (answer["object"], answer["model"]) == ("list", "tiny")
        (row,) = answer["data"]
        assert (row["index"], row["object"]) == (0, "pooling")
        # As clients of Qwen2.5-Math-PRM read it.
        np.testing.assert_allclose([pair[1] for pair in row["data"]], expected, atol=2e-5)
        np.testing.assert_allclose(np.sum(row["data"], axis=1), 1, atol=2e-6)


@pytest.mark.parametrize(
    ("solution", "steps", "rows"),
    [
        ("A<extra_0><extra_0>B<extra_0>", ["A", "B"], [0, 0, 1]),
        ("A<extra_0>\n\u200b<extra_0>B<extra_0>", ["A", "B"], [0, 0, 1]),
        ("A<extra_0>B", ["A", "B"], [0]),
        ("A ки\nB ки\n ки", ["A", "B"], [0, 1, 1]),
        ("A = 5.ки5 + 4ки", ["A = 5.", "5 + 4"], [0, 1]),
        ("Три точки ки\nB ки", ["Три точки", "B"], [0, 1]),
    ],
    ids=repr,
)
def test_pooling_gives_a_row_for_each_step_token_and_for_nothing_else(client, solution, steps, rows):
    messages = [*MESSAGES[:2], {"role": "assistant", "content": solution}]
    assert read_messages(messages).trace.substeps == tuple(steps)
    whole = client.post("/pooling", json={"messages": [*MESSAGES[:2], {"role": "assistant", "content": "\n\n".join(
        f"{step}<extra_0>" for step in steps)}]}).json()["data"][0]["data"]  # fmt: skip
    found = client.post("/pooling", json={"messages": messages}).json()["data"][0]["data"]
    assert found == [whole[row] for row in rows]


def test_a_step_token_before_any_step_is_refused():
    with refused():
        read_text(CHATML.replace("2 + 3 = 6.<extra_0>", "<extra_0>"))


def test_a_bad_text_of_a_reward_batch_is_its_own_error(client):
    good, prompt = "What is 2 + 3? 2 + 3 = 6.", "What is 2 + 3?"
    expected = client.post("/get_reward", json={"query": [good], "prompts": [prompt]}).json()["rewards"]
    query = [good, prompt, good.replace("6", "6" * 20_000)]
    answer = client.post("/get_reward", json={"query": query, "prompts": [prompt] * 3})
    assert answer.status_code == 200
    assert answer.json()["rewards"] == answer.json()["scores"] == [*expected, 0.0, 0.0]
    assert set(answer.json()["errors"]) == {"1", "2"}
    # Without prompts, whichever text is first.
    rewards = client.post("/get_reward", json={"query": ["?", CHATML]}).json()["rewards"]
    assert rewards[0] == 0.0 < rewards[1]
    # A completion alone that is empty ends no training run either.
    assert client.post("/get_reward", json={"query": [prompt], "prompts": [prompt]}).json()["rewards"] == [0.0]
    assert client.post("/get_reward", json={"query": ["?"], "prompts": [prompt]}).status_code == 422


def test_classify_gives_what_verl_reads(client, evaluators):
    inputs = [CHATML, CHATML.replace("So 6.", "So 7.")]
    answer = client.post("/classify", json={"model": "tiny", "input": inputs, "use_activation": False}).json()
    for row, text in zip(answer["data"], inputs, strict=True):
        expected = float(
            evaluators.scorer("tiny").score_one(read_text(text).trace, "offline").offline.validity.min()
        )
        assert row["probs"][-1] == pytest.approx(expected, abs=2e-5)
        assert (row["num_classes"], row["label"]) == (2, "valid" if expected >= 0.5 else "invalid")


def test_get_reward_gives_what_openrlhf_reads(client, evaluators):
    query = ["What is 2 + 3? 2 + 3 = 6.</s>", CHATML]
    answer = client.post(
        "/get_reward", json={"query": query, "prompts": ["What is 2 + 3?", None], "labels": ["5", "5"]}
    )
    traces = [Trace.of(PROBLEM, ["2 + 3 = 6."]), TRACE]
    first = evaluators.names[0]
    expected = [float(evaluators.scorer(first).score_one(one, "offline").offline.validity.min()) for one in traces]
    assert answer.json()["rewards"] == answer.json()["scores"] == pytest.approx(expected, abs=2e-5)


def test_the_models_are_listed(client, evaluators):
    models = client.get("/v1/models").json()
    assert [model["id"] for model in models["data"]] == evaluators.names
    assert models["data"][0]["max_model_len"] == 1024


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("pooling", {"model": "big", "input": CHATML}, 404, "There is no evaluator 'big'"),
        ("pooling", {}, 422, "input has 0 texts"),
        ("pooling", {"input": [[1, 2, 3]]}, 422, "valid string"),
        ("classify", {"input": [CHATML, "?"]}, 422, "text 2: no problem and solution"),
        ("classify", {"input": CHATML.replace("So 6.", "7" * 20_000)}, 422, "reads at most 1,024"),
        ("get_reward", {"query": []}, 422, "query: List should have at least 1 item"),
        ("get_reward", {"query": ["a", "b"], "prompts": ["a"]}, 422, "1 prompts for 2 queries"),
    ],
    ids=repr,
)
def test_bad_input_is_told(client, path, body, status, said):
    response = client.post(f"/{path}", json=body)
    assert response.status_code == status
    assert said in response.json()["error"]


def test_an_evaluator_in_words_has_no_reward(filled, tiny):
    with asking(filled, Evaluators([tiny, EQUATIONS], shipped=False)) as client:
        response = client.post("/classify", json={"model": "equations", "input": CHATML})
    assert response.status_code == 422
    assert response.json() == {"error": "equations gives verdicts and no numbers.", "hint": "Ask one of: tiny."}
