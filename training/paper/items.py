"""The paper's tables, figures and numbers, by section."""

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
    """The origin of figures, under a `name`: a `command`, and its `needs` beyond a checkout, "" for none."""

    name: str
    command: str
    needs: str = ""


@dataclass(frozen=True)
class PaperItem:
    """A table or a figure by its `label` in the paper's source, or a number, `printed` as it stands.

    `of` are names of facts (`training.paper.facts`). With one, a number is its value; with two it is the
    difference, the `percent` that the first is of the second, or, with several pairs, the `largest drop`.
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
        """The printed number."""
        sign, digits, _ = self._parts()
        return float(digits.replace(",", "")) * (-1 if sign in ("−", "-") else 1)

    def shown(self, value: float) -> str:
        """Another value in the format of the printed one; "undefined" for NaN."""
        if isnan(value):
            return "undefined"
        sign, digits, decimals = self._parts()
        if "e" in digits:
            return f"{value:.0e}".replace("e-0", "e-")
        text = f"{abs(value):,.{len(decimals or '')}f}"
        minus = "−" if round(value, len(decimals or "")) < 0 else ""
        return (minus or ("+" if sign == "+" else "")) + text

    def agrees(self, value: float) -> bool | None:
        """True if a value equals the printed one to its last digit; None if the text is only approximate."""
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
        """The number computed from these facts; None if one is missing, NaN if one is NaN."""
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
    """A section or appendix with its items in order."""

    number: str
    title: str
    items: tuple[PaperItem, ...]


@cache
def paper_sections() -> tuple[PaperSection, ...]:
    """Every section with a table, a figure or a number."""
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
