"""Built-in stepsight.json values for public step evaluators whose repositories have no such file.

They are in `assets/cards.yaml`. A folder's own stepsight.json overrides the values key by key. Does not need
PyTorch.
"""

import json
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files.yaml_files import parse_yaml
from stepsight.core.hubs.public import find_unstated
from stepsight.core.paths import asset

Card = Mapping[str, Any]
"""The values of a stepsight.json."""

_STATE = (
    "State it in a stepsight.json, in the model's folder or for the fetch (stepsight evaluators fetch --card),"
    " such as"
)
_EXAMPLES: Card = {"attention": "causal", "template": {"separator": "\n"}}


@cache
def _cards() -> Mapping[str, Card]:
    """Return the built-in values by repository."""
    entries = parse_yaml(asset("cards.yaml").read_text(encoding="utf-8"))
    return {repo: entry["card"] for entry in entries for repo in entry["models"]}


def _of_name(name: str) -> list[str]:
    """Return the listed repositories with this name, of any owner."""
    return [repo for repo in _cards() if repo.partition("/")[2].casefold() == name.casefold()]


def known_card(name: str) -> Card:
    """Return the built-in values for a repository, given as `OWNER/NAME`, or for a folder called `NAME`.

    The result is empty if there are none. A folder's name is ignored if several owners have a model of that name. A
    repository of another owner is not taken for the listed one.
    """
    if "/" not in name and len(repos := _of_name(name)) == 1:
        name = repos[0]
    return next((card for repo, card in _cards().items() if repo.casefold() == name.casefold()), {})


def with_known(name: str, own: Card) -> dict[str, Any]:
    """Merge the built-in values for `name` with `own`, the content of a folder's stepsight.json. Values in `own`
    take precedence.

    The built-in values are ignored if `own` names a different format. Raises `UserError` if the list says that no
    source states how the evaluator is read, and `own` does not state it either.
    """
    _check_stated(name, own)
    known = known_card(name)
    if "format" in own and own["format"] != known.get("format", own["format"]):
        return dict(own)
    card = {**known, **own}
    if isinstance(own.get("template"), Mapping) and "template" in known:
        card["template"] = {**known["template"], **own["template"]}
    return card


def check_separator(place: str, card: Card) -> None:
    """Raise `UserError` if `card`, the values for a token classifier, names neither a separator nor another token
    at which steps are read. TRL's trainer accepts any text as separator and does not record it."""
    template = card.get("template")
    template = template if isinstance(template, Mapping) else {}
    if "separator" in template or template.get("read", "separator") != "separator":
        return
    raise UserError(
        f"{place}: its separator is not stated, the text after a step at which a token classifier judges it.",
        f"It is that of its training, step_separator in TRL. {_STATE} {_example(['template'])}.",
    )


def namesake(name: str) -> str:
    """Return the listed `OWNER/NAME` with the same name as the repository `name` but another owner, or ""."""
    repos = _of_name(name.partition("/")[2])
    return repos[0] if len(repos) == 1 and repos[0].casefold() != name.casefold() else ""


def _check_stated(name: str, own: Card) -> None:
    public = find_unstated(name)
    if public is None or all(key in own for key in public.asks or ("format",)):
        return
    reason = public.missing[0].lower() + public.missing[1:]
    if not public.asks:
        raise UserError(
            f"{name} cannot be read: {reason}",
            "Score with its authors' code, and read the scores with stepsight import-scores.",
        )
    raise UserError(
        f"{name} cannot be read as it is: {reason}", f"Ask its authors. {_STATE} {_example(public.asks)}."
    )


def _example(keys: Collection[str]) -> str:
    return json.dumps({key: value for key, value in _EXAMPLES.items() if key in keys})
