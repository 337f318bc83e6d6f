"""Bad rows: all counted in a refusal, or left out, listed and remembered."""

import json
from typing import Any

import pytest
from sqlalchemy import select

from stepsight.core.errors import UserError
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import LeftOutRow
from stepsight.storage.traces import bad_rows, imports
from stepsight.storage.traces.imports import ImportSummary, import_file
from stepsight.storage.traces.queries import find_dataset, iterate_traces, list_datasets
from tests.messages import refused
from tests.storage.samples import plain_row, write_lines

BAD: list[Any] = [
    "nonsense",
    plain_row(5, labels=["pos"]),
    plain_row(1, problem="Other"),
    plain_row(7, x="\0"),
]
WHAT = [
    "not JSON (Expecting value at column 1). Write one JSON object per line.",
    "1 label for 2 steps. Give one label per step, null where unlabelled.",
    "the id '1' is used earlier in the file with different content. Give every trace an id of its own.",
    "a text contains a NUL byte. Remove it.",
]


@pytest.fixture
def file(tmp_path):
    """Six rows, of which the third to the sixth are bad."""
    return write_lines(tmp_path / "rows.jsonl", [plain_row(1), plain_row(2), *BAD])


@pytest.fixture
def listing(tmp_path):
    return tmp_path / "rows.skipped.jsonl"


def remembered(store):
    found = select(LeftOutRow.source, LeftOutRow.place, LeftOutRow.error).order_by(LeftOutRow.place)
    with store.read() as session:
        return [tuple(row) for row in session.execute(found)]


def test_a_refusal_counts_all_and_shows_the_first_few(store, file, tmp_path):
    with pytest.raises(UserError) as caught:
        import_file(store, "plain", file)
    head = f"{file}: 4 of 6 rows are bad, so that nothing was stored; fix them, or leave them out with --skip-bad."
    lines = [f"  line {number}: {what}" for number, what in enumerate(WHAT, start=3)]
    assert str(caught.value).splitlines() == [head, *lines]
    write_lines(file, [plain_row(0), *(f"bad {i}" for i in range(8))])
    with pytest.raises(UserError) as caught:
        import_file(store, "plain", file)
    shown = str(caught.value).splitlines()
    assert (len(shown), shown[-1]) == (7, "  and 3 more")
    assert list_datasets(store) == []
    assert [path.name for path in tmp_path.iterdir() if "skipped" in path.name] == []


@pytest.mark.parametrize("leave_out", [False, True])
def test_after_too_many_bad_rows_a_file_is_read_no_further(store, file, listing, monkeypatch, leave_out):
    monkeypatch.setattr(bad_rows, "_MOST", 3)
    read: list[str] = []

    def change(trace: Trace) -> Trace:
        read.append(trace.id)
        return trace

    write_lines(file, [plain_row(1), *(plain_row(0, steps=[]) for _ in range(4)), plain_row(2)])
    with refused():
        import_file(store, "plain", file, skipped=listing if leave_out else None, change=change)
    assert read == ["1"]
    assert list_datasets(store) == []


def test_a_long_file_with_bad_rows_is_refused_before_it_is_written(store, file, monkeypatch):
    monkeypatch.setattr(imports, "_FEW", 1)
    counts: list[int] = []
    # The third would be refused by the store.
    write_lines(file, [plain_row(1), plain_row(2), plain_row(1, problem="Other"), *BAD[:2]])
    with pytest.raises(UserError, match="2 of 5 rows are bad"):
        import_file(store, "plain", file, progress=lambda count, part: counts.append(count))
    assert set(counts) == {0}


def test_a_single_bad_row_is_told_by_itself(store, file):
    write_lines(file, [plain_row(1), BAD[1]])
    with refused():
        import_file(store, "plain", file)


