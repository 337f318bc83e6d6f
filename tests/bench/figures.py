"""What a benchmark measured, beside what is asked for."""

from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Figure:
    """A measured value and its bound, which it may not exceed or, `at_least`, not fall below."""

    what: str
    value: float
    unit: str = ""
    bound: float | None = None
    at_least: bool = False

    @property
    def is_met(self) -> bool:
        """True if the value is within its bound, or has none."""
        if self.bound is None:
            return True
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    @property
    def measured(self) -> str:
        """The value with its unit."""
        return f"{_number(self.value)} {self.unit}".strip()

    @property
    def asked(self) -> str:
        """The bound in words; empty without one."""
        if self.bound is None:
            return ""
        return f"{'at least' if self.at_least else 'at most'} {_number(self.bound)} {self.unit}".strip()


def _number(value):
    if 0 < abs(value) < 0.001:
        return f"{value:.0e}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


# Not in `__main__`, from which a process that is started anew imports nothing.
def measure(name, is_short):
    """The figures of a benchmark, measured in this process."""
    benchmark = import_module(f"tests.bench.{name}")
    return list(benchmark.figures(is_short) if is_short else benchmark.figures())
