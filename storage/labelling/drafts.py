"""Where a person stands with a trace, and going back and forth in what they did."""

from storage.labelling.acts import Act
from storage.labelling.derivation import Draft, derive
from storage.labelling.events import Recorded, record
from storage.labelling.log import read_log
from storage.labelling.slots import load_slot
from storage.people.users import User
from storage.store import Store

__all__ = ["Draft", "read_draft", "redo_act", "undo_act"]


def read_draft(store: Store, slot_id: int, user_id: int | None = None) -> Draft:
    """Where a person stands with the trace of a slot, by default who has the slot; nobody has an empty draft.

    Raises `NotFoundError`.
    """
    with store.read() as session:
        slot = load_slot(session, slot_id)
        whose = slot.user_id if user_id is None else user_id
        log = [] if whose is None else read_log(session, slot.item_id, whose)
        return derive(log, slot.n_steps, slot.stepwise)


def undo_act(store: Store, slot_id: int, user: User, key: str) -> Recorded:
    """Take back the newest label, comment, correction, kind of error or flag that stands. As often as there is one.

    Raises what `storage.labelling.events.record` raises, `UserError` where there is nothing to take back.
    """
    return record(store, slot_id, user, Act(kind="", key=key, cause="undo"))


def redo_act(store: Store, slot_id: int, user: User, key: str) -> Recorded:
    """Repeat what was last taken back, until something new is done. Raises as `undo_act` does."""
    return record(store, slot_id, user, Act(kind="", key=key, cause="redo"))
