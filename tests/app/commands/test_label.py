"""`stepsight campaign` and `stepsight agreement`."""

import json

import pytest

from stepsight.app.annotate.campaigns import queue_terms
from stepsight.core.trace import Trace
from stepsight.storage.judgments.evaluators import register_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.campaigns import find_campaign, guideline_text, list_annotators
from tests.app.annotate.test_agreement import labelled
from tests.storage.labelling.samples import THREE, TRACES, TWO, do, label_all, people, take
from tests.storage.samples import add, evaluator, judge

CREATE = "campaign create first sums --guideline guideline.md"


@pytest.fixture
def filled(sqlite_store, tmp_path):
    """A store with three traces, beside a guideline."""
    (tmp_path / "guideline.md").write_text("Say what is right.", encoding="utf-8")
    add(sqlite_store, TRACES)
    return sqlite_store


def test_a_campaign_from_its_beginning_to_its_end(typed, filled, tmp_path):
    typed("campaign list")
    typed(f"{CREATE} --overlap 2 --ordering file --lease 5")
    made = find_campaign(filled, "first")
    assert (made.lease, guideline_text(filled, made.id)) == (300, "Say what is right.")
    ann, ben = people(filled, 2)
    label_all(filled, take(filled, made, ann), ann, ["pos", "pos"])
    do(filled, take(filled, made, ann).slot, ann, "skip", None, "No.")
    take(filled, made, ben)
    typed("campaign show first")
    (tmp_path / "guideline.md").write_text("Be strict.", encoding="utf-8")
    typed("campaign guideline first guideline.md")
    assert guideline_text(filled, made.id) == "Be strict."
    typed("campaign close first")
    typed("campaign list")


def test_a_campaign_can_begin_with_a_qualification(typed, filled):
    typed(f"{CREATE} --text '2 + 2' --qualification-items 1")
    (ann,) = people(filled, 1)
    label_all(filled, take(filled, find_campaign(filled, "first"), ann), ann, ["pos", "pos"])
    typed("campaign show first")


def test_conditions_and_terms_are_as_given(typed, filled):
    judged = evaluator(filled, "one")
    register_evaluator(filled, name="two", fingerprint="second", format="x", attention="causal")
    register_evaluator(filled, name="two", fingerprint="third", format="x", attention="causal")
    traces = add(filled, TRACES)
    save_judgments(filled, judged.id, [judge(trace, "hindsight", seed) for seed, trace in enumerate(traces)])
    typed(
        f"{CREATE} --text what --verdict invalid --evaluator one --view stepwise --to-first-error --show-scores"
        " --ordering random --seed 3"
    )
    made = find_campaign(filled, "first")
    assert made.conditions.stored() == {"text": "what", "verdict": "invalid", "evaluator": judged.id}
    assert (made.evaluator_id, made.seed, made.after_error) == (judged.id, 3, False)
    # Two have the name, and one the fingerprint.
    typed(f"{CREATE.replace('first', 'second')} --show-scores --evaluator two")
    typed(f"{CREATE.replace('first', 'second')} --show-scores --evaluator third")


def test_conditions_on_metadata_may_be_repeated(typed, filled):
    metas = [{"source": "MATH", "level": 3}, {"source": "MATH", "level": 5}, {"source": "GSM8K", "level": 5}]
    add(filled, [Trace.of(f"P {i}", ["It."], id=str(i), meta=meta) for i, meta in enumerate(metas)])
    typed(f"{CREATE} --meta source=MATH --meta 'level>=4'")
    made = find_campaign(filled, "first")
    assert made.conditions.stored() == {"meta": ("source=MATH", "level>=4")}
    assert "source: MATH · level ≥ 4" in queue_terms(made)


def test_the_command_takes_every_option_of_the_page(typed, filled):
    (ann,) = people(filled, 1)
    typed(
        f"{CREATE} --mark-equations --sample 2 --seed 5 --hide-answer --after-submission nothing"
        f" --annotator '{ann.name}' --error-kind sign --error-kind unit"
    )
    made = find_campaign(filled, "first")
    assert (made.sample, made.population, made.seed, made.items) == (2, 3, 5, 2)
    assert (made.shows_answer, made.after_submission, made.error_kinds) == (False, "nothing", ("sign", "unit"))
    assert (made.restricted, made.shows_equations, made.blind) == (True, True, False)
    assert list_annotators(filled, made.id) == [ann]


def test_agreement_is_printed_and_every_number_is_in_its_json(typed, sqlite_store):
    labelled(sqlite_store, (TWO, THREE))
    labelled(sqlite_store, None, name="again")
    # As in the test of the page: 1 - 14 * 6 / 94 of 15 labels, of which 9 of 15 pairs agree.
    typed("agreement first --draws 50")
    written = json.loads(typed.run("agreement first --against again --draws 50 --json").out)
    assert [written[key] for key in ("campaign", "against", "answers", "traces")] == ["first", "again", 6, 2]
    labels = next(row for row in written["tables"]["agreement"] if row["of"] == "labels")
    assert labels["alpha"]["value"] == pytest.approx(1 - 14 * 6 / 94)
    assert (labels["units"], labels["unit"], labels["pairs"]) == (5, "steps", 15)
    # Everybody says the same in both campaigns.
    assert written["tables"]["majorities"][-1]["changed"]["value"] == 0
