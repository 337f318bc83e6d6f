from dataclasses import replace

import pytest

from stepsight.core.errors import UserError
from stepsight.storage.importers import ALIASES, KINDS
from stepsight.training.data.sources_config import Data, Origin, Source, check_data, describe

SYNTHETIC = Source("synthetic", size=10)
FILE = Source("prm800k", path="a.jsonl")
STORED = Source("store", dataset="mine")


@pytest.mark.parametrize("kind", [*KINDS, *ALIASES])
def test_every_kind_of_file_can_be_a_source_and_a_benchmark(kind):
    check_data(Data((Source(kind, path="a.jsonl"),), (Origin(kind, path="b.jsonl"),)), "random")


def test_what_is_no_file_can_be_both_too_and_a_list_of_problems_a_benchmark():
    others = (Origin("synthetic", size=5, seed=1), Origin("store", dataset="b"), Origin("problems", path="c.jsonl"))
    check_data(Data((SYNTHETIC, STORED), others), "as-labelled")


BAD_SOURCES = [
    (Source("prm80k", path="a"), r"kind is 'prm80k', expected one of synthetic, drills, .* Did you mean prm800k\?"),
    (Source("xyzzy"), r"kind is 'xyzzy', expected one of synthetic, drills, store, mr-math-invalid, .*jsonl\.$"),
    (Source("problems", path="a"), "kind is 'problems', expected one of"),
    (Source("synthetic"), r"size is missing; a source of kind synthetic needs it"),
    (Source("prm800k"), r"path is missing; a source of kind prm800k needs it"),
    (Source("jsonl", path=""), r"path is missing"),
    (Source("store"), r"dataset is missing"),
    (replace(FILE, families=("age",)), r"families means nothing for kind prm800k\. It takes path, skip_bad"),
    (replace(FILE, seed=0), r"seed means nothing for kind prm800k"),
    (replace(FILE, size=5), r"size means nothing for kind prm800k"),
    (replace(SYNTHETIC, path="a"), r"path means nothing for kind synthetic\. It takes size, seed, families"),
    (replace(SYNTHETIC, skip_bad=True), r"skip_bad means nothing for kind synthetic"),
    (replace(STORED, skip_bad=True), r"skip_bad means nothing for kind store\. It takes dataset"),
    (replace(SYNTHETIC, size=0), r"size is 0, expected more than 0"),
    (replace(SYNTHETIC, families=("xyzzy",)), r"xyzzy"),
    (replace(SYNTHETIC, families=()), r"families"),
    (replace(FILE, weight=0.0), r"weight is 0\.0, expected more than 0"),
    (replace(FILE, weight=float("nan")), r"weight is nan, expected more than 0"),
    (replace(FILE, weight=float("inf")), r"weight is inf, expected more than 0"),
    (replace(FILE, rho=1.5), r"rho is 1\.5, expected 0 to 1"),
    (replace(FILE, rho=-0.5), r"rho is -0\.5, expected 0 to 1"),
    (replace(FILE, rho=float("nan")), r"rho is nan, expected 0 to 1"),
    (replace(FILE, corrupt=1.5), r"corrupt is 1\.5, expected 0 to 1"),
    (replace(FILE, corrupt=float("nan")), r"corrupt is nan, expected 0 to 1"),
    (replace(FILE, corrupt=0.5, online=True), r"corrupt and data\.sources\[1\]\.online do not go together"),
    (Source("drills"), r"size is missing; a source of kind drills needs it"),
    (Source("drills", size=5, families=("age",)), r"families means nothing for kind drills"),
    (replace(FILE, valid="neu"), r"valid is 'neu', expected one of pos, unlabelled"),
]


@pytest.mark.parametrize(("source", "message"), BAD_SOURCES)
def test_a_source_that_cannot_be_is_named(source, message):
    # It is the second one.
    with pytest.raises(UserError, match=message) as caught:
        check_data(Data((SYNTHETIC, source)), "random")
    assert str(caught.value).startswith("data.sources[1]")


def test_a_benchmark_that_cannot_be_is_named():
    with pytest.raises(UserError, match=r"^data\.benchmarks\[1\]\.path is missing"):
        check_data(Data((FILE,), (Origin("store", dataset="a"), Origin("problems"))), "random")


@pytest.mark.parametrize(
    ("source", "benchmark"),
    [
        (FILE, Origin("prm800k", path="a.jsonl", skip_bad=True)),
        (FILE, Origin("problems", path="a.jsonl")),
        (STORED, Origin("store", dataset="mine")),
        # The first ten traces of both are the same.
        (SYNTHETIC, Origin("synthetic", size=500, seed=0)),
    ],
)
def test_a_source_cannot_be_its_own_benchmark(source, benchmark):
    with pytest.raises(UserError, match=r"^data\.benchmarks\[0\] is data\.sources\[1\], of which nothing"):
        check_data(Data((Source("jsonl", path="other"), source), (benchmark,)), "random")


def test_no_source_is_refused():
    with pytest.raises(UserError, match=r"^data\.sources is empty"):
        check_data(Data(()), "random")


@pytest.mark.parametrize("kind", ["prm800k", "plain", "jsonl"])
def test_only_some_sources_can_be_continued(kind):
    check_data(Data((SYNTHETIC, Source(kind, path="a"))), "continued")
    check_data(Data((STORED,)), "continued")
    with pytest.raises(UserError, match="no source can hold the rest of a solution"):
        check_data(Data((SYNTHETIC, Source("prmbench", path="a"))), "continued")


def test_a_source_is_described_by_where_it_is_from():
    assert describe(FILE) == "prm800k a.jsonl"
    assert describe(STORED) == "store mine"
    assert describe(SYNTHETIC) == "synthetic seed 0"


RELABELLED = replace(STORED, labels="relabel")


def test_labels_by_people_are_a_matter_of_the_store():
    check_data(Data((RELABELLED, replace(RELABELLED, dataset="other", campaign="one"))), "random")
    check_data(Data((replace(STORED, labels="gold"),)), "random")
    assert describe(RELABELLED) == "store mine relabelled"
    for source, message in (
        (replace(STORED, labels="human"), r"labels is 'human', expected one of gold, relabel"),
        (replace(STORED, campaign="one"), r"campaign goes with labels: relabel\. Give data\.sources\[0\]\.labels"),
        (replace(FILE, labels="relabel"), r"labels means nothing for kind prm800k"),
    ):
        with pytest.raises(UserError, match=message):
            check_data(Data((source,)), "random")
    # Its problems are the same, whoever labelled them.
    with pytest.raises(UserError, match="of which nothing would be left"):
        check_data(Data((RELABELLED,), (Origin("store", dataset="mine"),)), "random")
