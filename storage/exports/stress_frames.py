"""Stress tests as pandas frames, which show an evaluator's scores for every step of every variant.

    import stepsight

    steps = stepsight.stress_frame(store, "gallery", evaluators="mini-bidir")
    steps[steps.target].groupby("transform").after.mean()

For every variant of a trace, the frame has a row for each of its steps. A sub-step counts as a step.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from stepsight.core.scores import StepScores
from stepsight.core.stress.measure import judged_steps
from stepsight.storage.database.store import Store
from stepsight.storage.exports.frames import named_ids
from stepsight.storage.judgments.evaluators import StoredEvaluator, list_evaluators
from stepsight.storage.judgments.stress_tests import StoredStressTest, list_seeds, read_stress_test, stress_tested
from stepsight.storage.traces.queries import find_dataset

COLUMNS = {
    **dict.fromkeys(("dataset", "trace", "evaluator", "fingerprint"), "str"),
    "seed": "int64",
    **dict.fromkeys(("transform", "demand", "said"), "str"),
    **dict.fromkeys(("step", "origin"), "Int32"),
    "text": "str",
    "target": "boolean",
    **dict.fromkeys(("before", "after", "change"), "float32"),
}
"""The columns of a frame and their types.

`said` describes the change. `step` counts the steps of the variant from 1, `origin` those of the original, and is
missing if the step was inserted. `text` is the step as written in the variant. `target` is True if the verdict must
turn to not valid. `before` and `after` are the validity in the original and in the variant, NaN if the evaluator
gives none, and `change` is their difference. If a transform found nothing to change in a trace, there is one row,
without a step.
"""


def stress_frame(store: Store, dataset: str, evaluators: str | Sequence[str] | None = None) -> pd.DataFrame:
    """Return the stress tests of a dataset in one frame with the columns `COLUMNS`.

    `evaluators` are names or fingerprints; by default, all evaluators that were tested are included. Raises
    `UserError` if the dataset or an evaluator does not exist.
    """
    ids = named_ids(store, find_dataset(store, dataset), evaluators)
    return pd.concat(list(stress_frames(store, dataset, None, ids)), ignore_index=True)


def stress_frames(
    store: Store, dataset: str, trace_ids: Sequence[int] | None, evaluators: Collection[int] | None = None
) -> Iterator[pd.DataFrame]:
    """Yield frames with the given traces of a dataset (by default all), tested by the evaluators with these
    database ids.

    At least one frame is yielded, even if it is empty.
    """
    wanted = None if trace_ids is None else set(trace_ids)
    yield _frame([])
    for evaluator, stored in stored_tests(store, dataset, evaluators):
        about = {"dataset": dataset, "evaluator": evaluator.name, "fingerprint": evaluator.fingerprint}
        yield _frame([{**about, "seed": stored.seed, **row} for row in _rows(stored, wanted)])


def stored_tests(
    store: Store, dataset: str, evaluators: Collection[int] | None = None
) -> Iterator[tuple[StoredEvaluator, StoredStressTest]]:
    """Yield the stress tests of a dataset by the evaluators with these database ids (by default all), one for each
    evaluator and seed."""
    dataset_id = find_dataset(store, dataset).id
    tested = stress_tested(store).get(dataset_id, {})
    for evaluator in list_evaluators(store):
        if evaluator.id not in tested or (evaluators is not None and evaluator.id not in evaluators):
            continue
        for seed in list_seeds(store, dataset_id, evaluator.id):
            stored = read_stress_test(store, dataset_id, evaluator.id, seed=seed)
            if stored is not None:
                yield evaluator, stored


def _rows(stored: StoredStressTest, wanted: Collection[int] | None) -> Iterator[dict[str, Any]]:
    scored = {(one.number, one.transform.name): one for one in stored.stressed}
    for number, (original, tried) in enumerate(zip(stored.test.traces, stored.test.variants, strict=True)):
        if wanted is not None and stored.rows[number] not in wanted:
            continue
        for transform, variant in tried:
            common = {"trace": original.id, "transform": transform.name, "demand": transform.demand.value}
            if variant is None:
                yield common
                continue
            one = scored.get((number, transform.name))
            before = _validities(None if one is None else one.before, len(original.substeps))
            after = _validities(None if one is None else one.after, len(variant.origins))
            for place, origin in enumerate(variant.origins):
                was = np.nan if origin is None else before[origin]
                yield common | {
                    "said": variant.said,
                    "step": place + 1,
                    "origin": None if origin is None else origin + 1,
                    "text": variant.trace.substeps[place],
                    "target": place in variant.targets,
                    "before": was,
                    "after": after[place],
                    "change": after[place] - was,
                }


def _validities(scores: StepScores | None, steps: int) -> Any:
    """Return the validity of each step, NaN for one without scores."""
    if scores is None:
        return np.full(steps, np.nan, np.float32)
    return np.where(judged_steps(scores), scores.validity, np.float32(np.nan))


def _frame(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    missing = {"str": "", "float32": np.nan}
    columns = {
        name: pd.Series([row.get(name, missing.get(kind)) for row in rows], dtype=kind)
        for name, kind in COLUMNS.items()
    }
    return pd.DataFrame(columns)
