"""Which texts are hidden from whom: a table of what happened to the text, and of the people who ask."""

from contextlib import suppress

import pytest

from stepsight.core.trace import Trace
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.store import ForbiddenError
from stepsight.storage.labelling.campaigns import close_campaign, set_annotators
from stepsight.storage.people.blindness import check_texts, check_traces, hidden_traces
from stepsight.storage.people.users import Role, local_user
from tests.messages import refused
from tests.storage.labelling.samples import ONE, THREE, TWO, Scene, campaign, person
from tests.storage.samples import add, evaluator

# The text of `TWO`, cut and broken otherwise, under another id and with other gold.
COPY = Trace.of("What is 1 + 1?", ["It is a\nsum.", "So 3.", "Done. "], ["pos", "pos", "neu"], id="copy")


@pytest.fixture
def texts(store):
    """The ids of a trace and of its copy in another dataset."""
    return [add(store, [trace], name)[0].trace_id for trace, name in ((TWO, "sums"), (COPY, "copies"))]


def opened(store, **changes):
    return Scene(store, None, **changes)


def labelled(store, by, then=None, **changes):
    scene = opened(store, **changes)
    scene.label(by=by)
    if then:
        scene.do(then, by=by)
    return scene


def taken(store, by, **changes):
    scene = opened(store, **changes)
    scene.take(by)
    return scene


def skipped(store):
    scene = taken(store, "me")
    scene.do("skip", None, "No.", by="me")
    return scene


def only(scene, name):
    """The campaign of the scene, for this person alone."""
    set_annotators(scene.store, scene.campaign.id, [scene.who(name).id], scene.who("boss"))
    return scene


def closed(store):
    close_campaign(store, opened(store).campaign.id)


def as_gold(store):
    add(store, [ONE, THREE], "sums")
    return opened(store, conditions=TraceFilter(text="2 + 2"), gold_rate=0.5, gold_dataset="sums")


def shown_elsewhere(store):
    taken(store, "me", name="shows", shows_equations=True)
    return opened(store)


def twice(store):
    labelled(store, "me")
    return opened(store, name="second")


# What happened to the text in a campaign, and whether it is hidden from me.
STATES = {
    "in no campaign": (lambda store: None, False),
    "in an open blind campaign": (opened, True),
    "in one whose dataset is the copy's": (lambda store: opened(store, dataset="copies"), True),
    "in one that is closed": (closed, False),
    "in one that shows scores": (lambda store: opened(store, shows="scores", evaluator=evaluator(store).id), False),
    "in one that marks equations": (lambda store: opened(store, shows_equations=True), False),
    "held by me": (lambda store: taken(store, "me"), True),
    "submitted by me": (lambda store: labelled(store, "me"), False),
    "submitted by me, and in a second campaign": (twice, True),
    "skipped by me": (skipped, False),
    "held by another, who may lose it": (lambda store: taken(store, "other"), True),
    "submitted by all who were to label it": (lambda store: labelled(store, "other"), False),
    "submitted by one of two": (lambda store: labelled(store, "other", overlap=2), True),
    # I may have looked in between: I do not get it.
    "withdrawn by another": (lambda store: labelled(store, "other", "withdraw"), False),
    "for others alone": (lambda store: only(opened(store), "other"), False),
    "for me": (lambda store: only(opened(store), "me"), True),
    "for others alone, while I hold it": (lambda store: only(taken(store, "me"), "other"), True),
    "a hidden gold item": (as_gold, True),
    "had by me in a campaign that is not blind": (shown_elsewhere, False),
}


@pytest.mark.parametrize("state", STATES)
def test_a_text_is_hidden_while_it_may_still_be_given(store, texts, state):
    happen, is_hidden = STATES[state]
    me = person(store, "me", Role.ADJUDICATOR)
    scene = happen(store)
    assert hidden_traces(store, me, [*texts, 999, 2**70]) == (set(texts) if is_hidden else set())
    # Whatever is given was hidden before.
    if scene is not None and scene.campaign.blind and not is_hidden:
        with suppress(ForbiddenError):
            assert scene.next("me") is None


@pytest.mark.parametrize("role", list(Role))
def test_people_who_may_label_are_kept_blind(store, texts, role):
    campaign(store, None)
    assert bool(hidden_traces(store, person(store, role, role), texts)) == (role is not Role.VIEWER)
    assert not hidden_traces(store, None, texts)
    assert hidden_traces(store, local_user(store), texts)


def test_a_hidden_trace_and_its_text_are_refused(store, texts):
    me = person(store, "me")
    entered = Trace.of(" What is 1 + 1? ", ["It is a sum. So 3. Done."])
    check_texts(store, me, entered)
    campaign(store, None)
    with refused(ForbiddenError):
        check_traces(store, me, texts[0])
    with refused(ForbiddenError):
        check_texts(store, me, entered)
    check_texts(store, me, Trace.of("What is 1 + 1?", ["It is a sum. So 2. Done."]))


def test_a_campaign_that_shows_scores_does_not_give_what_is_hidden(store, texts):
    shows, blind = opened(store, name="shows", shows_equations=True, overlap=2), opened(store)
    assert shows.next() is None
    blind.label()
    assert shows.next() is not None
