"""Writing a card as text, Markdown, LaTeX, JSON and as a result for the hub."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

import stepsight
from stepsight.core.errors import UserError
from stepsight.core.escaping import escape_markdown
from stepsight.core.hubs.eval_results import eval_results_yaml, make_entry
from stepsight.core.metrics.bootstrap import Value
from stepsight.training.report.card.card import EvaluatorCard
from stepsight.training.report.table_files import escape_latex, to_latex, to_markdown
from stepsight.training.report.tables import Table, to_text

HUB = "hub"
"""The format of a file for `.eval_results` on the hub."""


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


def card_latex(card: EvaluatorCard) -> str:
    """Return a card in LaTeX: a paragraph, then a table each."""
    paragraphs = [
        f"\\paragraph{{{escape_latex(card.title)}}} {escape_latex(card.lead)}",
        escape_latex(card.warning),
    ]
    for title, contents in card.written:
        texts = [escape_latex(one) for one in contents if isinstance(one, str)]
        paragraphs += [f"\\paragraph{{{escape_latex(title)}}} {' '.join(texts)}"] if texts else []
    return "\n\n".join([*filter(None, paragraphs), *map(to_latex, card.tables)])


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


_OWN_FIGURES = {"processbench": "processbench_f1", "prmbench": "prmscore", "agentprocessbench": "step_micro_acc"}


def _own_figure(card: EvaluatorCard) -> str:
    first = next(row for row in card.evaluation.rows if not row.is_baseline)
    return _OWN_FIGURES.get(card.evaluation.dataset.kind, first.beats_in)


def hub_figure(card: EvaluatorCard, name: str | None = None) -> tuple[float, str]:
    """Return a figure of the evaluator in percent, and notes on how it was measured.

    It belongs to the first kind of error and mode. By default, it is the benchmark's own figure or, without one,
    the figure that is compared with the baselines. Raises `UserError` if the evaluator has no such figure.
    """
    rows = [row for row in card.evaluation.rows if not row.is_baseline]
    asked = name or _own_figure(card)
    row = next((row for row in rows if asked in row.measured), rows[0])
    known = ", ".join(hub_figures(card)) or "none"
    if asked not in row.measured or not row.measured[asked].value.exists:
        reason = f" ({row.measured[asked].value.reason})" if asked in row.measured else ""
        raise UserError(f"{card.title}: there is no figure {asked!r:.40}{reason}.", f"It has {known}.")
    value = row.measured[asked].value
    ends = "" if np.isnan(value.low) else f", 95 % interval {100 * value.low:.1f} to {100 * value.high:.1f}"
    notes = f"{asked} in percent, {row.mode}{ends}, {row.n_traces:,} traces, StepSight {stepsight.__version__}"
    return round(100 * value.number, 2), f"{notes}, fingerprint {card.evaluator.fingerprint[:12]}"


def hub_figures(card: EvaluatorCard) -> list[str]:
    """Return the names of the evaluator's figures, the benchmark's own first."""
    rows = [row for row in card.evaluation.rows if not row.is_baseline]
    names = dict.fromkeys(name for row in rows for name, one in row.measured.items() if one.value.exists)
    return sorted(names, key=lambda name: name != _own_figure(card))


def hub_file(card: EvaluatorCard, figure: str | None, dataset: str, task: str, **more: str | None) -> str:
    """Return a file for `.eval_results` on the hub with one figure, by default the benchmark's own.

    `dataset` and `task` name the benchmark on the hub. `more` holds other fields of the hub client's
    `EvalResultEntry`. Raises `UserError` if there is no such figure, or if the hub's schema refuses a value.
    """
    value, notes = hub_figure(card, figure)
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    return eval_results_yaml(make_entry(dataset, task, value, date=today, notes=notes, **more))


CARD_WRITERS: Mapping[str, Callable[[EvaluatorCard], str]] = {
    "text": card_text,
    "markdown": card_markdown,
    "latex": card_latex,
    "json": lambda card: json.dumps(card_json(card), indent=1, allow_nan=False, ensure_ascii=False) + "\n",
}
"""The functions that write a card, by format."""
