"""Campaigns: what is frozen when one is made, what is refused, who labels in one, and renaming and deleting one."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import delete, func, select, update
from sqlalchemy.exc import IntegrityError

from stepsight.core.errors import UserError
from stepsight.core.trace import Label, Trace
from stepsight.core.validation import validate
from stepsight.storage.backup import count_rows
from stepsight.storage.browse.browse import browse
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.changes import ChangeableDataset
from stepsight.storage.database.labelling_schema import CampaignRow, EventRow, GuidelineRow, ItemRow, SlotRow
from stepsight.storage.database.schema import TraceRow, now
from stepsight.storage.database.store import ConflictError, ForbiddenError, NotFoundError
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.campaigns import (
    Campaign,
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
from stepsight.storage.labelling.files.export_labels import export_labels
from stepsight.storage.labelling.plan import ERROR_KINDS, LONGEST_KIND, MOST_KINDS, CampaignPlan, CampaignSettings
from stepsight.storage.labelling.queue import assign_next, next_availability, open_slot
from stepsight.storage.labelling.record import read_annotation
from stepsight.storage.people.blindness import is_something_hidden
from stepsight.storage.people.invitations import accept, find_invitation, invite, list_invitations
from stepsight.storage.people.users import Role, end_user
from stepsight.storage.traces.queries import iterate_traces
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.samples import (
    GUIDELINE,
    TRACES,
    TWO,
    campaign,
    do,
    label_all,
    people,
    person,
    redo,
    take,
    undo,
)
from tests.storage.people.samples import user
from tests.storage.samples import add, evaluator, judge


def rows(store, table):
    with store.read() as session:
        return session.scalar(select(func.count()).select_from(table)) or 0


def test_a_campaign_says_what_was_planned(store):
    made = campaign(store, overlap=2, after_error=False, view="stepwise", lease=60, seed=7)
    assert (made.name, made.dataset, made.items, made.guideline) == ("first", "sums", 3, 1)
    assert (made.overlap, made.after_error, made.view, made.lease, made.seed) == (2, False, "stepwise", 60, 7)
    assert (made.blind, made.closed, made.conditions.stored()) == (True, None, {})
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
    where = TraceFilter(gold="error", text="1 + 1")
    made = campaign(store, conditions=where)
    assert made.conditions.stored() == {"gold": "error", "text": "1 + 1"}
    assert made.items == 1
    with store.read() as session:
        found = session.execute(select(ItemRow.trace_id, ItemRow.digest, ItemRow.place, ItemRow.chosen)).one()
    trace = next(iterate_traces(store, made.dataset_id))
    assert tuple(found) == (trace.trace_id, TWO.digest, 0, "ordered")
    more = TWO.of("What is 1 + 1 + 0?", ["It is 3."], ["neg"], id="later")
    add(store, [*TRACES, more])
    assert get_campaign(store, made.id).items == 1


def test_a_condition_on_a_cell_is_kept_by_name(store):
    judged = evaluator(store)
    traces = add(store, TRACES)
    save_judgments(store, judged.id, [judge(trace, "offline") for trace in traces])
    for cell in (f"{gold.text}-{called.text}" for gold in Label for called in Label):
        where = TraceFilter(evaluator=judged.id, cell=cell)
        try:
            made = campaign(store, None, conditions=where)
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
        {"ordering": "disagreement"},
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
        {"random_share": 1.5},
        {"random_share": float("nan")},
        {"gold_rate": 0.6},
        {"gold_rate": 0.2, "gold_dataset": "other"},
        {"gold_rate": 0.2},
    ],
)
def test_impossible_campaigns_are_refused_and_nothing_is_stored(store, wrong):
    with refused():
        campaign(store, **wrong)
    assert [rows(store, table) for table in (CampaignRow, GuidelineRow, ItemRow, SlotRow)] == [0, 0, 0, 0]


def test_the_largest_of_everything_is_accepted():
    CampaignPlan(
        name="n" * 200, dataset="sums", guideline="x" * 100_000, overlap=50, random_share=1.0, gold_rate=0.5,
        lease=7 * 24 * 3600, seed=2**31 - 1, sample=2**31 - 1, qualification_items=50,
    )  # fmt: skip


def test_a_name_is_used_once(store):
    campaign(store)
    with refused(ConflictError):
        campaign(store, None)
    assert rows(store, CampaignRow) == 1


def test_only_one_of_many_simultaneous_creators_succeeds(store):
    add(store, TRACES)
    person(store, "boss")

    def make(_: int) -> Campaign | None:
        try:
            return campaign(store, None)
        except ConflictError:
            return None

    with ThreadPoolExecutor(4) as pool:
        made = [found for found in pool.map(make, range(8)) if found is not None]
    assert len(made) == 1
    assert (rows(store, CampaignRow), rows(store, SlotRow)) == (1, 3)


def test_an_unknown_one_is_told(store):
    for wrong in (0, 99, 2**40):
        with refused(NotFoundError):
            get_campaign(store, wrong)
        with pytest.raises(NotFoundError):
            close_campaign(store, wrong)
        with pytest.raises(NotFoundError):
            add_guideline(store, wrong, "Text.", person(store, "boss"))
        with pytest.raises(NotFoundError):
            guideline_text(store, wrong)
    with refused(NotFoundError):
        find_campaign(store, "second")


def test_closing_is_for_good(store):
    made = campaign(store)
    other = campaign(store, None, name="other")
    closed = close_campaign(store, other.id)
    assert closed.closed is not None
    assert close_campaign(store, other.id).closed == closed.closed
    # Open ones come first.
    assert [row.name for row in list_campaigns(store)] == [made.name, "other"]


def test_a_guideline_gets_a_new_version(store):
    made, boss = campaign(store), person(store, "boss")
    assert add_guideline(store, made.id, GUIDELINE, boss) == 1
    assert add_guideline(store, made.id, "Be strict.", boss) == 2
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


# Of forty traces every other one has an error.
FORTY = [Trace.of(f"Number {n}?", ["So."], ["neg" if n % 2 else "pos"], id=f"n{n}") for n in range(40)]


def chosen(store, made):
    wanted = select(TraceRow.external_id).join(ItemRow, ItemRow.trace_id == TraceRow.id)
    with store.read() as session:
        return list(session.scalars(wanted.where(ItemRow.campaign_id == made.id).order_by(ItemRow.place)))


def test_it_is_of_the_filter_drawn_by_the_seed_and_recorded(store):
    add(store, FORTY, "sums")
    where = TraceFilter(gold="error")
    one = campaign(store, None, name="one", conditions=where, sample=7, seed=3)
    assert (one.sample, one.population, one.seed, one.items) == (7, 20, 3, 7)
    drawn = chosen(store, one)
    assert len(set(drawn)) == 7
    assert all(int(name[1:]) % 2 for name in drawn)
    # In file order, and not merely the first ones.
    assert drawn == sorted(drawn, key=lambda name: int(name[1:]))
    assert drawn != [f"n{n}" for n in range(1, 15, 2)]
    again = campaign(store, None, name="again", conditions=where, sample=7, seed=3)
    other = campaign(store, None, name="other", conditions=where, sample=7, seed=4)
    assert chosen(store, again) == drawn
    assert chosen(store, other) != drawn
    # A random order stays within the sample.
    mixed = campaign(store, None, name="mixed", conditions=where, sample=7, seed=3, ordering="random")
    assert (sorted(chosen(store, mixed)), chosen(store, mixed) == drawn) == (sorted(drawn), False)


def test_every_trace_is_as_likely_as_any_other(store):
    add(store, FORTY, "sums")
    counts = dict.fromkeys((trace.id for trace in FORTY), 0)
    for seed in range(30):
        for name in chosen(store, campaign(store, None, name=f"by {seed}", sample=10, seed=seed)):
            counts[name] += 1
    # Each is expected 7.5 times of 30, with a standard deviation of 2.4.
    assert min(counts.values()) >= 1
    assert max(counts.values()) <= 17


@pytest.mark.parametrize("sample", [0, 41])
def test_samples_that_cannot_be(store, sample):
    add(store, FORTY, "sums")
    with refused():
        campaign(store, None, sample=sample)
    assert list_campaigns(store) == []


def test_all_are_taken_where_no_sample_is_asked_for(store):
    made = campaign(store)
    assert (made.sample, made.population, made.items) == (None, None, 3)


def own_kinds(kinds):
    validate(CampaignSettings, {"error_kinds": kinds}, "the plan")


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
def test_lists_that_are_refused(kinds):
    with refused():
        own_kinds(kinds)


def test_lists_that_are_taken():
    own_kinds(ERROR_KINDS)
    own_kinds(["x" * LONGEST_KIND, "signe négatif", *(f"kind {n}" for n in range(MOST_KINDS - 2))])


def test_a_campaign_takes_its_own_kinds_alone(store):
    made = campaign(store, [TWO], error_kinds=("sign", "unit"))
    assert made.error_kinds == ("sign", "unit")
    ann = person(store, "ann")
    slot = take(store, made, ann).slot_id
    do(store, slot, ann, "label", 0, "neg")
    do(store, slot, ann, "error", 0, "unit")
    with refused():
        do(store, slot, ann, "error", 0, "calculation")
    assert read_annotation(store, slot).errors == ("unit", None)
    undo(store, slot, ann, "back")
    assert read_annotation(store, slot).errors == (None, None)
