"""The check of a pool before anything is scored, so that a bad row is reported at once and not after hours."""

from stepsight.core.errors import UserError
from stepsight.core.models.evaluator import Evaluator
from stepsight.training.experiments.filtering.pool import Overlap, Pool
from stepsight.training.experiments.filtering.scoring import fault
from stepsight.training.runs.progress import Watch

SHOWN = 5


def check_pool(pool: Pool, evaluator: Evaluator, skip_bad: bool, watch: Watch) -> int:
    """The number of rows of the pool.

    Raises `UserError` where none can be scored, and unless `skip_bad` where one cannot, showing the first few.
    """
    rows = bad = overlapping = 0
    first: list[str] = []
    for rows, entry in enumerate(pool, start=1):
        watch("rows looked through", rows, None)
        overlapping += isinstance(entry, Overlap)
        error = fault(entry, evaluator)
        if error is None:
            continue
        bad += 1
        if len(first) < SHOWN:
            first.append(str(error))
    if not rows:
        raise UserError("there is no row in the pool.", "Write one object with query and response a line.")
    if overlapping == rows:
        raise UserError(f"all {rows:,} rows are problems of the benchmarks.", "Nothing is left to choose from.")
    if bad + overlapping == rows:
        raise UserError(f"none of {rows:,} rows can be scored: {first[0]}")
    if bad and not skip_bad:
        raise refusal(rows, bad, first)
    return rows


def refusal(rows: int, bad: int, first: list[str]) -> UserError:
    """The error of a pool with so many bad rows, which names the first of them."""
    if bad == 1:
        return UserError(first[0], "Mend the row, or leave it out with --skip-bad.")
    lines = [f"  {line}" for line in first]
    more = [f"  and {bad - len(first):,} more"] if bad > len(first) else []
    head = f"{bad:,} of {rows:,} rows cannot be scored; fix them, or leave them out with --skip-bad."
    return UserError("\n".join([head, *lines, *more]))
