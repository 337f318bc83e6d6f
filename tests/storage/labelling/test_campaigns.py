"""Campaigns: what is frozen when one is made, what is refused, who labels in one, and renaming and deleting one."""

import pytest
from sqlalchemy import delete, func, select, update
from sqlalchemy.exc import IntegrityError

from stepsight.core.errors import UserError
from stepsight.core.trace import Label, Trace
from stepsight.core.validation import validate
from stepsight.storage.backup import count_rows
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.changes import ChangeableDataset
from stepsight.storage.database.labelling_schema import CampaignRow, EventRow, GuidelineRow, ItemRow, SlotRow
from stepsight.storage.database.schema import TraceRow, now
from stepsight.storage.database.store import ConflictError, ForbiddenError, NotFoundError
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.campaigns import (
    ChangeableCampaign,
    add_guideline,
    close_campaign,
    find_campaign,
    get_campaign,
    guideline_text,
    list_annotators,
    list_campaigns,
    may_label_in,
    set_annotators,
)
from stepsight.storage.labelling.files.label_formats import export_labels
from stepsight.storage.labelling.plan import (
    ERROR_KINDS,
    LONGEST_KIND,
    MOST_KINDS,
    CampaignPlan,
    CampaignSettings,
)
from stepsight.storage.labelling.queue import next_availability, open_slot
from stepsight.storage.people.blindness import is_something_hidden
from stepsight.storage.people.logins import accept, find_invitation, invite, list_invitations
from stepsight.storage.people.users import Role, end_user
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.samples import GUIDELINE, TRACES, TWO, Scene, campaign, person
from tests.storage.people.samples import user
from tests.storage.samples import add, evaluator, judge


def rows(store, table):
    with store.read() as session:
        return session.scalar(select(func.count()).select_from(table)) or 0


def queue(store, made):
    """The ids of its traces, in order."""
    wanted = select(TraceRow.external_id).join(ItemRow, ItemRow.trace_id == TraceRow.id)
    with store.read() as session:
        return list(session.scalars(wanted.where(ItemRow.campaign_id == made.id).order_by(ItemRow.place)))


def test_a_campaign_says_what_was_planned(store):
    made = campaign(store, overlap=2, after_error=False, view="stepwise", lease=60, seed=7)
    assert (made.name, made.dataset, made.items, made.guideline) == ("first", "sums", 3, 1)
    assert (made.overlap, made.after_error, made.view, made.lease, made.seed) == (2, False, "stepwise", 60, 7)
    assert (made.blind, made.closed, made.conditions.stored()) == (True, None, {})
    assert (made.sample, made.population) == (None, None)
    assert get_campaign(store, made.id) == find_campaign(store, "first") == list_campaigns(store)[0] == made
    assert guideline_text(store, made.id) == guideline_text(store, made.id, 1) == GUIDELINE
    # Three traces with two slots each.
    assert (rows(store, ItemRow), rows(store, SlotRow)) == (3, 6)


def test_a_campaign_that_marks_equations_is_not_blind(store):
    assert not campaign(store, name="marked", shows_equations=True).blind
    assert not is_something_hidden(store)
    campaign(store, None, name="blind")
    assert is_something_hidden(store)


def test_the_traces_are_those_of_the_filter_when_it_was_made(store):
    made = campaign(store, conditions=TraceFilter(gold="error", text="1 + 1"))
    assert (made.conditions.stored(), made.items) == ({"gold": "error", "text": "1 + 1"}, 1)
    with store.read() as session:
        item = session.scalars(select(ItemRow)).one()
    assert (item.digest, item.place, item.chosen, queue(store, made)) == (TWO.digest, 0, "ordered", ["two"])
    add(store, [*TRACES, Trace.of("What is 1 + 1 + 0?", ["It is 3."], ["neg"], id="later")])
    assert get_campaign(store, made.id).items == 1


def test_a_condition_on_a_cell_is_kept_by_name(store):
    judged = evaluator(store)
    save_judgments(store, judged.id, [judge(trace, "offline") for trace in add(store, TRACES)])
    for cell in (f"{gold.text}-{called.text}" for gold in Label for called in Label):
        try:
            made = campaign(store, None, conditions=TraceFilter(evaluator=judged.id, cell=cell))
        except UserError:
            continue
        assert made.conditions.stored() == {"evaluator": judged.id, "cell": cell}
        return
    pytest.fail("no cell has a trace")


@each(
    "wrong",
    [
        {"conditions": TraceFilter(text="zebra")},
        {"dataset": "other"},
        {"evaluator": 99, "shows": "scores"},
        {"evaluator": 2**40},
        {"conditions": TraceFilter(evaluator=99, verdict="valid")},
        {"conditions": TraceFilter(verdict="valid")},
        {"shows": "scores"},
        {"ordering": "best"},
        {"view": "half"},
        {"name": " first "},
        {"name": ""},
        {"guideline": "  "},
        {"guideline": "x" * 100_001},
        {"overlap": 0},
        {"overlap": 51},
        {"lease": 0},
        {"seed": -1},
        {"gold_rate": 0.6},
        {"gold_rate": 0.2, "gold_dataset": "other"},
        {"gold_rate": 0.2},
        {"sample": 0},
        {"sample": 4},
        {"suggests": True},
        {"suggests": True, "shows": "scores", "evaluator": 1, "view": "stepwise"},
    ],
)
def test_impossible_campaigns_are_refused_and_nothing_is_stored(store, wrong):
    with refused():
        campaign(store, **wrong)
    assert [rows(store, table) for table in (CampaignRow, GuidelineRow, ItemRow, SlotRow)] == [0, 0, 0, 0]


