"""Scores with a step left out: files of both forms, what is refused, what is kept, and seven public evaluators."""

from concurrent.futures import ThreadPoolExecutor
from time import sleep
from typing import Any

import numpy as np
import pytest

from stepsight.core.evidence import LeaveOneOut
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.judgment_record import judgment_record
from stepsight.core.scores import Hindsight, Outputs, StepScores
from stepsight.core.trace import Step, Trace
from stepsight.storage.judgments.evaluators import add_evaluator, list_evaluators
from stepsight.storage.judgments.judgments import read_judgments
from stepsight.storage.judgments.left_outs import (
    add_left_out,
    evaluators_with_left_out,
    find_left_out,
    measure_needed,
)
from stepsight.storage.judgments.published_scores import validity_rows
from stepsight.storage.judgments.score_files import import_scores
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset
from tests.core.test_judgment_record import described
from tests.messages import refused
from tests.storage.samples import add, write_lines

TRACES = tuple(
    Trace(id, "q", tuple(Step((text,)) for text in steps))
    for id, steps in (("p/0", "xyz"), ("p/1", "xy"), ("p/2", "x"))
)
OURS: list[dict[str, Any]] = [
    {"id": "p/0", "left_out": 1, "whole": [0.9, 0.8, 0.7], "scores": [0.2, 0.6]},
    {"id": "p/0", "left_out": 2, "whole": [0.9, 0.8, 0.7], "scores": [0.9, 0.3]},
]
THEIRS = {
    "problem_id": "p", "candidate_index": 1, "deleted_step_index_0based": 1,
    "clean_step_scores": [0.9, 0.8], "modified_step_scores": [0.9],
}  # fmt: skip


@pytest.fixture
def traces(store):
    return add(store, TRACES)


def imported(store, traces, path, rows):
    return str(import_scores(store, traces[0].dataset, write_lines(path / "scores.jsonl", rows), "prm"))


def test_rows_of_both_forms_are_kept_with_the_judgment_that_they_hold(store, traces, tmp_path):
    said = imported(store, traces, tmp_path, [*OURS, THEIRS])
    assert said.startswith(f"prm on {traces[0].dataset}: 2 traces, matched by id")
    (evaluator,) = list_evaluators(store)
    found = find_left_out(store, evaluator.fingerprint, traces[0])
    assert found is not None
    assert found.known == (0, 1)
    np.testing.assert_allclose(found.validity[0, 1:], [0.2, 0.6], atol=1e-6)
    np.testing.assert_allclose(found.validity[1, [0, 2]], [0.9, 0.3], atol=1e-6)
    (judgment,) = read_judgments(store, traces[0])
    assert judgment.mode == Mode.OFFLINE
    np.testing.assert_allclose(judgment.result.probs, found.whole.probs)
    assert evaluators_with_left_out(store, traces[1].trace_id) == {evaluator.id}
    # Another file of the same evaluator adds to them.
    imported(store, traces, tmp_path, [OURS[0] | {"left_out": 3, "scores": [0.9, 0.8]}])
    again = find_left_out(store, evaluator.fingerprint, traces[0])
    assert again is not None
    assert again.known == (0, 1, 2)


def test_two_files_of_one_evaluator_at_once_are_both_kept(store, traces, tmp_path):
    imported(store, traces, tmp_path, OURS[:1])
    (evaluator,) = list_evaluators(store)
    columns = ("name", "fingerprint", "format", "attention", "info")
    with ThreadPoolExecutor(1) as pool:
        with store.write() as session:
            add_evaluator(session, {key: getattr(evaluator, key) for key in columns}, lock=True)
            whole = StepScores(validity_rows(np.array([0.9, 0.8, 0.7])))
            rows = {2: validity_rows(np.array([0.9, 0.8]))}
            add_left_out(session, evaluator.id, traces[0], LeaveOneOut.of(whole, rows))
            other = pool.submit(imported, store, traces, tmp_path, OURS[1:])
            sleep(0.2)
        other.result()
    found = find_left_out(store, evaluator.fingerprint, traces[0])
    assert found is not None
    assert found.known == (0, 1, 2)


