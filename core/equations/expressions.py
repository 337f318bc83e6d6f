"""Expressions: trees parsed from tokens, and their exact values.

If a notation is ambiguous (`1/2x`, `-3^2`), both readings are kept. The same applies to a percent sign, which may
mean hundredths or be a mere unit.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import product

from stepsight.core.equations import values
from stepsight.core.equations.values import AlgebraicValue, UndecidedError

MAX_READINGS = 8


class Kind(StrEnum):
    """The kind of a node: a number, a letter or an operation."""

    NUMBER = "number"
    LETTER = "letter"
    NEGATIVE = "negative"
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    POWER = "^"
    FACTORIAL = "!"
    PERCENT = "%"
    ROOT = "root"
    BINOMIAL = "binomial"
    ABSOLUTE = "absolute"
    FUNCTION = "function"
    EITHER = "either"


@dataclass(frozen=True, slots=True)
class Node:
    """A node of an expression tree. `parts` are its children.

    Numbers, letters and functions also have a `name`. If a place in the text is ambiguous, a node of kind `EITHER`
    holds its two readings as `parts`, and `choice` is the number of that place, counted from 0.
    """

    kind: Kind
    parts: tuple["Node", ...] = ()
    name: str = ""
    number: Fraction | None = None
    decimals: int = 0
    cut: bool = False
    choice: int = 0
    unit: str = ""

    def walk(self) -> Iterator["Node"]:
        """Yield this node and all nodes below it."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.parts))

    @property
    def is_literal(self) -> bool:
        """True if the node is a number exactly as written, possibly with a sign and a percent sign."""
        if self.kind in (Kind.NEGATIVE, Kind.PERCENT):
            return self.parts[0].is_literal
        return self.kind is Kind.NUMBER

    @property
    def is_fraction(self) -> bool:
        """True if the node is written as a fraction of two integers."""
        if self.kind is Kind.NEGATIVE:
            return self.parts[0].is_fraction
        if self.kind is not Kind.DIVIDE:
            return False
        return all(part.is_literal and not part.literal.decimals for part in self.parts)

    @property
    def literal(self) -> "Node":
        """The number node inside a literal."""
        return self if self.kind is Kind.NUMBER else self.parts[0].literal


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression tree, parsed from the tokens `first` to `last` (exclusive). `units` holds the unit words among
    these tokens, and `choices` is the number of ambiguous places."""

    node: Node
    first: int
    last: int
    units: frozenset[str]
    choices: int
    has_percent: bool

    @property
    def letters(self) -> frozenset[str]:
        return frozenset(node.name for node in self.node.walk() if node.kind is Kind.LETTER)

    @property
    def names_bases(self) -> bool:
        """True if every number is written with its base, as in 101_2."""
        return all("_" in node.name for node in self.node.walk() if node.kind is Kind.NUMBER)


def evaluate(
    node: Node,
    reading: int = 0,
    percent: Fraction = Fraction(1, 100),
    replaced: Mapping[int, Fraction] | None = None,
) -> AlgebraicValue:
    """Return the value of a tree. Raises `UndecidedError` if it has no value.

    Bit `i` of `reading` selects one of the two readings of the ambiguous place number `i`. `percent` is the factor
    that a percent sign stands for. `replaced` maps the `id` of number nodes to numbers to use instead.
    """
    if node.kind is Kind.NUMBER:
        assert node.number is not None
        return values.number(replaced.get(id(node), node.number) if replaced else node.number)
    if node.kind is Kind.LETTER:
        if node.name == "π/180":
            return values.number(values.PI / 180, exact=False)
        return values.letter(node.name)
    if node.kind is Kind.EITHER:
        return evaluate(node.parts[reading >> node.choice & 1], reading, percent, replaced)
    parts = [evaluate(part, reading, percent, replaced) for part in node.parts]
    match node.kind:
        case Kind.PERCENT:
            return values.multiply(parts[0], values.number(percent))
        case Kind.NEGATIVE:
            return values.multiply(values.number(-1), parts[0])
        case Kind.ROOT:
            degree = parts[1].number
            if degree is None or degree.denominator != 1:
                raise UndecidedError
            return values.root(parts[0], int(degree))
        case Kind.FUNCTION:
            return values.function(node.name, values.closed(parts[0]), *parts[1:])
    return _OPERATIONS[node.kind](*parts)


_OPERATIONS: Mapping[Kind, Callable[..., AlgebraicValue]] = {
    Kind.ADD: values.add,
    Kind.SUBTRACT: values.subtract,
    Kind.MULTIPLY: values.multiply,
    Kind.DIVIDE: values.divide,
    Kind.POWER: values.power,
    Kind.FACTORIAL: values.factorial,
    Kind.BINOMIAL: values.binomial,
    Kind.ABSOLUTE: values.absolute,
}


def readings(*expressions: Expression) -> list[tuple[tuple[int, ...], Fraction]]:
    """Return every way to read several expressions together.

    Each way is a pair: the `reading` of every expression, and the factor that a percent sign stands for (see
    `evaluate`). Raises `UndecidedError` if there are too many ways.
    """
    if 1 << sum(expression.choices for expression in expressions) > MAX_READINGS:
        raise UndecidedError
    percents = [Fraction(1, 100)]
    if any(expression.has_percent for expression in expressions):
        percents.append(Fraction(1))
    # The reading of the first expression varies fastest.
    combinations = [
        choice[::-1]
        for choice in product(*(range(1 << expression.choices) for expression in reversed(expressions)))
    ]
    return [(choice, percent) for percent in percents for choice in combinations]
