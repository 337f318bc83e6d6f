"""A table under its own column names."""

import json
import time

import pytest

from stepsight.core.errors import UserError
from stepsight.core.trace import Label, Step
from stepsight.storage.exports.frames import frame
from stepsight.storage.exports.table_files import trace_lines
from stepsight.storage.importers import KINDS
from stepsight.storage.importers.column_mapping import LABELS, ColumnMap, column_names, columns_kind
from stepsight.storage.importers.guesses import guess_columns
from stepsight.storage.importers.recognition import recognise
from stepsight.storage.importers.rows.kind import json_rows
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset, find_trace, list_trace_ids
from tests.cases import each
from tests.messages import refused
from tests.storage.samples import evaluator, judge, write_lines

ROW = {"question": "What is 1 + 1?", "meta": {"process": ["It is a sum.", "So 3."]}, "rated": [1, -1], "no": 7}


NAMES = {"problem": "q", "steps": "s"}
LABELLED = NAMES | {"labels": "l"}


def parse(row, **columns):
    return columns_kind(ColumnMap(**columns), json_rows).parse(row, "f row 1")


def test_a_row_becomes_a_trace_by_the_columns_that_are_named():
    trace = parse(ROW, problem="question", steps="meta.process", labels="rated", id="no")
    assert (trace.id, trace.problem) == ("7", "What is 1 + 1?")
    assert trace.steps == (Step(("It is a sum.",), Label.POS), Step(("So 3.",), Label.NEG))
    assert trace.meta == {}
    unnamed = parse(ROW, problem="question", steps="meta.process")
    assert unnamed.meta == {"rated": [1, -1], "no": 7}
    assert unnamed.id == parse(dict(reversed(ROW.items())), problem="question", steps="meta.process").id


def read(rows, **columns):
    """The notes on a file of some rows."""
    kind = columns_kind(ColumnMap(**columns), json_rows)
    list(kind.rows([f"{json.dumps(row)}\n".encode() for row in rows], "f"))
    return kind.notes()


@each("labels", [[[1, 0]], [[0]], [[1.0], ["0", None]]])
def test_labels_of_0_and_1_alone_are_not_guessed_at(labels):
    rows = [{"q": "?", "s": ["a", "b"], "l": one} for one in labels]
    with refused():
        read(rows, **LABELLED, labels_as="")
    assert read(rows, **LABELLED, labels_as="ratings") == read(rows, **LABELLED, labels_as="validity") == ()
    for other in (-1, "neu", True):
        assert read([*rows, {"q": "?", "s": ["a"], "l": [other]}], **LABELLED, labels_as="") == ()
    assert parse({"q": "?", "s": ["a", "b"], "l": [0, -1]}, **LABELLED, labels_as="").labels == (
        Label.NEU,
        Label.NEG,
    )


def test_solutions_that_all_became_one_step_are_noted():
    one = {"q": "?", "s": "2 + 3 = 5 ||| 5 + 4 = 9"}
    (note,) = read([one, one | {"s": " "}], **NAMES)
    assert note.startswith("Every solution became one step.")
    for rows in ([one, one | {"s": "Add.\n\nSo 5."}], [{"q": "?", "s": ["a"]}], [{"q": "?", "s": "['a']"}]):
        assert read(rows, **NAMES) == ()


def test_a_text_between_steps_is_in_a_solution_or_refused():
    for solutions in (["A sum. So 2."], ["A sum. So 2.", "\n"], ["So 2. ки", "So 4."]):
        rows = [{"q": "1?", "s": solution} for solution in solutions]
        with refused():
            read(rows, **NAMES, split="###")
    assert read(rows, **NAMES, split="ки") == ()
    # Lists of steps need none.
    assert read([{"q": "1?", "s": ["A sum.", "So 2."]}], **NAMES, split="###") == ()


