import base64
import json
import random
import re
import zlib

import pytest

from stepsight.app.score.form import PageState, ScoreForm, as_steps, steps_of, steps_text
from stepsight.core.errors import UserError
from stepsight.core.scores import Thresholds
from stepsight.core.text.split import split_steps
from stepsight.core.trace import Trace
from stepsight.training.evaluate.gallery import read_gallery

NAMES = ("mini-bidir", "ReasonEval-7B")
FORM = ScoreForm("What is $1 + 1$?", "It is a sum.\nSo 3 — “∑” 三 🙂.", NAMES, 0.25, 0.75)
# Made by the version before this one: problem, solution, one evaluator and the thresholds.
VERSION_1 = '["What is $1 + 1$?", "It is a sum.", "mini-bidir", 0.25, 0.75]'


def token_of(text):
    """A token that holds any text."""
    return base64.urlsafe_b64encode(zlib.compress(text.encode())).decode().rstrip("=")


def opened(token):
    try:
        return ScoreForm.from_token(token)
    except UserError:
        return None


def test_a_form_comes_back_from_its_token():
    assert ScoreForm.from_token(FORM.token()) == FORM
    assert ScoreForm.from_token(ScoreForm().token()) == ScoreForm()
    corrected = ScoreForm("q", (("One.",), ("Two.", "Three.")), NAMES)
    assert ScoreForm.from_token(corrected.token()) == corrected


def test_a_token_of_version_1_still_opens():
    assert ScoreForm.from_token(token_of(VERSION_1)) == ScoreForm(
        "What is $1 + 1$?", "It is a sum.", ("mini-bidir",), 0.25, 0.75
    )


def test_a_token_of_version_2_still_opens():
    text = '[2, "What is $1 + 1$?", "It is a sum.", ["mini-bidir"], 0.25, 0.75]'
    form = ScoreForm("What is $1 + 1$?", "It is a sum.", ("mini-bidir",), 0.25, 0.75)
    assert ScoreForm.from_token(token_of(text)) == form


OLD_TEXTS = {
    "Add 2 and 3. It is 5.": ["Add 2 and 3. It is 5."],
    "Sure!\n\n- Add.\n- Double.": ["Sure!", "- Add.\n- Double."],
    "1. Add.\n2. Double.\n\nThe answer is 10.": ["Add.", "Double.\n\nThe answer is 10."],
    "**Step 1: Read**\nTwo.\n**Step 2: Solve**\nFour.": ["Read**\nTwo.", "Solve**\nFour."],
    "1. Add.\n2. Double.": ["Add.", "Double."],
}


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(("text", "steps"), OLD_TEXTS.items())
def test_a_link_of_an_earlier_version_gives_the_steps_that_it_gave(version, text, steps):
    names = ["e"] if version > 1 else "e"
    values = [*([version] if version > 1 else []), "q", text, names, 0.5, 0.15]
    form = ScoreForm.from_token(token_of(json.dumps(values)))
    assert list(form.trace().substeps) == steps
    # And so does the link of today that the page makes of it, and the text in its box.
    assert ScoreForm.from_token(form.token()) == form
    assert ScoreForm("q", form.text).trace().substeps == form.trace().substeps


def test_a_link_of_an_earlier_version_keeps_a_list_that_is_none():
    form = ScoreForm.from_token(token_of('[3, "q", "[1, 2]", ["e"], 0.5, 0.15]'))
    with pytest.raises(UserError, match="step 1 of the JSON list"):
        form.trace()


def test_a_token_of_a_version_to_come_says_so():
    with pytest.raises(UserError, match=r"of another version of StepSight\. Paste the solution"):
        ScoreForm.from_token(token_of('[5, {"problem": "p"}]'))


def test_a_token_needs_no_escaping_in_an_address():
    for length in range(20):
        token = ScoreForm("?" * length, "ÿ" * length).token()
        assert re.fullmatch(r"[A-Za-z0-9_-]+", token)


