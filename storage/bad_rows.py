"""The bad rows of a file that is imported: counted and refused, or left out and listed."""

import hashlib
import json
import os
from collections import Counter
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from core.errors import UserError
from storage.schema import LeftOutRow
from storage.upsert import insert_once

# Rows named in a refusal, and rows held in memory at once.
_SHOWN = 5
_BATCH = 500
_OTHER_LISTING = "Name another file with --skipped."


class RefusedRows:
    """Counts the bad rows of the file called `name`, so that its refusal can tell how many there are."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._first: list[tuple[str, UserError]] = []
        self.count = 0

    def __call__(self, where: str, error: UserError, content: bytes) -> None:
        self.count += 1
        # Some faults of a row are found later than those of the next ones.
        found = [*self._first, (where.removeprefix(f"{self._name} "), error)]
        self._first = sorted(found, key=lambda bad: _number(bad[0]))[:_SHOWN]

    def finish(self, good: int) -> None:
        """Raise `UserError` where there was a bad row, showing the first few; `good` rows were none."""
        if not self.count:
            return
        if self.count == 1:
            ((_, error),) = self._first
            raise UserError(error.message, f"{error.hint} Or leave it out with --skip-bad.".strip())
        counts = f"{self.count:,} of {self.count + good:,} rows are bad, so that nothing was stored"
        head = f"{self._name}: {counts}; fix them, or leave them out with --skip-bad."
        lines = [f"  {place}: {_told(self._name, place, error)}" for place, error in self._first]
        more = [f"  and {self.count - _SHOWN:,} more"] if self.count > _SHOWN else []
        raise UserError("\n".join([head, *lines, *more]))

    def close(self) -> None:
        """There is nothing to clear up."""


class LeftOutRows:
    """Lists the bad rows of the file called `name` in the file `listing` and remembers them with the dataset.

    The list is JSON Lines. It appears when the import ends well and there was a bad row, and never takes the
    place of another file.
    """

    def __init__(self, session: Session, dataset_id: int, name: str, source: str, listing: Path) -> None:
        self._session, self._dataset_id = session, dataset_id
        self._name, self._source = name, source
        self._listing, self._partial = listing, listing.with_name(f"{listing.name}.partial")
        self._seen: Counter[bytes] = Counter()
        self._waiting: list[dict[str, Any]] = []
        self._listed = False
        self.count = 0

    def __call__(self, where: str, error: UserError, content: bytes) -> None:
        place = where.removeprefix(f"{self._name} ")
        row = {"dataset_id": self._dataset_id, "digest": self._digest(content), "source": self._source}
        self._waiting.append(row | {"place": place, "error": _told(self._name, place, error)})
        self.count += 1
        if len(self._waiting) >= _BATCH:
            self._flush()

    def finish(self, good: int) -> None:
        """Put the list in its place. Raises `UserError` where another one is there, and where no row is good."""
        if not self.count:
            return
        if not good:
            raise UserError(f"{self._name}: all of its {self.count:,} rows are bad.", "Check the kind of the file.")
        self._flush()
        try:
            if not self._listing.exists():
                os.replace(self._partial, self._listing)
                return
            same = _same(self._partial, self._listing)
        except OSError as fault:
            raise self._unwritable(fault) from None
        if not same:
            raise UserError(
                f"{self._listing}: there already, and not the list of the rows left out now.", _OTHER_LISTING
            )

    def close(self) -> None:
        """Remove a list that was not put in its place."""
        if self._listed:
            with suppress(OSError):
                self._partial.unlink()

    def _digest(self, content: bytes) -> str:
        """Of the content and of how often it stood in the file before: two equal bad rows are two."""
        digest = hashlib.sha256(content)
        key = digest.digest()
        if self._seen[key]:
            digest.update(f"\n{self._seen[key]}".encode())
        self._seen[key] += 1
        return digest.hexdigest()

    def _flush(self) -> None:
        if not self._waiting:
            return
        self._waiting.sort(key=lambda row: _number(row["place"]))
        insert_once(self._session, LeftOutRow, self._waiting, "dataset_id", "digest")
        try:
            with open(self._partial, "a" if self._listed else "w", encoding="utf-8") as file:
                self._listed = True
                file.writelines(_line(row) for row in self._waiting)
        except OSError as fault:
            raise self._unwritable(fault) from None
        self._waiting = []

    def _unwritable(self, fault: OSError) -> UserError:
        return UserError(f"{self._listing}: cannot be written ({fault.strerror}).", _OTHER_LISTING)


def _line(row: dict[str, Any]) -> str:
    unit, number = row["place"].split()
    return json.dumps({"file": row["source"], unit: int(number), "error": row["error"]}, ensure_ascii=False) + "\n"


def _same(one: Path, other: Path) -> bool:
    """Whether two lists name the same rows. Of what is wrong with one, an import that finds the good rows stored
    may tell otherwise than the first did."""
    with open(one, encoding="utf-8") as left, open(other, encoding="utf-8", errors="replace") as right:
        return all(_place(a) == _place(b) for a, b in zip_longest(left, right, fillvalue=""))


def _place(line: str) -> object:
    try:
        return json.loads(line) | {"error": ""}
    except (ValueError, TypeError):
        return line


def _number(place: str) -> int:
    return int(place.split()[1])


def _told(name: str, place: str, error: UserError) -> str:
    """What is wrong with a row, without its place."""
    return f"{error.message.removeprefix(f'{name} {place}: ')} {error.hint}".strip()
