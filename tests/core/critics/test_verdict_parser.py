"""Strict reading of what critics write."""

import json
import random

import pytest

from stepsight.core.critics.verdict_parser import (
    LONGEST,
    READINGS,
    Answer,
    UnreadableError,
    read_answer,
    schema,
)
from stepsight.core.trace import Label
from tests.cases import each
from tests.chat_server import verdicts
from tests.messages import refused

NEG, NEU, POS = Label.NEG, Label.NEU, Label.POS


def read(text, count=2, reading="verdicts", **more):
    return read_answer(reading, Answer(text, **more), count)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        verdicts(["pos", "neg"]),
        f"```json\n{verdicts(['pos', 'neg'])}\n```",
        f"Here is what I found:\n\n{verdicts(['pos', 'neg'])}\n\nLet me know if there is more.",
        f"<think>Step 1 looks {{odd}}.</think>{verdicts(['pos', 'neg'])}",
        f"The set $\\{{1, 2\\}}$ and \\boxed{{5}} are fine.\n\n{verdicts(['pos', 'neg'])}\n\nSo \\boxed{{5}}.",
        f"```python\nprint(2 + 3)\n```\nSo:\n```json\n{verdicts(['pos', 'neg'])}\n```",
        f"analysisIt is {{a}}.assistantfinal{verdicts(['pos', 'neg'])}",
        verdicts([" POS ", "Neg"]),
        verdicts(["pos", "neg"]).replace('"verdict"', '"sure": 0.5, "verdict"'),
    ],
)
def test_verdicts_are_read_wherever_the_one_object_stands(text):
    assert read(text).labels == (POS, NEG)
    assert read(text).rationales == ("since it is so 1", "since it is so 2")


@each(
    "text",
    [
        "",
        "Both steps are correct.",
        verdicts(["pos", "neg"])[:60],
        "} and {",
        "[" * 200 + "{}" + "]" * 200,
        '{"a":' * 200 + "1" + "}" * 200,
        verdicts(["pos"]),
        verdicts(["pos", "neg", "neg"]),
        verdicts(["pos", "right"]),
        '{"step_1": {"verdict": 2}, "step_2": {"verdict": 1}}',
        '{"step_2": {"verdict": "neg"}, "step_1": {"verdict": "pos"}}',
        '{"step_1": {"verdict": "neg"}, "step_3": {"verdict": "pos"}}',
        '{"step_1": "neg", "step_2": "pos"}',
        '{"step_1": {"verdict": "neg", "rationale": 1}, "step_2": {"verdict": "pos"}}',
        '{"step_1": {"rationale": "right"}, "step_2": {"verdict": "pos"}}',
        '{"verdicts": ["pos", "neg"]}',
        "[1, 2]",
        f"{verdicts(['pos', 'neg'])}\n{verdicts(['pos', 'pos'])}",
        f"```\n{verdicts(['pos', 'neg'])}\n```\n```\n{verdicts(['pos', 'pos'])}\n```",
        '{"step_1": {"verdict": "neg"}, "step_1": {"verdict": "pos"}, "step_2": {"verdict": "pos"}}',
    ],
)
def test_an_answer_that_leaves_a_verdict_open_is_unreadable(text):
    with refused(UnreadableError):
        read(text)


def test_an_answer_that_was_cut_is_refused_even_if_it_looks_complete():
    with refused(UnreadableError):
        read(verdicts(["pos", "neg"]), is_cut=True)


def test_an_answer_without_end_costs_no_time():
    for text in ("`" * 900_000, "\\boxed{" * 140_000, "\\boxed{" + " " * 900_000, "{" * 900_000, "x" * 2_000_000):
        for reading in READINGS:
            with pytest.raises(UnreadableError):
                read(text, 2, reading)


def test_tex_in_a_rationale_keeps_its_backslashes():
    text = r'{"step_1": {"rationale": "\frac{1}{2} \cdot \(2\) is \boxed{1}", "verdict": "pos"}}'
    assert read(text, 1).rationales == (r"\frac{1}{2} \cdot \(2\) is \boxed{1}",)


