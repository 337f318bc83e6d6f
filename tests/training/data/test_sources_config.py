import pytest
from pydantic_core import PydanticCustomError

from stepsight.core.errors import UserError
from stepsight.core.validation import validate
from stepsight.storage.importers import ALIASES, KINDS
from stepsight.training.data.sources_config import Data, TraceOrigin, check_continued, describe
from tests.cases import each

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
    ({"kind": "prm80k"}, r"\.kind is 'prm80k', expected one of synthetic, drills, .* Did you mean prm800k\?"),
    (
        {"kind": "xyzzy"},
        r"\.kind is 'xyzzy', expected one of synthetic, drills, store, mr-math-.*jsonl, columns\.$",
    ),
    ({"kind": "problems", "path": "a"}, r"\.kind is 'problems', expected one of"),
    ({"kind": "synthetic"}, r": size is missing; a source of kind synthetic needs it"),
    ({"kind": "prm800k"}, r": path is missing; a source of kind prm800k needs it"),
    ({"kind": "jsonl", "path": ""}, r": path is missing"),
    ({"kind": "store"}, r": dataset is missing"),
    (FILE | {"families": ["age"]}, r": families means nothing for kind prm800k\. It takes path, skip_bad"),
    (FILE | {"seed": 0}, r": seed means nothing for kind prm800k"),
    (FILE | {"size": 5}, r": size means nothing for kind prm800k"),
    (SYNTHETIC | {"path": "a"}, r": path means nothing for kind synthetic\. It takes size, seed, families, conseq"),
    (SYNTHETIC | {"skip_bad": True}, r": skip_bad means nothing for kind synthetic"),
    (STORED | {"skip_bad": True}, r": skip_bad means nothing for kind store\. It takes dataset"),
    (SYNTHETIC | {"size": 0}, r"\.size is 0, expected more than 0"),
    (SYNTHETIC | {"families": ["xyzzy"]}, r"xyzzy"),
    (SYNTHETIC | {"families": []}, r"families"),
    (FILE | {"weight": 0.0}, r"\.weight is 0\.0, expected more than 0"),
    (FILE | {"weight": float("nan")}, r"\.weight is nan, expected a finite number"),
    (FILE | {"weight": float("inf")}, r"\.weight is inf, expected a finite number"),
    (FILE | {"rho": 1.5}, r"\.rho is 1\.5, expected 1 or less"),
    (FILE | {"rho": -0.5}, r"\.rho is -0\.5, expected 0 or more"),
    (FILE | {"rho": float("nan")}, r"\.rho is nan, expected 1 or less"),
    (FILE | {"corrupt": 1.5}, r"\.corrupt is 1\.5, expected 1 or less"),
    (FILE | {"corrupt": 0.5, "online": True}, r": corrupt and online do not go together"),
    ({"kind": "drills"}, r": size is missing; a source of kind drills needs it"),
    ({"kind": "drills", "size": 5, "families": ["age"]}, r": families means nothing for kind drills"),
    ({"kind": "drills", "size": 5, "wrong": 1.5}, r"\.wrong is 1\.5, expected 1 or less"),
    (SYNTHETIC | {"wrong": 0.0}, r": wrong means nothing for kind synthetic"),
    (FILE | {"consequences": True}, r": consequences means nothing for kind prm800k"),
    ({"kind": "columns", "path": "a"}, r": columns is missing; a source of kind columns needs it"),
    (
        {"kind": "columns", "path": "a", "columns": {"problem": 1, "steps": "s"}},
        r"\.columns\.problem is 1, expected text",
    ),
    (FILE | {"columns": {"problem": "q", "steps": "s"}}, r": columns means nothing for kind prm800k"),
    (FILE | {"valid": "neu"}, r"\.valid is 'neu', expected one of pos, unlabelled"),
    (STORED | {"labels": "human"}, r"\.labels is 'human', expected one of gold, relabel"),
    (STORED | {"campaign": "one"}, r": campaign goes with labels: relabel\. Give labels too"),
    (FILE | {"labels": "relabel"}, r": labels means nothing for kind prm800k"),
]


@each("source, message", BAD_SOURCES)
def test_a_source_that_cannot_be_is_named(source, message):
    # It is the second one.
    with pytest.raises(UserError, match=rf"^sources\[1\].*{message}"):
        check([SYNTHETIC, source])


def test_a_benchmark_that_cannot_be_is_named():
    with pytest.raises(UserError, match=r"^benchmarks\[1\]: path is missing"):
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
    with pytest.raises(UserError, match=r"^benchmarks\[0\] is sources\[1\], of which nothing"):
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
