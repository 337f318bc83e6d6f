"""Comparing the two sides of an identity by expanding them, and evaluating expressions."""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from stepsight.core.equations.chains import Member
from stepsight.core.equations.numbers import Comparison, EquationVerdict
from stepsight.core.equations.parsing import values
from stepsight.core.equations.parsing.expressions import Expression, Kind, Node, evaluate, readings
from stepsight.core.equations.parsing.values import ONE, AlgebraicValue, Monomial, UndecidedError

# The imaginary unit, the base of the natural logarithm, roots of unity: letters that are no variables.
CONSTANTS = frozenset({"i", "j", "e", "omega", "ω", "ζ", "zeta"})


def compare_identity(left: Member, right: Member) -> Comparison | None:
    """Compare the two sides of an expansion or simplification.

    Returns None if the equation could just as well be an equation to solve. It holds if the difference between its
    sides vanishes. It fails only if the two sides differ as after a slip, typically because the left side can be
    expanded, the right side cannot, and a single term is different. As an equation to solve, it would then have no
    solution or only zero.
    """
    a, b = left.expression, right.expression
    if a is None or b is None or not a.letters or not b.letters:
        return None
    first: Comparison | None = None
    try:
        for (reading_a, reading_b), percent in readings(a, b):
            x, y = evaluate(a.node, reading_a, percent), evaluate(b.node, reading_b, percent)
            if not values.difference(x, y).above:
                return Comparison(EquationVerdict.HOLDS, x, y)
            first = first or Comparison(EquationVerdict.FAILS, x, y)
    except UndecidedError:
        return None
    if first is None or not _is_slip(a, b, first):
        return None
    return first


def _is_slip(a: Expression, b: Expression, comparison: Comparison) -> bool:
    left, right = comparison.left, comparison.right
    x, y = left.polynomial, right.polynomial
    if x is None or y is None or not (left.exact and right.exact) or a.choices or b.choices:
        return False
    if a.letters & CONSTANTS or b.letters & CONSTANTS or a.has_percent or b.has_percent:
        return False
    if not any(x) or not any(y) or a.letters != b.letters or "π" in a.letters:
        return False
    gap = values.difference(left, right).polynomial
    if gap is None:
        return False
    done_a, done_b = is_reduced(a.node, x), is_reduced(b.node, y)
    digits = max((node.decimals for node in b.node.walk()), default=0)
    unit = Fraction(1, 10**digits) if digits else Fraction(0)
    if len(x) == len(y) == 1:
        return (
            x.keys() == y.keys() and not (done_a and done_b) and _has_numbers(a.node) and not _near(x, y, gap, unit)
        )
    if (
        gap.keys() == {ONE}
        and not done_a
        and not is_product(b.node)
        and _count_terms(b.node) <= _count_terms(a.node)
    ):
        # As an equation it would have no solution.
        return not _near(x, y, gap, unit)
    if done_a == done_b and not (is_product(a.node) and is_product(b.node)):
        return False
    return (is_product(b.node) or done_b) and _is_near_miss(x, y, gap) and not _near(x, y, gap, unit)


def _count_terms(node: Node) -> int:
    return sum(1 for _ in _terms(node))


def _has_numbers(node: Node) -> bool:
    return any(part.kind is Kind.NUMBER for part in node.walk())


def _is_near_miss(
    x: Mapping[Monomial, Fraction], y: Mapping[Monomial, Fraction], gap: Mapping[Monomial, Fraction]
) -> bool:
    """True if two polynomials differ in only one term or by a constant factor. `gap` is their difference."""
    if len(gap) == 1:
        return True
    if x.keys() != y.keys() or max(sum(exponent for _, exponent in key) for key in x) < 2:
        return False
    term = next(iter(x))
    ratio = x[term] / y[term]
    return all(value == ratio * y[key] for key, value in x.items())


def is_product(node: Node) -> bool:
    """True if the expression is a product or quotient with a sum among its factors."""
    if node.kind in (Kind.MULTIPLY, Kind.DIVIDE, Kind.POWER):
        return any(part.kind in (Kind.ADD, Kind.SUBTRACT) or is_product(part) for part in node.parts)
    return node.kind is Kind.NEGATIVE and is_product(node.parts[0])


def _near(
    x: Mapping[Monomial, Fraction], y: Mapping[Monomial, Fraction], gap: Mapping[Monomial, Fraction], unit: Fraction
) -> bool:
    """True if the coefficients of two polynomials could differ only because they are rounded to multiples of
    `unit`. `gap` is the difference of the polynomials."""
    for term, by in gap.items():
        left, right = x.get(term, Fraction(0)), y.get(term, Fraction(0))
        if (left.denominator == 1 and right.denominator == 1) or not left or not right:
            return False
        if abs(by) > max(unit, abs(left) / 200):
            return False
    return True


def is_reduced(node: Node, polynomial: Mapping[Monomial, Fraction]) -> bool:
    """True if an expression is already fully expanded: each term of the polynomial is written once, as a single
    term."""
    terms = list(_terms(node))
    return len(terms) == len(polynomial) and all(_is_term(term) for term in terms)


def _terms(node: Node) -> Iterator[Node]:
    if node.kind in (Kind.ADD, Kind.SUBTRACT):
        for part in node.parts:
            yield from _terms(part)
    elif node.kind is Kind.NEGATIVE:
        yield from _terms(node.parts[0])
    else:
        yield node


def _is_term(node: Node) -> bool:
    """True if a tree is a coefficient times powers of letters, with no letter occurring twice."""
    numbers = letters = 0
    names = []
    for part in _factors(node):
        if part.kind is Kind.LETTER:
            letters += 1
            names.append(part.name)
        elif part.kind is Kind.POWER and part.parts[0].kind is Kind.LETTER and part.parts[1].kind is Kind.NUMBER:
            letters += 1
            names.append(part.parts[0].name)
        elif part.kind is Kind.NUMBER or part.is_fraction:
            numbers += 1
        else:
            return False
    return numbers <= 1 and len(names) == len(set(names))


def _factors(node: Node) -> Iterator[Node]:
    if node.kind is Kind.MULTIPLY:
        for part in node.parts:
            yield from _factors(part)
    elif node.kind is Kind.DIVIDE and not node.is_fraction and node.parts[1].kind is Kind.NUMBER:
        yield from _factors(node.parts[0])
        if any(part.kind is Kind.NUMBER for part in _factors(node.parts[0])):
            yield node.parts[1]
    else:
        yield node


def value_of(expression: Expression | None) -> AlgebraicValue | None:
    """Return the value of an expression, or None if it is ambiguous or has no value."""
    if expression is None or expression.choices or expression.has_percent:
        return None
    if any(node.cut for node in expression.node.walk()):
        return None
    try:
        return evaluate(expression.node)
    except UndecidedError:
        return None
