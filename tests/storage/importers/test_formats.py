"""Every kind of file, by the rows that it reads and refuses, in `formats.json`; and the real files where they are.

There, each kind has a `row`, changes of it that are `read`, with the id (null for a hash of the content) and the
gold of the steps, and changes that are `refused`, with the messages in `test_formats.txt`.
"""

import json
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

from stepsight.core.errors import UserError
from stepsight.core.trace import Step, Trace
from stepsight.storage.importers import KINDS, find_kind, guess_kind, parse_row, read_traces
from stepsight.storage.importers.plain import read_plain
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from tests.cases import each
from tests.messages import refused
from tests.storage.samples import ERROR, FIRST_ERROR, invalid_row, plain_row, redundant_row

FORMATS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("formats.json").read_text("utf-8"))


def read(kind, **other):
    return parse_row(KINDS[kind], FORMATS[kind]["row"] | other, "f line 1")


def gold(trace):
    return [step.gold for step in trace.steps]


def test_every_kind_has_rows_and_is_found_by_its_name():
    assert FORMATS.keys() == KINDS.keys()
    assert all(find_kind(name).name == name for name in KINDS)
    assert find_kind("jsonl") is KINDS["plain"]
    assert guess_kind({"id": 1, "scores": []}) is None
    with refused():
        find_kind("csv")


@pytest.mark.parametrize("kind", FORMATS)
def test_rows_are_recognised_and_read(kind):
    assert guess_kind(FORMATS[kind]["row"]) == kind
    for change, id, expected in FORMATS[kind]["read"]:
        trace = read(kind, **change)
        assert gold(trace) == expected, change
        assert trace.id == id or (id is None and len(trace.id) == 16), change
        assert trace.problem in ("q", "What is 1 + 1?")


@pytest.mark.parametrize("kind", FORMATS)
def test_rows_are_refused(kind):
    for change in FORMATS[kind]["refused"]:
        with refused():
            read(kind, **change)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_missing_field_is_named(kind):
    for key in sorted(KINDS[kind].fields - {"final_answer_correct", "eval"}):
        row = {name: value for name, value in FORMATS[kind]["row"].items() if name != key}
        with refused():
            parse_row(KINDS[kind], row, "f line 1")


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS.values() if kind.write])
def test_what_a_kind_writes_it_reads_back(kind):
    shares = Trace("s", "q", (Step(("a",), share=0.25), Step(("b",), share=None)))
    write = KINDS[kind].write
    assert write is not None
    for trace in (ERROR, FIRST_ERROR, shares):
        again = KINDS[kind].read(json.loads(json.dumps(write(trace))))
        assert (again.problem, [step.text for step in again.steps]) == (
            trace.problem,
            [step.text for step in trace.steps],
        )
        assert [step.share for step in again.steps] == [step.share for step in trace.steps]
        valid = [None if trace.has_shares else step.valid for step in trace.steps]
        assert [step.valid for step in again.steps] == valid
        assert kind != "plain" or again == trace


@each("kind, row", [("plain", invalid_row()), ("plain", redundant_row()), ("prm800k", plain_row(1))])
def test_a_file_of_another_kind_says_which(kind, row):
    with refused():
        list(read_traces(KINDS[kind], [json.dumps(row).encode()], "f"))


def test_a_file_that_is_all_of_another_kind_is_not_counted_as_bad_rows():
    lines = [json.dumps(redundant_row(id=i)).encode() for i in range(30)]
    bad: list[str] = []

    def on_bad(where: str, error: UserError, content: bytes) -> None:
        bad.append(where)

    for some in (lines, lines[:1]):
        with refused():
            list(read_traces(KINDS["plain"], some, "f", on_bad))
    assert bad == []
    # One row of the kind among them, and the others are bad rows of it.
    mixed = [*lines[:3], json.dumps(plain_row(1)).encode(), *lines[3:]]
    assert [where for where, _ in read_traces(KINDS["plain"], mixed, "f", on_bad)] == ["f line 4"]
    assert len(bad) == 30


def test_a_trace_is_given_before_the_next_row_is_read():
    # A preview ends by time, and a single row may take seconds.
    lines = (json.dumps(plain_row(i)).encode() for i in count())
    traces = read_traces(KINDS["plain"], lines, "f", lambda *fault: None)
    assert [where for where, _ in islice(traces, 2)] == ["f line 1", "f line 2"]
    assert json.loads(next(lines))["id"] == 2


def test_reading_goes_row_by_row():
    def lines() -> object:
        yield json.dumps(plain_row(1)).encode()
        raise AssertionError("read too far")

    assert next(read_traces(KINDS["plain"], lines(), "f"))[1].id == "1"  # type: ignore[arg-type]


@pytest.mark.parametrize("fields", [{"problem": "nan"}, {"steps": ["a", "\u200b\ufeff"]}])
def test_plain_files_without_a_store_are_checked_alike(fields):
    with pytest.raises(UserError, match=r"no visible text|missing"):
        list(read_plain([json.dumps(plain_row(1) | fields).encode()], "f"))


@pytest.mark.parametrize("kind", ["prm800k", "stepwise", "math-shepherd"])
def test_an_id_made_of_the_content_depends_on_it_and_not_on_the_order_of_keys(kind):
    turned = dict(reversed(FORMATS[kind]["row"].items()))
    assert parse_row(KINDS[kind], turned, "f").id == read(kind).id != read(kind, other=1).id


