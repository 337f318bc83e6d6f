"""Judgments as pandas frames: a whole dataset at once, or some traces at a time.

    import stepsight

    steps = stepsight.frame(store, "mr-math-invalid", evaluators=["mini-bidir"])
    steps.groupby(["evaluator", "mode"]).validity.mean()

Every column has the same type in each frame, and keeps it in Parquet: texts that repeat are categories, whole
numbers may be missing (`Int32`), and numbers that were not given are NaN.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepsight.core.errors import UserError
from stepsight.core.label import LABEL_NAMES
from stepsight.core.metrics.table import SILENT
from stepsight.storage.database.store import Store
from stepsight.storage.exports.judgment_columns import (
    COLUMN_TYPES,
    GOLD,
    MODES,
    VERDICTS,
    JudgmentColumns,
    chosen_evaluators,
    read_judgment_columns,
)
from stepsight.storage.judgments.evaluators import StoredEvaluator, evaluators_of, find_by_name
from stepsight.storage.traces.queries import Dataset, find_dataset, list_trace_ids

COLUMNS = (
    "dataset", "trace", "step", "substep", "gold", "evaluator", "fingerprint", "mode", *LABEL_NAMES, "validity",
    "redundancy", "change", "spread", "verdict", "solution", "rationale",
)  # fmt: skip
"""The columns of a frame with a row per sub-step; one with a row per step has no `substep`."""

_META = "meta."
_MOST = 100


def frame(
    store: Store,
    dataset: str,
    evaluators: str | Sequence[str] | None = None,
    *,
    substeps: bool = False,
    metadata: bool | Sequence[str] = True,
) -> pd.DataFrame:
    """What evaluators said of a dataset: a row per trace, step, evaluator and mode, in the order of the file.

    `evaluators` are names or fingerprints, None: all that have judged the dataset. The columns are
    `storage.exports.frames.COLUMNS`: steps are counted from 1; `gold` is neg, neu, pos, or `valid` where the
    benchmark says that alone; a step is its least valid sub-step, with the greatest redundancy of them, unless
    `substeps` asks for a row for each; `change` is the retroactive change, offline minus online validity, where the
    judgment is of hindsight, which has rows of both modes; `verdict` is by the thresholds in force. What an
    evaluator does not say is missing. One that speaks of the whole solution alone has one row a trace, without a
    step, and its number in `solution`.

    `metadata` adds the other fields of the traces' source as columns `meta.NAME`, with dots for what is within
    objects: all that are texts, numbers or truth values, only the ones named, or with False none.

    Raises `UserError` where there is no such dataset, evaluator or field.
    """
    found = find_dataset(store, dataset)
    chosen = named_evaluators(store, found, evaluators)
    ids = list_trace_ids(store, found.id)
    parts = list(read_judgment_columns(store, ids, chosen, substeps=substeps))
    metas = [meta for part in parts for meta in part.meta]
    # The parts are emptied as they are joined: there is never a second copy of the whole.
    joined = _joined(parts)
    place = joined.columns["trace"]
    made = _frame(joined, chosen, found.name, substeps=substeps)
    if metadata is False:
        return made
    columns = _metadata(metas, place, None if metadata is True else metadata, found.name)
    return pd.concat([made, pd.DataFrame(columns, copy=False)], axis="columns") if columns else made


def named_evaluators(
    store: Store, dataset: Dataset, evaluators: str | Sequence[str] | None
) -> list[StoredEvaluator]:
    """The evaluators with these names or fingerprints, each once; None: all that have judged the dataset. Raises
    `UserError` where there is none of a name, or several."""
    if evaluators is None:
        return evaluators_of(store, dataset.id)
    names = [evaluators] if isinstance(evaluators, str) else evaluators
    return list({one.id: one for one in (find_by_name(store, name) for name in names)}.values())


def judgment_frames(
    store: Store, dataset: str, trace_ids: Sequence[int], evaluators: Collection[int] | None = None
) -> Iterator[pd.DataFrame]:
    """Frames with a row per sub-step of these traces of a dataset, in their order, by the evaluators with these
    database ids, None: by all. There is one frame at least."""
    chosen = chosen_evaluators(store, evaluators)
    parts = read_judgment_columns(store, trace_ids, chosen, substeps=True)
    yield _frame(next(parts, None) or _joined([]), chosen, dataset, substeps=True)
    for part in parts:
        yield _frame(part, chosen, dataset, substeps=True)


def _joined(parts: list[JudgmentColumns]) -> JudgmentColumns:
    """All parts as one; their columns are taken out of them."""
    traces = tuple(name for part in parts for name in part.traces)
    words: dict[str, int] = {}
    first = 0
    for part in parts:
        part.columns["trace"] += np.int32(first)
        first += len(part.traces)
        places = [words.setdefault(one, len(words)) for one in part.rationales]
        # The last place is that of `SILENT`.
        part.columns["rationale"] = np.array([*places, SILENT], np.int32)[part.columns["rationale"]]
    columns = {
        name: np.concatenate([np.empty(0, kind), *(part.columns.pop(name) for part in parts)])
        for name, kind in COLUMN_TYPES.items()
    }
    return JudgmentColumns(traces, (), tuple(words), columns)


def _frame(
    part: JudgmentColumns, evaluators: Sequence[StoredEvaluator], dataset: str, *, substeps: bool
) -> pd.DataFrame:
    given = part.columns
    # Two evaluators may have one name.
    names = list(dict.fromkeys(one.name for one in evaluators))
    of_name = np.array([names.index(one.name) for one in evaluators], np.int16)
    columns: dict[str, Any] = {
        "dataset": _category(np.zeros(len(given["trace"]), np.int8), [dataset]),
        "trace": _category(given["trace"], part.traces),
        "step": _whole(given["step"]),
        "substep": _whole(given["substep"]),
        "gold": _category(given["gold"], GOLD),
        "evaluator": _category(of_name[given["evaluator"]], names),
        "fingerprint": _category(given["evaluator"], [one.fingerprint for one in evaluators]),
        "mode": _category(given["mode"], [mode.value for mode in MODES]),
        "verdict": _category(given["verdict"], VERDICTS),
        "rationale": _category(given["rationale"], part.rationales),
    }
    shown = [name for name in COLUMNS if substeps or name != "substep"]
    return pd.DataFrame({name: columns[name] if name in columns else given[name] for name in shown}, copy=False)


def _category(places: NDArray[Any], categories: Sequence[str]) -> pd.Categorical:
    return pd.Categorical.from_codes(places, categories=pd.Index(list(categories), dtype="str"))


def _whole(numbers: NDArray[np.int32]) -> Any:
    return pd.arrays.IntegerArray(numbers, numbers == SILENT)


def _metadata(
    metas: Sequence[Mapping[str, Any]], place: NDArray[np.int32], names: Sequence[str] | None, dataset: str
) -> dict[str, Any]:
    """Columns of the named fields, None: of all, for rows of the traces at these places. Raises `UserError` where
    no trace has one, and where all are too many."""
    flat = [dict(_fields(meta)) for meta in metas]
    there = Counter(name for fields in flat for name in fields)
    if names is None and len(there) > _MOST:
        raise UserError(
            f"The metadata of {dataset} has {len(there):,} fields.", f"Name up to {_MOST}: metadata=['…', '…']."
        )
    wanted = sorted(there) if names is None else list(dict.fromkeys(names))
    for name in wanted:
        if name not in there:
            known = ", ".join(sorted(there)[:12]) or "none"
            raise UserError(f"The metadata of {dataset} has no plain values {name!r:.60}.", f"It has {known}.")
    return {f"{_META}{name}": _values([fields.get(name) for fields in flat]).take(place) for name in wanted}


def _fields(meta: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """The texts, numbers and truth values, by their names; those of an object within by `a.b`."""
    for name, value in meta.items():
        if isinstance(value, Mapping):
            yield from _fields(value, f"{before}{name}.")
        elif isinstance(value, str | int | float):
            yield f"{before}{name}", value


def _values(values: Sequence[Any]) -> Any:
    """Values of one field, some of them None, as an array: whole numbers, numbers, truth values; else texts."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {bool}:
        return pd.array(values, "boolean")
    if kinds == {int} and all(value is None or abs(value) < 1 << 63 for value in values):
        return pd.array(values, "Int64")
    if kinds <= {int, float}:
        return pd.array([np.nan if value is None else float(value) for value in values], "float64")
    return pd.Categorical([value if value is None else str(value) for value in values])
