"""The records of stored judgments, with the scores with each step left out if these are wanted."""

from collections.abc import Iterator

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.judgment_record import JudgmentRecord, judgment_record
from stepsight.core.left_out import Gap
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import StoredEvaluator, find_thresholds
from stepsight.storage.judgments.judgments import read_judgments
from stepsight.storage.judgments.left_outs import iterate_left_out, left_outs_of
from stepsight.storage.traces.queries import StoredTrace


def trace_records(store: Store, trace: StoredTrace, *, left_out: bool) -> list[JudgmentRecord]:
    """Return the records of all judgments of a trace, sorted by evaluator name and mode.

    If `left_out` is True, the records of offline scores include the same evaluator's scores with each step left
    out. Stale judgments are excepted.
    """
    without = left_outs_of(store, trace) if left_out else {}
    return [
        judgment_record(
            judgment,
            judgment.evaluator,
            find_thresholds(store, judgment.evaluator.id),
            left_out=() if judgment.stale else without.get(judgment.evaluator.id, ()),
        )
        for judgment in read_judgments(store, trace)
    ]


def left_out_records(
    store: Store, dataset_id: int, evaluator: StoredEvaluator, gap: Gap
) -> Iterator[JudgmentRecord]:
    """Yield an evaluator's scores of a dataset with each step left out, as records of its offline judgments.

    There is one record for each trace with such scores, in file order.
    """
    thresholds = find_thresholds(store, evaluator.id)
    for trace, left_out in iterate_left_out(store, dataset_id, evaluator.id, gap):
        judgment = Judgment(trace, Mode.OFFLINE, left_out.whole)
        yield judgment_record(judgment, evaluator, thresholds, left_out=[left_out])
