import pytest

from core.errors import UserError
from core.trace import Trace
from storage.filters import Gold, TraceFilter
from storage.queries import page_traces
from storage.store import Store
from tests.storage.samples import add


def found(store: Store, where: TraceFilter) -> list[str]:
    page = page_traces(store, 1, where)
    assert page.total == len(page.rows)
    return [row.id for row in page.rows]


@pytest.mark.parametrize(
    ("gold", "ids"),
    [
        ("any", ["error", "clean", "missing", "first"]),
        ("error", ["error", "first"]),
        ("clean", ["clean"]),
        ("missing", ["missing"]),
    ],
)
def test_gold(store: Store, gold: Gold, ids: list[str]) -> None:
    add(store)
    assert found(store, TraceFilter(gold)) == ids


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", ["error", "clean", "missing", "first"]),
        ("  ", ["error", "clean", "missing", "first"]),
        ("what is", ["error", "clean", "missing", "first"]),
        ("WHAT IS 2", ["clean"]),
        ("it is", ["error", "clean", "missing"]),
        ("so 1 + 1 = 3", ["error"]),
        ("nowhere", []),
        # A text is looked for within one sub-step: "Done." follows in the next.
        ("3. Done", []),
    ],
)
def test_text_in_problem_or_substep_whatever_the_case(store: Store, text: str, ids: list[str]) -> None:
    add(store)
    assert found(store, TraceFilter(text=text)) == ids


@pytest.mark.parametrize("text", ["%", "_", "\\", "100%_", "'", '"', "/", "--", "\\%", "*", "[a]", ":x", "%(x)s"])
def test_every_character_stands_for_itself(store: Store, text: str) -> None:
    add(
        store,
        [Trace.of(f"before {text} after", ["s"], id="with"), Trace.of("before 100 percent after", ["s"], id="w/o")],
    )
    assert found(store, TraceFilter(text=text)) == ["with"]


@pytest.mark.parametrize("text", ["größe", "GRÖßE", "Größe", "ΠΡΌΒΛΗΜΑ", "πρόβλημα", "задача", "ЗАДАЧА", "数学"])
def test_case_in_other_scripts(store: Store, text: str) -> None:
    add(store, [Trace.of("Die Größe", ["Πρόβλημα, Задача, 数学"], id="with"), Trace.of("x", ["y"], id="without")])
    assert found(store, TraceFilter(text=text)) == ["with"]


def test_both_conditions_hold(store: Store) -> None:
    add(store)
    assert found(store, TraceFilter("error", "it is")) == ["error"]


def test_what_cannot_be_searched_for() -> None:
    with pytest.raises(UserError, match=r"gold filter is 'yes'. Expected any, error, clean, missing"):
        TraceFilter("yes")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="the text to search for holds a NUL byte"):
        TraceFilter(text="a\x00")
    with pytest.raises(UserError, match=r"too long. Use at most 1,000"):
        TraceFilter(text="x" * 1001)
