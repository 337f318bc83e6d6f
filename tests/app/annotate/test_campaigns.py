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
from stepsight.storage.labelling.files.export_labels import FORMAT_NAMES, export_labels
from stepsight.storage.labelling.plan import AfterSubmission, CampaignPlan, CampaignView, Ordering, Shows
from stepsight.storage.labelling.progress import CampaignProgress
from stepsight.storage.people.users import Role, User, local_user
from tests.app.client import asking
from tests.app.elements import INJECTIONS, read
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.labelled_sums import labelled
from tests.storage.labelling.samples import GUIDELINE, TWO, Scene, campaign, person
from tests.storage.samples import SAMPLES, add, evaluator, judge


@pytest.fixture
def boss(sqlite_store):
    return person(sqlite_store, "boss", Role.ADMIN)


def listed(scene, by="ann"):
    """The page of all campaigns, and the texts of its links."""
    page = read(list_html(scene.store, scene.who(by)))
    return page, [link.text for link in page.all("a")]


def bars(page):
    return [bar["aria-label"] for bar in page.all(cls="meter")]


def test_an_admin_sees_everything(sqlite_store, boss):
    assert "Label these traces" in list_html(sqlite_store, boss)
    made = campaign(sqlite_store)
    page = read(list_html(sqlite_store, boss))
    assert {link.text: link["href"] for link in page.all("a")} == {
        "New campaign": "/annotate/new",
        "People": "/people",
        "Disputes": "/annotate/disputes",
        "Start": f"/annotate/label?campaign={made.id}",
        "Agreement": f"/annotate/agreement?campaign={made.id}",
        "Adjudicate": f"/annotate/adjudicate?campaign={made.id}",
        "Manage": f"/annotate/campaign?campaign={made.id}",
    }
    assert page.one("details").one("summary").text == "Guideline, version 1"
    # Unless they are not chosen to label.
    set_annotators(sqlite_store, made.id, [person(sqlite_store, "ann").id], boss)
    page = read(list_html(sqlite_store, boss))
    assert (page.one(cls="end").text, "You" in page.text) == ("you are not one of its annotators", False)


def test_an_annotator_sees_where_to_label_and_how_far_they_are(sqlite_store):
    assert "An admin of this server can make one." in list_html(sqlite_store, person(sqlite_store, "ann"))
    scene = Scene(sqlite_store)
    # A blind campaign is open: no figures, and no gold.
    page, links = listed(scene)
    assert (links, page.one(id="annotate")["data-person"]) == (["Start"], str(scene.who("ann").id))
    scene.label("pos neg")
    page, links = listed(scene)
    assert (links, bars(page)) == (["Continue", "Your traces"], ["You: 1 of 3 annotations"])
    for role, expected in (
        (Role.ADJUDICATOR, ["You: 0 of 3 annotations", "All: 1 of 3 annotations"]),
        (Role.VIEWER, ["All: 1 of 3 annotations"]),
    ):
        person(sqlite_store, role.value, role)
        assert bars(listed(scene, role.value)[0]) == expected
    close_campaign(sqlite_store, scene.campaign.id)
    page, links = listed(scene)
    assert (page.one(cls="end").text, links) == ("closed", ["Disputes", "Your traces", "Agreement"])


def test_a_person_with_a_trace_continues_and_one_with_none_left_is_told_so(sqlite_store):
    scene = Scene(sqlite_store, [TWO])
    scene.take()
    assert listed(scene)[1] == ["Continue", "Your traces"]
    page, links = listed(scene, "bob")
    assert (page.one(cls="end").text, links) == ("nothing left for you", [])
    scene.label()
    assert listed(scene)[0].one(cls="end").text == "nothing left for you"


def test_a_persons_own_traces_are_listed_with_their_states_and_those_of_others_are_not(sqlite_store):
    scene = Scene(sqlite_store)
    scene.take()
    others = scene.take("bob")
    scene.do("skip", None, "no idea")
    second = scene.label()
    page = read(turns_html(sqlite_store, scene.campaign.id, scene.who("ann"), 1))
    assert [row.children[1].text for row in page.one("tbody").all("tr")] == ["submitted", "skipped"]
    assert page.one("a", href=f"/annotate/label?slot={second.slot}").text == second.trace.problem
    assert not page.all("a", href=f"/annotate/label?slot={others.slot}")


