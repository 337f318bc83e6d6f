"""Judgments as pandas frames, either for a whole dataset or for a few traces at a time.

    import stepsight

    steps = stepsight.frame(store, "mr-math-invalid", evaluators=["mini-bidir"])
    steps.groupby(["evaluator", "mode"]).validity.mean()

A column has the same type in every frame and keeps it in Parquet. Repeated texts are categorical, integer columns
are nullable (`Int32`), and missing floats are NaN.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepsight.core.arrays import Bools, Floats32, Ints
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.judgment_record import LONG, SCORES
from stepsight.core.metrics.table import SILENT
from stepsight.core.scores import Outputs
from stepsight.core.trace import LABEL_NAMES
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.columns import (
    JudgmentRows,
    TraceGold,
    read_gold_of,
    read_rows,
    starts,
    step_rows,
    unsaid,
    within,
)
from stepsight.storage.judgments.evaluators import (
    StoredEvaluator,
    evaluators_of,
    find_by_name,
    find_thresholds,
    list_evaluators,
)
from stepsight.storage.traces.queries import Dataset, find_dataset, list_trace_ids

COLUMNS = tuple(name for name in LONG if name != "text")
"""The columns of a frame with a row per sub-step; one with a row per step has no `substep`."""

MODES = (Mode.ONLINE, Mode.OFFLINE)
GOLD = (*LABEL_NAMES, "valid")
"""The possible gold of a step: its label, or `valid` if the benchmark says no more."""
_VERDICTS = ("valid", "redundant")
COLUMN_TYPES: dict[str, type[np.generic]] = {
    **dict.fromkeys(("trace", "step", "substep", "rationale"), np.int32),
    **dict.fromkeys(("gold", "mode", *_VERDICTS), np.int8),
    "evaluator": np.int16,
    **dict.fromkeys((*(name for name in SCORES if name not in _VERDICTS), "change"), np.float32),
    **dict.fromkeys(("share", "solution_score"), np.float64),
}
_META = "meta."
_MOST_FIELDS = 100
# The number of traces read at once. With several evaluators it is smaller, so that the number of judgments is about
# the same, but never below the minimum.
_MOST, _LEAST, _JUDGMENTS = 2_000, 100, 10_000


@dataclass(frozen=True, eq=False)
class JudgmentColumns:
    """`n` rows of judgments on a batch of traces.

    `traces` holds the ids of the traces, `meta` the other fields of their source rows, and `rationales` the reasons
    that evaluators gave. Each of the `columns` has shape (n,) and the type given in `COLUMN_TYPES`:

    - `trace` and `rationale` are indices into `traces` and `rationales`.
    - `evaluator` is an index into the requested evaluators.
    - `mode` and `gold` are indices into `MODES` and `GOLD`.
    - `valid` and `redundant` are 1 or 0. `step` and `substep` count from 1.
    - `share`, `neg`, `neu`, `pos`, `validity`, `redundancy`, `change` (offline minus online validity), `spread` and
      `solution_score` are floats.

    A missing value is NaN in a float column and `SILENT` in any other.
    """

    traces: tuple[str, ...]
    meta: tuple[Mapping[str, Any], ...]
    rationales: tuple[str, ...]
    columns: dict[str, NDArray[Any]]


def frame(
    store: Store,
    dataset: str,
    evaluators: str | Sequence[str] | None = None,
    *,
    substeps: bool = False,
    metadata: bool | Sequence[str] = True,
) -> pd.DataFrame:
    """Return evaluators' scores of a dataset, one row per trace, step, evaluator and mode, in file order.

    `evaluators` are names or fingerprints and default to all evaluators that have judged the dataset. The columns
    are `storage.exports.frames.COLUMNS`. Steps are counted from 1. `gold` is neg, neu or pos, or `valid` if the
    benchmark only says that the step is valid, and `share` is its soft label. A step gets the scores of its least
    valid sub-step, but the greatest redundancy among its sub-steps. With `substeps`, each sub-step gets its own
    row. `change` is the retroactive change, offline minus online validity, from the hindsight judgment. `valid`
    and `redundant` are decided by the thresholds in force. Values that an evaluator does not provide are missing.
    An evaluator that judges only whole solutions has one row per trace, without a step, and its score is in
    `solution_score`.

    `metadata` adds the other fields of the source rows as columns `meta.NAME`, with dots for nested objects. By
    default these are all fields that hold text, numbers or booleans. Pass a list of names to select some, or False
    for none.

    Raises `UserError` if the dataset, an evaluator or a field does not exist.
    """
    stored = find_dataset(store, dataset)
    chosen = named_evaluators(store, stored, evaluators)
    ids = list_trace_ids(store, stored.id)
    parts = list(read_judgment_columns(store, ids, chosen, substeps=substeps))
    metas = [meta for part in parts for meta in part.meta]
    # The parts are emptied as they are joined, so there is never a second copy of everything.
    joined = _concatenate(parts)
    place = joined.columns["trace"]
    table = _frame(joined, chosen, stored.name, substeps=substeps)
    if metadata is False:
        return table
    columns = _metadata(metas, place, None if metadata is True else metadata, stored.name)
    return pd.concat([table, pd.DataFrame(columns, copy=False)], axis="columns") if columns else table


def named_evaluators(
    store: Store, dataset: Dataset, evaluators: str | Sequence[str] | None
) -> list[StoredEvaluator]:
    """Return the evaluators with these names or fingerprints, without duplicates. If `evaluators` is None, return
    all evaluators that have judged the dataset. Raises `UserError` if a name matches no evaluator or several."""
    if evaluators is None:
        return evaluators_of(store, dataset.id)
    names = [evaluators] if isinstance(evaluators, str) else evaluators
    return list({evaluator.id: evaluator for evaluator in (find_by_name(store, name) for name in names)}.values())


def named_ids(store: Store, dataset: Dataset, evaluators: str | Sequence[str] | None) -> set[int] | None:
    """Return the database ids of the evaluators that `named_evaluators` finds, or None if `evaluators` is None."""
    return (
        None if evaluators is None else {evaluator.id for evaluator in named_evaluators(store, dataset, evaluators)}
    )


def judgment_frames(
    store: Store,
    dataset: str,
    trace_ids: Sequence[int],
    evaluators: Collection[int] | None = None,
) -> Iterator[pd.DataFrame]:
    """Yield frames with one row per sub-step of the given traces, in order. If no rows exist, one empty frame is
    yielded. `evaluators` are database ids and default to all evaluators."""
    chosen = [evaluator for evaluator in list_evaluators(store) if evaluators is None or evaluator.id in evaluators]
    parts = read_judgment_columns(store, trace_ids, chosen, substeps=True)
    yield _frame(next(parts, None) or _concatenate([]), chosen, dataset, substeps=True)
    for part in parts:
        yield _frame(part, chosen, dataset, substeps=True)


def read_judgment_columns(
    store: Store,
    trace_ids: Sequence[int],
    evaluators: Sequence[StoredEvaluator],
    *,
    substeps: bool,
) -> Iterator[JudgmentColumns]:
    """Yield evaluators' scores of the given traces, ordered by trace, then evaluator, with online before offline.

    Without `substeps`, a step gets the scores of its least valid sub-step and the greatest redundancy among its
    sub-steps, as in `core.metrics.table`. A judgment of only the whole solution gives a single row without a step.
    No database connection is held between batches.
    """
    shown = _ShownEvaluators.of(store, evaluators)
    size = max(_LEAST, min(_MOST, _JUDGMENTS // max(1, len(evaluators))))
    for start in range(0, len(trace_ids), size):
        with store.read() as session:
            gold, meta = read_gold_of(session, trace_ids[start : start + size])
            if not gold.ids:
                continue
            ids = [evaluator.id for evaluator in evaluators]
            judgments = read_rows(session, gold, ids)
        columns = _columns(gold, judgments, shown, substeps=substeps)
        yield JudgmentColumns(gold.ids, meta, judgments.rationales, columns)


@dataclass(frozen=True, eq=False)
class _ShownEvaluators:
    """The kinds of scores and the thresholds of the exported evaluators, in arrays of shape (evaluators,)."""

    has_steps: Bools
    in_words: Bools
    three_way: Bools
    validity: Floats32
    redundancy: Floats32

    @classmethod
    def of(cls, store: Store, evaluators: Sequence[StoredEvaluator]) -> "_ShownEvaluators":
        thresholds = [find_thresholds(store, each.id) for each in evaluators]
        return cls(
            has_steps=np.array([each.outputs.has_steps for each in evaluators], np.bool_),
            in_words=np.array([each.outputs.in_words for each in evaluators], np.bool_),
            three_way=np.array([each.outputs == Outputs.THREE_WAY for each in evaluators], np.bool_),
            validity=np.array([each.validity for each in thresholds], np.float32),
            redundancy=np.array([each.redundancy for each in thresholds], np.float32),
        )


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of some judgments: of their sub-steps, or of their steps with the scores of the least valid
    sub-step.

    `judgment` holds the index of each row's judgment, `own` the index of its sub-step among all of the traces and
    `place` that within the trace. `validity` is NaN unless it is a number.
    """

    judgment: Ints
    own: Ints
    place: Ints
    probs: Floats32
    validity: Floats32
    redundancy: Floats32
    spread: Floats32
    silent: Bools

    @classmethod
    def of(
        cls, gold: TraceGold, judgments: JudgmentRows, probs: Floats32, shown: _ShownEvaluators, *, substeps: bool
    ) -> "_Rows":
        """Return the rows of the judgments with the scores `probs`, their own or others of the same sub-steps."""
        sizes, spread = gold.sizes[judgments.trace], judgments.spread
        judgment, place = np.repeat(np.arange(len(sizes)), sizes), within(sizes)
        own = np.repeat(starts(gold.sizes)[judgments.trace], sizes) + place
        # An evaluator of whole solutions has one row per trace.
        has_row = shown.has_steps[judgments.evaluator[judgment]] | (place == 0)
        judgment, own, place = (values[has_row] for values in (judgment, own, place))
        probs, spread = probs[has_row], spread[has_row]
        redundancy, silent = probs[:, 1], unsaid(probs)
        if not substeps and gold.has_substeps:
            step = gold.owners[own]
            group = np.cumsum((np.diff(judgment, prepend=-1) != 0) | (np.diff(step, prepend=-1) != 0))
            least, redundancy, silent = step_rows(probs, group)
            judgment, own, place = (values[least] for values in (judgment, own, place))
            probs, spread = probs[least], spread[least]
        return cls(judgment, own, place, probs, probs[:, 1] + probs[:, 2], redundancy, spread, silent)


