"""Sources of every kind. The digest of a trace is `Trace.digest`; hashes of files are those of their bytes."""

import hashlib
import json

import pytest
from pydantic_core import PydanticCustomError

from stepsight.core.files.jsonl import format_trace
from stepsight.core.paths import DATA_VARIABLE
from stepsight.core.trace import Label
from stepsight.core.validation import validate
from stepsight.storage.database.store import open_store
from stepsight.storage.importers import ALIASES, KINDS
from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.training.data.sources import open_origin, open_problems
from stepsight.training.data.sources_config import Data, TraceOrigin, check_continued, describe
from stepsight.training.synth.corpus import generate
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.labelled_sums import AGREED, labelled
from tests.storage.labelling.samples import campaign
from tests.storage.samples import SAMPLES, add, plain_row, write_lines

KEY = "data.sources[0]"


def opened(origin, root):
    return open_origin(origin, root, KEY)


def digest(traces):
    return hashlib.sha256("".join(trace.digest for trace in traces).encode()).hexdigest()


@pytest.fixture
def lines(tmp_path):
    """Write rows of the plain format to a file of the folder."""

    def lines(name, *rows):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        return write_lines(tmp_path / name, rows)

    return lines


def test_synthetic_traces_are_the_generators(tmp_path):
    reading = opened(TraceOrigin("synthetic", size=5, seed=3), tmp_path)
    traces = list(generate(3, 5))
    assert list(reading) == traces
    expected = {"kind": "synthetic", "size": 5, "seed": 3, "families": None, "sha256": digest(traces)}
    assert reading.record == expected
    # Reading it again is reading it anew.
    assert list(reading) == traces
    assert reading.record == expected


def test_the_seed_may_be_left_out_and_families_chosen(tmp_path):
    family = next(generate(0, 1)).meta["family"]
    reading = opened(TraceOrigin("synthetic", size=4, families=(family,)), tmp_path)
    assert {trace.meta["family"] for trace in reading} == {family}
    assert (reading.record["seed"], reading.record["families"]) == (0, [family])
    assert json.loads(json.dumps(reading.record)) == reading.record


def test_steps_behind_an_error_are_labelled_where_that_is_asked_for(tmp_path):
    reading = opened(TraceOrigin("synthetic", size=30, consequences=True), tmp_path)
    traces = list(reading)
    assert traces == list(generate(0, 30, consequences=True))
    assert all(None not in trace.labels for trace in traces)
    assert reading.record["consequences"] is True


def test_drills_have_the_share_of_wrong_equations_that_is_asked_for(tmp_path):
    reading = opened(TraceOrigin("drills", size=30, wrong=0.0), tmp_path)
    assert {label for trace in reading for label in trace.labels} == {Label.POS}
    assert reading.record["wrong"] == 0.0
    usual = opened(TraceOrigin("drills", size=30), tmp_path)
    assert {label for trace in usual for label in trace.labels} == {Label.NEG, Label.POS}
    assert "wrong" not in usual.record


def test_a_table_is_read_by_the_names_of_its_columns(lines, tmp_path):
    lines("pool.jsonl", {"instruction": "2 + 3?", "output": "We add.\n2 + 3 = 5.", "right": [1, 1], "source": "x"})
    columns = ColumnMap(problem="instruction", steps="output", labels="right", labels_as="validity")
    (trace,) = opened(TraceOrigin("columns", path="pool.jsonl", columns=columns), tmp_path)
    assert (trace.problem, trace.substeps) == ("2 + 3?", ("We add.", "2 + 3 = 5."))
    assert [step.valid for step in trace.steps] == [True, True]
    wrong = TraceOrigin("columns", path="pool.jsonl", columns=ColumnMap(problem="question", steps="output"))
    with refused():
        list(opened(wrong, tmp_path))


