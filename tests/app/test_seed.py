import json

import pytest

from app.evaluators import Evaluators
from app.seed import DEMO, seed
from core.assets import asset
from core.jsonl import parse_trace, read_file
from core.judgment import Mode
from storage.imports import import_file
from storage.judgments import read_judgments
from storage.queries import find_dataset, iterate_traces, list_datasets
from tests.checkpoints import write_evaluator
from tests.storage.samples import plain_row, write_lines

SHIPPED = asset("traces", "demo.jsonl")


def traces(store):
    return list(iterate_traces(store, find_dataset(store, DEMO).id))


def judgments(store):
    """Of every trace: evaluator and mode of each judgment, and when it was made."""
    return [
        [(found.evaluator.name, found.mode, found.created) for found in read_judgments(store, trace)]
        for trace in traces(store)
    ]


@pytest.fixture
def seeded(sqlite_store, evaluators):
    seed(sqlite_store, evaluators)
    return sqlite_store


def test_the_demo_traces_are_there_with_every_evaluators_judgment(seeded):
    rows = [parse_trace(row, "here") for _, row in read_file(SHIPPED)]
    assert [trace.digest for trace in traces(seeded)] == [row.digest for row in rows]
    assert len(rows) > 5
    for found in judgments(seeded):
        assert [item[:2] for item in found] == [("tiny", Mode.HINDSIGHT), ("tiny-causal", Mode.HINDSIGHT)]


def test_the_evidence_of_a_demo_trace_comes_after_the_step_it_exposes():
    evident = 0
    for number, row in read_file(SHIPPED):
        trace = parse_trace(row, f"line {number}")
        evidence = trace.meta["evidence"]
        if evidence is not None:
            evident += trace.first_error is not None
            assert (trace.first_error or 0) < evidence < len(trace.steps), trace.id
    assert evident > 3


def test_seeding_again_changes_nothing(seeded, evaluators):
    before = traces(seeded), judgments(seeded), list_datasets(seeded)
    seed(seeded, evaluators)
    assert (traces(seeded), judgments(seeded), list_datasets(seeded)) == before


def test_a_new_evaluator_judges_what_is_there(seeded, tmp_path):
    before = judgments(seeded)
    other = write_evaluator(tmp_path / "other", seed=1, max_position_embeddings=1024)
    seed(seeded, Evaluators([other], shipped=False))
    after = judgments(seeded)
    assert [[item for item in found if item[0] != "other"] for found in after] == before
    assert all(len(found) == 3 for found in after)


def test_a_persons_own_dataset_of_that_name_is_left_alone(sqlite_store, evaluators, tmp_path):
    import_file(sqlite_store, "jsonl", write_lines(tmp_path / "mine.jsonl", [plain_row(1)]), DEMO)
    seed(sqlite_store, evaluators)
    assert [trace.id for trace in traces(sqlite_store)] == ["1"]
    assert judgments(sqlite_store) == [[]]


def test_demo_traces_of_an_earlier_version_do_not_stop_the_application(sqlite_store, evaluators, tmp_path):
    rows = [row for _, row in read_file(SHIPPED)][:3]
    rows[0]["problem"] += " (as it was)"
    (tmp_path / "demo.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    import_file(sqlite_store, "jsonl", tmp_path / "demo.jsonl", DEMO)
    seed(sqlite_store, evaluators)
    assert [trace.problem for trace in traces(sqlite_store)] == [row["problem"] for row in rows]
    assert all(len(found) == 2 for found in judgments(sqlite_store))


def test_an_evaluator_of_a_short_context_judges_what_it_can_read(sqlite_store, tmp_path):
    short = Evaluators([write_evaluator(tmp_path / "short", max_position_embeddings=260)], shipped=False)
    seed(sqlite_store, short)
    scorer = short.scorer("short")
    fits = [len(scorer.evaluator.encoder.encode(trace)) <= 260 for trace in traces(sqlite_store)]
    assert [len(found) == 1 for found in judgments(sqlite_store)] == fits
    assert set(fits) == {False, True}
