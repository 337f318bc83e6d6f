"""Which texts are hidden from whom: a table of what happened to the text, and of the people who ask."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from stepsight.core.trace import Trace
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.store import ForbiddenError, Store
from stepsight.storage.labelling.campaigns import Campaign, close_campaign, set_annotators
from stepsight.storage.labelling.queue import assign_next
from stepsight.storage.people.blindness import check_texts, check_traces, hidden_traces, is_unblinded
from stepsight.storage.people.users import Role, User, local_user
from tests.messages import refused
from tests.storage.labelling.samples import ONE, THREE, TWO, campaign, do, label_all, people, person, take
from tests.storage.samples import add, evaluator

# The text of `TWO`, cut and broken otherwise, under another id and with other gold.
COPY = Trace.of("What is 1 + 1?", ["It is a\nsum.", "So 3.", "Done. "], ["pos", "pos", "neu"], id="copy")


class World:
    """A trace in a blind campaign and its copy in another dataset, somebody who asks, and somebody else."""

    def __init__(self, store: Store) -> None:
        self.store = store
        (self.trace,) = add(store, [TWO])
        (self.copy,) = add(store, [COPY], "copies")
        self.me, self.other = person(store, "me", Role.ADJUDICATOR), person(store, "other")
        self.blind: Campaign | None = None

    def open(self, **changes: Any) -> Campaign:
        self.blind = campaign(self.store, None, **changes)
        return self.blind

    def label(self, user: User, of: Campaign | None = None) -> int:
        """Label the trace and return its slot."""
        assert self.blind is not None
        task = take(self.store, of or self.blind, user)
        label_all(self.store, task, user, ["pos"] * len(task.trace.steps))
        return task.slot_id


def _closed(world):
    close_campaign(world.store, world.open().id)
    world.blind = None


def _withdrawn_by_another(world):
    world.open()
    do(world.store, world.label(world.other), world.other, "withdraw")


def _skipped_by_me(world):
    made = world.open()
    do(world.store, take(world.store, made, world.me).slot_id, world.me, "skip", None, "No.")


def _removed_while_holding(world):
    made = world.open()
    take(world.store, made, world.me)
    set_annotators(world.store, made.id, [world.other.id], world.me)


def _as_gold(world):
    add(world.store, [ONE, THREE], "sums")
    world.open(conditions=TraceFilter(text="2 + 2"), gold_rate=0.5, gold_dataset="sums")


def _shown_elsewhere(world):
    take(world.store, campaign(world.store, None, name="shows", shows_equations=True), world.me)
    world.open()


STATES: dict[str, tuple[Callable[[World], object], bool]] = {
    "in no campaign": (lambda world: None, False),
    "in an open blind campaign": (lambda world: world.open(), True),
    "in one whose dataset is the copy's": (lambda world: world.open(dataset="copies"), True),
    "in one that is closed": (_closed, False),
    "in one that shows scores": (
        lambda world: world.open(shows="scores", evaluator=evaluator(world.store).id),
        False,
    ),
    "in one that marks equations": (lambda world: world.open(shows_equations=True), False),
    "held by me": (lambda world: take(world.store, world.open(), world.me), True),
    "submitted by me": (lambda world: (world.open(), world.label(world.me)), False),
    "submitted by me, and in a second campaign": (
        lambda world: (world.open(), world.label(world.me), world.open(name="second")),
        True,
    ),
    "skipped by me": (_skipped_by_me, False),
    "held by another, who may lose it": (lambda world: take(world.store, world.open(), world.other), True),
    "submitted by all who were to label it": (lambda world: (world.open(), world.label(world.other)), False),
    "submitted by one of two": (lambda world: (world.open(overlap=2), world.label(world.other)), True),
    # I may have looked in between: I do not get it.
    "withdrawn by another": (_withdrawn_by_another, False),
    "for others alone": (
        lambda world: set_annotators(world.store, world.open().id, [world.other.id], world.me),
        False,
    ),
    "for me": (lambda world: set_annotators(world.store, world.open().id, [world.me.id], world.me), True),
    "for others alone, while I hold it": (_removed_while_holding, True),
    "a hidden gold item": (_as_gold, True),
    "had by me in a campaign that is not blind": (_shown_elsewhere, False),
}


@pytest.mark.parametrize("state", STATES)
def test_a_text_is_hidden_while_it_may_still_be_given(store, state):
    prepare, is_hidden = STATES[state]
    world = World(store)
    prepare(world)
    ids = [world.trace.trace_id, world.copy.trace_id, 999, 2**70]
    assert hidden_traces(store, world.me, ids) == (set(ids[:2]) if is_hidden else set())
    # Whatever is given was hidden before.
    if world.blind is not None and world.blind.blind and not is_hidden:
        with suppress(ForbiddenError):
            assert assign_next(store, world.blind.id, world.me) is None


@pytest.mark.parametrize("role", list(Role))
def test_people_who_may_label_are_kept_blind(store, role):
    world = World(store)
    world.open()
    user = person(store, role, role)
    hidden = hidden_traces(store, user, [world.trace.trace_id])
    assert bool(hidden) == (role is not Role.VIEWER)
    assert not hidden_traces(store, None, [world.trace.trace_id])
    assert hidden_traces(store, local_user(store), [world.trace.trace_id])


def test_a_hidden_trace_and_its_text_are_refused(store):
    world = World(store)
    entered = Trace.of(" What is 1 + 1? ", ["It is a sum. So 3. Done."])
    check_texts(store, world.me, entered)
    world.open()
    with refused(ForbiddenError):
        check_traces(store, world.me, world.trace.trace_id)
    with refused(ForbiddenError):
        check_texts(store, world.me, entered)
    check_texts(store, world.me, Trace.of("What is 1 + 1?", ["It is a sum. So 2. Done."]))


def test_a_campaign_that_shows_scores_does_not_give_what_is_hidden(store):
    world = World(store)
    shows = campaign(store, None, name="shows", shows_equations=True, overlap=2)
    world.open()
    assert assign_next(store, shows.id, world.me) is None
    world.label(world.me)
    assert assign_next(store, shows.id, world.me) is not None


def test_gold_is_shown_to_who_submitted_unless_another_campaign_hides_it(store):
    (anna, ben), first = people(store, 2), campaign(store, overlap=2, after_submission="everything")
    task = take(store, first, anna)
    trace = task.trace.trace_id
    assert not is_unblinded(store, anna, trace)
    label_all(store, task, anna, ["pos", "neg"])
    assert is_unblinded(store, anna, trace)
    # Not for somebody else, nor another trace.
    assert not is_unblinded(store, ben, trace)
    assert not is_unblinded(store, anna, take(store, first, anna).trace.trace_id)
    for changes in ({"after_submission": "everything"}, {"shows_equations": True}):
        second = campaign(store, None, name=f"second {changes}", **changes)
        assert not is_unblinded(store, anna, trace)
        close_campaign(store, second.id)
        assert is_unblinded(store, anna, trace)
