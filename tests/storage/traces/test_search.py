import numpy as np
from sqlalchemy import text

from stepsight.core.text.signs import BREAKS, INVISIBLE, PLAIN, UNSPACED, pattern, searchable
from stepsight.core.trace import Trace
from stepsight.storage.browse.browse import browse
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.traces.search import find_text
from tests.cases import each
from tests.storage.samples import add, many


def found(store, wanted):
    page = browse(store, 1, TraceFilter(text=wanted))
    assert page.total == len(page.rows)
    return [row.id for row in page.rows]


@each(
    "wanted, ids",
    [
        ("", ["error", "clean", "missing", "first"]),
        ("  ", ["error", "clean", "missing", "first"]),
        ("what is", ["error", "clean", "missing", "first"]),
        ("WHAT IS 2", ["clean"]),
        (" it is ", ["error", "clean", "missing"]),
        ("so 1 + 1 = 3", ["error"]),
        # The middle of a word, and what is too short for the index.
        ("ha", ["error", "clean", "missing", "first"]),
        ("hat", ["error", "clean", "missing", "first"]),
        ("3", ["error", "missing"]),
        ("nowhere", []),
        # A text is looked for within one sub-step: "Done." follows in the next.
        ("3. Done", []),
        ("3.Done", []),
        (".D", []),
    ],
)
def test_text_in_problem_or_substep_whatever_the_case(store, wanted, ids):
    add(store)
    assert found(store, wanted) == ids


MATHS = ("3/4", r"\frac{1}{2}", "x^2", "x_{n+1}", "a \\cdot b", "$5 and $6", "{}", "->", "|x|", "1,000", "=", "^2")


@each("wanted", MATHS)
def test_formulas(store, wanted):
    traces = [Trace.of(f"Of {part} in a text", ["s"], id=part) for part in MATHS]
    add(store, [*traces, Trace.of("Of frac 1 2, 3 4, x 2 and 1000", ["s"], id="words")])
    expected = [part for part in MATHS if wanted in part]
    assert found(store, wanted) == expected


SIGNS = ("%", "_", "\\", "100%_", "'", '"', '""', "/", "--", "\\%", "*", "[a]", ":x", "%(x)s")
QUERIES = ("a AND b", "a OR b", "NOT a", "NEAR(a b)", "text:a", "(a", "-a b", "a*")


def test_every_character_stands_for_itself(store):
    texts = [f"before {special} after" for special in (*SIGNS, *QUERIES, "100 percent")]
    add(store, [Trace.of(text, ["s"], id=text) for text in texts])
    for special in (*SIGNS, *QUERIES):
        assert found(store, special) == [text for text in texts if special in text]


OTHER = ("größe", "GRÖßE", "Größe", "ß", "ΠΡΌΒΛΗΜΑ", "πρόβλημα", "задача", "ЗАДАЧА", "数学好", "学", "with ")


@each("wanted", OTHER)
def test_case_in_other_scripts_and_a_whole_id(store, wanted):
    add(store, [Trace.of("Die Größe", ["Πρόβλημα, Задача, 数学好"], id="with"), Trace.of("x", ["y"], id="without")])
    assert found(store, wanted) == ["with"]


def test_any_part_of_any_text_is_found(store):
    """Every substring of three texts against Python's own search."""
    texts = {"one": "Let x^2 = 4, so x = 2.", "two": "Half of \\frac{3}{4} is 3/8.", "three": "αβγ β 44"}
    add(store, [Trace.of(body, ["-"], id=id) for id, body in texts.items()])
    parts = {body[i : i + n] for body in texts.values() for i in range(len(body) - 5) for n in (1, 2, 3, 5)}
    parts = {part for part in parts if part == part.strip()}
    assert len(parts) > 90
    ids = np.array([1, 2, 3])
    for part in sorted(parts):
        with store.read() as session:
            hits = find_text(session, ids, part)
        assert hits.tolist() == [part.lower() in body.lower() for body in texts.values()], part


