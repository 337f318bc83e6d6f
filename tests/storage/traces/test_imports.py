"""Importing files: what is stored, what is refused, and that nothing of a failed file stays."""

import hashlib
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from stepsight.core.trace import Trace
from stepsight.storage.database.store import open_store
from stepsight.storage.importers.rows.kind import OnBad
from stepsight.storage.traces.imports import ImportSummary, import_file
from stepsight.storage.traces.queries import find_dataset, iterate_traces, list_datasets
from stepsight.storage.traces.writer import TraceRows, TraceWriter, save_trace
from tests.cases import each
from tests.conftest import ROOT
from tests.hostile.data_files import inspect_log
from tests.messages import refused
from tests.storage.samples import invalid_row, plain_row, redundant_row, write_lines


@pytest.fixture
def file(tmp_path):
    return tmp_path / "rows.jsonl"


def test_importing_again_changes_nothing_and_says_so(store, file):
    write_lines(file, [plain_row(1), plain_row(2)])
    first = import_file(store, "plain", file)
    assert first == ImportSummary("rows", "plain", added=2, unchanged=0, repeated=0, total=2)
    assert str(first) == "rows: 2 traces added; 2 in the dataset."
    before = list_datasets(store), list(iterate_traces(store, 1))
    again = import_file(store, "jsonl", file)
    assert again == replace(first, added=0, unchanged=2)
    assert str(again) == "rows: nothing new, 2 traces already stored."
    assert (list_datasets(store), list(iterate_traces(store, 1))) == before


def test_new_rows_of_an_extended_file_are_added_after_the_others(store, file, tmp_path):
    import_file(store, "plain", write_lines(file, [plain_row(1), plain_row(2)]))
    longer = write_lines(tmp_path / "longer.jsonl", [plain_row(0), plain_row(1), plain_row(2), plain_row(0)])
    summary = import_file(store, "plain", longer, dataset="rows")
    assert str(summary) == "rows: 1 trace added, 2 already stored, 1 repeated in the file; 3 in the dataset."
    assert [trace.id for trace in iterate_traces(store, 1)] == ["1", "2", "0"]
    assert find_dataset(store, "rows").source == "longer.jsonl"


def test_a_dataset_knows_its_source(store, file):
    write_lines(file, [plain_row(1)])
    import_file(store, "plain", file, dataset="named")
    dataset = find_dataset(store, "named")
    assert (dataset.kind, dataset.source) == ("plain", "rows.jsonl")
    assert dataset.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()


def test_blank_lines_a_byte_order_mark_and_a_missing_last_newline(store, file):
    text = '\ufeff{"id": 1, "problem": "P", "steps": ["a"]}\r\n\r\n  \n{"id": 2, "problem": "P", "steps": ["a"]}'
    file.write_text(text, encoding="utf-8", newline="")
    assert import_file(store, "plain", file).added == 2


BAD: list[tuple[str, Any, str]] = [
    ("plain", '{"id": 3, "problem": "P", "steps": ["a"'),
    ("plain", "[" * 100_000),
    ("plain", plain_row(3, labels=["pos"])),
    ("plain", plain_row(3, steps=[])),
    ("plain", plain_row(3, problem="a\x00b")),
    ("plain", plain_row(3, steps=["\ud800"])),
    ("plain", plain_row(3, score="\0")),
    ("plain", plain_row(1, problem="Other")),
    ("plain", redundant_row()),
    ("mr-math-invalid", invalid_row(model_output_solution_first_error_step=9)),
]
GOOD = {
    "plain": plain_row,
    "mr-math-invalid": lambda i: invalid_row(id=i),
}


@each("kind, bad", BAD)
def test_a_bad_line_fails_the_file_and_nothing_is_stored(store, file, kind, bad):
    write_lines(file, [GOOD[kind](1), GOOD[kind](2), bad, GOOD[kind](4)])
    with refused():
        import_file(store, kind, file)
    assert list_datasets(store) == []


def test_a_file_that_is_not_utf8(store, file):
    write_lines(file, [plain_row(1)])
    file.write_bytes(file.read_bytes() + '{"id": 2, "problem": "é"'.encode("latin-1"))
    with refused():
        import_file(store, "plain", file)
    assert list_datasets(store) == []


