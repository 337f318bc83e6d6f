import base64
import json
import random
import re
import zlib

import pytest

from stepsight.app.score.entered import Entered, PageState, SolutionText, steps_of
from stepsight.core.errors import UserError
from stepsight.core.scores import Thresholds
from stepsight.core.trace import Trace
from stepsight.training.evaluate.strength import read_gallery
from tests.app.entries import typed
from tests.cases import each
from tests.messages import refused

NAMES = ("mini-bidir", "ReasonEval-7B")
FORM = typed("What is $1 + 1$?", "It is a sum.\nSo 3 — “∑” 三 🙂.", NAMES, 0.25, 0.75)


def token_of(text):
    """A token that holds any text."""
    return base64.urlsafe_b64encode(zlib.compress(text.encode())).decode().rstrip("=")


def opened(token):
    try:
        return Entered.from_token(token)
    except UserError:
        return None


def test_a_form_comes_back_from_its_token():
    assert Entered.from_token(FORM.token()) == FORM
    corrected = Entered("q", (("One.",), ("Two.", "Three.")), None, NAMES)
    assert Entered.from_token(corrected.token()) == corrected


def test_a_link_shows_the_steps_that_it_was_made_of_however_a_text_is_split_today():
    values = [1, "q", ["Add. So", ["it is", "5."]], "1. Add.\n2. So it is 5.", [], 0.5, 0.15]
    entered = Entered.from_token(token_of(json.dumps(values)))
    assert entered.steps == (("Add. So",), ("it is", "5."))
    assert json.loads(entered.solution_text().text) == ["Add. So", ["it is", "5."]]


def test_a_text_comes_back_with_what_is_set_aside():
    text = "Sure!\n\n1. Add.\n2. Done."
    solution = Entered.from_token(typed("q", text).token()).solution_text()
    assert solution == SolutionText(text, (("Add.",), ("Done.",)), ("Sure!",))


@pytest.mark.parametrize(
    "values", [["q", "a", "e", 0.5, 0.15], [4, "q", "a", ["e"], 0.5, 0.15], [2, {"problem": "p"}]]
)
def test_a_link_of_another_version_says_so(values):
    with pytest.raises(UserError, match=r"from another version of StepSight\. Paste the solution"):
        Entered.from_token(token_of(json.dumps(values)))


def test_a_token_needs_no_escaping_in_an_address():
    for length in range(20):
        token = typed("?" * length, "ÿ" * length).token()
        assert re.fullmatch(r"[A-Za-z0-9_-]+", token)


def test_text_that_repeats_takes_little_room_and_text_that_does_not_gets_no_link():
    assert len(typed("q", "The same step again. " * 1000).token()) < 1000
    draw = random.Random(0)
    noise = "".join(chr(draw.randrange(0x4E00, 0x9FFF)) for _ in range(8000))
    assert typed("q", noise).token() is None


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


@each(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        '"text"',
        "5",
        "[1]",
        '[1, "p", ["s"], "t", ["e"], 0.5]',
        '[1, "p", ["s"], "t", ["e"], 0.5, 0.1, 0]',
        '[1, "p", ["s"], "t", ["e"], 0.5, 0.1, "abc"]',
        '[1, "p", "s", "t", ["e"], 0.5, 0.1]',
        '[1, "p", ["s"], "t", "e", 0.5, 0.1]',
        '[1, "p", ["s"], "t", ["\\ud800"], 0.5, 0.1]',
        '[1, "p", [["\\ud800"]], null, [], 0.5, 0.1]',
        '[1, "\\udfff", ["s"], null, [], 0.5, 0.1]',
        '[1, "p", ["s"], "\\udfff", [], 0.5, 0.1]',
        '[1, "p", [7], null, [], 0.5, 0.1]',
        '[1, "p", [[["s"]]], null, [], 0.5, 0.1]',
        '[1, "p", ["s"], null, ["e"], "half", 0.1]',
        '[1, "p", ["s"], null, ["e"], null, 0.1]',
        f'[1, "p", ["s"], null, ["e"], {"1" * 400}, 0.1]',
        f'[1, "p", ["s"], null, ["e"], {"1" * 5000}, 0.1]',
        "[" * 5000,
    ],
)
def test_a_token_that_holds_something_else_is_refused(text):
    with pytest.raises(UserError, match="This link is incomplete or was changed"):
        Entered.from_token(token_of(text))


