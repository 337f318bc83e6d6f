"""`stepsight campaign`, as it is typed."""

import pytest

from stepsight.app.annotate.campaigns import queue_terms
from stepsight.core.trace import Trace
from stepsight.storage.judgments.evaluators import register_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.campaigns import find_campaign, guideline_text, list_annotators, list_campaigns
from tests.storage.labelling.samples import TRACES, do, label_all, people, take
from tests.storage.samples import add, evaluator, judge


@pytest.fixture
def guideline(tmp_path):
    path = tmp_path / "guideline.md"
    path.write_text("Say what is right.", encoding="utf-8")
    return path


@pytest.fixture
def filled(sqlite_store):
    add(sqlite_store, TRACES)
    return sqlite_store


def test_a_campaign_can_begin_with_a_qualification(command, filled, guideline):
    asked = ("--text", "2 + 2", "--qualification-items", 1, "--db", filled.name)
    terms = "qualification: 1 gold items first\n"
    assert command("campaign", "create", "first", "sums", "--guideline", guideline, *asked)[1].endswith(terms)
    (ann,) = people(filled, 1)
    label_all(filled, take(filled, find_campaign(filled, "first"), ann), ann, ["pos", "pos"])
    shown = command("campaign", "show", "first", "--db", filled.name)[1]
    assert shown.endswith("1 submitted, 0 under way, 0 skipped; qualification: 0 of 1 right\n")


def test_a_campaign_from_its_beginning_to_its_end(command, filled, guideline):
    db = ("--db", filled.name)
    assert command("campaign", "list", *db) == (
        0, "There is no campaign. Make one: stepsight campaign create NAME DATASET --guideline FILE\n", "",
    )  # fmt: skip
    terms = "blind, every step, file order, guideline 1\n"
    made = ("--guideline", guideline, "--overlap", 2, "--ordering", "file", "--lease", 5)
    assert command("campaign", "create", "first", "sums", *made, *db) == (
        0, f"first: open, 3 traces of sums, 0 of 6 annotations\nwhole view, {terms}", "",
    )  # fmt: skip
    found = find_campaign(filled, "first")
    assert (found.lease, guideline_text(filled, found.id)) == (300, "Say what is right.")
    one, other = people(filled, 2)
    label_all(filled, take(filled, found, one), one, ["pos", "pos"])
    do(filled, take(filled, found, one).slot_id, one, "skip", None, "No.")
    take(filled, found, other)
    assert command("campaign", "show", "first", *db) == (
        0,
        f"first: open, 3 traces of sums, 1 of 6 annotations\nwhole view, {terms}"
        "annotator 1  1 submitted, 0 under way, 1 skipped\nannotator 2  0 submitted, 1 under way, 0 skipped\n",
        "",
    )
    guideline.write_text("Be strict.", encoding="utf-8")
    assert "guideline 2" in command("campaign", "guideline", "first", guideline, *db)[1]
    assert guideline_text(filled, found.id) == "Be strict."
    assert command("campaign", "close", "first", *db)[1].startswith("first: closed, 3 traces of sums")
    assert command("campaign", "list", *db)[1] == "first  closed, 3 traces of sums, 1 of 6 annotations\n"


def test_conditions_and_terms_are_as_given(command, filled, guideline):
    judged = evaluator(filled, "one")
    traces = add(filled, TRACES)
    save_judgments(filled, judged.id, [judge(trace, "hindsight", seed) for seed, trace in enumerate(traces)])
    code, out, err = command(
        *("campaign", "create", "first", "sums", "--guideline", guideline, "--db", filled.name),
        *("--text", "what", "--verdict", "invalid", "--evaluator", "one", "--view", "stepwise", "--to-first-error"),
        *("--show-scores", "--ordering", "random", "--random-share", "0.5", "--seed", "3"),
    )
    assert (code, err) == (0, "")
    assert "stepwise view, with scores, steps up to the first error, random order, guideline 1" in out
    found = find_campaign(filled, "first")
    assert found.conditions.stored() == {"text": "what", "verdict": "invalid", "evaluator": judged.id}
    assert (found.evaluator_id, found.random_share, found.seed, found.after_error) == (judged.id, 0.5, 3, False)


def test_conditions_on_metadata_may_be_repeated(command, sqlite_store, guideline):
    metas = [{"source": "MATH", "level": 3}, {"source": "MATH", "level": 5}, {"source": "GSM8K", "level": 5}]
    add(sqlite_store, [Trace.of(f"P {i}", ["It."], id=str(i), meta=meta) for i, meta in enumerate(metas)])
    code, out, err = command(
        *("campaign", "create", "first", "sums", "--guideline", guideline, "--db", sqlite_store.name),
        *("--meta", "source=MATH", "--meta", "level>=4"),
    )
    assert (code, err) == (0, "")
    assert out.startswith("first: open, 1 trace of sums")
    found = find_campaign(sqlite_store, "first")
    assert found.conditions.stored() == {"meta": ("source=MATH", "level>=4")}
    assert "source: MATH · level ≥ 4" in queue_terms(found)


def test_a_name_that_several_evaluators_have(command, filled, guideline):
    evaluator(filled, "one")
    register_evaluator(filled, name="one", fingerprint="another", format="x", attention="causal")
    argv = ("campaign", "create", "first", "sums", "--guideline", guideline, "--db", filled.name, "--show-scores")
    code, _, err = command(*argv, "--evaluator", "one")
    assert (code, "2 evaluators are called 'one'. Give the fingerprint instead." in err) == (2, True)
    assert command(*argv, "--evaluator", "another")[0] == 0


def test_the_command_takes_every_option_of_the_page(command, filled, guideline):
    (ann,) = people(filled, 1)
    db = ("--db", filled.name)
    terms = ("--sample", 2, "--seed", 5, "--hide-answer", "--after-submission", "nothing", "--annotator", ann.name)
    kinds = ("--error-kind", "sign", "--error-kind", "unit")
    made = ("--guideline", guideline, "--mark-equations", *terms, *kinds, *db)
    code, out, _ = command("campaign", "create", "own", "sums", *made)
    assert (code, "whole view, with marked equations, every step" in out) == (0, True)
    found = find_campaign(filled, "own")
    assert (found.sample, found.population, found.seed, found.items) == (2, 3, 5, 2)
    assert (found.shows_answer, found.after_submission, found.error_kinds) == (False, "nothing", ("sign", "unit"))
    assert (found.restricted, found.shows_equations, found.blind) == (True, True, False)
    assert list_annotators(filled, found.id) == [ann]
    code, _, err = command("campaign", "create", "x", "sums", "--guideline", guideline, "--suggest", *db)
    assert (code, "Labels can be suggested only where scores are shown" in err) == (2, True)
    missing = ("--guideline", guideline, "--annotator", "nobody")
    assert command("campaign", "create", "other", "sums", *missing, *db)[0] != 0
    assert [one.name for one in list_campaigns(filled)] == ["own"]
