"""The things in the store that people rename and delete: datasets, scores on them, jobs and campaigns.

Begin with `find_thing`. `storage.people.changes` has what is common to all, and `storage.labelling.campaigns` has
campaigns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, delete, exists, or_, select, update
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError, counted
from stepsight.core.judgment import Mode
from stepsight.core.paths import format_bytes
from stepsight.storage.database.jobs_schema import ACTIVE, Job, Task, UploadRow
from stepsight.storage.database.labelling_schema import CampaignRow, Dispute, ItemRow
from stepsight.storage.database.schema import (
    CalibrationRow,
    DatasetRow,
    DeletedRow,
    EvaluatorRow,
    JudgedRow,
    JudgmentRow,
    LeftOutScoresRow,
    TraceRow,
    TriangleRow,
    in_range,
)
from stepsight.storage.database.store import ConflictError, NotFoundError, Store
from stepsight.storage.jobs.uploads import uploads_folder
from stepsight.storage.labelling.campaigns import ChangeableCampaign
from stepsight.storage.people.changes import (
    Changeable,
    Dependents,
    busy,
    count,
    lines_of,
    name_taken,
    was_deleted,
)
from stepsight.storage.people.users import User


@dataclass(frozen=True)
class ChangeableDataset(Changeable[DatasetRow]):
    """A dataset, which is deleted with its traces, judgments and ended jobs.

    It is not deleted while a job is working on it, nor if campaigns or disputes belong to it, and it is not renamed
    while a job is working on it.
    """

    name: str

    kind = "dataset"
    renames = True

    def find(self, session: Session, *, lock: bool = False) -> DatasetRow:
        chosen = select(DatasetRow).where(DatasetRow.name == self.name)
        row = session.scalars(chosen.with_for_update() if lock else chosen).one_or_none()
        if row is None:
            raise NotFoundError(
                f"There is no dataset {self.name!r:.80}.", "It may have been deleted or renamed in the meantime."
            )
        return row

    def dependents(self, session: Session, row: DatasetRow) -> Dependents:
        evaluators = _evaluators_on(session, row.id)
        traces = count(session, TraceRow.dataset_id == row.id)
        # Joined with the evaluators, so that their index is used. The first and last row of a hindsight judgment
        # are not separate judgments.
        judgments = sum(
            count(session, table.dataset_id == row.id, table.evaluator_id.in_(evaluators), *conditions)
            for table, conditions in ((JudgmentRow, (~JudgmentRow.derived,)), (TriangleRow, ()))
        )
        left_out = count(session, LeftOutScoresRow.dataset_id == row.id)
        jobs = count(session, Job.dataset_id == row.id)
        of_evaluators = f"{counted(len(evaluators), 'evaluator')}: {', '.join(sorted(evaluators.values()))}"
        return Dependents(
            row.name,
            lines_of(
                (True, counted(traces, "trace")),
                (judgments, f"{counted(judgments, 'judgment')} by {of_evaluators}"),
                (left_out, _without_steps(left_out)),
                (jobs, f"{counted(jobs, 'job')} that ended"),
            ),
            obstacle=_find_busy(session, row) or _find_people(session, row),
            scored=evaluators,
        )

    def remove(self, session: Session, row: DatasetRow) -> None:
        for evaluator in session.scalars(select(EvaluatorRow)):
            _rename_file(evaluator, row.name)
        session.merge(DeletedRow(name=row.name))
        # Deleted first, since the database has no index to find them by for each deleted trace.
        session.execute(delete(LeftOutScoresRow).where(LeftOutScoresRow.dataset_id == row.id))
        session.execute(delete(TraceRow).where(TraceRow.dataset_id == row.id))
        session.execute(delete(DatasetRow).where(DatasetRow.id == row.id))

    def check_rename(self, session: Session, row: DatasetRow, new: str) -> None:
        if session.scalar(select(DatasetRow.id).where(DatasetRow.name == new)) is not None:
            raise name_taken(self.kind, new)
        if working := _find_busy(session, row):
            raise working

    def was_renamed(self, session: Session, row: DatasetRow, old: str) -> None:
        session.execute(update(CalibrationRow).where(CalibrationRow.dataset_id == row.id).values(dataset=row.name))
        for evaluator in session.scalars(select(EvaluatorRow)):
            _rename_file(evaluator, old, row.name)


def _rename_file(evaluator: EvaluatorRow, dataset: str, new: str = "") -> None:
    """Record the file of an evaluator's scores on a dataset under the dataset's new name, or forget it."""
    files = dict(evaluator.info.get("files", {}))
    sha256 = files.pop(dataset, None)
    files.pop(new, None)
    if sha256 is not None and new:
        files[new] = sha256
    if files != evaluator.info.get("files", {}):
        evaluator.info = evaluator.info | {"files": files}


def _evaluators_on(session: Session, dataset_id: int) -> dict[int, str]:
    has_judged = exists().where(JudgedRow.evaluator_id == EvaluatorRow.id, JudgedRow.dataset_id == dataset_id)
    rows = session.execute(select(EvaluatorRow.id, EvaluatorRow.name).where(has_judged).order_by(EvaluatorRow.name))
    return {row.id: row.name for row in rows}


def _find_busy(session: Session, row: DatasetRow, fingerprint: str | None = None) -> ConflictError | None:
    """Return the error that names the active jobs that read the dataset or add to it, or None if there is none.
    With a `fingerprint`, judging jobs of other evaluators do not count."""
    active = select(Job).where(Job.state.in_(ACTIVE)).order_by(Job.id)
    return busy(
        [
            job.evaluator or job.subject
            for job in session.scalars(active)
            if job.dataset_id == row.id or row.name in map(job.request.get, ("dataset", "benchmark"))
            if fingerprint is None or job.fingerprint in ("", fingerprint)
        ]
    )


def _find_people(session: Session, row: DatasetRow) -> ConflictError | None:
    # A campaign may draw hidden gold items from another dataset.
    items = select(ItemRow.campaign_id).join(TraceRow, TraceRow.id == ItemRow.trace_id)
    uses = or_(CampaignRow.dataset_id == row.id, CampaignRow.id.in_(items.where(TraceRow.dataset_id == row.id)))
    if campaigns := _campaigns(session, uses):
        return ConflictError(f"It is being labelled in {campaigns}.", "Delete the campaign first.")
    if disputes := count(session, Dispute.trace_id == TraceRow.id, TraceRow.dataset_id == row.id):
        stated = "A dispute" if disputes == 1 else f"{disputes:,} disputes"
        return ConflictError(f"{stated} about its gold labels would be lost.", "Keep the dataset.")
    return None


def _campaigns(session: Session, *conditions: ColumnElement[bool]) -> str:
    return ", ".join(session.scalars(select(CampaignRow.name).where(*conditions).order_by(CampaignRow.name)))


class Scored(NamedTuple):
    """A dataset and an evaluator that has scored traces of it."""

    dataset: DatasetRow
    evaluator: EvaluatorRow

    def of(self, table: Any) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
        """Return the conditions for the rows of a table that belong to the dataset and the evaluator."""
        return table.dataset_id == self.dataset.id, table.evaluator_id == self.evaluator.id


@dataclass(frozen=True)
class ChangeableScores(Changeable[Scored]):
    """The scores on a dataset of the evaluator with the id `evaluator` or, if that is 0, of the evaluator whose
    name or fingerprint is `called`. The evaluator itself and its scores elsewhere stay, as do thresholds that were
    chosen with these scores.

    They are not deleted while a job of the evaluator works on the dataset, or an open campaign shows them.
    """

    dataset: str
    evaluator: int
    called: str = ""

    kind = "scores"

    def find(self, session: Session, *, lock: bool = False) -> Scored:
        dataset = ChangeableDataset(self.dataset).find(session, lock=lock)
        row = EvaluatorRow
        chosen = or_(row.name == self.called, row.fingerprint == self.called)
        if self.evaluator or not self.called:
            chosen = row.id == in_range(self.evaluator)
        rows = session.scalars(select(row).where(chosen, row.id.in_(_evaluators_on(session, dataset.id)))).all()
        if len(rows) > 1:
            raise UserError(
                f"{len(rows)} evaluators are called {self.called!r:.80}.", "Give the fingerprint instead."
            )
        if not rows:
            raise NotFoundError(
                f"{self.dataset} has no scores of this evaluator.", "They may have been deleted in the meantime."
            )
        return Scored(dataset, rows[0])

    def dependents(self, session: Session, row: Scored) -> Dependents:
        counts = {
            mode: count(session, *row.of(JudgmentRow), ~JudgmentRow.derived, JudgmentRow.mode == mode.value)
            for mode in (Mode.OFFLINE, Mode.ONLINE)
        }
        # The offline and online scores of a hindsight judgment are not separate judgments.
        counts[Mode.HINDSIGHT] = count(session, *row.of(TriangleRow))
        judgments, modes = sum(counts.values()), sorted(mode.value for mode, number in counts.items() if number)
        left_out = count(session, *row.of(LeftOutScoresRow))
        shown = CampaignRow.evaluator_id == row.evaluator.id, CampaignRow.dataset_id == row.dataset.id
        obstacle = _find_busy(session, row.dataset, row.evaluator.fingerprint)
        if obstacle is None and (campaigns := _campaigns(session, *shown, CampaignRow.closed.is_(None))):
            obstacle = ConflictError(f"They are shown in {campaigns}.", "Close the campaign first.")
        return Dependents(
            _scores_on(row.evaluator.name, row.dataset.name),
            lines_of(
                (judgments, f"{counted(judgments, 'judgment')}, {' and '.join(modes)}"),
                (left_out, _without_steps(left_out)),
            ),
            kept="Thresholds that were chosen by these scores stay in force."
            if count(session, *row.of(CalibrationRow))
            else "",
            obstacle=obstacle,
        )

    def remove(self, session: Session, row: Scored) -> None:
        for table in (LeftOutScoresRow, JudgmentRow, TriangleRow, JudgedRow):
            session.execute(delete(table).where(*row.of(table)))
        _rename_file(row.evaluator, row.dataset.name)
        session.merge(DeletedRow(name=_scores_on(row.evaluator.name, row.dataset.name)))
        # The evaluator's revision starts again once it scores the dataset again.
        row.dataset.revision += 1


def scores_were_deleted(store: Store, evaluator: str, dataset: str) -> bool:
    """True if the scores of an evaluator of this name on a dataset have ever been deleted."""
    return was_deleted(store, _scores_on(evaluator, dataset))


def _scores_on(evaluator: str, dataset: str) -> str:
    return f"{evaluator} on {dataset}"


def _without_steps(traces: int) -> str:
    return f"the scores of {counted(traces, 'trace')} without each of their steps"


@dataclass(frozen=True)
class ChangeableJobs(Changeable[Sequence[Job]]):
    """The jobs with these ids or, without an id, all finished jobs. A failed or cancelled import is deleted
    together with its uploaded file. Results that a job has stored, such as judgments, stay.

    A job that is waiting or running is not deleted.
    """

    ids: tuple[int, ...] = ()

    kind = "job"

    def find(self, session: Session, *, lock: bool = False) -> Sequence[Job]:
        chosen = Job.id.in_(map(in_range, self.ids)) if self.ids else Job.state.not_in(ACTIVE)
        ordered = select(Job).where(chosen).order_by(Job.id)
        rows = session.scalars(ordered.with_for_update() if lock else ordered).all()
        if not rows and not self.ids:
            raise NotFoundError("No job has ended.", "A job that is waiting or running can be cancelled.")
        if missing := sorted(set(self.ids) - {row.id for row in rows}):
            raise NotFoundError(f"There is no job {missing[0]}.", "It may have been deleted in the meantime.")
        return rows

    def dependents(self, session: Session, row: Sequence[Job]) -> Dependents:
        files, first = _files(session, row), row[0]
        active = next((job for job in row if job.state in ACTIVE), None)
        name = first.subject or f"{first.dataset}, {first.evaluator}, {first.mode}"
        sizes = [f"{file.name} ({format_bytes(file.size)})" for file in files]
        return Dependents(
            name if len(row) == 1 else counted(len(row), "job"),
            lines_of(
                (True, f"{counted(len(row), 'job')} that ended"),
                (files, f"{counted(len(files), 'file')}: {', '.join(sizes)}"),
            ),
            kept="Judgments and datasets that a job has stored stay.",
            obstacle=ConflictError(f"Job {active.id} is {active.state}.", "Cancel it first.") if active else None,
            uploads=tuple(file.file for file in files),
        )

    def remove(self, session: Session, row: Sequence[Job]) -> None:
        session.execute(delete(UploadRow).where(UploadRow.id.in_([file.id for file in _files(session, row)])))
        session.execute(delete(Job).where(Job.id.in_([job.id for job in row])))

    def delete(self, store: Store, user: User | None = None) -> Dependents:
        deleted = super().delete(store, user)
        for file in deleted.uploads:
            (uploads_folder(store) / file).unlink(missing_ok=True)
        return deleted


def _files(session: Session, rows: Sequence[Job]) -> Sequence[UploadRow]:
    """Return the uploaded files that only these jobs would import, leaving out files that another active job
    imports."""
    active = select(Job.request).where(Job.state.in_(ACTIVE), Job.task == Task.IMPORT)
    uploaded = {request.get("upload") for request in session.scalars(active)}
    ids = {row.request.get("upload") for row in rows} - uploaded - {None}
    return session.scalars(select(UploadRow).where(UploadRow.id.in_(ids)).order_by(UploadRow.id)).all()


KINDS: Mapping[str, type[Changeable[Any]]] = {
    "dataset": ChangeableDataset,
    "scores": ChangeableScores,
    "job": ChangeableJobs,
    "ended-jobs": ChangeableJobs,
    "campaign": ChangeableCampaign,
}
"""The kinds of thing by the name that they have in addresses."""


def find_thing(kind: str, given: Mapping[str, str]) -> Changeable[Any]:
    """Return the thing of one of `KINDS` to which `given` refers.

    `given` may hold the name of a `dataset`, the id of an `evaluator` or its name or fingerprint (`called`), and
    the id of a `job` or a `campaign`. The store is not accessed until the thing is read or changed.
    """
    dataset = given.get("dataset", "")
    if kind == "dataset":
        return ChangeableDataset(dataset)
    if kind == "scores":
        return ChangeableScores(dataset, _number(given, "evaluator"), given.get("called", ""))
    if kind == "campaign":
        return ChangeableCampaign(_number(given, "campaign"))
    return ChangeableJobs((_number(given, "job"),) if kind == "job" else ())


def _number(given: Mapping[str, str], name: str) -> int:
    text = given.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 12 else 0
