from stepsight.core.label import Label
from stepsight.storage.importers import read_traces
from stepsight.storage.importers.plain import KIND


def test_a_row_of_the_plain_format() -> None:
    line = b'{"id": 3, "problem": "P", "steps": ["a", ["b", "c"]], "labels": ["pos", null], "generator": "g"}\n'
    ((where, trace),) = read_traces(KIND, [b"\n", line], "f.jsonl")
    assert where == "f.jsonl line 2"
    assert (trace.id, trace.problem, trace.substeps) == ("3", "P", ("a", "b", "c"))
    assert trace.labels == (Label.POS, None)
    assert trace.meta == {"generator": "g"}
