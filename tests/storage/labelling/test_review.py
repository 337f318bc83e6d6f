"""What is shown beside a person's labels, and when; the labels that an evaluator suggests."""

import numpy as np
import pytest
from sqlalchemy import select

from stepsight.core.equations.evaluator import EquationsEvaluator
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Hindsight, StepScores, Thresholds
from stepsight.core.trace import Label, Trace
from stepsight.core.validation import validate
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.database.store import ConflictError, NotFoundError
from stepsight.storage.judgments.evaluators import register_evaluator, register_loaded
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.annotation import NewEvent
from stepsight.storage.labelling.campaigns import close_campaign, get_campaign
from stepsight.storage.labelling.files.export_labels import export_labels
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.labelling.queue import open_slot
from stepsight.storage.labelling.record import read_annotation
from stepsight.storage.labelling.review import PeerAnnotation, ShownScores, labels_of, read_review, read_scores
from stepsight.storage.people.blindness import is_unblinded
from stepsight.storage.people.users import local_user
from stepsight.storage.traces.queries import get_trace
from tests.messages import refused
from tests.storage.labelling.samples import ONE, THREE, TWO, campaign, do, label_all, people, person, take, undo
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


def suggesting(store, *traces, **changes):
    """Of which the first, `TWO`, is judged: its first step valid, its second not."""
    judged = judge(store)
    add(store, traces)
    return campaign(store, None, shows="scores", evaluator=judged, suggests=True, **changes)


def events(store):
    with store.read() as session:
        return list(session.scalars(select(EventRow).order_by(EventRow.id)))


def test_a_trace_comes_with_the_labels_of_the_evaluator_once(store):
    made = suggesting(store)
    (ann,) = people(store, 1)
    task = take(store, made, ann)
    for _ in range(2):
        found = read_annotation(store, task.slot_id)
        assert (found.labels, found.suggested) == (("pos", "neg"), ("pos", "neg"))
        assert (found.undo, found.submitted) == ((), False)
        assert take(store, made, ann).slot_id == task.slot_id
        open_slot(store, task.slot_id, ann)
    (event,) = events(store)
    assert (event.kind, event.new, event.user_id) == ("suggest", ["pos", "neg"], ann.id)


def test_touched_labels_are_the_persons_and_submission_confirms_the_rest(store):
    made = suggesting(store)
    (ann,) = people(store, 1)
    task = take(store, made, ann)
    do(store, task.slot_id, ann, "label", 0, "neu")
    found = read_annotation(store, task.slot_id)
    assert (found.labels, found.suggested) == (("neu", "neg"), (None, "neg"))
    taken_back = undo(store, task.slot_id, ann, "u").annotation
    assert (taken_back.labels, taken_back.suggested) == (("pos", "neg"), (None, "neg"))
    do(store, task.slot_id, ann, "submit")
    ended = read_annotation(store, task.slot_id)
    assert (ended.submitted, ended.labels, ended.suggested) == (True, ("pos", "neg"), (None, "neg"))


def test_a_trace_that_was_not_judged_has_no_suggestions(store):
    made = suggesting(store, THREE, ONE)
    (ann,) = people(store, 1)
    do(store, take(store, made, ann).slot_id, ann, "submit")
    task = take(store, made, ann)
    assert read_annotation(store, task.slot_id).labels == (None, None, None)
    assert len(events(store)) == 2


def test_suggestions_do_not_overwrite_a_persons_work(store):
    made = suggesting(store)
    (ann,) = people(store, 1)
    task = take(store, made, ann)
    do(store, task.slot_id, ann, "label", 1, "pos")
    assert take(store, made, ann).slot_id == task.slot_id
    assert read_annotation(store, task.slot_id).labels == ("pos", "pos")


SCORES = ShownScores("mini", Mode.OFFLINE, (0.9, 0.5, 0.4, None, 0.9), (0.15, 0.1, 0.9, None, None))


@pytest.mark.parametrize(
    ("after_error", "labels"),
    [(True, ["neu", "pos", "neg", None, "pos"]), (False, ["neu", "pos", "neg", None, None])],
)
def test_labels_follow_from_the_thresholds(after_error, labels):
    assert labels_of(SCORES, Thresholds(0.5, 0.15), after_error=after_error) == labels


def test_only_a_campaign_that_shows_scores_and_the_whole_trace_can_suggest(store):
    judged = judge(store)
    for changes in ({"shows": "nothing"}, {"view": "stepwise"}):
        with refused():
            campaign(store, None, **({"shows": "scores", "evaluator": judged, "suggests": True} | changes))


def test_a_suggestion_sent_by_a_person_is_refused():
    with refused():
        validate(NewEvent, {"key": "k", "kind": "suggest", "new": ["pos"]}, "the event")


def test_a_log_with_suggestions_goes_out_and_comes_in(store, tmp_path):
    made = suggesting(store)
    (ann,) = people(store, 1)
    task = take(store, made, ann)
    do(store, task.slot_id, ann, "submit")
    export_labels(store, made.name, tmp_path / "log.jsonl", "events")
    content = (tmp_path / "log.jsonl").read_text()
    assert '"event": "suggest"' in content
    assert '"suggests": true' in content
    # The same again, and as another campaign of another store's name.
    import_labels(store, tmp_path / "log.jsonl", local_user(store))
    broken = content.replace('["pos", "neg"]', '["pos"]')
    (tmp_path / "broken.jsonl").write_text(broken)
    with refused():
        import_labels(store, tmp_path / "broken.jsonl", person(store, "boss"), campaign="copy")
    assert get_campaign(store, made.id).suggests


def test_equations_suggest_what_is_wrong_and_nothing_else(sqlite_store):
    trace = Trace.of("Add.", ["2 + 2 = 4.", "So 4 + 1 = 6.", "Done."], id="sum")
    (stored,) = add(sqlite_store, [trace])
    evaluator = EquationsEvaluator()
    row = register_loaded(sqlite_store, evaluator)
    save_judgments(sqlite_store, row.id, [evaluator.judge(stored, Mode.HINDSIGHT)])
    made = campaign(sqlite_store, None, shows="scores", evaluator=row.id, suggests=True, after_error=True)
    (ann,) = people(sqlite_store, 1)
    found = read_annotation(sqlite_store, take(sqlite_store, made, ann).slot_id)
    assert found.suggested == (None, "neg", None)