def test_a_file_is_looked_up_beside_the_configuration(lines, tmp_path):
    path = lines("sub/a.jsonl", plain_row(1), plain_row(2))
    reading = opened(TraceOrigin("jsonl", path="sub/a.jsonl"), tmp_path)
    assert [trace.id for trace in reading] == ["1", "2"]
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    assert reading.record == {
        "kind": "jsonl",
        "path": "sub/a.jsonl",
        "files": [{"path": "sub/a.jsonl", "sha256": sha256, "rows": 2, "bad": []}],
    }


def test_a_file_is_looked_up_in_the_data_folder_next(lines, tmp_path, monkeypatch):
    lines("data/a.jsonl", plain_row(1))
    lines("data/b.jsonl", plain_row(2))
    lines("here/b.jsonl", plain_row(3))
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "data"))

    def ids(name):
        return [trace.id for trace in opened(TraceOrigin("jsonl", path=name), tmp_path / "here")]

    assert ids("a.jsonl") == ["1"]
    assert ids("b.jsonl") == ["3"]
    # The first folder that has any is the one that is meant.
    assert ids("*.jsonl") == ["3"]
    monkeypatch.setenv(DATA_VARIABLE, "")
    with refused():
        ids("a.jsonl")


def test_a_glob_means_files_in_order_of_name(lines, tmp_path):
    for name in ("b1", "a2", "a1", "sub/a3"):
        lines(f"{name}.jsonl", plain_row(int(name[-1])))
    (tmp_path / "a9.jsonl").mkdir()
    reading = opened(TraceOrigin("jsonl", path="a*.jsonl"), tmp_path)
    assert [trace.id for trace in reading] == ["1", "2"]
    assert [file["path"] for file in reading.record["files"]] == ["a1.jsonl", "a2.jsonl"]
    everything = opened(TraceOrigin("jsonl", path="**/*.jsonl"), tmp_path)
    assert sorted(trace.id for trace in everything) == ["1", "1", "2", "3"]
    # A name that reads like a glob is a name.
    lines("x[1].jsonl", plain_row(5))
    assert [trace.id for trace in opened(TraceOrigin("jsonl", path="x[1].jsonl"), tmp_path)] == ["5"]


def test_a_record_names_no_folder_of_the_machine(lines, tmp_path):
    reading = opened(TraceOrigin("jsonl", path=str(lines("a.jsonl", plain_row(1)))), tmp_path / "elsewhere")
    assert len(list(reading)) == 1
    assert (reading.record["path"], reading.record["files"][0]["path"]) == ("a.jsonl", "a.jsonl")


def test_a_missing_file_is_found_out_before_anything_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "data"))
    with refused():
        opened(TraceOrigin("jsonl", path="no*.jsonl"), tmp_path)
    (tmp_path / "folder").mkdir()
    with refused():
        opened(TraceOrigin("jsonl", path="folder"), tmp_path)


BAD = {"id": 2, "problem": "P", "steps": []}


def test_a_bad_row_can_be_left_out_and_is_listed(lines, tmp_path):
    lines("a.jsonl", plain_row(1), BAD, plain_row(3), BAD)
    lines("b.jsonl", plain_row(4))
    reading = opened(TraceOrigin("jsonl", path="?.jsonl", skip_bad=True), tmp_path)
    assert [trace.id for trace in reading] == ["1", "3", "4"]
    assert [(file["rows"], file["bad"]) for file in reading.record["files"]] == [(2, ["line 2", "line 4"]), (1, [])]


def test_a_file_of_bad_rows_alone_is_of_another_kind(lines, tmp_path):
    lines("a.jsonl", plain_row(1), plain_row(2))
    reading = opened(TraceOrigin("prmbench", path="a.jsonl", skip_bad=True), tmp_path)
    with refused():
        list(reading)


def test_a_broken_file_cannot_be_skipped_like_a_bad_row(lines, tmp_path):
    lines("a.jsonl", plain_row(1), "{")
    with refused():
        list(opened(TraceOrigin("jsonl", path="a.jsonl", skip_bad=True), tmp_path))


