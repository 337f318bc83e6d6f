import csv
import re
import shutil
from math import nan

import pytest

from stepsight.app.annotate.agreement import (
    ROWS,
    Heatmap,
    figures,
    headline,
    heatmap_rows,
    matrix,
    measure_agreement,
    verdict,
)
from stepsight.app.annotate.agreement_tables import annotator_table, overall_table, pair_table
from stepsight.app.web.access import COOKIE
from stepsight.app.web.html import render
from stepsight.core.metrics.agreement import ONE_ANNOTATOR
from stepsight.core.metrics.bootstrap import Value, resamples
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.store import NotFoundError, open_store
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import Role, add_user
from tests.app.annotate.rated import cells, rated
from tests.app.client import PAGE, asking
from tests.messages import refused
from tests.storage.labelling.samples import THREE, TWO, Scene, campaign, person
from tests.storage.samples import evaluator

PATH = "/annotate/agreement"
ANSWERS = {
    "ada": ("pos neg", "pos neu pos"),
    "bo": ("pos neg", "pos pos pos"),
    "cy": ("pos pos", "neg pos pos"),
}


def labelled(store, traces, **changes):
    """A campaign over two traces that three people have labelled."""
    scene = Scene(store, traces, overlap=3, **changes)
    for name, answers in ANSWERS.items():
        for labels in answers:
            scene.label(labels, by=name)
    return scene.campaign


@pytest.fixture
def of(sqlite_store):
    return labelled(sqlite_store, (TWO, THREE))


@pytest.fixture(scope="module")
def local(sqlite_template, tmp_path_factory, evaluators):
    """The local user of a store with the same campaign, and nobody who could log in."""
    path = shutil.copy(sqlite_template, tmp_path_factory.mktemp("agreed") / "store.db")
    with open_store(str(path)) as store:
        labelled(store, (TWO, THREE))
        labelled(store, None, name="again <b>")
        close_campaign(store, campaign(store, None, name="empty").id)
        alone = Scene(store, None, name="alone")
        alone.label("pos neg")
        alone.label("pos pos pos", by="bo")
        with asking(store, evaluators) as asked:
            yield asked


def shown(client, query, **headers):
    found = client.get(f"{PATH}?{query}", headers=PAGE | headers)
    assert found.status_code == 200, found.text
    return found.text


def test_the_page(local, drawn):
    """Of the first campaign's 15 labels 2 are neg on step 2 of the first trace and 1 on step 1 of the second, 1 is
    neu and 11 are pos. Steps 1 and 5 are unanimous, in the others one pair of three agrees: alpha is
    1 - 14 * 6 / (225 - 9 - 1 - 121)."""
    for title, query in (
        ("a campaign to choose", ""),
        ("three people, on two traces", "campaign=1"),
        ("against another campaign", "campaign=1&against=2"),
        ("nobody has labelled", "campaign=3"),
        ("each trace was given to one person", "campaign=4"),
    ):
        page = shown(local, query)
        drawn(page[page.index("<main") : page.index("</main>") + len("</main>")], title)


def test_cells_lead_to_the_decision_where_there_is_one_to_make(client, sqlite_store, of):
    found = re.findall(r'<a href="([^"]*)" tabindex="-1"', shown(client, f"campaign={of.id}"))
    assert len(found) == 5
    assert set(found) == {f"/annotate/adjudicate?campaign={of.id}&amp;item={item}" for item in (1, 2)}
    assert client.get(found[0].replace("&amp;", "&"), headers=PAGE).status_code == 200
    # Who does not decide is led to the trace.
    add_user(sqlite_store, "vi", Role.VIEWER, "a long password")
    close_campaign(sqlite_store, of.id)
    cookie = f"{COOKIE}={open_login(sqlite_store, person(sqlite_store, 'vi'))}"
    seen = re.findall(r'<a href="([^"]*)" tabindex="-1"', shown(client, f"campaign={of.id}", cookie=cookie))
    assert set(seen) == {"/browse?trace=1", "/browse?trace=2"}