def _columns(
    gold: TraceGold, judgments: JudgmentRows, shown: _ShownEvaluators, *, substeps: bool
) -> dict[str, NDArray[Any]]:
    rows, online, offline = (
        _Rows.of(gold, judgments, probs, shown, substeps=substeps) for probs in (judgments.probs, *judgments.ends)
    )
    change = np.where(online.silent | offline.silent, np.nan, offline.validity - online.validity)
    probs, validity, redundancy, step = rows.probs, rows.validity, rows.redundancy, gold.owners[rows.own]
    who = judgments.evaluator[rows.judgment]
    of_step = shown.has_steps[who]
    scored = ~rows.silent & of_step
    in_words, in_three = scored & shown.in_words[who], scored & shown.three_way[who]
    in_numbers = scored & ~in_words
    # Verdicts in words do not depend on thresholds.
    valid = validity >= np.where(in_words, np.float32(0.5), shown.validity[who])
    redundant = np.where(in_three, redundancy >= shown.redundancy[who], redundancy > 0)
    substep = rows.own - starts(gold.substeps)[step] if substeps else np.zeros(len(step), np.int64)
    label = np.where(gold.label == SILENT, np.where(gold.valid == 1, GOLD.index("valid"), SILENT), gold.label)
    columns = {
        "trace": judgments.trace[rows.judgment],
        "step": np.where(of_step, gold.position[step] + 1, SILENT),
        "substep": np.where(of_step, substep + 1, SILENT),
        "gold": np.where(of_step, label[step], SILENT),
        "share": np.full(len(step), np.nan) if gold.share is None else np.where(of_step, gold.share[step], np.nan),
        "evaluator": who,
        "mode": np.where(judgments.online, MODES.index(Mode.ONLINE), MODES.index(Mode.OFFLINE))[rows.judgment],
        **{name: np.where(in_three, probs[:, index], np.nan) for index, name in enumerate(LABEL_NAMES)},
        "validity": np.where(in_numbers, validity, np.nan),
        "redundancy": np.where(in_three, redundancy, np.nan),
        "change": np.where(in_numbers, change, np.nan),
        "spread": np.where(in_numbers, rows.spread, np.nan),
        "valid": np.where(scored, valid, SILENT),
        "redundant": np.where(in_three | (in_words & redundant), redundant, SILENT),
        "solution_score": judgments.solution[rows.judgment],
        "rationale": judgments.rationale[rows.judgment],
    }
    return {name: columns[name].astype(kind, copy=False) for name, kind in COLUMN_TYPES.items()}


