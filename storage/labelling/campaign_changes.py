"""Renaming and deleting campaigns.

What people did in a campaign is deleted only once a complete export of its log contains all of it. The log only
grows, so the number of events in an export tells whether there are newer ones.
"""

from dataclasses import dataclass

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from stepsight.storage.database.jobs_schema import ACTIVE, Job, Task
from stepsight.storage.database.labelling_schema import (
    CampaignAnnotatorRow,
    CampaignRow,
    EventRow,
    GuidelineRow,
    InvitationRow,
    ItemRow,
    SlotRow,
)
from stepsight.storage.database.people_schema import UserRow
from stepsight.storage.database.schema import DatasetRow, TraceRow, in_range, now
from stepsight.storage.database.store import ConflictError, NotFoundError, Store
from stepsight.storage.labelling.ordering import GOLD
from stepsight.storage.people.changes import Changeable, Dependents, count, counted, name_taken
from stepsight.storage.traces.dataset_changes import busy


@dataclass(frozen=True)
class ChangeableCampaign(Changeable[CampaignRow]):
    """The campaign with the database id `id`, which is deleted with its queue, its guidelines and everything that
    people did in it.

    It is neither deleted nor renamed while labels are being imported into it.
    """

    id: int

    kind = "campaign"
    renames = True

    def find(self, session: Session, *, lock: bool = False) -> CampaignRow:
        row = session.get(CampaignRow, in_range(self.id), with_for_update=True if lock else None)
        if row is None:
            raise NotFoundError(f"There is no campaign {self.id}.", "It may have been deleted meanwhile.")
        return row

    def dependents(self, session: Session, row: CampaignRow) -> Dependents:
        people = select(UserRow.name).where(
            UserRow.id.in_(select(EventRow.user_id).where(EventRow.campaign_id == row.id))
        )
        names = session.scalars(people.order_by(UserRow.name)).all()
        counts = {
            "traces": count(session, ItemRow.campaign_id == row.id, ItemRow.chosen != GOLD),
            "annotations": count(session, SlotRow.campaign_id == row.id, SlotRow.state == "submitted"),
            "actions": count(session, EventRow.campaign_id == row.id),
            "invitations": count(session, InvitationRow.campaign_id == row.id),
        }
        lines = {
            f"its queue of {counted(counts['traces'], 'trace')} of {_dataset(session, row)}": True,
            counted(counts["annotations"], "submitted annotation"): counts["annotations"],
            f"{counted(counts['actions'], 'logged action')} by {', '.join(names)}": counts["actions"],
            f"{counted(counts['invitations'], 'open invitation')} to it": counts["invitations"],
        }
        return Dependents(
            row.name,
            counts,
            tuple(line for line, is_there in lines.items() if is_there),
            kept="The traces stay, and so does the record of what people have seen of them.",
            obstacle=busy(_importing(session, row)) or _unexported(session, row),
        )

    def remove(self, session: Session, row: CampaignRow) -> None:
        row.closed = row.closed or now()
        session.flush()
        # Browse marks the traces that people have labelled.
        labelled = select(TraceRow.dataset_id).join(ItemRow, ItemRow.trace_id == TraceRow.id)
        touched = update(DatasetRow).where(DatasetRow.id.in_(labelled.where(ItemRow.campaign_id == row.id)))
        session.execute(touched.values(revision=DatasetRow.revision + 1))
        _remove_events(session, row.id)
        for table in (SlotRow, ItemRow, InvitationRow, CampaignAnnotatorRow, GuidelineRow):
            session.execute(delete(table).where(table.campaign_id == row.id))
        session.delete(row)

    def check_rename(self, session: Session, row: CampaignRow, new: str) -> None:
        if session.scalar(select(CampaignRow.id).where(CampaignRow.name == new)) is not None:
            raise name_taken(self.kind, new)
        if working := busy(_importing(session, row)):
            raise working


def note_export(store: Store, campaign_id: int, events: int) -> None:
    """Remember that a complete export of a campaign's log has been made, with this number of events."""
    with store.write() as session:
        session.execute(update(CampaignRow).where(CampaignRow.id == campaign_id).values(exported=events))


def _unexported(session: Session, row: CampaignRow) -> ConflictError | None:
    later = count(session, EventRow.campaign_id == row.id) - (row.exported or 0)
    if later <= 0:
        return None
    actions = "1 action of people is" if later == 1 else f"{later:,} actions of people are"
    return ConflictError(f"{actions} in no complete export.", "Download every event first, as JSON Lines.")


def _remove_events(session: Session, campaign_id: int) -> None:
    """Delete the log of a campaign: repeatedly delete the events to which no other event refers, until none are
    left."""
    mine = EventRow.campaign_id == campaign_id
    undone = select(EventRow.of).where(mine, EventRow.of.is_not(None))
    while count(session, mine):
        free = delete(EventRow).where(mine, EventRow.id.not_in(undone))
        session.execute(free.execution_options(synchronize_session=False))


def _importing(session: Session, row: CampaignRow) -> list[str]:
    """Return the subjects of the active jobs that import labels into the campaign."""
    active = select(Job).where(Job.state.in_(ACTIVE), Job.task == Task.IMPORT)
    jobs = session.scalars(active.order_by(Job.id))
    return [job.subject for job in jobs if job.request.get("campaign") == row.name]


def _dataset(session: Session, row: CampaignRow) -> str | None:
    return session.scalar(select(DatasetRow.name).where(DatasetRow.id == row.dataset_id))
