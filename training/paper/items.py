"""The tables, figures and numbers of the paper, section by section."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import isnan
from typing import Any

from stepsight.core.paths import asset

_FILE = "paper.json"
_NUMBER = re.compile(r"([+−-]?)([\d,]+(?:\.(\d+))?(?:e-?\d+)?)")


@dataclass(frozen=True)
class FigureOrigin:
    """The origin of figures: a name, the command that computes them, and what it needs besides a checkout."""

    name: str
    command: str
    needs: str = ""


@dataclass(frozen=True)
class PaperItem:
    """An item of the paper: a table or figure with its LaTeX `label`, or a number with its `printed` form.

    `of` names the facts (`training.paper.facts`) from which a number is computed. If `of` names one fact, the
    number is that fact. If it names two, the number is their difference or, if `how` is `percent`, the first as a
    percentage of the second. If `how` is `largest drop`, `of` holds one or more pairs, and the number is the
    largest difference within a pair.
    """

    what: str
    source: FigureOrigin
    label: str = ""
    printed: str = ""
    of: tuple[str, ...] = ()
    how: str = ""

    @property
    def is_number(self) -> bool:
        return not self.label

    @property
    def value(self) -> float:
        """The printed number as a float."""
        sign, digits, _ = self._parts()
        return float(digits.replace(",", "")) * (-1 if sign in ("−", "-") else 1)

    def shown(self, value: float) -> str:
        """Return a value formatted like the printed number. NaN becomes "undefined"."""
        if isnan(value):
            return "undefined"
        sign, digits, decimals = self._parts()
        if "e" in digits:
            return f"{value:.0e}".replace("e-0", "e-")
        text = f"{abs(value):,.{len(decimals or '')}f}"
        minus = "−" if round(value, len(decimals or "")) < 0 else ""
        return (minus or ("+" if sign == "+" else "")) + text

    def agrees(self, value: float) -> bool | None:
        """True if a value rounds to the printed number or, where the paper states an upper bound, lies below it.
        None if the paper states only an approximate number."""
        if self.how == "largest drop":
            return value < self.value + 0.05 if "at most" in self.printed else value < self.value
        if self.what.endswith((", about", ", near")):
            return None
        if self.what.endswith(", below"):
            return value < self.value
        return self.shown(value) == self.shown(self.value)

    def _parts(self) -> tuple[str, str, str | None]:
        found = _NUMBER.search(self.printed)
        assert found is not None, self.printed
        sign, digits, decimals = found.groups()
        return sign, digits, decimals

    def computed(self, facts: Mapping[str, float]) -> float | None:
        """Compute the number from facts. Returns None if a fact is missing, and NaN if a fact is NaN."""
        if not self.of or any(name not in facts for name in self.of):
            return None
        values = [facts[name] for name in self.of]
        if self.how == "percent":
            return 100 * values[0] / values[1]
        if self.how == "largest drop":
            return max(first - second for first, second in zip(values[::2], values[1::2], strict=True))
        return values[0] if len(values) == 1 else values[0] - values[1]


@dataclass(frozen=True)
class PaperSection:
    """A section or appendix of the paper, with its items in order."""

    number: str
    title: str
    items: tuple[PaperItem, ...]


@cache
def paper_sections() -> tuple[PaperSection, ...]:
    """Return every section of the paper that has a table, a figure or a number."""
    body = json.loads(asset("reference", _FILE).read_text(encoding="utf-8"))
    sources = {name: FigureOrigin(name, **values) for name, values in body["sources"].items()}
    return tuple(
        PaperSection(one["section"], one["title"], tuple(_item(values, sources) for values in one["items"]))
        for one in body["sections"]
    )


def _item(values: Mapping[str, Any], sources: Mapping[str, FigureOrigin]) -> PaperItem:
    return PaperItem(
        values["what"],
        sources[values["source"]],
        label=values.get("table") or values.get("figure") or "",
        printed=values.get("printed", ""),
        of=tuple(values.get("of", ())),
        how=values.get("how", ""),
    )
