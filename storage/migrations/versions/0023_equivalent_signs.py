"""Rebuild the search index so that equivalent signs match, such as a curly and a straight apostrophe."""

from collections.abc import Iterable

from alembic import op

from stepsight.core.text.signs import INVISIBLE, PLAIN

revision = "0023_equivalent_signs"
down_revision = "0022_step_falls"
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
    for index in ("ix_search_problem", "ix_search_text"):
        op.drop_index(index)
    _function("search_plain", "text", f"SELECT {plain}")
    # It does not call the other function, which would not be found when a dump is restored.
    _function(
        "search_trigrams",
        "text[]",
        "SELECT coalesce(array_agg(DISTINCT substr(form, i, 3)), '{}')"
        f" FROM (SELECT lower({plain}) AS form OFFSET 0) AS forms, generate_series(1, char_length(form) - 2) AS i",
    )
    op.execute("CREATE INDEX ix_search_problem ON traces USING gin (search_trigrams(problem))")
    op.execute("CREATE INDEX ix_search_text ON substeps USING gin (search_trigrams(text))")


def _literal(signs: Iterable[str]) -> str:
    return "U&'" + "".join(f"\\+{ord(sign):06X}" for sign in signs) + "'"


def _function(name: str, result: str, body: str) -> None:
    head = f"CREATE OR REPLACE FUNCTION {name}(text) RETURNS {result} LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE"
    op.execute(f"{head} AS $$ {body} $$")
