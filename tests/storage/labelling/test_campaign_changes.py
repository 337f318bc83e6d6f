"""Renaming and deleting campaigns."""

import pytest
from sqlalchemy import delete, update
from sqlalchemy.exc import IntegrityError

from stepsight.core.trace import Trace
from stepsight.storage.backup import count_rows
from stepsight.storage.browse.browse import browse
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.labelling_schema import CampaignRow, EventRow
from stepsight.storage.database.schema import now
from stepsight.storage.labelling.campaign_changes import ChangeableCampaign
from stepsight.storage.labelling.campaigns import add_guideline, find_campaign
from stepsight.storage.labelling.files.export_labels import export_labels
from stepsight.storage.people.invitations import find_invitation, invite
from stepsight.storage.people.users import Role
from stepsight.storage.traces.dataset_changes import ChangeableDataset
from tests.messages import refused
from tests.storage.labelling.samples import campaign, do, label_all, person, redo, take, undo
from tests.storage.samples import add


def labelled(store):
    """A campaign with a submitted annotation, of which a label was undone and redone, and with hidden gold."""
    gold = Trace.of("What is 5 + 5?", ["It is 10."], ["pos"], id="gold")
    add(store, [gold], "golds")
    made = campaign(store, gold_rate=0.5, gold_dataset="golds")
    ada = person(store, "ada")
    task = take(store, made, ada)
    do(store, task.slot_id, ada, "label", 0, "neg")
    undo(store, task.slot_id, ada, "u")
    redo(store, task.slot_id, ada, "r")
    undo(store, task.slot_id, ada, "v")
    label_all(store, task, ada, ["pos"] * len(task.trace.steps))
    add_guideline(store, made.id, "Say more.", person(store, "boss"))
    return made


def export(store, folder):
    export_labels(store, "first", folder / "log.jsonl", "events", force=True)


def test_a_campaign_is_deleted_with_everything_in_it_once_it_was_exported(store, tmp_path):
    made = labelled(store)
    token = invite(store, Role.ANNOTATOR, None, person(store, "boss"), campaign_id=made.id)
    thing = ChangeableCampaign(made.id)
    with refused():
        thing.delete(store)
    export(store, tmp_path)
    found = thing.read(store)
    assert found.lines == (
        "its queue of 3 traces of sums",
        "1 submitted annotation",
        f"{found.counts['actions']} logged actions by ada",
        "1 open invitation to it",
    )
    thing.delete(store, person(store, "boss"))
    with store.read() as session:
        left = count_rows(session)
    gone = ("campaigns", "campaign_items", "slots", "label_events", "guidelines", "invitations")
    assert [left[name] for name in gone] == [0] * len(gone)
    with refused():
        find_invitation(store, token)
    with refused():
        thing.delete(store)
    # Nothing else keeps the datasets.
    for name in ("sums", "golds"):
        ChangeableDataset(name).delete(store)


def test_labels_given_after_the_export_keep_the_campaign(store, tmp_path):
    made = labelled(store)
    export(store, tmp_path)
    ada = person(store, "ada")
    do(store, take(store, made, ada).slot_id, ada, "label", 0, "pos")
    with refused():
        ChangeableCampaign(made.id).delete(store)
    export(store, tmp_path)
    ChangeableCampaign(made.id).delete(store)


def test_the_database_keeps_labels_that_were_not_exported_or_can_still_grow(store):
    made = labelled(store)
    for closed, exported in ((None, 99), (now(), None)):
        with store.write() as session:
            session.execute(update(CampaignRow).values(closed=closed, exported=exported))
        with pytest.raises(IntegrityError), store.write() as session:
            session.execute(delete(EventRow).where(EventRow.campaign_id == made.id, EventRow.of.is_not(None)))


def test_browse_forgets_the_labels_of_a_deleted_campaign(store, tmp_path):
    made, ada = campaign(store), person(store, "ada")
    label_all(store, take(store, made, ada), ada, ["pos", "neg"])
    labelled_ones = TraceFilter(relabelled="yes")
    assert len(browse(store, made.dataset_id, labelled_ones).rows) == 1
    export(store, tmp_path)
    ChangeableCampaign(made.id).delete(store)
    assert browse(store, made.dataset_id, labelled_ones).rows == []


def test_a_campaign_is_renamed_unless_the_name_is_taken(store):
    made = campaign(store)
    campaign(store, None, name="second")
    with refused():
        ChangeableCampaign(made.id).rename(store, "second")
    ChangeableCampaign(made.id).rename(store, "third")
    assert find_campaign(store, "third").id == made.id