def _concatenate(parts: list[JudgmentColumns]) -> JudgmentColumns:
    """Concatenate all parts into one. To save memory, each part loses its columns as they are copied."""
    traces = tuple(name for part in parts for name in part.traces)
    words: dict[str, int] = {}
    first = 0
    for part in parts:
        part.columns["trace"] += np.int32(first)
        first += len(part.traces)
        places = [words.setdefault(rationale, len(words)) for rationale in part.rationales]
        # `SILENT` is -1, so it takes the last one.
        part.columns["rationale"] = np.array([*places, SILENT], np.int32)[part.columns["rationale"]]
    columns = {
        name: np.concatenate([np.empty(0, kind), *(part.columns.pop(name) for part in parts)])
        for name, kind in COLUMN_TYPES.items()
    }
    return JudgmentColumns(traces, (), tuple(words), columns)


def _frame(
    part: JudgmentColumns, evaluators: Sequence[StoredEvaluator], dataset: str, *, substeps: bool
) -> pd.DataFrame:
    source = part.columns
    # Two evaluators may have the same name.
    names = list(dict.fromkeys(evaluator.name for evaluator in evaluators))
    of_name = np.array([names.index(evaluator.name) for evaluator in evaluators], np.int16)
    columns: dict[str, Any] = {
        "dataset": _category(np.zeros(len(source["trace"]), np.int8), [dataset]),
        "trace": _category(source["trace"], part.traces),
        "step": _integers(source["step"]),
        "substep": _integers(source["substep"]),
        "gold": _category(source["gold"], GOLD),
        "evaluator": _category(of_name[source["evaluator"]], names),
        "fingerprint": _category(source["evaluator"], [evaluator.fingerprint for evaluator in evaluators]),
        "mode": _category(source["mode"], [mode.value for mode in MODES]),
        **{name: pd.arrays.BooleanArray(source[name] == 1, source[name] == SILENT) for name in _VERDICTS},
        "rationale": _category(source["rationale"], part.rationales),
    }
    shown = [name for name in COLUMNS if substeps or name != "substep"]
    return pd.DataFrame({name: columns[name] if name in columns else source[name] for name in shown}, copy=False)


