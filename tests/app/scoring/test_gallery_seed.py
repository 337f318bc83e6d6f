import json

import pytest

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.scoring.gallery_seed import seed
from stepsight.core.files.jsonl import read_file
from stepsight.core.judgment import Mode
from stepsight.storage.changes import ChangeableDataset, ChangeableScores
from stepsight.storage.judgments.judgments import read_judgments
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset, iterate_traces, list_datasets
from stepsight.training.evaluate.strength import DATASET, GALLERY, read_gallery
from tests.checkpoints import write_evaluator
from tests.storage.samples import plain_row, write_lines


def traces(store):
    return list(iterate_traces(store, find_dataset(store, DATASET).id))


def judgments(store):
    """Of every trace: evaluator and mode of each judgment, and when it was made."""
    return [
        [(found.evaluator.name, found.mode, found.created) for found in read_judgments(store, trace)]
        for trace in traces(store)
    ]


@pytest.fixture
def seeded(sqlite_store, evaluators):
    seed(sqlite_store, evaluators, evaluators.names)
    return sqlite_store


def test_the_gallery_is_there_once_with_the_judgments_of_those_that_are_named(sqlite_store, evaluators):
    seed(sqlite_store, evaluators, ["tiny-causal"])
    assert [trace.digest for trace in traces(sqlite_store)] == [trace.digest for trace in read_gallery()]
    before = traces(sqlite_store), judgments(sqlite_store), list_datasets(sqlite_store)
    assert {row[:2] for rows in before[1] for row in rows} == {("tiny-causal", Mode.HINDSIGHT)}
    seed(sqlite_store, evaluators, ["tiny-causal"])
    assert (traces(sqlite_store), judgments(sqlite_store), list_datasets(sqlite_store)) == before


def test_an_evaluator_with_other_weights_judges_anew(seeded, tmp_path):
    """One of a newer version: the judgments of its predecessor are not taken for its own."""
    before = judgments(seeded)
    newer = Evaluators([write_evaluator(tmp_path / "tiny", seed=1, max_position_embeddings=1024)], shipped=False)
    seed(seeded, newer, newer.names)
    for trace, old in zip(traces(seeded), before, strict=True):
        prints = {found.evaluator.fingerprint for found in read_judgments(seeded, trace)}
        assert len(prints) == len(old) + 1 == 3
        assert newer.scorer("tiny").evaluator.fingerprint in prints


def test_a_persons_own_dataset_of_that_name_is_left_alone(sqlite_store, evaluators, tmp_path):
    import_file(sqlite_store, "jsonl", write_lines(tmp_path / "mine.jsonl", [plain_row(1)]), DATASET)
    seed(sqlite_store, evaluators, evaluators.names)
    assert [trace.id for trace in traces(sqlite_store)] == ["1"]
    assert judgments(sqlite_store) == [[]]


def test_what_people_deleted_does_not_come_back(seeded, evaluators):
    ChangeableScores(DATASET, 0, "tiny").delete(seeded)
    seed(seeded, evaluators, evaluators.names)
    assert {item[0] for found in judgments(seeded) for item in found} == {"tiny-causal"}
    ChangeableDataset(DATASET).delete(seeded)
    seed(seeded, evaluators, evaluators.names)
    assert list_datasets(seeded) == []


def test_the_gallery_of_an_earlier_version_does_not_stop_the_application(sqlite_store, evaluators, tmp_path):
    rows = [row for _, row in read_file(GALLERY)][:3]
    rows[0]["problem"] += " (as it was)"
    (tmp_path / GALLERY.name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    import_file(sqlite_store, "jsonl", tmp_path / GALLERY.name, DATASET)
    seed(sqlite_store, evaluators, evaluators.names)
    assert [trace.problem for trace in traces(sqlite_store)] == [row["problem"] for row in rows]
    assert all(len(found) == 2 for found in judgments(sqlite_store))


def test_an_evaluator_of_a_short_context_judges_what_it_can_read(sqlite_store, tmp_path):
    short = Evaluators([write_evaluator(tmp_path / "short", max_position_embeddings=350)], shipped=False)
    seed(sqlite_store, short, short.names)
    scorer = short.scorer("short")
    fits = [len(scorer.evaluator.encoder.encode(trace)) <= 350 for trace in traces(sqlite_store)]
    assert [len(found) == 1 for found in judgments(sqlite_store)] == fits
    assert set(fits) == {False, True}