def test_every_table_as_csv(local):
    page = shown(local, "campaign=1")
    tables = {}
    for name in ("agreement", "pairs", "annotators", "gold", "steps"):
        assert f'href="{PATH}?campaign=1&amp;table={name}" download' in page
        found = local.get(f"{PATH}?campaign=1&table={name}")
        assert found.headers["content-type"].startswith("text/csv")
        assert found.headers["content-disposition"] == f'attachment; filename="agreement-1-{name}.csv"'
        tables[name] = list(csv.DictReader(found.text.removeprefix("\ufeff").splitlines()))
        assert tables[name]
    assert [row["neg"] for row in tables["steps"]] == ["0", "2", "1", "0", "0"]
    assert [row["majority"] for row in tables["steps"]] == ["pos", "neg", "pos", "pos", "pos"]
    pairs = tables["pairs"]
    assert [(row["first"], row["second"]) for row in pairs] == [("ada", "bo"), ("ada", "cy"), ("bo", "cy")]
    # ada and bo differ on one step of five: by chance 1/5 * 1/5 for neg and 3/5 * 4/5 for pos.
    assert float(pairs[0]["kappa"]) == pytest.approx((4 / 5 - 13 / 25) / (12 / 25))


@pytest.mark.parametrize(
    ("query", "status", "told"),
    [
        ("campaign=99", 404, "99"),
        ("campaign=x", 422, "campaign is 'x', expected a whole number"),
        ("campaign=1&against=99", 404, "99"),
        ("campaign=1&against=1", 422, "is compared with itself"),
        ("campaign=1&table=no", 404, "This campaign has no table 'no'."),
    ],
)
def test_an_impossible_query_of_agreement_is_refused(local, query, status, told):
    found = local.get(f"{PATH}?{query}")
    assert found.status_code == status
    assert told in found.json()["error"]


def test_somebody_not_logged_in_reads_no_names(sqlite_store, evaluators, of):
    add_user(sqlite_store, "boss again", Role.ADMIN, "a long password")
    close_campaign(sqlite_store, of.id)
    with asking(sqlite_store, evaluators) as closed:
        assert closed.get(f"{PATH}?campaign={of.id}").status_code == 401
    # Not blind, or nobody could look at anything.
    one = evaluator(sqlite_store, "one")
    still_open = campaign(sqlite_store, None, name="still open", shows="scores", evaluator=one.id)
    with asking(sqlite_store, evaluators, public=True) as public:
        page = shown(public, f"campaign={of.id}")
        # An annotator who has logged out is one of them.
        for query in (f"campaign={still_open.id}", f"campaign={of.id}&against={still_open.id}"):
            assert public.get(f"{PATH}?{query}").status_code == 403
    assert page.count('<th scope="col">annotator 1</th>') == 1
    assert re.search(r">(ada|bo|cy)<", page) is None


# All agree, two of three agree and the gold is another, all differ; then one label alone, only unsure, none.
SAID = rated("nnn p?-", "nnu -?-", "npp ---", gold="np- ---")


def heatmap_html(heatmap, page):
    return render("annotate/heatmap.html", rows=heatmap_rows(heatmap, page, link))


def link(trace, disputed):
    return f"/{'decide' if disputed else 'see'}/{trace.trace_id}"


def rows(page):
    body = re.search("<tbody>(.*)</tbody>", page)[1]
    return [re.findall("<td.*?</td>", row) for row in re.findall("<tr>(.*?)</tr>", body)]


def test_cells_say_what_was_said_and_lead_to_their_trace():
    first, second = rows(heatmap_html(Heatmap.of(SAID), 1))
    assert [re.sub("<[^>]*>", "", cell) for cell in first] == ["✕", "2/3", "1/3"]
    assert [re.search('--x:([^"]*)', cell)[1] for cell in first] == ["0.00", "0.67", "1.00"]
    assert 'aria-label="step 2: 2 neg, 1 pos; gold pos"' in first[1]
    assert ["differs" in cell for cell in first] == [False, True, False]
    assert all('href="/decide/100"' in cell and 'tabindex="-1"' in cell for cell in first)
    # One label alone has no colour; somebody was unsure of the second step, which is to be decided.
    assert [re.sub("<[^>]*>", "", cell) for cell in second] == ["✓", "?", ""]
    assert all('class="alone"' in cell and "--x" not in cell for cell in second)
    assert all('href="/decide/101"' in cell for cell in second)
    assert 'aria-label="step 3: not labelled"' in second[2]