def test_the_largest_of_everything_is_accepted():
    kinds = ["x" * LONGEST_KIND, "signe négatif", *(f"kind {n}" for n in range(MOST_KINDS - 2))]
    CampaignPlan(
        name="n" * 200, dataset="sums", guideline="x" * 100_000, overlap=50, gold_rate=0.5,
        lease=7 * 24 * 3600, seed=2**31 - 1, sample=2**31 - 1, qualification_items=50, error_kinds=tuple(kinds),
    )  # fmt: skip
    validate(CampaignSettings, {"error_kinds": ERROR_KINDS}, "the plan")


@pytest.mark.parametrize(
    "kinds",
    [
        (),
        [f"kind {n}" for n in range(MOST_KINDS + 1)],
        ["sign", "Sign"],
        ["x" * (LONGEST_KIND + 1)],
        [" sign"],
        ["a\nb"],
        [""],
        ["a\x00"],
    ],
)
def test_kinds_of_error_that_are_refused(kinds):
    with refused():
        validate(CampaignSettings, {"error_kinds": kinds}, "the plan")


def test_a_name_is_used_once(store):
    campaign(store)
    with refused(ConflictError):
        campaign(store, None)
    assert (rows(store, CampaignRow), rows(store, SlotRow)) == (1, 3)


def test_an_unknown_one_is_told(store):
    boss = person(store, "boss")
    for wrong in (0, 99, 2**40):
        with refused(NotFoundError):
            get_campaign(store, wrong)
        for act in (close_campaign, guideline_text):
            with pytest.raises(NotFoundError):
                act(store, wrong)
        with pytest.raises(NotFoundError):
            add_guideline(store, wrong, "Text.", boss)
    with refused(NotFoundError):
        find_campaign(store, "second")


def test_closing_is_for_good(store):
    made = campaign(store)
    closed = close_campaign(store, campaign(store, None, name="other").id)
    assert closed.closed is not None
    assert close_campaign(store, closed.id).closed == closed.closed
    # Open ones come first.
    assert [row.name for row in list_campaigns(store)] == [made.name, "other"]


def test_a_guideline_gets_a_new_version(store):
    made, boss = campaign(store), person(store, "boss")
    assert [add_guideline(store, made.id, text, boss) for text in (GUIDELINE, "Be strict.")] == [1, 2]
    assert get_campaign(store, made.id).guideline == 2
    assert [guideline_text(store, made.id, version) for version in (None, 1, 2)] == [
        "Be strict.", GUIDELINE, "Be strict.",
    ]  # fmt: skip
    with refused(NotFoundError):
        guideline_text(store, made.id, 3)
    with refused():
        add_guideline(store, made.id, " ", boss)
    close_campaign(store, made.id)
    with refused(ConflictError):
        add_guideline(store, made.id, "Later.", boss)
    assert rows(store, GuidelineRow) == 2


# Of forty traces every other one has an error.
FORTY = [Trace.of(f"Number {n}?", ["So."], ["neg" if n % 2 else "pos"], id=f"n{n}") for n in range(40)]


def test_a_sample_is_of_the_filter_drawn_by_the_seed_and_recorded(store):
    add(store, FORTY, "sums")

    def drawn(name: str, **changes: object) -> list[str]:
        given = {"conditions": TraceFilter(gold="error"), "sample": 7, "seed": 3, "name": name} | changes
        made = campaign(store, None, **given)
        assert (made.sample, made.population, made.seed, made.items) == (7, 20, given["seed"], 7)
        return queue(store, made)

    first = drawn("one")
    assert (len(set(first)), all(int(name[1:]) % 2 for name in first)) == (7, True)
    # In file order, and not merely the first ones.
    assert first == sorted(first, key=lambda name: int(name[1:]))
    assert first != [f"n{n}" for n in range(1, 15, 2)]
    assert drawn("again") == first
    assert drawn("other", seed=4) != first
    # A random order stays within the sample.
    mixed = drawn("mixed", ordering="random")
    assert (sorted(mixed), mixed == first) == (sorted(first), False)


def test_every_trace_is_as_likely_as_any_other(store):
    add(store, FORTY, "sums")
    counts = dict.fromkeys((trace.id for trace in FORTY), 0)
    for seed in range(30):
        for name in queue(store, campaign(store, None, name=f"by {seed}", sample=10, seed=seed)):
            counts[name] += 1
    # Each is expected 7.5 times of 30, with a standard deviation of 2.4.
    assert min(counts.values()) >= 1
    assert max(counts.values()) <= 17


