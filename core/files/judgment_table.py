"""Tables of judgments, with the same columns in all files: one row per mode, or both modes side by side."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

from stepsight.core.arrays import rounded
from stepsight.core.judgment import Mode
from stepsight.core.judgment_record import JudgmentRecord, StepRecord
from stepsight.core.trace import Trace

_MODES = (Mode.ONLINE, Mode.OFFLINE)
PLACE = ("dataset", "trace", "step", "substep", "text", "gold", "share")
EVALUATOR = ("evaluator", "fingerprint")
SCORES = tuple(name for name in StepRecord.model_fields if name not in PLACE)
WHOLE = ("change", "solution_score", "rationale")
LONG = (*PLACE, *EVALUATOR, "mode", *SCORES, *WHOLE)
"""A row per sub-step, evaluator and mode; without a step if the evaluator scores whole solutions alone."""
WIDE = (*PLACE, *EVALUATOR, *(f"{mode}_{name}" for mode in _MODES for name in SCORES), *WHOLE)
"""A row per sub-step and evaluator."""
_OF_THE_STORE = ("dataset", "trace", "gold", "share")

Row = dict[str, Any]
ByMode = Mapping[Mode, JudgmentRecord]
"""The judgment by one evaluator that stands in each mode; a hindsight judgment may stand in all of them."""


def judgment_table(
    trace: Trace, judgments: Iterable[ByMode], columns: Sequence[str], dataset: str = ""
) -> Iterator[list[object]]:
    """Yield the header of a table, then its rows. `columns` is `LONG` (one row per mode) or `WIDE` (both modes in
    one row).

    If there are no judgments, only the sub-steps are listed. `dataset` is the dataset in which the trace is stored;
    if it is "", the columns for dataset, id, gold and share are left out.
    """
    head = [name for name in columns if dataset or name not in _OF_THE_STORE]
    places: dict[tuple[int, int], Row] = {
        (step, part): {"step": step, "substep": part, "text": text, "gold": owner.gold, "share": owner.share}
        for (step, part), text in zip(trace.places, trace.substeps, strict=True)
        for owner in (trace.steps[step - 1],)
    }
    rows = [row for by_mode in judgments for row in (_wide(by_mode) if columns is WIDE else _long(by_mode))]
    yield list(head)
    for row in rows or places.values():
        place = places.get((row.get("step", 0), row.get("substep", 0)), {})
        yield list(map({"dataset": dataset, "trace": trace.id, **place, **row}.get, head))


def _long(by_mode: ByMode) -> Iterator[Row]:
    for mode in (mode for mode in _MODES if mode in by_mode):
        whole, view = _whole(by_mode[mode]) | {"mode": mode.value}, by_mode[mode].modes.get(mode)
        if view is None:
            yield whole
            continue
        for step, change in zip(view.steps, _changes(by_mode), strict=False):
            yield {**whole, **dict(step), "change": change}


def _wide(by_mode: ByMode) -> Iterator[Row]:
    records = {mode: by_mode[mode] for mode in _MODES if mode in by_mode and mode in by_mode[mode].modes}
    sides = zip(*(record.modes[mode].steps for mode, record in records.items()), strict=True)
    for steps, change in zip(sides, _changes(by_mode), strict=False):
        scores = {
            f"{mode}_{name}": value for mode, step in zip(records, steps, strict=True) for name, value in step
        }
        yield {**_whole(next(iter(records.values()))), **dict(steps[0]), **scores, "change": change}


def _whole(record: JudgmentRecord) -> Row:
    return {name: getattr(record, name) for name in (*EVALUATOR, "solution_score", "rationale")}


def _changes(by_mode: ByMode) -> Iterable[float | None]:
    """Return the offline minus the online validity of each sub-step, from the judgment in hindsight mode. Every
    entry is None if there is no such judgment."""
    record = by_mode.get(Mode.HINDSIGHT)
    if record is None or record.online is None or record.offline is None:
        return repeat(None)
    pairs = zip(record.online.steps, record.offline.steps, strict=True)
    return [
        None if early.validity is None or late.validity is None else rounded(late.validity - early.validity)
        for early, late in pairs
    ]
