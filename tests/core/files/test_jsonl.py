import pytest

from stepsight.core.files.jsonl import format_trace, parse_trace, read_file, read_rows
from stepsight.core.label import Label
from stepsight.core.trace import Step, Trace
from tests.messages import refused

ROW = {"id": "a", "problem": "q", "steps": ["x", ["y", "z"]], "labels": ["pos", None], "topic": "sums"}


def test_validity_without_a_label_is_kept_and_a_label_says_it_by_itself():
    steps = (Step(("a",), valid=True), Step(("b", "c"), Label.NEG), Step(("d",)))
    trace = Trace("first", "What?", steps, {"by": "hand"})
    row = format_trace(trace)
    assert (row["labels"], row["valid"]) == ([None, "neg", None], [True, False, None])
    assert parse_trace(row, "here") == trace
    assert parse_trace(row | {"labels": ["neu", "neg", None]}, "here").labels == (Label.NEU, Label.NEG, None)


@pytest.mark.parametrize("valid", [[True], [True, "no"]])
def test_validity_that_fits_no_steps_is_refused(valid):
    with refused():
        parse_trace({"id": 1, "problem": "q", "steps": ["x", "y"], "valid": valid}, "here")


def test_a_field_called_valid_that_is_no_list_is_the_sources_own():
    assert parse_trace({"id": 1, "problem": "q", "steps": ["x"], "valid": True}, "here").meta == {"valid": True}


def test_a_row_survives_the_round_trip():
    assert format_trace(parse_trace(ROW, "here")) == ROW


def test_whole_number_ids_become_text():
    assert parse_trace({"id": 7, "problem": "q", "steps": ["x"]}, "here").id == "7"


@pytest.mark.parametrize(
    "change",
    [
        {"problem": None},
        {"steps": "x"},
        {"steps": ["x", 3]},
        {"labels": ["pos"]},
        {"labels": ["good", None]},
        {"id": 1.5},
        {"id": " "},
        {"id": "a\ud800"},
    ],
)
def test_a_bad_row_names_the_place_and_the_fault(change):
    with refused():
        parse_trace(ROW | change, "f line 3")


@pytest.mark.parametrize("key", ["id", "problem", "steps"])
def test_a_missing_field_is_named(key):
    with refused():
        parse_trace({k: v for k, v in ROW.items() if k != key}, "here")


def test_rows_count_lines_and_pass_over_blank_ones():
    assert list(read_rows([b'\xef\xbb\xbf{"a": 1}\n', b"\n", b'{"a": 2}'], "f")) == [(1, {"a": 1}), (3, {"a": 2})]


@pytest.mark.parametrize("line", [b'{"a": ', b"[1]", b'{"a": "\xff"}', b'{"b": [{"a": 1, "a": 2}]}'])
def test_a_line_that_cannot_be_read_is_named(line):
    with refused():
        list(read_rows([b"{}", line], "f"))


def test_a_line_without_an_end_is_not_read_to_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr("stepsight.core.files.jsonl.LARGEST", 1000)
    path = tmp_path / "f.jsonl"
    path.write_bytes(b'{"a": 1}\n' + b"x" * 1000 + b"\n")
    with refused():
        list(read_file(path))
    path.write_bytes(b'{"a": 1}\n' * 3)
    assert len(list(read_file(path))) == 3
