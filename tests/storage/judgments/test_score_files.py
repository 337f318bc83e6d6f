"""Released score files: what matches, what does not, and that the published figures come out of the store."""

import json
from typing import Any

import numpy as np
import pytest
from sqlalchemy import func, select

from stepsight.core.judgment import Mode
from stepsight.core.judgment_record import judgment_record
from stepsight.core.metrics.binary import auc, macro_f1
from stepsight.core.metrics.reasoneval import Errors, Level, items
from stepsight.core.scores import Outputs
from stepsight.core.trace import Step, Trace
from stepsight.storage.database.schema import JudgmentRow
from stepsight.storage.judgments.columns import read_gold, read_table
from stepsight.storage.judgments.evaluators import list_evaluators
from stepsight.storage.judgments.judgments import read_judgments
from stepsight.storage.judgments.score_files import import_scores, parse_scores
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset
from tests.cases import each
from tests.core.test_judgment_record import KINDS, TRACE, described
from tests.messages import refused
from tests.storage.samples import add, find_evaluator, find_judgment, write_lines

TRACES = (
    Trace("a", "q", (Step(("x",), valid=True), Step(("y", "z"), valid=False))),
    Trace("b", "q", (Step(("x",), valid=True),)),
    Trace("c", "q", (Step(("x",), valid=True),)),
)
SCORES = {"a": [0.9, 0.8, 0.1], "b": [0.7], "c": [0.6]}


@pytest.fixture
def traces(store):
    return add(store, TRACES)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "scores.json"


def rows(*ids, named=True):
    return [({"id": id} if named else {}) | {"scores": SCORES[id]} for id in ids]


def count(store):
    with store.read() as session:
        return session.scalar(select(func.count()).select_from(JudgmentRow)) or 0


def validities(store, traces):
    """What each trace was judged, to one digit."""
    found = []
    for trace in traces:
        judged = read_judgments(store, trace)
        offline = judged[0].offline if judged else None
        found.append(None if offline is None else [round(float(value), 1) for value in offline.validity])
    return found


def test_rows_are_matched_by_id_in_any_order(store, traces, file):
    summary = import_scores(store, "sums", write_lines(file, rows("c", "a", "b")), "PRM")
    assert str(summary) == "PRM on sums: 3 traces, matched by id."
    assert validities(store, traces) == [SCORES["a"], SCORES["b"], SCORES["c"]]
    evaluator = find_evaluator(store, "imported:PRM")
    assert (evaluator.name, evaluator.format, evaluator.outputs) == ("PRM", "imported", Outputs.VALIDITY)


def test_records_that_match_no_trace_are_counted_and_named(store, traces, file):
    other = [{"id": f"x{i}", "scores": [0.5]} for i in range(7)]
    summary = import_scores(store, "sums", write_lines(file, [*other, *rows("b")]), "PRM")
    assert (summary.matched, summary.traces_left) == (1, ("a", "c"))
    assert summary.rows_left == tuple(f"x{i}" for i in range(7))
    assert str(summary) == (
        "PRM on sums: 1 trace, matched by id; 7 rows of the file match no trace (x0, x1, x2, x3, x4, …);"
        " 2 traces have no scores (a, c)."
    )
    assert validities(store, traces) == [None, SCORES["b"], None]


@pytest.mark.parametrize("start", [None, 0, 1])
def test_without_ids_of_the_dataset_the_order_counts(store, traces, file, start):
    unnamed = rows("a", "b", "c", named=False)
    if start is not None:
        unnamed = [{"id": number} | row for number, row in enumerate(unnamed, start)]
    assert import_scores(store, "sums", write_lines(file, unnamed), "PRM").by == "position"
    assert validities(store, traces) == [SCORES["a"], SCORES["b"], SCORES["c"]]


def test_importing_again_changes_nothing(store, traces, file):
    write_lines(file, rows("a", "b", "c"))
    import_scores(store, "sums", file, "PRM")
    before = read_judgments(store, traces[0])[0].created
    import_scores(store, "sums", file, "PRM")
    assert read_judgments(store, traces[0])[0].created == before
    assert (count(store), len(list_evaluators(store))) == (3, 1)


