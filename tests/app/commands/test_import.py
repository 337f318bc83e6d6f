"""`stepsight import` of whatever there is: folders, tables, benchmarks with their scores."""

import gzip
import json
import shutil

import datasets
import pytest

from stepsight.core.paths import CACHE_VARIABLE
from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.evaluators import evaluators_of
from stepsight.storage.traces.queries import find_dataset, iterate_traces, list_datasets
from tests.storage.samples import plain_row, write_lines


@pytest.fixture
def db(tmp_path):
    folder = tmp_path / "store"
    folder.mkdir()
    return folder / "store.db"


def names(db):
    with open_store(str(db)) as store:
        return {one.name: one.traces for one in list_datasets(store)}


@pytest.mark.slow
def test_a_folder_comes_in_with_its_scores(command, db, data, tmp_path):
    """The real MR-MATH: two datasets, and five evaluators on each."""
    folder = shutil.copytree(data / "mr-math", tmp_path / "mr-math")
    (folder / "notes.txt").write_text("not looked at")
    code, out, err = command("import", "auto", folder, "--db", db)
    assert (code, err) == (0, "Not read: notes.txt.\n")
    assert len(out.splitlines()) == 12
    assert names(db) == {"mr-math-invalid": 159, "mr-math-redundant": 300}
    with open_store(str(db)) as store:
        for name in names(db):
            assert {one.name for one in evaluators_of(store, find_dataset(store, name).id)} == {
                "GPT-4",
                "Math-Shepherd",
                "ReasonEval-Mistral-7B",
                "ReasonEval-WizardMath-7B-V1.1",
                "ROSCOE-SA",
            }
    code, out, err = command("import", "auto", folder, "--db", db)
    assert (code, out.count("nothing new")) == (0, 2)


def test_unimportable_files_of_a_folder_are_named_and_the_rest_is_stored(command, db, tmp_path):
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    (folder / "good.jsonl.gz").write_bytes(gzip.compress(json.dumps(plain_row(1)).encode()))
    write_lines(folder / "deep" / "mixed.jsonl", [plain_row(1), "{"])
    datasets.Dataset.from_list([plain_row(1) | {"steps": ["One."]}]).save_to_disk(folder / "all" / "saved")
    (folder / "dataset_infos.json").write_text("{}")
    (folder / "table.csv").write_text("a,b\n1,2\n")
    write_lines(folder / "spans.jsonl", [{"resourceSpans": []}])
    (folder / "scores.json").write_text(json.dumps([{"id": "nobody", "scores": [0.5]}]))
    code, out, err = command("import", "auto", folder, "--db", db)
    assert (code, out) == (2, "good: 1 trace added; 1 in the dataset.\n")
    assert "mixed.jsonl line 2: not JSON" in err
    assert "table.csv: a table with unknown column names. Name its columns" in err
    assert "spans.jsonl: a table with unknown column names. Write the conversation as a chat" in err
    assert "scores.json: scores that fit no dataset of the store." in err
    # A folder that datasets saved is one table, and the descriptions in it are no data.
    assert "saved: a folder that datasets saved. Name its columns: stepsight import any FOLDER" in err
    assert err.endswith("stepsight import: 5 of 6 files were not imported. The reasons are above.\n")
    code, out, err = command("import", "auto", folder / "deep", "--skip-bad", "--db", db)
    assert (code, out) == (0, "mixed: 1 trace added, 1 bad row left out; 1 in the dataset.\n")
    # Beside the store, wherever the command was run.
    assert (db.parent / "mixed.skipped.jsonl").is_file()
    code, out, err = command("import", "auto", tmp_path / "store", "--db", db)
    assert (code, out) == (2, "")
    code, out, err = command("import", "auto", tmp_path / "nowhere", "--db", db)
    assert (code, "nowhere: cannot be read" in err) == (2, True)
    (tmp_path / "empty").mkdir()
    code, out, err = command("import", "auto", tmp_path / "empty", "--db", db)
    assert "no file to import. Expected files that end in .parquet, .arrow, .jsonl" in err


def test_files_of_one_kind_become_datasets_of_their_own(command, db, data):
    code, _, err = command("import", "auto", data / "prm800k", "--db", db)
    assert (code, err) == (0, "")
    examples = {f"prm800k-prm800k-{part}-example" for part in ("phase1-test", "phase1-train", "phase2-train")}
    assert set(names(db)) == {"prm800k-test", "prm800k-train"} | examples


def test_files_of_one_name_stay_apart(command, db, tmp_path):
    for folder, rows in (("a", 1), ("b", 2)):
        (tmp_path / "all" / folder).mkdir(parents=True)
        write_lines(tmp_path / "all" / folder / "train.jsonl", [plain_row(number) for number in range(rows)])
    assert command("import", "auto", tmp_path / "all", "--db", db)[0] == 0
    assert names(db) == {"a-train": 1, "b-train": 2}


def test_a_table_is_read_by_the_columns_that_the_page_would_guess(command, db, tmp_path):
    file = tmp_path / "table.csv"
    file.write_text('question,solution,labels\n?,"Step 1: a\nStep 2: b","[1, 0]"\n')
    code, out, _ = command("import", "auto", file, "--db", db)
    columns = "Read with problem=question,steps=solution,labels=labels,labels_as=validity."
    reasons = (
        "'solution' is the only column that can hold the solution."
        " 'labels' is read as 1 for right and 0 for wrong steps."
    )
    assert (code, out) == (0, f"table: 1 trace added; 1 in the dataset. {columns} {reasons}\n")