def shown(made, boss, store):
    return read(campaign_html(store, made.id, boss))


def test_the_work_of_each_annotator_is_shown_to_the_lead_with_their_qualification(sqlite_store, boss):
    scene = Scene(sqlite_store, conditions=TraceFilter(text="3 + 3"), qualification_items=1, overlap=2)
    assert "Nobody has begun yet." in shown(scene.campaign, boss, sqlite_store).text
    # The gold of the trace that comes first is pos and neg, or pos, neu and pos.
    gold = {2: "pos neg", 3: "pos neu pos"}[len(scene.take().trace.steps)]
    scene.label(gold)
    scene.take()
    scene.label(" ".join(["unsure"] * len(gold.split())), by="bob")
    scene.take("bob")
    scene.do("skip", None, "no idea", by="bob")
    rows = shown(scene.campaign, boss, sqlite_store).one("tbody").all("tr")
    assert [[cell.text for cell in row.children] for row in rows] == [
        ["ann", "1", "1", "0", "1 of 1 right"],
        ["bob", "1", "0", "1", "0 of 1 right"],
    ]


def test_the_guideline_and_those_before_it(sqlite_store, boss):
    made = campaign(sqlite_store)
    for text in INJECTIONS:
        add_guideline(sqlite_store, made.id, text, boss)
    page = shown(made, boss, sqlite_store)
    newest = len(INJECTIONS) + 1
    assert page.one("textarea").text == INJECTIONS[-1]
    form = page.one("form", data_post=f"/annotate/campaigns/{made.id}/guideline")
    assert form.one("button").text == f"Publish as version {newest + 1}"
    earlier = page.all("details", cls="guideline")
    assert [one.one("summary").text for one in earlier] == [
        f"Guideline, version {number}" for number in range(newest - 1, 0, -1)
    ]
    assert GUIDELINE in earlier[-1].text


def test_a_campaign_can_be_labelled_and_closed_until_it_is(sqlite_store, boss):
    made = campaign(sqlite_store)
    page = shown(made, boss, sqlite_store)
    assert page.one(cls="ending").one("button")["data-post"] == f"/annotate/campaigns/{made.id}/close"
    link = page.one("a", cls="primary")
    assert (link.text, link["href"]) == ("Start", f"/annotate/label?campaign={made.id}")
    close_campaign(sqlite_store, made.id)
    page = shown(made, boss, sqlite_store)
    # Its labels can still be downloaded.
    assert [button.text for button in page.all("button")] == ["Download the labels", "Rename or delete"]
    assert (page.one("form")["action"], page.all("a", cls="primary")) == ("/annotate/export", [])
    assert "closed on" in page.text
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
    disputed = scored.model_copy(update={"ordering": Ordering.DISAGREEMENT, "gold_rate": 0.0, "sample": None})
    assert queue_terms(disputed) == (
        "most disputed by the evaluators first · 20% of the places filled at random · gold: error"
    )
    assert queue_terms(made) == "in the order of the file"


def test_how_far_it_is(sqlite_store):
    made = campaign(sqlite_store, overlap=2)
    progress = CampaignProgress(submitted=4, slots=6, mine=5, items_done=1, items=3)
    # Five submitted by a person of three traces: two of them were hidden gold, of which nothing is told.
    page = read(macro("annotate/parts.html", "progress", progress_bars(made, progress)))
    assert bars(page) == ["You: 3 of 3 annotations", "All: 4 of 6 annotations"]
    assert [bar.one("i")["style"] for bar in page.all(cls="meter")] == ["width:100.0%", "width:66.7%"]
    assert [text.text for text in page.all(cls="n")] == ["3 of 3", "4 of 6 · 1 of 3 traces complete"]
    assert [bar.name for bar in progress_bars(made, progress, everybody=False)] == ["You"]
    nothing = CampaignProgress(submitted=0, slots=0, mine=0, items_done=0, items=0)
    assert [bar.percent for bar in progress_bars(made, nothing, own=False)] == [0.0]


def test_a_guideline_is_text_with_maths():
    details = read(macro("annotate/parts.html", "guideline", 2, "Let $x$ be.")).one("details")
    assert (details.one("summary").text, details.one(cls="math").text) == ("Guideline, version 2", "x")
    for text in INJECTIONS:
        read(macro("annotate/parts.html", "guideline", 1, text))


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
