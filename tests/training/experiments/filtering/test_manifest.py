from pathlib import Path

from stepsight.training.experiments.filtering.output import summary

MANIFEST = {
    "pool": {"files": [], "rows": 5276},
    "evaluator": {"name": "mini-bidir"},
    "thresholds": {"validity": 0.5, "redundancy": 0.15},
    "solutions": {"scored": 5276, "valid": 5000, "redundant": 300, "valid_and_not_redundant": 4800},
    "left_out": {"rows": 0, "first": []},
    "benchmarks": [{"name": "c/test.jsonl", "rows": 0}],
    "match": "val+red",
    "size": 4800,
    "subsets": {"val+red": {}, "val": {}},
}


def test_it_is_told_in_lines():
    assert summary(MANIFEST, Path("out")).splitlines() == [
        "5,276 solutions judged by mini-bidir: 5,000 valid (from 0.5), 300 redundant (from 0.15), 4,800 valid and "
        "not redundant.",
        "4,800 of them in each of val+red, val.",
    ]


def test_more_than_there_are_is_told():
    lines = summary(MANIFEST | {"match": 5000}, Path("out")).splitlines()
    assert lines[-1] == "5,000 were wanted, and there are no more to choose from: all subsets have as many."
    assert len(summary(MANIFEST | {"match": 100, "size": 100}, Path("out")).splitlines()) == 2


def test_rows_left_out_are_told():
    lines = summary(MANIFEST | {"left_out": {"rows": 1, "first": []}}, Path("out")).splitlines()
    assert lines[-1] == f"1 row was left out; {Path('out', 'manifest.json')} says why."


def test_problems_of_benchmarks_are_told():
    found = [{"name": "a/test.jsonl", "rows": 1}, {"name": "b/test.jsonl", "rows": 1200}]
    lines = summary(MANIFEST | {"benchmarks": found}, Path("out")).splitlines()
    assert lines[-2:] == [
        "1 row is a problem of a/test.jsonl, and left out.",
        "1,200 rows are problems of b/test.jsonl, and left out.",
    ]


def test_the_manifest_omits_redundancy_that_was_not_judged():
    text = summary(MANIFEST | {"solutions": {"scored": 2, "valid": 1}}, Path("out"))
    assert text.splitlines()[0] == "2 solutions judged by mini-bidir: 1 valid (from 0.5)."
