"""AgentProcessBench as it is published: nothing is lost, and its metrics are those of its own script."""

import json
from pathlib import Path
from typing import Any

from stepsight.core.judgment import Mode
from stepsight.storage.database.store import Store
from stepsight.storage.exports.agent_messages import chat_messages
from stepsight.storage.exports.judgment_files import TURNS, judgment_parts
from stepsight.storage.judgments.evaluators import evaluators_of
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.judgments.score_files import import_scores
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from stepsight.training.evaluate.evaluation import evaluate, with_thresholds
from tests.storage.samples import evaluator, judge


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def in_order(labels: dict[str, int]) -> list[int]:
    return [labels[key] for key in sorted(labels, key=int)]


def counted(gold: list[dict[str, Any]], said: list[dict[str, Any]]) -> tuple[float, float]:
    """The two metrics as the benchmark's script counts them, over all trajectories: labels of the same key, and the
    least key of a -1."""
    by_key = {(one["query_index"], one["sample_index"]): one["step_labels"] for one in said}
    pairs = [(one["step_labels"], by_key[one["query_index"], one["sample_index"]]) for one in gold]
    hits = sum(other.get(key) == label for own, other in pairs for key, label in own.items())
    first = [[min((int(key) for key in one if one[key] == -1), default=-1) for one in pair] for pair in pairs]
    return hits / sum(len(own) for own, _ in pairs), sum(one == other for one, other in first) / len(pairs)


def test_the_files_of_the_benchmark_come_in_whole_and_give_its_own_figures(
    data: Path, sqlite_store: Store, tmp_path: Path
) -> None:
    folder = data / "agentprocessbench"
    gold = rows_of(folder / "hotpotqa.jsonl")
    assert import_file(sqlite_store, "agentprocessbench", folder / "hotpotqa.jsonl").added == 200
    dataset = find_dataset(sqlite_store, "agentprocessbench")
    for row, trace in zip(gold, iterate_traces(sqlite_store, dataset.id), strict=True):
        assert chat_messages(trace)[0] == row["messages"]
        assert [label.value - 1 for label in trace.labels if label is not None] == in_order(row["step_labels"])
    files = sorted((folder / "judged").glob("*.jsonl"))
    assert len(files) == 4
    for path in files:
        import_scores(sqlite_store, dataset.name, path, path.stem)
    # One whose verdicts are not sure, and two by which the verdicts come in again.
    traces = list(iterate_traces(sqlite_store, dataset.id))
    save_judgments(sqlite_store, evaluator(sqlite_store, "unsure").id, [judge(one, "offline") for one in traces])
    for name, file in (("GPT-5.2", tmp_path / "whole.jsonl"), ("unsure", tmp_path / "unsure.jsonl")):
        (by,) = [one.id for one in evaluators_of(sqlite_store, dataset.id) if one.name == name]
        ids = [one.trace_id for one in traces]
        file.write_bytes(b"".join(judgment_parts(sqlite_store, dataset, ids, TURNS, [by])))
        import_scores(sqlite_store, dataset.name, file, f"{name} again")
    again = {one["record_id"]: one for one in rows_of(tmp_path / "whole.jsonl")}
    for row in rows_of(folder / "judged" / "GPT-5.2.jsonl"):
        reasons = {key: text for key, text in row["explanations"]["steps"].items() if text}
        said = again[row["record_id"]]
        assert (said["step_labels"], said["explanations"]["steps"]) == (row["step_labels"], reasons)
    models = [with_thresholds(sqlite_store, dataset, one) for one in evaluators_of(sqlite_store, dataset.id)]
    # The first of an evaluator's rows has the figures that do not depend on the kind of error.
    rows = evaluate(sqlite_store, dataset, models, [Mode.OFFLINE], draws=10).rows

    def figures(name: str) -> tuple[float | None, ...]:
        measured = next(row.measured for row in rows if row.evaluator == name)
        return tuple(measured[metric].value.number for metric in ("step_micro_acc", "firsterroracc"))

    for path in files:
        assert figures(path.stem) == counted(gold, rows_of(path))
    assert figures("GPT-5.2 again") == figures("GPT-5.2")
    assert figures("unsure again") == figures("unsure") == counted(gold, rows_of(tmp_path / "unsure.jsonl"))
