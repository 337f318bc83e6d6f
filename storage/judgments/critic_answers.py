"""Keeping the answers of a critic about sections of a trace until the trace is judged.

A long trace takes hundreds of calls. If the work is interrupted, or one section has no readable verdict, the next
run asks only about the sections that are missing.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from sqlalchemy import delete, exists, select
from sqlalchemy.exc import IntegrityError

from stepsight.core.critics.scoring import ReadAnswer
from stepsight.core.critics.verdict_parser import Verdicts
from stepsight.core.judgment import Mode, Usage
from stepsight.core.label import Label
from stepsight.core.trace import Trace
from stepsight.storage.database.jobs_schema import CriticAnswerRow
from stepsight.storage.database.schema import JudgmentRow, TraceRow, now
from stepsight.storage.database.store import ConflictError, Store
from stepsight.storage.database.upsert import insert_once
from stepsight.storage.judgments.judgments import is_fresh
from stepsight.storage.traces.queries import StoredTrace

_KEY = ("trace_id", "evaluator_id", "question")


@dataclass(frozen=True)
class StoredAnswers:
    """The answers of one evaluator in the store (see `core.critics.scoring.KeptAnswers`)."""

    store: Store
    evaluator_id: int

    def find(self, trace: Trace) -> Mapping[str, ReadAnswer]:
        """Return the answers about a trace by their keys. Raises `DamagedError` if a stored answer is damaged."""
        if not isinstance(trace, StoredTrace):
            return {}
        wanted = select(CriticAnswerRow).where(
            CriticAnswerRow.trace_id == trace.trace_id, CriticAnswerRow.evaluator_id == self.evaluator_id
        )
        with self.store.read() as session:
            return {row.question: _answer(row) for row in session.scalars(wanted)}

    def keep(self, trace: Trace, mode: Mode, key: str, answer: ReadAnswer) -> None:
        """Keep an answer. Raises `ConflictError` if the trace has been deleted."""
        if not isinstance(trace, StoredTrace):
            return
        content = {
            "labels": [label.text for label in answer.verdicts.labels],
            "rationales": list(answer.verdicts.rationales),
            "spent": asdict(answer.spent),
        }
        row = {
            "trace_id": trace.trace_id,
            "evaluator_id": self.evaluator_id,
            "question": key,
            "dataset_id": trace.dataset_id,
            "mode": mode.value,
            "content": content,
            "created": now(),
        }
        try:
            with self.store.write() as session:
                insert_once(session, CriticAnswerRow, [row], *_KEY)
        except IntegrityError:
            raise ConflictError("The trace was deleted while it was being judged.", "Judge other traces.") from None

    def drop_judged(self, dataset_id: int) -> None:
        """Delete the answers about traces of a dataset that are judged by now in the mode for which they were
        asked."""
        judged = exists().where(
            JudgmentRow.trace_id == CriticAnswerRow.trace_id,
            JudgmentRow.evaluator_id == CriticAnswerRow.evaluator_id,
            JudgmentRow.mode == CriticAnswerRow.mode,
            TraceRow.id == JudgmentRow.trace_id,
            is_fresh(JudgmentRow.trace_digest, TraceRow.digest),
        )
        mine = CriticAnswerRow.dataset_id == dataset_id, CriticAnswerRow.evaluator_id == self.evaluator_id
        with self.store.write() as session:
            session.execute(delete(CriticAnswerRow).where(*mine, judged))


def _answer(row: CriticAnswerRow) -> ReadAnswer:
    labels = tuple(Label[name.upper()] for name in row.content["labels"])
    verdicts = Verdicts(labels, tuple(row.content["rationales"]))
    return ReadAnswer(verdicts, Usage(**row.content["spent"]))
