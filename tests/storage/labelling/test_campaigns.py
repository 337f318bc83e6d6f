"""Campaigns: what is frozen when one is made, and what is refused."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select

from stepsight.core.errors import UserError
from stepsight.core.label import Label
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.labelling_schema import CampaignRow, GuidelineRow, ItemRow, SlotRow
from stepsight.storage.database.store import ConflictError, NotFoundError
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.campaigns import (
    Campaign,
    add_guideline,
    close_campaign,
    find_campaign,
    get_campaign,
    guideline_text,
    list_campaigns,
)
from stepsight.storage.labelling.plan import CampaignPlan
from stepsight.storage.people.blindness import is_something_hidden
from stepsight.storage.traces.queries import iterate_traces
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.samples import GUIDELINE, TRACES, TWO, campaign, person
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
