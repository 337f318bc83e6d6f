"""The records of stored judgments, with the scores with each step left out if these are wanted."""

from stepsight.core.judgment_record import JudgmentRecord, judgment_record
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import find_thresholds
from stepsight.storage.judgments.judgments import read_judgments
from stepsight.storage.judgments.left_outs import left_outs_of
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