def test_columns_in_doubt_are_shown_with_the_options_that_choose_them(command, db, tmp_path):
    file = tmp_path / "table.csv"
    file.write_text('question,solution,label\n?,"Step 1: a\nStep 2: b",1\n')
    code, out, err = command("import", "auto", file, "--db", db)
    assert (code, out, names(db)) == (2, "", {})
    assert "  labels=label,labels_as=error-from-1: counted from 1, step 1 is the first wrong one\n" in err
    assert "stepsight import any FILE --fields problem=question,steps=solution,labels=…" in err
    fields = "problem=question,steps=solution,labels=label,labels_as=error-from-1"
    assert command("import", "any", file, "--fields", fields, "--db", db)[0] == 0


def test_a_table_comes_in_by_the_columns_that_are_named(command, db, tmp_path):
    file = tmp_path / "table.csv"
    file.write_text('"Ask, again",Work,Gold\n?,"Step 1: a\nStep 2: b","[1, 0]"\n')
    fields = "problem=Ask, again,steps=Work,labels=Gold,labels_as=validity"
    code, out, _ = command("import", "columns", file, "--fields", fields, "--db", db)
    assert (code, out) == (0, "table: 1 trace added; 1 in the dataset.\n")
    for given, message in (
        (
            "problem=Ask, again,steps=Nowhere",
            "the column 'Nowhere' is missing (found: 'Ask, again', 'Work', 'Gold')",
        ),
        ("problem=Ask, again", "the key steps is missing"),
        ("problem=Ask, again,steps=Work,odd=x", "unknown key odd"),
        ("problem=Ask, again,steps=Work,labels_as=odd", "labels_as is 'odd'"),
    ):
        code, _, err = command("import", "columns", file, "--dataset", "x", "--fields", given, "--db", db)
        assert (code, message in err) == (2, True), err
    code, out, _ = command(
        "import", "any", file, "--fields", fields, "--split", r"\n", "--dataset", "x", "--db", db
    )
    assert (code, out) == (0, "x: 1 trace added; 1 in the dataset.\n")
    code, _, err = command("import", "columns", file, "--db", db)
    assert "columns needs --fields" in err


def test_a_benchmark_comes_with_its_scores_from_the_cache(command, db, data, tmp_path, monkeypatch):
    """Fetched before, so that no server is needed."""
    import hashlib

    from stepsight.storage.importers import downloads
    from stepsight.storage.importers.catalogue import find_benchmark

    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    benchmark = find_benchmark("perturbation")
    content = (data / "perturbation" / "perturbation.json").read_bytes()
    assert hashlib.sha256(content).hexdigest() == benchmark.file.sha256
    place = tmp_path / "cache" / "downloads" / benchmark.file.sha256 / benchmark.file.name
    place.parent.mkdir(parents=True)
    place.write_bytes(content)
    monkeypatch.setattr(downloads, "make_client", lambda *_: pytest.fail("a server was asked"))
    code, out, _ = command("import", "perturbation", "--download", "--db", db)
    assert (code, out) == (0, "perturbation: 1,064 traces added; 1,064 in the dataset.\n")


def test_only_traces_that_meet_conditions_come_in(command, db, data):
    path = data / "prm800k" / "test.jsonl"
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    wanted = [record for record in records if record["label"]["finish_reason"] == "found_error"]
    ratings = [
        step["completions"][step["chosen_completion"] or 0]["rating"]
        for record in wanted
        for step in record["label"]["steps"]
        if step["completions"]
    ]
    where = ("--where", "phase=1", "--where", "finish_reason=found_error")
    added, beside = command("import", "prm800k", path, *where, "--db", db)[1].splitlines()
    left = len(records) - len(wanted)
    assert added == (
        f"prm800k: {len(wanted) - 8} traces added, 8 repeated in the file, "
        f"{left} left out by finish_reason=found_error; {len(wanted) - 8} in the dataset."
    )
    assert beside == (
        f"Read are {len(wanted)} traces with {sum(one is not None for one in ratings)} labelled steps; "
        "the paper has training: 96,280 and 663,101; test: 2,726 and 18,559."
    )


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("finish_reasn=solution", "no row has the field 'finish_reasn'. Did you mean finish_reason?"),
        ("finish_reason=solved", "no row meets finish_reason=solved. finish_reason is "),
        ("finish_reason", "'finish_reason' is not a condition. Write FIELD=VALUE"),
    ],
)
def test_a_condition_that_no_trace_meets_stores_nothing(command, db, data, condition, message):
    code, _, err = command("import", "prm800k", data / "prm800k" / "test.jsonl", "--where", condition, "--db", db)
    assert (code, message in err) == (2, True), err
    assert names(db) == {}


def test_traces_of_prm800k_can_go_on_beyond_their_error(command, db, tmp_path):
    def record(problem, generated):
        steps = [{"completions": [{"text": text, "rating": 1}], "chosen_completion": 0} for text in "ab"]
        question = {"problem": problem, "pre_generated_steps": generated}
        return {"question": question, "label": {"steps": steps, "finish_reason": "found_error"}}

    file = write_lines(tmp_path / "prm.jsonl", [record("p", ["a", "b", "c"]), record("q", ["x", "y"])])
    options = ("--continued", "--dataset", "whole", "--db", db)
    code, out, _ = command("import", "prm800k", file, *options)
    assert code == 0
    assert out.startswith("whole: 1 trace added, 1 left out whose rest is not known; 1 in the dataset.")
    with open_store(str(db)) as store:
        (trace,) = iterate_traces(store, find_dataset(store, "whole").id)
        assert [step.text for step in trace.steps] == ["a", "b", "c"]
        assert trace.labels[2] is None
    write_lines(file, [record("q", ["x", "y"])])
    code, _, err = command("import", "prm800k", file, "--continued", "--dataset", "none", "--db", db)
    assert (code, "no trace has the rest of its solution" in err) == (2, True)
    assert names(db) == {"whole": 1}
