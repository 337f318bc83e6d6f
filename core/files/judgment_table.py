"""Judgments as tables: one set of columns for every file, with a row per mode, or both modes side by side."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

from stepsight.core.arrays import rounded
from stepsight.core.judgment_record import JudgmentRecord, StepRecord
from stepsight.core.trace import Trace

PLACE = ("dataset", "trace", "step", "substep", "text", "gold")
EVALUATOR = ("evaluator", "fingerprint")
SCORES = tuple(name for name in StepRecord.model_fields if name not in PLACE)
WHOLE = ("change", "solution_score", "rationale")
LONG = (*PLACE, *EVALUATOR, "mode", *SCORES, *WHOLE)
"""A row per sub-step, evaluator and mode; without a step if the evaluator scores whole solutions alone."""
WIDE = (*PLACE, *EVALUATOR, *(f"{mode}_{name}" for mode in ("online", "offline") for name in SCORES), *WHOLE)
"""A row per sub-step and evaluator."""
_OF_THE_STORE = ("dataset", "trace", "gold")

Row = dict[str, Any]


def judgment_table(
    trace: Trace, records: Iterable[JudgmentRecord], columns: Sequence[str], dataset: str = ""
) -> Iterator[list[object]]:
    """The head of a table, `LONG` or `WIDE`, then its rows; the sub-steps alone if there is no record.

    `dataset` is the one that the trace is stored in; a trace without has no columns of dataset, id and gold.
    """
    head = [name for name in columns if dataset or name not in _OF_THE_STORE]
    places: dict[tuple[int, int], Row] = {
        (step, part): {"step": step, "substep": part, "text": text, "gold": trace.steps[step - 1].gold}
        for (step, part), text in zip(trace.places, trace.substeps, strict=True)
    }
    rows = [row for record in records for row in (_wide(record) if columns is WIDE else _long(record))]
    yield list(head)
    for row in rows or places.values():
        place = places.get((row.get("step", 0), row.get("substep", 0)), {})
        yield list(map({"dataset": dataset, "trace": trace.id, **place, **row}.get, head))


def _long(record: JudgmentRecord) -> Iterator[Row]:
    whole = _whole(record)
    for mode, view in record.modes.items():
        for step, change in zip(view.steps, _changes(record), strict=False):
            yield {**whole, **dict(step), "mode": mode.value, "change": change}
    if not record.modes:
        yield {**whole, "mode": record.mode.value}


def _wide(record: JudgmentRecord) -> Iterator[Row]:
    views = [view.steps for view in record.modes.values()]
    for steps, change in zip(zip(*views, strict=True), _changes(record), strict=False):
        scores = {
            f"{mode}_{name}": value for mode, step in zip(record.modes, steps, strict=True) for name, value in step
        }
        yield {**_whole(record), **scores, "step": steps[0].step, "substep": steps[0].substep, "change": change}


def _whole(record: JudgmentRecord) -> Row:
    return {name: getattr(record, name) for name in (*EVALUATOR, "solution_score", "rationale")}


def _changes(record: JudgmentRecord) -> Iterable[float | None]:
    """Offline minus online validity of each sub-step; None for each if the judgment lacks one of them."""
    if record.online is None or record.offline is None:
        return repeat(None)
    pairs = zip(record.online.steps, record.offline.steps, strict=True)
    return [
        None if early.validity is None or late.validity is None else rounded(late.validity - early.validity)
        for early, late in pairs
    ]
