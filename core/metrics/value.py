"""The value of a metric: a number with its interval, or the reason why it is undefined."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Value:
    """`number` is NaN only with a `reason`; beside a number, `reason` says what the number leaves out. `low` and
    `high` are the 95 % interval, NaN if there is none."""

    number: float
    reason: str = ""
    low: float = math.nan
    high: float = math.nan

    @classmethod
    def none(cls, reason: str) -> "Value":
        return cls(math.nan, reason)

    @property
    def exists(self) -> bool:
        return not math.isnan(self.number)

    def within(self, low: float, high: float) -> "Value":
        """The same value with its interval."""
        return Value(self.number, self.reason, low, high)

    def as_json(self) -> dict[str, float | str | None]:
        """`value`, `low` and `high` as fractions, null for NaN, and the reason if there is one."""
        shown = {"value": self.number, "low": self.low, "high": self.high}
        numbers: dict[str, float | str | None] = {k: None if math.isnan(v) else v for k, v in shown.items()}
        return numbers | ({"reason": self.reason} if self.reason else {})
