"""A JSON Lines file to which a run appends rows as it works, and from which it resumes."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import parse_json


class RowFile:
    """A JSON Lines file at `path` to which a run appends rows. Use it in a `with` block.

    Reading stops at the first line that is incomplete or not a JSON object, and ignores everything after it. Rows
    need not be synced to disk, since rows lost in a power cut are computed again. Raises `UserError` if the file
    cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = open(path, "a+b")  # noqa: SIM115 (it is closed at the end of the block)
        except OSError as error:
            raise self._not_written(error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Every addition was flushed, with an error if it failed.
        with suppress(OSError):
            self._file.close()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        with open(self.path, "rb") as file:
            for line in file:
                row = parse_line(line)
                if row is None:
                    return
                yield row

    @property
    def is_empty(self) -> bool:
        return self.path.stat().st_size == 0

    def keep(self, count: int) -> None:
        """Keep the first `count` rows and delete the rest."""
        self._file.seek(0)
        for _ in range(count):
            self._file.readline()
        self._file.truncate(self._file.tell())

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows and flush them, so that other processes can read them."""
        try:
            self._file.write("".join(map(format_line, rows)).encode())
            self._file.flush()
        except OSError as error:
            raise self._not_written(error) from None

    def _not_written(self, error: OSError) -> UserError:
        return UserError(
            f"{self.path}: cannot be written ({error.strerror}).",
            "Make room, or name another place; the same command goes on.",
        )


def format_line(row: Mapping[str, Any]) -> str:
    """Format a row as a line of JSON ending in a line break."""
    return f"{json.dumps(row)}\n"


def parse_line(line: bytes) -> dict[str, Any] | None:
    """Return the row in a line, or None if the line is incomplete or not a JSON object."""
    try:
        row = parse_json(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return row if isinstance(row, dict) else None
