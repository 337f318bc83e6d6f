"""Critics behind a real socket: the requests they get, and the judgments from their answers."""

import json
from contextlib import closing, contextmanager

import numpy as np
import pytest

from stepsight.core.critics.critic import open_critic
from stepsight.core.critics.settings import OWN, read_preset, read_settings
from stepsight.core.inference_servers.address import parse_address
from stepsight.core.inference_servers.server import Server
from stepsight.core.judgment import Mode, Usage
from stepsight.core.scores import Hindsight, Outputs, StepScores
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.training.stress.stress_test import StressTest
from stepsight.training.stress.transforms import find_transform
from tests.cases import each
from tests.chat_server import Body, chat_server, completion, shown, verdicts
from tests.local_server import Reply
from tests.messages import refused

TRACE = Trace.of("What is 1 + 1 + 2?", ["1 + 1 = 2", ["2 + 2 = 4", "so 4"], "4 + 0 = 4"], id="t")
POS, NEU, NEG = [0, 0, 1], [0, 1, 0], [1, 0, 0]


def critic_of(spec):
    return open_critic(parse_address(spec))


@contextmanager
def asking(chat, options="", model="m", **more):
    """A critic at that server, with up to four requests at once."""
    critic = critic_of(f"critic:{chat.url}#{model}{options}")
    with closing(Server(chat.url, at_once=4, **more)) as server:
        critic.client.server = server
        yield critic


def judged(critic, traces, mode=Mode.OFFLINE):
    return list(Scorer(critic).score(traces, mode, lambda *_: None))


def all_right(body):
    return verdicts(["pos"] * shown(body))


def last_wrong(body):
    """The last step that is shown is wrong, and right when there are more."""
    return verdicts(["pos"] * (shown(body) - 1) + ["neg"])


def judge(answer, mode, options="", model="m"):
    with chat_server(answer) as chat, asking(chat, options, model) as critic:
        return Scorer(critic).score_one(TRACE, mode), chat


def test_offline_one_question_shows_all():
    judgment, chat = judge(lambda body: verdicts(["pos", "neu", "neg", "pos"]), Mode.OFFLINE)
    assert isinstance(judgment.result, StepScores)
    assert judgment.result.probs.tolist() == [POS, NEU, NEG, POS]
    assert [shown(body) for body in chat.asked] == [4]
    assert judgment.rationale.split("\n\n")[1:3] == [
        "**Step 2.1: neu.** since it is so 2",
        "**Step 2.2: neg.** since it is so 3",
    ]
    assert judgment.spent == Usage(1, 0, 300, 20)


def test_a_stress_test_passes_over_a_variant_on_which_nothing_can_be_read():
    trace = Trace.of("Add.", ["1 + 1 = 2.", "So it is 2."])
    test = StressTest.of([find_transform("number-replaced"), find_transform("filler")], [trace])
    texts = [variant.trace.substeps for _, variant in test.variants[0] if variant is not None]

    def answer(body: Body) -> str:
        told = str(body["messages"][-1]["content"])
        wrong, filled = (all(text in told for text in steps) for steps in texts)
        return "I cannot say." if filled else verdicts(["neg" if wrong else "pos", "pos"])

    with chat_server(answer) as chat, asking(chat) as critic:
        (record,) = test.judge("critic", Scorer(critic).offline_scores, 0.5)
    assert record["transform"] == "number-replaced"
    assert [validity >= 0.5 for validity in record["after"]] == [False, True]
    assert critic.tally.unread == 1


def test_a_request_holds_model_prompt_limit_and_schema():
    _, chat = judge(all_right, Mode.OFFLINE)
    (body,) = chat.asked
    assert body["model"] == "m"
    assert body["messages"] == read_preset(OWN).messages(TRACE.problem, TRACE.substeps)
    assert (body["temperature"], body["max_tokens"]) == (0.0, 4096)
    assert body["response_format"]["json_schema"]["schema"]["required"][-1] == "step_4"
    assert "seed" not in body
    assert "stop" not in body


def test_online_each_step_is_judged_when_it_is_whole():
    judgment, chat = judge(last_wrong, Mode.ONLINE)
    assert sorted(shown(body) for body in chat.asked) == [1, 3, 4]
    # The first part of the second step is judged beside its second.
    assert judgment.online is not None
    assert judgment.online.probs.tolist() == [NEG, POS, NEG, NEG]
    assert judgment.spent == Usage(3, 0, 900, 60)


