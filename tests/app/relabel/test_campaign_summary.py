"""A campaign in words and bars."""

from dataclasses import replace

from stepsight.app.relabel.campaign_summary import counted, guideline_html, progress_html, queue_html, terms_html
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.labelling.plan import Ordering
from stepsight.storage.labelling.progress import CampaignProgress
from tests.app.markup import INJECTIONS, read
from tests.storage.labelling.samples import campaign
from tests.storage.samples import evaluator


def test_what_is_asked_of_whom(sqlite_store):
    made = campaign(sqlite_store, overlap=3)
    assert terms_html(made) == "3 traces of sums · labelled by 3 people each · the whole trace in view · blind"
    scored = campaign(
        sqlite_store, None, name="second", view="stepwise", after_error=False, shows="scores",
        evaluator=evaluator(sqlite_store).id, where=TraceFilter(gold="error"), ordering="file", gold_rate=0.25,
    )  # fmt: skip
    assert terms_html(scored) == (
        "1 trace of sums · labelled by 1 person each · step by step · up to the first error · scores in view"
    )
    assert queue_html(scored) == ("in the order of the file · 25% hidden gold items · gold: error")
    by_change = replace(scored, ordering=Ordering.CHANGE, gold_rate=0.0)
    assert queue_html(by_change) == "most changed by later steps first · 20% of the places by chance · gold: error"
    assert queue_html(made) == "in the order of the file"


def test_how_far_it_is(sqlite_store):
    made = campaign(sqlite_store, overlap=2)
    # Five submitted by a person of three traces: two of them were hidden gold, of which nothing is told.
    bars = read(progress_html(made, CampaignProgress(submitted=4, slots=6, mine=5, items_done=1, items=3)))
    assert [bar["aria-label"] for bar in bars.all(cls="meter")] == ["You: 3 of 3 answers", "All: 4 of 6 answers"]
    assert [bar.one("i")["style"] for bar in bars.all(cls="meter")] == ["width:100.0%", "width:66.7%"]
    assert [text.text for text in bars.all(cls="n")] == ["3 of 3", "4 of 6 · 1 of 3 traces complete"]
    own = read(
        progress_html(made, CampaignProgress(submitted=4, slots=6, mine=5, items_done=1, items=3), everybody=False)
    )
    assert [bar["aria-label"] for bar in own.all(cls="meter")] == ["You: 3 of 3 answers"]
    alone = read(
        progress_html(made, CampaignProgress(submitted=0, slots=0, mine=0, items_done=0, items=0), mine=False)
    )
    assert [bar.one("i")["style"] for bar in alone.all(cls="meter")] == ["width:0.0%"]


def test_a_guideline_is_text_with_maths():
    shown = read(f"<details>{guideline_html(2, 'Let $x$ be.')}</details>").one("details")
    assert (shown.one("summary").text, shown.one(cls="math").text) == ("Guideline, version 2", "x")
    for text in INJECTIONS:
        read(f"<details>{guideline_html(1, text)}</details>")


def test_counts_have_their_noun():
    assert [counted(1, "trace"), counted(2_000, "trace"), counted(2, "person", "people")] == [
        "1 trace", "2,000 traces", "2 people",
    ]  # fmt: skip