def test_bad_rows_are_left_out_listed_and_remembered(store, file, listing):
    summary = import_file(store, "plain", file, skipped=listing)
    assert summary == ImportSummary("rows", "plain", added=2, unchanged=0, repeated=0, total=2, left_out=4)
    assert str(summary) == "rows: 2 traces added, 4 bad rows left out; 2 in the dataset."
    rows = [json.loads(line) for line in listing.read_text(encoding="utf-8").splitlines()]
    assert rows == [
        {"file": "rows.jsonl", "line": number, "error": what} for number, what in enumerate(WHAT, start=3)
    ]
    assert remembered(store) == [
        ("rows.jsonl", f"line {number}", what) for number, what in enumerate(WHAT, start=3)
    ]
    dataset = find_dataset(store, "rows")
    assert (dataset.traces, dataset.left_out, dataset.size) == (2, 4, "2 of 6")
    assert [trace.id for trace in iterate_traces(store, dataset.id)] == ["1", "2"]
    assert not list(listing.parent.glob("*.partial"))


def test_importing_again_counts_a_row_once(store, file, listing, tmp_path):
    import_file(store, "plain", file, skipped=listing)
    before = remembered(store), listing.read_bytes()
    again = import_file(store, "plain", file, skipped=listing)
    # The row with the id of another is now told from what is stored, which is another message.
    assert str(again) == "rows: nothing new, 2 traces already stored, 4 bad rows left out."
    assert (remembered(store), listing.read_bytes()) == before


def test_a_longer_file_adds_its_own_bad_rows(store, file, listing, tmp_path):
    import_file(store, "plain", file, skipped=listing)
    longer = write_lines(tmp_path / "longer.jsonl", [plain_row(1), plain_row(2), "more", *BAD, plain_row(9)])
    summary = import_file(store, "plain", longer, dataset="rows", skipped=tmp_path / "longer.skipped.jsonl")
    assert (summary.added, summary.left_out) == (1, 5)
    assert find_dataset(store, "rows").size == "3 of 8"


def test_equal_bad_rows_are_as_many_as_there_are(store, file, listing):
    write_lines(file, [plain_row(1), "{", "{", "{"])
    for _ in range(2):
        assert import_file(store, "plain", file, skipped=listing).left_out == 3
        assert find_dataset(store, "rows").left_out == 3


def test_without_bad_rows_nothing_is_listed(store, file, listing):
    write_lines(file, [plain_row(1)])
    assert import_file(store, "plain", file, skipped=listing).left_out == 0
    assert not listing.exists()
    assert find_dataset(store, "rows").size == "1"


def test_another_list_is_never_overwritten(store, file, listing):
    listing.write_text("precious")
    with refused():
        import_file(store, "plain", file, skipped=listing)
    assert listing.read_text() == "precious"
    assert list_datasets(store) == []
    assert not list(listing.parent.glob("*.partial"))


def test_a_list_that_cannot_be_written(store, file, tmp_path):
    with refused():
        import_file(store, "plain", file, skipped=tmp_path / "none" / "x.jsonl")
    assert list_datasets(store) == []


def test_a_file_of_bad_rows_only_is_refused(store, file, listing):
    write_lines(file, ["nonsense", "more"])
    with refused():
        import_file(store, "plain", file, skipped=listing)
    assert list_datasets(store) == []
    assert not listing.exists()


def test_an_array_that_breaks_off_is_refused_whatever_is_skipped(store, file, listing):
    file.write_text(f"[{json.dumps(plain_row(1))},\n3,\n{{]")
    with refused():
        import_file(store, "plain", file, skipped=listing)
    assert list_datasets(store) == []
    assert [path.name for path in file.parent.glob("rows*")] == ["rows.jsonl"]


def test_places_of_an_array_are_rows(store, file, listing):
    file.write_text(json.dumps([plain_row(1), plain_row(2, steps=[])]))
    import_file(store, "plain", file, skipped=listing)
    assert json.loads(listing.read_text()) == {
        "file": "rows.jsonl", "row": 2, "error": "there are no steps. Give at least one step.",
    }  # fmt: skip


def test_few_rows_are_held_at_once(store, file, listing, monkeypatch):
    monkeypatch.setattr(bad_rows, "_BATCH", 7)
    monkeypatch.setattr(imports, "_BATCH", 10)
    rows = [plain_row(i) if i % 3 else f"bad {i}" for i in range(100)]
    summary = import_file(store, "plain", write_lines(file, rows), skipped=listing)
    assert (summary.added, summary.left_out) == (66, 34)
    assert len(listing.read_text().splitlines()) == len(remembered(store)) == 34
