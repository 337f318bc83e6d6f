"""`stepsight import` of files, folders, tables and benchmarks with their scores, `import-scores` and `synth`."""

import gzip
import hashlib
import json
import shutil

import datasets
import pytest

from stepsight.core.paths import CACHE_VARIABLE
from stepsight.storage.database.store import open_store
from stepsight.storage.importers import catalogue
from stepsight.storage.importers.catalogue import PublicFile, find_benchmark
from stepsight.storage.judgments.evaluators import evaluators_of
from stepsight.storage.judgments.judgments import read_judgments
from stepsight.storage.traces.queries import find_dataset, iterate_traces, list_datasets
from stepsight.training.evaluate.strength import concluded_record
from tests.app.client import assert_alike
from tests.storage.public_server import PublicServer
from tests.storage.samples import plain_row, write_lines

ROWS = [
    {"id": "a", "problem": "What is 2 + 3?", "steps": ["2 + 3 = 5.", "So 5."], "labels": ["pos", "neu"]},
    {"id": 7, "problem": "What is 1 + 1?", "steps": ["A sum.", ["So 3.", "Check: 3 - 1 = 2."]]},
    {"id": "ü三", "problem": "x", "steps": ["y"]},
]


@pytest.fixture
def names(tmp_path):
    """Gives the datasets of the store, with their traces."""

    def names():
        with open_store(str(tmp_path / "store.db")) as store:
            return {dataset.name: dataset.traces for dataset in list_datasets(store)}

    return names


