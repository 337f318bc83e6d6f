"""The table of needed steps, as `evaluate` prints it."""

import json

from stepsight.core.trace import Trace
from stepsight.storage.judgments.evaluators import list_evaluators
from stepsight.storage.judgments.score_files import import_scores
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.report.stored_tables import needed_table
from tests.storage.samples import add, write_lines

TRACES = [Trace.of(f"q{n}", ["x", "y", "z"], ["pos", "neu", "pos"], id=f"t{n}") for n in range(3)]


def test_evaluate_has_the_auc_of_imported_scores(command, sqlite_store, tmp_path):
    add(sqlite_store, TRACES)
    dataset = find_dataset(sqlite_store, "sums")
    falls = {1: (0.2, 0.7), 2: (0.9, 0.6)}
    rows = [
        {"id": trace.id, "left_out": step, "whole": [0.9, 0.8, 0.7], "scores": scores}
        for trace in TRACES
        for step, scores in falls.items()
    ]
    import_scores(sqlite_store, "sums", write_lines(tmp_path / "scores.jsonl", rows), "prm")
    (prm,) = list_evaluators(sqlite_store)
    table = needed_table(sqlite_store, dataset, [("prm", prm.id)])
    assert table is not None
    ((name, auc, *counts),) = table.rows
    # Without step 1, which is needed, step 2 loses 0.6; without step 2 the last one loses 0.1.
    assert (name, auc.number, auc.low, auc.high, *counts) == ("prm", 1, 1, 1, 3, 3, 3)
    assert needed_table(sqlite_store, dataset, []) is None
    asked = ("evaluate", "--dataset", "sums", "--draws", 10, "--db", sqlite_store.name)
    code, out, _ = command(*asked)
    assert code == 0
    assert "sums: the largest fall of a later step without a step, needed against other steps" in out
    (row,) = json.loads(command(*asked, "--json")[1])["needed_steps"]
    assert (row["evaluator"], row["needed"]) == ("prm", 3)
