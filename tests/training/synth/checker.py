"""The checker: the labels of a synthetic trace derived anew from its texts, without the code that wrote it.

What it goes by is the problem's text, the steps' texts, and of the meta the givens, the relations (formulas), what
each step claims by key, and the roles. `objections` is empty where all of this agrees with the labels.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations
from operator import itemgetter

import sympy

from stepsight.core.label import Label
from stepsight.core.trace import Trace
from tests.training.synth.equations import Relation, chains, expressions, normalised
from tests.training.synth.facts import Facts, following, in_words, numbers, rational_roots, region, spelled_out
from tests.training.synth.terms import PI, NoValueError, Tree, expression, letters, symbol, value

REDUNDANT = ("restating", "detour", "aside")
_NEGATIVE = re.compile(
    r"\b(on one side|differs?|different|not|no|never|nor|wrong|mistake|error|contradict\w*|impossible|cannot|"
    r"instead|fails|broken|although|yet|but|while|though|remainder|should have been)\b"
)
_NOT_WHOLE = re.compile(r"\bno whole|\bnot (whole|an integer|come out)|leaves a remainder")
_SIDES = re.compile(r"\bboth|\bsides?\b|two results|do not agree|\bbut \S+ is not \S+$")
_SAYS = re.compile(r"\bthe problem (says|gives|has)\b", re.IGNORECASE)
_MUST = re.compile(r"\b(?:must|cannot|should)\b(?!.*\b(?:must|cannot|should)\b)")
_COMPARED: tuple[tuple[re.Pattern[str], Callable[[Fraction, Fraction], bool]], ...] = tuple(
    (re.compile(rf"\b(?:{words})\b"), holds)
    for words, holds in (
        ("multiple of", lambda a, b: a % b == 0),
        ("not be negative", lambda a, b: a >= 0),
        ("positive", lambda a, b: a > 0),
        ("at most|not exceed|not be (?:more|above|larger|greater)|within|no more than", lambda a, b: a <= b),
        ("at least|reach|not be (?:less|below|smaller)|no less than", lambda a, b: a >= b),
        ("less|fewer|below|under|younger|cheaper|weaker|shorter|smaller|lower|faster", lambda a, b: a < b),
        ("more|greater|above|over|older|dearer|stronger|longer|larger|higher|exceed|beyond", lambda a, b: a > b),
    )
)
_PRODUCTS = (
    (re.compile(r"\btwice (?:the )?", re.IGNORECASE), "2 * "),
    (re.compile(r"\bfour times ", re.IGNORECASE), "4 * "),
    (re.compile(r"(\d+\$?) times the (?:first|last) term"), r"\1 * "),
    (re.compile(r"(\d+\$?) \w+ at \$?(\d+\$?) dollars"), r"\1 * \2"),
)


@dataclass
class _Reading:
    """What was read of a trace so far: the numbers that stand in sight, and what is objected to."""

    trace: Trace
    facts: Facts
    seen: set[Fraction]
    found: list[str] = field(default_factory=list)

    def object(self, index: int, what: str) -> None:
        self.found.append(f"{self.trace.id} step {index} ({self.trace.steps[index].text!r}): {what}")


def objections(trace: Trace) -> list[str]:
    """Everything in which the labels and meta of `trace` disagree with its texts."""
    facts = Facts.of(trace)
    reading = _Reading(trace, facts, set(facts.numbers))
    reading.found += [f"{trace.id}: given {key} is not in {trace.problem!r}" for key in facts.missing]
    reading.found += [f"{trace.id}: {text}" for text in _unsolved(facts)]
    first = _first_error(reading)
    for index, step in enumerate(trace.steps):
        _judge(reading, index, first)
        reading.seen |= numbers(step.text) | set(in_words(step.text))
    if trace.meta["error_step"] != first:
        reading.found.append(f"{trace.id}: the first error is {first}, not {trace.meta['error_step']}")
    return reading.found


def _unsolved(facts: Facts) -> Iterator[str]:
    """The relations must say of an unknown what the problem's own equations say."""
    for letter, roots in facts.roots.items():
        if roots and letter in facts.truth and facts.truth[letter] not in roots:
            yield f"{letter} is {facts.truth[letter]} by the relations, but the problem has {roots}"


