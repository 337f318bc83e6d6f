"""Files of judgments in every format: tables, and AgentProcessBench's labels of turns."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.storage.database.store import Store
from stepsight.storage.exports.agent_verdicts import check_three_classes, verdict_lines
from stepsight.storage.exports.frames import judgment_frames
from stepsight.storage.exports.table_files import TABLE_FORMATS, frame_parts
from stepsight.storage.importers.benchmarks.agentprocessbench import KIND
from stepsight.storage.judgments.evaluators import StoredEvaluator, evaluators_of
from stepsight.storage.traces.queries import Dataset, has_contexts

if TYPE_CHECKING:
    import pandas as pd

TURNS = KIND.name
"""The format of AgentProcessBench."""

JUDGMENT_FORMATS = (*TABLE_FORMATS, TURNS)


def judgment_parts(
    store: Store,
    dataset: Dataset,
    trace_ids: Sequence[int],
    format: str,
    evaluators: Collection[int] | None = None,
    *,
    convention: str = "",
    mode: Mode = Mode.OFFLINE,
    counted: Callable[[int], object] = lambda rows: None,
) -> Iterator[bytes]:
    """Return, in chunks, the content of a file with the judgments of the given traces.

    `evaluators` are database ids and default to all evaluators. Tables have both modes, and gold that follows the
    convention, if any. `TURNS` has one evaluator's verdicts in the given mode. `counted` is called
    with the number of rows of each chunk. Raises `UserError` immediately if the format is unknown, or if it is
    `TURNS` and cannot express the judgments.
    """
    if format == TURNS:
        evaluator = _only(store, dataset, evaluators)
        return _turns(verdict_lines(store, trace_ids, evaluator, mode), counted)

    def frames() -> "Iterator[pd.DataFrame]":
        for frame in judgment_frames(store, dataset.name, trace_ids, evaluators, convention):
            counted(len(frame))
            yield frame

    return frame_parts(frames(), format)


def _only(store: Store, dataset: Dataset, evaluators: Collection[int] | None) -> StoredEvaluator:
    if not has_contexts(store, dataset.id):
        raise UserError(f"{dataset.name} has no traces of agents.", "Choose a table.")
    judged = evaluators_of(store, dataset.id)
    chosen = [one for one in judged if evaluators is None or one.id in evaluators]
    if len(chosen) != 1:
        names = ", ".join(one.name for one in judged)
        raise UserError(
            f"a file in AgentProcessBench's form has the labels of one evaluator, and {len(chosen)} are chosen.",
            f"Choose one of: {names} (--by NAME)." if judged else f"Score {dataset.name} first.",
        )
    check_three_classes(chosen[0])
    return chosen[0]


def _turns(lines: Iterator[list[str]], counted: Callable[[int], object]) -> Iterator[bytes]:
    for some in lines:
        counted(len(some))
        yield "".join(f"{line}\n" for line in some).encode()
