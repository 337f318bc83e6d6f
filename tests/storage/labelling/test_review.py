"""What is shown beside a person's labels, and when; the labels that an evaluator suggests."""

import numpy as np
import pytest
from sqlalchemy import select

from stepsight.core.equations.evaluator import EquationsEvaluator
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Hindsight, StepScores, Thresholds
from stepsight.core.trace import Label, Trace
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.judgments.evaluators import register_evaluator, register_loaded
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.labelling.files.label_formats import export_labels
from stepsight.storage.labelling.queue import open_slot
from stepsight.storage.labelling.review import PeerAnnotation, ShownScores, labels_of, read_review, read_scores
from stepsight.storage.people.blindness import is_unblinded
from stepsight.storage.people.users import local_user
from tests.messages import refused
from tests.storage.labelling.samples import ONE, THREE, TWO, Scene, person
from tests.storage.samples import add, evaluator


@pytest.fixture
def judged(store):
    """An evaluator that judged `TWO`, of three sub-steps of which the last two are one step."""
    (trace,) = add(store, [TWO])
    rows = [[[0.1, 0, 0.9]], [[0.2, 0, 0.8], [0.5, 0.25, 0.25]], [[0.25, 0, 0.75], [0.5, 0, 0.5], [1, 0, 0]]]
    triangle = Hindsight(tuple(np.array(row, np.float32) for row in rows))
    mini = evaluator(store).id
    save_judgments(store, mini, [Judgment(trace, Mode.HINDSIGHT, triangle)])
    return mini


# Offline is the last row: 0.75 of the first step; of the second the least of 0.5 and 0.
OFFLINE = ShownScores("mini", Mode.OFFLINE, (0.75, 0.0), (0.0, 0.0))


def review(scene, by="ann"):
    return read_review(scene.store, scene.tasks[by].slot, scene.who(by))


def scores(scene):
    return read_scores(scene.store, scene.tasks["ann"].slot, scene.who("ann"), scene.annotation())


def test_gold_scores_and_what_others_say(store, judged):
    scene = Scene(store, None, overlap=2, after_submission="everything")
    scene.take()
    scene.do("error", 1, "confidence")
    scene.do("error", 0, "circular")
    scene.label("neu neg")
    shown = review(scene)
    assert shown is not None
    assert (shown.trace.labels, shown.scores, shown.peers) == ((Label.POS, Label.NEG), (OFFLINE,), ())
    scene.label("pos pos", by="bob")
    theirs = review(scene, "bob")
    assert theirs is not None
    # The kind of error of a step that is not called wrong is left out.
    assert theirs.peers == (PeerAnnotation(("neu", "neg"), (None, "confidence")),)


def other(scene, after, **changes):
    """A second campaign over the same trace."""
    return Scene(scene.store, None, name="second", after_submission=after, **changes)


def _ahead(scene, after="everything", **changes):
    other(scene, after, **changes)
    scene.label()


def _in_both(scene):
    second = other(scene, "everything")
    scene.label()
    second.label()


def _silent(scene):
    second = other(scene, "nothing")
    scene.label()
    second.label()
    return second


def _withdrawn(scene):
    scene.label()
    scene.do("withdraw")


# What happened to a trace, and what its annotator is then shown of it by a campaign that shows everything.
MOMENTS = {
    "held": (lambda scene: scene.take(), False),
    "submitted": (lambda scene: scene.label(), True),
    "withdrawn": (_withdrawn, False),
    "ahead in another blind campaign": (_ahead, False),
    "in one that marks equations and shows nothing": (
        lambda scene: _ahead(scene, "nothing", shows_equations=True),
        False,
    ),
    "submitted there too": (_in_both, True),
    "submitted in one that shows nothing": (_silent, False),
    "in one that showed nothing": (lambda scene: close_campaign(scene.store, _silent(scene).campaign.id), True),
}


