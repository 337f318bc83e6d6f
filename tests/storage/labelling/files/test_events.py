"""Logs read back are the logs that were written, also those of before 1.0.0; what is not right changes nothing."""

import json
from pathlib import Path

import pytest

from stepsight.core.trace import Trace
from stepsight.storage.backup import count_rows
from stepsight.storage.database.labelling_schema import CampaignRow, SlotRow
from stepsight.storage.database.schema import EvaluatorRow
from stepsight.storage.database.store import open_store
from stepsight.storage.labelling.campaigns import find_campaign
from stepsight.storage.labelling.files.export_events import (
    EVALUATOR,
    EVENT,
    SLOT,
    CampaignLine,
    EventLine,
    write_events,
)
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.labelling.files.label_formats import export_labels
from stepsight.storage.labelling.queue import assign_next
from stepsight.storage.people.users import Role, find_user, local_user
from stepsight.storage.traces.imports import import_file
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.labelled_sums import AGREED, labelled
from tests.storage.labelling.samples import DATASET, TRACES, Scene, take, together
from tests.storage.samples import add, write_lines


def test_the_log_holds_every_column():
    """Numbers of the database are told by name, place or key instead, and some columns hold for a store alone."""
    of_store = {"settings", "id", "dataset_id", "evaluator_id", "blind", "exported"}
    kept = {
        CampaignRow: {*CampaignLine.model_fields, *of_store},
        SlotRow: {*SLOT, "id", "public_id", "campaign_id", "item_id", "user_id"},
        EvaluatorRow: {*EVALUATOR, "id", "created"},
    }
    for model, names in kept.items():
        assert {column.name for column in model.__table__.columns} <= names
    assert EventLine.model_fields.keys() - {"kind", "item", "slot", "annotator", "of"} == {*EVENT}


@pytest.fixture
def other(tmp_path, sqlite_template):
    """A second store, on SQLite, that has the same traces under other numbers."""
    path = tmp_path / "other.db"
    path.write_bytes(sqlite_template.read_bytes())
    with open_store(str(path)) as opened:
        add(opened, [Trace.of("Something else.", ["Yes."], id="x")], "before")
        add(opened, TRACES, DATASET)
        yield opened


def contents(store):
    with store.read() as session:
        return count_rows(session)


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_log_is_a_campaign_its_guidelines_its_traces_and_its_events(store, tmp_path):
    count = write_events(store, labelled(store), tmp_path / "log")
    lines = lines_of(tmp_path / "log")
    kinds = [next(key for key in ("format", "event", "item", "guideline") if key in line) for line in lines]
    assert kinds == ["format", "guideline", "item", "item", "item"] + ["event"] * count
    assert (lines[0]["campaign"]["name"], lines[0]["campaign"]["created_by"]) == ("first", "boss")
    assert [slot["annotator"] for slot in lines[2]["slots"]] == ["annotator 1", "annotator 2", "annotator 3"]
    first, undo = lines[5], next(line for line in lines if line.get("cause") == "undo")
    assert (first["event"], first["step"], first["old"], first["new"]) == ("label", 0, None, "neg")
    # The second label of step 1 is taken back.
    assert (undo["old"], undo["new"], undo["of"]) == ("pos", "neg", lines[6]["key"])
    assert [line["slot"] for line in lines if line.get("event") == "decide"] == [None, None]