@pytest.mark.parametrize(
    "rationale",
    [
        r"\frac{1}{2} \times 2 \neq 3",
        r"\text{so} \left( \beta \right) 5\%",
        r"$a \ne b$, $\nu = 1$, $x \to 0$ \u .",
        r"\not= \notin \nabla \rho \theta \underline{x}",
        r"$\{1\}$ and \cdot",
        r"\rtimes \bigcup_i \fbox{5} \rvert x \tbinom{n}{2} \nearrow",
    ],
)
def test_tex_whose_backslashes_are_not_doubled_stays_tex(rationale):
    assert read(f'{{"step_1": {{"rationale": "{rationale}", "verdict": "pos"}}}}', 1).rationales == (rationale,)


def test_line_breaks_and_doubled_backslashes_stay_what_they_are():
    for escaped, rationale in (
        (r"one\nu = 3\n\ttwo", "one\nu = 3\n\ttwo"),
        (r"one\nnext\\times \\cdot \(", "one\nnext\\times \\cdot \\("),
        ("one\ntwo", "one\ntwo"),
    ):
        text = f'{{"step_1": {{"rationale": "{escaped}", "verdict": "pos"}}}}'
        assert read(text, 1).rationales == (rationale,)


def test_verdicts_in_the_thinking_are_read_if_there_is_no_other_text():
    assert read_answer("verdicts", Answer("", verdicts(["pos", "neg"])), 2).labels == (POS, NEG)
    with refused(UnreadableError):
        read_answer("verdicts", Answer("So it is.", verdicts(["pos", "neg"])), 2)


def test_a_rationale_is_a_text_that_can_be_stored():
    text = json.dumps({"step_1": {"rationale": "a\0b\ud800c" + "d" * 9000, "verdict": "neu"}})
    (rationale,) = read(text, 1).rationales
    assert rationale.startswith("a b?c")
    assert len(rationale) == LONGEST


def test_the_schema_accepts_exactly_what_is_read():
    wanted = schema(3)
    assert wanted["required"] == list(wanted["properties"]) == ["step_1", "step_2", "step_3"]
    assert wanted["properties"]["step_3"]["properties"]["verdict"]["enum"] == ["neg", "neu", "pos"]


@pytest.mark.parametrize("reading", list(READINGS))
def test_damaged_answers_give_a_verdict_on_each_step_or_none(reading):
    texts = {
        "verdicts": verdicts(["pos", "neg", "neu"]),
        "boxes": r"Step 1: \boxed{correct} Step 2: \boxed{incorrect} Step 3: \boxed{correct}",
    }
    draw = random.Random(0)
    outcomes = {True: 0, False: 0}
    for _ in range(500):
        text = list(texts[reading])
        for _ in range(draw.randint(0, 3)):
            place = draw.randrange(len(text))
            text[place : place + draw.randint(0, 9)] = draw.choice(["", "{", "}", '"', "\\", "null", "\ud800", ","])
        try:
            found = read("".join(text), 3, reading)
        except UnreadableError:
            outcomes[False] += 1
            continue
        outcomes[True] += 1
        assert len(found.labels) == len(found.rationales) == 3
        assert all(text.encode() is not None and "\0" not in text for text in found.rationales)
    assert min(outcomes.values()) > 50


BOXES = r"Step 1: adds up, so \boxed{correct}. Step 2: no, 2 + 2 = 4. The step is \boxed{\text{incorrect}}."


@pytest.mark.parametrize("answer", [Answer(BOXES), Answer(f"<think>{BOXES}</think>All read."), Answer("", BOXES)])
def test_boxes_are_read_in_the_thinking_or_behind_it(answer):
    found = read_answer("boxes", answer, 2)
    assert found.labels == (POS, NEG)
    assert found.rationales[0] == r"Step 1: adds up, so \boxed{correct}"
    assert found.rationales[1].endswith(r"\boxed{\text{incorrect}}")


def test_boxes_that_end_at_the_first_error_make_later_steps_wrong():
    assert read(BOXES, 4, "boxes").labels == (POS, NEG, NEG, NEG)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (BOXES, 1),
        (r"\boxed{incorrect} \boxed{correct}", 3),
        (r"\boxed{incorrect} \boxed{incorrect}", 3),
        (r"\boxed{correct}", 2),
        (r"The answer is \boxed{12}.", 1),
    ],
)
def test_other_numbers_of_boxes_are_no_judgment(text, count):
    with refused(UnreadableError):
        read(text, count, "boxes")
