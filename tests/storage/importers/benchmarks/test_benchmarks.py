"""The benchmark readers: on small rows made by hand, and on the real files where they are."""

import json
from pathlib import Path
from typing import Any

import pytest

from stepsight.core.label import Label
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store
from stepsight.storage.importers import KINDS, guess_kind, read_traces
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from tests.cases import each
from tests.messages import refused

NEG, NEU, POS = Label


def _completion(text: str, rating: int | None) -> dict[str, Any]:
    return {"text": text, "rating": rating, "flagged": None}


def _labelled(*found: tuple[str, int | None], chosen: int | None = 0, human: str | None = None) -> dict[str, Any]:
    person = None if human is None else {"text": human, "rating": None, "source": "human", "flagged": False}
    completions = [_completion(*item) for item in found]
    return {"completions": completions, "human_completion": person, "chosen_completion": chosen}


ROWS: dict[str, dict[str, Any]] = {
    "mr-gsm8k": {
        "uuid": "179e",
        "question": "q",
        "model_output_steps": ["a", "b", "c"],
        "model_output_solution_correctness": "wrong",
        "model_output_solution_first_error_step": 2,
        "question_type": "POT",
    },
    "prm800k": {
        "labeler": "e90a",
        "question": {"problem": "q", "pre_generated_steps": ["a", "d", "e"]},
        "label": {
            "steps": [
                _labelled(("x", -1), ("a", 1), chosen=1),
                _labelled(("y", -1), chosen=None, human="b"),
                _labelled(("c", 0)),
                _labelled(("d", -1), ("z", 1), chosen=None),
            ],
            "total_time": 3,
            "finish_reason": "found_error",
        },
    },
    "prmbench": {
        "idx": "p1_0",
        "modified_question": "q",
        "modified_process": ["a", "b", "c"],
        "error_steps": [2],
        "classification": "deception",
    },
    "processbench": {
        "id": "gsm8k-0",
        "problem": "q",
        "steps": ["a", "b"],
        "final_answer_correct": False,
        "label": 1,
    },
    "perturbation": {
        "id": 0,
        "question": "q",
        "hypothesis_steps": ["a", "b", "c"],
        "error_type": "random number",
        "tags": 1,
    },
    "math-shepherd": {
        "input": "q Step 1: a ки\nStep 2: b ки",
        "label": "q Step 1: a +\nStep 2: b -",
        "task": "GSM8K",
    },
    "strict-prmbench": {"problem_id": "p", "candidate_index": 0, "problem": "q", "steps": ["a", "b"]},
    "stepwise": {"prompt": "q", "completions": ["a", "b", "c"], "labels": [True, False, None]},
}


def read(kind: str, **other: Any) -> Trace:
    ((_, trace),) = read_traces(KINDS[kind], [json.dumps(ROWS[kind] | other).encode()], "f")
    return trace


def golds(trace: Trace) -> list[Any]:
    """The label of each step, or its validity where it has none."""
    return [step.valid if step.label is None else step.label for step in trace.steps]


@pytest.mark.parametrize("kind", ROWS)
def test_a_row_is_recognised(kind: str) -> None:
    assert guess_kind(ROWS[kind]) == kind
    assert read(kind).problem == "q"


@each(
    "kind, other, id, gold",
    [
        ("mr-gsm8k", {}, "179e", [True, NEG, None]),
        ("prmbench", {}, "deception/p1_0", [True, NEG, True]),
        ("prmbench", {"classification": "redundency"}, "redundency/p1_0", [True, NEU, True]),
        ("prmbench", {"classification": "circular", "error_steps": [3, 2]}, "circular/p1_0", [True, NEU, NEU]),
        ("prmbench", {"error_steps": [3, 4, 16]}, "deception/p1_0", [True, True, NEG]),
        ("prmbench", {"modified_process": ["a", " ", "b"], "error_steps": [2, 3]}, "deception/p1_0", [True, NEG]),
        ("processbench", {}, "gsm8k-0", [True, NEG]),
        ("processbench", {"label": -1}, "gsm8k-0", [True, True]),
        ("processbench", {"label": 0}, "gsm8k-0", [NEG, None]),
        ("perturbation", {}, "0", [True, NEG, None]),
        ("perturbation", {"error_type": "swap steps", "tags": [2, 1]}, "0", [True, NEG, None]),
        ("perturbation", {"error_type": "repeat step", "tags": 0}, "0", [True, NEU, True]),
        ("perturbation", {"error_type": "swap solutions", "tags": 82}, "0", [None, None, None]),
        ("math-shepherd", {}, None, [True, NEG]),
        ("stepwise", {}, None, [True, NEG, None]),
        ("prm800k", {}, None, [POS, None, NEU, NEG]),
    ],
)
def test_gold(kind: str, other: dict[str, Any], id: str | None, gold: list[Any]) -> None:
    trace = read(kind, **other)
    assert golds(trace) == gold
    assert trace.id == id or (id is None and len(trace.id) == 16)


