"""Labels, campaign events, and evaluators' figures as pandas data frames.

    import stepsight

    stepsight.frame_of(store, labels="MR-MATH again", per_annotator=True)
    stepsight.frame_of(store, events="MR-MATH again")
    stepsight.frame_of(store, results="mr-math-invalid", evaluators=["mini-bidir"])

For evaluators' scores of each step, see `storage.exports.frames.frame`. As in that function, repeated texts are
categories, integers and booleans are nullable, and times are in UTC.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import pandas as pd

from stepsight.core.files.label_patch import read_patch
from stepsight.storage.database.store import Store, snapshot
from stepsight.storage.exports.frames import named_evaluators
from stepsight.storage.labelling.campaigns import find_campaign
from stepsight.storage.labelling.consensus import LabelledTraces
from stepsight.storage.labelling.files.export_events import iterate_rows
from stepsight.storage.labelling.files.label_formats import COLUMNS as LABEL_COLUMNS
from stepsight.storage.labelling.files.label_formats import step_rows
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.evaluate.evaluation import GoldView, evaluate
from stepsight.training.evaluate.judging import with_thresholds

_TYPES: dict[type, str] = {str: "category", int: "Int32", float: "float64"}
_MOMENT = "datetime64[us, UTC]"

LABELS = {name: _TYPES[kind] for name, kind in LABEL_COLUMNS.items()} | {
    **dict.fromkeys(("text", "comment", "correction"), "str"),
    "submitted": _MOMENT,
}
"""The columns of labels and their types: a row per trace and step, or per trace, annotator and step."""

EVENTS = {
    **dict.fromkeys(("campaign", "dataset", "trace", "annotator", "event"), "category"),
    "slot": "Int32",
    "step": "Int32",
    "old": "str",
    "new": "str",
    "cause": "category",
    "moment": _MOMENT,
    "seconds": "float64",
    "guideline": "Int32",
    "view": "category",
    "revealed": "Int32",
    "key": "str",
    "of": "str",
}
"""The columns of events and their types: a row for each, in the order of the log. Steps are counted from 1. `old`
and `new` are texts; anything more complex is written as JSON."""

RESULTS = {
    **dict.fromkeys(("dataset", "evaluator"), "category"),
    "baseline": "bool",
    **dict.fromkeys(("mode", "errors", "figure"), "category"),
    **dict.fromkeys(("value", "low", "high", "published"), "float64"),
    "reason": "category",
    **dict.fromkeys(("traces", "solutions", "steps"), "Int32"),
}
"""The columns of results and their types: a row per evaluator, mode, kind of error and figure. Figures are
fractions with the ends of their 95 % interval, or missing for the `reason`; `published` is the paper's figure."""


@overload
def frame_of(store: Store, *, labels: str, per_annotator: bool = False) -> pd.DataFrame: ...


@overload
def frame_of(store: Store, *, events: str) -> pd.DataFrame: ...


@overload
def frame_of(
    store: Store,
    *,
    results: str,
    evaluators: str | Sequence[str] | None = None,
    force: bool = False,
    patch: str | Path | None = None,
) -> pd.DataFrame: ...


def frame_of(
    store: Store,
    *,
    labels: str | None = None,
    events: str | None = None,
    results: str | None = None,
    per_annotator: bool = False,
    evaluators: str | Sequence[str] | None = None,
    force: bool = False,
    patch: str | Path | None = None,
) -> pd.DataFrame:
    """Return labels, events or results as a data frame, depending on which argument is given.

    - `labels=CAMPAIGN` gives the consensus of the campaign's annotators or, with `per_annotator`, their own labels.
      See `LABELS`.
    - `events=CAMPAIGN` gives the whole log of the campaign. See `EVENTS`.
    - `results=DATASET` gives the figures of evaluators and of the trivial baselines on the dataset. `evaluators`
      lists names or fingerprints of evaluators; None means all that have judged the dataset. `force` works as in
      `training.evaluate.evaluation.evaluate`. With `patch`, the path of a label patch, the patch's labels replace
      gold labels. See `RESULTS`.

    Raises `UserError` if the campaign, dataset or evaluator does not exist or the patch does not fit, and
    `TypeError` unless exactly one of `labels`, `events` and `results` is given.
    """
    if sum(name is not None for name in (labels, events, results)) != 1:
        raise TypeError("frame_of() takes one of labels=CAMPAIGN, events=CAMPAIGN and results=DATASET")
    if labels is not None:
        campaign = find_campaign(store, labels)
        labelled = LabelledTraces(store, campaign, per_annotator=per_annotator, with_gold=per_annotator)
        return _typed_frame((row for trace in labelled for row in step_rows(trace, campaign.name)), LABELS)
    if events is not None:
        return _typed_frame(_event_rows(store, events), EVENTS)
    assert results is not None
    return _typed_frame(_result_rows(store, results, evaluators, patch, force=force), RESULTS)


def _typed_frame(rows: Iterable[Mapping[str, Any]], types: Mapping[str, str]) -> pd.DataFrame:
    columns: dict[str, list[Any]] = {name: [] for name in types}
    for row in rows:
        for name, values in columns.items():
            values.append(row.get(name))
    # Otherwise a column without values has the type object, which cannot become a category of texts.
    texts = {name: "str" if kind == "category" else kind for name, kind in types.items()}
    frame = pd.DataFrame({name: pd.Series(values, dtype=texts[name]) for name, values in columns.items()})
    return frame.astype({name: kind for name, kind in types.items() if kind == "category"})


def _event_rows(store: Store, campaign: str) -> Iterator[dict[str, Any]]:
    stored = find_campaign(store, campaign)
    traces: dict[int, dict[str, str]] = {}
    with snapshot(store) as session:
        for row in iterate_rows(session, stored.id):
            if "slots" in row:
                traces[row["item"]] = {"dataset": row["dataset"], "trace": row["trace"]}
            elif "event" in row:
                yield (
                    row
                    | traces[row["item"]]
                    | {
                        "campaign": stored.name,
                        "step": None if row["step"] is None else row["step"] + 1,
                        "old": _text(row["old"]),
                        "new": _text(row["new"]),
                    }
                )


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _result_rows(
    store: Store, dataset: str, evaluators: str | Sequence[str] | None, patch: str | Path | None, *, force: bool
) -> Iterator[dict[str, Any]]:
    stored = find_dataset(store, dataset)
    named = named_evaluators(store, stored, evaluators)
    chosen = [with_thresholds(store, stored, evaluator, force) for evaluator in named]
    labels = None if patch is None else read_patch(patch)
    for row in evaluate(store, GoldView(stored, patch=labels), chosen, force=force).rows:
        counts = {"traces": row.n_traces, "solutions": row.n_solutions, "steps": row.n_steps}
        about = {"dataset": stored.name, "evaluator": row.evaluator, "baseline": row.is_baseline}
        for name, value in row.measured.items():
            yield (
                about
                | counts
                | {
                    "mode": row.mode.value,
                    "errors": row.errors.value,
                    "figure": name,
                    "value": value.number,
                    "low": value.low,
                    "high": value.high,
                    "reason": value.reason or None,
                    "published": row.published.values.get(name) if row.published else None,
                }
            )