def _first_error(reading: _Reading) -> int | None:
    """The first step that claims a false value or states a false equation."""
    for index, role in enumerate(reading.trace.meta["roles"]):
        if role in ("line", *REDUNDANT) and _faults(reading, index):
            return index
    return None


def _faults(reading: _Reading, index: int) -> list[str]:
    facts, text = reading.facts, normalised(reading.trace.steps[index].text)
    claims = reading.trace.meta["claims"][index]
    wrong = [f"{key} is {facts.truth[key]}" for key, said in claims.items() if Fraction(said) != facts.truth[key]]
    return wrong + [f"false: {text[r.start : r.end]}" for c in chains(text) for r in c if true(r, facts) is False]


def _judge(reading: _Reading, index: int, first: int | None) -> None:
    trace, role, label = reading.trace, reading.trace.meta["roles"][index], reading.trace.steps[index].label
    after = first is not None and index > first
    expected: Label | None = Label.NEU if role in REDUNDANT else Label.POS
    if index == first:
        expected = Label.NEG
    elif after and role != "redo":
        fails = role == "check" and _outcome(reading, index) is False
        expected = Label.POS if fails else None
    if label != expected:
        faults = _faults(reading, index)
        reading.object(index, f"labelled {label!r}, expected {expected!r}; {faults}")
    if index == first and role != "line":
        reading.object(index, f"the error stands in a step of role {role}")
    _claims_shown(reading, index)
    if role == "line" and expected is Label.POS:
        _judge_sources(reading, index)
    if role == "check":
        _judge_check(reading, index, after)
    elif role == "redo":
        _judge_redo(reading, index, trace.steps[index].text)
    elif role in REDUNDANT and not after:
        _judge_redundant(reading, index, role)
    if not after or label is not None:
        _readable(reading, index)


def _readable(reading: _Reading, index: int) -> None:
    text = normalised(reading.trace.steps[index].text)
    for chain in chains(text):
        for relation in chain:
            if relation.right is None or true(relation, reading.facts) is None:
                reading.object(index, f"cannot read {text[relation.start : relation.end]!r}")


# --- Equations -----------------------------------------------------------------------------------------------


def true(relation: Relation, facts: Facts) -> bool | None:
    """Whether an equation or inequality holds; None where it cannot be said.

    One in an unknown is true where it holds of every solution of the problem or, as one case of several, where
    all that solves it does solve the problem.
    """
    if relation.left is None or relation.right is None:
        return None if relation.right is None else True
    left, right = (spelled_out(side, facts.defined) for side in (relation.left, relation.right))
    unknown = (letters(left) | letters(right)) - {"π"}
    if str(left[0]).endswith("()"):
        return _defines(left, right, facts)
    if not unknown:
        return _compare(left, relation.sign, right, {})
    if relation.sign in ("<", ">", "<=", ">=") and facts.region is not None:
        said = region([relation])
        return said is not None and bool(facts.region.is_subset(said))
    known = {name: facts.roots.get(name) or _by_key(name, facts) for name in unknown}
    if not all(known.values()):
        if (left[0] == "var" and not letters(right) - {"π"}) or _identical(left, right):
            return True
        if len(unknown) > 1:
            # A rule such as (r + s)^2 = r^2 + s^2 is meant for any r and s.
            return False if letters(left) == letters(right) else None
        return _introduces(left, right, facts)
    if len(unknown) > 1:
        return _compare(left, relation.sign, right, {name: roots[0] for name, roots in known.items()})
    name = unknown.pop()
    outcomes = [_compare(left, relation.sign, right, {name: root}) for root in known[name]]
    if None in outcomes:
        return None
    return all(outcomes) or (any(outcomes) and _solves(left, right, name, known[name])) or _identical(left, right)