@pytest.mark.parametrize("token", ["", "A", "!!!", "é", "AAAA", "=" * 9, FORM.token().replace("e", "/", 1) + "\n"])
def test_a_malformed_token_is_refused(token):
    with pytest.raises(UserError, match="This link is incomplete or was changed"):
        Entered.from_token(token)


@each("value", [-0.01, 1.01, float("nan"), float("inf"), float("-inf")])
@each("key", ["validity", "redundancy"])
def test_a_threshold_outside_0_to_1_is_refused(key, value):
    values = {"validity": 0.5, "redundancy": 0.15} | {key: value}
    with pytest.raises(UserError, match="a threshold outside 0 to 1"):
        Entered.from_token(token_of(json.dumps([1, "p", ["s"], None, ["e"], *values.values()])))


def test_a_small_token_does_not_unpack_into_a_large_text():
    bomb = token_of(json.dumps([1, "p", ["x" * 50_000_000], None, ["e"], 0.5, 0.1]))
    assert len(bomb) < 100_000
    with pytest.raises(UserError, match="This link is incomplete or was changed"):
        Entered.from_token(bomb)


def test_a_form_is_the_trace_that_its_text_is_split_into():
    trace = typed("  q \n", "Let x be 1.\n\nSo 2.\n").trace
    assert (trace.problem, trace.substeps) == ("q", ("Let x be 1.", "So 2."))
    assert len(typed("q", "\n".join("a" * 1000)).trace.steps) == 1000


@pytest.mark.parametrize(
    "form",
    [
        typed("", "a"),
        typed(" \n", "a"),
        typed("q", ""),
        typed("q", "[]"),
        Entered("q", (("a",), ("",))),
        typed("q", "a\x00b"),
        Entered("q", (("7" * 300_000,),)),
        typed("q", "\n".join("ab" * 501)),
    ],
    ids=range(8),
)
def test_an_entry_that_is_no_trace_is_refused(form):
    with refused():
        _ = form.trace


def test_thinking_that_is_judged_is_known_from_the_link():
    text = "<think>Two.\n\nThree.</think>\n\nSo 5."
    solution = SolutionText.typed(text, judges_thinking=True)
    assert solution.steps == (("Two.",), ("Three.",), ("So 5.",))
    for steps, thinking in ((solution.steps, 2), (SolutionText.typed(text).steps, 0), (solution.steps[1:], 0)):
        entered = Entered.from_token(Entered("q", steps, text).token())
        assert (entered.steps, entered.solution_text().thinking) == (steps, thinking)


def test_a_trace_becomes_a_form_that_gives_it_back():
    trace = Trace.of("q", ["One.", ["Two.", "Three."]])
    form = Entered.of(trace, ["mini-bidir"], Thresholds(0.4, 0.2))
    assert (form.evaluators, form.thresholds) == (("mini-bidir",), Thresholds(0.4, 0.2))
    assert form.trace == trace


@each(
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
    written = SolutionText.written(steps_of(Trace.of("q", steps)))
    assert SolutionText.typed(written.text) == written


def test_plain_steps_become_a_numbered_list():
    assert SolutionText.written((("One.",), ("Two.",))).text == "1. One.\n2. Two."


def test_a_single_step_becomes_a_paragraph():
    assert SolutionText.written((("Only one.",),)).text == "Only one."


def test_every_trace_of_the_gallery_survives_the_text_box():
    for trace in read_gallery():
        assert typed(trace.problem, Entered.of(trace).solution_text().text).steps == steps_of(trace), trace.id


def test_edited_steps_stand_for_the_text_and_are_written_as_one():
    state = PageState(problem="q", solution="1. a\n2. b", steps=(("b",), ("c",)))
    assert state.solution_text() == SolutionText("1. b\n2. c", (("b",), ("c",)))


def test_a_solution_scored_once_more_is_compared_as_it_was():
    first, now = typed("q", "1. a\n2. b").token(), typed("q", "1. a\n2. c").token()
    again = PageState(problem=" q", solution="a\nc", before=now, earlier=first)
    entered = again.entered(again.solution_text())
    assert (entered.earlier.token, entered.earlier.trace.substeps) == (first, ("a", "b"))
    for changes in ({"before": "cut"}, {"before": ""}, {"earlier": ""}):
        state = again.model_copy(update=changes)
        assert state.entered(state.solution_text()).earlier is None, changes
