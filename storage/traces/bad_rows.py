"""Bad rows of a file that is imported: counted in a refusal, or left out, listed and stored with the dataset."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import atomic_file
from stepsight.storage.database.schema import LeftOutRow
from stepsight.storage.database.store import insert_once

# The number of rows listed in an error, and the number stored at once.
_SHOWN = 5
_BATCH = 500
# The largest number of bad rows in a file, since each takes memory and is stored. Reading stops at the next one.
_MOST = 100_000
# The number of characters kept of an error, which may quote its input.
_LONGEST = 2000
_OTHER_LISTING = "Name another file with --skipped."
_OTHER_KIND = "Check the kind of the file."


class RefusedRows:
    """Counts the bad rows of the file `name`, in order to refuse the file at the end. The error then says how many
    rows are bad and tells the user, with the text `leave_out`, how to leave them out. Raises `UserError` at once if
    there are more than 100,000."""

    def __init__(self, name: str, leave_out: str = "with --skip-bad") -> None:
        self._name, self._leave_out = name, leave_out
        self._first: list[tuple[str, UserError]] = []
        self.count = 0

    def __call__(self, where: str, error: UserError, content: bytes) -> None:
        self.count += 1
        # Some errors are found later than those of later rows.
        rows = [*self._first, (where.removeprefix(f"{self._name} "), error)]
        self._first = sorted(rows, key=lambda bad: _number(bad[0]))[:_SHOWN]
        if self.count > _MOST:
            raise self._refusal(f"more than {_MOST:,} rows are bad, so that nothing was stored. {_OTHER_KIND}")

    def check(self, good: int) -> None:
        """Raise `UserError` if there were bad rows, and show the first few. `good` is the number of good rows."""
        if not self.count:
            return
        if self.count == 1:
            ((_, error),) = self._first
            advice = f"{error.hint} Or leave it out" if error.hint else "Fix it, or leave it out"
            raise UserError(error.message, f"{advice} {self._leave_out}.")
        counts = f"{self.count:,} of {self.count + good:,} rows are bad, so that nothing was stored"
        raise self._refusal(f"{counts}; fix them, or leave them out {self._leave_out}.")

    def lines(self) -> Iterator[bytes]:
        """Yield nothing, because nothing is left out."""
        return iter(())

    def add_lines(self, lines: bytes) -> None:
        """Do nothing, because nothing is left out."""

    def store(self, session: Session, dataset_id: int) -> None:
        """Do nothing, because nothing is left out."""

    def _refusal(self, counts: str) -> UserError:
        lines = [f"  {place}: {_without_place(self._name, place, error)}" for place, error in self._first]
        rest = [f"  and {self.count - _SHOWN:,} more"] if self.count > _SHOWN else []
        return UserError("\n".join([f"{self._name}: {counts}", *lines, *rest]))


class LeftOutRows:
    """Keeps the bad rows of the file `name` and finally stores them with the dataset, as rows of `source`. If
    `listing` is given, they are also listed there. Raises `UserError` if there are more than 100,000.

    The listing is JSON Lines. It is written only if some rows are bad, and it never overwrites a file with
    different rows.
    """

    def __init__(self, name: str, source: str, listing: Path | None = None) -> None:
        self._name, self._source, self._listing = name, source, listing
        self._seen: Counter[bytes] = Counter()
        self._rows: list[dict[str, Any]] = []

    def __call__(self, where: str, error: UserError, content: bytes) -> None:
        if self.count == _MOST:
            raise UserError(f"{self._name}: more than {_MOST:,} rows are bad.", _OTHER_KIND)
        place = where.removeprefix(f"{self._name} ")
        message = _without_place(self._name, place, error)[:_LONGEST]
        self._rows.append(
            {"digest": self._digest(content), "source": self._source, "place": place, "error": message}
        )

    @property
    def count(self) -> int:
        return len(self._rows)

    def lines(self) -> Iterator[bytes]:
        """Yield the rows as lines of JSON for `add_lines`, in pieces."""
        for start in range(0, self.count, _BATCH):
            yield b"".join(json.dumps(row).encode() + b"\n" for row in self._rows[start : start + _BATCH])

    def add_lines(self, lines: bytes) -> None:
        """Add the rows of a collector of the same file in another process."""
        self._rows += map(json.loads, lines.splitlines())

    def check(self, good: int) -> None:
        """Raise `UserError` if every row is bad. `good` is the number of good rows."""
        if self.count and not good:
            rows = "its only row is" if self.count == 1 else f"all of its {self.count:,} rows are"
            raise UserError(f"{self._name}: {rows} bad.", _OTHER_KIND)

    def store(self, session: Session, dataset_id: int) -> None:
        """Store the rows and write the listing. Raises `UserError` if a different file is already there."""
        self._rows.sort(key=lambda row: _number(row["place"]))
        for start in range(0, self.count, _BATCH):
            rows = [{"dataset_id": dataset_id, **row} for row in self._rows[start : start + _BATCH]]
            insert_once(session, LeftOutRow, rows, "dataset_id", "digest")
        if self._listing and self.count:
            lines = []
            for row in self._rows:
                unit, number = row["place"].split()
                listed = {"file": row["source"], unit: int(number), "error": row["error"]}
                lines.append(json.dumps(listed, ensure_ascii=False) + "\n")
            _list(self._listing, lines)

    def _digest(self, content: bytes) -> str:
        """Return a digest of a row's content and of the number of earlier rows with the same content. Two identical
        bad rows are therefore counted as two rows."""
        digest = hashlib.sha256(content)
        key = digest.digest()
        if self._seen[key]:
            digest.update(f"\n{self._seen[key]}".encode())
        self._seen[key] += 1
        return digest.hexdigest()


BadRows = RefusedRows | LeftOutRows


def _list(path: Path, lines: list[str]) -> None:
    if not path.exists():
        with atomic_file(path, replace=False, hint=_OTHER_LISTING) as partial:
            partial.write_text("".join(lines), encoding="utf-8")
        return
    try:
        listed = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as fault:
        raise UserError(f"{path}: cannot be read ({fault.strerror}).", _OTHER_LISTING) from None
    # The errors may differ, because in a repeated import the good rows are already stored.
    if list(map(_place, listed)) != list(map(_place, lines)):
        raise UserError(f"{path}: already exists, with other rows than those left out now.", _OTHER_LISTING)


def _place(line: str) -> object:
    try:
        return json.loads(line) | {"error": ""}
    except (ValueError, TypeError):
        return line


def _number(place: str) -> int:
    return int(place.split()[1])


def _without_place(name: str, place: str, error: UserError) -> str:
    return f"{error.message.removeprefix(f'{name} {place}: ')} {error.hint}".strip()