def test_a_bad_line_after_many_good_ones_leaves_the_dataset_as_it_was(store, file):
    import_file(store, "plain", write_lines(file, [plain_row(0)]))
    write_lines(file, [*(plain_row(i) for i in range(1200)), "{"])
    with refused():
        import_file(store, "plain", file)
    assert find_dataset(store, "rows").traces == 1


def test_changed_content_is_refused(store, file):
    import_file(store, "plain", write_lines(file, [plain_row(1), plain_row(2)]))
    write_lines(file, [plain_row(3), plain_row(2, steps=["Other."])])
    with refused():
        import_file(store, "plain", file)
    assert find_dataset(store, "rows").traces == 2


@pytest.mark.parametrize("content", ["", "\n", " \n\n"])
def test_an_empty_file(store, file, content):
    file.write_text(content)
    with refused():
        import_file(store, "plain", file)
    assert list_datasets(store) == []


def test_missing_files_and_invalid_names_are_refused(store, tmp_path, file):
    with refused():
        import_file(store, "plain", tmp_path / "none.jsonl")
    with refused():
        import_file(store, "plain", tmp_path)
    with refused():
        import_file(store, "plain", write_lines(file, [plain_row(1)]), dataset="")


def test_progress_tells_traces_and_the_part_of_the_file(store, file):
    calls: list[tuple[int, float]] = []
    write_lines(file, [plain_row(10_000 + i) for i in range(1250)])
    import_file(store, "plain", file, progress=lambda count, part: calls.append((count, part)))
    # Rows are equally long: after 500 of 1,250 two fifths of the file are read. Reading counts for a tenth.
    assert [count for count, _ in calls] == [0, 0, 0, 500, 1000, 1250]
    assert [part for _, part in calls] == pytest.approx([0.04, 0.08, 0.1, 0.46, 0.82, 1.0], abs=0.001)


def test_others_write_while_a_file_is_read(store, file):
    def change(trace: Trace) -> Trace:
        save_trace(store, trace)
        return trace

    import_file(store, "plain", write_lines(file, [plain_row(i) for i in range(3)]), change=change)
    assert sorted((dataset.name, dataset.traces) for dataset in list_datasets(store)) == [("rows", 3), ("saved", 3)]


def test_a_bounded_number_of_traces_is_held(store, file, monkeypatch):
    sizes = []
    add = TraceWriter.add_rows

    def watched(writer: TraceWriter, batch: list[TraceRows], on_bad: OnBad) -> None:
        sizes.append(len(batch))
        add(writer, batch, on_bad)

    monkeypatch.setattr(TraceWriter, "add_rows", watched)
    import_file(store, "plain", write_lines(file, [plain_row(i) for i in range(1300)]))
    assert sizes == [500, 500, 300]


@pytest.mark.slow
def test_texts_that_a_log_refers_to_count_as_often_as_they_are_stored(sqlite_store, tmp_path):
    """11 times a million characters in a trace, and 6 traces of 9 million each, of a few thousand bytes."""
    for name, samples, references in (("trace", 1, 11), ("file", 6, 9)):
        path = tmp_path / f"{name}.eval"
        path.write_bytes(inspect_log(samples, references, 10**6))
        with refused():
            import_file(sqlite_store, "inspect", path)
        assert list_datasets(sqlite_store) == []
    path.write_bytes(inspect_log(5, 9, 10**6))
    assert import_file(sqlite_store, "inspect", path).added == 5


def test_two_imports_of_one_file_at_once(store, file):
    write_lines(file, [plain_row(i) for i in range(700)])
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: import_file(store, "plain", file), range(3)))
    assert sorted((summary.added, summary.unchanged) for summary in found) == [(0, 700), (0, 700), (700, 0)]
    assert find_dataset(store, "rows").traces == 700


KILLED = """
import os, signal, sys
from stepsight.storage.traces.imports import import_file
from stepsight.storage.database.store import open_store

def die(count, part):
    if count >= 1000:
        os.kill(os.getpid(), signal.SIGKILL)

import_file(open_store(sys.argv[1]), "plain", sys.argv[2], progress=die)
"""


@pytest.mark.slow
def test_a_killed_import_stores_nothing(address, file):
    write_lines(file, [plain_row(i) for i in range(3000)])
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, address, str(file)], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert killed.returncode == -signal.SIGKILL
    with open_store(address) as store:
        assert list_datasets(store) == []
        assert import_file(store, "plain", file).added == 3000
