"""The facts of a problem: its quantities as its text states them, what follows from them, and the unknowns."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import pairwise, product

import sympy

from stepsight.core.trace import Trace
from tests.training.synth.equations import Relation, chains, expressions, normalised
from tests.training.synth.terms import Tree, apply, expression, letters, symbol

_COUNTS = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_WORDS = {word: number for number, word in enumerate(_COUNTS)} | {
    "twice": 2,
    "double": 2,
    "doubles": 2,
    "pair": 2,
    "couple": 2,
    "half": 2,
    "thrice": 3,
    "triple": 3,
    "triples": 3,
    "third": 3,
    "quarter": 4,
    "week": 7,
    "fortnight": 14,
    "dozen": 12,
    "day": 24,
    "hour": 60,
    "year": 12,
}
_COMPOUND = re.compile(r"\b(half a|half-|two|three|four|five|a|an|one) (dozen|weeks?|days?|hours?|years?)\b")
_SIGNS = {"at most": "≤", "at least": "≥", "less than": "<", "more than": ">", "greater than": ">"}
_AT_MOST = re.compile(rf"(?:is|be) ({'|'.join(_SIGNS)})(?= \$?-?\d)")
_MULTIPLES = {"half a": Fraction(1, 2), "half-": Fraction(1, 2)}
_MULTIPLES |= {word: Fraction(number) for number, word in enumerate(_COUNTS) if 2 <= number <= 5}


@dataclass(frozen=True)
class Facts:
    """`truth`: the value of every key, by SymPy from the relations. `roots`: for each unknown letter the values
    that solve the problem's `equations`, by SymPy from its text; `region`, what solves its inequalities. `defined`:
    `f(x) = ...` by name; `bodies`: every expression in a letter. `constants` are those of the relations; `missing`
    the givens that the problem does not state."""

    givens: Mapping[str, Fraction]
    formulas: Mapping[str, str]
    truth: Mapping[str, Fraction]
    roots: Mapping[str, tuple[Fraction, ...]]
    equations: tuple[tuple[Tree, Tree], ...]
    defined: Mapping[str, tuple[str, Tree]]
    numbers: frozenset[Fraction]
    region: sympy.Set | None
    bodies: tuple[sympy.Expr, ...]
    constants: frozenset[Fraction]
    missing: tuple[str, ...]

    @classmethod
    def of(cls, trace: Trace) -> "Facts":
        givens = {key: Fraction(text) for key, text in trace.meta["givens"].items()}
        formulas = dict(trace.meta["relations"])
        truth = following(formulas, givens)
        shown = numbers(trace.problem) | frozenset(in_words(trace.problem))
        missing = tuple(key for key, number in givens.items() if number not in shown)
        constants = frozenset(n for formula in formulas.values() for n in _constants(formula))
        problem = _AT_MOST.sub(lambda match: _SIGNS[match[1]], normalised(trace.problem))
        relations = [relation for chain in chains(problem) for relation in chain]
        stated = tuple(_equations(relations))
        bodies = [
            tree for tree in expressions(normalised(trace.problem)) if letters(tree) - {"π"} and not _calls(tree)
        ]
        return cls(
            givens=givens,
            formulas=formulas,
            truth=truth,
            roots=dict(_roots(stated)),
            equations=stated,
            defined=dict(_defined(relations)),
            numbers=shown,
            region=region(relations),
            bodies=tuple(expression(tree) for tree in bodies),
            constants=constants,
            missing=missing,
        )


def following(formulas: Mapping[str, str], givens: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """The givens and, in the order of the formulas, what follows from them. Raises `NoValueError`."""
    values = dict(givens)
    for key, formula in formulas.items():
        values[key] = evaluate(formula, values)
    return values


def evaluate(formula: str, values: Mapping[str, Fraction]) -> Fraction:
    """The exact value of a formula in Python's notation, read by SymPy."""
    return _evaluate(_parsed(formula), values)