def test_hindsight_asks_for_each_beginning_once():
    judgment, chat = judge(last_wrong, Mode.HINDSIGHT)
    assert sorted(shown(body) for body in chat.asked) == [1, 2, 3, 4]
    assert isinstance(judgment.result, Hindsight)
    assert [row.tolist() for row in judgment.result.rows] == [
        [NEG],
        [POS, NEG],
        [POS, POS, NEG],
        [POS, POS, POS, NEG],
    ]
    assert judgment.online is not None
    assert judgment.online.probs.tolist() == [NEG, POS, NEG, NEG]
    assert "**Step 1, before later steps: neg.**" in judgment.rationale
    assert "**Step 1: pos.**" in judgment.rationale


def test_samples_give_shares():
    def answer(body: Body) -> str:
        return "no idea" if body["seed"] == 4 else verdicts(["pos", "neu", "neg", "pos"][: shown(body)])

    def differing(body: Body) -> str:
        return verdicts(["pos", "pos", "neg", "neg"]) if body["seed"] == 0 and shown(body) == 4 else answer(body)

    judgment, chat = judge(differing, Mode.OFFLINE, ",samples=5")
    assert sorted(body["seed"] for body in chat.asked) == [0, 1, 2, 3, 4]
    assert {body["temperature"] for body in chat.asked} == {0.7}
    # Four can be read: the second step is neu in three of them, the last pos in three.
    assert judgment.offline is not None
    expected = [POS, [0, 0.75, 0.25], NEG, [0.25, 0, 0.75]]
    assert judgment.offline.probs.tolist() == expected
    assert judgment.spent == Usage(5, 1, 1500, 100)
    assert "**Step 2.1: neu 3 of 4.** since it is so 2" in judgment.rationale


def test_an_unreadable_answer_is_not_a_judgment():
    good = Trace.of("p", ["one", "two"], id="good")
    bad = Trace.of("p", ["bad", "two"], id="bad")

    def answer(body: Body) -> object:
        text = body["messages"][-1]["content"]
        return "All of it is correct." if "bad" in text else all_right(body)

    with chat_server(answer) as chat, asking(chat) as critic:
        assert [judgment.trace.id for judgment in judged(critic, [bad, good, bad])] == ["good"]
        assert critic.tally.silent == {"no JSON": (2, "bad")}
        # With the one by which the server was tried.
        assert critic.tally.spent == Usage(4, 2, 1200, 80)
        # Who expects a judgment of each trace is told.
        with refused():
            Scorer(critic).score_one(bad)


def test_one_beginning_that_cannot_be_read_leaves_no_triangle():
    def answer(body: Body) -> object:
        return "" if shown(body) == 3 else all_right(body)

    with chat_server(answer) as chat, asking(chat) as critic:
        assert judged(critic, [TRACE], Mode.HINDSIGHT) == []
        assert critic.tally.unread == 1


@pytest.mark.parametrize(
    "value",
    [
        {"choices": []},
        {"choices": [{"message": None}]},
        {"choices": ["text"]},
        {"choices": [{"finish_reason": "stop", "message": {"content": ["a", "list"]}}]},
        {"choices": {"0": 1}, "usage": "none"},
        {"object": "error"},
        completion(None),
        completion(verdicts(["pos"] * 4), ended="length"),
        completion(verdicts(["pos"] * 4), ended="content_filter"),
        [1, 2],
    ],
)
def test_answers_of_other_shapes_are_no_judgment(value):
    def answer(body: Body) -> object:
        return value if shown(body) > 1 else all_right(body)

    with chat_server(answer) as chat, asking(chat) as critic:
        assert judged(critic, [TRACE]) == []
        assert critic.tally.unread == 1


def test_tokens_that_are_not_counted_are_not_known():
    def answer(body: Body) -> object:
        return completion(all_right(body)) | {"usage": {"prompt_tokens": -1, "completion_tokens": True}}

    judgment, _ = judge(answer, Mode.OFFLINE)
    assert judgment.spent == Usage(1, 0, None, None)


@pytest.mark.parametrize(
    ("refused", "form"),
    [
        (lambda form: False, "json_schema"),
        # As llama-cpp-python refuses it, by 500.
        (lambda form: form is not None and form["type"] == "json_schema", "json_object"),
        (lambda form: form is not None, None),
    ],
)
def test_a_server_is_asked_for_a_schema_as_it_can(refused, form):
    def answer(body: Body) -> object:
        return Reply(500) if refused(body.get("response_format")) else all_right(body)

    _, chat = judge(answer, Mode.ONLINE)
    found = [body.get("response_format") for body in chat.asked]
    assert [one and one["type"] for one in found] == [form] * 3
    assert all((one.get("schema") or one["json_schema"]["schema"])["required"] for one in found if one)
    assert 1 <= len(chat.tried) <= 3
    # What tries the server says nothing of a trace, and asks for little.
    assert all(TRACE.problem not in str(body) and body["max_tokens"] == 64 for body in chat.tried)