def test_one_evaluator_has_scores_of_several_datasets_and_modes(store, traces, file):
    write_lines(file, rows("a", "b", "c"))
    more = add(store, TRACES, dataset="more")
    import_scores(store, "sums", file, "PRM")
    import_scores(store, "more", file, "PRM", Mode.ONLINE)
    evaluator = find_evaluator(store, "imported:PRM")
    assert set(evaluator.info["files"]) == {"sums", "more"}
    assert find_judgment(store, more[0], evaluator.id, Mode.ONLINE) is not None
    assert find_judgment(store, more[0], evaluator.id, Mode.OFFLINE) is None


def test_an_evaluators_scores_are_not_replaced(store, traces, file):
    import_scores(store, "sums", write_lines(file, rows("a", "b", "c")), "PRM")
    with refused():
        import_scores(store, "sums", write_lines(file, rows("a", "b")), "PRM")
    with refused():
        import_scores(store, "sums", write_lines(file, [{"id": "a", "scores": 0.1}]), "PRM")
    assert count(store) == 3


BAD: list[tuple[list[Any], str]] = [
    ["{"],
    [],
    [*rows("a"), {"id": "b", "scores": [float("nan")]}],
    [*rows("a"), {"id": "b", "scores": [[0.5, 0.5, 0.1]]}],
    [*rows("a"), {"id": "b", "scores": 0.5}],
    [*rows("a", "b"), *rows("a")],
    [*rows("a"), *rows("b", named=False)],
    [*rows("a", named=False), *rows("b")],
    [*rows("b", "c"), {"id": "a", "scores": [0.5]}],
    rows("b", "a", named=False),
    rows("b", "a", "c", named=False),
    [{"id": f"x{i}", "scores": [0.5]} for i in range(3)],
]


@each("content", BAD)
def test_a_bad_file_is_refused_and_nothing_is_stored(store, traces, file, content):
    with refused():
        import_scores(store, "sums", write_lines(file, content), "PRM")
    assert (count(store), list_evaluators(store)) == (0, [])


def test_an_unknown_dataset_and_a_missing_file(store, traces, file):
    with refused():
        import_scores(store, "none", write_lines(file, rows("a")), "PRM")
    with refused():
        import_scores(store, "sums", file.parent / "x.json", "PRM")
    with refused():
        import_scores(store, "sums", file, "")


def test_an_array_with_words_of_several_kinds(store, traces, file):
    words = [("a", "Unsure", "2"), ("b", "Present.", "1"), ("c", "Absent", "N/A")]
    file.write_text(
        json.dumps([{"id": i, "correctness_pred": w, "error_step_pred": s} for i, w, s in words], indent=1)
    )
    import_scores(store, "sums", file, "GPT")
    found = [judged for trace in traces for judged in read_judgments(store, trace)]
    # That the file is on redundancy, its other rows tell: the step that the first one blames is redundant too.
    assert [judged.offline.probs.tolist() for judged in found if judged.offline] == [
        [[0, 0, 1], [0, 1, 0], [0, 1, 0]], [[0, 1, 0]], [[0, 0, 1]],
    ]  # fmt: skip
    assert [judged.solution for judged in found] == [None, None, 1.0]


def test_the_rationale_of_a_verdict_is_kept(store, traces, file):
    row = {"id": "a", "correctness_pred": "Wrong", "error_step_pred": "2"}
    import_scores(store, "sums", write_lines(file, [row | {"response": " Step 2 adds twice. \n"}]), "GPT")
    (judgment,) = read_judgments(store, traces[0])
    assert judgment.rationale == "Step 2 adds twice."
    with refused():
        import_scores(store, "sums", write_lines(file, [row | {"response": []}]), "GPT 2")


