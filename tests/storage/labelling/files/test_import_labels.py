"""Labels read back are the labels that were written, and what is not right changes nothing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from stepsight.core.trace import Trace
from stepsight.storage.backup.backup import count_rows
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.database.store import NotFoundError, Store, open_store
from stepsight.storage.labelling.campaigns import find_campaign, guideline_text, list_campaigns
from stepsight.storage.labelling.files.export_labels import export_labels
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.labelling.queue import assign_next
from stepsight.storage.labelling.results.annotations import iterate_annotations
from stepsight.storage.people.exposures import note_exposure
from stepsight.storage.people.users import Role, find_user, local_user
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.labelled_sums import AGREED, labelled
from tests.storage.labelling.samples import DATASET, TRACES, campaign, label_all, people, take, together
from tests.storage.samples import add, write_lines


@pytest.fixture
def other(tmp_path: Path, sqlite_template: Path) -> Iterator[Store]:
    """A second store, on SQLite, that has the same traces under other numbers."""
    path = tmp_path / "other.db"
    path.write_bytes(sqlite_template.read_bytes())
    with open_store(str(path)) as opened:
        add(opened, [Trace.of("Something else.", ["Yes."], id="x")], "before")
        add(opened, TRACES, DATASET)
        yield opened


def contents(store: Store) -> dict[str, int]:
    with store.read() as session:
        return count_rows(session)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("view", ["whole", "stepwise"])
def test_a_log_is_the_same_after_a_round_trip(store: Store, other: Store, tmp_path: Path, view: str) -> None:
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


def test_a_log_of_a_campaign_with_work_left_is_gone_on_with(store: Store, other: Store, tmp_path: Path) -> None:
    made = campaign(store, TRACES, overlap=2)
    first, second = people(store, 2)
    label_all(store, take(store, made, first), first, ["pos", "neg"])
    take(store, made, second)
    export_labels(store, "first", tmp_path / "one", "events")
    import_labels(other, tmp_path / "one", local_user(other))
    again = find_campaign(other, "first")
    # The second had begun with the trace that the first labelled, and has it still.
    assert take(other, again, find_user(other, second.name)).trace.problem == "What is 1 + 1?"


@pytest.mark.parametrize("view", ["whole", "stepwise"])
@pytest.mark.parametrize("per_annotator", [False, True])
def test_rows_of_answers_are_the_same_after_a_round_trip(
    store: Store, other: Store, tmp_path: Path, view: str, per_annotator: bool
) -> None:
    labelled(store, view=view)
    export_labels(store, "first", tmp_path / "one", "jsonl", per_annotator=per_annotator)
    done = import_labels(other, tmp_path / "one", local_user(other))
    export_labels(other, "first", tmp_path / "two", "jsonl", per_annotator=per_annotator)
    assert (tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()
    # 3 annotators of 3 traces; the decision in force comes with the rows of all.
    assert done.added == 9 + (not per_annotator)
    if not per_annotator:
        with other.read() as session:
            decided = session.scalars(select(EventRow).where(EventRow.kind == "decide")).one()
        assert [what for what, is_seen in decided.visible.items() if is_seen] == ["labels"]
    if view == "stepwise":
        answer = next(iterate_annotations(other, 1))
        assert (answer.first, answer.labels) == (("neg", "unsure"), ("pos", "neg"))


@pytest.mark.parametrize("format", ["events", "jsonl", "prm800k"])
def test_importing_again_adds_nothing(store: Store, other: Store, tmp_path: Path, format: str) -> None:
    labelled(store)
    named = {"campaign": "first", "dataset": DATASET} if format == "prm800k" else {}
    export_labels(store, "first", tmp_path / "one", format, per_annotator=True)
    import_labels(other, tmp_path / "one", local_user(other), **named)
    before = contents(other)
    done = import_labels(other, tmp_path / "one", local_user(other), **named)
    assert (done.added, contents(other)) == (0, before)
    assert "nothing new" in str(done)
    if format != "prm800k":
        # Nor in the store that the file came from.
        before = contents(store)
        assert import_labels(store, tmp_path / "one", local_user(store)).added == 0
        assert {**contents(store), "users": 0} == {**before, "users": 0}


def test_exposed_answers_stay_exposed(store: Store, other: Store, tmp_path: Path) -> None:
    made = campaign(store, TRACES[2:])
    (user,) = people(store, 1)
    task = take(store, made, user)
    note_exposure(store, user, [task.trace.trace_id], "scores", "gold")
    label_all(store, task, user, ["pos"])
    export_labels(store, "first", tmp_path / "one", "jsonl", exposed=True)
    import_labels(other, tmp_path / "one", local_user(other))
    assert [answer.exposed for answer in iterate_annotations(other, 1)] == [{"scores", "gold"}]
    assert together(other, 1) == []


def test_answers_can_go_to_another_campaign_beside_the_first(sqlite_store: Store, tmp_path: Path) -> None:
    labelled(sqlite_store)
    export_labels(sqlite_store, "first", tmp_path / "one", "jsonl")
    import_labels(sqlite_store, tmp_path / "one", local_user(sqlite_store), campaign="copy")
    copy = find_campaign(sqlite_store, "copy")
    assert {one.trace.id: one.labels for one in together(sqlite_store, copy.id)} == AGREED
    # It is closed: nobody is asked to label in it.
    assert copy.closed is not None
    assert {made.name for made in list_campaigns(sqlite_store)} == {"first", "copy"}


def genuine(problem: str, *ratings: int | None, **label: Any) -> dict[str, Any]:
    """A row as OpenAI published them, of the solution of `samples.THREE`."""
    texts = ["A sum.", "It is nice.", "So 4."]
    return {
        "labeler": "340d89bc-f5b7-45e9-b272-909ba68ee363",
        "timestamp": "2022-07-17T16:56:51.323252",
        "generation": 9,
        "is_quality_control_question": False,
        "is_initial_screening_question": False,
        "question": {"problem": problem, "ground_truth_answer": "4"},
        "label": {
            "steps": [
                {
                    "completions": [{"text": text, "rating": rating, "flagged": False}],
                    "human_completion": None,
                    "chosen_completion": 0,
                }
                for text, rating in zip(texts, ratings, strict=False)
            ],
            "total_time": 2500,
            "finish_reason": "solution",
        }
        | label,
    }


def test_genuine_rows_are_labels_of_one_annotator(store: Store, tmp_path: Path) -> None:
    add(store, TRACES, DATASET)
    path = write_lines(tmp_path / "prm.jsonl", [genuine("What is 2 + 2?", 1, -1, finish_reason="found_error")])
    import_labels(store, path, local_user(store), campaign="prm", dataset=DATASET, annotator="openai")
    (answer,) = iterate_annotations(store, find_campaign(store, "prm").id)
    assert (answer.user, answer.external_id, answer.labels) == ("openai", "three", ("pos", "neg", None))
    assert (answer.submitted.isoformat(), answer.seconds) == ("2022-07-17T16:56:51.323252+00:00", 2.5)
    made = find_campaign(store, "prm")
    assert made.overlap == 1
    with refused(NotFoundError):
        guideline_text(store, made.id, 2)
    # Without a name it is the row's labeler, whose labels of the same trace are others beside the first.
    path = write_lines(tmp_path / "prm.jsonl", [genuine("What is 2 + 2?", 0, 0, 1, finish_reason="bad_problem")])
    import_labels(store, path, local_user(store), campaign="prm")
    answers = list(iterate_annotations(store, find_campaign(store, "prm").id))
    assert [(a.user[:6], a.labels, a.flag) for a in answers] == [
        ("openai", ("pos", "neg", None), None),
        ("340d89", ("neu", "neu", "pos"), "bad problem"),
    ]


def test_a_row_of_prm800k_must_fit_one_trace(sqlite_store: Store, tmp_path: Path) -> None:
    add(sqlite_store, TRACES, DATASET)
    user = local_user(sqlite_store)

    def check(row: dict[str, Any], **named: str) -> None:
        path = write_lines(tmp_path / "prm.jsonl", [row])
        before = contents(sqlite_store)
        with refused():
            import_labels(sqlite_store, path, user, **named)
        assert contents(sqlite_store) == before

    row, both = genuine("What is 2 + 2?", 1), {"campaign": "prm", "dataset": DATASET}
    check(row)
    check(row, campaign="prm")
    check(genuine("What is 2 + 3?", 1), **both)
    check(genuine("What is 1 + 1?", 1), **both)
    check(row | {"timestamp": "soon"}, **both)
    twin = Trace.of("What is 2 + 2?", ["A sum.", "No."], id="twin")
    add(sqlite_store, [twin], DATASET)
    check(row, **both)


def change(rows: list[dict[str, Any]], number: int, **changes: Any) -> list[dict[str, Any]]:
    return [row | changes if place == number else row for place, row in enumerate(rows, start=1)]


def change_answer(rows: list[dict[str, Any]], **changes: Any) -> list[dict[str, Any]]:
    """With another second answer to the second trace."""
    first, second, *others = rows[1]["answers"]
    return change(rows, 2, answers=[first, second | changes, *others])


BAD_ANSWERS = [
    lambda rows: change(rows, 2, id="four"),
    lambda rows: change(rows, 2, dataset="sum"),
    lambda rows: change(rows, 2, digest="0" * 64),
    lambda rows: change(rows, 2, campaign="second"),
    lambda rows: change(rows, 2, chosen="best"),
    lambda rows: change(rows, 2, answers=3),
    lambda rows: change(rows, 2, answers=[3]),
    lambda rows: change_answer(rows, labels=["pos"]),
    lambda rows: change_answer(rows, labels=["pos", "good", None]),
    lambda rows: change_answer(rows, errors=["x" * 41, None, None]),
    lambda rows: change_answer(rows, comments=["", None, None]),
    lambda rows: change_answer(rows, submitted="today"),
    lambda rows: change_answer(rows, submitted="2026-01-01T10:00:00"),
    lambda rows: change_answer(rows, seconds=-1),
    lambda rows: change_answer(rows, guideline=0),
    lambda rows: change_answer(rows, exposed=["sun"]),
    lambda rows: change_answer(rows, view="stepwise"),
    lambda rows: change_answer(rows, annotator=" "),
    lambda rows: change_answer(rows, annotator="annotator 1"),
    lambda rows: [*rows, "no"],
    lambda rows: [{"labels": []}],
    lambda rows: [{"id": "1", "problem": "p", "steps": ["a"]}],
    lambda rows: [],
]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of each format."""
    folder = tmp_path_factory.mktemp("exported")
    with open_store(str(folder / "store.db")) as store:
        labelled(store)
        for format in ("jsonl", "events"):
            export_labels(store, "first", folder / format, format)
    return folder


