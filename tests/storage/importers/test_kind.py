from storage.importers.kind import json_lines


def test_rows_come_with_their_place() -> None:
    assert list(json_lines([b'{"a": 1}\n', b"\n", b'{"b": 2}'], "f.jsonl")) == [
        ("f.jsonl line 1", {"a": 1}),
        ("f.jsonl line 3", {"b": 2}),
    ]