@each(
    "solution",
    [
        "<think>It is 5.\n\nNo, 4.</think>2 + 2 = 4.\n\nSo 4.",
        "[THINK]It is 5.\n\nNo, 4.[/THINK]\n2 + 2 = 4.\n\nSo 4.",
        "<|channel|>analysis<|message|>It is 5.\n\nNo, 4.<|end|><|start|>assistant<|channel|>final<|message|>"
        "2 + 2 = 4.\n\nSo 4.<|return|>",
    ],
)
def test_thinking_is_kept_beside_the_steps_or_judged_as_the_first_ones(solution):
    row = {"q": "2 + 2?", "a": solution, "source": "x"}
    aside, judged = (parse(row, problem="q", steps="a", thoughts=one) for one in ("aside", "judged"))
    assert aside == parse(row, problem="q", steps="a")
    assert [step.text for step in aside.steps] == ["2 + 2 = 4.", "So 4."]
    assert aside.meta == {"source": "x", "thinking_set_aside": "It is 5.\n\nNo, 4."}
    assert [step.text for step in judged.steps] == ["It is 5.", "No, 4.", "2 + 2 = 4.", "So 4."]
    assert judged.meta == {"source": "x", "thought_steps": 2}
    assert ColumnMap("q", "a", thoughts="judged").as_fields == "problem=q,steps=a,thoughts=judged"


def test_thinking_that_never_ends_is_judged_and_counted():
    solutions = [
        "<think>It is 5.\n\nNo, 4.",
        "The tag <think> is old.\n\nSo 4.",
        "<|channel|>analysis<|message|>It is 5.",
    ]
    (note,) = read([{"q": "2 + 2?", "a": text} for text in solutions], problem="q", steps="a")
    assert note.startswith("Thinking that never ends, in 2 rows: ")


def test_a_solution_that_is_one_text_is_split():
    assert [
        step.text for step in parse({"q": "?", "a": "Step 1: Add.\nStep 2: So 4."}, problem="q", steps="a").steps
    ] == ["Add.", "So 4."]
    listed = parse({"q": "?", "a": '["Add.", ["So 4.", "Yes."]]'}, problem="q", steps="a")
    assert [step.substeps for step in listed.steps] == [("Add.",), ("So 4.", "Yes.")]


@each(
    "text",
    [
        "Add 1.\r\nIt is 2.\r\n\r\nSo 4.\r\n",
        "Add 1.\nIt is 2.\n \xa0\nSo 4.",
        "\ufeffAdd 1.\rIt is 2.\r\r\u200b\r\rSo 4.",
    ],
)
def test_blank_lines_separate_steps_whatever_ends_a_line(text):
    trace = parse({"q": "?", "a": text}, problem="q", steps="a", split="\n\n")
    assert [step.text.strip("\ufeff") for step in trace.steps] == ["Add 1.\nIt is 2.", "So 4."]


@each(
    "cell, steps",
    [
        ("['Let x = 1.', \"It's 2.\"]", ["Let x = 1.", "It's 2."]),
        ("['Let x = 1.' \"It's 2.\"\n 'So.']", ["Let x = 1.", "It's 2.", "So."]),
        ("array(['a', 'b'], dtype=object)", ["a", "b"]),
        ("[np.str_('a'), np.str_(\"b\")]", ["a", "b"]),
        (
            r"""['He says "5".', 'It\'s 5.', 'a\\nb', '\\frac{1}{2}']""",
            ['He says "5".', "It's 5.", r"a\nb", r"\frac{1}{2}"],
        ),
        ("[('a', 'b'), ['c']]", ["a\nb", "c"]),
        ("('a', 'b')", ["a", "b"]),
        ("[x + 1] is even.", ["[x + 1] is even."]),
        ('"She has 3, he 4.", "So 7."', ["She has 3, he 4.", "So 7."]),
        ("[-2, 2]", ["[-2, 2]"]),
    ],
)
def test_a_list_in_a_cell_is_read_as_programs_print_it(cell, steps):
    assert [step.text for step in parse({"q": "?", "s": cell}, **NAMES).steps] == steps


def test_an_object_in_a_cell_has_columns_within():
    row = {"q": "?", "a": "{'steps': [{'text': 'One.', 'ok': True}, {'text': 'Two.', 'ok': False}], 'by': 'x'}"}
    assert "a.steps" in column_names([row])
    trace = parse(row, problem="q", steps="a.steps.text", labels="a.steps.ok", labels_as="validity")
    assert [step.gold for step in trace.steps] == ["valid", "neg"]
    assert trace.meta == {"a": {"by": "x"}}


