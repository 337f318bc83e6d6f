"""Conditions on metadata, on both databases and with names that mean something to one of them."""

from typing import Any

from sqlalchemy import update

from stepsight.core.trace import Trace
from stepsight.core.validation import validate
from stepsight.storage.browse import metadata
from stepsight.storage.browse.browse import MOST_SHOWN, browse, count_field, list_fields, list_matching
from stepsight.storage.browse.filters import MOST_META, TraceFilter
from stepsight.storage.browse.metadata import MetaCondition
from stepsight.storage.database.schema import TraceRow
from tests.cases import each
from tests.messages import refused
from tests.storage.samples import add

HOSTILE = (
    "a.b", 'q"uote', "it's", "back\\slash", "$", "$.x", "[0]", "a=b", "x>=1", "~", "%", "_", "ключ", "名前",
    "e\u0301", "two words", " outer ", "new\nline", "tab\t", "{}", "'; DROP TABLE traces; --", ":field", "?",
    "<script>", "true", "0", "-1", "#", "/", "\u202eright", "\U0001f600",
)  # fmt: skip


def made(metas, start=0):
    return [Trace.of(f"Problem {i}", ["It is."], id=str(i), meta=meta) for i, meta in enumerate(metas, start)]


def found(store, dataset_id, *conditions):
    """The places of the traces that meet conditions on metadata."""
    where = validate(TraceFilter, {"meta": list(conditions)})
    places = [row.position for row in browse(store, dataset_id, where, limit=1000).rows]
    assert len(places) == len(list_matching(store, dataset_id, where))
    return places


METAS: list[dict[str, Any]] = [
    {"source": "MATH", "level": 3, "tags": ["hard", "algebra"], "passed": True},
    {"source": "math", "level": 3.0, "tags": [], "passed": False},
    {"source": "GSM8K", "level": 4.5, "tags": ["hard", "hard", 7, None, {"a": [1]}]},
    {"source": "", "level": "3", "tags": "hard", "passed": None},
    {"source": None, "level": -1, "inner": {"a": 1, "b": "MATH é"}},
    {},
]


@each(
    "conditions, expected",
    [
        (["source=MATH"], [0]),
        (["source~math"], [0, 1]),
        (["source="], [3]),
        (["source=nowhere"], []),
        (["elsewhere=MATH"], []),
        # 3 and 3.0 are the same number; "3" is a text that reads the same.
        (["level=3"], [0, 1, 3]),
        (["level=3.0"], [0, 1]),
        (["level>=3"], [0, 1, 2]),
        (["level<=3"], [0, 1, 4]),
        (["level>=3", "level<=4"], [0, 1]),
        (["level>=-1e0"], [0, 1, 2, 4]),
        (["passed=true"], [0]),
        (["passed=false"], [1]),
        # A list has each of its items, once.
        (["tags=hard"], [0, 2, 3]),
        (["tags=7"], [2]),
        (["tags>=7"], [2]),
        (["tags=hard", "tags=algebra"], [0]),
        (['tags={"a": [1]}'], [2]),
        (["inner~math É"], [4]),
        (['inner={"a": 1, "b": "MATH é"}'], [4]),
        (["source~math", "level=3", "passed=false"], [1]),
    ],
)
def test_which_traces_meet_conditions(store, conditions, expected):
    dataset_id = add(store, made(METAS))[0].dataset_id
    assert found(store, dataset_id, *conditions) == expected


def test_fields_are_offered_with_their_values(store):
    dataset_id = add(store, made(METAS))[0].dataset_id
    add(store, made([{"other": 1}]), "others")
    fields = {field.name: (field.traces, field.is_number) for field in list_fields(store, dataset_id)}
    assert fields == {
        "level": (5, False), "source": (4, False), "tags": (4, False), "passed": (2, False), "inner": (1, False),
    }  # fmt: skip
    tags = count_field(store, dataset_id, TraceFilter(), "tags")
    assert tags.values == [("hard", 3), ("7", 1), ("algebra", 1), ('{"a": [1]}', 1)]
    assert (tags.is_whole, tags.least, tags.most) == (True, 7, 7)
    # Counted among what the other conditions leave; its own are not among them.
    where = TraceFilter(meta=("tags=algebra", "level>=4"))
    assert dict(count_field(store, dataset_id, where, "tags").values)["hard"] == 1
    assert count_field(store, dataset_id, where, "tags").values[-1] == ("algebra", 0)
    level = count_field(store, dataset_id, TraceFilter(), "level")
    assert (level.values, level.least, level.most) == ([("3", 3), ("-1", 1), ("4.5", 1)], -1, 4.5)
    nothing = count_field(store, dataset_id, TraceFilter(), "nowhere")
    assert (nothing.values, nothing.is_whole, nothing.least) == ([], True, None)