def test_of_what_everybody_agrees_on_nothing_is_to_be_decided():
    (cells,) = rows(heatmap_html(Heatmap.of(rated("pn", "pn")), 1))
    assert all('href="/see/100"' in cell for cell in cells)


def test_gold_of_validity_alone_differs_from_neg_only():
    valid = rated("npu", gold="---", valid="ppp")
    cells = rows(heatmap_html(Heatmap.of(valid), 1))[0]
    assert ["differs" in cell for cell in cells] == [True, False, False]
    assert "gold valid" in cells[0]


def test_most_disagreement_comes_first():
    said = rated("p pp nn pp", "p pp pp pn")
    # Two steps, then one; those without any as they come.
    assert Heatmap.of(said).places.tolist() == [2, 3, 0, 1]


def test_pages():
    many = rated(" ".join(["p"] * (2 * ROWS + 1)))
    found = Heatmap.of(many)
    assert found.pages == 3
    assert found.on_page(2).tolist() == list(range(ROWS, 2 * ROWS))
    # What lies behind the end is the end.
    assert found.on_page(9).tolist() == [2 * ROWS]
    nothing = Heatmap.of(many.of_traces([]))
    assert (nothing.pages, nothing.on_page(1).tolist()) == (1, [])


DRAWS = resamples(2, 50)


@pytest.mark.parametrize(
    ("alpha", "said"),
    [
        (Value(0.9, low=0.85, high=0.95), "Reliable (0.800 or more)."),
        (Value(0.8, low=0.75, high=0.85), "Reliable (0.800 or more). The interval reaches below 0.800."),
        (Value(0.667, low=0.667, high=0.8), "Good for tentative conclusions (0.667 to 0.800)."),
        (
            Value(0.7, low=0.6, high=0.8),
            "Good for tentative conclusions (0.667 to 0.800). The interval reaches below 0.667.",
        ),
        (Value(0.6, low=0.5, high=0.9), "Too low to draw conclusions from (below 0.667)."),
        # Without an interval nothing is said of it.
        (Value(0.8, low=nan, high=nan), "Reliable (0.800 or more)."),
        (Value.none("why"), "No alpha: why."),
    ],
)
def test_a_verdict_follows_from_alpha_and_its_interval(alpha, said):
    assert verdict(alpha) == said


def test_the_head_names_the_person_without_whom_alpha_certainly_rises():
    odd = annotator_table(rated("np np np np", "np np np np", "pn pn pn pn"), resamples(4, 50))
    # Of 24 labels, 12 of each; in each step 2 of 6 ordered pairs agree: 1 - 23 * (2 / 3) * 24 / (2 * 12 * 12).
    assert headline(odd) == "c disagrees with the others: without c, alpha is 1.000 instead of −0.278."
    assert headline(annotator_table(rated("np np", "np np", "np pp"), resamples(2, 50))) == ""
    # Without either of two people there is no alpha.
    assert headline(annotator_table(rated("np np", "pn pn"), resamples(2, 50))) == ""


def test_a_card_for_each_figure():
    cards = figures(overall_table(rated("np pu", "np pp"), DRAWS))
    assert len(cards) == 4
    # 1 - 7 * 2 / 34, as in the test of the table.
    assert cards[1]["alpha"].text == "0.588"
    assert cards[1]["pairs"] == "75.0 % of pairs agree, on 4 steps."
    assert cards[3]["pairs"] == "100.0 % of pairs agree, on 2 traces."


def test_a_card_without_a_figure_says_why():
    cards = figures(overall_table(rated("np pu"), DRAWS))
    assert [(card["verdict"], card["pairs"]) for card in cards] == [(f"No alpha: {ONE_ANNOTATOR}.", "")] * 4


