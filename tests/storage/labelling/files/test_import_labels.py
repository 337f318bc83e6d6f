"""Labels read back are the labels that were written, and what is not right changes nothing."""

import json

import pytest

from stepsight.core.trace import Trace
from stepsight.storage.backup import count_rows
from stepsight.storage.database.store import open_store
from stepsight.storage.labelling.campaigns import find_campaign
from stepsight.storage.labelling.files.export_labels import export_labels
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.labelling.queue import assign_next
from stepsight.storage.people.users import Role, find_user, local_user
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


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("view", ["whole", "stepwise"])
def test_a_log_is_the_same_after_a_round_trip(store, other, tmp_path, view):
    labelled(store, view=view)
    export_labels(store, "first", tmp_path / "one", "events")
    done = import_labels(other, tmp_path / "one", local_user(other))
    export_labels(other, "first", tmp_path / "two", "events")
    assert (tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()
    events = sum("event" in row for row in rows(tmp_path / "one"))
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


def change(rows, number, **changes):
    return [row | changes if place == number else row for place, row in enumerate(rows, start=1)]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A log."""
    folder = tmp_path_factory.mktemp("exported")
    with open_store(str(folder / "store.db")) as store:
        labelled(store)
        export_labels(store, "first", folder / "events", "events")
    return folder / "events"


EVALUATOR = {"name": "m", "fingerprint": "m", "format": "llama", "attention": "causal", "info": {}}
# Line 1 is the campaign, 2 its guideline, 3 to 5 the traces; then come the events.
BAD_LOGS = [
    lambda rows: change(rows, 1, version=2),
    lambda rows: change(rows, 1, campaign=rows[0]["campaign"] | {"dataset": "x"}),
    lambda rows: change(rows, 1, campaign=rows[0]["campaign"] | {"overlap": "3"}),
    lambda rows: change(rows, 1, campaign=rows[0]["campaign"] | {"view": "x"}),
    # What a later version may write, or another program.
    lambda rows: change(rows, 1, campaign=rows[0]["campaign"] | {"conditions": {"verdict": "odd"}}),
    lambda rows: change(rows, 1, campaign=rows[0]["campaign"] | {"conditions": {"mood": "good"}}),
    lambda rows: change(rows, 1, campaign=rows[0]["campaign"] | {"conditions": {"evaluator": "mini"}}),
    lambda rows: change(rows, 1, campaign=rows[0]["campaign"] | {"evaluator": EVALUATOR | {"name": 3}}),
    lambda rows: change(
        rows, 1, campaign=rows[0]["campaign"] | {"evaluator": EVALUATOR | {"info": {"outputs": "five-way"}}}
    ),
    lambda rows: change(rows, 2, text=""),
    lambda rows: change(rows, 3, trace="four"),
    lambda rows: change(rows, 3, digest="0" * 64),
    lambda rows: change(rows, 4, item=0),
    lambda rows: change(rows, 6, item=9),
    lambda rows: change(rows, 6, slot=9),
    lambda rows: change(rows, 6, step=2),
    lambda rows: change(rows, 6, new="good"),
    lambda rows: change(rows, 6, old="good"),
    lambda rows: change(rows, 6, old=[[1]]),
    lambda rows: change(rows, 6, event="guess"),
    lambda rows: change(rows, 6, moment="today"),
    lambda rows: change(rows, 6, of="never"),
    lambda rows: change(rows, 6, cause="undo"),
    lambda rows: change(rows, 7, key=rows[5]["key"]),
    lambda rows: [*rows, {"hello": 1}],
]


@each("bad", BAD_LOGS)
def test_bad_logs_are_refused_with_their_line(other, exported, tmp_path, bad):
    user, path = local_user(other), write_lines(tmp_path / "bad.jsonl", bad(rows(exported)))
    before = contents(other)
    with refused():
        import_labels(other, path, user)
    assert contents(other) == before


def test_another_campaign_of_the_same_name_is_not_added_to(other, exported, tmp_path):
    user = local_user(other)
    import_labels(other, exported, user)
    shorter = write_lines(tmp_path / "short.jsonl", rows(exported)[:-1])
    before = contents(other)
    with refused():
        import_labels(other, shorter, user)
    # Under another name its events would be told twice.
    with refused():
        import_labels(other, exported, user, campaign="again")
    assert contents(other) == before
