"""What the person who asks is about to see of traces, noted where the person may still label them."""

from collections.abc import Collection

from storage.people.exposures import GOLD, SCORES, note_exposure
from storage.people.users import User
from storage.store import Store


def note_shown(store: Store, user: User | None, trace_ids: Collection[int]) -> None:
    """A page or file with the scores and the gold of these traces is about to be given to `user`; None: to somebody
    who is not logged in, and labels nothing."""
    if user is not None:
        note_exposure(store, user.id, trace_ids, SCORES, GOLD)
