"""Rebuild the search index so that `2+3` finds `2 + 3` and a phrase is found across a line break."""

from collections.abc import Iterable

from alembic import op

from stepsight.core.text.signs import BREAKS, INVISIBLE, PLAIN, UNSPACED

revision = "0027_searchable_texts"
down_revision = "0026_qualifications"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.execute("UPDATE trace_search SET text = search_form(text) WHERE text <> search_form(text)")
        return
    signs = [*map(chr, PLAIN), *INVISIBLE]
    # `translate` removes the characters that have no counterpart, which are the invisible ones.
    translated = f"translate($1, {_literal(signs)}, {_literal(PLAIN.values())})"
    is_ascii = "octet_length($1) = char_length($1)"
    plain = f"CASE WHEN {is_ascii} THEN $1 ELSE normalize({translated}, NFC) END"
    form = f"regexp_replace({plain}, '{_any_of(' ' + BREAKS)}+', ' ', 'g')"
    form = f"regexp_replace({form}, ' ?({_any_of(UNSPACED)}) ?', '\\1', 'g')"
    for index in ("ix_search_problem", "ix_search_text"):
        op.drop_index(index)
    _function("search_form", "text", f"SELECT {form}")
    # It does not call the other function, which would not be found when a dump is restored.
    _function(
        "search_trigrams",
        "text[]",
        "SELECT coalesce(array_agg(DISTINCT substr(form, i, 3)), '{}')"
        f" FROM (SELECT lower({form}) AS form OFFSET 0) AS forms, generate_series(1, char_length(form) - 2) AS i",
    )
    op.execute("DROP FUNCTION search_plain(text)")
    op.execute("CREATE INDEX ix_search_problem ON traces USING gin (search_trigrams(problem))")
    op.execute("CREATE INDEX ix_search_text ON substeps USING gin (search_trigrams(text))")


def _literal(signs: Iterable[str]) -> str:
    return "U&'" + "".join(f"\\+{ord(sign):06X}" for sign in signs) + "'"


def _any_of(signs: str) -> str:
    return "[" + "".join(f"\\u{ord(sign):04X}" for sign in signs) + "]"


def _function(name: str, result: str, body: str) -> None:
    head = f"CREATE OR REPLACE FUNCTION {name}(text) RETURNS {result} LANGUAGE sql IMMUTABLE PARALLEL SAFE"
    op.execute(f"{head} AS $$ {body} $$")