def test_a_correct_mr_gsm8k_solution_is_valid_throughout() -> None:
    other = {"model_output_solution_correctness": "correct", "model_output_solution_first_error_step": "N/A"}
    trace = read("mr-gsm8k", **other)
    assert golds(trace) == [True, True, True]
    assert trace.meta == {"model_output_solution_correctness": "correct", "question_type": "POT"}


def test_prm800k_goes_on_from_the_chosen_completion_then_the_human_then_the_first() -> None:
    trace = read("prm800k")
    assert trace.substeps == ("a", "b", "c", "d")
    assert trace.meta == {
        "labeler": "e90a",
        "pre_generated_steps": ["a", "d", "e"],
        "total_time": 3,
        "finish_reason": "found_error",
        "phase": 2,
    }


def test_prm800k_without_a_solution_made_beforehand_is_of_phase_1() -> None:
    assert read("prm800k", question={"problem": "q"}).meta["phase"] == 1


def test_completions_that_are_null_are_none() -> None:
    null = {"completions": None, "human_completion": None, "chosen_completion": None}
    first, last = _labelled(("a", 1)), _labelled(("b", 1))
    assert read("prm800k", label={"steps": [first, null]}).substeps == ("a",)
    written = {"completions": None, "human_completion": {"text": "h", "rating": None}, "chosen_completion": None}
    assert read("prm800k", label={"steps": [first, written, last]}).substeps == ("a", "h", "b")
    with refused():
        read("prm800k", label={"steps": [null, last]})


def test_prm800k_ends_where_a_labeler_gave_up_without_a_completion() -> None:
    empty = _labelled(chosen=None)
    assert read("prm800k", label={"steps": [_labelled(("a", 1)), empty]}).substeps == ("a",)
    with refused():
        read("prm800k", label={"steps": [empty, _labelled(("a", 1))]})


def test_math_shepherd_steps_keep_their_numbers() -> None:
    assert read("math-shepherd").substeps == ("Step 1: a", "Step 2: b")


@pytest.mark.parametrize("kind", ["prm800k", "stepwise", "math-shepherd"])
def test_an_id_made_of_the_content_depends_on_it_and_not_on_the_order_of_keys(kind: str) -> None:
    turned = dict(reversed(ROWS[kind].items()))
    ((_, trace),) = read_traces(KINDS[kind], [b"\n", json.dumps(turned).encode()], "f")
    assert trace.id == read(kind).id != read(kind, other=1).id


SOLUTION = {
    "problem": {"question": "q", "ground_truth": "2"},
    "steps": [{"text": "a"}, {"text": "b"}],
    "is_correct": True,
}
EDIT = {"problem_id": "p", "candidate_index": 1, "pair_type": "necessary", "deleted_step_index_0based": 0}


def read_published(*rows: object) -> list[Trace]:
    lines = [json.dumps(row).encode() for row in rows]
    return [trace for _, trace in read_traces(KINDS["strict-prmbench"], lines, "f")]


def test_strict_prmbench_pools_are_read_with_the_steps_that_are_deleted_from_their_solutions() -> None:
    inert = EDIT | {"pair_type": "inert", "deleted_step_index_0based": 1}
    edits = [one | {"original_trace": SOLUTION} for one in (EDIT, inert, EDIT | {"candidate_index": 7})]
    pool = {"problem_id": "p", "candidates": [SOLUTION, SOLUTION]}
    traces = read_published(*edits, pool)
    steps = {trace.id: (trace.meta.get("necessary"), trace.meta.get("inert")) for trace in traces}
    assert steps == {"p/0": (None, None), "p/1": ([1], [2]), "p/7": ([1], None)}
    assert traces[0].substeps == ("a", "b")
    assert traces[0].meta == {"problem_id": "p", "candidate_index": 0, "answer": "2", "is_correct": True}
    # A pool is published over several lines.
    lines = json.dumps(pool, indent=2).encode().splitlines(keepends=True)
    assert [trace.id for _, trace in read_traces(KINDS["strict-prmbench"], lines, "f")] == ["p/0", "p/1"]


