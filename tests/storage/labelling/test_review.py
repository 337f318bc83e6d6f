"""What is shown beside a person's labels, and when."""

import numpy as np
import pytest

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.label import Label
from stepsight.core.scores import Hindsight, StepScores
from stepsight.storage.database.store import ConflictError, NotFoundError
from stepsight.storage.judgments.evaluators import register_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.labelling.record import read_annotation
from stepsight.storage.labelling.review import PeerAnnotation, ShownScores, read_review, read_scores
from stepsight.storage.people.blindness import is_unblinded
from stepsight.storage.traces.queries import get_trace
from tests.messages import refused
from tests.storage.labelling.samples import TWO, campaign, do, label_all, people, person, take
from tests.storage.samples import add, evaluator


def judge(store, task=None):
    """An evaluator's judgment of the trace of three sub-steps, the last two of which are one step."""
    (trace,) = [get_trace(store, task.trace.trace_id)] if task else add(store, [TWO])
    rows = [[[0.1, 0, 0.9]], [[0.2, 0, 0.8], [0.5, 0.25, 0.25]], [[0.25, 0, 0.75], [0.5, 0, 0.5], [1, 0, 0]]]
    triangle = Hindsight(tuple(np.array(row, np.float32) for row in rows))
    judged = evaluator(store).id
    save_judgments(store, judged, [Judgment(trace, Mode.HINDSIGHT, triangle)])
    return judged


# Offline is the last row: 0.75 of the first step; of the second the least of 0.5 and 0.
OFFLINE = ShownScores("mini", Mode.OFFLINE, (0.75, 0.0), (0.0, 0.0))


def test_nothing_before_submission_and_everything_after(store):
    made = campaign(store, [TWO], overlap=2, after_submission="everything")
    first, second = people(store, 2)
    tasks = [take(store, made, user) for user in (first, second)]
    judge(store, tasks[0])
    do(store, tasks[0].slot_id, first, "label", 1, "neg")
    do(store, tasks[0].slot_id, first, "error", 1, "confidence")
    do(store, tasks[0].slot_id, first, "error", 0, "circular")
    do(store, tasks[0].slot_id, first, "label", 0, "neu")
    assert read_review(store, tasks[0].slot_id, first) is None
    assert read_scores(store, tasks[0].slot_id, first, read_annotation(store, tasks[0].slot_id)) == ()
    do(store, tasks[0].slot_id, first, "submit")
    found = read_review(store, tasks[0].slot_id, first)
    assert found is not None
    assert (found.trace.labels, found.scores, found.peers) == ((Label.POS, Label.NEG), (OFFLINE,), ())
    label_all(store, tasks[1], second, ["pos", "pos"])
    theirs = read_review(store, tasks[1].slot_id, second)
    assert theirs is not None
    # The kind of error of a step that is not called wrong is left out.
    assert theirs.peers == (PeerAnnotation(("neu", "neg"), (None, "confidence")),)


def test_a_withdrawn_answer_shows_no_review(store):
    made, user = campaign(store, [TWO]), person(store, "ann")
    task = take(store, made, user)
    label_all(store, task, user, ["pos", "pos"])
    do(store, task.slot_id, user, "reopen")
    assert read_review(store, task.slot_id, user) is None


def test_a_trace_that_is_ahead_in_another_blind_campaign_is_not_shown_yet(store):
    made, user = campaign(store, [TWO], after_submission="everything"), person(store, "ann")
    other = campaign(store, None, name="second", after_submission="everything")
    task = take(store, made, user)
    label_all(store, task, user, ["pos", "pos"])
    assert read_review(store, task.slot_id, user) is None
    label_all(store, take(store, other, user), user, ["pos", "pos"])
    assert read_review(store, task.slot_id, user) is not None


def test_a_campaign_may_show_scores_before(store):
    judged = judge(store)
    made, user = campaign(store, None, shows="scores", evaluator=judged), person(store, "ann")
    task = take(store, made, user)
    assert read_scores(store, task.slot_id, user, read_annotation(store, task.slot_id)) == (OFFLINE,)


def test_step_by_step_scores_are_the_online_ones_of_what_is_revealed(store):
    judged = judge(store)
    made = campaign(store, None, shows="scores", evaluator=judged, view="stepwise")
    user = person(store, "ann")
    task = take(store, made, user)

    def shown() -> tuple[ShownScores, ...]:
        return read_scores(store, task.slot_id, user, read_annotation(store, task.slot_id))

    # Online is the diagonal, 0.9, 0.5 and 0; of the second step the least of 0.5 and 0.
    assert shown() == (ShownScores("mini", Mode.ONLINE, (0.9,), (0.0,)),)
    do(store, task.slot_id, user, "label", 0, "pos")
    do(store, task.slot_id, user, "reveal", None, 2)
    assert shown() == (ShownScores("mini", Mode.ONLINE, (0.9, 0.0), (0.0, 0.0)),)