@cache
def _parsed(formula: str) -> sympy.Expr:
    # A name is a symbol even where SymPy means something by it, such as S, and a call stays a call.
    called = set(re.findall(r"[A-Za-z_]\w*(?=\()", formula))
    names = {name: sympy.Function(name) if name in called else sympy.Symbol(name)
             for name in re.findall(r"[A-Za-z_]\w*", formula)}  # fmt: skip
    return sympy.sympify(formula, locals=names)


def _constants(formula: str) -> Iterator[Fraction]:
    return map(Fraction, re.findall(r"(?<![A-Za-z_])\d+", formula))


def _evaluate(node: sympy.Expr, values: Mapping[str, Fraction]) -> Fraction:
    if node.is_Symbol:
        return values[node.name]
    if node.is_Rational:
        return Fraction(int(node.p), int(node.q))
    parts = [_evaluate(part, values) for part in node.args]
    if node.is_Add:
        return sum(parts, Fraction(0))
    if node.is_Mul:
        return math.prod(parts, start=Fraction(1))
    if node.is_Pow:
        return apply("^", parts)
    return apply({"factorial": "!"}.get(node.func.__name__, node.func.__name__), parts)


@lru_cache(4096)
def numbers(text: str) -> frozenset[Fraction]:
    """Every number that a text shows, fractions as one number too, and coefficients with their signs."""
    return frozenset(found for tree in expressions(normalised(text)) for found in _numbers(tree))


def _numbers(tree: Tree) -> Iterator[Fraction]:
    match tree:
        case ("num", number):
            yield number
        case ("var", _):
            yield Fraction(1)
        case ("neg", inner):
            found = list(_numbers(inner))
            yield from (sign * number for number in found for sign in (1, -1))
        case ("-", left, right):
            yield from _numbers(left)
            found = list(_numbers(right))
            yield from (sign * number for number in found for sign in (1, -1))
        case ("/", ("num", top) | ("neg", ("num", top)), ("num", bottom)) if bottom:
            yield from (sign * number for number in (top, bottom, top / bottom) for sign in (1, -1))
        case (_, *parts):
            yield from (number for part in parts for number in _numbers(part))


def in_words(text: str) -> Iterator[Fraction]:
    """Numbers that a text gives in words: "a week" is 7, "two dozen" 24, "twice" 2."""
    for word in re.findall(r"[a-z]+", text.lower()):
        if word in _WORDS:
            yield Fraction(_WORDS[word])
    if "base" in text or "_" in text:
        for digits in re.findall(r"\d+", text):
            yield from map(Fraction, digits)
    for times, unit in _COMPOUND.findall(text.lower()):
        yield _MULTIPLES.get(times, Fraction(1)) * _WORDS[unit.rstrip("s")]


def _defined(relations: Iterable[Relation]) -> Iterator[tuple[str, tuple[str, Tree]]]:
    for relation in relations:
        if relation.left and relation.right and str(relation.left[0]).endswith("()"):
            name, inner = relation.left[0], relation.left[1]
            if inner[0] == "var":
                yield name, (inner[1], relation.right)


def _equations(relations: Iterable[Relation]) -> Iterator[tuple[Tree, Tree]]:
    for relation in relations:
        left, right = relation.left, relation.right
        if relation.sign == "=" and left and right and not _calls(left) and not _calls(right):
            yield left, right


def _roots(stated: Sequence[tuple[Tree, Tree]]) -> Iterator[tuple[str, tuple[Fraction, ...]]]:
    """The rational solutions of the equations that the problem states."""
    unknowns = sorted({name for pair in stated for side in pair for name in letters(side)} - {"π"})
    if not unknowns or len(unknowns) > len(stated):
        return
    apart = [expression(a) - expression(b) for a, b in stated]
    if len(unknowns) == 1 and len(apart) == 1:
        yield unknowns[0], rational_roots(apart[0], unknowns[0])
        return
    found = sympy.solve(apart, [symbol(name) for name in unknowns], dict=True)
    for name in unknowns:
        values = [solution[symbol(name)] for solution in found if symbol(name) in solution]
        yield name, tuple(Fraction(int(v.p), int(v.q)) for v in values if v.is_Rational)


