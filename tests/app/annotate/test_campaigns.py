"""Pages of campaigns: all, as people in different roles see them, the form, one campaign, and its labels."""

import csv
import io
import tempfile

import pytest

from stepsight.app.annotate.campaigns import (
    LabelsAddress,
    NewCampaign,
    campaign_html,
    form_html,
    list_html,
    progress_bars,
    queue_terms,
    read_plan,
    terms,
    turns_html,
)
from stepsight.app.browse.page import BrowsePages
from stepsight.app.web.html import macro
from stepsight.core.validation import validate
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.store import NotFoundError
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.campaigns import add_guideline, close_campaign, create_campaign, set_annotators
from stepsight.storage.labelling.files.label_formats import FORMAT_NAMES, export_labels
from stepsight.storage.labelling.plan import AfterSubmission, CampaignPlan, CampaignView, Ordering, Shows
from stepsight.storage.labelling.progress import CampaignProgress
from stepsight.storage.people.users import Role, User, local_user
from tests.app.client import asking
from tests.app.elements import INJECTIONS, read
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.labelled_sums import labelled
from tests.storage.labelling.samples import Scene, campaign, person
from tests.storage.samples import SAMPLES, add, evaluator, judge


@pytest.fixture
def boss(sqlite_store):
    return person(sqlite_store, "boss", Role.ADMIN)


def test_the_list_of_campaigns(sqlite_store, boss, drawn):
    ann = person(sqlite_store, "ann")
    for user in (boss, ann):
        drawn(list_html(sqlite_store, user), f"without a campaign, for {user.name}")
    scene = Scene(sqlite_store)
    drawn(list_html(sqlite_store, boss), "a campaign, for an admin")
    drawn(list_html(sqlite_store, ann), "for an annotator, who sees neither figures nor gold while it is blind")
    scene.label("pos neg")
    for role in (Role.ANNOTATOR, Role.ADJUDICATOR, Role.VIEWER):
        user = ann if role is Role.ANNOTATOR else person(sqlite_store, role.value, role)
        drawn(list_html(sqlite_store, user), f"one trace is labelled, for the {role.value}")
    for _ in range(2):
        scene.label()
    drawn(list_html(sqlite_store, ann), "nothing is left for the annotator")
    set_annotators(sqlite_store, scene.campaign.id, [ann.id], boss)
    drawn(list_html(sqlite_store, boss), "an admin who is not one of its annotators")
    close_campaign(sqlite_store, scene.campaign.id)
    drawn(list_html(sqlite_store, ann), "closed, for the annotator")


def test_a_persons_own_traces_are_listed_with_their_states_and_those_of_others_are_not(sqlite_store, drawn):
    scene = Scene(sqlite_store)
    scene.take()
    scene.take("bob")
    scene.do("skip", None, "no idea")
    scene.label()
    drawn(turns_html(sqlite_store, scene.campaign.id, scene.who("ann"), 1))


def test_a_campaign_for_who_leads_it(sqlite_store, boss, drawn):
    scene = Scene(sqlite_store, conditions=TraceFilter(text="3 + 3"), qualification_items=1, overlap=2)
    drawn(campaign_html(sqlite_store, scene.campaign.id, boss), "nobody has begun")
    # The gold of the trace that comes first is pos and neg, or pos, neu and pos.
    gold = {2: "pos neg", 3: "pos neu pos"}[len(scene.take().trace.steps)]
    scene.label(gold)
    scene.take()
    scene.label(" ".join(["unsure"] * len(gold.split())), by="bob")
    scene.take("bob")
    scene.do("skip", None, "no idea", by="bob")
    for text in INJECTIONS:
        add_guideline(sqlite_store, scene.campaign.id, text, boss)
    drawn(campaign_html(sqlite_store, scene.campaign.id, boss), "two have labelled, and the guideline was changed")
    close_campaign(sqlite_store, scene.campaign.id)
    drawn(campaign_html(sqlite_store, scene.campaign.id, boss), "closed")
    with pytest.raises(NotFoundError):
        campaign_html(sqlite_store, 7, boss)


def test_the_task_and_its_annotators_are_stated(sqlite_store):
    made = campaign(sqlite_store, overlap=3, after_submission="everything")
    assert terms(made) == (
        "3 traces of sums · labelled by 3 people each · the whole trace in view · blind"
        " · everything shown after submission"
    )
    scored = campaign(
        sqlite_store, None, name="second", view="stepwise", after_error=False, shows="scores",
        evaluator=evaluator(sqlite_store).id, conditions=TraceFilter(gold="error"), ordering="file", gold_rate=0.25,
        after_submission="nothing", sample=1, seed=7,
    )  # fmt: skip
    assert terms(scored) == (
        "1 trace of sums · labelled by 1 person each · step by step · up to the first error · scores in view"
        " · nothing shown after submission"
    )
    suggested = scored.model_copy(update={"suggests": True})
    assert "scores in view · labels suggested by the evaluator" in terms(suggested)
    marked = made.model_copy(update={"shows_equations": True, "after_submission": AfterSubmission.NOTHING})
    assert "in view · equations that fail marked · nothing" in terms(marked)
    assert queue_terms(scored) == (
        "1 of 1 by chance, seed 7 · in the order of the file · 25% hidden gold items · gold: error"
    )
    assert queue_terms(made) == "in the order of the file"