@each(
    "row, columns, meta",
    [
        (
            {"i": {"q": "?", "a": "9"}, "s": ["x"], "n": 1},
            {"problem": "i.q", "steps": "s"},
            {"i": {"a": "9"}, "n": 1},
        ),
        ({"i": {"q": "?"}, "s": ["x"]}, {"problem": "i.q", "steps": "s"}, {}),
        (
            {"m": [{"by": "u", "t": "?"}, {"by": "a", "t": "x"}, {"t": "more"}]},
            {"problem": "m.0.t", "steps": "m.1.t"},
            {"m": [{"by": "u"}, {"by": "a"}, {"t": "more"}]},
        ),
        (
            {"q": "?", "s": [{"t": "x"}, {"t": "y", "k": 2}]},
            {"problem": "q", "steps": "s.t"},
            {"s": [None, {"k": 2}]},
        ),
        ({"i.q": "?", "i": {"q": 7}, "s": ["x"]}, {"problem": "i.q", "steps": "s"}, {"i": {"q": 7}}),
    ],
)
def test_what_stands_beside_a_nested_column_is_kept(row, columns, meta):
    assert parse(row, **columns).meta == meta


RATED = [Step(("a",), Label.NEG), Step(("b",), Label.NEU), Step(("c",), Label.POS)]
VALID = [Step(("a",), valid=True), Step(("b",), Label.NEG), Step(("c",))]
SOUND = [Step((text,), valid=True) for text in "abc"]
UNKNOWN = [Step((text,)) for text in "abc"]


@each(
    "labels_as, value, steps",
    [
        ("ratings", [-1, 0, 1], RATED),
        ("ratings", ["neg", " Neu", "pos"], RATED),
        ("ratings", "[-1, 0.0, 1]", RATED),
        ("validity", [1, 0, None], VALID),
        ("validity", [True, False, None], VALID),
        ("validity", ["+", "-", None], VALID),
        ("validity", '["1", "0", null]', VALID),
        ("error-from-0", 1, VALID),
        ("error-from-0", "1", VALID),
        ("error-from-1", 2, VALID),
        ("error-from-0", -1, SOUND),
        ("error-from-1", 0, SOUND),
        ("error-from-1", "N/A", SOUND),
        ("error-from-0", "N/A", SOUND),
        ("error-from-0", None, UNKNOWN),
        ("ratings", "", UNKNOWN),
        # As Python, pandas and NumPy print them.
        ("ratings", "[-1 0 1]", RATED),
        ("ratings", "array([-1.,  0.,  1.])", RATED),
        ("ratings", "[np.int64(-1), np.int64(0), np.int64(1)]", RATED),
        ("ratings", "['neg', \"neu\", pos]", RATED),
        ("ratings", "[\u22121, 0, 1]", RATED),
        ("validity", "[True, False, None]", VALID),
        ("validity", "['+' '-' '']", VALID),
        ("validity", [1.0, 0.0, float("nan")], VALID),
        ("validity", '["1.0", "0.0", "NaN"]', VALID),
        ("validity", "['Correct', 'wrong ', 'N/A']", VALID),
        # Words mean the same in every column.
        ("ratings", [True, "incorrect", None], VALID),
        ("validity", ["neg", "neu", "pos"], RATED),
        # A column with gaps becomes one of floats.
        ("error-from-0", 1.0, VALID),
        ("error-from-0", "1.0", VALID),
        ("error-from-0", "1,0", VALID),
        ("error-from-1", " 2. ", VALID),
        ("error-from-0", -1.0, SOUND),
        ("error-from-0", "\u22121", SOUND),
        ("error-from-1", "0.0", SOUND),
        *[(form, gap, UNKNOWN) for form in LABELS for gap in (None, float("nan"), "", " ", "NaN", "<NA>", "null")],
    ],
)
def test_labels_in_every_form(labels_as, value, steps):
    row = {"q": "?", "s": ["a", "b", "c"], "l": value}
    assert list(parse(row, problem="q", steps="s", labels="l", labels_as=labels_as).steps) == steps


