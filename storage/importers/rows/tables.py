"""Reading the rows of CSV, Parquet and Arrow files. The user maps their columns (see `column_mapping`)."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, dropwhile, islice
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.escaping import plain
from stepsight.core.files.arrow import batch_rows, check_columns, load_pyarrow, parquet_batches
from stepsight.core.files.text_lines import decode_line, utf8_lines
from stepsight.core.files.whole_files import parse_json
from stepsight.storage.importers.rows.fields import unescaped
from stepsight.storage.importers.rows.kind import OnBad, Rows

_LONGEST_CELL = 10_000_000
_TAB, _SEPARATORS = "\t", ",;|"
# The largest number of lines in a header.
_MOST_LINES = 1_000
_AT_RETURNS = re.compile(r"[^\r]*\r\n?|[^\r]+")
_BREAKS = re.compile(r"(?<!\s)\s*[\r\n]\s*")
_QUOTED = re.compile(r'"[^"]*"?')
_SEPARATOR = re.compile(r'"?sep=([,;\t|])"?\s*')
_CLASSES = "ClassLabel"


def csv_rows(lines: Iterable[bytes], name: str, on_bad: OnBad | None = None) -> Rows:
    """Yield (where, row) for each row of a CSV file after its header. Every value is text.

    Blank rows and repetitions of the header, as in concatenated files, are skipped. A column without a name, such
    as the row numbers that pandas writes, is named by its position, such as `column 1`. A line break in a name is a
    space. The separator is a tab if the header has one outside quotes, and otherwise a comma, a semicolon or a bar,
    whichever is the most frequent there, unless a line such as `sep=;` before the header names it. Rows end with
    line feeds, carriage returns or both. If all names are quoted, as StepSight writes them, the marks before text
    that looks like a formula are removed (`core.escaping`). Invalid UTF-8 and invalid CSV raise
    `UserError`, because nothing after them can be read. A row with more or fewer cells than the header is passed to
    `on_bad`. Without `on_bad`, it raises `UserError`.
    """
    texts = dropwhile(lambda text: not text.strip(), _texts(lines, name))
    head = _header(texts)
    # Excel writes the separator on a line before the header.
    named = _SEPARATOR.fullmatch(head[0])
    if named:
        head = _header(texts)
    is_closed = sum(line.count('"') for line in head) % 2 == 0
    unquoted = _QUOTED.sub("", "".join(head) if is_closed else head[0])
    # Column names may contain commas, but no tabs.
    counted = _TAB if _TAB in unquoted else max(_SEPARATORS, key=unquoted.count)
    separator = named[1] if named else counted
    read = str if unquoted.strip(",\r\n") else plain
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(chain(head, texts), delimiter=separator, strict=True)
    number = 0
    try:
        header = next(reader, [])
        names = _names([read(cell) for cell in header], name)
        nameless = {names[place] for place, cell in enumerate(header) if not cell.strip()}
        for cells in reader:
            if not any(map(str.strip, cells)) or cells == header:
                continue
            number += 1
            where = f"{name} row {number}"
            if len(cells) == len(names):
                row = zip(names, cells, strict=True)
                yield where, {key: read(cell) for key, cell in row if cell or key not in nameless}
                continue
            error = UserError(
                f"{where}: {len(cells)} cells, but the header has {len(names)}.",
                "Put texts with separators in quotes.",
            )
            if on_bad is None:
                raise error
            on_bad(where, error, separator.join(cells).encode())
    except csv.Error as error:
        raise UserError(f"{name} row {number + 1}: not CSV ({error}).", "Save the table as CSV again.") from None


def _texts(lines: Iterable[bytes], name: str) -> Iterator[str]:
    """Yield the lines of a table as text. A carriage return alone ends a line too; within quotes, where it ends no
    row, the reader joins the lines again."""
    for number, line in enumerate(utf8_lines(lines, name), start=1):
        text = decode_line(line, number, name)
        place = text.find("\r")
        if place < 0 or text[place:] == "\r\n":
            yield text
        else:
            yield from _AT_RETURNS.findall(text)


def _header(texts: Iterator[str]) -> list[str]:
    head: list[str] = []
    quotes = 0
    for text in islice(texts, _MOST_LINES):
        head.append(text)
        quotes += text.count('"')
        if quotes % 2 == 0:
            break
    return head or [""]


def parquet_rows(
    lines: Iterable[bytes], name: str, on_bad: OnBad | None = None, binary: set[str] | None = None
) -> Rows:
    """Yield (where, row) for each row of a Parquet file. The file is held in memory as a whole.

    The names of binary columns, which are left out, are added to `binary`. Raises `UserError` if the file is not
    Parquet or pyarrow is missing.
    """
    return table_rows(parquet_batches(io.BytesIO(b"".join(lines))), name, "Parquet", binary)


def table_rows(batches: Iterable[Any], name: str, format: str, binary: set[str] | None = None) -> Rows:
    """Yield (where, row) for each row of the pyarrow `batches`, converting pyarrow's errors to `UserError`.

    Binary values, such as pictures, are left out. The names of their columns are added to `binary`.
    """
    arrow = load_pyarrow()
    binary = set() if binary is None else binary
    number = 0
    try:
        for batch in batches:
            check_columns(batch.num_columns, name)
            features = _features(batch.schema.metadata)
            for row in batch_rows(batch, name, number):
                number += 1
                plain = _to_json_types(row, binary)
                yield f"{name} row {number}", _label(plain, features) if features else plain
    except (arrow.ArrowException, OSError, ValueError, OverflowError, RecursionError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise UserError(f"{name}: not {format} ({reason}).", "Fetch the file again.") from None


def _features(metadata: dict[bytes, bytes] | None) -> dict[str, Any]:
    """Return, by name, the columns that are stored as class numbers, with their descriptions in the metadata that
    `datasets` writes."""
    try:
        features = parse_json((metadata or {}).get(b"huggingface", b"{}"))["info"]["features"]
        return {name: feature for name, feature in features.items() if _CLASSES in json.dumps(feature)}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}


def _label(value: Any, feature: Any) -> Any:
    """Replace class numbers in a value with the names of the classes, as `feature` describes them. -1 stands for no
    class."""
    if isinstance(value, list):
        # Lists are described as a list with one item, or by what their items are.
        inner = feature[0] if isinstance(feature, list) and feature else feature
        inner = inner.get("feature", inner) if isinstance(inner, dict) else inner
        return [_label(item, inner) for item in value]
    if not isinstance(feature, dict):
        return value
    if isinstance(value, dict):
        inner = feature.get("feature", feature)
        return (
            {key: _label(item, inner.get(key)) for key, item in value.items()} if isinstance(inner, dict) else value
        )
    names = feature.get("names")
    if feature.get("_type") != _CLASSES or not isinstance(names, list) or type(value) is not int:
        return value
    return names[value] if 0 <= value < len(names) else None if value == -1 else value


def _to_json_types(row: dict[str, Any], binary: set[str]) -> dict[str, Any]:
    """Convert a row to JSON types. Dates and similar values become text. Bytes that are not text are left out, and
    the names of their columns are added to `binary`."""
    try:
        written = _ENCODER.encode(row)
    except UnicodeDecodeError:
        written = _ENCODER.encode(_without_binary(row, binary))
    return _DECODER.decode(written)


_LEFT_OUT = object()


def _without_binary(value: Any, binary: set[str], name: str = "") -> Any:
    """Return a value without the fields that hold binary data. In a list, null replaces them. Their names, such as
    `image.bytes`, are added to `binary`."""
    if isinstance(value, dict):
        inner = {
            key: _without_binary(item, binary, f"{name}.{key}" if name else key) for key, item in value.items()
        }
        return {key: item for key, item in inner.items() if item is not _LEFT_OUT}
    if isinstance(value, list | tuple):
        items = [_without_binary(item, binary, name) for item in value]
        return [None if item is _LEFT_OUT else item for item in items]
    if _is_binary(value):
        binary.add(name)
        return _LEFT_OUT
    return value


def _is_binary(value: object) -> bool:
    try:
        if isinstance(value, bytes):
            value.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


# Many programs store texts as binary values.
_ENCODER = json.JSONEncoder(default=lambda value: value.decode("utf-8") if isinstance(value, bytes) else str(value))
# pandas writes NaN for a missing value; infinite numbers are kept.
_DECODER = json.JSONDecoder(parse_constant=lambda name: None if name == "NaN" else float(name))


def _names(header: list[str], name: str) -> list[str]:
    """Return the names of the columns. Raises `UserError` if there are fewer than two, or if two are the same."""
    if len(header) < 2:
        raise UserError(
            f"{name}: the first line is {''.join(header)!r:.60}, not the names of columns.",
            "Expected two names or more, with commas, semicolons, tabs or bars between them.",
        )
    check_columns(len(header), name)
    cells = (_BREAKS.sub(" ", unescaped(cell)).strip() for cell in header)
    names = [cell or f"column {place}" for place, cell in enumerate(cells, start=1)]
    repeated = sorted(column for column, count in Counter(names).items() if count > 1)
    if repeated:
        raise UserError(f"{name}: the column {repeated[0]!r:.60} occurs twice.", "Give each column its own name.")
    return names
