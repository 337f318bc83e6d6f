"""The command as it is typed, within this process."""

import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass

import pytest
import yaml

from stepsight.app.commands.serve import listen
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.files.jsonl import parse_trace
from stepsight.core.scoring.scorer import Scorer
from stepsight.storage.database.store import open_store
from stepsight.storage.importers import catalogue
from stepsight.storage.importers.catalogue import PublicFile
from stepsight.storage.judgments.judgments import read_judgments
from stepsight.storage.traces.queries import find_dataset, iterate_traces, list_datasets
from stepsight.training.evaluate.strength import concluded_record
from tests.app.client import assert_alike
from tests.conftest import ROOT
from tests.storage.public_server import PublicServer
from tests.storage.samples import plain_row, redundant_row, write_lines

ROWS = [
    {"id": "a", "problem": "What is 2 + 3?", "steps": ["2 + 3 = 5.", "So 5."], "labels": ["pos", "neu"]},
    {"id": 7, "problem": "What is 1 + 1?", "steps": ["A sum.", ["So 3.", "Check: 3 - 1 = 2."]]},
    {"id": "ü三", "problem": "x", "steps": ["y"]},
]
TOO_LONG = {"id": "long", "problem": "q", "steps": ["x", "7" * 20_000]}
# The context counts problem and separators too.
LIMIT = r"trace 'long' has 20,\d\d\d tokens, tiny reads at most 1,024\. Shorten it"