@pytest.mark.parametrize("after", ["nothing", "gold", "everything"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_review_is_shown_once_it_can_blind_nobody(store, judged, moment, after):
    happen, is_shown = MOMENTS[moment]
    scene = Scene(store, None, overlap=2, after_submission=after)
    scene.label("unsure unsure", by="bob")
    happen(scene)
    shown = review(scene)
    assert (shown is not None) == (is_shown and after != "nothing")
    # Nor do other pages show gold to annotators, as long as the campaign is open.
    ann, trace = scene.who("ann"), scene.tasks["ann"].trace.trace_id
    assert is_unblinded(store, ann, trace) == (is_shown and after != "nothing")
    if shown is not None:
        assert shown.trace.labels == (Label.POS, Label.NEG)
        assert (len(shown.scores), len(shown.peers)) == ((1, 1) if after == "everything" else (0, 0))
    if moment == "submitted" and after == "nothing":
        close_campaign(store, scene.campaign.id)
        assert is_unblinded(store, ann, trace)


def test_a_blind_campaign_shows_no_scores_and_another_does(store, judged):
    blind = Scene(store, None)
    blind.take()
    assert scores(blind) == ()
    close_campaign(store, blind.campaign.id)
    scene = Scene(store, None, name="shows", shows="scores", evaluator=judged)
    scene.take()
    assert scores(scene) == (OFFLINE,)


def test_step_by_step_scores_are_the_online_ones_of_what_is_revealed(store, judged):
    scene = Scene(store, None, shows="scores", evaluator=judged, view="stepwise")
    scene.take()
    # Online is the diagonal, 0.9, 0.5 and 0; of the second step the least of 0.5 and 0.
    assert scores(scene) == (ShownScores("mini", Mode.ONLINE, (0.9,), (0.0,)),)
    scene.do("label", 0, "pos")
    scene.do("reveal", None, 2)
    assert scores(scene) == (ShownScores("mini", Mode.ONLINE, (0.9, 0.0), (0.0, 0.0)),)


THREE_QUARTERS = [[0.25, 0, 0.75]] * 3


@pytest.mark.parametrize(
    ("info", "probs", "view", "shown"),
    [
        # An evaluator that only saw the whole is silent step by step.
        ({}, np.eye(3), "stepwise", ()),
        (
            {"outputs": "validity"},
            THREE_QUARTERS,
            "whole",
            (ShownScores("E", Mode.OFFLINE, (0.75, 0.75), (None, None)),),
        ),
        (
            {"outputs": "verdict"},
            [[0, 0, 1], [1, 0, 0], [0, 0, 0]],
            "whole",
            (ShownScores("E", Mode.OFFLINE, (1.0, 0.0), (0.0, 0.0), in_words=True),),
        ),
    ],
)
def test_what_is_shown_is_what_the_evaluator_gives(store, info, probs, view, shown):
    (trace,) = add(store, [TWO])
    facts = {"name": "E", "fingerprint": "E", "format": "imported", "attention": "unknown", "info": info}
    row = register_evaluator(store, **facts)
    validity = 0.0 if info.get("outputs") == "verdict" else None
    result = StepScores(np.array(probs, np.float32))
    save_judgments(store, row.id, [Judgment(trace, Mode.OFFLINE, result, validity)])
    scene = Scene(store, None, shows="scores", evaluator=row.id, view=view)
    scene.take()
    assert scores(scene) == shown


@pytest.fixture
def suggesting(store, judged):
    """Of its traces, the first is judged: its first step valid, its second not."""
    add(store, [TWO, THREE, ONE])
    return Scene(store, None, shows="scores", evaluator=judged, suggests=True)


def log(store):
    with store.read() as session:
        return list(session.scalars(select(EventRow).order_by(EventRow.id)))


def test_a_trace_comes_with_the_labels_of_the_evaluator_once(store, suggesting):
    slot = suggesting.take().slot
    for _ in range(2):
        annotation = suggesting.annotation()
        assert (annotation.labels, annotation.suggested) == (("pos", "neg"), ("pos", "neg"))
        assert (annotation.undo, annotation.submitted) == ((), False)
        assert suggesting.take().slot == slot
        open_slot(store, slot, suggesting.who("ann"))
    (event,) = log(store)
    assert (event.kind, event.new, event.user_id) == ("suggest", ["pos", "neg"], suggesting.who("ann").id)


def test_touched_labels_are_the_persons_and_submission_confirms_the_rest(store, suggesting):
    suggesting.take()
    touched = suggesting.do("label", 0, "neu").annotation
    assert (touched.labels, touched.suggested) == (("neu", "neg"), (None, "neg"))
    taken_back = suggesting.undo().annotation
    assert (taken_back.labels, taken_back.suggested) == (("pos", "neg"), (None, "neg"))
    # It is not suggested again.
    suggesting.take()
    ended = suggesting.do("submit").annotation
    assert (ended.submitted, ended.labels, ended.suggested) == (True, ("pos", "neg"), (None, "neg"))
    # The next trace was not judged.
    suggesting.take()
    assert suggesting.annotation().labels == (None, None, None)
    assert [event.kind for event in log(store)] == ["suggest", "label", "label", "submit"]


SCORES = ShownScores("mini", Mode.OFFLINE, (0.9, 0.5, 0.4, None, 0.9), (0.15, 0.1, 0.9, None, None))


@pytest.mark.parametrize(("after_error", "last"), [(True, "pos"), (False, None)])
def test_labels_follow_from_the_thresholds(after_error, last):
    labels = labels_of(SCORES, Thresholds(0.5, 0.15), after_error=after_error)
    assert labels == ("neu", "pos", "neg", None, last)


def test_a_log_with_suggestions_goes_out_and_comes_in(store, suggesting, tmp_path):
    suggesting.take()
    suggesting.do("submit")
    export_labels(store, "first", tmp_path / "log.jsonl", "events")
    content = (tmp_path / "log.jsonl").read_text()
    assert '"event": "suggest"' in content
    assert '"suggests": true' in content
    assert import_labels(store, tmp_path / "log.jsonl", local_user(store)).added == 0
    (tmp_path / "broken.jsonl").write_text(content.replace('["pos", "neg"]', '["pos"]'))
    with refused():
        import_labels(store, tmp_path / "broken.jsonl", person(store, "boss"), campaign="copy")


def test_equations_suggest_what_is_wrong_and_nothing_else(sqlite_store):
    trace = Trace.of("Add.", ["2 + 2 = 4.", "So 4 + 1 = 6.", "Done."], id="sum")
    (stored,) = add(sqlite_store, [trace])
    equations = EquationsEvaluator()
    row = register_loaded(sqlite_store, equations)
    save_judgments(sqlite_store, row.id, [equations.judge(stored, Mode.HINDSIGHT)])
    scene = Scene(sqlite_store, None, shows="scores", evaluator=row.id, suggests=True)
    scene.take()
    assert scene.annotation().suggested == (None, "neg", None)
