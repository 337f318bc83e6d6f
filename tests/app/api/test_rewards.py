"""The routes of other servers of reward models, asked as their clients do."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count

import numpy as np
import pytest
from pydantic import ValidationError

from stepsight.app.api.models import ScoreRequest
from stepsight.app.api.rewards import _Asked, _RewardAsked, read_messages, read_text
from stepsight.app.scoring.batcher import Batcher, BusyError, client_context
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.server import build_app
from stepsight.core.errors import UserError
from stepsight.core.files.jsonl import format_trace, parse_trace
from stepsight.core.judgment import Mode
from stepsight.core.models.location import EQUATIONS
from stepsight.core.models.model import THREE_WAY
from stepsight.core.trace import Trace
from stepsight.training.evaluate.strength import concluded_record
from tests.app.client import asking, assert_alike
from tests.app.held_up import hold_up, posted, served
from tests.app.processes import until
from tests.cases import each
from tests.messages import refused
from tests.storage.samples import add
from tests.vllm_server import Classifier, Day, VllmServer

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
    assert response.json() == {"error": "equations gives verdicts, not numbers.", "hint": "Use one of: tiny."}


LOOP_STEPS = ["2 + 3 = 5.", ["Check.", "5 - 3 = 2."]]
CANDIDATES = ["So 5.", "It is 6, then.", "So 5."]


def batch(client, traces, **more):
    body = {"traces": [{"problem": problem, "steps": steps} for problem, steps in traces], **more}
    return client.post("/api/v1/score/batch", json=body)


def following(client, candidates=CANDIDATES, steps=LOOP_STEPS, **more):
    body = {"problem": "What is 2 + 3?", "steps": steps, "candidates": candidates, **more}
    return client.post("/api/v1/next", json=body)


def lines_of(response):
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in response.text.splitlines()]
    return {line["index"]: line for line in lines}


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", ["tiny", "tiny-causal"])
def test_a_batch_has_a_line_for_each_solution(client, evaluators, name, mode):
    traces = [(f"What is {n} + 3?", LOOP_STEPS[: 1 + n % 2]) for n in range(50)]
    lines = lines_of(batch(client, traces, evaluator=name, mode=mode))
    assert sorted(lines) == list(range(50))
    for place in (0, 1, 49):
        problem, steps = traces[place]
        alone = evaluators.scorer(name).score_one(Trace.of(problem, steps), mode)
        said = concluded_record(alone, evaluators.about(name)).model_dump(mode="json")
        assert_alike(lines[place], said | {"index": place}, 2e-5)


def test_a_line_of_an_export_is_read_as_it_is(filled, client, evaluators):
    meta = {f"field {number}": number for number in range(20)} | {"labels": ["pos", "neg"], "shares": [1, 0]}
    row = {"id": "a", "problem": "What is 2 + 3?", "steps": ["It is a sum.", ["So", "6."]]}
    (stored,) = add(filled, [parse_trace(row | meta, "row 1")], "lines")
    line = json.loads(json.dumps(format_trace(stored)))
    body = {"traces": [line], "evaluator": "tiny", "mode": "hindsight"}
    (read,) = lines_of(client.post("/api/v1/score/batch", json=body)).values()
    said = concluded_record(evaluators.scorer("tiny").score_one(stored), evaluators.about("tiny"))
    assert_alike(read, said.model_dump(mode="json") | {"index": 0}, 2e-5)


@pytest.mark.parametrize("name", ["tiny", "tiny-causal"])
def test_candidates_have_what_score_next_gives(client, evaluators, name):
    for steps in (LOOP_STEPS, [], LOOP_STEPS[:1]):
        lines = lines_of(following(client, steps=steps, evaluator=name))
        expected = evaluators.scorer(name).score_next("What is 2 + 3?", steps, CANDIDATES)
        found = [[lines[place][label] for label in ("neg", "neu", "pos")] for place in range(3)]
        np.testing.assert_allclose(found, expected, atol=2e-5)
        for line in lines.values():
            assert line["validity"] == pytest.approx(line["pos"] + line["neu"], abs=2e-6)
            assert line["valid"] == (line["validity"] >= 0.5)
            assert (line["step"], line["substep"]) == (len(steps) + 1, 1)


def test_candidates_go_to_an_evaluator_behind_a_server(filled, tiny, evaluators, monkeypatch):
    monkeypatch.setattr("stepsight.core.inference_servers.server._FIRST_PAUSE", 0.001)
    server = VllmServer(Classifier(tiny, THREE_WAY), tiny, context=1024)
    with server.running() as url, asking(filled, Evaluators([server.address(url)], shipped=False)) as client:
        lines = lines_of(following(client, evaluator="prm (vllm)"))
        expected = evaluators.scorer("tiny").score_next("What is 2 + 3?", LOOP_STEPS, CANDIDATES)
        found = [[lines[place][label] for label in ("neg", "neu", "pos")] for place in range(3)]
        np.testing.assert_allclose(found, expected, atol=2e-5)
        server.day = Day(asks=1, dies_after=1)
        died = lines_of(following(client, ["Another one."], evaluator="prm (vllm)"))[0]
        assert died["status"] == 502
        assert "the server broke the connection" in died["error"]


def test_missing_scores_of_a_candidate_are_null(filled, tiny, mixed):
    with asking(filled, mixed) as client:
        for name in ("math-shepherd", "two"):
            line = lines_of(following(client, evaluator=name))[0]
            expected = mixed.scorer(name).score_next("What is 2 + 3?", LOOP_STEPS, CANDIDATES)[0, 2]
            assert line["validity"] == pytest.approx(float(expected), abs=2e-5)
            assert (line["pos"], line["redundancy"], line["redundant"]) == (None, None, None)
    with asking(filled, Evaluators([tiny, EQUATIONS], shipped=False)) as client:
        lines = lines_of(following(client, ["So 2 + 3 = 6.", "Yes."], evaluator="equations"))
        assert [lines[place]["valid"] for place in range(2)] == [False, None]
        assert lines[0]["validity"] is None


def test_a_solution_that_cannot_be_judged_is_a_line_beside_the_others(client):
    lines = lines_of(batch(client, [("q", ["a"]), ("q", ["7" * 20_000]), ("q", ["b"])]))
    assert set(lines[1]) == {"index", "error", "hint", "status"}
    assert lines[1]["status"] == 422
    assert "reads at most 1,024" in lines[1]["error"]
    assert lines[0]["offline"]["steps"]
    assert lines[2]["offline"]["steps"]
    # Each candidate is one of its own for a bidirectional evaluator.
    lines = lines_of(following(client, ["a", "7" * 20_000], evaluator="tiny"))
    assert (lines[1]["status"], "validity" in lines[0]) == (422, True)
    lines = lines_of(following(client, ["a", "7" * 20_000], evaluator="tiny-causal"))
    assert "candidate 2: the trace has" in lines[0]["error"]


@each(
    "path, body, status, said",
    [
        ("score/batch", {"traces": []}, 422, "traces: List should have at least 1 item"),
        ("score/batch", {"traces": [{"problem": "q", "steps": ["a"]}] * 1001}, 422, "at most 1000 items"),
        ("score/batch", {"traces": [{"problem": "q", "steps": ["a", " "]}]}, 422, "traces.0: step 2 is empty"),
        ("score/batch", {"traces": [{"problem": "q"}]}, 422, "traces.0.steps: Field required"),
        ("score/batch", {"traces": [{"problem": "q", "steps": ["a"]}], "evaluator": "big"}, 404, "evaluator 'big'"),
        ("next", {"problem": "q", "candidates": ["a"], "context": {}}, 422, "context: Extra inputs are not"),
        ("next", {"problem": "q", "candidates": []}, 422, "candidates: List should have at least 1 item"),
        ("next", {"problem": "q", "candidates": ["a", " "]}, 422, "candidate 2 is empty"),
        ("next", {"problem": " ", "candidates": ["a"]}, 422, "the problem is empty"),
        ("next", {"problem": "q", "candidates": ["a"] * 257}, 422, "at most 256 items"),
        ("next", {"problem": "q", "candidates": ["a"], "mode": "offline"}, 422, "mode: Extra inputs"),
        ("next", {"problem": "q", "candidates": ["a"], "evaluator": "big"}, 404, "There is no evaluator 'big'"),
    ],

)  # fmt: skip
def test_bad_input_is_told_before_anything_is_scored(client, path, body, status, said):
    response = client.post(f"/api/v1/{path}", json=body)
    assert response.status_code == status
    assert said in response.json()["error"]
    assert response.json()["hint"] or status == 422


def test_more_than_may_wait_is_fed_as_there_is_room(sqlite_store, tiny, tiny_causal):
    evaluators = Evaluators([tiny], shipped=False)
    evaluators._offered["tiny"].batcher = Batcher(evaluators.scorer("tiny"), evaluators._places, most=4)
    with asking(sqlite_store, evaluators) as client:
        lines = lines_of(batch(client, [(f"q {n}", ["a"]) for n in range(40)]))
    assert len(lines) == 40
    assert not any("error" in line for line in lines.values())


@pytest.fixture
def held(tiny):
    """With room for two waiting traces of a client."""
    return hold_up(tiny, most=4)


def test_a_full_queue_answers_429_with_a_time_to_retry(sqlite_store, held):
    evaluators, scorer = held
    with asking(sqlite_store, evaluators) as client, ThreadPoolExecutor(1) as pool:
        first = pool.submit(batch, client, [(f"q {n}", ["a"]) for n in range(20)])
        assert scorer.at_work.wait(30)
        # In the name of the same client.
        with client_context("programs of address 127.0.0.1"), suppress(BusyError):
            for number in count():
                evaluators.submit("tiny", Trace.of(f"Q {number}", ["a"]))
        for refused in (batch(client, [("q", ["b"])]), following(client)):
            assert refused.status_code == 429
            assert int(refused.headers["retry-after"]) >= 1
            assert "too many traces waiting" in refused.json()["error"]
        scorer.go.set()
        assert len(lines_of(first.result())) == 20


def test_solutions_over_the_time_are_lines_of_503(sqlite_store, held):
    evaluators, scorer = held
    with asking(sqlite_store, evaluators, seconds=0.3) as client:
        lines = lines_of(batch(client, [(f"q {n}", ["a"]) for n in range(5)]))
        assert {line["status"] for line in lines.values()} == {503}
        assert "longer than the 0.3 s" in lines[4]["error"]
        assert lines[0]["retry_after"] > 0
        assert scorer.ended.wait(120)
        scorer.go.set()
        assert "offline" in lines_of(batch(client, [("q", ["a"])]))[0]


def test_lines_come_before_the_last_is_there_and_who_goes_away_is_not_computed_for(sqlite_store, held):
    evaluators, scorer = held
    done = {"problem": "known", "steps": ["a"]}
    known = Trace.of("known", ["a"])
    key = evaluators._key("tiny", known, Mode.HINDSIGHT)
    evaluators._judgments.get(key, None, lambda: scorer.scorer.score_one(known), lambda judgment: 0)
    with served(build_app(sqlite_store, evaluators)) as address:
        with posted(
            address, "/api/v1/score/batch", {"traces": [{"problem": "held", "steps": ["a"]}, done]}
        ) as client:
            text = b""
            while b'"index":1' not in text:
                text += client.recv(4096)
            assert b'"index":0' not in text
            assert scorer.at_work.wait(30)
            assert not scorer.ended.is_set()
        assert scorer.ended.wait(120)
        until(lambda: not evaluators._offered["tiny"].batcher.is_busy)


def test_a_fault_of_ours_is_a_line_that_tells_nothing_of_itself(sqlite_store, held, caplog):
    evaluators, scorer = held

    def fail(*_):
        raise RuntimeError("secret of ours")

    scorer.stream_encoded = fail
    with asking(sqlite_store, evaluators) as client:
        line = lines_of(batch(client, [("q", ["a"])]))[0]
    assert (line["status"], line["error"]) == (500, "Something went wrong in StepSight itself.")
    assert "secret of ours" in caplog.text