def rational_roots(apart: sympy.Expr, name: str) -> tuple[Fraction, ...]:
    """Where an expression in one letter is 0; of a polynomial by its factors, which is fast."""
    letter = symbol(name)
    if apart.has(sympy.pi):
        apart = sympy.expand(apart / sympy.pi)
    found = {root for case in _without_bars(apart) for root in _roots_of(case, letter)}
    return tuple(Fraction(int(root.p), int(root.q)) for root in found if _solves(root, apart, letter))


def _without_bars(apart: sympy.Expr) -> Iterator[sympy.Expr]:
    """Every case of the signs of what stands between bars."""
    bars = sorted(apart.atoms(sympy.Abs), key=str)
    for signs in product((1, -1), repeat=len(bars)):
        yield apart.xreplace({bar: sign * bar.args[0] for bar, sign in zip(bars, signs, strict=True)})


def _roots_of(case: sympy.Expr, letter: sympy.Symbol) -> Iterable[sympy.Expr]:
    if not case.has(letter):
        return ()
    found: Iterable[sympy.Expr] = (
        sympy.Poly(case, letter).ground_roots() if case.is_polynomial(letter) else sympy.solve(case, letter)
    )
    return found


def _solves(root: sympy.Expr, apart: sympy.Expr, letter: sympy.Symbol) -> bool:
    return bool(root.is_Rational) and apart.subs(letter, root) == 0


def region(relations: Iterable[Relation]) -> sympy.Set | None:
    """The numbers that satisfy every inequality in the one letter; None where there is none or another letter."""
    found: sympy.Set | None = None
    for relation in relations:
        if relation.sign not in _INEQUALITIES or not relation.left or not relation.right:
            continue
        names = (letters(relation.left) | letters(relation.right)) - {"π"}
        if not names:
            continue
        if len(names) > 1 or _calls(relation.left) or _calls(relation.right):
            return None
        apart = expression(relation.left) - expression(relation.right)
        part = _part(apart, relation.sign, symbol(names.pop()))
        found = part if found is None else found.intersect(part)
    return found


def _part(apart: sympy.Expr, sign: str, letter: sympy.Symbol) -> sympy.Set:
    """Where `apart sign 0` holds. SymPy's solver is slow: a linear one is tried between its ends."""
    bars = apart.atoms(sympy.Abs)
    inner = [apart.xreplace({bar: bar.args[0] for bar in bars}), *(bar.args[0] for bar in bars)]
    if not all(part.is_polynomial(letter) and sympy.degree(part, letter) <= 1 for part in inner):
        return sympy.solve_univariate_inequality(_INEQUALITIES[sign](apart, 0), letter, relational=False)
    ends = sorted(map(sympy.Rational, map(str, rational_roots(apart, letter.name))))
    points = [-sympy.oo, *ends, sympy.oo]
    found: sympy.Set = sympy.FiniteSet(*ends) if "=" in sign else sympy.S.EmptySet
    for low, high in pairwise(points):
        between = (
            high - 1 if low == -sympy.oo and ends else low + 1 if high == sympy.oo and ends else (low + high) / 2
        )
        if bool(_INEQUALITIES[sign](apart.subs(letter, between if ends else 0), 0)):
            found = found.union(sympy.Interval.open(low, high))
    return found


_INEQUALITIES = {"<": sympy.Lt, ">": sympy.Gt, "<=": sympy.Le, ">=": sympy.Ge}


def _calls(tree: Tree) -> bool:
    return str(tree[0]).endswith("()") or any(_calls(part) for part in tree[1:] if isinstance(part, tuple))


def spelled_out(tree: Tree, defined: Mapping[str, tuple[str, Tree]]) -> Tree:
    """The tree with every call of a defined function replaced by what it stands for."""
    parts = [spelled_out(part, defined) if isinstance(part, tuple) else part for part in tree[1:]]
    if tree[0] in defined:
        name, body = defined[tree[0]]
        return spelled_out(_put(body, name, parts[0]), defined)
    return (tree[0], *parts)


def _put(tree: Tree, name: str, inner: Tree) -> Tree:
    if tree == ("var", name):
        return inner
    return (tree[0], *(_put(part, name, inner) if isinstance(part, tuple) else part for part in tree[1:]))