@each("bad", BAD_ANSWERS)
def test_bad_answers_are_refused_with_their_line(other: Store, exported: Path, tmp_path: Path, bad: Any) -> None:
    user, path = local_user(other), write_lines(tmp_path / "bad.jsonl", bad(rows(exported / "jsonl")))
    before = contents(other)
    with refused():
        import_labels(other, path, user)
    assert contents(other) == before


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
    lambda rows: change(rows, 6, visible={"gold": 1}),
    lambda rows: change(rows, 6, event="guess"),
    lambda rows: change(rows, 6, moment="today"),
    lambda rows: change(rows, 6, of="never"),
    lambda rows: change(rows, 6, cause="undo"),
    lambda rows: change(rows, 7, key=rows[5]["key"]),
    lambda rows: [*rows, {"hello": 1}],
    # The trace has two steps.
    lambda rows: change(rows, 6, event="borders", step=None, new=[0, 2]),
]


@each("bad", BAD_LOGS)
def test_bad_logs_are_refused_with_their_line(other: Store, exported: Path, tmp_path: Path, bad: Any) -> None:
    user, path = local_user(other), write_lines(tmp_path / "bad.jsonl", bad(rows(exported / "events")))
    before = contents(other)
    with refused():
        import_labels(other, path, user)
    assert contents(other) == before


