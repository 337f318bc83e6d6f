"""A campaign whose annotators disagree, for the tests of adjudication."""

from stepsight.core.trace import Trace
from stepsight.storage.labelling.queue import assign_next
from tests.storage.labelling.samples import campaign, do, label_all, people
from tests.storage.samples import add

FIRST = Trace.of("What is $1 + 1$?", ["It is a <b>sum</b>.", "So 3.", "So it is 2."], id="one")
SECOND = Trace.of("What is 2 + 2?", ["A sum.", "So 4."], id="two")
LAST = Trace.of("What is 3 + 3?", ["It is 6."], id="three")
# By trace what the annotators say.
SAID = {
    "one": (["pos", "neg", "pos"], ["pos", "pos", "unsure"], ["pos", "neg", "neu"]),
    "two": (["pos", "neg"], ["neu", "neg"], ["pos", "neg"]),
    "three": (["pos"], ["pos"], ["pos"]),
}
"""Disagreed upon are steps 2 and 3 of the first, and step 1 of the second."""


def disagreeing(store, name=""):
    """The campaign and its three annotators; `name` is its own and its dataset's. In the first trace the first says
    more of step 2."""
    traces, annotators = [FIRST, SECOND, LAST], people(store, 3)
    if name:
        add(store, traces, name)
        made = campaign(store, None, overlap=3, name=name, dataset=name)
    else:
        made = campaign(store, traces, overlap=3)
    for place, user in enumerate(annotators):
        _label(store, made, user, place)
    return made, annotators


def _label(store, made, user, place):
    for said in SAID.values():
        task = assign_next(store, made.id, user)
        assert task is not None
        if place == 0 and said is SAID["one"]:
            _remark(store, task, user)
        label_all(store, task, user, _of(said, place))


def _of(said, place):
    return said[place]


def _remark(store, task, user):
    do(store, task.slot_id, user, "label", 1, "neg")
    do(store, task.slot_id, user, "error", 1, "step_contradiction")
    do(store, task.slot_id, user, "comment", 1, "It is <i>2</i>.")
    do(store, task.slot_id, user, "correction", 1, "So $2$.")