@pytest.mark.parametrize(
    "row",
    [
        {"problem_id": "p", "candidates": [SOLUTION | {"problem": "q"}]},
        {"problem_id": "p", "candidates": [SOLUTION | {"steps": ["a"]}]},
        {"problem_id": 1, "candidates": [SOLUTION]},
        EDIT | {"original_trace": None},
        EDIT | {"original_trace": SOLUTION, "deleted_step_index_0based": -1},
        EDIT | {"original_trace": SOLUTION, "candidate_index": "first"},
        EDIT | {"original_trace": SOLUTION, "deleted_step_index_0based": 2},
    ],
    ids=["problem", "step", "id", "no solution", "deleted step", "candidate", "past the end"],
)
def test_a_strict_prmbench_row_with_a_wrong_field_is_refused(row: dict[str, Any]) -> None:
    with refused():
        read_published(row)


def test_a_strict_prmbench_edit_names_one_deleted_step_whatever_other_fields_it_has() -> None:
    edit = EDIT | {"problem": "q", "steps": ["a", "b"], "inert": 5}
    assert [trace.meta.get("inert") for trace in read_published(edit)] == [None]


def test_prmbench_solutions_of_one_problem_have_ids_of_their_own() -> None:
    one, two = (read("prmbench", classification="multi_solutions", error_steps=[], reason=i) for i in (1, 2))
    assert one.id.startswith("multi_solutions/p1_0/")
    assert one.id != two.id
    assert golds(one) == [True, True, True]


@each(
    "kind, key, value, same",
    [
        ("processbench", "label", 1.0, 1),
        ("processbench", "label", " 1.0", 1),
        ("processbench", "label", "N/A", -1),
        ("mr-gsm8k", "model_output_solution_first_error_step", "2.0", 2),
        ("prmbench", "error_steps", [2.0], [2]),
        ("prmbench", "error_steps", "['2']", [2]),
        ("perturbation", "tags", 1.0, 1),
        ("stepwise", "labels", [1.0, "-", float("nan")], [True, False, None]),
        ("stepwise", "labels", ["yes", "0", "N/A"], [True, False, None]),
        ("prm800k", "label", {"steps": [_labelled(("a", "\u22121.0"))]}, {"steps": [_labelled(("a", -1))]}),
    ],
)
def test_labels_are_read_whatever_program_wrote_them(kind: str, key: str, value: object, same: object) -> None:
    assert golds(read(kind, **{key: value})) == golds(read(kind, **{key: same}))


def test_a_first_error_that_is_blank_is_no_gold() -> None:
    assert golds(read("processbench", label=float("nan"))) == [None, None]


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("mr-gsm8k", {"model_output_solution_first_error_step": 4}),
    ("mr-gsm8k", {"model_output_solution_correctness": "correct"}),
    ("mr-gsm8k", {"question_type": []}),
    ("mr-gsm8k", {"model_output_steps": "a"}),
    ("prm800k", {"question": 1}),
    ("prm800k", {"label": {"steps": [_labelled(("a", 2))]}}),
    ("prm800k", {"label": {"steps": [_labelled(("a", [1]))]}}),
    ("prm800k", {"label": {"steps": [_labelled(("a", 1), chosen=1)]}}),
    ("prm800k", {"label": {"steps": [_labelled(("", 1))]}}),
    ("prm800k", {"label": {"steps": []}}),
    ("prmbench", {"error_steps": [0]}),
    ("prmbench", {"error_steps": None}),
    ("prmbench", {"classification": "new"}),
    ("prmbench", {"modified_process": [" "]}),
    ("processbench", {"label": 2}),
    ("processbench", {"label": -2}),
    ("processbench", {"label": True}),
    ("perturbation", {"tags": 3}),
    ("perturbation", {"error_type": "swap steps"}),
    ("perturbation", {"error_type": "repeat step", "tags": 2}),
    ("perturbation", {"error_type": "new"}),
    ("math-shepherd", {"label": "q Step 1: a +\nStep 2: b ?"}),
    ("math-shepherd", {"label": "q Step 1: x +\nStep 2: b -"}),
    ("math-shepherd", {"label": "q Step 1: a +\nStep 2: b - more"}),
    ("math-shepherd", {"input": "q", "label": "q"}),
    ("math-shepherd", {"input": "q ки", "label": "q +"}),
    ("stepwise", {"labels": [True]}),
    ("stepwise", {"labels": [True, 2, None]}),
]


