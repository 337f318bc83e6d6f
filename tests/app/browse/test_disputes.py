"""Disputes beside the gold of a trace in Browse."""

import pytest

from stepsight.app.browse.page import BrowsePage
from stepsight.app.browse.people import dispute_links
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.disputes import DisputeState, add_entry, open_dispute
from stepsight.storage.people.users import Role, User, local_user
from stepsight.storage.traces.queries import StoredTrace
from tests.storage.labelling.samples import person
from tests.storage.samples import ERROR, MISSING, add


@pytest.fixture
def traces(sqlite_store: Store) -> list[StoredTrace]:
    return add(sqlite_store, [ERROR, MISSING])


@pytest.fixture
def user(sqlite_store: Store) -> User:
    return local_user(sqlite_store)


def test_each_step_links_to_its_dispute_and_to_a_new_one(
    sqlite_store: Store, traces: list[StoredTrace], user: User
) -> None:
    made = open_dispute(sqlite_store, traces[0].trace_id, 1, "pos", "So.", user)
    gone = open_dispute(sqlite_store, traces[0].trace_id, 1, "neu", "So.", user)
    add_entry(sqlite_store, gone.id, user, "", DisputeState.WITHDRAWN)
    one, two = dispute_links(sqlite_store, traces[0], user)
    assert one == (
        f'<a class="dispute file" href="/annotate/dispute?trace={traces[0].trace_id}&amp;step=1" '
        'aria-label="Dispute the gold of step 1">Dispute</a>'
    )
    known = f'<a class="dispute" href="/annotate/disputes/{made.id}" title="should say ✓ pos">'
    assert two.startswith(f"{known}disputed</a><a")
    assert f"/annotate/dispute?trace={traces[0].trace_id}&amp;step=2" in two
    add_entry(sqlite_store, made.id, user, "", DisputeState.ACCEPTED)
    assert f"{known}dispute accepted</a>" in dispute_links(sqlite_store, traces[0], user)[1]


def test_a_viewer_sees_disputes_and_no_link_to_a_new_one(
    sqlite_store: Store, traces: list[StoredTrace], user: User
) -> None:
    made = open_dispute(sqlite_store, traces[0].trace_id, 1, "pos", "So.", user)
    for who in (None, person(sqlite_store, "viewer", Role.VIEWER)):
        one, two = dispute_links(sqlite_store, traces[0], who)
        assert one == ""
        assert two.endswith("disputed</a>")
        assert f"/annotate/disputes/{made.id}" in two


def test_without_gold_there_is_nothing_to_dispute(
    sqlite_store: Store, traces: list[StoredTrace], user: User
) -> None:
    assert dispute_links(sqlite_store, traces[1], user) == ()


def test_on_the_page_of_a_trace(
    sqlite_store: Store, traces: list[StoredTrace], evaluators: Evaluators, user: User
) -> None:
    page = BrowsePage(sqlite_store, evaluators).content({"trace": str(traces[0].trace_id)}, user).html
    assert page.count('<div class="disputable"><span class="g"') == 2
    page = BrowsePage(sqlite_store, evaluators).content({"trace": str(traces[0].trace_id)}, None).html
    assert "disputable" not in page
