"""What the form for a campaign offers, and the plan that comes out of it."""

import pytest

from stepsight.app.annotate.new_campaign import NewCampaign, form_html, read_plan
from stepsight.app.browse.page import BrowsePages
from stepsight.core.validation import validate
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.store import NotFoundError
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.campaigns import create_campaign
from stepsight.storage.labelling.plan import AfterSubmission, CampaignPlan, CampaignView, Ordering, Shows
from stepsight.storage.people.users import Role, User, local_user
from tests.app.elements import read
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.samples import person
from tests.storage.samples import SAMPLES, add, evaluator, judge

FIELDS = {"name": " first ", "guideline": " Look. ", "dataset": "sums"}


def plan_of(store, evaluators, fields):
    return read_plan(store, evaluators, validate(NewCampaign, fields, "the body"))


def test_a_form_as_it_comes_makes_a_plan_that_works(sqlite_store, evaluators):
    add(sqlite_store, SAMPLES)
    page = read(form_html(sqlite_store, evaluators, {}))
    fields = {field["name"]: field.attributes.get("value", "") for field in page.all("input")}
    fields |= {area["name"]: area.text for area in page.all("textarea")}
    for choice in page.all("select"):
        fields[choice["name"]] = choice.one("option", selected=None)["value"]
    plan = plan_of(sqlite_store, evaluators, fields | {"name": "first"})
    assert plan == CampaignPlan(
        name="first", dataset="sums", guideline=str(fields["guideline"]), conditions=TraceFilter(), overlap=2,
        random_share=0.2, gold_rate=0.0,
    )  # fmt: skip
    assert create_campaign(sqlite_store, plan, local_user(sqlite_store)).items == len(SAMPLES)


def test_every_field_counts(sqlite_store, evaluators):
    add(sqlite_store, SAMPLES)
    plan = plan_of(
        sqlite_store,
        evaluators,
        FIELDS | {"traces": "dataset=sums&gold=error&q=1+%2B+1", "overlap": "3", "view": "stepwise",
                 "after_error": "no", "shows": "scores", "evaluator": "5", "ordering": "disagreement",
                 "random_share": "12.5", "gold_rate": "10", "gold_dataset": "other", "shows_answer": "no",
                 "after_submission": "gold", "error_kinds": " sign \r\n\nunit", "sample": "1", "seed": "9",
                 "suggests": "no", "shows_equations": "yes", "qualification_items": "5"},
    )  # fmt: skip
    assert plan == CampaignPlan(
        name="first", dataset="sums", guideline="Look.", conditions=TraceFilter(gold="error", text="1 + 1"),
        overlap=3, after_error=False, view=CampaignView.STEPWISE, shows=Shows.SCORES, evaluator=5,
        ordering=Ordering.DISAGREEMENT,
        random_share=0.125, gold_rate=0.1, gold_dataset="other", shows_answer=False,
        after_submission=AfterSubmission.GOLD, error_kinds=("sign", "unit"), sample=1, seed=9,
        shows_equations=True, qualification_items=5,
    )  # fmt: skip


def test_conditions_come_along_from_browse(sqlite_store, evaluators):
    traces = add(sqlite_store, SAMPLES)
    known = evaluator(sqlite_store)
    save_judgments(sqlite_store, known.id, [judge(trace, "offline") for trace in traces])
    query = {"dataset": "sums", "gold": "error", "verdict": "valid", "evaluator": "mini", "page": "3"}
    page = read(form_html(sqlite_store, evaluators, query))
    traces_field = page.one("input", name="traces")["value"]
    assert traces_field == "dataset=sums&gold=error&evaluator=mini&verdict=valid"
    assert page.all("select", name="dataset") == []
    plan = plan_of(sqlite_store, evaluators, {"name": "n", "guideline": "g", "traces": traces_field})
    assert plan.conditions == TraceFilter(gold="error", verdict="valid", evaluator=known.id)
    (option,) = [one for one in page.one("select", name="evaluator").all("option") if one.text == "mini"]
    assert option["value"] == str(known.id)


@each(
    "fields",
    [
        {"after_submission": "all"},
        {"sample": "some"},
        {"overlap": "two"},
        {"gold_rate": "many"},
        {"view": "sideways"},
        {"shows": "all"},
        {"ordering": "best"},
        {"traces": "gold=golden"},
        {"traces": "dataset=sums&verdict=valid&evaluator=nobody"},
    ],
)
def test_nonsensical_fields_are_named(sqlite_store, evaluators, fields):
    add(sqlite_store, SAMPLES)
    with refused():
        plan_of(sqlite_store, evaluators, FIELDS | fields)


def test_datasets_that_are_not_there(sqlite_store, evaluators):
    with refused():
        form_html(sqlite_store, evaluators, {})
    with pytest.raises(NotFoundError):
        plan_of(sqlite_store, evaluators, FIELDS)
    add(sqlite_store, SAMPLES)
    with pytest.raises(NotFoundError):
        form_html(sqlite_store, evaluators, {"dataset": "other"})


def test_browse_leads_here_with_its_conditions(sqlite_store, evaluators):
    add(sqlite_store, SAMPLES)
    boss, ann = person(sqlite_store, "boss", Role.ADMIN), person(sqlite_store, "ann")
    query = {"dataset": "sums", "gold": "error", "page": "2", "q": "1 + 1"}

    def ways(user: User, query: dict[str, str]) -> list[str]:
        page = read(BrowsePages(sqlite_store, evaluators).content(query, user).html)
        return [link["href"] for link in page.all("a") if link.text == "Label these traces"]

    assert ways(boss, query) == ["/annotate/new?dataset=sums&gold=error&q=1+%2B+1"]
    assert ways(ann, query) == []
    assert ways(boss, query | {"q": "nowhere"}) == []