@pytest.mark.parametrize("view", ["whole", "stepwise"])
def test_a_log_is_the_same_after_a_round_trip_and_adds_nothing_when_it_comes_again(store, other, tmp_path, view):
    labelled(store, view=view)
    export_labels(store, "first", tmp_path / "one", "events")
    done = import_labels(other, tmp_path / "one", local_user(other))
    export_labels(other, "first", tmp_path / "two", "events")
    assert (tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()
    events = sum("event" in line for line in lines_of(tmp_path / "one"))
    assert (done.added, done.repeated) == (events, 0)
    # What is derived from the log is the same too.
    assert {one.trace.id: one.labels for one in together(other, 1)} == AGREED
    assert find_user(other, "annotator 1").role is Role.ANNOTATOR
    assert assign_next(other, find_campaign(other, "first").id, find_user(other, "eve")) is None
    # Nothing is added in either store, nor by a log from before a setting was there.
    head, *others = lines_of(tmp_path / "one")
    del head["campaign"]["qualification_items"]
    earlier = write_lines(tmp_path / "earlier.jsonl", [head, *others])
    for again, path in ((other, tmp_path / "one"), (store, tmp_path / "one"), (store, earlier)):
        user, before = local_user(again), contents(again)
        repeated = import_labels(again, path, user)
        assert (repeated.added, contents(again), "nothing new" in str(repeated)) == (0, before, True)


def test_a_log_of_a_campaign_with_work_left_is_gone_on_with(store, other, tmp_path):
    scene = Scene(store, overlap=2)
    scene.label("pos neg")
    scene.take("bob")
    export_labels(store, "first", tmp_path / "one", "events")
    import_labels(other, tmp_path / "one", local_user(other))
    # Bob had begun with the trace that ann labelled, and has it still.
    assert take(other, find_campaign(other, "first"), find_user(other, "bob")).trace.problem == "What is 1 + 1?"


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A log."""
    folder = tmp_path_factory.mktemp("exported")
    with open_store(str(folder / "store.db")) as store:
        labelled(store)
        export_labels(store, "first", folder / "events", "events")
    return folder / "events"


JUDGE = {"name": "m", "fingerprint": "m", "format": "llama", "attention": "causal", "info": {}}
# The number of a line, and what it says instead: 1 is the campaign, 2 its guideline, 3 to 5 the traces; then come
# the events. What the campaign says otherwise, a later version may write, or another program.
BAD_LINES = [
    (1, {"version": 2}),
    *(
        (1, {"campaign": changes})
        for changes in (
            {"dataset": "x"},
            {"overlap": "3"},
            {"view": "x"},
            {"conditions": {"verdict": "odd"}},
            {"conditions": {"mood": "good"}},
            {"conditions": {"evaluator": "mini"}},
            {"evaluator": JUDGE | {"name": 3}},
            {"evaluator": JUDGE | {"info": {"outputs": "five-way"}}},
        )
    ),
    (2, {"text": ""}),
    (3, {"trace": "four"}),
    (3, {"digest": "0" * 64}),
    (4, {"item": 0}),
    *(
        (6, changes)
        for changes in (
            {"item": 9},
            {"slot": 9},
            {"step": 2},
            {"new": "good"},
            {"old": "good"},
            {"old": [[1]]},
            {"event": "guess"},
            {"moment": "today"},
            {"of": "never"},
            {"cause": "undo"},
        )
    ),
    (7, {"key": None}),
    (0, {"hello": 1}),
]


@each("number, changes", BAD_LINES)
def test_bad_logs_are_refused_with_their_line(other, exported, tmp_path, number, changes):
    user, lines = local_user(other), lines_of(exported)
    if "campaign" in changes:
        changes = {"campaign": lines[0]["campaign"] | changes["campaign"]}
    if "key" in changes:
        # That of the event before.
        changes = {"key": lines[5]["key"]}
    bad = [line | changes if place == number else line for place, line in enumerate(lines, start=1)]
    path = write_lines(tmp_path / "bad.jsonl", bad if number else [*lines, changes])
    before = contents(other)
    with refused():
        import_labels(other, path, user)
    assert contents(other) == before


def test_another_campaign_of_the_same_name_is_not_added_to(other, exported, tmp_path):
    user = local_user(other)
    import_labels(other, exported, user)
    shorter = write_lines(tmp_path / "short.jsonl", lines_of(exported)[:-1])
    before = contents(other)
    # Under another name its events would be told twice.
    for path, name in ((shorter, None), (exported, "again")):
        with refused():
            import_labels(other, path, user, campaign=name)
    assert contents(other) == before


EARLIER = Path(__file__).parent / "earlier"


def earlier(store, name):
    """Import a log as StepSight wrote it before 1.0.0, the way in which labels of then are brought over."""
    import_file(store, "jsonl", EARLIER / "traces.jsonl", "sums")
    return import_labels(store, EARLIER / f"{name.replace(' ', '-')}.events.jsonl", local_user(store))


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        # By trace and person.
        ("by step", {("sum", "ann"): ["pos", "neg", "neg"], ("mended", "ann"): ["neg", "pos", "pos"]}),
        ("suggested", {("mended", "bob"): ["pos", "neg", "neg"]}),
    ],
)
def test_labels_notes_and_decisions_of_an_earlier_version_come_in(store, tmp_path, name, labels):
    earlier(store, name)
    export_labels(store, name, tmp_path / "labels.jsonl", "jsonl")
    rows = lines_of(tmp_path / "labels.jsonl")
    assert {
        (row["id"], answer["annotator"]): answer["labels"] for row in rows for answer in row["answers"]
    } == labels
    if name == "by step":
        first, mended = rows
        (answer,) = first["answers"]
        assert (answer["errors"][1], answer["comments"][1]) == ("calculation", "It is 2, “not” 3.")
        assert (answer["corrections"][1], answer["flag"]) == ("So 1 + 1 = 2.", "Too easy.")
        assert mended["answers"][0]["evidence"] == [1, None, None]
        assert [(one["step"], one["label"]) for one in mended["decisions"]] == [(0, "neg"), (1, "pos")]


def test_settings_of_an_earlier_version_come_in_without_what_went(store):
    assert [earlier(store, "suggested").added > 0 for _ in range(2)] == [True, False]
    made = find_campaign(store, "suggested")
    assert (made.qualification_items, made.gold_rate, made.shows, made.suggests) == (1, 0.5, "scores", True)
    assert (made.ordering, made.conditions.stored()) == ("file", {"gold": "missing", "evaluator": 1})
