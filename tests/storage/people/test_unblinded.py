"""Of which traces somebody who labels may see the gold."""

from stepsight.storage.database.store import Store
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.people.exposures import is_unblinded
from tests.storage.labelling.samples import campaign, label_all, people, take


def test_only_what_is_submitted_and_in_no_other_blind_campaign(store: Store) -> None:
    (anna, ben), first = people(store, 2), campaign(store, overlap=2)
    task = take(store, first, anna)
    trace = task.trace.trace_id
    assert not is_unblinded(store, anna.id, trace)
    label_all(store, task, anna, ["pos", "neg"])
    assert is_unblinded(store, anna.id, trace)
    # Not for somebody else, nor another trace.
    assert not is_unblinded(store, ben.id, trace)
    assert not is_unblinded(store, anna.id, take(store, first, anna).trace.trace_id)
    # The same trace comes again in another campaign, until that is closed.
    second = campaign(store, None, name="second")
    assert not is_unblinded(store, anna.id, trace)
    close_campaign(store, second.id)
    assert is_unblinded(store, anna.id, trace)
