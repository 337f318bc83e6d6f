import json

from stepsight.core.trace import Step
from stepsight.storage.exports.frames import frame
from stepsight.storage.exports.table_files import trace_lines
from stepsight.storage.importers import KINDS
from stepsight.storage.importers.column_mapping import ColumnMap, columns_kind
from stepsight.storage.importers.recognition import recognise
from stepsight.storage.importers.rows.kind import json_rows
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset, find_trace, list_trace_ids
from tests.cases import each
from tests.messages import refused
from tests.storage.samples import evaluator, judge, write_lines

STEPWISE, PLAIN = KINDS["stepwise"], KINDS["plain"]
MAP = ColumnMap("prompt", "completions", "labels", "shares")
TABLE = columns_kind(MAP, json_rows)
UNNAMED = columns_kind(ColumnMap("prompt", "completions", "labels", ""), json_rows)


def row(labels):
    return {"id": "1", "problem": "?", "prompt": "?", "steps": ["a", "b", "c"], "completions": ["a", "b", "c"],
            "labels": labels}  # fmt: skip


@each("kind", [STEPWISE, PLAIN, TABLE, UNNAMED])
@each("labels", [[0.9, 0.25, None], [0.9, 1, 0], [0.1, float("nan"), 1.0]])
def test_fractions_among_the_labels_of_a_trace_make_all_of_them_shares(kind, labels):
    steps = kind.parse(row(labels), "f").steps
    expected = [None if one is None or one != one else float(one) for one in labels]
    assert [step.share for step in steps] == expected
    assert all(step.label is None and step.valid is None for step in steps)


def test_whole_numbers_stay_labels_unless_they_are_said_to_be_shares():
    assert [step.gold for step in STEPWISE.parse(row([1, 0, 1.0]), "f").steps] == ["valid", "neg", "valid"]
    assert [step.share for step in TABLE.parse(row([1, 0, 1.0]), "f").steps] == [1.0, 0.0, 1.0]


@each("kind", [STEPWISE, PLAIN, TABLE])
@each("labels", [[0.5, 1.5, 0], [0.5, -1, 0], [0.5, "neg", 0], [0.5, True, 0], [0.5, "0.25", 0], [0.5, [1], 0]])
def test_a_value_that_is_no_share_is_named_with_its_step(kind, labels):
    with refused():
        kind.parse(row(labels), "file.jsonl line 3")


@each("shares", [[0.5], [0.5, 2, 0.5], [0.5, "1", 0.5]])
def test_shares_of_the_plain_format_have_to_fit_the_steps(shares):
    with refused():
        PLAIN.parse(row([None, None, None]) | {"shares": shares}, "f")


@each("kind", [STEPWISE, UNNAMED])
def test_a_file_with_shares_in_some_traces_and_whole_numbers_in_others_is_refused(kind):
    lines = [json.dumps(row(labels)).encode() for labels in ([1, 0, 1], [0.5, 1, 1])]
    with refused():
        list(kind.rows(lines, "f.jsonl"))


def test_a_stepwise_file_with_shares_is_recognised_as_a_table_of_shares():
    lines = [json.dumps({"prompt": "?", "completions": ["a"], "labels": [one]}).encode() for one in (1.0, 0.5)]
    assert recognise(b"\n".join(lines), lines, "f.jsonl").columns == MAP


def test_shares_survive_the_store_and_the_export_beside_hard_labels(store, tmp_path):
    given = {"id": "a", "problem": "?", "steps": ["s", ["t", "u"], "v"], "labels": ["pos", None, None],
             "shares": [1 / 3, 0.1 + 0.2, None]}  # fmt: skip
    import_file(store, "plain", write_lines(tmp_path / "soft.jsonl", [given, given | {"id": "b"}]), "soft")
    trace = find_trace(store, "soft", "a")
    assert [step.share for step in trace.steps] == [1 / 3, 0.1 + 0.2, None]
    ids = list_trace_ids(store, find_dataset(store, "soft").id)
    assert json.loads(next(iter(trace_lines(store, ids))).splitlines()[0]) == given
    stepwise = json.loads(next(iter(trace_lines(store, ids, format="stepwise"))).splitlines()[0])
    assert stepwise["labels"] == given["shares"]
    assert [step.share for step in STEPWISE.parse(stepwise, "f").steps] == given["shares"]
    save_judgments(store, evaluator(store).id, [judge(trace, "offline")])
    steps = frame(store, "soft")
    assert steps.share.tolist()[:2] == [1 / 3, 0.1 + 0.2]
    assert steps.share.isna().tolist() == [False, False, True]
    assert steps.gold[0] == "pos"


def test_a_share_makes_another_trace_of_the_same_text():
    soft, hard = PLAIN.parse(row([0.5, 0.5, 0.5]), "f"), PLAIN.parse(row([None, None, None]), "f")
    assert soft.digest != hard.digest
    assert soft.text_digest == hard.text_digest
    assert (soft.has_gold, soft.shows_gold) == (False, True)
    with refused():
        Step(("a",), share=float("nan"))
