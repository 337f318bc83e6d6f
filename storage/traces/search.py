r"""Searching the texts of traces.

A search matches any part of a text and ignores case. It finds `3/4`, `x^2`, `\frac{1}{2}` and the middle of a word.
Equivalent signs count as the same, and white space means as little as to a reader: `x-3` also finds a typographic
minus, `2+3` finds `2 + 3`, and a phrase is found across a line break. The index therefore contains the searchable
form of each text (`core.text.signs`). A trace is also found by its id.

The index holds every sequence of three characters. In SQLite it is an FTS5 index with the trigram tokenizer. In
PostgreSQL it is a GIN index on arrays of these sequences, because PostgreSQL's own full-text search knows only
words and would find none of these examples. Searches for fewer than three characters read the texts themselves.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import TextClause, text
from sqlalchemy.orm import Session

from stepsight.core.text.signs import pattern, searchable

INDEXED_LENGTH = 3
# Separates the problem and the sub-steps of a trace, so that no match extends across two of them.
_BETWEEN = "\x1f"
_ESCAPE = "\\"

_INDEX = text("INSERT INTO trace_search (rowid, text) VALUES (:id, :text)")
_INDEX_EVERYTHING = text(
    "INSERT INTO trace_search (rowid, text) SELECT id, search_form(problem || :between ||"
    " (SELECT group_concat(text, :between) FROM (SELECT text FROM substeps WHERE trace_id = traces.id"
    " ORDER BY step, position))) FROM traces"
)
_NAMED = text("SELECT id FROM traces WHERE external_id = :name AND id BETWEEN :first AND :last")
# One text with all ids: fetching a row for each id would take longer than finding them.
_FOUND = "SELECT group_concat(rowid, ' ') FROM trace_search WHERE rowid BETWEEN :first AND :last AND "
_PHRASE = text(f"{_FOUND} trace_search MATCH :phrase")
_SHORT = text(f"{_FOUND} text LIKE :pattern ESCAPE '{_ESCAPE}'")
# SQLite's LIKE ignores the case of ASCII letters only.
_SHORT_FOLDED = text(f"{_FOUND} unicode_lower(text) LIKE :pattern ESCAPE '{_ESCAPE}'")
_EITHER = (
    "SELECT id FROM traces WHERE {problem} AND id BETWEEN :first AND :last"
    " UNION SELECT trace_id FROM substeps WHERE {text} AND trace_id BETWEEN :first AND :last"
)
_BY_INDEX = "search_trigrams({column}) @> search_trigrams(:text) AND search_form({column}) ILIKE :pattern"
_BY_READING = "{column} ~* :pattern"


def index_texts(session: Session, traces: Iterable[tuple[int, Iterable[str]]]) -> None:
    """Add stored traces, given as (database id, texts), to the search index. The texts are the problem and all
    sub-steps. PostgreSQL updates its index by itself. A trigger removes deleted traces from the index."""
    if session.get_bind().dialect.name == "sqlite":
        rows = [{"id": id, "text": searchable(_BETWEEN.join(texts))} for id, texts in traces]
        session.execute(_INDEX, rows)


def index_everything(session: Session) -> None:
    """Add all traces of a store to its empty search index, for example after copying them into the store."""
    if session.get_bind().dialect.name == "sqlite":
        session.execute(_INDEX_EVERYTHING, {"between": _BETWEEN})


def find_text(session: Session, trace_ids: NDArray[np.int64], phrase: str) -> NDArray[np.bool_]:
    """Return a mask of shape (n,) that selects the traces of a dataset in which the problem or a sub-step contains
    the text `phrase`, and the one whose id it is."""
    if not len(trace_ids):
        return np.zeros(0, np.bool_)
    bounds = {"first": int(trace_ids.min()), "last": int(trace_ids.max())}
    named = session.scalars(_NAMED, bounds | {"name": phrase.strip()}).all()
    phrase = searchable(phrase).strip()
    if session.get_bind().dialect.name == "sqlite":
        if len(phrase) >= INDEXED_LENGTH:
            statement, values = _PHRASE, {"phrase": '"' + phrase.replace('"', '""') + '"'}
        elif phrase.isascii():
            statement, values = _SHORT, {"pattern": _pattern(phrase)}
        else:
            statement, values = _SHORT_FOLDED, {"pattern": _pattern(phrase.lower())}
        matches = np.fromstring(session.scalar(statement, values | bounds) or "", np.int64, sep=" ")
    else:
        statement, values = _postgresql(phrase)
        matches = np.array(session.scalars(statement, values | bounds).all(), np.int64)
    return np.isin(trace_ids, [*matches, *named])


def _postgresql(phrase: str) -> tuple[TextClause, dict[str, Any]]:
    if len(phrase) >= INDEXED_LENGTH:
        condition, values = _BY_INDEX, {"text": phrase, "pattern": _pattern(phrase)}
    else:
        # Computing the search form of every text would take twenty times as long.
        condition, values = _BY_READING, {"pattern": pattern(phrase).pattern}
    return text(_EITHER.format(**{name: condition.format(column=name) for name in ("problem", "text")})), values


def _pattern(phrase: str) -> str:
    for special in (_ESCAPE, "%", "_"):
        phrase = phrase.replace(special, _ESCAPE + special)
    return f"%{phrase}%"