def test_real_files_hold_bad_rows(data):
    path = "prmbench/prm800k_train_p1_first400_4o_missing_condition.jsonl"
    with refused():
        list(opened(TraceOrigin("prmbench", path=path), data))
    reading = opened(TraceOrigin("prmbench", path=path, skip_bad=True), data)
    # 400 rows, of which 16 name an error step past the end.
    assert len(list(reading)) == 384
    assert len(reading.record["files"][0]["bad"]) == 16
    assert reading.record["files"][0]["bad"][:2] == ["line 2", "line 4"]


def test_problems_need_no_solutions(lines, tmp_path):
    lines("a.jsonl", {"problem": "P", "answer": "1"}, {"question": "Q"}, {"problem": "R", "question": "no"})
    reading = open_problems(TraceOrigin("problems", path="a.jsonl"), tmp_path, KEY)
    assert list(reading) == ["P", "Q", "R"]
    assert (reading.record["kind"], reading.record["files"][0]["rows"]) == ("problems", 3)
    lines("b.jsonl", {"problem": "P"}, {"text": "Q"})
    with refused():
        list(open_problems(TraceOrigin("problems", path="b.jsonl"), tmp_path, KEY))


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A store with a dataset "sums", which is the one that is meant where none is named."""
    address = str(tmp_path / "store.db")
    monkeypatch.setenv("STEPSIGHT_DB", address)
    with open_store(address) as store:
        add(store, SAMPLES)
    return address


def test_a_dataset_of_the_store_gives_its_traces_with_their_gold(stored, tmp_path):
    reading = opened(TraceOrigin("store", dataset="sums"), tmp_path)
    traces = list(reading)
    assert [format_trace(trace) for trace in traces] == [format_trace(trace) for trace in SAMPLES]
    assert [trace.digest for trace in traces] == [trace.digest for trace in SAMPLES]
    assert reading.record == {"kind": "store", "dataset": "sums", "traces": len(SAMPLES), "sha256": digest(SAMPLES)}


def test_a_dataset_that_is_not_there_is_found_out_at_once(stored, tmp_path):
    with refused():
        opened(TraceOrigin("store", dataset="none"), tmp_path)


@pytest.fixture
def campaigns(tmp_path, monkeypatch):
    """A store with a campaign "first" over the dataset "sums", that three people have labelled."""
    address = str(tmp_path / "store.db")
    monkeypatch.setenv("STEPSIGHT_DB", address)
    with open_store(address) as store:
        labelled(store)
        yield store


@pytest.mark.parametrize("named", [None, "first"])
def test_consensus_takes_the_place_of_gold(campaigns, tmp_path, named):
    reading = opened(TraceOrigin("store", dataset="sums", labels="relabel", campaign=named), tmp_path)
    traces = {trace.id: [None if label is None else label.text for label in trace.labels] for trace in reading}
    assert traces == {id: list(labels) for id, labels in AGREED.items()}
    # 2 + 3 + 1 steps: one was decided, one is unsure.
    steps = {"adjudicated": 1, "majority": 4, "unsure": 1}
    assert reading.record["relabel"] == {"campaign": "first", "steps": steps}
    assert reading.record["traces"] == 3
    gold = opened(TraceOrigin("store", dataset="sums"), tmp_path)
    assert len(list(gold)) == 3
    assert gold.record["sha256"] != reading.record["sha256"]


def test_a_campaign_that_is_not_there_or_not_clear_is_found_out_at_once(campaigns, tmp_path):
    with refused():
        opened(TraceOrigin("store", dataset="sums", labels="relabel", campaign="none"), tmp_path)
    campaign(campaigns, None, name="second")
    with refused():
        opened(TraceOrigin("store", dataset="sums", labels="relabel"), tmp_path)
    with refused():
        list(opened(TraceOrigin("store", dataset="sums", labels="relabel", campaign="second"), tmp_path))
    add(campaigns, SAMPLES, "unlabelled")
    with refused():
        opened(TraceOrigin("store", dataset="unlabelled", labels="relabel"), tmp_path)


SYNTHETIC = {"kind": "synthetic", "size": 10}
FILE = {"kind": "prm800k", "path": "a.jsonl"}
STORED = {"kind": "store", "dataset": "mine"}
RELABELLED = STORED | {"labels": "relabel"}


def check(sources, benchmarks=()):
    return validate(Data, {"sources": sources, "benchmarks": list(benchmarks)})


@each("kind", [*KINDS, *ALIASES])
def test_every_kind_of_file_can_be_a_source_and_a_benchmark(kind):
    check([{"kind": kind, "path": "a.jsonl"}], [{"kind": kind, "path": "b.jsonl"}])


def test_stored_and_generated_origins_may_be_both_and_problems_only_a_benchmark():
    others = [{"kind": "synthetic", "size": 5, "seed": 1}, {"kind": "store", "dataset": "b"}]
    data = check([SYNTHETIC, STORED], [*others, {"kind": "problems", "path": "c.jsonl"}])
    assert data.benchmarks[2] == TraceOrigin("problems", path="c.jsonl")


BAD_SOURCES = [
    {"kind": "prm80k"},
    {"kind": "xyzzy"},
    {"kind": "problems", "path": "a"},
    {"kind": "synthetic"},
    {"kind": "prm800k"},
    {"kind": "jsonl", "path": ""},
    {"kind": "store"},
    FILE | {"families": ["age"]},
    FILE | {"seed": 0},
    FILE | {"size": 5},
    SYNTHETIC | {"path": "a"},
    SYNTHETIC | {"skip_bad": True},
    STORED | {"skip_bad": True},
    SYNTHETIC | {"size": 0},
    SYNTHETIC | {"families": ["xyzzy"]},
    SYNTHETIC | {"families": []},
    FILE | {"weight": float("nan")},
    FILE | {"weight": float("inf")},
    FILE | {"rho": float("nan")},
    FILE | {"corrupt": 0.5, "online": True},
    {"kind": "drills"},
    {"kind": "drills", "size": 5, "families": ["age"]},
    {"kind": "drills", "size": 5, "wrong": 1.5},
    SYNTHETIC | {"wrong": 0.0},
    FILE | {"consequences": True},
    {"kind": "columns", "path": "a"},
    {"kind": "columns", "path": "a", "columns": {"problem": 1, "steps": "s"}},
    FILE | {"columns": {"problem": "q", "steps": "s"}},
    FILE | {"valid": "neu"},
    STORED | {"labels": "human"},
    STORED | {"campaign": "one"},
    FILE | {"labels": "relabel"},
]


@each("source", BAD_SOURCES)
def test_a_source_that_cannot_be_is_named(source):
    # It is the second one.
    with refused():
        check([SYNTHETIC, source])


def test_a_benchmark_that_cannot_be_is_named():
    with refused():
        check([FILE], [{"kind": "store", "dataset": "a"}, {"kind": "problems"}])


@pytest.mark.parametrize(
    ("source", "benchmark"),
    [
        (FILE, FILE | {"skip_bad": True}),
        (FILE, {"kind": "problems", "path": "a.jsonl"}),
        (STORED, STORED),
        # Its problems are the same, whoever labelled them.
        (RELABELLED, STORED),
        # The first ten traces of both are the same.
        (SYNTHETIC, {"kind": "synthetic", "size": 500, "seed": 0}),
    ],
)
def test_a_source_cannot_be_its_own_benchmark(source, benchmark):
    with refused():
        check([{"kind": "jsonl", "path": "other"}, source], [benchmark])


@pytest.mark.parametrize("kind", ["prm800k", "plain", "jsonl"])
def test_only_some_sources_can_be_continued(kind):
    check_continued(check([SYNTHETIC, {"kind": kind, "path": "a"}]))
    check_continued(check([STORED]))
    with pytest.raises(PydanticCustomError, match="no source can hold the rest of a solution"):
        check_continued(check([SYNTHETIC, {"kind": "prmbench", "path": "a"}]))


def test_a_source_is_described_by_where_it_is_from():
    texts = ["prm800k a.jsonl", "store mine", "store mine relabelled", "synthetic seed 0"]
    assert [describe(source) for source in check([FILE, STORED, RELABELLED, SYNTHETIC]).sources] == texts