def test_bad_rows_are_counted_or_left_out_and_listed(typed, tmp_path, names, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    write_lines(tmp_path / "mixed.jsonl", [plain_row(1), "{", plain_row(2, steps=[]), plain_row(3)])
    typed("import jsonl ../mixed.jsonl")
    assert names() == {}
    # The list is beside the store.
    typed("import jsonl ../mixed.jsonl --skip-bad")
    listed = [json.loads(line) for line in (tmp_path / "mixed.skipped.jsonl").read_text().splitlines()]
    assert [(row["file"], row["line"]) for row in listed] == [("mixed.jsonl", 2), ("mixed.jsonl", 3)]
    typed("datasets")


def test_the_list_of_what_is_left_out_has_a_name_of_its_own(typed, tmp_path, names):
    write_lines(tmp_path / "mixed.jsonl", [plain_row(1), "{"])
    write_lines(tmp_path / "taken.jsonl", ["precious"])
    typed("import jsonl mixed.jsonl --skip-bad --skipped taken.jsonl")
    assert (tmp_path / "taken.jsonl").read_text() == "precious\n"
    assert names() == {}
    typed("import jsonl mixed.jsonl --skip-bad --skipped list.jsonl")
    assert (tmp_path / "list.jsonl").exists()


@pytest.fixture
def published(monkeypatch, tmp_path):
    """A server with two files that the kind `jsonl` names as its own, one of them with its hash."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    content = write_lines(tmp_path / "rows", ROWS).read_bytes()
    with PublicServer().running() as server:
        server.files = {"/rows.jsonl": content, "/unseen.jsonl": content}
        known = PublicFile("rows.jsonl", f"{server.url}/rows.jsonl", hashlib.sha256(content).hexdigest())
        unseen = PublicFile("unseen.jsonl", f"{server.url}/unseen.jsonl")
        others = catalogue.published_files
        files = {"plain": (known, unseen)}
        monkeypatch.setattr(catalogue, "published_files", lambda kind: files.get(kind) or others(kind))
        yield server


def test_a_published_file_is_fetched_once_and_imported(typed, tmp_path, published):
    typed("import jsonl --download")
    typed("import jsonl rows.jsonl --download")
    with open_store(str(tmp_path / "store.db")) as store:
        assert list_datasets(store)[0].source == "rows.jsonl"
    typed("import jsonl rows.jsonl --download")
    assert len(published.requests) == 1


def test_a_published_file_without_a_known_hash_needs_one(typed, published):
    typed("import jsonl unseen.jsonl --download")
    typed("import jsonl unseen.jsonl --download --sha256", "0" * 64)
    known = hashlib.sha256(published.files["/rows.jsonl"]).hexdigest()
    typed("import jsonl unseen.jsonl --download --sha256", known.upper())


def test_released_scores_are_imported_and_what_matched_is_told(typed, tmp_path):
    write_lines(tmp_path / "sums.jsonl", ROWS)
    typed("import jsonl sums.jsonl --dataset sums")
    write_lines(tmp_path / "s.json", [{"id": "a", "scores": [0.9, 0.2]}, {"id": "x", "scores": [0.5]}])
    typed("import-scores sums s.json --evaluator PRM --mode online")
    with open_store(str(tmp_path / "store.db")) as store:
        traces = iterate_traces(store, find_dataset(store, "sums").id)
        assert [[row.mode for row in read_judgments(store, trace)] for trace in traces] == [["online"], [], []]


def test_scores_of_the_command_are_imported_as_they_were_scored(typed, tiny, tmp_path):
    write_lines(tmp_path / "sums.jsonl", ROWS)
    typed.run("import jsonl sums.jsonl --dataset sums")
    typed.run("score --input sums.jsonl --mode hindsight --output scores.jsonl --evaluator", tiny)
    typed("import-scores sums scores.jsonl")
    lines = (tmp_path / "scores.jsonl").read_text().splitlines()
    with open_store(str(tmp_path / "store.db")) as store:
        for trace, line in zip(iterate_traces(store, find_dataset(store, "sums").id), lines, strict=True):
            (judgment,) = read_judgments(store, trace)
            again = concluded_record(judgment, judgment.evaluator).model_dump(mode="json")
            expected = json.loads(line) | {"fingerprint": "imported:tiny", "created": again["created"]}
            assert_alike(again, expected, 2e-6)


@pytest.mark.slow
def test_a_folder_comes_in_with_its_scores(typed, data, tmp_path, names):
    """The real MR-MATH: two datasets, and five evaluators on each."""
    folder = shutil.copytree(data / "mr-math", tmp_path / "mr-math")
    (folder / "notes.txt").write_text("not looked at")
    first = typed.run("import auto mr-math")
    assert (first.code, first.err, len(first.out.splitlines())) == (0, "Not read: notes.txt.\n", 12)
    assert names() == {"mr-math-invalid": 159, "mr-math-redundant": 300}
    with open_store(str(tmp_path / "store.db")) as store:
        for name in names():
            assert {row.name for row in evaluators_of(store, find_dataset(store, name).id)} == {
                "GPT-4", "Math-Shepherd", "ReasonEval-Mistral-7B", "ReasonEval-WizardMath-7B-V1.1", "ROSCOE-SA",
            }  # fmt: skip
    again = typed.run("import auto mr-math")
    assert (again.code, again.out.count("nothing new")) == (0, 2)


def test_unimportable_files_of_a_folder_are_named_and_the_rest_is_stored(typed, tmp_path, capsys):
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    (folder / "good.jsonl.gz").write_bytes(gzip.compress(json.dumps(plain_row(1)).encode()))
    write_lines(folder / "deep" / "mixed.jsonl", [plain_row(1), "{"])
    # A folder that datasets saved is one table, and the descriptions in it are no data.
    datasets.Dataset.from_list([plain_row(1) | {"steps": ["One."]}]).save_to_disk(folder / "all" / "saved")
    (folder / "dataset_infos.json").write_text("{}")
    (folder / "table.csv").write_text("a,b\n1,2\n")
    (folder / "scores.json").write_text(json.dumps([{"id": "nobody", "scores": [0.5]}]))
    capsys.readouterr()
    typed("import auto folder")
    typed("import auto folder/deep --skip-bad")
    assert (tmp_path / "mixed.skipped.jsonl").is_file()
    typed("import auto nowhere")


def test_files_of_one_kind_become_datasets_of_their_own(typed, data, names):
    assert typed.run("import auto", data / "prm800k").err == ""
    examples = {f"prm800k-{part}-example" for part in ("phase1-test", "phase1-train", "phase2-train")}
    assert set(names()) == {"prm800k-test", "prm800k-train"} | examples


def test_files_of_one_name_stay_apart(typed, tmp_path):
    for folder, rows in (("a", 1), ("b", 2)):
        (tmp_path / "all" / folder).mkdir(parents=True)
        write_lines(tmp_path / "all" / folder / "train.jsonl", [plain_row(number) for number in range(rows)])
    typed("import auto all")


def test_a_table_is_read_by_the_columns_that_are_guessed_or_named(typed, tmp_path, names):
    (tmp_path / "clear.csv").write_text('question,solution,labels\n?,"Step 1: a\nStep 2: b","[1, 0]"\n')
    typed("import auto clear.csv")
    # Columns in doubt are shown with the options that choose them.
    (tmp_path / "doubt.csv").write_text('question,solution,label\n?,"Step 1: a\nStep 2: b",1\n')
    typed("import auto doubt.csv")
    typed("import any doubt.csv --fields problem=question,steps=solution,labels=label,labels_as=error-from-1")
    (tmp_path / "table.csv").write_text('"Ask, again",Work,Gold\n?,"Step 1: a\nStep 2: b","[1, 0]"\n')
    fields = "problem=Ask, again,steps=Work,labels=Gold,labels_as=validity"
    typed("import columns table.csv --fields", fields)
    typed("import any table.csv --split '\\n' --dataset x --fields", fields)
    for given in (
        "problem=Ask, again,steps=Nowhere",
        "problem=Ask, again",
        "problem=Ask, again,steps=Work,odd=x",
        "problem=Ask, again,steps=Work,labels_as=odd",
    ):
        typed("import columns table.csv --dataset y --fields", given)
    assert names() == {"clear": 1, "doubt": 1, "table": 1, "x": 1}


def test_a_benchmark_comes_with_its_scores_from_the_cache(typed, data, tmp_path, monkeypatch):
    """Fetched before, so that no server is needed."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    benchmark = find_benchmark("perturbation")
    content = (data / "perturbation" / "perturbation.json").read_bytes()
    assert hashlib.sha256(content).hexdigest() == benchmark.file.sha256
    place = tmp_path / "cache" / "downloads" / benchmark.file.sha256 / benchmark.file.name
    place.parent.mkdir(parents=True)
    place.write_bytes(content)
    monkeypatch.setattr(catalogue, "make_client", lambda *_: pytest.fail("a server was asked"))
    typed("import perturbation --download")


def test_only_traces_that_meet_conditions_come_in(typed, data, names):
    path = data / "prm800k" / "test.jsonl"
    for condition in ("finish_reasn=solution", "finish_reason=solved", "finish_reason"):
        typed("import prm800k", path, "--where", condition)
    assert names() == {}
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    chosen = [record for record in records if record["label"]["finish_reason"] == "found_error"]
    ratings = [
        step["completions"][step["chosen_completion"] or 0]["rating"]
        for record in chosen
        for step in record["label"]["steps"]
        if step["completions"]
    ]
    printed = typed.run("import prm800k", path, "--where", "phase=1", "--where", "finish_reason=found_error").out
    added, beside = printed.splitlines()
    assert added == (
        f"prm800k: {len(chosen) - 8} traces added, 8 repeated in the file, {len(records) - len(chosen)} left out by"
        f" finish_reason=found_error; {len(chosen) - 8} in the dataset."
    )
    assert beside == (
        f"Read: {len(chosen)} traces with {sum(rating is not None for rating in ratings)} labelled steps; "
        "the paper has training: 96,280 and 663,101; test: 2,726 and 18,559."
    )


def test_traces_of_prm800k_can_go_on_beyond_their_error(typed, tmp_path, names):
    def record(problem, generated):
        steps = [{"completions": [{"text": text, "rating": 1}], "chosen_completion": 0} for text in "ab"]
        question = {"problem": problem, "pre_generated_steps": generated}
        return {"question": question, "label": {"steps": steps, "finish_reason": "found_error"}}

    cut, whole = record("q", ["x", "y"]), record("p", ["a", "b", "c"])
    write_lines(tmp_path / "prm.jsonl", [whole, cut])
    typed("import prm800k prm.jsonl --continued --dataset whole")
    with open_store(str(tmp_path / "store.db")) as store:
        (trace,) = iterate_traces(store, find_dataset(store, "whole").id)
    assert ([step.text for step in trace.steps], trace.labels[2]) == (["a", "b", "c"], None)
    write_lines(tmp_path / "prm.jsonl", [cut])
    typed("import prm800k prm.jsonl --continued --dataset none")
    assert names() == {"whole": 1}


def test_synthetic_traces_are_lines_that_the_other_commands_read(typed, tmp_path):
    printed = typed.run("synth --size 5 --seed 7")
    assert (printed.code, printed.err, len(printed.rows)) == (0, "", 5)
    typed("synth --size 5 --seed 7 --output five.jsonl")
    assert (tmp_path / "five.jsonl").read_text(encoding="utf-8") == printed.out
    assert typed.run("synth --size 5 --seed 8").out != printed.out
    typed("import jsonl five.jsonl")
    families = {row["family"] for row in typed.run("synth --size 20 --families age linear").rows}
    assert families == {"age", "linear"}