@each(
    "row, columns",
    [
        ({"q": "?"}, NAMES),
        ({"q": 7, "s": ["a"]}, NAMES),
        ({"q": "?", "s": [7]}, NAMES),
        ({"q": "?", "s": []}, NAMES),
        ({"q": "?", "s": ["a"], "l": [1, 1]}, LABELLED),
        ({"q": "?", "s": ["a"], "l": [5]}, LABELLED),
        ({"q": "?", "s": ["a"], "l": 5}, LABELLED),
        ({"q": "?", "s": ["a"], "l": 2}, LABELLED | {"labels_as": "error-from-0"}),
        ({"q": "?", "s": ["a"], "l": 0.5}, LABELLED | {"labels_as": "error-from-0"}),
        ({"q": "?", "s": ["a"], "l": float("inf")}, LABELLED | {"labels_as": "error-from-0"}),
        ({"q": "?", "s": ["a", "b"], "l": [1, -1]}, LABELLED | {"labels_as": "validity"}),
        ({"q": "?", "s": "['a', 'b"}, NAMES),
        ({"q": "?", "s": "[She has 3, She eats 1]"}, NAMES),
        ({"q": "?", "s": "['a' ... 'z']"}, NAMES),
        ({"q": "?", "s": "[{'text': 'a'}]"}, NAMES),
        ({"q": "?", "s": "None"}, NAMES),
        ({"q": "?", "s": '{"a","b"}'}, NAMES),
        ({"q": "?", "s": ["a"], "i": " "}, NAMES | {"id": "i"}),
        ({"q": "?", "s": ["a"], "l": ["²"]}, LABELLED),
        ({"q": "?", "s": ["a"], "i": 1.5}, NAMES | {"id": "i"}),
        ({"q": "?", "s": ["a"]}, {"problem": "", "steps": "s"}),
    ],
)
def test_a_misfit_is_reported_with_its_place(row, columns):
    with refused():
        parse(row, **columns)


@each(
    "cell", ["#REF!", " #VALUE! ", "#DIV/0!", "#NAME?", "#NV", "#N/D", "#¡VALOR!", "#ЗНАЧ!", "Err:502", "#######"]
)
def test_an_error_value_of_a_spreadsheet_is_no_text(cell):
    for row in ({"q": cell, "s": "a"}, {"q": "?", "s": cell}):
        with pytest.raises(UserError, match="an error value of a spreadsheet"):
            parse(row, **NAMES)
    assert parse({"q": f"What is {cell}?", "s": "a", "l": cell}, **NAMES).meta == {"l": cell}


@each("text", ["#### 42", "# Solution", "#1", "#REF! is wrong", "Err: 502", "A#!"])
def test_a_text_that_only_looks_like_an_error_value_is_kept(text):
    assert parse({"q": text, "s": [text]}, **NAMES).problem == text


@each(
    "text, cut",
    [
        ("a" * 32_767, True),
        # Excel counts this sign twice, and wrote one break as seven signs.
        ("a" * 32_765 + "😀", True),
        ("a" * 32_765 + "_x000D_b", True),
        ("a" * 65_535, True),
        ("a" * 32_766, False),
        ("a" * 32_768, False),
        ("a" * 32_767 + " ", False),
    ],
)  # fmt: skip
def test_a_text_that_a_spreadsheet_cut_is_refused(text, cut):
    for row in ({"q": text, "s": "a"}, {"q": "?", "s": text}, {"q": "?", "s": f'["{text[4:]}"]'}):
        if cut:
            with pytest.raises(UserError, match=r"as long as a cell of (Excel|LibreOffice)"):
                parse(row, **NAMES)
        else:
            parse(row, **NAMES)
    # Steps of a list were never cells.
    assert len(parse({"q": "?", "s": [text]}, **NAMES).steps) == 1


def test_only_the_escapes_of_spreadsheets_are_read_as_signs():
    text = "_x000D_a_x005F_x000D_ b_x0009_c_x0007_ d_x005F_ x_x0041_ _x00G0_ _X000D_"
    shown = "\na_x000D_ b\tc d_x005F_ x_x0041_ _x00G0_ _X000D_"
    trace = parse({"q": text, "s": [text], "m": text}, **NAMES)
    assert (trace.problem, trace.steps[0].text, trace.meta["m"]) == (shown, shown, shown)


def test_what_a_spreadsheet_leaves_is_named_with_a_cure():
    for solution in ("#REF!", "a" * 32_767):
        with refused():
            parse({"q": "?", "s": solution}, **NAMES)


def test_a_text_that_would_take_minutes_to_split_is_refused():
    row = {"question": "?", "solution": "Step 1: x\n" * 150_000, "label": 1}
    with refused():
        parse(row, problem="question", steps="solution")
    # Nor is it split to see what the first rows hold, or whether there are steps.
    begin = time.process_time()
    guess_columns(list(row), [row] * 20)
    list(columns_kind(ColumnMap("question", "solution"), json_rows).rows([json.dumps(row).encode()] * 20, "f"))
    assert time.process_time() - begin < 2


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
