from dataclasses import replace

import numpy as np
import pytest

from stepsight.app.browse.page import BrowsePages
from stepsight.app.browse.trace_view import (
    PeopleLabels,
    dispute_links,
    first_wrong,
    outcome_words,
    trace_html,
    verdict_pieces,
)
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.step_bars import TraceJudgments
from stepsight.core.judgment import Judgment, Mode, Usage
from stepsight.core.models.location import EQUATIONS
from stepsight.core.scores import Hindsight, Outputs, StepScores, Thresholds
from stepsight.core.trace import Label, Step, Trace
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.labelling.disputes import DisputeState, add_entry, open_dispute
from stepsight.storage.people.users import Role, local_user
from stepsight.storage.traces.queries import StoredTrace
from tests.app.elements import read
from tests.cases import each
from tests.storage.labelling.labelled_sums import labelled
from tests.storage.labelling.samples import person
from tests.storage.samples import ERROR, MISSING, add, by_mode

POS, NEG, NEU, NOTHING = [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 0]


def stored(trace):
    return StoredTrace(trace.id, trace.problem, trace.steps, trace.meta,
                       trace_id=7, dataset_id=1, dataset="sums", position=0)  # fmt: skip


TRACE = Trace.of("What is $1 + 1$?", ["A sum.", ["So 3.", "Done."], "Yes."], ["pos", "neg", None], id="one")


def answer(name, rows, outputs=Outputs.THREE_WAY, solution=None, rationale=""):
    judgment = Judgment(TRACE, Mode.OFFLINE, StepScores(np.array(rows, np.float32)), solution, rationale)
    return TraceJudgments(name, outputs, Thresholds(), by_mode(judgment), stored=True)


def both(name, saved=True):
    """Validity 0.75 online; offline the second sub-step is at 0.25."""
    first, fallen = [0.25, 0, 0.75], [0.75, 0, 0.25]
    rows = [np.array([first] * (j + 1), np.float32) for j in range(4)]
    rows[-1][1] = fallen
    judgment = Judgment(TRACE, Mode.HINDSIGHT, Hindsight(tuple(rows)))
    return TraceJudgments(name, Outputs.THREE_WAY, Thresholds(), by_mode(judgment), stored=saved, runs=True)


VERDICTS = answer("verdict", [POS, NEG, NEG, NOTHING], Outputs.VERDICT, 0.0, "Step 2 is <wrong>: $1 + 1 = 3$.")
SPENT = replace(
    answer("critic", [POS, NEG, NEG, NEG], rationale="**Step 1: pos 4 of 4.** <b>Fine</b>.").judgments[0],
    spent=Usage(5, 1, 1500, 260),
)
MARKDOWN = Trace.of(
    "What is **1**?\n| n | 2n |\n|---|---|\n| 1 | 2 |", ["**So** it is:\n```\nif a:\n    b = 3\n```"], id="one"
)
VIEWS = {
    "one evaluator, of whom Evidence knows, and a search": (TRACE, [both("a b")], "so 3"),
    "several of whom one has one mode": (TRACE, [both("mini"), answer("other", [NEU] * 4)], "1 + 1"),
    "without gold": (Trace.of("q", ["a", ["b", "c"], "d"]), [both("mini", saved=False)], ""),
    "scores that an evaluator does not give": (
        TRACE,
        [
            answer("validity", [[0.4, 0, 0.6], [0.75, 0, 0.25], [0.2, 0, 0.8], NOTHING], Outputs.VALIDITY),
            VERDICTS,
            answer("number", [NOTHING] * 4, Outputs.SOLUTION, 0.0354),
        ],
        "",
    ),
    "what a critic took": (
        TRACE, [TraceJudgments("critic", Outputs.THREE_WAY, Thresholds(), by_mode(SPENT), stored=True)], "",
    ),
    "no judgment": (TRACE, [TraceJudgments("mini", Outputs.THREE_WAY, Thresholds(), silence="It is long.")], ""),
    "Markdown with a hit in it": (MARKDOWN, [], "b = 3"),
}  # fmt: skip
"""A trace, the answers of evaluators, and the words that were searched."""


def test_a_trace_beside_the_answers_of_evaluators(drawn):
    for title, (trace, answers, words) in VIEWS.items():
        drawn(trace_html(stored(trace), answers, words), title)