def _category(places: NDArray[Any], categories: Sequence[str]) -> pd.Categorical:
    return pd.Categorical.from_codes(places, categories=pd.Index(list(categories), dtype="str"))


def _integers(numbers: NDArray[np.int32]) -> Any:
    return pd.arrays.IntegerArray(numbers, numbers == SILENT)


def _metadata(
    metas: Sequence[Mapping[str, Any]], place: NDArray[np.int32], names: Sequence[str] | None, dataset: str
) -> dict[str, Any]:
    """Return the metadata columns `names` (by default all), where `place` holds the index of each row's trace in
    `metas`. Raises `UserError` if none of the traces has a named field, or if there are too many fields."""
    flat = [dict(_fields(meta)) for meta in metas]
    traces = Counter(name for fields in flat for name in fields)
    if names is None and len(traces) > _MOST_FIELDS:
        raise UserError(
            f"The metadata of {dataset} has {len(traces):,} fields.",
            f"Name up to {_MOST_FIELDS}: metadata=['…', '…'].",
        )
    chosen = sorted(traces) if names is None else list(dict.fromkeys(names))
    for name in chosen:
        if name not in traces:
            shown = ", ".join(sorted(traces)[:12]) or "none"
            raise UserError(
                f"The metadata of {dataset} has no field {name!r:.60} of plain values.", f"It has {shown}."
            )
    return {f"{_META}{name}": _values([fields.get(name) for fields in flat]).take(place) for name in chosen}


def _fields(meta: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (name, value) for every text, number and boolean in an object. The names of nested fields are joined as
    `a.b`."""
    for name, value in meta.items():
        if isinstance(value, Mapping):
            yield from _fields(value, f"{before}{name}.")
        elif isinstance(value, str | int | float):
            yield f"{before}{name}", value


def _values(values: Sequence[Any]) -> Any:
    """Return the values of a field as a pandas array of booleans, integers or floats, or failing that, as a
    categorical. None stands for a missing value."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {bool}:
        return pd.array(values, "boolean")
    if kinds == {int} and all(value is None or abs(value) < 1 << 63 for value in values):
        return pd.array(values, "Int64")
    # An integer may be larger than any other number.
    with suppress(OverflowError):
        if kinds <= {int, float}:
            return pd.array([np.nan if value is None else float(value) for value in values], "float64")
    return pd.Categorical([value if value is None else str(value) for value in values])
