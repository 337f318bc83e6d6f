"""Files as strangers bring them, a few of each kind. The command and the page read the same, and what is meant.

Kinds that are no files have tests of their own: signs in `storage/traces/test_search.py`, notations of equations
and of steps in `core/*/test_notations.py`, answers of critics in `core/critics/test_verdict_parser.py`, labels of
Label Studio in `storage/labelling/files/test_import_tools.py`, final answers in
`training/experiments/reranking/test_answers.py`, rewards in `app/api/test_rewards.py`, and files of `stepsight
score`, compressed or as an array, in `app/commands/test_cli.py`.
"""

import gzip
import json
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

import pyarrow
import pyarrow.parquet

from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.storage.importers.guesses import guess_columns
from tests.cases import each
from tests.fuzz.test_containers import at_the_command, on_the_page

STEPS = ["4 + 4 = 8.", "8 + 1 = 10.", 'So "10".']
MIXED, FIRST, SOUND, NONE = ["valid", "neg", "neg"], ["valid", "neg", None], ["valid"] * 3, [None] * 3
VALIDITY, ERROR = ColumnMap("q", "s", "l", "validity"), ColumnMap("q", "s", "l", "error-from-0")
SPLIT, LINES = (ColumnMap("q", "s", "l", "validity", split=text) for text in ("\n\n", "\n"))
NESTED = ColumnMap("item.q", "work.s", "work.l", "validity")


def csv(steps, labels):
    cells = [cell.replace('"', '""') for cell in (str(steps), labels)]
    return f'q,s,l\n4 + 4 + 1?,"{cells[0]}","{cells[1]}"\n'.encode()


def lines(labels, **more):
    return json.dumps({"q": "4 + 4 + 1?", "s": STEPS, "l": "@", **more}).replace('"@"', labels).encode()


def parquet(labels, feature=None, **more):
    table, file = pyarrow.Table.from_pylist([{"q": "4 + 4 + 1?", "s": STEPS, "l": labels, **more}]), BytesIO()
    about = {"info": {"features": {"l": [{"names": feature, "_type": "ClassLabel"}]}}} if feature else {}
    pyarrow.parquet.write_table(table.replace_schema_metadata({"huggingface": json.dumps(about)}), file)
    return file.getvalue()


FILES: dict[str, Iterable[tuple[bytes, ColumnMap, list[str | None]]]] = {
    "lists in CSV, as Python, JSON and NumPy print them": (
        (csv(STEPS, "[True, False, False]"), VALIDITY, MIXED),
        (csv(json.dumps(STEPS), "[1 0 0]"), VALIDITY, MIXED),
        (csv(repr(tuple(STEPS)), "['+' '-' '-']"), VALIDITY, MIXED),
        (csv(f"array({STEPS}, dtype=object)", ""), VALIDITY, NONE),
    ),
    "a first error in a column with gaps": (
        (csv(STEPS, "1.0"), ERROR, FIRST),
        (csv(STEPS, ""), ERROR, NONE),
        (csv(STEPS, "−1"), ERROR, SOUND),
        (lines("1.0"), ERROR, FIRST),
        (lines("NaN"), ERROR, NONE),
        (lines("-1.0"), ERROR, SOUND),
        (parquet(1.0), ERROR, FIRST),
        (parquet(None), ERROR, NONE),
    ),
    "NaN and infinity": (
        (lines("[1, NaN, 0]"), VALIDITY, ["valid", None, "neg"]),
        (lines("[1.0, 0.0, 0.0]", score=float("nan"), level=float("inf")), VALIDITY, MIXED),
        (csv(STEPS, "[1.0, nan, 0.0]"), VALIDITY, ["valid", None, "neg"]),
    ),
    "names of classes": (
        (parquet([0, 1, 1], ["right", "wrong"]), VALIDITY, MIXED),
        (parquet([1, 0, 0], ["incorrect", "correct"]), VALIDITY, MIXED),
        (parquet([2, 1, 0], ["neg", "neu", "pos"]), VALIDITY, ["pos", "neu", "neg"]),
    ),
    "a picture": ((parquet([1, 0, 0], image={"bytes": b"\xff\xd8", "path": "a.png"}), VALIDITY, MIXED),),
    "compressed files": ((gzip.compress(lines("[1, 0, 0]")), VALIDITY, MIXED),),
    "a text with CRLF that is split": (
        (csv("\r\n\r\n".join(STEPS), ""), SPLIT, NONE),
        (csv("\n \n".join(STEPS), ""), SPLIT, NONE),
    ),
    "line breaks as spreadsheets write them in XML": (
        (csv("_x000D_\n".join(STEPS), ""), LINES, NONE),
        (csv("_x000d_\r\n_x000D_\r\n".join(STEPS) + "_x000D_", ""), SPLIT, NONE),
        (csv("_x000D__x000A__x000D_\n".join(STEPS), ""), SPLIT, NONE),
        (csv(json.dumps([f"{step}_x000D_" for step in STEPS]), "[1, 0, 0]"), VALIDITY, MIXED),
        (parquet([1, 0, 0], s="_x000D_".join(STEPS)), VALIDITY, MIXED),
        (lines("[1, 0, 0]", s="_x000B__x000D_\n".join(STEPS)), VALIDITY, MIXED),
    ),
    "a separator that is named, and two bytes for a sign": (
        (b"sep=;\n" + csv(STEPS, "-1").replace(b'?,"', b'?;"').replace(b'","', b'";"').replace(b"q,s,l", b"q;s;l"),
         ERROR, SOUND),
        (csv(STEPS, "[1, 0, 0]").decode().encode("utf-16"), VALIDITY, MIXED),
    ),
}  # fmt: skip


def read(content, columns, path):
    path.write_bytes(content)
    at_command, on_page = at_the_command(path, columns), on_the_page(path, columns)
    assert at_command == on_page
    return at_command


@each("kind", FILES)
def test_a_file_of_this_kind_is_read_as_it_is_meant(kind, tmp_path):
    for content, columns, gold in FILES[kind]:
        (trace,) = read(content, columns, tmp_path / "table")
        assert [step.text for step in trace.steps] == STEPS, content
        assert [step.gold for step in trace.steps] == gold, content


def test_columns_beside_nested_ones_are_kept(tmp_path):
    row = {"item": {"q": "?", "answer": "9", "source": "M"}, "work": {"s": STEPS, "l": [1, 0, 0], "model": "m"}}
    (trace,) = read(json.dumps(row).encode(), NESTED, tmp_path / "table")
    assert trace.meta == {"item": {"answer": "9", "source": "M"}, "work": {"model": "m"}}


@each("labels", [[1.0, 0.0, 0.0], [True, False, False], ["+", "-", "-"], ["correct", "wrong", "wrong"]])
def test_right_and_wrong_are_never_guessed_to_be_ratings(labels):
    rows: list[Mapping[str, Any]] = [{"question": "?", "steps": STEPS, "labels": labels}]
    assert guess_columns(list(rows[0]), rows).columns.labels_as == "validity"
