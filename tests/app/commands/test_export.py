"""`stepsight export labels`, `stepsight patch`, and `--patch` of `stepsight evaluate` and `stepsight report`."""

import json

import pytest

from stepsight.core.files.label_patch import LabelChange, Patch, format_patch, read_patch
from stepsight.storage.database.store import open_store
from stepsight.storage.labelling.disputes import DisputeState, add_entry, open_dispute
from stepsight.storage.people.users import local_user
from stepsight.storage.traces.queries import find_trace
from tests.storage.labelling.labelled_sums import labelled
from tests.storage.labelling.samples import TRACES
from tests.storage.samples import add, evaluator
from tests.training.hand import say, traces


def test_labels_go_out_and_in(typed, sqlite_store, tmp_path):
    labelled(sqlite_store)
    typed("export labels first labels.jsonl --format jsonl")
    typed("export labels first labels.jsonl --format events")
    typed("export labels first labels.jsonl --format events --force")
    with open_store(str(tmp_path / "other.db")) as store:
        add(store, TRACES, "sums")
    typed("import labels labels.jsonl --db other.db")
    typed("import labels labels.jsonl --db other.db")


@pytest.fixture
def judged(sqlite_store):
    """A store in which `first` and `second` have judged the four traces of `tests.training.hand`."""
    stored = add(sqlite_store, traces())
    for name in ("first", "second"):
        say(sqlite_store, stored, evaluator(sqlite_store, name).id)
    return sqlite_store


@pytest.fixture
def patch(judged, typed, tmp_path):
    """A 2 is pos: accepted and exported."""
    accept(judged, "A", 1, "pos")
    assert typed.run("patch export sums fixes.json").code == 0
    return read_patch(tmp_path / "fixes.json")


def accept(store, trace, step, proposed):
    user = local_user(store)
    made = open_dispute(store, find_trace(store, "sums", trace).trace_id, step, proposed, "It is right.", user)
    add_entry(store, made.id, user, "", DisputeState.ACCEPTED)


def test_accepted_disputes_are_exported_and_shown(typed, patch):
    typed("patch show fixes.json")
    assert json.loads(typed.run("patch export sums -").out)["digest"] == patch.digest


@pytest.mark.usefixtures("patch")
def test_every_figure_is_shown_with_and_without_a_patch(typed):
    """The figures are those of tests/training/report/test_patched.py."""
    typed("evaluate --dataset sums --evaluator first --patch fixes.json --draws 20 --mode offline")


def test_figures_with_a_patch_as_json_and_compared(typed, patch):
    line = "evaluate --dataset sums --compare first second --draws 20"
    written = json.loads(typed.run(f"{line} --patch fixes.json --json").out)
    assert list(written) == ["dataset", "patch", "without", "with", "changes"]
    assert written["patch"]["digest"] == patch.digest
    # What it is without is what it is by itself.
    assert written["without"] == json.loads(typed.run(f"{line} --json").out)
    assert written["with"]["comparisons"][0]["differences"]["sol_auc"]["value"] == 0
    printed = typed.run(f"{line} --patch fixes.json").out.splitlines()
    compared = [text for text in printed if "invalid errors, offline, 4 traces" in text and "difference" in text]
    assert [text.partition(":")[0] for text in compared] == ["sums", "sums, patched"]


def test_a_patch_that_takes_a_kind_of_error_away(typed, judged):
    accept(judged, "C", 0, "pos")
    assert typed.run("patch export sums fixes.json").code == 0
    printed = typed.run("evaluate --dataset sums --patch fixes.json --draws 20").out
    assert "sums, redundant errors, offline: the patched gold has no such error, so nothing is compared" in printed


def test_a_patch_that_does_not_fit_is_refused_before_scoring(typed, patch, tmp_path):
    written = json.loads((tmp_path / "fixes.json").read_text("utf-8"))
    change = LabelChange(**(vars(patch.changes[0]) | {"trace": "Z"}))
    other = format_patch(Patch("sums", written["sha256"], written["moment"], (change,)))
    (tmp_path / "other.json").write_text(other, encoding="utf-8")
    # This evaluator is there and would have to score first.
    typed("evaluate --dataset sums --evaluator mini-causal --patch other.json")


@pytest.mark.usefixtures("patch")
def test_a_report_has_what_the_patch_changes(typed, tmp_path):
    typed("report --dataset sums --patch fixes.json --output report --draws 20")
    assert "What the patch changes" in (tmp_path / "report" / "report.html").read_text("utf-8")
    tables = {path.name for path in (tmp_path / "report" / "tables").iterdir()}
    assert {"sums-patched-change-invalid-offline.csv", "sums-invalid-offline.csv"} <= tables