# Two steps, the second of two sub-steps.
LABELLED = Trace.of("q", ["x", ["y", "z"]], ["pos", "neg"])
PLAIN = Trace.of("q", ["x", ["y", "z"]])
CLEAN = Trace.of("q", ["x", ["y", "z"]], ["pos", "pos"])
WRONG, REDUNDANT, RIGHT, SILENT = [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]


def judged(rows, outputs=Outputs.THREE_WAY, solution=None, trace=LABELLED, thresholds=None):
    judgment = Judgment(trace, Mode.OFFLINE, StepScores(np.array(rows, np.float32)), solution)
    return TraceJudgments("it", outputs, thresholds or Thresholds(), by_mode(judgment))


def test_an_evaluator_of_steps_has_a_verdict_per_mode_and_a_change():
    # Online 0.8, 0.9, 0.3, offline 0.25, 0.9, 0.3: step 1 falls by 0.55.
    first, second, fallen, third = [0.1, 0, 0.9], [0.2, 0.5, 0.3], [0.75, 0.125, 0.125], [0.7, 0.1, 0.2]
    rows = [np.array(row, np.float32) for row in ([second], [second, first], [fallen, first, third])]
    still = Hindsight.constant(StepScores(np.array([RIGHT] * 3, np.float32)))
    for hindsight, expected in (
        (
            Hindsight(tuple(rows)),
            [
                "Online: not valid 0.30 · redundant 0.50, finds the error in step 2",
                "Offline: not valid 0.25, blames step 1, gold step 2",
                "moved most by later steps: step 1, −0.55",
            ],
        ),
        (still, [*(f"{mode}: valid 1.00, misses the error in step 2" for mode in ("Online", "Offline")),
                 "moved most by later steps: none"]),
    ):  # fmt: skip
        judgment = Judgment(LABELLED, Mode.HINDSIGHT, hindsight)
        found = verdict_pieces(TraceJudgments("it", Outputs.THREE_WAY, Thresholds(), by_mode(judgment)), LABELLED)
        assert [read(piece).text for piece in found] == expected


# Of a benchmark of redundant steps: what an evaluator finds no error with may be meant of those.
NEUTRAL = Trace.of("q", ["x", ["y", "z"]], ["pos", "neu"])


@each(
    "outputs, rows, solution, trace, expected",
    [
        (Outputs.THREE_WAY, [SILENT] * 3, None, LABELLED, "Offline: no scores for the steps"),
        (Outputs.SOLUTION, [SILENT] * 3, 0.0354, LABELLED, "score of the solution: 0.0354"),
        (Outputs.SOLUTION, [SILENT] * 3, None, LABELLED, "no verdict on the solution"),
        (Outputs.VERDICT, [RIGHT, WRONG, WRONG], 0.0, LABELLED, "wrong from step 2, agrees with gold"),
        (Outputs.VERDICT, [WRONG, SILENT, SILENT], 0.0, LABELLED, "wrong from step 1, gold step 2"),
        (Outputs.VERDICT, [REDUNDANT] * 3, 0.0, LABELLED, "redundant: steps 1, 2"),
        (Outputs.VERDICT, [RIGHT, REDUNDANT, REDUNDANT], 0.0, LABELLED, "redundant: step 2"),
        (Outputs.VERDICT, [RIGHT] * 3, 1.0, LABELLED, "finds no error, misses the error in step 2"),
        (Outputs.VERDICT, [RIGHT] * 3, 0.0, LABELLED, "finds an error, names no step"),
        (Outputs.VERDICT, [RIGHT] * 3, None, LABELLED, "its verdict could not be read"),
        (Outputs.VERDICT, [RIGHT] * 3, 1.0, CLEAN, "finds no error, agrees with gold"),
        (Outputs.VERDICT, [WRONG, SILENT, SILENT], 0.0, CLEAN, "wrong from step 1, a false alarm"),
        (Outputs.VERDICT, [RIGHT] * 3, 1.0, PLAIN, "finds no error"),
        (Outputs.VERDICT, [WRONG, SILENT, SILENT], 0.0, PLAIN, "wrong from step 1"),
        (Outputs.VERDICT, [RIGHT] * 3, 1.0, NEUTRAL, "finds no error"),
        (Outputs.CHECKS, [SILENT] * 3, None, LABELLED, "nothing to check"),
        (Outputs.CHECKS, [RIGHT, SILENT, SILENT], None, LABELLED,
         "every equation that it can check holds, in 1 of 2 steps"),
        (Outputs.CHECKS, [SILENT, RIGHT, WRONG], None, LABELLED, "wrong in step 2, agrees with gold"),
        (Outputs.CHECKS, [WRONG, SILENT, SILENT], None, LABELLED, "wrong in step 1, gold step 2"),
    ],
)  # fmt: skip
def test_a_verdict_is_told_in_words(outputs, rows, solution, trace, expected):
    assert [read(piece).text for piece in verdict_pieces(judged(rows, outputs, solution, trace), trace)] == [
        expected
    ]


