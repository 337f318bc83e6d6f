"""Rights by role."""

from types import SimpleNamespace

import pytest

from stepsight.app.access.rights import Right, has_right, may, require, rights_of
from stepsight.storage.database.store import ForbiddenError
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.people.users import Role, local_user
from tests.messages import refused
from tests.storage.labelling.samples import campaign, person
from tests.storage.samples import add, evaluator

LOOKING = {Right.READ, Right.SCORE}
ROLES = {
    Role.VIEWER: {Right.ENTER, *LOOKING},
    Role.ANNOTATOR: {Right.ENTER, *LOOKING, Right.LABEL},
    Role.ADJUDICATOR: {Right.ENTER, *LOOKING, Right.LABEL, Right.ADJUDICATE},
    Role.ADMIN: set(Right),
}


def request(user, rights):
    return SimpleNamespace(scope={"state": {"user": user, "rights": frozenset(rights)}})


@pytest.mark.parametrize("role", Role)
def test_each_role_has_its_rights(store, role):
    ada = person(store, "ada", role)
    assert rights_of(ada, store) == ROLES[role]
    assert [may(ada, right, store) for right in Right] == [right in ROLES[role] for right in Right]


def test_the_local_user_has_them_all(store):
    assert rights_of(local_user(store), store) == set(Right)


def test_annotators_do_not_look_while_a_blind_campaign_is_open(store):
    add(store)
    people = {role: person(store, role.value, role) for role in Role}
    shown = campaign(store, None, name="shown", shows="scores", evaluator=evaluator(store).id)
    assert may(people[Role.ANNOTATOR], Right.READ, store)
    blind = campaign(store, None)
    for role, one in people.items():
        hidden = LOOKING if role is Role.ANNOTATOR else set()
        assert rights_of(one, store) == ROLES[role] - hidden
    close_campaign(store, blind.id)
    close_campaign(store, shown.id)
    assert may(people[Role.ANNOTATOR], Right.READ, store)


def test_a_required_right_is_held_or_the_request_is_refused(store):
    ada = person(store, "ada")
    assert require(request(ada, [Right.LABEL]), Right.LABEL) == ada
    with refused(ForbiddenError):
        require(request(ada, [Right.LABEL]), Right.MANAGE)
    # Who only looks has no name to act by.
    assert has_right(request(None, LOOKING), Right.READ)
    assert require(request(None, LOOKING), Right.READ) is None
    with refused(ForbiddenError):
        require(request(None, LOOKING), Right.WRITE)
