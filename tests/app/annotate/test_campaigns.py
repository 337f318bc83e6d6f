"""Pages of campaigns: all of them, as people in different roles see them, the form, one campaign, and its
labels."""

import csv
import io
import tempfile

import pytest

from stepsight.app.access.rights import COOKIE
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
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import Role, User, local_user
from stepsight.storage.traces.queries import get_trace
from tests.app.client import PAGE, asking
from tests.app.elements import INJECTIONS, read
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.labelled_sums import labelled
from tests.storage.labelling.samples import GUIDELINE, TWO, campaign, do, label_all, people, person, take
from tests.storage.people.samples import user as new_user
from tests.storage.samples import SAMPLES, add, evaluator, judge


def test_an_admin_sees_everything(sqlite_store):
    made = campaign(sqlite_store)
    page = read(list_html(sqlite_store, person(sqlite_store, "boss", Role.ADMIN)))
    links = {link.text: link["href"] for link in page.all("a")}
    assert links == {
        "New campaign": "/annotate/new",
        "People": "/people",
        "Disputes": "/annotate/disputes",
        "Start": f"/annotate/label?campaign={made.id}",
        "Agreement": f"/annotate/agreement?campaign={made.id}",
        "Adjudicate": f"/annotate/adjudicate?campaign={made.id}",
        "Manage": f"/annotate/campaign?campaign={made.id}",
    }
    assert page.one("details").one("summary").text == "Guideline, version 1"


def test_an_annotator_sees_where_to_label_and_how_far_they_are(sqlite_store):
    made = campaign(sqlite_store)
    ann = person(sqlite_store, "ann")
    page = read(list_html(sqlite_store, ann))
    # A blind campaign is open: no figures, and no gold.
    assert [link.text for link in page.all("a")] == ["Start"]
    assert page.one(id="annotate")["data-person"] == str(ann.id)
    label_all(sqlite_store, take(sqlite_store, made, ann), ann, ["pos", "neg"])
    page = read(list_html(sqlite_store, ann))
    assert [link.text for link in page.all("a")] == ["Continue", "Your traces"]
    assert [bar["aria-label"] for bar in page.all(cls="meter")] == ["You: 1 of 3 annotations"]
    close_campaign(sqlite_store, made.id)
    page = read(list_html(sqlite_store, ann))
    assert page.one(cls="end").text == "closed"
    assert [link.text for link in page.all("a")] == ["Disputes", "Your traces", "Agreement"]


def test_adjudicators_and_viewers_see_everybodys_progress(sqlite_store):
    made = campaign(sqlite_store)
    ann = person(sqlite_store, "ann")
    label_all(sqlite_store, take(sqlite_store, made, ann), ann, ["pos", "neg"])
    for role, bars in (
        (Role.ADJUDICATOR, ["You: 0 of 3 annotations", "All: 1 of 3 annotations"]),
        (Role.VIEWER, ["All: 1 of 3 annotations"]),
    ):
        page = read(list_html(sqlite_store, person(sqlite_store, role.value, role)))
        assert [bar["aria-label"] for bar in page.all(cls="meter")] == bars


def test_none_yet(sqlite_store):
    boss, ann = person(sqlite_store, "boss", Role.ADMIN), person(sqlite_store, "ann")
    assert "Label these traces" in list_html(sqlite_store, boss)
    assert "An admin of this server can make one." in list_html(sqlite_store, ann)


def test_a_person_with_a_trace_continues_and_one_with_none_left_is_told_so(sqlite_store):
    made = campaign(sqlite_store, [TWO], overlap=1)
    ann, ben = people(sqlite_store, 2)
    task = take(sqlite_store, made, ann)
    page = read(list_html(sqlite_store, ann))
    assert [link.text for link in page.all("a")] == ["Continue", "Your traces"]
    page = read(list_html(sqlite_store, ben))
    assert (page.one(cls="end").text, page.all("a")) == ("nothing left for you", [])
    label_all(sqlite_store, task, ann, ["pos", "neg"])
    assert read(list_html(sqlite_store, ann)).one(cls="end").text == "nothing left for you"


def test_an_admin_who_is_not_chosen_is_told_so(sqlite_store):
    made = campaign(sqlite_store)
    boss, ann = person(sqlite_store, "boss", Role.ADMIN), person(sqlite_store, "ann")
    set_annotators(sqlite_store, made.id, [ann.id], boss)
    page = read(list_html(sqlite_store, boss))
    assert page.one(cls="end").text == "you are not one of its annotators"
    assert "You" not in page.text