def test_a_schema_can_be_left_out_or_insisted_on():
    _, chat = judge(all_right, Mode.OFFLINE, ",schema=no")
    assert "response_format" not in chat.asked[0]
    assert len(chat.tried) == 1

    def answer(body: Body) -> object:
        return Reply(400, b'{"error":{"message":"no response_format here"}}')

    with chat_server(answer) as chat, asking(chat, ",schema=yes") as critic, refused():
        judged(critic, [TRACE])


def test_a_newer_name_of_the_limit_is_learnt():
    def answer(body: Body) -> object:
        if "max_tokens" in body:
            said = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
            return Reply(400, json.dumps({"error": {"message": said}}).encode())
        return all_right(body)

    _, chat = judge(answer, Mode.OFFLINE)
    assert chat.asked[0]["max_completion_tokens"] == 4096
    assert chat.asked[0]["response_format"]["type"] == "json_schema"


def test_a_server_that_loads_its_model_is_waited_for():
    """As llama.cpp's says it."""
    loading = [Reply(503, b'{"error":{"message":"Loading model","type":"unavailable_error","code":503}}')] * 2

    def answer(body: Body) -> object:
        return loading.pop() if loading else all_right(body)

    _, chat = judge(answer, Mode.OFFLINE)
    assert [body["response_format"]["type"] for body in chat.tried] == ["json_schema"] * 3


def test_a_server_without_seeds_gets_none():
    def answer(body: Body) -> object:
        return Reply(422, b'{"detail": "extra input: seed"}') if "seed" in body else all_right(body)

    judgment, chat = judge(answer, Mode.OFFLINE, ",samples=3")
    assert [body.get("seed") for body in chat.asked] == [None] * 3
    assert chat.asked[0]["response_format"]["type"] == "json_schema"
    assert judgment.spent == Usage(3, 0, 900, 60)


@pytest.mark.parametrize(
    "refusal",
    [
        Reply(404, b'{"error":{"message":"The model `m` does not exist."}}'),
        Reply(401, b'{"error":{"message":"Invalid key"}}'),
        Reply(200, b"<html>hello</html>", "text/html"),
        Reply(200, b'{"data": [1, 2]}'),
        Reply(200, b"[]"),
    ],
)
def test_a_server_of_another_kind_is_refused_before_any_trace_is_sent(refusal):
    with chat_server(lambda body: refusal) as chat, asking(chat) as critic:
        with refused():
            judged(critic, [TRACE])
        assert chat.asked == []


def test_a_server_that_fails_now_and_then_is_asked_again():
    count = 0

    def answer(body: Body) -> object:
        nonlocal count
        count += 1
        return Reply(500) if count % 3 == 0 else all_right(body)

    traces = [Trace.of("p", ["one", "two"], id=str(number)) for number in range(12)]
    with chat_server(answer) as chat, asking(chat) as critic:
        found = judged(critic, traces)
    assert [judgment.trace.id for judgment in found] == [trace.id for trace in traces]
    assert all(np.array_equal(judgment.result.probs, [POS, POS]) for judgment in found)  # type: ignore[union-attr]


def test_half_an_answer_ends_the_run_after_the_earlier_judgments():
    def answer(body: Body) -> object:
        is_half = "\nhalf\n" in body["messages"][-1]["content"]
        return Reply(200, b'{"choices": [{"mess') if is_half else all_right(body)

    traces = [Trace.of("p", ["one"], id="whole"), Trace.of("half", ["one"], id="half")]
    with chat_server(answer) as chat, asking(chat, attempts=1) as critic:
        judgments = Scorer(critic).score(traces, Mode.OFFLINE, lambda *_: None)
        assert next(judgments).trace.id == "whole"
        with refused():
            next(judgments)