def _introduces(left: Tree, right: Tree, facts: Facts) -> bool | None:
    """An equation in a letter that stands for some quantity: one of its roots must be a true value."""
    try:
        roots = rational_roots(expression(left) - expression(right), min(letters(left) | letters(right) - {"π"}))
    except KeyError:
        return None
    return bool(set(roots) & set(facts.truth.values()))


def _defines(left: Tree, right: Tree, facts: Facts) -> bool | None:
    """`f'(x) = ...` must be the derivative, and `F(x) = ...` an antiderivative, of something in the problem."""
    if left[1][0] != "var" or letters(right) - {left[1][1]}:
        return None
    said, letter = expression(right), symbol(left[1][1])
    if left[0][0].isupper():
        return any(sympy.expand(sympy.diff(said, letter) - body) == 0 for body in facts.bodies)
    if "'" in left[0]:
        return any(sympy.expand(said - sympy.diff(body, letter)) == 0 for body in facts.bodies)
    return any(sympy.expand(said - body) == 0 for body in facts.bodies)


def _by_key(name: str, facts: Facts) -> tuple[Fraction, ...]:
    return (facts.truth[name],) if name in facts.truth else ()


def _compare(left: Tree, sign: str, right: Tree, known: dict[str, Fraction]) -> bool | None:
    try:
        a, b = value(left, known), value(right, known)
    except NoValueError:
        return _compare_surds(left, sign, right, known)
    return {"=": a == b, "!=": a != b, "<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b}[sign]


def _compare_surds(left: Tree, sign: str, right: Tree, known: dict[str, Fraction]) -> bool | None:
    try:
        apart = expression(left) - expression(right)
    except KeyError:
        return None
    apart = apart.subs({symbol(k): sympy.Rational(v.numerator, v.denominator) for k, v in known.items()})
    if not apart.is_number or not apart.is_finite:
        return None
    same = bool(apart.equals(0))
    return {"=": same, "!=": not same}.get(sign, bool(sympy.N(apart) < 0) == (sign in ("<", "<=")))


def _solves(left: Tree, right: Tree, name: str, roots: tuple[Fraction, ...]) -> bool:
    found = rational_roots(expression(left) - expression(right), name)
    return bool(found) and set(found) <= set(roots)


def _identical(left: Tree, right: Tree) -> bool:
    try:
        return bool(sympy.expand(expression(left) - expression(right)) == 0)
    except KeyError:
        return False


# --- Claims --------------------------------------------------------------------------------------------------


def _claims_shown(reading: _Reading, index: int) -> None:
    """What a step claims must stand in its text: as a number, or as the product and the sum of two of them."""
    text = reading.trace.steps[index].text
    shown = numbers(text) | set(in_words(text))
    claimed = {key: Fraction(said) for key, said in reading.trace.meta["claims"][index].items()}
    if all(number in shown for number in claimed.values()):
        return
    pairs = {(a * b, a + b) for a in shown for b in shown}
    if len(claimed) == 2 and tuple(claimed.values()) in pairs:
        return
    reading.object(index, f"does not show {reading.trace.meta['claims'][index]}")


def _judge_sources(reading: _Reading, index: int) -> None:
    """A right step calculates with what the problem, the steps before it and the relations give."""
    text = normalised(reading.trace.steps[index].text)
    found = chains(text)
    results = {number for chain in found for r in chain if (number := _number(r.right)) is not None}
    claimed = {Fraction(said) for said in reading.trace.meta["claims"][index].values()}
    roots = {root for values in reading.facts.roots.values() for root in values}
    sources = {abs(n) for n in reading.seen | reading.facts.constants | results | claimed | roots}
    used = {abs(n) for chain in found for r in chain if r.left and r.right for n in _leaves(r.left)}
    if used - sources:
        reading.object(index, f"calculates with {sorted(map(str, used - sources))}, from nowhere")
    numeric = [chain for chain in found if not any(_lettered(r) for r in chain)]
    said = {n for chain in numeric for r in chain for side in (r.left, r.right) if side for n in _leaves(side)}
    if claimed and numeric and not claimed & (said | results):
        reading.object(index, "claims something else than it calculates")


def _leaves(tree: Tree) -> set[Fraction]:
    """The numbers that are written in a tree, a fraction as two of them."""
    if tree[0] == "num":
        return {tree[1]}
    return {n for part in tree[1:] if isinstance(part, tuple) for n in _leaves(part)}


def _lettered(relation: Relation) -> bool:
    return any(side and letters(side) - {"π"} for side in (relation.left, relation.right))


# --- Redundant steps -----------------------------------------------------------------------------------------


def _judge_redundant(reading: _Reading, index: int, role: str) -> None:
    text = normalised(reading.trace.steps[index].text)
    found = chains(text)
    if role == "restating":
        shown = {abs(n) for tree in expressions(text.replace("base 10", "")) for n in _leaves(tree)}
        new = shown - {abs(n) for n in reading.seen | reading.facts.constants} - {Fraction(1)}
        if new:
            reading.object(index, f"restates {sorted(map(str, new))}, which was not there before")
    elif role == "detour":
        there, back = _number(_first(found[0][0].left)), _number(found[-1][-1].right)
        if there is None or there != back or there not in reading.seen:
            reading.object(index, "does not come back to where it began")
    else:
        derived = {v for key, v in reading.facts.truth.items() if key not in reading.facts.givens}
        if any(_number(chain[-1].right) in derived for chain in found):
            reading.object(index, "is no aside: the number is needed")
        _judge_parity(reading, index, text)


def _first(tree: Tree | None) -> Tree | None:
    """The leftmost number of a calculation."""
    while tree and tree[0] in ("+", "-", "*"):
        tree = tree[1]
    return tree


def _judge_parity(reading: _Reading, index: int, text: str) -> None:
    stated = re.search(r"(-?\d+)\$? is (?:an )?(odd|even)", text)
    if stated and (int(stated[1]) % 2 == 1) != (stated[2] == "odd"):
        reading.object(index, "is false of the number")


def _number(tree: Tree | None) -> Fraction | None:
    """The value without letters; of a multiple of pi the factor, as claims have it."""
    try:
        number = value(tree, {}) if tree else None
    except NoValueError:
        return None
    return number / PI if tree and number is not None and "π" in letters(tree) else number


# --- Checks --------------------------------------------------------------------------------------------------


def _split(text: str) -> tuple[str, str]:
    """A check and the redo that follows it in the same step, if any."""
    parts = re.split(r"(?<=\.) (?=So )", text, maxsplit=1)
    return parts[0], parts[1] if len(parts) > 1 else ""


def _judge_check(reading: _Reading, index: int, after: bool) -> None:
    check, redo = _split(reading.trace.steps[index].text)
    text = normalised(check)
    for chain in chains(text):
        for relation in chain:
            if not _assumes(relation) and true(relation, reading.facts) is not True:
                reading.object(index, f"false in a check: {text[relation.start : relation.end]}")
    bounds = _bounds(text)
    if bounds is None:
        _judge_trial(reading, index, text)
    elif bounds[0] and not _stated(reading, expressions(bounds[0])[-1:]):
        reading.object(index, "holds a number against its bound that nobody stated")
    outcome = _outcome(reading, index)
    if outcome is None:
        reading.object(index, "neither passes nor fails")
    if outcome is False and reading.trace.meta["error"] is None:
        reading.object(index, "fails in a right trace")
    evidence = reading.trace.meta["evidence"]
    if evidence and evidence["step"] == index and evidence["passes"] is not outcome:
        reading.object(index, f"outcome {outcome}, not as its meta says")
    for number in _compared_with(reading, text):
        seen = {abs(number) for number in reading.seen} | set(_misread(reading, text))
        if abs(number) not in seen and number != 0:
            reading.object(index, f"compares with {number}, which nobody stated")
    if redo and (outcome is False or not after):
        _judge_redo(reading, index, redo)


def _assumes(relation: Relation) -> bool:
    """`x = 3 gives ...` tries a value."""
    return relation.left is not None and relation.left[0] == "var" and relation.sign == "="


def _misread(reading: _Reading, text: str) -> Iterator[Fraction]:
    """What "the problem says 42, not 24" is against: 24 is the number used if with it the error follows."""
    facts, at = reading.facts, reading.trace.meta["error_step"]
    if at is None or not _SAYS.search(text):
        return
    claims, shown = reading.trace.meta["claims"][at], numbers(text)
    for number in shown:
        for key in (key for key, given in facts.givens.items() if given in shown):
            with suppress(NoValueError):
                taken = following(facts.formulas, {**facts.givens, key: number})
                if all(taken[name] == Fraction(said) for name, said in claims.items()):
                    yield abs(number)


def _stated(reading: _Reading, trees: list[Tree]) -> bool:
    """Whether every single number among `trees` stands in sight."""
    return all(tree[0] != "num" or tree[1] in reading.seen for tree in trees)


def _judge_trial(reading: _Reading, index: int, text: str) -> None:
    """After "x = 3 gives", the results must be what the problem's equations are at 3."""
    found = chains(text)
    tried = {chain[0].left[1]: _number(chain[0].right) for chain in found if chain[0].left and _assumes(chain[0])}
    known = {name: number for name, number in tried.items() if number is not None}
    sides = [
        side for pair in reading.facts.equations for side in pair if letters(side) and letters(side) <= set(known)
    ]
    results = {_number(chain[-1].right) for chain in found}
    if sides and not any(value(side, known) in results for side in sides):
        reading.object(index, "does not say what comes out at the value tried")
    if any(abs(number) not in {abs(seen) for seen in reading.seen} for number in known.values()):
        reading.object(index, "tries a value that nobody stated")


def _verdicts(reading: _Reading, text: str) -> Iterator[tuple[list[Tree], str, list[Tree]]]:
    """The results found, the words that follow them, and what those words compare them with."""
    found: list[Tree] = []
    last = 0
    shown = [chain for chain in chains(text) if not _assumes(chain[0])]
    for number, chain in enumerate(shown):
        if chain[-1].right:
            found.append(chain[-1].right)
        last = chain[0].end
        until = shown[number + 1][0].start if number + 1 < len(shown) else len(text)
        words = text[last:until]
        if words.strip(" ,$.;") in ("and", "then", ""):
            continue
        yield found, words, expressions(words)
        found = []
    if not shown and _NOT_WHOLE.search(text):
        yield [], text, expressions(text)
    elif not shown and not _bounds(text):
        yield from _told(text)


def _told(text: str) -> Iterator[tuple[list[Tree], str, list[Tree]]]:
    """A verdict on numbers that were read, not calculated: "the problem says 42 km, not 24"."""
    head, comma, tail = text.rpartition(", ")
    if not comma:
        return
    compared = expressions(tail)
    if len(compared) == 1:
        head = re.split(r"\b(?:says|which is) ", head, maxsplit=1)[-1]
    found = [tree for tree in expressions(head) if _number(tree) is not None]
    if compared and _SAYS.search(text):
        found = found[: len(compared)]
    yield found, tail, compared


def _outcome(reading: _Reading, index: int) -> bool | None:
    """Whether the check in a step passes: what it found and what it compares with are the same."""
    text = normalised(_split(reading.trace.steps[index].text)[0])
    outcomes = [_passes(text, *verdict) for verdict in _verdicts(reading, text)]
    if not outcomes:
        return _bound_holds(text)
    if not outcomes or None in outcomes:
        return None
    return all(outcomes)


def _passes(text: str, found: list[Tree], words: str, compared: list[Tree]) -> bool | None:
    negative = bool(_NEGATIVE.search(words))
    if _NOT_WHOLE.search(words) and compared:
        return False if any(number.denominator != 1 for number in numbers_of(compared)) else None
    if _SIDES.search(words):
        return _sides_meet(numbers_of(found), negative, numbers_of(compared))
    if not compared:
        if "root" in words and found:
            return (_number(found[-1]) == 0) if (_number(found[-1]) == 0) is not negative else None
        return None if negative else True
    wanted = compared[-len(found) :]
    return all(_same(a, b) for a, b in zip(found[-len(wanted) :], wanted, strict=True))


def _sides_meet(found: list[Fraction], negative: bool, compared: list[Fraction]) -> bool | None:
    """Whether two ways that must end alike do: the last result, and one of those before it."""
    if not found or not set(compared) <= set(found):
        return None
    passes = found[-1] in found[:-1]
    return passes if passes is not negative else None


def _bounds(text: str) -> tuple[str, str, Callable[[Fraction, Fraction], bool]] | None:
    """A sentence on a bound: what stands before and after its last "must", and how the two must compare."""
    for pattern, put in _PRODUCTS:
        text = pattern.sub(put, text.replace("$", ""))
    head = text.rpartition(", ")[0]
    must = _MUST.search(head)
    if must is None:
        return None
    before, after = head[: must.start()], head[must.end() :]
    place = head[must.start() :] if expressions(after) or _compares(head[must.start() :]) else head
    found = [(match.start(), holds) for pattern, holds in _COMPARED for match in pattern.finditer(place)]
    near = min(found, key=itemgetter(0), default=None)
    return (before, after, near[1]) if near else None


def _compares(text: str) -> bool:
    return any(pattern.search(text) for pattern, _ in _COMPARED)


def _bound_holds(text: str) -> bool | None:
    """Whether what is said of a bound, kept or broken, is true of its numbers."""
    bounds = _bounds(text)
    if bounds is None:
        return None
    subject, objects = (numbers_of(expressions(part)) for part in bounds[:2])
    passes = not _NEGATIVE.search(text.rpartition(", ")[2])
    if not subject and len(objects) == 2:
        subject, objects = objects[:1], objects[1:]
    if not subject:
        return None
    near = re.search(r"within \S+ of \S+", bounds[1])
    if near and len(objects) == 2:
        return passes if (abs(subject[-1] - objects[1]) <= objects[0]) is passes else None
    if not objects and re.search(r"positive|negative", text):
        objects = [Fraction(0)]
    # Without a number after "must" the sentence has said before what the bound is.
    pairs = [(subject[-1], objects[0])] if objects else list(permutations(subject, 2))
    return passes if any(bounds[2](a, b) is passes for a, b in pairs) else None


def numbers_of(trees: list[Tree]) -> list[Fraction]:
    return [number for number in map(_number, trees) if number is not None]


def _same(a: Tree, b: Tree) -> bool:
    x, y = _number(a), _number(b)
    return x == y if x is not None and y is not None else _identical(a, b)


def _compared_with(reading: _Reading, text: str) -> Iterator[Fraction]:
    for _, words, compared in _verdicts(reading, text):
        if not _NOT_WHOLE.search(words) and not _SIDES.search(words):
            yield from numbers_of(compared)


def _judge_redo(reading: _Reading, index: int, text: str) -> None:
    """A redo states true equations and ends with a true value."""
    text = normalised(text)
    found = chains(text)
    for chain in found:
        for relation in chain:
            if true(relation, reading.facts) is not True:
                reading.object(index, f"redone wrongly: {text[relation.start : relation.end]}")
    results = [_number(chain[-1].right) for chain in found]
    truth = set(reading.facts.truth.values()) | {root for roots in reading.facts.roots.values() for root in roots}
    if results and results[-1] is not None and results[-1] not in truth and results[-1] != 0:
        reading.object(index, f"redone to {results[-1]}, which is no true value")
