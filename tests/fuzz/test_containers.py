"""Tables of known traces as CSV, JSON, JSON Lines, Parquet and Arrow, written in the ways in which programs do.

Both doors, the command's and the page's, read the same traces from each, keep the other columns, and name what they
cannot read. Classes in Parquet are their names, whatever their order.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from stepsight.core.errors import UserError
from stepsight.storage.importers import KINDS
from stepsight.storage.importers.column_mapping import NAME, ColumnMap
from stepsight.storage.importers.data_files import find_data
from stepsight.storage.importers.recognition import BEGINNING, Holds, kind_of, recognise
from tests.fuzz.attack import COUNT
from tests.fuzz.test_values import TEXTS
from tests.seeds import chance

Row = dict[str, Any]
ALL_TEXTS = (*TEXTS, "a\r\nb", "a\u2028b", "=1+1", "neg", "a; b, c\td", "Step 1: é", "e\u0301 ’", " x ")
# Wrong and right, as one program writes them in a whole column.
RIGHT = (
    (0, 1), (0.0, 1.0), (False, True), ("0", "1"), ("0.0", "1."), ("-", "+"), ("−", "＋"), ("wrong", "correct"),
    ("FALSE", "TRUE"), ("no", "yes"), ("bad", " Good"), ("incorrect", "right"), ("f", "t"), ("invalid", "valid"),
)  # fmt: skip
RATED = (
    (-1, 0, 1), (-1.0, 0.0, 1.0), ("-1", "0", "1"), ("−1.0", "0.0", "+1"), ("neg", "neu", "pos"),
    ("Negative", "Neutral ", "POSITIVE"),
)  # fmt: skip
LONG = "a, b, c; d, e, f, g, h"
READ: tuple[Callable[[bytes], bytes], ...] = (
    gzip.compress,
    lambda content: pyarrow.compress(content, codec="zstd", asbytes=True),
)
REFUSED = {
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "twice": lambda content: gzip.compress(gzip.compress(content)),
}


@dataclass
class Sums:
    """Rows of a table, the columns that hold what, and what a reader of it makes of each row."""

    rows: list[Row]
    columns: ColumnMap
    expected: list[tuple[str, list[str], list[str | None], bool]] = field(default_factory=list)
    is_text: bool = False


def sums(rng):
    """One to four traces with labels of one kind, in flat or in nested columns."""
    labels_as = rng.choice(["ratings", "validity", "error-from-0", "error-from-1"])
    is_nested = rng.random() < 0.4
    spelling = rng.choice(RATED if labels_as == "ratings" else RIGHT)
    names = ("item.question", "solution.steps", "solution.labels") if is_nested else ("question", "steps", "labels")
    made = Sums([], ColumnMap(*names, labels_as))
    for _ in range(rng.randint(1, 4)):
        problem = rng.choice(ALL_TEXTS)
        steps = [rng.choice(ALL_TEXTS) for _ in range(rng.randint(1, 5))]
        written, gold = (
            _first_error(rng, len(steps), labels_as) if labels_as[0] == "e" else _each(rng, steps, spelling)
        )
        meta = {
            "source": rng.choice(ALL_TEXTS),
            "level": rng.choice([3, None]),
            LONG: rng.choice([0.5, math.inf]),
        }
        row = {"question": problem, "steps": steps, "labels": written, **meta}
        made.rows.append(_nested(row) if is_nested else row)
        made.expected.append((problem, steps, gold, any(one is not None for one in gold)))
    return made


def _each(rng, steps, spelling):
    if rng.random() < 0.15:
        return None, [None] * len(steps)
    gaps = {float: (None, math.nan), str: (None, "", "N/A", "nan")}.get(type(spelling[0]), (None,))
    meanings = ("neg", "neu", "pos") if len(spelling) == 3 else ("neg", "valid")
    chosen = [rng.choice((None, *range(len(spelling)), *range(len(spelling)))) for _ in steps]
    written = [rng.choice(gaps) if one is None else spelling[one] for one in chosen]
    return written, [None if one is None else meanings[one] for one in chosen]


def _first_error(rng, steps, labels_as):
    error, start = rng.choice((None, *range(-1, steps))), int(labels_as[-1])
    if error is None:
        return None, [None] * steps
    gold = ["valid" if error in (-1, *range(i + 1, steps)) else "neg" if i == error else None for i in range(steps)]
    # A column with gaps is one of floats.
    return float(error + start), gold


def _nested(row):
    return {
        "item": {"question": row["question"], "answer": "7"},
        "solution": {"steps": row["steps"], "labels": row["labels"], "model": "m"},
        "source": row["source"], "level": row["level"], LONG: row[LONG],
    }  # fmt: skip


def printed(value, rng):
    """A list or an object in a cell."""
    if isinstance(value, dict) or rng.random() < 0.6:
        return rng.choice([repr, json.dumps])(value)
    array = np.array(value, dtype=rng.choice([object, None]) if is_uniform(value) else object)
    tensor = repr(value) if any(isinstance(one, str) for one in value) else f"tensor({value})"
    return rng.choice([str(array), repr(array), repr(tuple(value)), repr(list(array)), tensor])


def is_uniform(value):
    return len({type(one) for one in value}) == 1


def cell(value, rng):
    if value is None:
        return rng.choice(["", "", "NaN", "<NA>"])
    return printed(value, rng) if isinstance(value, list | dict) else str(value)


def as_csv(made, path, rng):
    made.is_text = True
    delimiter, end = rng.choice(",;\t"), rng.choice(["\n", "\r\n"])
    buffer = io.StringIO(newline="")
    if rng.random() < 0.3:
        buffer.write(f"sep={delimiter}{end}")
    quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    writer = csv.writer(buffer, delimiter=delimiter, quoting=quoting, lineterminator=end)
    # Commas of a name, quoted or not, separate nothing.
    is_plain = delimiter == ";" and quoting == csv.QUOTE_MINIMAL
    writer.writerow(["a, b" if is_plain and name == LONG else name for name in made.rows[0]])
    writer.writerows([cell(value, rng) for value in row.values()] for row in made.rows)
    path.write_bytes(buffer.getvalue().encode(encoding(rng)))


def as_json(made, path, rng):
    dump = partial(json.dumps, ensure_ascii=rng.random() < 0.5)
    rows = made.rows
    if rng.random() < 0.2:
        # Of a table that was CSV before.
        rows = [
            {key: printed(one, rng) if isinstance(one, list) else one for key, one in row.items()} for row in rows
        ]
    if rng.random() < 0.5:
        text = dump(rows, indent=rng.choice([None, 1, 4]))
    else:
        text = "".join(dump(row) + rng.choice(["\n", "\r\n", "\n\n"]) for row in rows)
    path.write_bytes(text.encode(encoding(rng)))


def as_arrow(made, path, rng):
    """Parquet, or Arrow as a stream or with an index at its end."""
    table = pyarrow.Table.from_pylist(made.rows)
    if rng.random() < 0.3:
        place = table.schema.get_field_index("source")
        table = table.set_column(place, "source", table["source"].dictionary_encode())
    if rng.random() < 0.3:
        table = table.append_column("image", pyarrow.array([b"\xff\xd8\x00"] * len(table)))
    write_arrow(table, path, rng)


def write_arrow(table, path, rng):
    way = rng.choice(["parquet", "parquet", "stream", "file"])
    if way == "parquet":
        pyarrow.parquet.write_table(table, path, compression=rng.choice(["none", "snappy", "zstd"]))
        return
    new = pyarrow.ipc.new_stream if way == "stream" else pyarrow.ipc.new_file
    with new(str(path), table.schema) as writer:
        writer.write_table(table)


def encoding(rng):
    return rng.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16"])


def at_the_command(path, columns):
    data = find_data(path)
    kind = data.kind(columns)
    return [kind.parse(row, where) for where, row in kind.rows(iter(data), data.name)]


def on_the_page(path, columns):
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    found = recognise(content[:BEGINNING], lines, path.name)
    assert (found.holds, found.kind) == (Holds.TRACES, NAME)
    assert {columns.problem, columns.steps, columns.labels} <= set(found.names)
    kind = kind_of(found.kind, columns, content[:BEGINNING])
    return [kind.parse(row, where) for where, row in kind.rows(lines, path.name)]


WRITERS = {"CSV": as_csv, "JSON": as_json, "Arrow": as_arrow}


@pytest.mark.parametrize("form", WRITERS)
def test_traces_of_tables(form, tmp_path):
    path = tmp_path / "table"
    for number in range(COUNT):
        rng = chance(f"{form}:{number}")
        made = sums(rng)
        WRITERS[form](made, path, rng)
        content = path.read_bytes()
        if form != "Arrow" and rng.random() < 0.3:
            content = rng.choice(READ)(content)
            path.write_bytes(content)
        for door in (at_the_command, on_the_page):
            if door is on_the_page and content[:4] in (b"ARRO", b"\xff\xff\xff\xff"):
                continue
            traces = door(path, made.columns)
            found = [
                (one.problem, [step.text for step in one.steps], [step.gold for step in one.steps], one.has_gold)
                for one in traces
            ]
            assert found == made.expected, (form, number, door, content, made.columns, found, made.expected)
            for trace, row in zip(traces, made.rows, strict=True):
                check_rest(trace.meta, row, made, (form, number, content))


def check_rest(meta, row, made, about):
    """What stands beside the columns that are read."""
    long = "a, b" if "a, b" in meta else LONG
    assert set(meta) - {"image"} == {"source", "level", long} | ({"item", "solution"} & set(row)), (about, meta)
    assert meta["source"] == row["source"], about
    if not made.is_text:
        assert (meta["level"], meta[LONG]) == (row["level"], row[LONG]), (about, meta)
    if "item" in row:
        assert (meta["item"], meta["solution"]) == ({"answer": "7"}, {"model": "m"}), (about, meta)


def test_what_is_compressed_otherwise_is_refused_by_name(tmp_path):
    path = tmp_path / "table"
    for number in range(COUNT // 3):
        rng = chance(f"compressed:{number}")
        made, how, kind = sums(rng), rng.choice(list(REFUSED)), rng.choice(list(KINDS.values()))
        rng.choice([as_csv, as_json])(made, path, rng)
        path.write_bytes(REFUSED[how](path.read_bytes()))
        for door in (at_the_command, on_the_page):
            with pytest.raises(UserError, match=f"compressed (by )?{how}"):
                door(path, made.columns)
        with pytest.raises(UserError, match=f"compressed (by )?{how}"):
            list(kind.rows(path.read_bytes().splitlines(keepends=True), path.name))


VALUE = {"dtype": "string", "_type": "Value"}


def described(names, rng):
    """What `datasets` writes of a column of classes, the row with such labels, and the name of their column."""
    classes: Row = {"names": names, "_type": "ClassLabel"} | rng.choice(
        [{}, {"num_classes": len(names), "id": None}]
    )
    many: Any = rng.choice(
        [[classes], {"feature": classes, "_type": "List"}, {"feature": classes, "length": -1, "_type": "Sequence"}]
    )
    way = rng.randrange(4)
    if way == 0:
        return (
            {"labels": many, "steps": [VALUE]},
            lambda labels, steps: {"labels": labels, "steps": steps},
            "labels",
        )
    if way == 1:
        feature = {"labels": many, "by": VALUE}
        return (
            {"gold": feature},
            lambda labels, steps: {"gold": {"labels": labels, "by": "x"}, "steps": steps},
            "gold.labels",
        )
    inner = {"label": classes, "text": VALUE}
    if way == 2:
        # As older versions store a sequence of objects.
        feature = {"feature": inner, "_type": "Sequence"}
        return (
            {"items": feature},
            lambda labels, steps: {"items": {"label": labels, "text": steps}, "steps": steps},
            "items.label",
        )
    feature = rng.choice([[inner], {"feature": inner, "_type": "List"}])
    return (
        {"items": feature},
        lambda labels, steps: {
            "items": [{"label": one, "text": step} for one, step in zip(labels, steps, strict=True)],
            "steps": steps,
        },
        "items.label",
    )


def test_names_of_classes_decide(tmp_path):
    path = tmp_path / "table"
    for number in range(COUNT):
        rng = chance(f"classes:{number}")
        spelling = rng.choice([one for one in (*RIGHT, *RATED) if isinstance(one[0], str)])
        golds = ("neg", "neu", "pos") if len(spelling) == 3 else ("neg", "valid")
        order = rng.sample(range(len(spelling)), len(spelling))
        features, row_of, name = described([spelling[one] for one in order], rng)
        rows, expected = [], []
        for _ in range(rng.randint(1, 3)):
            classes = [rng.randrange(-1, len(order)) for _ in range(rng.randint(1, 5))]
            rows.append({"question": "?", **row_of(classes, ["a"] * len(classes))})
            expected.append([None if one == -1 else golds[order[one]] for one in classes])
        features = {"question": VALUE} | features
        metadata = {"huggingface": json.dumps({"info": {"features": features}, "fingerprint": "f"})}
        write_arrow(pyarrow.Table.from_pylist(rows).replace_schema_metadata(metadata), path, rng)
        columns = ColumnMap("question", "steps", name, "ratings" if len(golds) == 3 else "validity")
        found = [[step.gold for step in trace.steps] for trace in at_the_command(path, columns)]
        assert found == expected, (number, features, rows)


@pytest.mark.parametrize("names", [["maybe", "sure"], ["2", "3"]])
def test_classes_of_other_names_are_refused(names, tmp_path):
    rng = chance(0)
    features, row_of, name = described(names, rng)
    rows = [{"question": "?", **row_of([0, 1], ["a", "b"])}]
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    write_arrow(pyarrow.Table.from_pylist(rows).replace_schema_metadata(metadata), tmp_path / "table", rng)
    for labels_as in ("ratings", "validity"):
        with pytest.raises(UserError, match=names[0]):
            at_the_command(tmp_path / "table", ColumnMap("question", "steps", name, labels_as))