@pytest.mark.parametrize(("outputs", "judgment"), KINDS)
def test_records_give_the_judgments_that_were_scored(store, file, outputs, judgment):
    (trace,) = add(store, [TRACE])
    written = judgment_record(judgment, described(outputs))
    file.write_text(written.model_dump_json() + "\n")
    # The mode and the name of the file's evaluator, whatever the caller would have taken.
    assert import_scores(store, "sums", file, None, Mode.ONLINE).evaluator == "mini"
    (stored,) = read_judgments(store, trace)
    assert judgment_record(stored, described(outputs)).model_copy(update={"created": None}) == written
    assert stored.evaluator.outputs == outputs


def test_a_trace_that_a_page_saved_gives_its_judgments(store, file):
    (trace,) = add(store, [TRACE])
    records = [
        judgment_record(judgment, described(outputs)).model_dump(mode="json") for outputs, judgment in KINDS[:2]
    ]
    saved = {"id": TRACE.id, "problem": TRACE.problem, "steps": ["x"], "judgments": records[:1]}
    write_lines(file, [saved])
    assert import_scores(store, "sums", file).matched == 1
    (stored,) = read_judgments(store, trace)
    assert stored.hindsight is not None
    write_lines(file, [saved | {"judgments": [records[0], records[1] | {"evaluator": "other"}]}])
    with refused():
        import_scores(store, "sums", file)


RECORD = judgment_record(KINDS[1][1], described(Outputs.THREE_WAY)).model_dump(mode="json")


@pytest.mark.parametrize(
    "records",
    [
        [RECORD | {"id": "a", "mode": "sideways"}],
        [RECORD | {"id": "a", "version": 2}],
        [RECORD | {"id": "a", "online": None}],
        [RECORD | {"id": "b"}],
        [RECORD | {"id": "a"}, RECORD | {"id": "b", "evaluator": "x"}],
        [{"id": "a", "scores": 0.5}],
    ],
)
def test_a_record_that_is_none_or_of_another_trace_is_refused(store, traces, file, records):
    with refused():
        import_scores(store, "sums", write_lines(file, records))
    assert count(store) == 0


PUBLISHED = [
    ("invalid", "math-shepherd_mistral-7b", (70.1, 77.3, 60.0, 77.2)),
    ("invalid", "reasoneval_mistral-7b", (78.0, 85.1, 68.6, 85.7)),
    ("invalid", "reasoneval_wizardmath-7b-v1.1", (78.6, 87.5, 73.9, 89.5)),
    ("invalid", "roscoe-sa", (48.2, 57.5, None, None)),
    ("invalid", "gpt4", (73.2, None, 61.0, None)),
    ("redundant", "math-shepherd_mistral-7b", (50.4, 54.5, 42.7, 53.0)),
    ("redundant", "reasoneval_mistral-7b", (60.7, 63.4, 59.7, 70.9)),
    ("redundant", "reasoneval_wizardmath-7b-v1.1", (61.6, 64.8, 59.7, 72.2)),
    ("redundant", "roscoe-sa", (50.7, 53.9, None, None)),
    ("redundant", "gpt4", (57.1, None, 54.2, None)),
]


def test_published_rows_to_the_printed_digit(store, data):
    for errors in Errors:
        name = f"mr-math-{errors}"
        import_file(store, name, data / f"mr-math/mr-math_{errors}_errors.json")
        gold = read_gold(store, find_dataset(store, name))
        for _, file, published in (row for row in PUBLISHED if row[0] == errors):
            path = data / f"mr-math/scores/{errors}/{file}_eval_results.json"
            summary = import_scores(store, name, path, file)
            assert (summary.by, summary.rows_left, summary.traces_left) == ("id", (), ())
            evaluator = find_evaluator(store, f"imported:{file}")
            table = read_table(store, gold, evaluator.id, Mode.OFFLINE)
            values = [
                metric(items(table, errors, level, evaluator.outputs))
                for level in (Level.SOLUTION, Level.STEP)
                for metric in (macro_f1, auc)
            ]
            found = tuple(round(100 * value.number, 1) if value.exists else None for value in values)
            assert found == published, (errors, file)


