"""The pages of disputes: what they show and offer, and that texts of people stay texts."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from stepsight.app.annotate.disputes import (
    DisputeAddress,
    DisputesAddress,
    dispute_html,
    form_html,
    gold_value,
    list_html,
)
from stepsight.storage.database.store import NotFoundError
from stepsight.storage.labelling.disputes import (
    DisputeFilter,
    DisputeState,
    add_entry,
    get_dispute,
    list_disputes,
    open_dispute,
)
from stepsight.storage.people.users import Role
from tests.messages import refused
from tests.storage.labelling.samples import person
from tests.storage.samples import CLEAN, ERROR, FIRST_ERROR, add


@pytest.fixture
def traces(sqlite_store):
    return add(sqlite_store, [ERROR, CLEAN])


@pytest.fixture
def judge(sqlite_store):
    return person(sqlite_store, "<judge>", Role.ADJUDICATOR)


def filed(store, traces, user):
    return open_dispute(store, traces[0].trace_id, 1, None, "<b>It</b> is $2$.", user).id


def test_one_with_its_discussion(sqlite_store, traces, judge):
    number = filed(sqlite_store, traces, judge)
    add_entry(sqlite_store, number, judge, "See <i>.")
    add_entry(sqlite_store, number, judge, "", DisputeState.ACCEPTED)
    html = dispute_html(sqlite_store, get_dispute(sqlite_store, number), judge, labels=True)
    assert "&lt;b&gt;It&lt;/b&gt; is <span" in html
    assert "See &lt;i&gt;." in html
    assert "&lt;judge&gt;, 20" in html
    assert "The benchmark says <strong>✕ neg</strong>" in html
    assert "It should say <strong>unlabelled</strong>" in html
    assert html.index("See &lt;i&gt;.") < html.index('<p><span class="state accepted">accepted</span></p>')
    assert [f'value="{state}"' in html for state in DisputeState] == [True, False, True, False]
    for user, labels in ((None, False), (judge, False)):
        assert "<form" not in dispute_html(sqlite_store, get_dispute(sqlite_store, number), user, labels=labels)


def test_a_list(sqlite_store, traces, judge):
    number = filed(sqlite_store, traces, judge)
    other = open_dispute(sqlite_store, traces[1].trace_id, 0, "neu", "So.", judge).id
    add_entry(sqlite_store, other, judge, "", DisputeState.ACCEPTED)
    every = DisputesAddress()
    html = list_html(sqlite_store, every, list_disputes(sqlite_store), None)
    assert html.index(f"/annotate/disputes/{other}") < html.index(f"/annotate/disputes/{number}")
    assert [f"{name} ({count})" in html for name, count in (("all", 2), ("open", 1), ("rejected", 0))] == [True] * 3
    # The patch is of one dataset, and for those who may see all of it.
    assert "Label patch" not in html
    of_one = DisputesAddress(dataset="sums", trace=traces[1].trace_id)
    found = list_disputes(sqlite_store, of_one.filter(None))
    assert [dispute.id for dispute in found] == [other]
    html = list_html(sqlite_store, of_one, found, None)
    assert 'href="/annotate/disputes/patch?dataset=sums"' in html
    assert '<option value="sums" selected>' in html
    assert "Label patch" not in list_html(sqlite_store, of_one, found, judge)


@pytest.mark.parametrize(
    ("trace", "step", "offered"),
    [
        (ERROR, 1, ["pos"]),
        (FIRST_ERROR, 1, ["neg", "unlabelled"]),
        (FIRST_ERROR, 2, ["valid", "unlabelled"]),
        (FIRST_ERROR, 3, ["neg", "valid"]),
    ],
)
def test_the_form_offers_the_possible_gold_values(sqlite_store, trace, step, offered):
    (stored,) = add(sqlite_store, [trace], "one")
    html = form_html(sqlite_store, DisputeAddress(trace=stored.trace_id, step=step), stored)
    words = ["neg", "neu", "pos", "valid", "unlabelled"]
    there = [word for word in words if f'value="{"" if word == "unlabelled" else word}"' in html]
    # Of its first step ERROR says pos.
    assert there == (["neg", "neu", "unlabelled"] if trace is ERROR else offered)
    assert f'data-digest="{stored.digest}"' in html


def test_a_form_for_a_step_that_is_not_there(sqlite_store, traces):
    with refused():
        form_html(sqlite_store, DisputeAddress(trace=1, step=3), traces[0])


def test_addresses(sqlite_store, traces):
    of_trace = DisputesAddress(state="open", trace=3)
    assert DisputesAddress.exact({"state": "open", "trace": "3", "page": "0"}) == of_trace
    assert of_trace.changed(dataset="sums").filter(7) == DisputeFilter("sums", DisputeState.OPEN, 3, 7)
    with refused():
        DisputesAddress.exact({"state": "shut"})
    with refused():
        DisputesAddress.exact({"dataset": "a\x00"})
    with refused():
        DisputeAddress.exact({"step": "x"})
    assert DisputeAddress(dataset="sums", id="clean").find(sqlite_store) == traces[1]
    assert DisputeAddress(trace=traces[1].trace_id).find(sqlite_store) == traces[1]
    with pytest.raises(NotFoundError):
        DisputeAddress(trace=99999).find(sqlite_store)


def test_words():
    assert [gold_value(value) for value in ("neg", "neu", "pos", "valid", None)] == [
        "✕ neg", "○ neu", "✓ pos", "✓ valid", "unlabelled",
    ]  # fmt: skip


def test_a_trace_that_has_changed(sqlite_store, traces, judge):
    found = replace(get_dispute(sqlite_store, filed(sqlite_store, traces, judge)), changed=True, step=7)
    html = dispute_html(sqlite_store, found, judge, labels=True)
    assert "The trace has changed since this was filed; it is left out of label patches." in html
    assert datetime.now(UTC).strftime("%Y-%m-%d") in html