def test_a_persons_own_traces_are_listed_with_their_states_and_those_of_others_are_not(sqlite_store):
    made = campaign(sqlite_store)
    ann, ben = people(sqlite_store, 2)
    first, others = take(sqlite_store, made, ann), take(sqlite_store, made, ben)
    do(sqlite_store, first.slot_id, ann, "skip", None, "no idea")
    second = take(sqlite_store, made, ann)
    label_all(sqlite_store, second, ann, ["pos"] * len(second.trace.steps))
    page = read(turns_html(sqlite_store, made.id, ann, 1))
    rows = page.one("tbody").all("tr")
    assert [row.children[1].text for row in rows] == ["submitted", "skipped"]
    assert page.one("a", href=f"/annotate/label?slot={second.public_id}").text == second.trace.problem
    assert not page.all("a", href=f"/annotate/label?slot={others.public_id}")


def shown(store, made):
    return read(campaign_html(store, made.id, person(store, "boss", Role.ADMIN)))


def test_the_work_of_each_annotator_is_shown(sqlite_store):
    made = campaign(sqlite_store, overlap=2)
    one, two = people(sqlite_store, 2)
    page = shown(sqlite_store, made)
    assert "Nobody has begun yet." in page.text
    label_all(sqlite_store, take(sqlite_store, made, one), one, ["pos", "neg"])
    take(sqlite_store, made, one)
    do(sqlite_store, take(sqlite_store, made, two).slot_id, two, "skip", None, "no idea")
    rows = shown(sqlite_store, made).one("tbody").all("tr")
    assert [[cell.text for cell in row.children] for row in rows] == [
        ["annotator 1", "1", "1", "0"],
        ["annotator 2", "0", "0", "1"],
    ]


def test_the_result_of_a_qualification_is_shown_to_the_lead(sqlite_store):
    made = campaign(sqlite_store, conditions=TraceFilter(text="3 + 3"), qualification_items=1)
    one, two = people(sqlite_store, 2)
    for user in (one, two):
        task = take(sqlite_store, made, user)
        gold = [step.label.text for step in get_trace(sqlite_store, task.trace.trace_id).steps]
        label_all(sqlite_store, task, user, gold if user is one else ["unsure"] * len(gold))
    results = [row.all("td")[-1].text for row in shown(sqlite_store, made).one("tbody").all("tr")]
    assert results == ["1 of 1 right", "0 of 1 right"]


def test_the_guideline_and_those_before_it(sqlite_store):
    made = campaign(sqlite_store)
    boss = person(sqlite_store, "boss", Role.ADMIN)
    for text in INJECTIONS:
        add_guideline(sqlite_store, made.id, text, boss)
    page = shown(sqlite_store, made)
    newest = len(INJECTIONS) + 1
    assert page.one("textarea").text == INJECTIONS[-1]
    assert (
        page.one("form", data_post=f"/annotate/campaigns/{made.id}/guideline").one("button").text
        == f"Publish as version {newest + 1}"
    )
    earlier = page.all("details", cls="guideline")
    assert [one.one("summary").text for one in earlier] == [
        f"Guideline, version {number}" for number in range(newest - 1, 0, -1)
    ]
    assert GUIDELINE in earlier[-1].text


def test_nothing_is_to_be_done_once_it_is_closed(sqlite_store):
    made = campaign(sqlite_store)
    ending = shown(sqlite_store, made).one(cls="ending")
    assert ending.one("button")["data-post"] == f"/annotate/campaigns/{made.id}/close"
    close_campaign(sqlite_store, made.id)
    page = shown(sqlite_store, made)
    # Its labels can still be downloaded.
    assert [button.text for button in page.all("button")] == ["Download the labels", "Rename or delete"]
    assert page.one("form")["action"] == "/annotate/export"
    assert "closed on" in page.text


def test_one_that_is_not_there(sqlite_store):
    with pytest.raises(NotFoundError):
        campaign_html(sqlite_store, 7, person(sqlite_store, "boss", Role.ADMIN))


