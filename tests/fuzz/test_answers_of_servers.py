"""What servers are asked and answer, in the forms in which clients and models write it.

A reward server has a row for each step token. A critic's verdicts and its rationales are read as they are meant,
wherever they stand, or there are no judgments.
"""

import json
from typing import Any

import numpy as np
import pytest

from stepsight.core.judgment import Mode
from stepsight.core.trace import Trace
from stepsight.storage.database.store import open_store
from tests.app.client import asking
from tests.chat_server import chat_server, completion
from tests.core.critics.test_critic import asking as asking_critic
from tests.fuzz.attack import COUNT
from tests.seeds import chance

# Each goes over a socket or through an evaluator.
EACH = max(20, COUNT // 3)
PROBLEM = "What is 2 + 3?"
STEPS = ("2 + 3 = 5.", "So 5.", "$x$ is\n\n5.", "Step 2: 6", "é − 1", "1. a\n2. b", "три точки", "<b>5</b>")
BLANKS = ("", " ", "\n\n", "\u200b", "\n\ufeff ")
TEMPLATES = (
    "<|im_start|>system\nReason.<|im_end|>\n<|im_start|>user\n{p}<|im_end|>\n<|im_start|>assistant\n{s}<|im_end|>\n",
    "<|im_start|>user\n{p}<|im_end|>\n<|im_start|>assistant\n{s}",
    "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n{p}<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\n{s}<|eot_id|>",
    "<bos><start_of_turn>user\n{p}<end_of_turn>\n<start_of_turn>model\n{s}<end_of_turn>\n",
    "<s>[INST] {p} [/INST] {s}</s>",
    "Question:\n{p}\nAnswer:\nLet's think step by step.\n{s}",
)


@pytest.fixture(scope="module")
def client(tmp_path_factory, evaluators):
    folder = tmp_path_factory.mktemp("fuzz")
    with open_store(str(folder / "store.db")) as store, asking(store, evaluators) as client:
        yield client


def solution(rng):
    """A solution with step tokens, its steps, and the step that each token is read for."""
    token = rng.choice(["<extra_0>", " <extra_0>\n", " ки\n", "\nки "])
    parts, steps, rows = [], [rng.choice(STEPS)], [0]
    parts.append(steps[0])
    for _ in range(rng.randint(0, 4)):
        if rng.random() < 0.3:
            parts.append(rng.choice(BLANKS))
        else:
            steps.append(rng.choice(STEPS))
            parts.append(steps[-1])
        rows.append(len(steps) - 1)
    text = token.join([*parts, ""])
    if rng.random() < 0.3:
        # In view, and not read.
        steps.append(rng.choice(STEPS))
        text += steps[-1]
    return text, steps, rows


def test_pooling_has_a_row_for_each_step_token(client, evaluators):
    for number in range(EACH):
        rng = chance(f"pooling:{number}")
        text, steps, rows = solution(rng)
        mode = rng.choice(list(Mode)[:2])
        if rng.random() < 0.5:
            parts = [{"type": "text", "text": text[:9]}, {"type": "text", "text": text[9:]}]
            chat = [
                {"role": "user", "content": PROBLEM},
                {"role": "assistant", "content": rng.choice([text, parts])},
            ]
            asked: dict[str, Any] = {"messages": chat}
        else:
            whole = rng.choice(TEMPLATES).replace("{p}", PROBLEM).replace("{s}", text)
            asked = {"input": rng.choice([whole, [whole]])}
        answer = client.post("/pooling", json={"model": "tiny", "mode": mode, "task": "token_classify"} | asked)
        assert answer.status_code == 200, (number, asked, answer.text)
        judgment = evaluators.scorer("tiny").score_one(Trace.of(PROBLEM, steps), mode)
        scores = judgment.online if mode == Mode.ONLINE else judgment.offline
        assert scores is not None
        (found,) = answer.json()["data"]
        expected = [[1 - validity, validity] for validity in scores.validity[rows]]
        np.testing.assert_allclose(found["data"], expected, atol=3e-5, err_msg=f"{number} {text!r}")


def test_each_text_of_a_reward_batch_has_its_own_reward(client, evaluators):
    for number in range(EACH):
        rng = chance(f"rewards:{number}")
        query, bad, expected = [], [], []
        for place in range(rng.randint(1, 5)):
            if place and rng.random() < 0.4:
                # Empty, of nothing visible, a list with something other than steps, or too long for the evaluator.
                query.append(PROBLEM + rng.choice(["", " \n", "\u200b", '["a", 5]', " 6." * 20_000]))
                bad.append(str(place))
                expected.append(0.0)
                continue
            text, steps, _ = solution(rng)
            query.append(f"{PROBLEM}{rng.choice(['', ' ', chr(10)])}{text}")
            judgment = evaluators.scorer("tiny").score_one(Trace.of(PROBLEM, steps), Mode.OFFLINE)
            assert judgment.offline is not None
            expected.append(float(judgment.offline.validity.min()))
        answer = client.post(
            "/get_reward", json={"query": query, "prompts": [PROBLEM] * len(query), "model": "tiny"}
        )
        assert answer.status_code == 200, (number, query, answer.text)
        np.testing.assert_allclose(answer.json()["rewards"], expected, atol=3e-5, err_msg=f"{number} {query}")
        assert sorted(answer.json().get("errors", {})) == bad, (number, query)


# Commands whose first letters JSON reads as an escape of its own, and others.
TEX = (
    r"\times 2", r"\neq 3", r"\frac{1}{2}", r"\text{so}", r"\textbf{a}", r"\theta", r"\tau", r"\tan x", r"\to 0",
    r"\tfrac12", r"\tbinom{n}{2}", r"\triangle ABC", r"\therefore a", r"\tilde{x}", r"\top", r"\tag{1}", r"\beta",
    r"\binom{4}{2}", r"\boxed{5}", r"\bar{x}", r"\begin{cases}", r"\bmod 7", r"\bigl(", r"\because a", r"\bullet",
    r"\bigcup_i", r"\backslash", r"\bf x", r"\blacksquare", r"\right)", r"\rangle", r"\rho", r"\rfloor", r"\rceil",
    r"\rightarrow", r"\rvert", r"\rtimes", r"\rm cm", r"\rbrace", r"\nabla f", r"\neg p", r"\notin S", r"\not= 2",
    r"\nmid 7", r"\nleq 2", r"\nexists x", r"\nRightarrow", r"\nearrow", r"\nsubseteq B", r"\nonumber",
    r"\forall x", r"\flat", r"\frown", r"\fbox{5}", r"\underline{x}", r"\uparrow", r"\upsilon", r"\uplus",
    r"\underset{x}{y}", r"\unlhd", r"\cdot 2", r"\left(", r"\sqrt{2}", r"\pi", r"\{1, 2\}", r"\(x\)", r"\[x\]",
    r"5\%", r"\$5", r"\le 2", r"\alpha", r"\Delta", r"\ldots", r"\mathbb{R}", r"\quad a", r"\,", r"\;",
)  # fmt: skip
WORDS = (
    "Adding gives 5",
    "since {a} is 1",
    'he "says" so',
    "é − ½ 😀",
    "a/b",
    "see step_1: it",
    "[1, 2]",
    "so `x` is",
)
LABELS = {"neg": [1, 0, 0], "neu": [0, 1, 0], "pos": [0, 0, 1]}
SHOWN = Trace.of("What is 1 + 1 + 2?", ["1 + 1 = 2", "2 + 2 = 4", "so 4"], id="t")
BEFORE = (
    "", "", "Here it is:\n\n", "The set $\\{1, 2\\}$ and \\boxed{5} are {fine}.\n\n", "```json\n", "\ufeff",
    "```python\nprint({2: 3})\n```\nSo:\n```json\n", "<think>Maybe {x} is {\"a\": 1}.</think>\n", "Hm {a}.</think>",
    "analysisLooks fine {a}.assistantfinal", "<|channel|>final<|message|>", "I checked `{2 + 3}`. {}\n",
)  # fmt: skip
BEHIND = ("", "", "\n```", "\n\nAll of it is fine, e.g. \\boxed{5} and {x}.", "<|return|>", "\n}")


def rationale(rng):
    parts = [rng.choice(WORDS)]
    for _ in range(rng.randint(0, 3)):
        tex = rng.choice(TEX)
        parts.append(rng.choice([f" {tex}", f" ${tex}$", f", {tex},", f"\n{rng.choice(WORDS)}"]))
    return "".join(parts) + "."


def as_json(value, rng):
    """The verdicts as a model writes them: backslashes doubled or not, line breaks escaped or not."""
    if rng.random() < 0.5:
        return json.dumps(value, indent=rng.choice([None, 1]), ensure_ascii=rng.random() < 0.5)
    line = rng.choice(["\n", "\\n"])

    def text(one: str) -> str:
        quoted = one.replace('"', '\\"').replace("\n", line)
        return f'"{quoted}"'

    steps = (
        f"{text(name)}: {{{', '.join(f'{text(key)}: {text(part)}' for key, part in step.items())}}}"
        for name, step in value.items()
    )
    return f"{{{', '.join(steps)}}}"


def reply(text, rng):
    """The answer of a server around the text of a model."""
    ended = rng.choice(["stop", "stop", "eos", "STOP", None])
    way = rng.randrange(5)
    if way == 0:
        return completion(rng.choice([None, ""]), ended, **{rng.choice(["reasoning_content", "reasoning"]): text})
    if way == 1:
        return completion(text, ended, reasoning_content="I think {x}.")
    if way == 2:
        cut = rng.randrange(len(text))
        parts = [{"type": "text", "text": text[:cut]}, {"type": "text", "text": text[cut:]}]
        return completion(parts, ended)
    return completion(text, ended)


def spoilt(text, value, rng):
    """The text with a fault after which a verdict is open, and how the answer ended."""
    way = rng.randrange(6)
    if way == 0:
        return text, "length"
    if way == 1:
        return text[: rng.randrange(len(text) // 2)], "stop"
    if way == 2:
        other = {
            name: step | {"verdict": "neu" if step["verdict"] == "neg" else "neg"} for name, step in value.items()
        }
        return f"{json.dumps(value)}\nOr rather:\n{json.dumps(other)}", "stop"
    names = list(value)
    if way == 3:
        return json.dumps({name: value[name] for name in names[:-1]}), "stop"
    if way == 4:
        return json.dumps({name: value[name] for name in reversed(names)}), "stop"
    value[names[-1]]["verdict"] = rng.choice(["", "maybe", "neg or pos", "0"])
    return json.dumps(value), "stop"


def test_verdicts_of_critics():
    answer: dict[str, Any] = {}
    unread = 0
    with chat_server(lambda body: answer) as chat, asking_critic(chat) as critic:
        for number in range(EACH):
            rng = chance(f"critics:{number}")
            labels = [rng.choice(list(LABELS)) for _ in SHOWN.steps]
            reasons = [rationale(rng) for _ in labels]
            spelled = [rng.choice([label, label, label.upper(), f" {label} "]) for label in labels]
            pairs = zip(reasons, spelled, strict=True)
            value = {
                f"step_{place}": {"rationale": reason, "verdict": label}
                for place, (reason, label) in enumerate(pairs, start=1)
            }
            text = as_json(value, rng)
            is_spoilt = rng.random() < 0.25
            if is_spoilt:
                text, ended = spoilt(text, value, rng)
                answer = completion(text, ended)
            else:
                answer = reply(rng.choice(BEFORE) + text + rng.choice(BEHIND), rng)
            (judgment,) = (judged[1] for judged in critic.client.judge([SHOWN], Mode.OFFLINE) if judged)
            unread += judgment is None
            assert (judgment is None) == is_spoilt, (number, answer, critic.tally.last)
            if judgment is not None:
                assert judgment.offline is not None
                assert judgment.offline.probs.tolist() == [LABELS[label] for label in labels], (number, text)
                for place, (label, reason) in enumerate(zip(labels, reasons, strict=True), start=1):
                    assert f"**Step {place}: {label}.** {reason}" in judgment.rationale, (
                        number,
                        text,
                        judgment.rationale,
                    )
    assert 0 < unread < EACH
