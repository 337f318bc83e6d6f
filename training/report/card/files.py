"""Writing a card as text, Markdown and JSON."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from stepsight.core.escaping import escape_markdown
from stepsight.core.metrics.bootstrap import Value
from stepsight.training.report.card.card import EvaluatorCard
from stepsight.training.report.table_files import to_markdown
from stepsight.training.report.tables import Table, to_text


def card_text(card: EvaluatorCard) -> str:
    """Return a card as text for a terminal."""
    parts = [f"{card.title}\n\n{card.lead}\n", *([f"{card.warning}\n"] if card.warning else [])]
    for title, contents in card.written:
        parts.append(f"\n{title}\n\n")
        parts.append("\n".join(to_text(one) if isinstance(one, Table) else f"{one}\n" for one in contents))
    return "".join(parts)


def card_markdown(card: EvaluatorCard) -> str:
    """Return a card as a section of a model card, in Markdown."""
    parts = [f"## {escape_markdown(card.title)}\n", *map(_paragraph, filter(None, [card.lead, card.warning]))]
    for title, contents in card.written:
        parts.append(f"### {title}\n")
        parts += [to_markdown(one) if isinstance(one, Table) else _paragraph(one) for one in contents]
    return "\n".join(parts)


def _paragraph(text: str) -> str:
    return f"{escape_markdown(text)}\n"


def card_json(card: EvaluatorCard) -> dict[str, Any]:
    """Return a card as JSON. Numbers have all digits; figures are fractions with their intervals."""
    sections = [
        {
            "title": title,
            "text": [one for one in contents if isinstance(one, str)],
            "tables": [_table_json(one) for one in contents if isinstance(one, Table)],
        }
        for title, contents in card.written
    ]
    head = {"evaluator": card.evaluator.name, "fingerprint": card.evaluator.fingerprint}
    dataset = card.evaluation.dataset
    return head | {"dataset": dataset.name, "lead": card.lead, "warning": card.warning, "sections": sections}


def _table_json(table: Table) -> dict[str, Any]:
    keys = [column.key for column in table.columns]
    rows = [
        {key: cell.as_json() if isinstance(cell, Value) else cell for key, cell in zip(keys, row, strict=True)}
        for row in table.rows
    ]
    return {"name": table.name, "caption": table.caption, "rows": rows, "notes": list(table.notes)}


CARD_WRITERS: Mapping[str, Callable[[EvaluatorCard], str]] = {
    "text": card_text,
    "markdown": card_markdown,
    "json": lambda card: json.dumps(card_json(card), indent=1, allow_nan=False, ensure_ascii=False) + "\n",
}
"""The functions that write a card, by format."""
