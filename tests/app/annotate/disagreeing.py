"""A campaign whose annotators disagree, for the tests of adjudication."""

from stepsight.core.trace import Trace
from tests.storage.labelling.samples import Scene, people
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
    traces, about = [FIRST, SECOND, LAST], {}
    if name:
        add(store, traces, name)
        traces, about = None, {"name": name, "dataset": name}
    scene = Scene(store, traces, overlap=3, **about)
    annotators = people(store, 3)
    for place, user in enumerate(annotators):
        for trace, labels in SAID.items():
            scene.take(user.name)
            if (place, trace) == (0, "one"):
                for kind, new in (
                    ("label", "neg"),
                    ("error", "step_contradiction"),
                    ("comment", "It is <i>2</i>."),
                    ("correction", "So $2$."),
                ):
                    scene.do(kind, 1, new, by=user.name)
            scene.label(" ".join(labels[place]), by=user.name)
    return scene.campaign, annotators
