"""Browse's filters as options of commands."""

from argparse import Namespace
from typing import get_args

from stepsight.app.options.command import Parser, describe, read_fields
from stepsight.core.validation import validate
from stepsight.storage.browse.filters import NamedFilter, TraceFilter
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import find_by_name

_ABOUT = {"evaluator": "the evaluator whose verdicts, changes and scores are meant"}


def add_conditions(parser: Parser) -> None:
    """Add an option for each field of `NamedFilter`."""
    conditions = parser.add_argument_group("which traces", "Those that meet every condition, as in Browse.")
    for name, field in NamedFilter.model_fields.items():
        about = _ABOUT.get(name) or str(field.description)
        text = f"{about[0].lower()}{about[1:]}".rstrip(".")
        # The filter parses numbers itself, with better messages.
        kind = field.annotation if get_args(field.annotation) else str
        option = f"--{name.replace('_', '-')}"
        conditions.add_argument(option, **describe(option, kind, text, field.default))


def read_conditions(args: Namespace, store: Store) -> tuple[TraceFilter, int | None]:
    """Return the filter given by the options, and the database id of `--evaluator`, or None without it. Raises
    `UserError` if a value is invalid or an evaluator does not exist."""
    where = validate(NamedFilter, read_fields(args, NamedFilter.model_fields))
    named = (where.evaluator, where.against, where.other)
    ids = [find_by_name(store, name).id if name else None for name in named]
    return where.with_ids(*ids), ids[0]
