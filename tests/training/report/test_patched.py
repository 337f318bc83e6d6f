"""What a label patch changes, worked out by hand on the four traces of `tests.training.hand`."""

import csv
import io
from datetime import date

import pytest

from stepsight.core.files.label_patch import LabelChange, Patch
from stepsight.core.metrics.reasoneval import Errors
from stepsight.storage.judgments.evaluators import evaluators_of
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.report.dataset import patched_part
from stepsight.training.report.differences import Patched
from stepsight.training.report.report import make_report
from stepsight.training.report.tables import Table, to_csv
from tests.messages import refused
from tests.storage.samples import add, evaluator
from tests.training.hand import say, traces
from tests.training.judged import measure_stored

DRAWS = 100
FIGURES = ("sol_f1", "sol_auc", "step_f1", "step_auc")


def patch(*changes):
    digests = {trace.id: trace.digest for trace in traces()}
    made = tuple(LabelChange(id, digests[id], step, old, new) for id, step, old, new in changes)
    return Patch("sums", "", "", made, "fixes.json")


def measure(store, first, made):
    return measure_both(store, find_dataset(store, "sums"), [first], made)


def measure_both(store, dataset, evaluators, made):
    after = measure_stored(store, dataset, evaluators, draws=DRAWS, patch=made)
    return Patched(measure_stored(store, dataset, evaluators, draws=DRAWS), after)


def change(found, name="first", errors=Errors.INVALID):
    (chosen,) = [
        one for one in found.changes() if (one.before.evaluator, one.before.errors, one.before.mode) ==
        (name, errors, "offline")
    ]  # fmt: skip
    return chosen


def figures(row):
    return [row.measured[name].number for name in FIGURES]


def test_an_error_that_is_none(sqlite_store, first):
    """A 2 is pos. Steps count up to the first error, so A 3 counts now as well:

    | step      | A1   | A2   | A3   | B1   | B2   | C1   | C2   | D1   |
    | s_val     | 0.90 | 0.61 | 0.95 | 0.80 | 0.40 | 0.70 | 0.90 | 0.10 |
    | gold, was | pos  | neg  | -    | pos  | pos  | neu  | pos  | neg  |
    | gold, is  | pos  | pos  | pos  | pos  | pos  | neu  | pos  | neg  |

    Steps: of 7 valid ones 6 are called valid, and of 1 wrong one 1 is called wrong, B2 wrongly so:
    F1 = (12/13 + 2/3) / 2 = 31/39, and all 7 are above D1: AUC 1. Solutions: A 0.61, B 0.40 and C 0.70 are right, D
    0.10 is wrong: F1 = (4/5 + 2/3) / 2 = 11/15, AUC 1.
    """
    found = change(measure(sqlite_store, first, patch(("A", 1, "neg", "pos"))))
    assert figures(found.before) == pytest.approx([1 / 2, 3 / 4, 13 / 20, 9 / 10])
    assert figures(found.after) == pytest.approx([11 / 15, 1.0, 31 / 39, 1.0])
    assert [found.changes[name].number for name in FIGURES] == pytest.approx(
        [7 / 30, 1 / 4, 31 / 39 - 13 / 20, 1 / 10]
    )
    assert (found.before.n_steps, found.after.n_steps) == (7, 8)
    # Paired: the same resamples on both sides.
    low, high = found.changes["sol_auc"].low, found.changes["sol_auc"].high
    assert 0 <= low <= 1 / 4 <= high <= 1


def test_a_kind_of_error_that_the_patch_takes_away(sqlite_store, first):
    found = measure(sqlite_store, first, patch(("C", 0, "neu", "pos")))
    assert {one.before.errors for one in found.changes()} == {Errors.INVALID}
    assert {row.errors for row in found.before.rows} == set(Errors)


