"""Planted suggestions, and what people make of them."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from stepsight.app.annotate.agreement_measure import measure_agreement
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.campaigns import Campaign
from stepsight.storage.labelling.files.export_labels import export_labels
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.labelling.queue import next_availability
from stepsight.storage.labelling.record import read_annotation
from stepsight.storage.labelling.results.trust import read_confirmations
from stepsight.storage.labelling.review import read_scores
from stepsight.storage.people.users import User, local_user
from tests.app.annotate.rated import cells
from tests.messages import refused
from tests.storage.labelling.samples import DATASET, campaign, do, label_all, person, take
from tests.storage.samples import add, evaluator

# The evaluator finds the error in the second step, except in every third.
TRACES = [Trace.of(f"Problem {i}", ["One.", "Two."], ["pos", "neg"], id=str(i)) for i in range(12)]


def planting(store: Store, **changes: Any) -> Campaign:
    traces = add(store, TRACES, DATASET)
    judged = evaluator(store, "one")
    for trace in traces:
        values = [0.9, 0.2 if int(trace.id) % 3 else 0.8]
        rows = np.array([[1 - value, 0, value] for value in values], np.float32)
        save_judgments(store, judged.id, [Judgment(trace, Mode.OFFLINE, StepScores(rows))])
    given = {"sample": 4, "gold_rate": 0.5, "planted_share": 1.0} | changes
    return campaign(store, None, shows="scores", evaluator=judged.id, suggests=True, **given)


def answer(store: Store, of: Campaign, user: User, *, believes: bool) -> None:
    """Submit every trace that comes: as it is suggested, or as gold says."""
    while next_availability(store, of, user) != "nothing":
        task = take(store, of, user)
        annotation = read_annotation(store, task.slot_id)
        (scores,) = read_scores(store, task.slot_id, user, annotation)
        # Scores and suggestions agree, whether planted or not.
        wrong = [value is not None and value < 0.5 for value in scores.validity]
        assert [label == "neg" for label in annotation.labels if label] == wrong[: len(annotation.labels)]
        if believes:
            do(store, task.slot_id, user, "submit")
        else:
            label_all(store, task, user, ["pos", "neg"])


def test_one_suggestion_of_a_gold_item_is_wrong_and_keeping_it_is_over_trust(store: Store) -> None:
    of = planting(store, overlap=2)
    answer(store, of, person(store, "ada"), believes=True)
    answer(store, of, person(store, "bo"), believes=False)
    found = read_confirmations(store, of)
    planted = [one for one in found if one.kind == "planted"]
    assert {(one.user, one.kept) for one in planted} == {("ada", True), ("bo", False)}
    assert set(Counter((one.user, one.item_id) for one in planted).values()) == {1}
    # Nobody changes a suggestion that is right.
    assert all(one.kept for one in found if one.user == "ada" or one.kind == "right")
    trust = measure_agreement(store, of).find_table("trust")
    assert cells(trust, "all")["n_planted"] == len(planted)
    assert cells(trust, "all")["planted"].number == pytest.approx(np.mean([one.kept for one in planted]))
    assert cells(trust, "bo")["planted"].number == 0
    unnamed = measure_agreement(store, of, named=False).find_table("trust")
    assert [row[0] for row in unnamed.rows] == ["all"]


def test_planted_steps_are_in_the_log_and_only_of_gold_items(sqlite_store: Store, tmp_path: Path) -> None:
    of = planting(sqlite_store)
    answer(sqlite_store, of, person(sqlite_store, "ada"), believes=True)
    events = select(EventRow.item_id).where(EventRow.kind == "suggest", EventRow.step.is_not(None))
    with sqlite_store.read() as session:
        planted = set(session.scalars(events))
    assert planted
    assert planted == {one.item_id for one in read_confirmations(sqlite_store, of)}
    log = tmp_path / "log.jsonl"
    export_labels(sqlite_store, of.name, log, "events")
    # What comes in again is the same to the letter.
    assert import_labels(sqlite_store, log, local_user(sqlite_store)).added == 0


def test_wrong_suggestions_take_hidden_gold_items(sqlite_store: Store) -> None:
    with refused():
        planting(sqlite_store, gold_rate=0.0)
