"""Deleting jobs that have ended."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from stepsight.core.paths import format_bytes
from stepsight.storage.database.jobs_schema import ACTIVE, Job, Task, UploadRow
from stepsight.storage.database.schema import in_range
from stepsight.storage.database.store import ConflictError, NotFoundError, Store
from stepsight.storage.jobs.uploads import uploads_folder
from stepsight.storage.people.changes import Changeable, Dependents, counted
from stepsight.storage.people.users import User


@dataclass(frozen=True)
class ChangeableJobs(Changeable[Sequence[Job]]):
    """The jobs with these ids or, without an id, all that have ended. A failed or cancelled import is deleted
    together with its uploaded file. Results that a job has stored, such as judgments, stay.

    A job that is waiting or running is not deleted.
    """

    ids: tuple[int, ...] = ()

    kind = "job"

    def find(self, session: Session, *, lock: bool = False) -> Sequence[Job]:
        chosen = Job.id.in_(map(in_range, self.ids)) if self.ids else Job.state.not_in(ACTIVE)
        wanted = select(Job).where(chosen).order_by(Job.id)
        rows = session.scalars(wanted.with_for_update() if lock else wanted).all()
        if not rows and not self.ids:
            raise NotFoundError("No job has ended.", "A job that is waiting or running can be cancelled.")
        if missing := sorted(set(self.ids) - {row.id for row in rows}):
            raise NotFoundError(f"There is no job {missing[0]}.", "It may have been deleted meanwhile.")
        return rows

    def dependents(self, session: Session, row: Sequence[Job]) -> Dependents:
        files = _files(session, row)
        active = [one for one in row if one.state in ACTIVE]
        name = _name(row[0]) if len(row) == 1 else counted(len(row), "job")
        waiting = [f"{file.name} ({format_bytes(file.size)})" for file in files]
        lines = [f"{counted(len(row), 'job')} that ended", counted(len(files), "file", waiting)]
        return Dependents(
            name,
            {"jobs": len(row), "files": len(files)},
            tuple(lines if files else lines[:1]),
            kept="Judgments and datasets that a job has stored stay.",
            obstacle=ConflictError(f"Job {active[0].id} is {active[0].state}.", "Cancel it first.")
            if active
            else None,
            uploads=tuple(file.file for file in files),
        )

    def remove(self, session: Session, row: Sequence[Job]) -> None:
        session.execute(delete(UploadRow).where(UploadRow.id.in_([file.id for file in _files(session, row)])))
        session.execute(delete(Job).where(Job.id.in_([one.id for one in row])))

    def delete(self, store: Store, user: User | None = None) -> Dependents:
        deleted = super().delete(store, user)
        for file in deleted.uploads:
            (uploads_folder(store) / file).unlink(missing_ok=True)
        return deleted


def _name(row: Job) -> str:
    return row.subject or f"{row.dataset}, {row.evaluator}, {row.mode}"


def _files(session: Session, rows: Sequence[Job]) -> Sequence[UploadRow]:
    """Return the uploaded files that only these jobs would import, leaving out files that another active job
    imports."""
    active = select(Job.request).where(Job.state.in_(ACTIVE), Job.task == Task.IMPORT)
    used = {request.get("upload") for request in session.scalars(active)}
    ids = {row.request.get("upload") for row in rows} - used - {None}
    return session.scalars(select(UploadRow).where(UploadRow.id.in_(ids)).order_by(UploadRow.id)).all()