def test_json(sqlite_store, first):
    made = patch(("A", 1, "neg", "pos"))
    shown = measure(sqlite_store, first, made).as_json()
    assert list(shown) == ["dataset", "patch", "without", "with", "changes"]
    assert shown["patch"] == {
        "name": "fixes.json", "format": "stepsight-label-patch", "version": 1, "digest": made.digest,
        "dataset": "sums", "sha256": "", "moment": "", "labels": 1, "traces": 1,
    }  # fmt: skip
    with_it, changes = shown["with"], shown["changes"]
    assert isinstance(with_it, dict)
    assert isinstance(changes, list)
    assert with_it["patch"] == shown["patch"]
    told = [
        one for one in changes if (one["evaluator"], one["errors"], one["mode"]) == ("first", "invalid", "offline")
    ]
    assert told[0]["differences"]["sol_auc"]["value"] == pytest.approx(1 / 4)


def test_a_patch_that_does_not_fit(sqlite_store, first):
    with refused():
        measure(sqlite_store, first, patch(("A", 0, "neg", "pos")))


def test_figures_of_the_paper_are_not_of_changed_labels(sqlite_store, first):
    found = measure(sqlite_store, first, patch(("A", 1, "neg", "pos")))
    assert found.after.published == ()
    assert all(row.published is None for row in found.after.rows)


TRACE = traces()[0]
CHANGE = LabelChange("A", TRACE.digest, 1, "neg", "pos", "It is\nright.", 3, "anna", "2026-11-20T09:12:44+00:00")
PATCH = Patch("sums", "0" * 64, "2026-11-21T14:30:00+00:00", (CHANGE,), "fixes.json")


@pytest.fixture
def dataset(sqlite_store):
    say(sqlite_store, add(sqlite_store, traces()), evaluator(sqlite_store, "first").id)
    return find_dataset(sqlite_store, "sums")


def test_the_part(sqlite_store, dataset):
    found = measure_both(sqlite_store, dataset, evaluators_of(sqlite_store, dataset.id), PATCH)
    part = patched_part(found)
    assert part.title == "sums, patched"
    assert part.lead.endswith(
        f"Gold changed by the label patch fixes.json (digest {PATCH.digest[:12]}…): 1 label of 1 trace."
    )
    changed = part.sections[0]
    assert changed.title == "What the patch changes"
    tables = [content for content in changed.contents if isinstance(content, Table)]
    assert [table.name for table in tables] == [
        "sums-patched-change-invalid-offline",
        "sums-patched-change-redundant-offline",
        "sums-patched-patch",
    ]
    # The figures are those of test_patched.py.
    told = next(csv.DictReader(io.StringIO(to_csv(tables[0]).removeprefix("\ufeff"))))
    assert (told["evaluator"], float(told["sol_auc"]), float(told["sol_auc_change"])) == ("first", 1.0, 0.25)
    assert tables[0].notes == ("4 solutions and 7 steps count with the benchmark's labels, 4 and 8 with the patch",)
    assert tables[2].rows == (("A", "2", "neg", "pos", "It is right.", "anna"),)


def test_a_report_has_both(sqlite_store, dataset):
    report = make_report(sqlite_store, [dataset], draws=20, day=date(2026, 11, 21), patches=[PATCH])
    plain = make_report(sqlite_store, [dataset], draws=20, day=date(2026, 11, 21))
    names = [table.name for table in report.tables]
    assert names[: len(plain.tables) - 1] == [table.name for table in plain.tables[:-1]]
    assert "sums-patched-invalid-offline" in names
    assert len(names) == len(set(names))
    assert f"sums, sums with fixes.json (digest {PATCH.digest[:12]}…); 21 November 2026" in report.page


def test_patches_that_are_of_nothing_reported(sqlite_store, dataset):
    other = Patch("other", "", "", (CHANGE,), "other.json")
    with refused():
        make_report(sqlite_store, [dataset], patches=[other])
    with refused():
        make_report(sqlite_store, [dataset], patches=[PATCH, PATCH])
    add(sqlite_store, traces(), "sums patched")
    with refused():
        make_report(sqlite_store, [dataset, find_dataset(sqlite_store, "sums patched")], patches=[PATCH])