def test_how_far_it_is(sqlite_store, drawn):
    made = campaign(sqlite_store, overlap=2)
    # Five submitted by a person of three traces: two of them were hidden gold, of which nothing is told.
    progress = CampaignProgress(submitted=4, slots=6, mine=5, items_done=1, items=3)
    drawn(macro("annotate/parts.html", "progress", progress_bars(made, progress)))
    assert [bar.name for bar in progress_bars(made, progress, everybody=False)] == ["You"]
    nothing = CampaignProgress(submitted=0, slots=0, mine=0, items_done=0, items=0)
    assert [bar.percent for bar in progress_bars(made, nothing, own=False)] == [0.0]


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
        name="first", dataset="sums", guideline=str(fields["guideline"]), conditions=TraceFilter(), overlap=1,
        gold_rate=0.0,
    )  # fmt: skip
    assert create_campaign(sqlite_store, plan, local_user(sqlite_store)).items == len(SAMPLES)


def test_every_field_counts(sqlite_store, evaluators):
    add(sqlite_store, SAMPLES)
    plan = plan_of(
        sqlite_store,
        evaluators,
        FIELDS | {"traces": "dataset=sums&gold=error&q=1+%2B+1", "overlap": "3", "view": "stepwise",
                 "after_error": "no", "shows": "scores", "evaluator": "5", "ordering": "file",
                 "gold_rate": "10", "gold_dataset": "other", "shows_answer": "no",
                 "after_submission": "gold", "error_kinds": " sign \r\n\nunit", "sample": "1", "seed": "9",
                 "suggests": "no", "shows_equations": "yes", "qualification_items": "5"},
    )  # fmt: skip
    assert plan == CampaignPlan(
        name="first", dataset="sums", guideline="Look.", conditions=TraceFilter(gold="error", text="1 + 1"),
        overlap=3, after_error=False, view=CampaignView.STEPWISE, shows=Shows.SCORES, evaluator=5,
        ordering=Ordering.FILE, gold_rate=0.1, gold_dataset="other", shows_answer=False,
        after_submission=AfterSubmission.GOLD, error_kinds=("sign", "unit"), sample=1, seed=9,
        shows_equations=True, qualification_items=5,
    )  # fmt: skip


def test_conditions_come_along_from_browse(sqlite_store, evaluators, boss):
    traces = add(sqlite_store, SAMPLES)
    mini = evaluator(sqlite_store)
    save_judgments(sqlite_store, mini.id, [judge(trace, "offline") for trace in traces])
    query = {"dataset": "sums", "gold": "error", "verdict": "valid", "evaluator": "mini", "page": "3"}
    page = read(form_html(sqlite_store, evaluators, query))
    traces_field = page.one("input", name="traces")["value"]
    assert traces_field == "dataset=sums&gold=error&evaluator=mini&verdict=valid"
    assert page.all("select", name="dataset") == []
    plan = plan_of(sqlite_store, evaluators, {"name": "n", "guideline": "g", "traces": traces_field})
    assert plan.conditions == TraceFilter(gold="error", verdict="valid", evaluator=mini.id)
    (option,) = [one for one in page.one("select", name="evaluator").all("option") if one.text == "mini"]
    assert option["value"] == str(mini.id)

    def ways(user: User, text: str) -> list[str]:
        query = {"dataset": "sums", "gold": "error", "page": "2", "q": text}
        page = read(BrowsePages(sqlite_store, evaluators).content(query, user).html)
        return [link["href"] for link in page.all("a") if link.text == "Label these traces"]

    assert ways(boss, "1 + 1") == ["/annotate/new?dataset=sums&gold=error&q=1+%2B+1"]
    assert ways(person(sqlite_store, "ann"), "1 + 1") == ways(boss, "nowhere") == []


@each(
    "fields",
    [
        {"after_submission": "all"},
        {"sample": "some"},
        {"overlap": "two"},
        {"gold_rate": "many"},
        {"gold_rate": 10**400},
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


def test_every_format_of_the_command_comes_from_the_page_byte_for_byte(
    sqlite_store, evaluators, tmp_path, monkeypatch
):
    made = labelled(sqlite_store, name="All of “sums”")
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with asking(sqlite_store, evaluators) as client:

        def download(format: str, **more: object) -> bytes:
            answer = client.get(LabelsAddress.PATH, params={"campaign": made.id, "format": format} | more)
            ending = {"csv": "csv", "label-studio": "json", "argilla": "json"}.get(format, "jsonl")
            each = "-by-person" if more else ""
            name = f'attachment; filename="All-of-sums-labels-{format}{each}.{ending}"'
            assert (answer.status_code, answer.headers["content-disposition"]) == (200, name)
            return answer.content

        for format in FORMAT_NAMES:
            export_labels(sqlite_store, made.name, tmp_path / format, format)
            assert download(format) == (tmp_path / format).read_bytes(), format
        rows = list(csv.DictReader(io.StringIO(download("csv", each="1").decode("utf-8-sig"), newline="")))
        assert {row["annotator"] for row in rows} == {"annotator 1", "annotator 2", "annotator 3"}
        # What would be a formula is none.
        assert "'=1+1 begins like a formula, “quoted”" in {row["comment"] for row in rows}
        for query, status in (({"campaign": 99}, 404), ({"campaign": made.id, "format": "xlsx"}, 422)):
            assert client.get(LabelsAddress.PATH, params=query).status_code == status
    # Nothing is left behind.
    assert list(folder.iterdir()) == []