def test_the_scores_of_mr_gsm8k_match_the_rows_that_are_here(store, data):
    import_file(store, "mr-gsm8k", data / "mr-gsm8k/MR-GSM8K_partial.json")
    path = data / "mr-gsm8k/scores/reasoneval_mistral-7b_eval_results.json"
    summary = import_scores(store, "mr-gsm8k", path, "ReasonEval")
    assert (summary.matched, len(summary.rows_left), summary.traces_left) == (300, 2699, ())
    assert "300 traces, matched by id; 2,699 rows of the file match no trace (" in str(summary)
    gold = read_gold(store, find_dataset(store, "mr-gsm8k"))
    assert sorted(set(gold.groups)) == ["POT", "original", "reversed"]
    table = read_table(store, gold, find_evaluator(store, "imported:ReasonEval").id, Mode.OFFLINE)
    solutions = items(table, Errors.INVALID, Level.SOLUTION)
    assert (len(solutions), macro_f1(solutions).reason) == (300, "the gold has one class only")
    steps = items(table, Errors.INVALID, Level.STEP)
    assert macro_f1(steps).exists
    assert auc(steps).exists


def test_the_scores_of_the_perturbed_solutions(store, data):
    import_file(store, "perturbation", data / "perturbation/perturbation.json")
    path = data / "perturbation/math-shepherd_mistral-7b_perturbed_eval_results.json"
    summary = import_scores(store, "perturbation", path, "Math-Shepherd")
    assert (summary.matched, summary.outputs, summary.rows_left) == (1064, Outputs.VALIDITY, ())
    with refused():
        import_scores(store, "perturbation", data / "mr-math/scores/invalid" / PATH, "other")


PATH = "reasoneval_mistral-7b_eval_results.json"


# Three steps, of which the second has two sub-steps.
SCORED = Trace("7", "q", (Step(("a",)), Step(("b", "c")), Step(("d",))))


def verdict(word, steps, **other):
    return {"id": 7, "response": "…", "correctness_pred": word, "error_step_pred": steps} | other


def read(row, on_redundancy=False):
    found: list[list[float]] = parse_scores(row).scores(SCORED, on_redundancy).probs.tolist()
    return found


