import pytest
from pydantic_core import PydanticCustomError

from stepsight.core.validation import validate
from stepsight.storage.importers import ALIASES, KINDS
from stepsight.training.data.sources_config import Data, TraceOrigin, check_continued, describe
from tests.cases import each
from tests.messages import refused

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
    FILE | {"weight": 0.0},
    FILE | {"weight": float("nan")},
    FILE | {"weight": float("inf")},
    FILE | {"rho": 1.5},
    FILE | {"rho": -0.5},
    FILE | {"rho": float("nan")},
    FILE | {"corrupt": 1.5},
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


def test_labels_by_people_are_a_matter_of_the_store():
    check([RELABELLED, RELABELLED | {"dataset": "other", "campaign": "one"}])
    check([STORED | {"labels": "gold"}])


def test_a_source_is_described_by_where_it_is_from():
    texts = ["prm800k a.jsonl", "store mine", "store mine relabelled", "synthetic seed 0"]
    assert [describe(source) for source in check([FILE, STORED, RELABELLED, SYNTHETIC]).sources] == texts