def test_other_datasets_and_deleted_traces_are_not_found(store):
    add(store, many(6), "first")
    ids = np.array([trace.trace_id for trace in add(store, many(6), "second")])
    with store.write() as session:
        session.execute(text("DELETE FROM traces WHERE dataset_id = 2 AND position = 2"))
    with store.read() as session:
        assert find_text(session, ids, "step of").tolist() == [True, True, False, True, True, True]
        assert find_text(session, ids, "Problem 4").tolist() == [False] * 4 + [True, False]
        assert find_text(session, np.zeros(0, np.int64), "step").tolist() == []


def test_the_index_is_used(store):
    """That it finds the same without the index is tested above: here, that the database looks into it."""
    add(store, many(3))
    explain = {"sqlite": "EXPLAIN QUERY PLAN ", "postgresql": "EXPLAIN "}[store.engine.dialect.name]
    with store.read() as session:
        if store.engine.dialect.name == "sqlite":
            query = "SELECT rowid FROM trace_search WHERE trace_search MATCH '\"oblem\"'"
            assert "VIRTUAL TABLE INDEX" in str(session.execute(text(explain + query)).all())
            return
        session.execute(text("SET LOCAL enable_seqscan = off"))
        query = "SELECT trace_id FROM substeps WHERE search_trigrams(text) @> search_trigrams('oblem')"
        assert "ix_search_text" in str(session.execute(text(explain + query)).all())


TYPED = (
    "Nora's", "nora’s", "7 + 9", "7\xa0+\xa09", "y-4", "y−4", "y–4", "touché", "TOUCHE\u0301", "25 000", "z=8",
    "ｚ＝８", "6\u200b*6", "6×6", "C\xadD", "cd", '"so"', "“so”", "y", "é", "١٢", "12",
)  # fmt: skip


def test_signs_are_found_however_they_are_typed(store):
    body = "Nora\u2019s 7\xa0+\u202f9, y\u22124, touche\u0301, 25\u202f000, ｚ＝８, 6\u200b·6, C\xadD, ”so„ ١٢"
    traces = [Trace.of(body, ["-"], id="problem"), Trace.of("-", [body], id="step"), Trace.of("-", ["-"], id="no")]
    add(store, traces)
    for wanted in TYPED:
        assert found(store, wanted) == ["problem", "step"], wanted


SPACED = (
    "2+3", "2 + 3", "2 +\n3", "x−3", "x - 3", "(a,b)", "( a, b )", "f(x)=9", "f(x) = 9", "two lines",
    "two\r\nlines", "a :\tb", "4%", "$ 5", "+3", "+ 3", "t w",
)  # fmt: skip


def test_white_space_is_found_however_it_is_typed(store):
    body = {"wide": "2 + 3, x \u2212 3, ( a , b ), f (x)\n= 9, two\n\n lines, a : b, 4 %, $ 5, t  w"}
    body["narrow"] = "2+3,x-3,(a,b),f(x)=9,two lines,a:b,4%,$5,t\tw"
    add(store, [Trace.of("-", [text], id=id) for id, text in body.items()])
    add(store, [Trace.of("2", ["+ 3", "twolines x 3 tw"], id="no")], "other")
    for wanted in SPACED:
        assert found(store, wanted) == ["wide", "narrow"], wanted
        assert all(pattern(wanted).search(text) for text in body.values()), wanted


def test_postgresql_has_the_same_searchable_form(postgresql_store):
    signs = "".join(chr(code) for code in PLAIN) + INVISIBLE + BREAKS + UNSPACED
    written = [f"a{sign}e\u0301{sign}b {sign} {sign}\n{sign} {sign}a.\n b" for sign in signs]
    with postgresql_store.read() as session:
        form = session.scalars(text("SELECT search_form(t) FROM unnest(CAST(:w AS text[])) AS t"), {"w": written})
        assert form.all() == [searchable(one) for one in written]