@each("kind, other", BAD)
def test_bad_rows_are_refused(kind: str, other: dict[str, Any]) -> None:
    with refused():
        read(kind, **other)


@pytest.mark.parametrize("kind", ROWS)
def test_a_missing_field(kind: str) -> None:
    for key in sorted(KINDS[kind].fields - {"final_answer_correct"}):
        row = {name: value for name, value in ROWS[kind].items() if name != key}
        with refused():
            list(read_traces(KINDS[kind], [json.dumps(row).encode()], "f"))


def _found(path: Path) -> Path:
    if not path.is_file():
        pytest.skip(f"no {path}")
    return path


@pytest.mark.parametrize(
    ("kind", "file", "traces", "errors"),
    [
        ("mr-gsm8k", "mr-gsm8k/MR-GSM8K_partial.json", 300, 300),
        ("prm800k", "prm800k/test.jsonl", 191, 162),
        ("perturbation", "perturbation/perturbation.json", 1064, 696),
        ("prmbench", "prmbench/prm_test_p12_multi_solutions.jsonl", 165, 0),
        ("prmbench", "prmbench/prm800k_test_p1_4o_domain_inconsistency.jsonl", 90, 90),
    ],
)
def test_the_real_file(store: Store, data: Path, kind: str, file: str, traces: int, errors: int) -> None:
    path = _found(data / file)
    import_file(store, kind, path)
    dataset = find_dataset(store, kind)
    assert (dataset.traces, dataset.errors) == (traces, errors)
    assert import_file(store, kind, path).added == 0


def test_the_question_types_of_mr_gsm8k(store: Store, data: Path) -> None:
    import_file(store, "mr-gsm8k", _found(data / "mr-gsm8k/MR-GSM8K_partial.json"))
    found = [trace.meta["question_type"] for trace in iterate_traces(store, find_dataset(store, "mr-gsm8k").id)]
    assert [found.count(name) for name in ("original", "reversed", "POT")] == [182, 87, 31]


def test_all_of_prmbench_is_read(sqlite_store: Store, data: Path) -> None:
    """The files given here hold 4,086 of PRMBench's 6,216 rows, and 80 of its 100 that point past the end."""
    paths = sorted(_found(data / "prmbench").glob("*.jsonl"))
    assert len(paths) == 17
    for path in paths:
        import_file(sqlite_store, "prmbench", path)
    dataset = find_dataset(sqlite_store, "prmbench")
    assert (dataset.traces, dataset.left_out) == (4086, 0)


@pytest.mark.parametrize(("file", "count"), [("phase1-train", 3), ("phase1-test", 1), ("phase2-train", 1)])
def test_untouched_records_of_prm800k(data: Path, file: str, count: int) -> None:
    text = (
        _found(data / f"prm800k/original-records/prm800k-{file}-example.json").read_text(encoding="utf-8").strip()
    )
    decoder, traces = json.JSONDecoder(), []
    while text:
        row, end = decoder.raw_decode(text)
        text = text[end:].strip()
        traces.append(KINDS["prm800k"].parse(row, "f"))
    assert len(traces) == count
    if file == "phase2-train":
        assert traces[0].labels == (POS, NEU, POS, POS, POS, POS, NEG)
        assert traces[0].substeps == tuple(traces[0].meta["pre_generated_steps"][:7])
    else:
        # A person wrote the second step, which nobody rated.
        assert traces[0].labels == (POS, None, POS, POS, POS, POS)
        assert traces[0].substeps[1] == "We have $3p+e=1.24$ and $5p+e=1.82$."