def test_the_first_wrong_step_follows_the_threshold_and_passes_over_silence():
    rows = [[0.4, 0, 0.6], SILENT, [0.9, 0, 0.1]]
    assert first_wrong(judged(rows), Mode.OFFLINE, LABELLED) == 1
    assert first_wrong(judged(rows, thresholds=Thresholds(0.65)), Mode.OFFLINE, LABELLED) == 0
    assert first_wrong(judged(rows, thresholds=Thresholds(0.05)), Mode.OFFLINE, LABELLED) is None


@each(
    "found, trace, expected",
    [
        (1, LABELLED, "finds the error in step 2"),
        (0, LABELLED, "blames step 1, gold step 2"),
        (None, LABELLED, "misses the error in step 2"),
        (None, CLEAN, "agrees with gold"),
        (0, CLEAN, "false alarm at step 1"),
        (0, PLAIN, "blames step 1"),
        (None, PLAIN, ""),
        # Gold that says nothing of some step does not say that there is no error.
        (None, Trace("", "q", (Step(("x",), Label.POS), Step(("y",)))), ""),
    ],
)
def test_an_outcome_in_words(found, trace, expected):
    assert outcome_words(found, trace) == expected


@pytest.fixture
def made(sqlite_store):
    return labelled(sqlite_store)


def test_labels_of_people_stand_at_each_step_and_each_persons_once_the_campaign_is_closed(
    sqlite_store, made, drawn
):
    me, viewer = local_user(sqlite_store), person(sqlite_store, "vic", Role.VIEWER)
    checking = Evaluators([EQUATIONS], shipped=False)
    drawn(BrowsePages(sqlite_store, checking).content({"trace": "2"}, me).html, "to who may see them")
    drawn(PeopleLabels(sqlite_store, 1, me).html(), "with notes")
    assert PeopleLabels(sqlite_store, 2, None).html() == ""
    assert PeopleLabels(sqlite_store, 2, None).words == "none yet"
    drawn(PeopleLabels(sqlite_store, 2, viewer).html(), "a viewer, while it is open")
    close_campaign(sqlite_store, made.id)
    drawn(PeopleLabels(sqlite_store, 2, viewer).html(), "a viewer, once it is closed")
    drawn(PeopleLabels(sqlite_store, 2, None).html(), "somebody unknown, once it is closed")


@pytest.fixture
def traces(sqlite_store):
    return add(sqlite_store, [ERROR, MISSING])


@pytest.fixture
def user(sqlite_store):
    return local_user(sqlite_store)


def test_each_step_links_to_its_disputes_and_to_a_new_one(sqlite_store, traces, user, drawn):
    made = open_dispute(sqlite_store, traces[0].trace_id, 1, "pos", "So.", user)
    gone = open_dispute(sqlite_store, traces[0].trace_id, 1, "neu", "So.", user)
    add_entry(sqlite_store, gone.id, user, "", DisputeState.WITHDRAWN)
    viewer = person(sqlite_store, "viewer", Role.VIEWER)
    assert dispute_links(sqlite_store, traces[0], viewer) == dispute_links(sqlite_store, traces[0], None)
    for title, who in {"somebody who labels": user, "a viewer": viewer}.items():
        drawn("\n".join(dispute_links(sqlite_store, traces[0], who)), title)
    add_entry(sqlite_store, made.id, user, "", DisputeState.ACCEPTED)
    drawn(dispute_links(sqlite_store, traces[0], user)[1], "accepted")
    # Without gold there is nothing to dispute.
    assert dispute_links(sqlite_store, traces[1], user) == ()


def test_disputes_on_the_page_of_a_trace(sqlite_store, traces, evaluators, user):
    for who, count in ((user, 2), (None, 0)):
        page = BrowsePages(sqlite_store, evaluators).content({"trace": str(traces[0].trace_id)}, who).html
        assert page.count('<div class="disputable"><span class="g"') == page.count("disputable") == count