def test_three_numbers_per_substep():
    probs = [[0.25, 0.5, 0.25], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    said = parse_scores({"id": 7, "scores": probs})
    assert (said.id, said.outputs, said.solution) == ("7", Outputs.THREE_WAY, None)
    assert said.scores(SCORED).probs.tolist() == probs


def test_one_number_per_substep_is_its_validity():
    said = parse_scores({"id": "x", "scores": [0.75, 1, 0, 0.5]})
    assert (said.id, said.outputs) == ("x", Outputs.VALIDITY)
    # 1 - s_val is neg, the rest pos: nothing is said of neu.
    assert said.scores(SCORED).probs.tolist() == [[0.25, 0, 0.75], [0, 0, 1], [1, 0, 0], [0.5, 0, 0.5]]


def test_one_number_for_the_solution_says_nothing_of_steps():
    said = parse_scores({"id": 7, "scores": 0.0354})
    assert (said.outputs, said.solution) == (Outputs.SOLUTION, 0.0354)
    assert not said.scores(SCORED).probs.any()


VALID, NEG, NEU, UNREAD = [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 0]


@each(
    "word, steps, solution, expected",
    [
        ("Correct", "N/A", 1.0, [VALID] * 4),
        ("correct", "Step 1", 1.0, [VALID] * 4),
        ("Wrong", "Step 2", 0.0, [VALID, NEG, NEG, UNREAD]),
        ("wrong", "1", 0.0, [NEG, UNREAD, UNREAD, UNREAD]),
        # Only the first number counts.
        ("Wrong", "Steps 3 and 1", 0.0, [VALID, VALID, VALID, NEG]),
        # Past the end, or before the start: no step is blamed.
        ("Wrong", "Step 4", 0.0, [VALID] * 4),
        ("Wrong", "0, 2", 0.0, [VALID] * 4),
        ("Wrong", "9" * 5000, 0.0, [VALID] * 4),
        ("Wrong", "N/A", 0.0, [VALID] * 4),
        # A verdict that could not be read; the step beside it was.
        ("Unsure", "Step 3", None, [VALID, VALID, VALID, NEG]),
        # Nothing could be read, and nothing was said.
        ("Unsure", "N/A", None, [[0, 0, 0]] * 4),
        ("Unsure", "Step 9", None, [[0, 0, 0]] * 4),
    ],
)
def test_a_verdict_on_validity(word, steps, solution, expected):
    said = parse_scores(verdict(word, steps))
    assert (said.outputs, said.solution, said.on_redundancy) == (Outputs.VERDICT, solution, False)
    assert said.scores(SCORED).probs.tolist() == expected


@pytest.mark.parametrize(
    ("word", "steps", "solution", "expected"),
    [
        ("Absent", "N/A", 1.0, [VALID] * 4),
        ("Present", "Step 1, Step 2", 0.0, [NEU, NEU, NEU, VALID]),
        ("present", "[3, 9, 0]", 0.0, [VALID, VALID, VALID, NEU]),
        # GPT-4 puts a full stop there twice: the verdict could not be read, the steps were.
        ("Present.", "Step 3", None, [VALID, VALID, VALID, NEU]),
        # Steps named in spite of the verdict count.
        ("Absent", "Step 3", 1.0, [VALID, VALID, VALID, NEU]),
    ],
)
def test_a_verdict_on_redundancy(word, steps, solution, expected):
    said = parse_scores(verdict(word, steps))
    assert (said.solution, said.on_redundancy) == (solution, True)
    assert said.scores(SCORED, on_redundancy=True).probs.tolist() == expected


def test_a_verdict_in_an_object_of_its_own():
    inner = {"correctness_pred": "Wrong", "error_step_pred": "Step 1"}
    said = parse_scores({"id": "u", "question_type": "POT", "gpt3_5_eval_output": inner})
    assert (said.id, said.solution, said.blamed) == ("u", 0.0, (1,))


def test_an_id_may_be_a_uuid_or_missing():
    assert parse_scores({"uuid": "179ede83", "scores": 1}).id == "179ede83"
    assert parse_scores({"scores": 1}).id is None


def test_a_sum_may_be_off_by_a_thousandth():
    assert parse_scores({"scores": [[0.5, 0.25, 0.251]]}).outputs == Outputs.THREE_WAY
    assert parse_scores({"scores": [[0.5, 0.25, 0.249]]}).outputs == Outputs.THREE_WAY


@each(
    "row",
    [
        {"scores": [[0.5, 0.3, 0.3]]},
        {"scores": [[0, 0, 1], [0.5, 0.25, 0.2515]]},
        {"scores": [[0.5, 0.5]]},
        {"scores": [[0, 0, 1], 0.5]},
        {"scores": [0.5, [0, 0, 1]]},
        {"scores": [float("nan")]},
        {"scores": [[float("nan"), 0, 1]]},
        {"scores": float("inf")},
        {"scores": 10**400},
        {"scores": [True]},
        {"scores": [1.2]},
        {"scores": [-0.5]},
        {"scores": []},
        {"scores": "0.5"},
        {"id": 1},
        {"id": [1], "scores": 1},
        {"id": True, "scores": 1},
        {"correctness_pred": "Wrong"},
        {"correctness_pred": 0, "error_step_pred": ""},
    ],
)
def test_an_invalid_score_is_refused(row):
    with refused():
        parse_scores(row)


@pytest.mark.parametrize("scores", [[0.5] * 3, [[0, 0, 1]] * 5])
def test_a_count_that_is_not_the_traces(scores):
    with refused():
        parse_scores({"id": 7, "scores": scores}).scores(SCORED)


def test_rows_are_single_precision():
    assert parse_scores({"scores": [[0.1, 0.2, 0.7]] * 4}).scores(SCORED).probs.dtype == np.float32
    assert len(read({"scores": 0.5})) == 4