def test_many_and_long_values_are_found_as_well(store, monkeypatch):
    monkeypatch.setattr(metadata, "_MOST_VALUES", 60)
    metas = [{"number": i, "text": f"value {i}", "long": f"{'x' * 300} {i}"} for i in range(100)]
    dataset_id = add(store, made(metas))[0].dataset_id
    text = count_field(store, dataset_id, TraceFilter(), "text")
    assert (len(text.values), text.is_whole) == (MOST_SHOWN, False)
    assert count_field(store, dataset_id, TraceFilter(), "long").values == []
    assert found(store, dataset_id, "text=value 99") == [99]
    assert found(store, dataset_id, "text~VALUE 9") == [9, *range(90, 100)]
    assert found(store, dataset_id, "long~x 7") == [7, *range(70, 80)]
    assert found(store, dataset_id, "number=99") == [99]
    assert found(store, dataset_id, "number>=90", "number<=91.5") == [90, 91]
    number = count_field(store, dataset_id, TraceFilter(), "number")
    assert (number.is_whole, number.least, number.most) == (False, 0, 99)


def test_names_mean_nothing_to_a_database(store):
    metas: list[dict[str, Any]] = [{name: f"Value of {place}" for place, name in enumerate(HOSTILE)}, {"plain": 1}]
    dataset_id = add(store, made(metas))[0].dataset_id
    assert {field.name for field in list_fields(store, dataset_id)} == {*HOSTILE, "plain"}
    for place, name in enumerate(HOSTILE):
        assert found(store, dataset_id, str(MetaCondition(name, "=", f"Value of {place}"))) == [0]
        assert found(store, dataset_id, str(MetaCondition(name, "~", "VALUE"))) == [0]
        assert count_field(store, dataset_id, TraceFilter(), name).values == [(f"Value of {place}", 1)]


def test_very_long_and_very_many_values_are_not_offered(store):
    metas: list[dict[str, Any]] = [
        {"x" * 10_000: 1, "y" * 200: 1, **{f"of {i} {j}": j for j in range(30)}} for i in range(10)
    ]
    dataset_id = add(store, made(metas))[0].dataset_id
    fields = list_fields(store, dataset_id)
    assert len(fields) == metadata.MOST_FIELDS
    assert fields[0].name == "y" * 200
    assert max(len(field.name) for field in fields) == 200
    assert found(store, dataset_id, "of 3 7=7") == [3]


def test_text_with_a_nul_byte_is_no_reason_to_fail(sqlite_store):
    store = sqlite_store
    traces = add(store, made([{"b": "MATH"}, {"b": "MATH"}, {}]))
    # What is imported today has none.
    for trace, meta in zip(traces, [{"a": "x\x00y", "b": "MATH"}, {"b": "MATH"}, {"a\x00": 1}], strict=True):
        with store.write() as session:
            session.execute(update(TraceRow).where(TraceRow.id == trace.trace_id).values(meta=meta))
    dataset_id = traces[0].dataset_id
    assert {field.name for field in list_fields(store, dataset_id)} >= {"b"}
    assert found(store, dataset_id, "b=MATH") == [0, 1]


def test_changed_metadata_is_read_again(store):
    dataset_id = add(store, made([{"source": "MATH"}]))[0].dataset_id
    assert found(store, dataset_id, "source=MATH") == [0]
    add(store, made([{"source": "MATH", "new": 1}], start=1))
    assert found(store, dataset_id, "source=MATH") == [0, 1]
    assert [field.name for field in list_fields(store, dataset_id)] == ["source", "new"]


def test_counts_and_what_is_left_without_a_condition(sqlite_store):
    dataset_id = add(sqlite_store, made(METAS))[0].dataset_id
    page = browse(sqlite_store, dataset_id, TraceFilter(meta=("source=MATH", "level=-1"), gold="missing"))
    assert page.total == 0
    assert page.loosened == {"meta source=MATH": 1, "meta level=-1": 1, "gold": 0}
    assert page.counts["gold"]["missing"] == 0


@each("name", [*HOSTILE, "plain", "two words", '"', "\\"])
def test_a_condition_is_read_as_it_was_written(name):
    for operator, value in (("=", "a=b~c"), ("=", ""), ("~", " x\n"), (">=", "-1.5"), ("<=", "1e9")):
        condition = MetaCondition(name, operator, value)  # type: ignore[arg-type]
        if name:
            assert MetaCondition.read(str(condition)) == condition


def test_how_conditions_are_spelled():
    assert MetaCondition.read(" two words >=3") == MetaCondition("two words", ">=", "3")
    assert str(MetaCondition("two words", ">=", "3")) == "two words>=3"
    assert str(MetaCondition("a=b", "=", "3")) == '"a=b"=3'


@each(
    "written",
    [
        "source",
        "=MATH",
        "a<b",
        '"a=1',
        r'"\x"=1',
        "a>=b",
        "a<=nan",
        "a~ ",
        "a\x00=1",
        r'"\u0000"=1',
        r'"\ud800"=1',
        "x" * 3000 + "=1",
    ],
)
def test_a_condition_that_there_is_not(written):
    with refused():
        validate(TraceFilter, {"meta": [written]})


def test_too_many_conditions_are_refused():
    with refused():
        validate(TraceFilter, {"meta": [f"a={i}" for i in range(MOST_META + 1)]})
    assert TraceFilter(meta=("a=1", "a=1", " b =2")).meta == ("a=1", "b=2")


def test_conditions_are_stored():
    where = TraceFilter(meta=("a=1", "b~x"))
    stored = where.stored()
    assert TraceFilter.model_validate(stored) == where
    assert set(stored) == {"meta"}
