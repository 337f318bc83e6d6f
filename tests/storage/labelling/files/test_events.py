"""Logs read back are the logs that were written, those of before 1.0.0 too, and what is not right changes
nothing."""

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
from stepsight.storage.labelling.files.export_labels import export_labels
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.labelling.queue import assign_next
from stepsight.storage.people.users import Role, find_user, local_user
from stepsight.storage.traces.imports import import_file
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.labelled_sums import AGREED, labelled
from tests.storage.labelling.samples import DATASET, TRACES, campaign, label_all, people, take, together
from tests.storage.samples import add, write_lines


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


@pytest.mark.parametrize("view", ["whole", "stepwise"])
def test_a_log_is_the_same_after_a_round_trip(store, other, tmp_path, view):
    labelled(store, view=view)
    export_labels(store, "first", tmp_path / "one", "events")
    done = import_labels(other, tmp_path / "one", local_user(other))
    export_labels(other, "first", tmp_path / "two", "events")
    assert (tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()
    events = sum("event" in row for row in lines_of(tmp_path / "one"))
    assert (done.added, done.repeated) == (events, 0)
    # What is derived from the log is the same too, and the campaign can be gone on with.
    assert {one.trace.id: one.labels for one in together(other, 1)} == AGREED
    assert find_user(other, "annotator 1").role is Role.ANNOTATOR
    assert assign_next(other, find_campaign(other, "first").id, find_user(other, "eve")) is None


def test_a_log_of_a_campaign_with_work_left_is_gone_on_with(store, other, tmp_path):
    made = campaign(store, TRACES, overlap=2)
    first, second = people(store, 2)
    label_all(store, take(store, made, first), first, ["pos", "neg"])
    take(store, made, second)
    export_labels(store, "first", tmp_path / "one", "events")
    import_labels(other, tmp_path / "one", local_user(other))
    again = find_campaign(other, "first")
    # The second had begun with the trace that the first labelled, and has it still.
    assert take(other, again, find_user(other, second.name)).trace.problem == "What is 1 + 1?"


def test_importing_again_adds_nothing(store, other, tmp_path):
    labelled(store)
    export_labels(store, "first", tmp_path / "one", "events")
    import_labels(other, tmp_path / "one", local_user(other))
    before = contents(other)
    done = import_labels(other, tmp_path / "one", local_user(other))
    assert (done.added, contents(other)) == (0, before)
    assert "nothing new" in str(done)
    # Nor in the store that the file came from.
    before = contents(store)
    assert import_labels(store, tmp_path / "one", local_user(store)).added == 0
    assert {**contents(store), "users": 0} == {**before, "users": 0}


def change(lines_of, number, **changes):
    return [row | changes if place == number else row for place, row in enumerate(lines_of, start=1)]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A log."""
    folder = tmp_path_factory.mktemp("exported")
    with open_store(str(folder / "store.db")) as store:
        labelled(store)
        export_labels(store, "first", folder / "events", "events")
    return folder / "events"


JUDGE = {"name": "m", "fingerprint": "m", "format": "llama", "attention": "causal", "info": {}}
# Line 1 is the campaign, 2 its guideline, 3 to 5 the traces; then come the events.
BAD_LOGS = [
    lambda lines_of: change(lines_of, 1, version=2),
    lambda lines_of: change(lines_of, 1, campaign=lines_of[0]["campaign"] | {"dataset": "x"}),
    lambda lines_of: change(lines_of, 1, campaign=lines_of[0]["campaign"] | {"overlap": "3"}),
    lambda lines_of: change(lines_of, 1, campaign=lines_of[0]["campaign"] | {"view": "x"}),
    # What a later version may write, or another program.
    lambda lines_of: change(lines_of, 1, campaign=lines_of[0]["campaign"] | {"conditions": {"verdict": "odd"}}),
    lambda lines_of: change(lines_of, 1, campaign=lines_of[0]["campaign"] | {"conditions": {"mood": "good"}}),
    lambda lines_of: change(lines_of, 1, campaign=lines_of[0]["campaign"] | {"conditions": {"evaluator": "mini"}}),
    lambda lines_of: change(lines_of, 1, campaign=lines_of[0]["campaign"] | {"evaluator": JUDGE | {"name": 3}}),
    lambda lines_of: change(
        lines_of, 1, campaign=lines_of[0]["campaign"] | {"evaluator": JUDGE | {"info": {"outputs": "five-way"}}}
    ),
    lambda lines_of: change(lines_of, 2, text=""),
    lambda lines_of: change(lines_of, 3, trace="four"),
    lambda lines_of: change(lines_of, 3, digest="0" * 64),
    lambda lines_of: change(lines_of, 4, item=0),
    lambda lines_of: change(lines_of, 6, item=9),
    lambda lines_of: change(lines_of, 6, slot=9),
    lambda lines_of: change(lines_of, 6, step=2),
    lambda lines_of: change(lines_of, 6, new="good"),
    lambda lines_of: change(lines_of, 6, old="good"),
    lambda lines_of: change(lines_of, 6, old=[[1]]),
    lambda lines_of: change(lines_of, 6, event="guess"),
    lambda lines_of: change(lines_of, 6, moment="today"),
    lambda lines_of: change(lines_of, 6, of="never"),
    lambda lines_of: change(lines_of, 6, cause="undo"),
    lambda lines_of: change(lines_of, 7, key=lines_of[5]["key"]),
    lambda lines_of: [*lines_of, {"hello": 1}],
]


@each("bad", BAD_LOGS)
def test_bad_logs_are_refused_with_their_line(other, exported, tmp_path, bad):
    user, path = local_user(other), write_lines(tmp_path / "bad.jsonl", bad(lines_of(exported)))
    before = contents(other)
    with refused():
        import_labels(other, path, user)
    assert contents(other) == before


def test_another_campaign_of_the_same_name_is_not_added_to(other, exported, tmp_path):
    user = local_user(other)
    import_labels(other, exported, user)
    shorter = write_lines(tmp_path / "short.jsonl", lines_of(exported)[:-1])
    before = contents(other)
    with refused():
        import_labels(other, shorter, user)
    # Under another name its events would be told twice.
    with refused():
        import_labels(other, exported, user, campaign="again")
    assert contents(other) == before


def test_the_log_holds_every_column():
    """Numbers of the database are told by name, place or key instead, and some columns hold for a store alone."""
    kept = {
        CampaignRow: {
            *CampaignLine.model_fields,
            "settings",
            "id",
            "dataset_id",
            "evaluator_id",
            "blind",
            "exported",
        },
        SlotRow: {*SLOT, "id", "public_id", "campaign_id", "item_id", "user_id"},
        EvaluatorRow: {*EVALUATOR, "id", "created"},
    }
    for model, names in kept.items():
        assert {column.name for column in model.__table__.columns} <= names
    assert EventLine.model_fields.keys() - {"kind", "item", "slot", "annotator", "of"} == {*EVENT}


def test_a_log_is_a_campaign_its_guidelines_its_traces_and_its_events(store, tmp_path):
    made = labelled(store)
    count = write_events(store, made, tmp_path / "log")
    rows = [json.loads(line) for line in (tmp_path / "log").read_text(encoding="utf-8").splitlines()]
    kinds = [next(key for key in ("format", "event", "item", "guideline") if key in row) for row in rows]
    assert kinds == ["format", "guideline", "item", "item", "item"] + ["event"] * count
    assert (rows[0]["campaign"]["name"], rows[0]["campaign"]["created_by"]) == ("first", "boss")
    assert [slot["annotator"] for slot in rows[2]["slots"]] == ["annotator 1", "annotator 2", "annotator 3"]
    first, undo = rows[5], next(row for row in rows if row.get("cause") == "undo")
    assert (first["event"], first["step"], first["old"], first["new"]) == ("label", 0, None, "neg")
    # The second label of step 1 is taken back.
    assert (undo["old"], undo["new"], undo["of"]) == ("pos", "neg", rows[6]["key"])
    assert [row["slot"] for row in rows if row.get("event") == "decide"] == [None, None]


FOLDER = Path(__file__).parent / "earlier"
# Of each campaign: its events, and the labels that people submitted, by trace and person.
LOGS = {
    "by step": {("sum", "ann"): ["pos", "neg", "neg"], ("mended", "ann"): ["neg", "pos", "pos"]},
    "suggested": {("mended", "bob"): ["pos", "neg", "neg"]},
}


@pytest.mark.parametrize("name", LOGS)
def test_labels_of_an_earlier_version_come_in(store, tmp_path, name):
    import_file(store, "jsonl", FOLDER / "traces.jsonl", "sums")
    import_labels(store, FOLDER / f"{name.replace(' ', '-')}.events.jsonl", local_user(store))
    export_labels(store, name, tmp_path / "labels.jsonl", "jsonl")
    rows = [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text(encoding="utf-8").splitlines()]
    labels = {(row["id"], answer["annotator"]): answer["labels"] for row in rows for answer in row["answers"]}
    assert labels == LOGS[name]


def test_notes_and_decisions_of_an_earlier_version_come_in(store, tmp_path):
    import_file(store, "jsonl", FOLDER / "traces.jsonl", "sums")
    import_labels(store, FOLDER / "by-step.events.jsonl", local_user(store))
    export_labels(store, "by step", tmp_path / "labels.jsonl", "jsonl")
    first, mended = map(json.loads, (tmp_path / "labels.jsonl").read_text(encoding="utf-8").splitlines())
    (answer,) = first["answers"]
    assert (answer["errors"][1], answer["comments"][1]) == ("calculation", "It is 2, “not” 3.")
    assert (answer["corrections"][1], answer["flag"]) == ("So 1 + 1 = 2.", "Too easy.")
    assert mended["answers"][0]["evidence"] == [1, None, None]
    assert [(one["step"], one["label"]) for one in mended["decisions"]] == [(0, "neg"), (1, "pos")]


def test_settings_of_an_earlier_version_come_in_without_what_went(store):
    import_file(store, "jsonl", FOLDER / "traces.jsonl", "sums")
    for _ in range(2):
        done = import_labels(store, FOLDER / "suggested.events.jsonl", local_user(store))
    found = find_campaign(store, "suggested")
    assert (found.qualification_items, found.gold_rate, found.shows, found.suggests) == (1, 0.5, "scores", True)
    assert (found.ordering, found.conditions.stored()) == ("disagreement", {"gold": "missing", "evaluator": 1})
    assert done.added == 0