def test_an_evaluator_that_only_saw_the_whole_is_silent_step_by_step(store):
    (trace,) = add(store, [TWO])
    judged = evaluator(store).id
    save_judgments(store, judged, [Judgment(trace, Mode.OFFLINE, StepScores(np.eye(3, dtype=np.float32)))])
    made = campaign(store, None, shows="scores", evaluator=judged, view="stepwise")
    user = person(store, "ann")
    task = take(store, made, user)
    assert read_scores(store, task.slot_id, user, read_annotation(store, task.slot_id)) == ()


def test_an_evaluator_that_gives_validity_only_says_nothing_of_redundancy(store):
    (trace,) = add(store, [TWO])
    judged = register_evaluator(
        store, name="PRM", fingerprint="PRM", format="qwen-prm", attention="causal", info={"outputs": "validity"}
    )
    rows = StepScores(np.array([[0.25, 0, 0.75]] * 3, np.float32))
    save_judgments(store, judged.id, [Judgment(trace, Mode.OFFLINE, rows)])
    made = campaign(store, None, shows="scores", evaluator=judged.id)
    user = person(store, "ann")
    task = take(store, made, user)
    shown = read_scores(store, task.slot_id, user, read_annotation(store, task.slot_id))
    assert shown == (ShownScores("PRM", Mode.OFFLINE, (0.75, 0.75), (None, None)),)


def test_a_verdict_in_words_is_told_apart(store):
    (trace,) = add(store, [TWO])
    judged = register_evaluator(
        store, name="GPT", fingerprint="GPT", format="imported", attention="unknown", info={"outputs": "verdict"}
    )
    rows = StepScores(np.array([[0, 0, 1], [1, 0, 0], [0, 0, 0]], np.float32))
    save_judgments(store, judged.id, [Judgment(trace, Mode.OFFLINE, rows, 0.0)])
    made = campaign(store, None, shows="scores", evaluator=judged.id)
    user = person(store, "ann")
    task = take(store, made, user)
    (shown,) = read_scores(store, task.slot_id, user, read_annotation(store, task.slot_id))
    assert shown.in_words


def test_the_turn_of_another_person_is_not_shown(store):
    made = campaign(store, [TWO])
    one, other = people(store, 2)
    task = take(store, made, one)
    label_all(store, task, one, ["pos", "pos"])
    with pytest.raises(ConflictError):
        read_review(store, task.slot_id, other)
    with pytest.raises(NotFoundError):
        read_review(store, 99, other)


def test_a_campaign_that_shows_nothing_shows_nothing(store):
    made = campaign(store, [TWO], overlap=2, after_submission="nothing")
    first, second = people(store, 2)
    tasks = [take(store, made, user) for user in (first, second)]
    judge(store, tasks[0])
    for task, user in zip(tasks, (first, second), strict=True):
        label_all(store, task, user, ["pos", "neg"])
        assert read_review(store, task.slot_id, user) is None
        # Nor do other pages for annotators, as long as it is open.
        assert not is_unblinded(store, user, task.trace.trace_id)
    close_campaign(store, made.id)
    assert is_unblinded(store, first, tasks[0].trace.trace_id)


def test_scores_wait_for_a_blind_campaign_over_the_same_trace(store):
    made, user = campaign(store, [TWO], after_submission="everything"), person(store, "ann")
    silent = campaign(store, None, name="silent", after_submission="nothing")
    slots = []
    for one in (made, silent):
        task = take(store, one, user)
        label_all(store, task, user, ["pos", "pos"])
        slots.append(task.slot_id)
    assert read_review(store, slots[0], user) is None
    close_campaign(store, silent.id)
    assert read_review(store, slots[0], user) is not None


def test_gold_alone_is_shown_and_the_labels_cannot_be_taken_back_to_change_them(store):
    made = campaign(store, [TWO], overlap=2, after_submission="gold")
    first, second = people(store, 2)
    tasks = [take(store, made, user) for user in (first, second)]
    judge(store, tasks[0])
    label_all(store, tasks[0], first, ["neu", "neg"])
    label_all(store, tasks[1], second, ["pos", "pos"])
    for task, user in zip(tasks, (first, second), strict=True):
        found = read_review(store, task.slot_id, user)
        assert found is not None
        assert (found.trace.labels, found.scores, found.peers) == ((Label.POS, Label.NEG), (), ())
        # Otherwise labels could be changed after the gold was seen.
        with refused(ConflictError):
            do(store, task.slot_id, user, "reopen")
