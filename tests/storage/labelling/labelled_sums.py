"""A campaign in which everything happened that can: what the tests of exports and imports start from."""

from collections.abc import Sequence

from stepsight.storage.database.labelling_schema import ItemRow
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.labelling.adjudication import decide
from stepsight.storage.labelling.record import record
from stepsight.storage.people.users import Role
from tests.storage.labelling.samples import TRACES, act, campaign, do, key, label_all, people, person, take

# What three annotators say of the steps of each trace.
SAID: dict[str, Sequence[list[str]]] = {
    "two": (["pos", "neg"], ["pos", "neg"], ["neu", "neg"]),
    # Step 2: one each, and then decided. Step 3: two are unsure.
    "three": (["pos", "neg", "unsure"], ["pos", "neu", "unsure"], ["pos", "pos", "pos"]),
    "one": (["pos"], ["unsure"], ["pos"]),
}
AGREED = {"two": ("pos", "neg"), "three": ("pos", "neu", None), "one": ("pos",)}
HOW = {"two": ("majority", "majority"), "three": ("majority", "adjudicated", "unsure"), "one": ("majority",)}


def labelled(store, traces=TRACES, **changes):
    """Everybody labels every trace; the first annotator's answer to "two" has notes, and changes of mind that leave
    nothing but events; the third's to "one" is taken back and submitted again. Then eve decides, twice."""
    made = campaign(store, traces, overlap=3, **changes)
    for place, user in enumerate(people(store, 3)):
        for _ in traces:
            task = take(store, made, user)
            name = name_of(task)
            if (place, name) == (0, "two"):
                _with_notes(store, task, user)
            else:
                label_all(store, task, user, SAID[name][place])
            if (place, name) == (2, "one"):
                do(store, task.slot, user, "reopen")
                do(store, task.slot, user, "submit")
    eve, item = person(store, "eve", Role.ADJUDICATOR), item_of(store, made, "three")
    decide(store, made.id, item, 1, "pos", "It helps.", eve, key())
    decide(store, made.id, item, 1, "neu", "On second thoughts, it does not.", eve, key())
    return made


def _with_notes(store, task, user):
    slot = task.slot
    do(store, slot, user, "label", 0, "neg", seconds=1.5)
    if task.campaign.view == "stepwise":
        do(store, slot, user, "reveal", None, 2)
    do(store, slot, user, "label", 0, "pos", seconds=0.25)
    record(store, slot, user, act("label", cause="undo"))
    record(store, slot, user, act("label", cause="redo"))
    # The last step's first label is the one that it is submitted with first.
    do(store, slot, user, "label", 1, "unsure", seconds=2.0)
    do(store, slot, user, "comment", 0, "=1+1 begins like a formula, “quoted”")
    do(store, slot, user, "correction", 1, "So 2.\nDone.")
    do(store, slot, user, "flag", None, "The question is odd.")
    do(store, slot, user, "submit")
    do(store, slot, user, "reopen")
    do(store, slot, user, "label", 1, "neg")
    do(store, slot, user, "error", 1, "counterfactual")
    do(store, slot, user, "submit")


def name_of(task):
    return next(known.id for known in TRACES if known.problem == task.trace.problem)


def item_of(store, made, name):
    with store.read() as session:
        found = session.query(ItemRow.id).join(TraceRow, TraceRow.id == ItemRow.trace_id)
        return int(found.filter(ItemRow.campaign_id == made.id, TraceRow.external_id == name).one()[0])
