"""Scores with steps left out as pandas frames, which show on which other steps each step of a solution rests.

    import stepsight

    changes = stepsight.left_out_frame(store, "strict-prmbench", evaluators="Qwen2.5-Math-PRM-7B")
    changes.groupby(["trace", "missing_step"]).change.min()

For every sub-step that is left out of a trace, the frame has a row for each remaining sub-step.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice

import numpy as np
import pandas as pd

from stepsight.core.evidence import Dependence, LeaveOneOut
from stepsight.core.scores import Outputs
from stepsight.core.trace import LABEL_NAMES
from stepsight.storage.database.store import Store
from stepsight.storage.exports.frames import named_ids
from stepsight.storage.judgments.evaluators import StoredEvaluator, list_evaluators
from stepsight.storage.judgments.left_outs import iterate_left_out
from stepsight.storage.traces.queries import StoredTrace, find_dataset

_TEXTS = ("dataset", "trace", "evaluator", "fingerprint")
_PLACES = ("missing_step", "missing_substep", "step", "substep")
_SCORES = (*LABEL_NAMES, "validity", "change")
COLUMNS = (*_TEXTS, *_PLACES, *_SCORES)
"""The columns of a frame.

`change` is validity minus the validity with nothing missing. neg, neu and pos are NaN unless the evaluator gives
all three.
"""
# The number of traces in a frame.
_PART = 200


def left_out_frame(store: Store, dataset: str, evaluators: str | Sequence[str] | None = None) -> pd.DataFrame:
    """Return evaluators' scores of a dataset with each sub-step left out, in one frame with the columns `COLUMNS`.

    `evaluators` are names or fingerprints; by default, all evaluators with these scores are included. Raises
    `UserError` if the dataset or an evaluator does not exist.
    """
    ids = named_ids(store, find_dataset(store, dataset), evaluators)
    return pd.concat(list(left_out_frames(store, dataset, None, ids)), ignore_index=True)


def left_out_frames(
    store: Store, dataset: str, trace_ids: Sequence[int] | None, evaluators: Collection[int] | None = None
) -> Iterator[pd.DataFrame]:
    """Yield frames with the given traces of a dataset (by default all), scored by the evaluators with these
    database ids.

    At least one frame is yielded, even if it is empty.
    """
    dataset_id, chosen = find_dataset(store, dataset).id, None if trace_ids is None else set(trace_ids)
    yield _frame(dataset, [])
    for evaluator in list_evaluators(store):
        if evaluators is not None and evaluator.id not in evaluators:
            continue
        scored = iterate_left_out(store, dataset_id, evaluator.id)
        rows = ((trace, scores) for trace, scores in scored if chosen is None or trace.trace_id in chosen)
        while part := list(islice(rows, _PART)):
            yield _frame(dataset, [_columns(trace, scores, evaluator) for trace, scores in part])


def _columns(trace: StoredTrace, left_out: LeaveOneOut, evaluator: StoredEvaluator) -> dict[str, object]:
    """Return the columns for the rows of a trace, by name. There is a row for each pair of a left-out and a
    remaining sub-step."""
    missing, other = np.nonzero(~np.isnan(left_out.probs[:, :, 0]))
    places, probs = np.array(trace.places, np.int32), left_out.probs[missing, other]
    three_way = evaluator.outputs == Outputs.THREE_WAY
    scores = [probs[:, index] if three_way else np.full(len(probs), np.nan, np.float32) for index in range(3)]
    scores += [left_out.validity[missing, other], Dependence(left_out, 0.5).changes[missing, other]]
    named = [np.full(len(probs), text, object) for text in (trace.id, evaluator.name, evaluator.fingerprint)]
    numbers = [*places[missing].T, *places[other].T]
    return dict(zip(COLUMNS[1:], [*named, *numbers, *scores], strict=True))


def _frame(dataset: str, parts: Sequence[dict[str, object]]) -> pd.DataFrame:
    kinds = dict.fromkeys(_TEXTS, object) | dict.fromkeys(_PLACES, np.int32) | dict.fromkeys(_SCORES, np.float32)
    columns = {
        name: np.concatenate([np.empty(0, kinds[name]), *(part[name] for part in parts)]) for name in COLUMNS[1:]
    }
    rows = len(columns["step"])
    frame = pd.DataFrame({"dataset": np.full(rows, dataset, object), **columns})
    return frame.astype(dict.fromkeys(_TEXTS, "str"))