@dataclass
class Outcome:
    """How a command line ended: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def rows(self):
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def run(command):
    return lambda *argv: Outcome(*command(*argv))


@pytest.fixture
def fails(run):
    """Run a command line that has to fail with exit code 2, nothing printed, and one line that matches."""

    def fails(message, *argv):
        outcome = run(*argv)
        assert outcome.code == 2
        assert outcome.out == ""
        (line,) = outcome.err.splitlines()
        assert line.startswith(f"stepsight {argv[0]}: ")
        assert re.search(message, line), line

    return fails


@pytest.fixture
def stdin(monkeypatch):
    def stdin(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return stdin


@pytest.fixture
def file(tmp_path):
    return write_lines(tmp_path / "traces.jsonl", ROWS)


@pytest.fixture
def db(sqlite_store):
    """The path of an empty store."""
    return sqlite_store.name


@pytest.fixture
def score(run, tiny):
    """Score a file or dataset with the tiny evaluator."""
    return lambda *argv: run("score", *argv, "--evaluator", tiny)


def datasets(db):
    with open_store(db) as store:
        return list_datasets(store)


def judged(db, name):
    """The modes in which each trace of a dataset is judged."""
    with open_store(db) as store:
        traces = list(iterate_traces(store, find_dataset(store, name).id))
        return [[str(found.mode) for found in read_judgments(store, trace)] for trace in traces]


# --- score --input ---


@pytest.mark.parametrize("mode", [None, "offline", "online", "hindsight"])
def test_a_file_is_scored_in_each_mode(score, tiny, file, mode):
    outcome = score("--input", file, *(["--mode", mode] if mode else []))
    assert (outcome.code, outcome.err) == (0, "")
    assert [row["id"] for row in outcome.rows] == ["a", "7", "ü三"]
    scorer = Scorer(load_evaluator(tiny))
    for row, source in zip(outcome.rows, ROWS, strict=True):
        judgment = scorer.score_one(parse_trace(source, "here"), mode or "offline")
        assert_alike(row, concluded_record(judgment, scorer.evaluator).model_dump(mode="json"), 2e-5)


def test_thresholds_of_the_command_line_decide(score, file):
    lax = score("--input", file, "--validity", 0, "--redundancy", 1).rows
    strict = score("--input", file, "--validity", 1, "--redundancy", 0).rows
    for rows, verdict in ((lax, (True, False)), (strict, (False, True))):
        solutions = [row["offline"]["solution"] for row in rows]
        assert {(solution["valid"], solution["redundant"]) for solution in solutions} == {verdict}


def test_the_type_of_the_weights_is_told_beside_the_scores(score, file):
    exact, rough = (score("--input", file, "--dtype", dtype) for dtype in ("float32", "bfloat16"))
    assert {row["evaluator"] for row in exact.rows} == {"tiny"}
    assert {row["evaluator"] for row in rough.rows} == {"tiny (bfloat16)"}
    first, second = (
        [[step["validity"] for step in row["offline"]["steps"]] for row in found.rows] for found in (exact, rough)
    )
    assert first != second
    for ours, theirs in zip(first, second, strict=True):
        assert ours == pytest.approx(theirs, abs=0.15)


@pytest.mark.parametrize(
    "argv",
    [
        ["--device", "auto"],
        ["--device-map", "auto"],
        ["--device-map", "cpu"],
        ["--device-map", '{"": "cpu"}'],
        ["--dtype", "float32", "--device", "cpu"],
    ],
)
def test_where_it_computes_makes_no_difference(score, file, argv):
    """On a machine with a GPU, none that six digits show."""
    plain, placed = score("--input", file), score("--input", file, *argv)
    assert placed.code == 0
    assert len(placed.rows) == len(plain.rows) == 3
    for ours, theirs in zip(placed.rows, plain.rows, strict=True):
        assert ours["evaluator"] == theirs["evaluator"]
        assert_alike(ours["offline"], theirs["offline"], 1e-5)


def test_standard_input_compressed_and_a_file_give_the_same(score, stdin, file, tmp_path):
    stdin(gzip.compress(file.read_bytes()))
    piped = score("--input", "-", "--output", "-")
    written = score("--input", file, "--output", tmp_path / "out.jsonl")
    assert (piped.code, written.code, written.out) == (0, 0, "")
    assert (tmp_path / "out.jsonl").read_text(encoding="utf-8") == piped.out
    assert len(piped.rows) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "traces.jsonl"]


def test_traces_over_the_context_are_named_and_left_out_on_request(score, tmp_path):
    file = write_lines(tmp_path / "traces.jsonl", [ROWS[0], TOO_LONG, ROWS[2]])
    outcome = score("--input", file, "--skip-too-long")
    assert (outcome.code, [row["id"] for row in outcome.rows]) == (0, ["a", "ü三"])
    first, last = outcome.err.splitlines()
    assert first.startswith("left out: trace 'long' has 20,0")
    assert last == "1 trace left out."


def test_a_pipe_is_written_to_and_not_replaced(score, file, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert score("--input", file, "--output", pipe).code == 0
        assert [json.loads(line)["id"] for line in os.read(reader, 100_000).splitlines()] == ["a", "7", "ü三"]
    finally:
        os.close(reader)
    assert pipe.is_fifo()


BAD_ROWS = [
    ({"id": 1, "problem": "q", "steps": ["x", ""]}, r"line 2: step 2 is empty"),
    (TOO_LONG, LIMIT),
    ('{"id": 1', r"line 2: not JSON .*Write one JSON object per line"),
]


@pytest.mark.parametrize(("bad", "message"), BAD_ROWS, ids=[message[:40] for _, message in BAD_ROWS])
def test_a_bad_row_is_named_and_leaves_the_output_as_it_was(fails, tiny, tmp_path, bad, message):
    file, out = write_lines(tmp_path / "bad.jsonl", [ROWS[0], bad, ROWS[2]]), tmp_path / "out.jsonl"
    where = "" if bad is TOO_LONG else r"bad\.jsonl "
    fails(where + message, "score", "--input", file, "--evaluator", tiny, "--output", out)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.jsonl"]
    out.write_text("of an earlier run")
    fails(where + message, "score", "--input", file, "--evaluator", tiny, "--output", out)
    assert out.read_text() == "of an earlier run"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.jsonl", "out.jsonl"]


def test_bytes_that_are_no_text_are_named(fails, stdin, tiny):
    good = json.dumps(ROWS[0]).encode()
    for line, message in (
        (b'{"id": 1, "problem": "\xff"}', "standard input line 2: byte 23 is not UTF-8. Save the file as UTF-8"),
        (b"\x00", "standard input line 2: not JSON"),
    ):
        stdin(good + b"\n" + line + b"\n")
        fails(message, "score", "--input", "-", "--evaluator", tiny, "--output", "/dev/null")


@pytest.mark.parametrize("data", [b"", b"\n \n"])
def test_no_trace_at_all_is_an_error(fails, stdin, tiny, data):
    stdin(data)
    fails(
        "standard input: no trace found. Write one JSON object per line",
        "score",
        "--input",
        "-",
        "--evaluator",
        tiny,
    )


def test_stopping_by_hand_says_so_and_leaves_nothing(score, monkeypatch, tmp_path):
    class Stopped:
        @property
        def buffer(self):
            yield json.dumps(ROWS[0]).encode()
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Stopped())
    outcome = score("--input", "-", "--output", tmp_path / "out.jsonl")
    assert (outcome.code, outcome.err.strip()) == (130, "stepsight score: stopped.")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m stepsight synth --size 3000 | head -n 1; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (1, "")
    assert json.loads(ended.stdout)["id"] == "synth-0-0"


# --- import, datasets ---


def test_files_are_imported_and_listed(run, db, file, tmp_path):
    assert run("datasets", "--db", db).out == "The store is empty. Import a file: stepsight import KIND PATH\n"
    assert json.loads(run("datasets", "--db", db, "--json").out) == []
    first = run("import", "jsonl", file, "--dataset", "sums", "--db", db)
    assert (first.code, first.out) == (0, "sums: 3 traces added; 3 in the dataset.\n")
    redundant = write_lines(tmp_path / "redundant.json", [redundant_row(), redundant_row(id=8)])
    assert run("import", "mr-math-redundant", redundant, "--db", db).code == 0
    listed = json.loads(run("datasets", "--db", db, "--json").out)
    # ROWS: 2 + 2 + 1 steps, one of which has two sub-steps; redundant_row: 3 steps, of which one has two.
    assert listed == [
        {
            "name": "mr-math-redundant",
            "kind": "mr-math-redundant",
            "traces": 2,
            "left_out": 0,
            "labelled": 2,
            "errors": 2,
            "redundant": 2,
            "steps": 6,
            "substeps": 8,
        },
        {
            "name": "sums",
            "kind": "plain",
            "traces": 3,
            "left_out": 0,
            "labelled": 1,
            "errors": 0,
            "redundant": 1,
            "steps": 5,
            "substeps": 6,
        },
    ]
    assert run("datasets", "--db", db).out == (
        "name               kind               traces  with a gold error  with redundant steps  steps  sub-steps\n"
        "mr-math-redundant  mr-math-redundant       2                  2                     2      6          8\n"
        "sums               plain                   3                  0                     1      5          6\n"
    )


def test_bad_rows_are_counted_or_left_out_and_listed(run, db, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    file = write_lines(tmp_path / "mixed.jsonl", [plain_row(1), "{", plain_row(2, steps=[]), plain_row(3)])
    refused = run("import", "jsonl", file, "--db", db)
    assert (refused.code, refused.out) == (2, "")
    head, *lines = refused.err.splitlines()
    assert head.startswith(f"stepsight import: {file}: 2 of 4 rows are bad, so that nothing was stored; ")
    assert re.match(r"  line 2: not JSON .* Write one JSON object per line\.$", lines[0])
    assert lines[1:] == ["  line 3: there are no steps. Give at least one step."]
    assert datasets(db) == []
    done = run("import", "jsonl", file, "--skip-bad", "--db", db)
    assert (done.code, done.out) == (0, "jsonl: 2 traces added, 2 bad rows left out; 2 in the dataset.\n")
    # Beside the store.
    assert done.err == f"The rows left out are listed in {tmp_path / 'mixed.skipped.jsonl'}.\n"
    listed = [json.loads(line) for line in (tmp_path / "mixed.skipped.jsonl").read_text().splitlines()]
    assert [(row["file"], row["line"]) for row in listed] == [("mixed.jsonl", 2), ("mixed.jsonl", 3)]
    assert "jsonl  plain  2 of 4 " in run("datasets", "--db", db).out
    assert json.loads(run("datasets", "--db", db, "--json").out)[0]["left_out"] == 2


def test_the_list_of_what_is_left_out_has_a_name_of_its_own(run, fails, db, tmp_path):
    file = write_lines(tmp_path / "mixed.jsonl", [plain_row(1), "{"])
    taken = write_lines(tmp_path / "taken.jsonl", ["precious"])
    fails(r"taken\.jsonl: there already", "import", "jsonl", file, "--skip-bad", "--skipped", taken, "--db", db)
    assert taken.read_text() == "precious\n"
    fails("--skipped goes with --skip-bad", "import", "jsonl", file, "--skipped", taken, "--db", db)
    assert datasets(db) == []
    listing = tmp_path / "list.jsonl"
    assert run("import", "jsonl", file, "--skip-bad", "--skipped", listing, "--db", db).code == 0
    assert listing.exists()


@pytest.fixture
def published(monkeypatch, tmp_path):
    """A server with two files that the kind `jsonl` names as its own, one of them with its hash."""
    monkeypatch.setenv("STEPSIGHT_CACHE", str(tmp_path / "cache"))
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


def test_a_published_file_is_fetched_once_and_imported(run, fails, db, published):
    which = r"plain is published as rows\.jsonl, unseen\.jsonl\. Name one"
    fails(which, "import", "jsonl", "--download", "--db", db)
    first = run("import", "jsonl", "rows.jsonl", "--download", "--db", db)
    assert (first.code, first.out) == (0, "jsonl: 3 traces added; 3 in the dataset.\n")
    assert datasets(db)[0].source == "rows.jsonl"
    again = run("import", "jsonl", "rows.jsonl", "--download", "--db", db)
    assert (again.code, again.out) == (0, "jsonl: nothing new, 3 traces already stored.\n")
    assert len(published.requests) == 1


def test_a_published_file_without_a_known_hash_needs_one(run, fails, db, published):
    unseen = ("import", "jsonl", "unseen.jsonl", "--download", "--db", db)
    fails(r"no known SHA-256 to check the file by\. Give the one you expect with --sha256", *unseen)
    fails("the content has SHA-256 .*, expected 0000", *unseen, "--sha256", "0" * 64)
    known = hashlib.sha256(published.files["/rows.jsonl"]).hexdigest()
    assert run(*unseen, "--sha256", known.upper()).code == 0
    fails("--sha256 goes with --download", "import", "jsonl", "x", "--sha256", known, "--db", db)
    assert run(*unseen, "--sha256", "12").err.endswith("'12' found, expected 64 hexadecimal digits\n")
    fails("No public address of stepwise is known", "import", "stepwise", "--download", "--db", db)
    fails("There is no kind 'prm'", "import", "prm", "--download", "--db", db)


# --- score --dataset ---


@pytest.fixture
def stored(run, db, file):
    """A store with the small file as the dataset `sums`."""
    assert run("import", "jsonl", file, "--dataset", "sums", "--db", db).code == 0
    return db


def test_released_scores_are_imported_and_what_matched_is_told(run, fails, stored, tmp_path):
    scores = write_lines(tmp_path / "s.json", [{"id": "a", "scores": [0.9, 0.2]}, {"id": "x", "scores": [0.5]}])
    done = run("import-scores", "sums", scores, "--evaluator", "PRM", "--mode", "online", "--db", stored)
    assert (done.code, done.out) == (
        0,
        "PRM on sums: 1 trace, matched by id; 1 row of the file matches no trace (x); "
        "2 traces have no scores (7, ü三).\n",
    )
    assert judged(stored, "sums") == [["online"], [], []]
    bad = write_lines(tmp_path / "bad.json", [{"id": "a", "scores": [0.9]}])
    message = r"bad\.json line 1: 1 scores for the 2 sub-steps of trace 'a'"
    fails(message, "import-scores", "sums", bad, "--evaluator", "other", "--db", stored)
    fails("no dataset 'none'", "import-scores", "none", scores, "--evaluator", "PRM", "--db", stored)
    fails("does not name its evaluator. Name it \\(--evaluator\\)", "import-scores", "sums", scores, "--db", stored)


def test_scores_of_the_command_are_imported_as_they_were_scored(run, score, stored, file, tmp_path):
    written = tmp_path / "scores.jsonl"
    assert score("--input", file, "--mode", "hindsight", "--output", written).code == 0
    assert run("import-scores", "sums", written, "--db", stored).out == "tiny on sums: 3 traces, matched by id.\n"
    with open_store(stored) as store:
        found = [read_judgments(store, trace)[0] for trace in iterate_traces(store, find_dataset(store, "sums").id)]
    for one, line in zip(found, written.read_text().splitlines(), strict=True):
        again = concluded_record(one, one.evaluator).model_dump(mode="json")
        expected = json.loads(line) | {"fingerprint": "imported:tiny", "created": again["created"]}
        assert_alike(again, expected, 2e-6)


def test_a_dataset_is_scored_once(score, stored):
    first = score("--dataset", "sums", "--mode", "hindsight", "--db", stored)
    assert (first.code, first.out) == (0, "")
    assert first.err == "sums: 3 traces judged by tiny (hindsight), 0 were judged before.\n"
    assert judged(stored, "sums") == [["hindsight"]] * 3
    again = score("--dataset", "sums", "--mode", "hindsight", "--db", stored)
    assert again.err == "sums: 0 traces judged by tiny (hindsight), 3 were judged before.\n"
    # Hindsight holds the offline result.
    assert (
        score("--dataset", "sums", "--db", stored).err
        == "sums: 0 traces judged by tiny (offline), 3 were judged before.\n"
    )


def test_an_interrupted_run_keeps_what_it_had_and_goes_on(run, score, fails, tiny, db, tmp_path):
    # A window of 64 traces is scored, then the trace that is too long ends the run.
    rows = [plain_row(i) for i in range(70)]
    rows[66] = TOO_LONG
    run("import", "jsonl", write_lines(tmp_path / "many.jsonl", rows), "--dataset", "many", "--db", db)
    fails(LIMIT, "score", "--dataset", "many", "--evaluator", tiny, "--db", db)
    assert [len(found) for found in judged(db, "many")] == [1] * 64 + [0] * 6
    outcome = score("--dataset", "many", "--skip-too-long", "--db", db)
    assert outcome.code == 0
    assert outcome.err.splitlines()[1:] == [
        "many: 5 traces judged by tiny (offline), 64 were judged before.",
        "1 trace left out.",
    ]
    assert [len(found) for found in judged(db, "many")] == [1] * 66 + [0] + [1] * 3


# --- train, synth ---


def config_file(tmp_path, **changes):
    values = {
        "attention": "bidirectional",
        "data": {"sources": [{"kind": "synthetic", "size": 16}]},
        "backbone": {"hidden": 16, "layers": 1, "heads": 2, "mlp": 16, "context": 1024},
        "vocabulary": 300,
        "batch_size": 8,
    }
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(values | changes))
    return path


def test_training_gives_an_evaluator_that_the_next_command_takes(run, file, tmp_path):
    output = tmp_path / "runs" / "small"
    trained = run("train", config_file(tmp_path), "--output", output, "--threads", "1")
    assert trained.code == 0
    assert trained.out == f"{output}\n"
    lines = trained.err.splitlines()
    assert lines[0] == f"Training into {output}; stop it whenever you like, the same command goes on."
    assert lines[1].startswith("16 traces, ")
    assert "2 steps of 8 in 1 epoch; " in lines[1]
    assert lines[3].startswith("2 of 2 steps, loss ")
    assert {"log_history.json", "training.html"} < {path.name for path in output.iterdir()}
    scored = run("score", "--input", file, "--evaluator", output)
    assert [row["evaluator"] for row in scored.rows] == ["small"] * 3
    refused = run("train", config_file(tmp_path, seed=2), "--output", output)
    assert refused.code == 2
    assert refused.err.splitlines()[-1] == (
        f"stepsight train: {output} holds another run (seed). Choose another --output."
    )


def test_a_bad_configuration_or_output_is_named(run, fails, tmp_path):
    fails(r"none\.yaml: cannot be read", "train", tmp_path / "none.yaml")
    fails(r"small\.yaml: unknown key epoch\. Did you mean epochs", "train", config_file(tmp_path, epoch=1))
    refused = run("train", config_file(tmp_path), "--output", tmp_path / "small.yaml" / "below")
    assert refused.code == 2
    assert "cannot be written (Not a directory). Choose another --output" in refused.err.splitlines()[-1]
    bad = config_file(tmp_path, data={"sources": [{"kind": "jsonl", "path": "none.jsonl"}]})
    refused = run("train", bad, "--output", tmp_path / "out")
    assert refused.code == 2
    assert f"there is no file none.jsonl in {tmp_path}" in refused.err.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["small.yaml"]


def test_synthetic_traces_are_lines_that_the_other_commands_read(run, score, tmp_path):
    printed = run("synth", "--size", 5, "--seed", 7)
    assert (printed.code, printed.err, len(printed.rows)) == (0, "", 5)
    written = run("synth", "--size", 5, "--seed", 7, "--output", tmp_path / "five.jsonl")
    assert (written.out, written.err) == ("", f"5 traces written to {tmp_path / 'five.jsonl'}.\n")
    assert (tmp_path / "five.jsonl").read_text(encoding="utf-8") == printed.out
    assert run("synth", "--size", 5, "--seed", 8).out != printed.out
    assert len(score("--input", tmp_path / "five.jsonl").rows) == 5


def test_families_are_chosen(run):
    families = {row["family"] for row in run("synth", "--size", 20, "--families", "age", "linear").rows}
    assert families == {"age", "linear"}


# --- the command itself ---


def test_without_a_folder_for_temporary_files_a_command_says_what_to_do(fails, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "missing")])
    fails("no folder for temporary files can be written to. .*--tmpfs /tmp", "datasets")


def test_the_next_free_port_is_taken():
    with listen(0) as first:
        port = first.getsockname()[1]
        with listen(port) as second:
            assert second.getsockname()[0] == "127.0.0.1"
            assert port < second.getsockname()[1] < port + 10
