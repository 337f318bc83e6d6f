"""The supported file kinds, one module each.

To add a kind, write its module and add a line to `KINDS`.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, islice

from stepsight.core.errors import UserError, located
from stepsight.core.trace import Trace
from stepsight.storage.importers import chat, inspect_logs, plain, stepwise
from stepsight.storage.importers.benchmarks import (
    math_shepherd,
    mr_math,
    perturbation,
    prm800k,
    prmbench,
    processbench,
    strict_prmbench,
)
from stepsight.storage.importers.rows.fields import ASIDE, JUDGED, canonical, check_texts
from stepsight.storage.importers.rows.kind import FileKind, OnBad, Row, Rows

KINDS: dict[str, FileKind] = {
    kind.name: kind
    for kind in (
        mr_math.INVALID,
        mr_math.REDUNDANT,
        mr_math.GSM8K,
        prm800k.KIND,
        prmbench.KIND,
        processbench.KIND,
        perturbation.KIND,
        math_shepherd.KIND,
        stepwise.KIND,
        strict_prmbench.KIND,
        inspect_logs.KIND,
        chat.KIND,
        plain.KIND,
        chat.SHAREGPT,
    )
}
THINKING = frozenset(kind.name for kind in KINDS.values() if kind.with_thoughts is not None)
"""The kinds whose thoughts can be set aside or judged."""
ALIASES = {"jsonl": plain.KIND.name}


def find_kind(name: str, thoughts: str = "") -> FileKind:
    """Return the file kind with this name or alias, whose thoughts are set aside, or judged if `thoughts` says so.
    Raises `UserError` if there is no such kind, with a message that lists all kinds, or if `thoughts` is given for
    a kind whose files have none."""
    kind = KINDS.get(ALIASES.get(name, name))
    if kind is None:
        raise UserError(f"There is no kind {name!r}.", f"The kinds are {', '.join([*KINDS, *ALIASES])}.")
    if kind.with_thoughts is None:
        if not thoughts:
            return kind
        kinds = ", ".join(sorted(THINKING))
        raise UserError(f"{name} has no thoughts to set aside or to judge.", f"Kinds with thoughts: {kinds}.")
    if thoughts not in ("", ASIDE, JUDGED):
        raise UserError(f"thoughts is {thoughts!r:.40}.", f"Expected {ASIDE} or {JUDGED}.")
    return kind.with_thoughts(thoughts or ASIDE)


# If this many rows at the start of a file are of a different kind, the whole file is taken to be of that kind.
_FIRST = 20


class OtherKindError(UserError):
    """Raised for a row that seems to belong to a file of a different kind, whose name is `likely`."""

    def __init__(self, error: UserError, kind: FileKind, likely: str) -> None:
        super().__init__(
            f"{error.message} The row looks like {likely}, not {kind.name}.", f"Import it as {likely}."
        )
        self.likely = likely


def read_traces(
    kind: FileKind, lines: Iterable[bytes], name: str, on_bad: OnBad | None = None
) -> Iterator[tuple[str, Trace]]:
    """Yield (where, trace) for each row of a file, holding one row in memory at a time.

    `where` looks like `file.jsonl line 3`, or `file.json row 3` in a JSON array. Raises `UserError` at the first
    bad row. If the row seems to belong to a file of a different kind, the message names that kind. With `on_bad`,
    bad rows are passed to this function and skipped. `UserError` is then raised only if the rest of the file cannot
    be read, or if all of the first rows look like rows of the same different kind.
    """
    parsed = _parse_rows(kind, kind.rows(lines, name, on_bad))
    if on_bad is not None:
        first, likely = [], ""
        # One row at a time, since a preview stops at the first row that takes too long.
        for where, row, outcome in islice(parsed, _FIRST):
            first.append((where, row, outcome))
            other = outcome.likely if isinstance(outcome, OtherKindError) else ""
            likely = other if other == (likely or other) else ""
            if not likely:
                break
        if likely:
            what = "the row looks" if len(first) == 1 else f"its first {len(first)} rows look"
            raise UserError(f"{name}: {what} like {likely}, not {kind.name}.", f"Import it as {likely}.")
        parsed = chain(first, parsed)
    for where, row, outcome in parsed:
        if isinstance(outcome, Trace):
            yield where, outcome
        elif on_bad is None:
            raise outcome
        else:
            on_bad(where, outcome, canonical(row))


def _parse_rows(kind: FileKind, rows: Rows) -> Iterator[tuple[str, Row, Trace | UserError]]:
    """Yield each row with its trace, or with its error."""
    for where, row in rows:
        try:
            yield where, row, parse_row(kind, row, where)
        except UserError as error:
            yield where, row, error


def parse_row(kind: FileKind, row: Row, where: str) -> Trace:
    """Parse a row into a trace. Raises `OtherKindError` if the row is not of this kind but of another one, and
    `UserError` for other faults, such as a missing problem or a step in which nothing is visible."""
    try:
        trace = kind.parse(row, where)
    except UserError as error:
        # A table may have columns with any names, which the error lists.
        likely = guess_kind(row) if kind.fields else None
        if likely is None or likely == kind.name or not _is_of(KINDS[likely], row):
            raise
        raise OtherKindError(error, kind, likely) from None
    with located(where):
        check_texts(trace)
    return trace


def _is_of(kind: FileKind, row: Row) -> bool:
    try:
        kind.parse(row, "")
    except UserError:
        return False
    return True


def guess_kind(row: Row) -> str | None:
    """Return the name of the kind whose fields are all in `row`, or None if there is none.

    If several kinds match, the one with the most fields wins, and of those the first.
    """
    fitting = [kind for kind in KINDS.values() if kind.fields <= row.keys() and kind.holds(row)]
    return max(fitting, key=lambda kind: len(kind.fields)).name if fitting else None