def test_another_campaign_of_the_same_name_is_not_added_to(other: Store, exported: Path, tmp_path: Path) -> None:
    user = local_user(other)
    import_labels(other, exported / "events", user)
    shorter = write_lines(tmp_path / "short.jsonl", rows(exported / "events")[:-1])
    before = contents(other)
    with refused():
        import_labels(other, shorter, user)
    # Under another name its events would be told twice.
    with refused():
        import_labels(other, exported / "events", user, campaign="again")
    assert contents(other) == before


def test_answers_that_the_campaign_has_otherwise_are_refused(other: Store, exported: Path, tmp_path: Path) -> None:
    user = local_user(other)
    import_labels(other, exported / "jsonl", user)
    before = contents(other)
    changed = change_answer(rows(exported / "jsonl"), labels=["neg", "neg", "neg"], first=["neg", "neg", "neg"])
    with refused():
        import_labels(other, write_lines(tmp_path / "a.jsonl", changed), user)
    (decision,) = rows(exported / "jsonl")[1]["decisions"]
    decided = change(rows(exported / "jsonl"), 2, decisions=[decision | {"label": "neg"}])
    with refused():
        import_labels(other, write_lines(tmp_path / "b.jsonl", decided), user)
    assert contents(other) == before


def test_answers_fill_the_free_slots_of_a_campaign(other: Store, exported: Path) -> None:
    made = campaign(other, None, overlap=3)
    import_labels(other, exported / "jsonl", local_user(other))
    assert contents(other)["slots"] == 9
    assert assign_next(other, made.id, people(other, 4)[3]) is None
