"""Model cards: the authors' description of an evaluator with its figures; shipped evaluators have theirs with
them."""

import re
from collections.abc import Iterator
from functools import cache

from markupsafe import Markup

from stepsight.app.markup.markdown import markdown_html
from stepsight.app.web.html import macro
from stepsight.core.models.location import shipped_evaluators
from stepsight.core.places import asset

_TEMPLATE = "evaluators/card.html"
_CODE = " " * 4
_RULE = re.compile(r"\|[:| ]*-[-:| ]*\|")


@cache
def card_html(name: str) -> Markup:
    """The card of a shipped evaluator; "" for any other."""
    if name not in shipped_evaluators():
        return Markup()
    path = asset("evaluators", name) / "README.md"
    return Markup().join(_blocks(path.read_text(encoding="utf-8"))) if path.is_file() else Markup()


def _blocks(text: str) -> Iterator[Markup]:
    """Headings, tables, code and paragraphs, separated by empty lines. The first heading is the name."""
    for block in re.split(r"\n[ \t]*\n", text.strip("\n")):
        if block.startswith("# "):
            continue
        if block.startswith("## "):
            yield macro(_TEMPLATE, "heading", block.removeprefix("## "))
        elif block.startswith("|"):
            yield _table(block.splitlines())
        elif block.startswith(_CODE):
            yield macro(_TEMPLATE, "code", "\n".join(line.removeprefix(_CODE) for line in block.splitlines()))
        else:
            yield macro(_TEMPLATE, "paragraph", markdown_html(" ".join(block.split())))


def _table(lines: list[str]) -> Markup:
    """A table whose first line is its head, omitted if it has no words."""
    rows = [
        [markdown_html(cell.strip()) for cell in line.strip().strip("|").split("|")]
        for line in lines
        if not _RULE.fullmatch(line.strip())
    ]
    head = rows[0] if any(rows[0]) else []
    return macro(_TEMPLATE, "table", head, rows[1:])