def test_a_trace_that_the_server_refuses_is_left_out():
    long = Trace.of("long", ["one", "two"], id="long")
    fine = Trace.of("p", ["one", "two"], id="fine")

    def answer(body: Body) -> object:
        said = b'{"error":{"message":"the request exceeds the available context size (4096)"}}'
        return Reply(400, said) if "\nlong\n" in body["messages"][-1]["content"] else all_right(body)

    with chat_server(answer) as chat, asking(chat) as critic:
        assert [judgment.trace.id for judgment in judged(critic, [long, fine])] == ["fine"]
        ((reason, counted),) = critic.tally.silent.items()
    assert reason.startswith("the server refused it: ")
    assert reason.endswith("the request exceeds the available context size (4096)")
    assert counted == (1, "long")


def test_a_key_is_sent_and_appears_in_no_message(monkeypatch):
    monkeypatch.setenv("STEPSIGHT_API_KEY", "sk-secret")

    def answer(body: Body) -> object:
        return Reply(401, b'{"error":{"message":"Incorrect API key provided: sk-secret"}}')

    with chat_server(answer) as chat, asking(chat) as critic:
        with refused() as error:
            judged(critic, [TRACE])
        assert chat.headers[0]["authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in f"{error.value} {critic.name} {critic.fingerprint}"


def test_an_answer_in_parts_of_content_is_read():
    def answer(body: Body) -> object:
        parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": all_right(body)}]
        return completion("", content=parts)

    judgment, _ = judge(answer, Mode.OFFLINE)
    assert judgment.offline is not None
    assert set(judgment.offline.validity.tolist()) == {1}


def test_thinkprm_over_the_wire():
    def answer(body: Body) -> object:
        # The server leaves out the stop "</think>".
        return completion(r"<think>Step 1: \boxed{correct} Step 2: \boxed{correct} \boxed{incorrect}")

    judgment, chat = judge(answer, Mode.OFFLINE, model="launch/ThinkPRM-1.5B")
    assert judgment.offline is not None
    assert judgment.offline.validity.tolist() == [1, 1, 0, 0]
    (body,) = chat.asked
    assert body["stop"] == ["Step 5:", "Is the solution correct?", "</think>"]
    assert "response_format" not in body
    assert body["temperature"] == 0.4


@each(
    "options",
    [
        ",samples=0",
        f",samples={10**309}",
        ",temperature=3",
        ",temperature=nan",
        ",samples=3,temperature=0",
        ",preset=gpt",
        ",timeout=0",
        ",requests=1e3",
        ",schema=maybe",
        ",sample=2",
    ],
)
def test_options_that_make_no_sense_are_refused(options):
    with refused():
        read_settings(parse_address(f"critic:http://localhost:1/v1#m{options}"))


def test_the_fingerprint_is_of_all_that_makes_a_judgment():
    base = "critic:http://localhost:1/v1#m"
    same = (
        base,
        f"{base},preset=steps",
        f"{base},samples=1",
        f"{base},schema=no,timeout=9,requests=2",
        f"{base},temperature=0",
    )
    assert len({critic_of(spec).fingerprint for spec in same}) == 1
    others = (
        base,
        "critic:http://localhost:2/v1#m",
        f"{base}2",
        f"{base},preset=thinkprm",
        f"{base},samples=2",
        f"{base},temperature=0.5",
        f"{base},max_tokens=100",
    )
    assert len({critic_of(spec).fingerprint for spec in others}) == len(others)


def test_a_critic_describes_itself():
    ours = critic_of("critic:http://localhost:1/v1#m,samples=3,preset=steps")
    assert (ours.name, ours.outputs) == ("critic:http://localhost:1/v1#m,samples=3", Outputs.THREE_WAY)
    assert ours.attention == "bidirectional"
    assert "3 samples at temperature 0.7" in ours.described
    theirs = critic_of("critic:http://localhost:1/v1#launch/ThinkPRM-7B")
    assert (theirs.outputs, theirs.attention) == (Outputs.VALIDITY, "bidirectional")


def test_an_estimate_counts_calls_and_guesses_tokens():
    critic = critic_of("critic:http://localhost:1/v1#m,samples=2")
    offline, online, whole = (critic.estimate(TRACE, mode) + critic.estimate(TRACE, mode) for mode in Mode)
    assert [one.traces for one in (offline, online, whole)] == [2, 2, 2]
    # 2 traces of 3 steps and 4 sub-steps, 2 samples each.
    assert [one.calls for one in (offline, online, whole)] == [4, 12, 16]
    prompt = sum(len(message["content"]) for message in read_preset(OWN).messages(TRACE.problem, TRACE.substeps))
    assert offline.tokens == 4 * (prompt // 3 + 4 * 60)