def test_an_evaluator_whose_earlier_scores_stay_is_causal(store, traces, tmp_path):
    # Of the first step nothing comes earlier, so nothing is known yet.
    imported(store, traces, tmp_path, OURS[:1])
    assert list_evaluators(store)[0].attention == "unknown"
    imported(store, traces, tmp_path, OURS[1:])
    assert list_evaluators(store)[0].attention == "causal"


def test_earlier_scores_that_change_say_that_it_reads_on(store, traces, tmp_path):
    imported(store, traces, tmp_path, [OURS[1] | {"scores": [0.8, 0.3]}])
    assert list_evaluators(store)[0].attention == "unknown"


def test_an_evaluator_that_looked_causal_is_so_no_longer_once_an_earlier_score_changes(store, traces, tmp_path):
    for row, attention in ((OURS[1], "causal"), (OURS[0] | {"left_out": 3, "scores": [0.5, 0.8]}, "unknown")):
        imported(store, traces, tmp_path, [row])
        assert list_evaluators(store)[0].attention == attention
    # Nor does a later file without such a change make it so again.
    imported(store, traces, tmp_path, [OURS[0]])
    imported(store, traces, tmp_path, [OURS[1]])
    assert list_evaluators(store)[0].attention == "unknown"


def test_an_evaluator_that_looked_causal_is_so_no_longer_once_a_triangle_changes(store, traces, tmp_path):
    about = described(Outputs.VALIDITY)
    imported(store, traces, tmp_path, [OURS[1]])
    for rows, attention in (([[0.5], [0.5, 0.5]], "causal"), ([[0.5], [0.2, 0.5], [0.2, 0.5, 0.5]], "unknown")):
        trace = traces[3 - len(rows)]
        triangle = Hindsight(tuple(validity_rows(np.array(row)) for row in rows))
        row = judgment_record(Judgment(trace, Mode.HINDSIGHT, triangle), about).model_dump(mode="json")
        file = write_lines(tmp_path / f"{len(rows)}.jsonl", [row])
        import_scores(store, add(store, TRACES, str(len(rows)))[0].dataset, file, "prm")
        assert list_evaluators(store)[0].attention == attention


@pytest.mark.parametrize(
    "rows",
    [
        [OURS[0] | {"left_out": 4}],
        [OURS[0] | {"left_out": 0}],
        [OURS[0] | {"left_out": True}],
        [OURS[0] | {"scores": [0.2]}],
        [OURS[0] | {"scores": 0.2}],
        [OURS[0] | {"scores": [[0.1, 0.1, 0.8], [0.1, 0.1, 0.8]]}],
        [OURS[0] | {"gap": "placeholder"}],
        [OURS[0], OURS[0]],
        [OURS[0], OURS[1] | {"whole": [0.9, 0.8, 0.6]}],
        [OURS[0], {"id": "p/1", "scores": [0.9, 0.8]}],
        [{key: value for key, value in OURS[0].items() if key != "whole"}],
        [THEIRS | {"deleted_step_index_0based": 2}],
        [THEIRS | {"candidate_index": "first"}],
        [THEIRS | {"clean_step_scores": [0.9, 0.8, 0.7], "modified_step_scores": [0.9, 0.8]}],
    ],
    ids=[
        "past the end",
        "step 0",
        "no number",
        "too few",
        "of a solution",
        "of two kinds",
        "a sentence in its place",
        "twice",
        "another whole",
        "a row without",
        "no whole",
        "theirs past the end",
        "theirs without an id",
        "another length",
    ],
)
def test_a_row_that_contradicts_itself_is_refused_and_nothing_is_stored(sqlite_store, tmp_path, rows):
    traces = add(sqlite_store, TRACES)
    with refused():
        imported(sqlite_store, traces, tmp_path, rows)
    assert list_evaluators(sqlite_store) == []
    assert read_judgments(sqlite_store, traces[0]) == []