def test_text_that_repeats_takes_little_room_and_text_that_does_not_gets_no_link():
    assert len(ScoreForm("q", "The same step again. " * 1000).token()) < 1000
    draw = random.Random(0)
    noise = "".join(chr(draw.randrange(0x4E00, 0x9FFF)) for _ in range(8000))
    assert ScoreForm("q", noise).token() is None


def test_a_token_cut_or_changed_anywhere_is_refused_or_harmless():
    token = FORM.token()
    cuts = [opened(token[:length]) for length in range(len(token))]
    # The last bytes are only a check sum: what comes back without them is still whole.
    assert set(cuts[:-8]) == {None}
    assert set(cuts[-8:]) <= {None, FORM}
    draw = random.Random(0)
    for _ in range(500):
        place = draw.randrange(len(token))
        changed = token[:place] + draw.choice("abcXYZ019-_") + token[place + 1 :]
        assert opened(changed) in (None, FORM)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        '"text"',
        "5",
        "[2]",
        '["p", "s", "e", 0.5]',
        '[2, "p", "s", "e", 0.5]',
        '[2, "p", "s", 7, 0.5, 0.1]',
        '[2, "p", "s", ["\\ud800"], 0.5, 0.1]',
        '[3, "p", [["\\ud800"]], [], 0.5, 0.1]',
        '[3, "p", [7], [], 0.5, 0.1]',
        '["p", "s", "e", 0.5, 0.1, 1]',
        '["p", "s", "e", "half", 0.1]',
        '["p", "s", "e", null, 0.1]',
        '["\\ud800", "s", "e", 0.5, 0.1]',
        '["p", "s", "\\udfff", 0.5, 0.1]',
        f'["p", "s", "e", {"1" * 400}, 0.1]',
        f'["p", "s", "e", {"1" * 5000}, 0.1]',
        "[" * 5000,
    ],
    ids=lambda text: text[:30] or "empty",
)
def test_a_token_that_holds_something_else_is_refused(text):
    with pytest.raises(UserError, match="This link was cut or changed"):
        ScoreForm.from_token(token_of(text))


@pytest.mark.parametrize("token", ["", "A", "!!!", "é", "AAAA", "=" * 9, FORM.token().replace("e", "/", 1) + "\n"])
def test_what_is_no_token_is_refused(token):
    with pytest.raises(UserError, match="This link was cut or changed"):
        ScoreForm.from_token(token)


