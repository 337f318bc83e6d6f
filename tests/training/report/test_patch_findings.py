"""The chapter of patched gold: it names the patch, and shows what changes."""

from datetime import date

import pytest

from stepsight.core.errors import UserError
from stepsight.core.patch import LabelChange, Patch
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import judges_of
from stepsight.storage.traces.queries import Dataset, find_dataset
from stepsight.training.report.patched import evaluate_patched, patched_chapter
from stepsight.training.report.report import make_report
from stepsight.training.report.tables import Table, to_csv
from tests.storage.samples import add, evaluator
from tests.training.hand import say, traces

TRACE = traces()[0]
CHANGE = LabelChange("A", TRACE.digest, 1, "neg", "pos", "It is\nright.", 3, "anna", "2026-11-20T09:12:44+00:00")
PATCH = Patch("sums", "0" * 64, "2026-11-21T14:30:00+00:00", (CHANGE,), "fixes.json")


@pytest.fixture
def dataset(sqlite_store: Store) -> Dataset:
    say(sqlite_store, add(sqlite_store, traces()), evaluator(sqlite_store, "first").id)
    return find_dataset(sqlite_store, "sums")


def test_the_chapter(sqlite_store: Store, dataset: Dataset) -> None:
    found = evaluate_patched(sqlite_store, dataset, judges_of(sqlite_store, dataset.id), PATCH, draws=20)
    chapter = patched_chapter(found)
    assert chapter.title == "sums, patched"
    assert chapter.lead.endswith(
        f"Gold changed by the label patch fixes.json (digest {PATCH.digest[:12]}…): 1 label of 1 trace."
    )
    changed = chapter.sections[0]
    assert changed.title == "What the patch changes"
    tables = [block for block in changed.blocks if isinstance(block, Table)]
    assert [table.name for table in tables] == [
        "sums-patched-change-invalid-offline",
        "sums-patched-change-redundant-offline",
        "sums-patched-patch",
    ]
    # The figures are those of test_patched.py.
    head, row = [line.split(",") for line in to_csv(tables[0]).splitlines()[:2]]
    told = dict(zip(head, row, strict=True))
    assert (told["evaluator"], float(told["sol_auc"]), float(told["sol_auc_change"])) == ("first", 1.0, 0.25)
    assert tables[0].notes == ("4 solutions and 7 steps count with the benchmark's labels, 4 and 8 with the patch",)
    assert tables[2].rows == (("A", "2", "neg", "pos", "It is right.", "anna"),)


def test_a_report_has_both(sqlite_store: Store, dataset: Dataset) -> None:
    report = make_report(sqlite_store, [dataset], draws=20, day=date(2026, 11, 21), patches=[PATCH])
    plain = make_report(sqlite_store, [dataset], draws=20, day=date(2026, 11, 21))
    names = [table.name for table in report.tables]
    assert names[: len(plain.tables) - 1] == [table.name for table in plain.tables[:-1]]
    assert "sums-patched-invalid-offline" in names
    assert len(names) == len(set(names))
    assert f"sums, sums with fixes.json (digest {PATCH.digest[:12]}…); 21 November 2026" in report.page


def test_patches_that_are_of_nothing_reported(sqlite_store: Store, dataset: Dataset) -> None:
    other = Patch("other", "", "", (CHANGE,), "other.json")
    with pytest.raises(UserError, match=r"other\.json is a patch of other, which is not reported"):
        make_report(sqlite_store, [dataset], patches=[other])
    with pytest.raises(UserError, match="sums has two patches"):
        make_report(sqlite_store, [dataset], patches=[PATCH, PATCH])
    add(sqlite_store, traces(), "sums patched")
    with pytest.raises(UserError, match="would have the same file names"):
        make_report(sqlite_store, [dataset, find_dataset(sqlite_store, "sums patched")], patches=[PATCH])