def test_the_matrix_has_each_pair_twice():
    shown = matrix(pair_table(rated("np pp", "nn pp", "pp pp", "-- --"), DRAWS))
    # The fourth shares nothing with anybody, and is in no pair.
    assert list(shown) == ["a", "b", "c"]
    cells = [[None if kappa is None else (kappa.number, steps) for kappa, steps in row] for row in shown.values()]
    # a and b: 1/2, as in the test of the table; c says pos only: 0 with both.
    assert cells == [[None, (0.5, 4), (0.0, 4)], [(0.5, 4), None, (0.0, 4)], [(0.0, 4), (0.0, 4), None]]


def test_two_people_need_no_matrix():
    assert matrix(pair_table(rated("np pp", "nn pp"), DRAWS)) == {}


ALWAYS = {"agreement", "annotators", "gold"}


def names(measured):
    return {table.name for table in measured.tables}


def test_tables_are_there_where_they_have_something_to_tell(store):
    scene = Scene(store, (TWO, THREE), overlap=2)
    assert names(measure_agreement(store, scene.campaign)) == {"agreement"}
    for labels in ANSWERS["ada"]:
        scene.label(labels, by="ada")
    assert names(measure_agreement(store, scene.campaign)) == ALWAYS
    for labels in ANSWERS["bo"]:
        scene.label(labels, by="bo")
    # A new answer is seen at once.
    measured = measure_agreement(store, scene.campaign)
    assert names(measured) == {*ALWAYS, "pairs"}
    # Ten labels: two neg, one neu, seven pos; one pair of five is unequal: 1 - 9 * 2 / (100 - 4 - 1 - 49).
    assert cells(measured.table("agreement"), "labels")["alpha"].number == pytest.approx(1 - 9 * 2 / 46)
    assert measure_agreement(store, scene.campaign) is measured
    assert measured.find_table("steps").rows[4][:3] == ("sums", "three", 3)
    with refused(NotFoundError):
        measured.find_table("nothing")


def test_a_stepwise_campaign_against_one_of_whole_traces(store):
    whole = Scene(store, (TWO, THREE), overlap=2)
    steps = Scene(store, None, name="steps", view="stepwise", overlap=2)
    for name in ("ada", "bo"):
        for labels in ANSWERS["ada"]:
            whole.label(labels, by=name)
        steps.take(name)
        # With the first step alone in view it is pos; with the second one neg.
        steps.do("label", 0, "pos", by=name)
        steps.do("reveal", None, 2, by=name)
        steps.do("label", 0, "neg", by=name)
        steps.do("label", 1, "neg", by=name)
        steps.do("submit", by=name)
    alone = measure_agreement(store, steps.campaign)
    assert names(alone) == {*ALWAYS, "pairs", "views", "minds", "later", "evidence"}
    assert cells(alone.table("later"), "1")["changed"] == 2
    compared = measure_agreement(store, steps.campaign, whole.campaign)
    assert names(compared) == {*names(alone), "majorities"}
    # One trace is common to both: the first labels of steps agree with what whole says of it.
    assert [row[:3] for row in compared.table("views").rows] == [
        ("steps so far", "steps", 1), ("in the end", "steps", 1), ("whole trace", "first", 1),
    ]  # fmt: skip
    everything = cells(compared.table("majorities"), "all")
    assert (everything["labels"], everything["changed"].number) == (2, 0)
    # Seen from the other side it is the same comparison.
    turned = measure_agreement(store, whole.campaign, steps.campaign)
    assert repr(turned.table("majorities").rows) == repr(compared.table("majorities").rows)
    assert "minds" not in names(turned)


def test_two_campaigns_of_the_same_view_compare_what_stands(sqlite_store):
    first, second = Scene(sqlite_store, (TWO,)), Scene(sqlite_store, None, name="again")
    first.label("pos neg", by="ada")
    second.label("neg neg", by="bo")
    measured = measure_agreement(sqlite_store, first.campaign, second.campaign)
    assert cells(measured.table("majorities"), "all")["changed"].number == 1 / 2
    # With nothing in common there is nothing to compare.
    other = Scene(sqlite_store, (THREE,), name="other", conditions=TraceFilter(text="2 + 2"))
    other.label("pos pos pos", by="bo")
    assert "views" not in names(measure_agreement(sqlite_store, first.campaign, other.campaign))
