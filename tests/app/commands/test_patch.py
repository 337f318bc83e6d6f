"""`stepsight patch`, and `--patch` of `stepsight evaluate` and `stepsight report`, as they are typed."""

import json

import pytest

from stepsight.core.files.label_patch import LabelChange, Patch, format_patch, read_patch
from stepsight.storage.labelling.disputes import DisputeState, add_entry, open_dispute
from stepsight.storage.people.users import local_user
from stepsight.storage.traces.queries import find_trace
from tests.storage.samples import add, evaluator
from tests.training.hand import say, traces


@pytest.fixture
def db(sqlite_store):
    """A store in which `first` and `second` have judged the four traces of `tests.training.hand`."""
    stored = add(sqlite_store, traces())
    for name in ("first", "second"):
        say(sqlite_store, stored, evaluator(sqlite_store, name).id)
    return sqlite_store.name


@pytest.fixture
def patch(sqlite_store, db, command, tmp_path):
    """A 2 is pos: accepted and exported."""
    accept(sqlite_store, "A", 1, "pos")
    path = tmp_path / "fixes.json"
    code, out, err = command("patch", "export", "sums", path, "--db", db)
    assert (code, out) == (0, "")
    assert err == f"sums: 1 label of 1 trace, digest {read_patch(path).digest}\n"
    return path


def accept(store, trace, step, proposed):
    user = local_user(store)
    made = open_dispute(store, find_trace(store, "sums", trace).trace_id, step, proposed, "It is right.", user)
    add_entry(store, made.id, user, "", DisputeState.ACCEPTED)


def test_export_and_show(command, db, patch):
    code, out, err = command("patch", "show", patch)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "fixes.json: 1 label of 1 trace"
    assert lines[1].startswith("dataset sums (SHA-256 000000000000…), written 20")
    assert lines[2] == f"digest {read_patch(patch).digest}"
    assert lines[4:6] == ["trace 'A', step 2: neg -> pos", "  It is right."]
    assert lines[6].startswith("  dispute 1, local, 20")
    code, out, _ = command("patch", "export", "sums", "-", "--db", db)
    assert (code, json.loads(out)["digest"]) == (0, read_patch(patch).digest)


def test_evaluate_shows_every_figure_with_and_without(command, db, patch):
    argv = ["evaluate", "--dataset", "sums", "--evaluator", "first", "--patch", patch, "--db", db, "--draws", 20]
    code, out, err = command(*argv, "--mode", "offline")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[1] == f"Label patch fixes.json (digest {read_patch(patch).digest[:12]}…): 1 label of 1 trace"
    assert lines[3].startswith("sums: invalid errors, offline, 4 traces, ")
    rows = [[cell for cell in line.split("  ") if "[" in cell] for line in lines if line.startswith("first ")][:3]
    # The figures are those of tests/training/report/test_patched.py.
    assert [[cell.split(" [")[0].strip() for cell in row] for row in rows] == [
        ["50.0", "75.0", "65.0", "90.0", "+35.0"],
        ["73.3", "100.0", "79.5", "100.0", "+50.0"],
        ["73.3", "+23.3", "100.0", "+25.0", "79.5", "+14.5", "100.0", "+10.0"],
    ]
    assert "  4 solutions and 7 steps count with the benchmark's labels, 4 and 8 with the patch" in lines


def test_evaluate_as_json_and_compared(command, db, patch):
    argv = ["evaluate", "--dataset", "sums", "--compare", "first", "second", "--db", db, "--draws", 20]
    code, out, _ = command(*argv, "--patch", patch, "--json")
    assert code == 0
    found = json.loads(out)
    assert list(found) == ["dataset", "patch", "without", "with", "changes"]
    assert found["patch"]["digest"] == read_patch(patch).digest
    # What it is without is what it is by itself.
    assert found["without"] == json.loads(command(*argv, "--json")[1])
    assert found["with"]["comparisons"][0]["differences"]["sol_auc"]["value"] == 0
    code, out, _ = command(*argv, "--patch", patch)
    told = [line for line in out.splitlines() if line.startswith("first minus second, invalid")]
    assert told == [
        "first minus second, invalid errors, offline, 4 traces",
        "first minus second, invalid errors, offline, 4 traces, patched",
    ]


def test_a_patch_that_takes_a_kind_of_error_away(command, sqlite_store, db, tmp_path):
    accept(sqlite_store, "C", 0, "pos")
    path = tmp_path / "fixes.json"
    assert command("patch", "export", "sums", path, "--db", db)[0] == 0
    code, out, _ = command("evaluate", "--dataset", "sums", "--patch", path, "--db", db, "--draws", 20)
    assert code == 0
    assert "sums, redundant errors, offline: the patched gold has no such error, nothing is compared" in out


def test_a_patch_that_does_not_fit_is_refused_before_scoring(command, db, patch, tmp_path):
    found = json.loads(patch.read_text("utf-8"))
    change = read_patch(patch).changes[0]
    other = LabelChange(**(vars(change) | {"trace": "Z"}))
    path = tmp_path / "other.json"
    path.write_text(format_patch(Patch("sums", found["sha256"], found["moment"], (other,))), encoding="utf-8")
    # This evaluator is there and would have to score first.
    code, out, err = command(
        "evaluate", "--dataset", "sums", "--evaluator", "mini-causal", "--patch", path, "--db", db
    )
    assert (code, out) == (2, "")
    assert err == (
        "stepsight evaluate: other.json, trace 'Z', step 2: sums has no such trace. It is a patch of sums.\n"
    )


def test_report(command, db, patch, tmp_path):
    folder = tmp_path / "report"
    argv = ["report", "--dataset", "sums", "--patch", patch, "--output", folder, "--db", db, "--draws", 20]
    code, out, _ = command(*argv)
    assert (code, out) == (0, f"{folder / 'report.html'}\n")
    assert "What the patch changes" in (folder / "report.html").read_text("utf-8")
    assert (folder / "tables" / "sums-patched-change-invalid-offline.csv").is_file()
    assert (folder / "tables" / "sums-invalid-offline.csv").is_file()