def test_other_scores_of_the_same_trace_are_refused(sqlite_store, tmp_path):
    traces = add(sqlite_store, TRACES)
    imported(sqlite_store, traces, tmp_path, OURS)
    with refused():
        imported(sqlite_store, traces, tmp_path, [OURS[0] | {"scores": [0.3, 0.6]}])
    # Nor may the scores with nothing left out differ from those that were imported, here of another step.
    with refused():
        imported(sqlite_store, traces, tmp_path, [OURS[0] | {"left_out": 3, "whole": [0.9, 0.8, 0.1]}])
    imported(sqlite_store, traces, tmp_path, OURS)


# By the largest fall of a later step without the one that is left out: the AUC, and its interval over 164 problems.
PUBLIC = {
    "qwen_prm": (0.762, 0.691, 0.829), "math_shepherd": (0.728, 0.661, 0.799),
    "rlhflow_prm": (0.758, 0.682, 0.824), "skywork_prm": (0.720, 0.636, 0.798),
    "skywork_prm_1_5b": (0.713, 0.635, 0.788), "internlm2_7b_reward": (0.721, 0.644, 0.802),
    "internlm2_1_8b_reward": (0.780, 0.709, 0.849),
}  # fmt: skip


@pytest.mark.slow
def test_necessary_steps_of_strict_prmbench_are_told_from_inert_ones(sqlite_store, data, tmp_path):
    folder = data / "prm-scores" / "deletions"
    edits = tmp_path / "edits.jsonl"
    edits.write_bytes(
        b"".join((folder / f"gsm8k_{kind}_pairs.jsonl").read_bytes() for kind in ("necessary", "inert"))
    )
    import_file(sqlite_store, "strict-prmbench", edits)
    for name in PUBLIC:
        for kind in ("necessary", "inert"):
            import_scores(sqlite_store, "strict-prmbench", folder / f"{name}_gsm8k_{kind}.jsonl", name)
    dataset = find_dataset(sqlite_store, "strict-prmbench")
    assert dataset.traces == 383
    assert {evaluator.attention for evaluator in list_evaluators(sqlite_store)} == {"causal"}
    evaluators = [(one.name, one.id) for one in list_evaluators(sqlite_store)]
    measured = measure_needed(sqlite_store, dataset, evaluators)
    assert {(found.needed, found.others, found.problems) for found in measured.values()} == {(200, 200, 164)}
    figures = {name: (found.auc.number, found.auc.low, found.auc.high) for name, found in measured.items()}
    assert {name: tuple(round(number, 3) for number in figure) for name, figure in figures.items()} == PUBLIC


def test_only_whole_numbers_in_lists_name_needed_steps(sqlite_store, tmp_path):
    rows = [{"id": "a", "problem": "p", "steps": ["x", "y", "z"], "necessary": ["x", 1], "inert": [2], "other": 1},
            {"id": "b", "problem": "p", "steps": ["x", "y", "z"], "necessary": 3, "inert": [1]}]  # fmt: skip
    import_file(sqlite_store, "jsonl", write_lines(tmp_path / "traces.jsonl", rows), "d")
    scores = [{"id": row["id"], "left_out": step, "whole": [0.9, 0.9, 0.9], "scores": [0.9, 0.9]}
              for row in rows for step in (1, 2, 3)]  # fmt: skip
    import_scores(sqlite_store, "d", write_lines(tmp_path / "scores.jsonl", scores), "e")
    (evaluator,) = list_evaluators(sqlite_store)
    (found,) = measure_needed(sqlite_store, find_dataset(sqlite_store, "d"), [("e", evaluator.id)]).values()
    assert (found.needed, found.others) == (1, 2)