def test_only_who_is_assigned_gets_a_trace(store):
    scene = Scene(store, overlap=2)
    ann, bob, boss = map(scene.who, ("ann", "bob", "boss"))
    assert may_label_in(store, scene.campaign, bob)
    set_annotators(store, scene.campaign.id, [ann.id], boss)
    made = get_campaign(store, scene.campaign.id)
    assert (made.restricted, list_annotators(store, made.id)) == (True, [ann])
    assert (may_label_in(store, made, ann), may_label_in(store, made, bob)) == (True, False)
    assert [next_availability(store, made, one) for one in (ann, bob, boss)] == ["new", "nothing", "nothing"]
    scene.take()
    for other in ("bob", "boss"):
        with refused(ForbiddenError):
            scene.next(other)
    set_annotators(store, made.id, None, boss)
    scene.take("bob")
    # Who was assigned is kept for the next time.
    assert list_annotators(store, made.id) == [ann]


def test_a_removed_annotator_finishes_the_trace_they_hold(store):
    scene = Scene(store, overlap=2)
    boss = person(store, "boss")
    task = scene.take()
    set_annotators(store, scene.campaign.id, [scene.who("bob").id], boss)
    assert open_slot(store, task.slot, scene.who("ann")).slot == task.slot
    for step in range(2):
        scene.do("label", step, "pos")
    scene.do("submit")
    with pytest.raises(ForbiddenError):
        scene.next()


def test_impossible_annotators_are_refused(store):
    made, boss, ann = campaign(store), person(store, "boss"), person(store, "ann")
    set_annotators(store, made.id, [ann.id], boss)
    bob = user(store, "bob")
    end_user(store, "bob")
    for of, ids, kind in (
        (made.id, [], UserError),
        (made.id, [ann.id, 999], NotFoundError),
        (made.id, [bob.id], NotFoundError),
        (99, None, NotFoundError),
    ):
        with refused(kind):
            set_annotators(store, of, ids, boss)
    assert list_annotators(store, made.id) == [ann]
    close_campaign(store, made.id)
    with refused(ConflictError):
        set_annotators(store, made.id, None, boss)


def test_accepting_an_invitation_to_a_campaign_makes_an_annotator(store):
    made, boss = campaign(store), user(store, "head", Role.ADMIN)
    token = invite(store, Role.ANNOTATOR, None, boss, made.id)
    assert [invitation.campaign for invitation in list_invitations(store)] == ["first"]
    eva = accept(store, token, "eva", "a good sentence")
    assert list_annotators(store, made.id) == [eva]
    with refused():
        invite(store, Role.VIEWER, None, boss, made.id)
    close_campaign(store, made.id)
    for gone in (made.id, 99):
        with refused(NotFoundError):
            invite(store, Role.ANNOTATOR, None, boss, gone)


@pytest.fixture
def labelled(store):
    """A campaign with a submitted annotation, of which a label was undone and redone, and with hidden gold."""
    add(store, [Trace.of("What is 5 + 5?", ["It is 10."], ["pos"], id="gold")], "golds")
    scene = Scene(store, gold_rate=0.01, gold_dataset="golds")
    scene.take()
    scene.do("label", 0, "neg")
    for cause in ("undo", "redo", "undo"):
        scene.undo(cause=cause)
    scene.label()
    add_guideline(store, scene.campaign.id, "Say more.", person(store, "boss"))
    return scene


def export(store, folder):
    export_labels(store, "first", folder / "log.jsonl", "events", force=True)


def test_a_campaign_is_deleted_with_everything_in_it_once_all_of_it_was_exported(store, labelled, tmp_path):
    made, boss = labelled.campaign, person(store, "boss")
    token = invite(store, Role.ANNOTATOR, None, boss, campaign_id=made.id)
    thing = ChangeableCampaign(made.id)
    with refused():
        thing.delete(store)
    export(store, tmp_path)
    # Labels given after the export keep it.
    labelled.take()
    labelled.do("label", 0, "pos")
    with refused():
        thing.delete(store)
    export(store, tmp_path)
    dependents = thing.read(store)
    assert dependents.lines == (
        "its queue of 3 traces of sums",
        "1 submitted annotation",
        "8 logged actions by ann",
        "1 open invitation to it",
    )
    thing.delete(store, boss)
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


def test_the_database_keeps_labels_that_were_not_exported_or_can_still_grow(store, labelled):
    for closed, exported in ((None, 99), (now(), None)):
        with store.write() as session:
            session.execute(update(CampaignRow).values(closed=closed, exported=exported))
        with pytest.raises(IntegrityError), store.write() as session:
            session.execute(delete(EventRow).where(EventRow.of.is_not(None)))


def test_a_campaign_is_renamed_unless_the_name_is_taken(store):
    made = campaign(store)
    campaign(store, None, name="second")
    with refused():
        ChangeableCampaign(made.id).rename(store, "second")
    ChangeableCampaign(made.id).rename(store, "third")
    assert find_campaign(store, "third").id == made.id
