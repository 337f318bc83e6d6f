"""The registry: finding a kind, and telling which one a row is of."""

import json

from stepsight.core.errors import UserError
from stepsight.storage.importers import KINDS, find_kind, guess_kind, read_traces
from tests.cases import each
from tests.messages import refused
from tests.storage.samples import invalid_row, plain_row, redundant_row


def test_every_kind_is_found_by_its_name_and_plain_by_another() -> None:
    assert set(KINDS) >= {
        "mr-math-invalid",
        "mr-math-redundant",
        "mr-gsm8k",
        "prm800k",
        "prmbench",
        "processbench",
        "perturbation",
        "math-shepherd",
        "stepwise",
        "plain",
    }
    assert all(find_kind(name).name == name for name in KINDS)
    assert find_kind("jsonl") is KINDS["plain"]


def test_an_unknown_kind_names_the_others() -> None:
    with refused():
        find_kind("csv")


def test_a_row_is_recognised_by_its_fields() -> None:
    assert guess_kind(invalid_row()) == "mr-math-invalid"
    assert guess_kind(redundant_row()) == "mr-math-redundant"
    assert guess_kind(plain_row(1)) == "plain"
    assert guess_kind({"id": 1, "scores": []}) is None


@each("kind", sorted(KINDS))
@each("row", [invalid_row(), redundant_row(), plain_row(1)])
def test_a_file_of_another_kind_says_which(kind: str, row: dict[str, object]) -> None:
    traces = read_traces(KINDS[kind], [json.dumps(row).encode()], "f")
    likely = guess_kind(row)
    if likely == kind:
        assert len(list(traces)) == 1
    else:
        with refused():
            list(traces)


def test_a_file_that_is_all_of_another_kind_is_not_counted_as_bad_rows() -> None:
    lines = [json.dumps(redundant_row(id=i)).encode() for i in range(30)]
    bad: list[str] = []

    def on_bad(where: str, error: UserError, content: bytes) -> None:
        bad.append(where)

    with refused():
        list(read_traces(KINDS["plain"], lines, "f", on_bad))
    with refused():
        list(read_traces(KINDS["plain"], lines[:1], "f", on_bad))
    assert bad == []
    # One row of the kind among them, and the others are bad rows of it.
    mixed = [*lines[:3], json.dumps(plain_row(1)).encode(), *lines[3:]]
    assert [where for where, _ in read_traces(KINDS["plain"], mixed, "f", on_bad)] == ["f line 4"]
    assert len(bad) == 30


def test_reading_goes_row_by_row() -> None:
    def lines() -> object:
        yield json.dumps(plain_row(1)).encode()
        raise AssertionError("read too far")

    assert next(read_traces(KINDS["plain"], lines(), "f"))[1].id == "1"  # type: ignore[arg-type]
