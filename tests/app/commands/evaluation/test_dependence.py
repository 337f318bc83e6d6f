"""What the steps of a dataset rest on, from the command line: scored once, listed, written, and read back."""

import json
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import select

from stepsight.core.trace import Trace
from stepsight.storage.database.schema import LeftOutScoresRow
from stepsight.storage.database.store import Store
from tests.storage.samples import add, write_lines

Command = Callable[..., tuple[int, str, str]]
TRACES = (Trace.of("1 + 1?", ["It is 2.", "Check: 2 - 1 = 1.", "Done."], id="a"), Trace.of("1 + 2?", ["3"], id="b"))


def test_a_dataset_is_scored_without_each_step_once(
    command: Command, sqlite_store: Store, tiny_causal: Path, tmp_path: Path
) -> None:
    add(sqlite_store, TRACES)
    file = tmp_path / "left-out.jsonl"
    where = ("--dataset", "sums", "--db", sqlite_store.name)
    code, told, err = command("dependence", "--evaluator", tiny_causal, "--output", file, *where)
    assert (code, err) == (0, "")
    assert told.startswith("Steps before the last were left out one at a time (deleted).")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(row["id"], row["mode"], len(row["offline"]["steps"])) for row in rows] == [
        ("a", "offline", 3), ("b", "offline", 1),
    ]  # fmt: skip
    left_out = rows[0]["left_out"]
    assert [(one["step"], one["gap"], len(one["cells"])) for one in left_out] == [
        (1, "deleted", 3), (2, "deleted", 3), (3, "deleted", 3),
    ]  # fmt: skip
    assert rows[1]["left_out"] is None

    def made() -> list[object]:
        with sqlite_store.read() as session:
            return list(session.scalars(select(LeftOutScoresRow.created).order_by(LeftOutScoresRow.trace_id)))

    before = made()
    assert len(before) == 2
    assert command("dependence", "--evaluator", tiny_causal, *where) == (0, told, "")
    assert made() == before
    assert command("import-scores", "sums", file, "--evaluator", "theirs", "--db", sqlite_store.name)[0] == 0
    assert command("dependence", "--evaluator", "theirs", *where) == (0, told, "")


def test_an_evaluator_without_such_scores_is_named(command: Command, sqlite_store: Store) -> None:
    add(sqlite_store, TRACES)
    where = ("--dataset", "sums", "--db", sqlite_store.name)
    code, _, err = command("dependence", "--evaluator", "nobody", *where)
    assert (code, err) == (2, "stepsight dependence: There is no evaluator 'nobody' in the store. It has none.\n")


def test_falls_are_compared_with_gold_for_every_evaluator(
    command: Command, sqlite_store: Store, tmp_path: Path
) -> None:
    gold = ("pos", "neu", "pos")
    add(sqlite_store, [Trace.of(f"q{n}", ["a", "b", "c"], gold, id=str(n)) for n in range(2)])
    rows = [
        {"id": str(n), "left_out": step, "whole": [0.9, 0.9, 0.9], "scores": scores}
        for n in range(2)
        for step, scores in ((1, [0.9, 0.2]), (2, [0.9, 0.8 + n / 10]))
    ]
    where = ("--dataset", "sums", "--db", sqlite_store.name)
    assert command("dependence", "--against-gold", *where)[0] == 2
    command("import-scores", "sums", write_lines(tmp_path / "x.jsonl", rows), "--evaluator", "prm", *where[2:])
    code, told, err = command("dependence", "--against-gold", *where)
    assert (code, err) == (0, "")
    assert told.splitlines() == [
        "AUC of the largest fall of a later step, needed against other steps, with its 95 % interval over problems"
        " (deleted):",
        "  prm  1.000 [1.000, 1.000]  2 needed, 2 others, 2 problems",
    ]


def test_an_evaluator_without_scores_of_steps_is_refused(command: Command, sqlite_store: Store) -> None:
    add(sqlite_store, TRACES)
    where = ("--dataset", "sums", "--db", sqlite_store.name)
    code, _, err = command("dependence", "--evaluator", "equations", *where)
    assert (code, "equations has no scores of steps" in err) == (2, True)