@each(
    "kind, texts, meta",
    [
        (
            "mr-math-invalid",
            ("A sum.", "So 3.", "Yes.", "Done."),
            "generator ground_truth_answer model_output model_output_answer_correctness"
            " model_output_solution_correctness",
        ),
        ("mr-math-redundant", ("A sum.", "Sums are nice.", "Yes.", "So 3."), "generator ground_truth_answer"),
        ("mr-gsm8k", ("a", "b", "c"), "model_output_solution_correctness question_type"),
        ("perturbation", ("a", "b", "c"), "error_type tags"),
        # The chosen completion, then that of a person, then the first.
        ("prm800k", ("a", "b", "c", "d"), "finish_reason labeler phase pre_generated_steps total_time"),
        ("processbench", ("a", "b"), "final_answer_correct"),
        ("prmbench", ("a", "b", "c"), "classification idx"),
        ("math-shepherd", ("Step 1: a", "Step 2: b"), "task"),
        ("plain", ("a", "b", "c", "d"), "generator"),
    ],
)
def test_everything_else_is_kept(kind, texts, meta):
    trace = read(kind)
    assert trace.substeps == texts
    assert sorted(trace.meta) == meta.split()


def test_prm800k_without_a_solution_made_beforehand_is_of_phase_1():
    assert (read("prm800k").meta["phase"], read("prm800k", question={"problem": "q"}).meta["phase"]) == (2, 1)


def test_prmbench_solutions_of_one_problem_have_ids_of_their_own():
    one, two = (read("prmbench", classification="multi_solutions", error_steps=[], reason=i) for i in (1, 2))
    assert one.id.startswith("multi_solutions/p1_0/")
    assert one.id != two.id
    assert gold(one) == ["valid"] * 3


SOLUTION = {
    "problem": {"question": "q", "ground_truth": "2"},
    "steps": [{"text": "a"}, {"text": "b"}],
    "is_correct": True,
}
EDIT = {"problem_id": "p", "candidate_index": 1, "pair_type": "necessary", "deleted_step_index_0based": 0}


def read_published(*rows):
    lines = [json.dumps(row).encode() for row in rows]
    return [trace for _, trace in read_traces(KINDS["strict-prmbench"], lines, "f")]


def test_strict_prmbench_pools_are_read_with_the_steps_that_are_deleted_from_their_solutions():
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
    # An edit names one deleted step, whatever other fields it has.
    (edit,) = read_published(EDIT | {"problem": "q", "steps": ["a", "b"], "inert": 5})
    assert (edit.meta["necessary"], edit.meta.get("inert")) == ([1], None)


@each(
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
)
def test_a_strict_prmbench_row_with_a_wrong_field_is_refused(row):
    with refused():
        read_published(row)


def _real(path):
    if not path.is_file():
        pytest.skip(f"no {path}")
    return path


@pytest.mark.parametrize(
    ("kind", "file", "traces", "errors"),
    [
        ("mr-math-invalid", "mr-math/mr-math_invalid_errors.json", 159, 83),
        ("mr-math-redundant", "mr-math/mr-math_redundant_errors.json", 300, 0),
        ("mr-gsm8k", "mr-gsm8k/MR-GSM8K_partial.json", 300, 300),
        ("prm800k", "prm800k/test.jsonl", 191, 162),
        ("perturbation", "perturbation/perturbation.json", 1064, 696),
        ("prmbench", "prmbench/prm_test_p12_multi_solutions.jsonl", 165, 0),
        ("prmbench", "prmbench/prm800k_test_p1_4o_domain_inconsistency.jsonl", 90, 90),
    ],
)
def test_the_real_file(store, data, kind, file, traces, errors):
    path = _real(data / file)
    import_file(store, kind, path)
    dataset = find_dataset(store, kind)
    assert (dataset.traces, dataset.errors) == (traces, errors)
    assert import_file(store, kind, path).added == 0
    if kind == "mr-gsm8k":
        types = [trace.meta["question_type"] for trace in iterate_traces(store, dataset.id)]
        assert [types.count(name) for name in ("original", "reversed", "POT")] == [182, 87, 31]


def test_all_of_prmbench_is_read(sqlite_store, data):
    """The files given here hold 4,086 of PRMBench's 6,216 rows, and 80 of its 100 that point past the end."""
    if not (data / "prmbench").is_dir():
        pytest.skip("no PRMBench")
    paths = sorted((data / "prmbench").glob("*.jsonl"))
    assert len(paths) == 17
    for path in paths:
        import_file(sqlite_store, "prmbench", path)
    dataset = find_dataset(sqlite_store, "prmbench")
    assert (dataset.traces, dataset.left_out) == (4086, 0)


@pytest.mark.parametrize(("part", "count"), [("phase1-train", 3), ("phase1-test", 1), ("phase2-train", 1)])
def test_untouched_records_of_prm800k(data, part, count):
    path = _real(data / f"prm800k/original-records/prm800k-{part}-example.json")
    lines = path.read_bytes().splitlines(keepends=True)
    traces = [trace for _, trace in read_traces(KINDS["prm800k"], lines, "f")]
    assert len(traces) == count
    if part == "phase2-train":
        assert gold(traces[0]) == ["pos", "neu", "pos", "pos", "pos", "pos", "neg"]
        assert traces[0].substeps == tuple(traces[0].meta["pre_generated_steps"][:7])
    else:
        # A person wrote the second step, which nobody rated.
        assert gold(traces[0]) == ["pos", None, "pos", "pos", "pos", "pos"]
        assert traces[0].substeps[1] == "We have $3p+e=1.24$ and $5p+e=1.82$."
