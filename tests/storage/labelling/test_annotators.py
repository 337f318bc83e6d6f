"""Annotators who are assigned to a campaign."""

import pytest

from stepsight.storage.database.store import ConflictError, ForbiddenError, NotFoundError
from stepsight.storage.labelling.annotators import list_annotators, may_label_in, set_annotators
from stepsight.storage.labelling.campaigns import close_campaign, get_campaign
from stepsight.storage.labelling.queue import assign_next, next_availability, open_slot
from stepsight.storage.people.invitations import accept, invite, list_invitations
from stepsight.storage.people.users import Role, end_user
from tests.messages import refused
from tests.storage.labelling.samples import campaign, do, people, person, take
from tests.storage.people.samples import user


def test_only_who_is_assigned_gets_a_trace(store):
    made, boss = campaign(store, overlap=2), person(store, "boss")
    ann, bob = people(store, 2)
    assert may_label_in(store, made, bob)
    set_annotators(store, made.id, [ann.id], boss)
    made = get_campaign(store, made.id)
    assert (made.restricted, list_annotators(store, made.id)) == (True, [ann])
    assert (may_label_in(store, made, ann), may_label_in(store, made, bob)) == (True, False)
    assert [next_availability(store, made, one) for one in (ann, bob, boss)] == ["new", "nothing", "nothing"]
    assert assign_next(store, made.id, ann) is not None
    for other in (bob, boss):
        with refused(ForbiddenError):
            assign_next(store, made.id, other)
    set_annotators(store, made.id, None, boss)
    assert assign_next(store, made.id, bob) is not None
    # Who was assigned is kept for the next time.
    assert list_annotators(store, made.id) == [ann]


def test_a_removed_annotator_finishes_the_trace_they_hold(store):
    made, boss = campaign(store, overlap=2), person(store, "boss")
    ann, bob = people(store, 2)
    set_annotators(store, made.id, [ann.id, bob.id], boss)
    task = take(store, made, ann)
    set_annotators(store, made.id, [bob.id], boss)
    assert open_slot(store, task.slot_id, ann).slot_id == task.slot_id
    for step in range(2):
        do(store, task.slot_id, ann, "label", step, "pos")
    do(store, task.slot_id, ann, "submit")
    with pytest.raises(ForbiddenError):
        assign_next(store, made.id, ann)


def test_impossible_annotators_are_refused(store):
    made, boss = campaign(store), person(store, "boss")
    (ann,) = people(store, 1)
    set_annotators(store, made.id, [ann.id], boss)
    with refused():
        set_annotators(store, made.id, [], boss)
    with refused(NotFoundError):
        set_annotators(store, made.id, [ann.id, 999], boss)
    bob = user(store, "bob")
    end_user(store, "bob")
    with refused(NotFoundError):
        set_annotators(store, made.id, [bob.id], boss)
    with refused(NotFoundError):
        set_annotators(store, 99, None, boss)
    assert list_annotators(store, made.id) == [ann]
    close_campaign(store, made.id)
    with refused(ConflictError):
        set_annotators(store, made.id, None, boss)


def test_accepting_an_invitation_to_a_campaign_makes_an_annotator(store):
    made, boss = campaign(store), user(store, "head", Role.ADMIN)
    (ann,) = people(store, 1)
    set_annotators(store, made.id, [ann.id], boss)
    token = invite(store, Role.ANNOTATOR, None, boss, made.id)
    assert [invitation.campaign for invitation in list_invitations(store)] == ["first"]
    eva = accept(store, token, "eva", "a good sentence")
    assert list_annotators(store, made.id) == [ann, eva]
    assert assign_next(store, made.id, eva) is not None
    with refused():
        invite(store, Role.VIEWER, None, boss, made.id)
    close_campaign(store, made.id)
    for gone in (made.id, 99):
        with refused(NotFoundError):
            invite(store, Role.ANNOTATOR, None, boss, gone)