@pytest.mark.parametrize("value", [-0.01, 1.01, float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("key", ["validity", "redundancy"])
def test_a_threshold_outside_0_to_1_is_refused(key, value):
    values = {"validity": 0.5, "redundancy": 0.15} | {key: value}
    with pytest.raises(UserError, match="a threshold outside 0 to 1"):
        ScoreForm.from_token(token_of(json.dumps(["p", "s", "e", *values.values()])))


def test_a_small_token_does_not_unpack_into_a_large_text():
    bomb = token_of(json.dumps(["p", "x" * 50_000_000, "e", 0.5, 0.1]))
    assert len(bomb) < 100_000
    with pytest.raises(UserError, match="This link was cut or changed"):
        ScoreForm.from_token(bomb)


def test_a_form_is_the_trace_that_its_text_is_split_into():
    trace = ScoreForm("  q \n", "Let x be 1.\n\nSo 2.\n").trace()
    assert (trace.problem, trace.substeps) == ("q", ("Let x be 1.", "So 2."))


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (ScoreForm("", "a"), "The problem is empty. Enter the problem, then score again."),
        (ScoreForm(" \n", "a"), "The problem is empty."),
        (ScoreForm("q", ""), "There are no steps. Paste a solution, then score again."),
        (ScoreForm("q", "[]"), "there are no steps."),
        (ScoreForm("q", '["a", ""]'), "step 2 of the JSON list is empty."),
        (ScoreForm("q", "a\x00b"), "step 1 holds a NUL byte."),
        (ScoreForm("q", "7" * 100_000), "The text is longer than 100,000 characters."),
        (ScoreForm("q", "\n".join("ab" * 201)), "has 402 steps; this page scores at most 200."),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_what_is_no_trace_is_refused(form, message):
    with pytest.raises(UserError) as caught:
        form.trace()
    assert message in str(caught.value)


def test_a_trace_becomes_a_form_that_gives_it_back():
    trace = Trace.of("q", ["One.", ["Two.", "Three."]])
    form = ScoreForm.of(trace, ["mini-bidir"], Thresholds(0.4, 0.2))
    assert (form.evaluators, form.thresholds) == (("mini-bidir",), Thresholds(0.4, 0.2))
    assert form.trace() == trace


@pytest.mark.parametrize(
    "steps",
    [
        ["One.", "Two."],
        ["1. A number of its own.", "2) Another."],
        ["One\nline break.", "Two."],
        ["One.", ["Two.", "Three."]],
        ["Step 1: a heading", "x"],
        ['A "quote"', "[1, 2]"],
        ["Only one."],
        ["  white space  ", "x"],
        ["open \\[ a", "and closed b \\]"],
        ["Add 2 and 3. It is 5."],
        ["Sure!", "It is 5."],
        ["<think>a</think>", "b"],
        ["- a", "- b"],
        ["Add.", "So it is 5.\n\n# Answer\n\n5"],
        ["**Part A**", "1. a"],
        ["Step 1: a Step 2: b"],
        ["a\n    b", "```\n  c\n```", "---"],
        ["$$a$$", "\\[ b \\]", "\\begin{align}c\\end{align}"],
    ],
)
def test_steps_become_text_that_is_split_into_the_same_steps(steps):
    trace = Trace.of("q", steps)
    assert Trace.of("q", split_steps(steps_text(steps_of(trace)))).steps == trace.steps
    assert as_steps(split_steps(ScoreForm.of(trace).text)) == steps_of(trace)


def test_plain_steps_become_a_numbered_list():
    assert steps_text((("One.",), ("Two.",))) == "1. One.\n2. Two."


def test_what_is_no_numbered_list_becomes_paragraphs():
    assert steps_text((("Only one.",),)) == "Only one."


def test_every_trace_of_the_gallery_survives_the_text_box():
    for trace in read_gallery():
        assert ScoreForm(trace.problem, ScoreForm.of(trace).text).trace().substeps == trace.substeps, trace.id


TEXT = "1. a\n2. b"


def test_a_state_without_more_is_the_text_as_it_is_split():
    state = PageState.read({"problem": "q", "solution": TEXT, "evaluators": ["tiny"]})
    assert state.form == ScoreForm("q", TEXT, ("tiny",))
    assert state.form.trace().substeps == ("a", "b")


def test_a_state_is_read():
    state = {
        "problem": "q",
        "solution": "",
        "steps": [["a", "b"]],
        "evaluators": ["tiny"],
        "validity": 0.4,
        "redundancy": 1,
        "before": "t",
        "kept": True,
        "earlier": "e",
        "token": "u",
        "dataset": "mine",
    }
    assert PageState.read(state).model_dump() == state | {"steps": (("a", "b"),), "evaluators": ("tiny",)}


@pytest.mark.parametrize(
    "state",
    ["{", [], 7, None, {"steps": 7}, {"steps": [7]}, {"validity": 1.5}, {"evaluators": "x"}, {"problem": 1}],
)
def test_what_is_no_state_is_refused(state):
    with pytest.raises(UserError, match="Reload the page"):
        PageState.read(state)


def test_edited_steps_stand_for_the_text_and_are_written_as_one():
    state = PageState(problem="q", solution=TEXT, steps=(("b",), ("c",)))
    assert (state.text, state.form.trace().substeps) == ("1. b\n2. c", ("b", "c"))
    nested = PageState(problem="q", solution=TEXT, steps=(("b",), ("c", "d")))
    assert [step.substeps for step in nested.form.trace().steps] == [("b",), ("c", "d")]
    with pytest.raises(UserError, match="no steps"):
        PageState(problem="q", solution=TEXT, steps=()).form.trace()
