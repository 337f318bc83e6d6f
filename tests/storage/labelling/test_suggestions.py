"""Labels that an evaluator suggests."""

import pytest
from sqlalchemy import select

from stepsight.core.equations.evaluator import EquationsEvaluator
from stepsight.core.judgment import Mode
from stepsight.core.scores import Thresholds
from stepsight.core.trace import Trace
from stepsight.core.validation import validate
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.judgments.evaluators import register_loaded
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.annotation import NewEvent
from stepsight.storage.labelling.campaigns import get_campaign
from stepsight.storage.labelling.files.export_labels import export_labels
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.labelling.queue import open_slot
from stepsight.storage.labelling.record import read_annotation
from stepsight.storage.labelling.review import ShownScores
from stepsight.storage.labelling.suggestions import labels_of
from stepsight.storage.people.users import local_user
from tests.messages import refused
from tests.storage.labelling.samples import ONE, THREE, campaign, do, people, person, take, undo
from tests.storage.labelling.test_review import judge
from tests.storage.samples import add


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