def test_the_manager_can_start_labelling(sqlite_store):
    made = campaign(sqlite_store)
    link = shown(sqlite_store, made).one("a", cls="primary")
    assert (link.text, link["href"]) == ("Start", f"/annotate/label?campaign={made.id}")
    close_campaign(sqlite_store, made.id)
    assert shown(sqlite_store, made).all("a", cls="primary") == []


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
    suggested = campaign(
        sqlite_store, None, name="third", shows="scores", evaluator=scored.evaluator_id, suggests=True
    )
    assert "scores in view · labels suggested by the evaluator" in terms(suggested)
    marked = campaign(sqlite_store, None, name="fourth", shows_equations=True)
    assert "in view · equations that fail marked · nothing" in terms(marked)
    assert queue_terms(scored) == (
        "1 of 1 by chance, seed 7 · in the order of the file · 25% hidden gold items · gold: error"
    )
    disputed = scored.model_copy(update={"ordering": Ordering.DISAGREEMENT, "gold_rate": 0.0, "sample": None})
    assert (
        queue_terms(disputed)
        == "most disputed by the evaluators first · 20% of the places filled at random · gold: error"
    )
    assert queue_terms(made) == "in the order of the file"


def test_how_far_it_is(sqlite_store):
    made = campaign(sqlite_store, overlap=2)
    progress = CampaignProgress(submitted=4, slots=6, mine=5, items_done=1, items=3)
    # Five submitted by a person of three traces: two of them were hidden gold, of which nothing is told.
    bars = read(macro("annotate/parts.html", "progress", progress_bars(made, progress)))
    assert [bar["aria-label"] for bar in bars.all(cls="meter")] == [
        "You: 3 of 3 annotations",
        "All: 4 of 6 annotations",
    ]
    assert [bar.one("i")["style"] for bar in bars.all(cls="meter")] == ["width:100.0%", "width:66.7%"]
    assert [text.text for text in bars.all(cls="n")] == ["3 of 3", "4 of 6 · 1 of 3 traces complete"]
    assert [bar.name for bar in progress_bars(made, progress, everybody=False)] == ["You"]
    nothing = CampaignProgress(submitted=0, slots=0, mine=0, items_done=0, items=0)
    assert [bar.percent for bar in progress_bars(made, nothing, own=False)] == [0.0]


def test_a_guideline_is_text_with_maths():
    shown = read(macro("annotate/parts.html", "guideline", 2, "Let $x$ be.")).one("details")
    assert (shown.one("summary").text, shown.one(cls="math").text) == ("Guideline, version 2", "x")
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


PATH = LabelsAddress.PATH


@pytest.fixture
def made(sqlite_store):
    return labelled(sqlite_store, name="All of “sums”")


@pytest.fixture
def client(sqlite_store, evaluators):
    with asking(sqlite_store, evaluators) as client:
        yield client


@each("format", FORMAT_NAMES)
def test_every_format_of_the_command_comes_from_the_page_byte_for_byte(
    client, made, sqlite_store, tmp_path, format
):
    answer = client.get(PATH, params={"campaign": made.id, "format": format})
    ending = {"csv": "csv", "label-studio": "json", "argilla": "json"}.get(format, "jsonl")
    name = f'attachment; filename="All-of-sums-labels-{format}.{ending}"'
    assert (answer.status_code, answer.headers["content-disposition"]) == (200, name)
    export_labels(sqlite_store, made.name, tmp_path / format, format)
    assert answer.content == (tmp_path / format).read_bytes()


def test_each_ones_labels_come_where_they_are_asked_for_and_nothing_is_left_behind(
    client, made, tmp_path, monkeypatch
):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    answer = client.get(PATH, params={"campaign": made.id, "format": "csv", "each": "1"})
    assert answer.headers["content-disposition"] == 'attachment; filename="All-of-sums-labels-csv-by-person.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"), newline="")))
    assert {row["annotator"] for row in rows} == {"annotator 1", "annotator 2", "annotator 3"}
    # What would be a formula is none.
    assert "'=1+1 begins like a formula, “quoted”" in {row["comment"] for row in rows}
    assert list(folder.iterdir()) == []


def test_a_campaign_that_is_not_there_and_a_format_that_is_none_are_told(client, made):
    assert client.get(PATH, params={"campaign": 99}).status_code == 404
    assert client.get(PATH, params={"campaign": made.id, "format": "xlsx"}).status_code == 422


def test_downloading_labels_of_an_open_campaign_is_an_exposure(sqlite_store, evaluators, made):
    boss = new_user(sqlite_store, "head", Role.ADMIN)
    login = {"cookie": f"{COOKIE}={open_login(sqlite_store, boss)}"}
    with asking(sqlite_store, evaluators) as client:
        page = client.get("/annotate/campaign", params={"campaign": made.id}, headers=PAGE | login).text
        assert "Download the labels" in page
        assert client.get(PATH, params={"campaign": made.id}, headers=login).status_code == 200
