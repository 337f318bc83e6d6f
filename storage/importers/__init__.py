"""The kinds of file that can be imported, one module each. A new kind is a module and a line in `_MODULES`."""

from collections.abc import Iterable, Iterator

from core.errors import UserError
from core.trace import Trace
from storage.importers import (
    math_shepherd,
    mr_gsm8k,
    mr_math_invalid,
    mr_math_redundant,
    perturbation,
    plain,
    prm800k,
    prmbench,
    processbench,
    stepwise,
)
from storage.importers.kind import Kind, Row

_MODULES = (
    mr_math_invalid,
    mr_math_redundant,
    mr_gsm8k,
    prm800k,
    prmbench,
    processbench,
    perturbation,
    math_shepherd,
    stepwise,
    plain,
)
KINDS: dict[str, Kind] = {module.KIND.name: module.KIND for module in _MODULES}
ALIASES = {"jsonl": plain.KIND.name}


def find_kind(name: str) -> Kind:
    """The kind of that name or alias. Raises `UserError` naming all of them."""
    try:
        return KINDS[ALIASES.get(name, name)]
    except KeyError:
        raise UserError(f"There is no kind {name!r}.", f"The kinds are {', '.join([*KINDS, *ALIASES])}.") from None


def read_traces(kind: Kind, lines: Iterable[bytes], name: str) -> Iterator[tuple[str, Trace]]:
    """Yield (where, trace) of each row of the file called `name`, holding one row at a time.

    `where` is such as `file.jsonl line 3`, or `file.json row 3` in a JSON array. Raises `UserError` at the first
    bad row, saying which kind it looks like where that is another one.
    """
    for where, row in kind.rows(lines, name):
        try:
            trace = kind.parse(row, where)
        except UserError as error:
            likely = guess_kind(row)
            if likely in (None, kind.name):
                raise
            raise UserError(
                f"{error.message} The row looks like {likely}, not {kind.name}.", f"Import it as {likely}."
            ) from None
        yield where, trace


def guess_kind(row: Row) -> str | None:
    """The kind whose fields `row` has, that with the most fields where several match, else None."""
    fitting = [kind for kind in KINDS.values() if kind.fields <= row.keys()]
    return max(fitting, key=lambda kind: len(kind.fields)).name if fitting else None
