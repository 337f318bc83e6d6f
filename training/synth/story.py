"""Stories: templates of problems whose solution is a chain of calculations, read from `stories/*.yaml`.

Each file in `stories/` holds the stories of one family, by name. `corpus.py` gives each family its weight. A
story looks like this:

    party:
      problems: |                      # one wording a line: {k} a number, {a_} with its noun, @{p} dollars
        {name} and others, {k} in all, share a bill for {a_} at @{p} each. What does each of them pay?
      names: {name: people}            # words to draw: a list of them, or `people` or `things`
      quantities:                      # numbers to draw, and what they count
        k: {values: 3 to 9, noun: people}
        a: {values: [2, 4, 6], noun: pizzas, words: {6: half a dozen pizzas}}
        p: {values: 10 to 30 by 5, noun: dollars for one pizza}
      conditions: [x > 5]              # must hold for the right values
      steps:                           # key: a formula of quantities and earlier steps; `what` names the result
        w: {formula: a * p, what: the bill}
        x:
          formula: w / k
          what: the share of each
          wording: |                   # instead of the common wording
            Each pays {eq}.
          mistakes:                    # in addition to the errors that any formula of this form invites
            - kind: invalid inference
              formula: w / (k + 1)
              wording: "{What} comes to {eq}."       # fits the right calculation too, and is used for both
              reason: With {name}, {eq} for each.    # fits only the mistake
              right:                                 # problems in which the reason is true
                problems: |
                  {name} and {k} others share a bill for {a_} at @{p} each. What does each of them pay?
      verifications:                   # calculate backwards from the answer to a number in the problem
        - steps: {y: answer * k, z: y / a}
          equals: p
      bounds:                          # true of every right solution
        x < w: the share {x} must be less than the whole bill {w}

A file begins with a comment on the subject of its stories. A wording that several stories in a file share is
written once and named: `wording: &halved |`, then `wording: *halved`.

The wording must not give errors away. A mistake is therefore mostly worded like the right calculation. A phrase
that fits only the mistake, its `reason`, should have a counterpart: `right` holds problems with the same quantities
in which the phrase is true. In those problems the mistake's formula is right, and the story's own formula is the
mistake. Steps that are not needed there are left out, and so are verifications and bounds. `what` renames, by key,
results that mean something else there; they get the common wording.

In a wording, `{eq}` stands for the calculation, `{what}` for the name of its result (see `wording.yaml`), `[...]`
for a formula, and `<a,b,c>` for a polynomial (see `Style.fill`). A new story changes the traces of every seed, and
therefore the hashes in `tests/training/synth/test_corpus.py`.
"""

import random
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, PlainValidator, Strict, model_validator

from stepsight.core.validation import ListOf, Model, invalid
from stepsight.training.synth.formula import ErrorKind, Formula, invited_errors, parse_condition, parse_formula
from stepsight.training.synth.style import Number, Style, Values, templates, word_lists

_RANGE = re.compile(r"(-?\d+) to (-?\d+)(?: by (\d+))?")
# Braces after a command, a bracket, ^ or _ belong to LaTeX.
_PLACE = re.compile(r"(?<![\w}^\]\\])\{[+(]?([a-zA-Z]\w*)\)?\}")
_INDIRECT_RATE = 0.7


def _values(entry: object) -> Sequence[int]:
    """Parse a range such as `2 to 9` or `10 to 90 by 10`, or a list of numbers and ranges."""
    if isinstance(entry, str) and (match := _RANGE.fullmatch(entry)):
        first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
        if values := range(first, last + 1, step):
            return values
    if isinstance(entry, list):
        return tuple(value for part in entry for value in ([part] if type(part) is int else _values(part)))
    raise invalid(f"{entry!r} found, expected such as '2 to 9', '10 to 90 by 10' or [3, 5, 8]")


def _words(entry: object) -> tuple[str, ...]:
    if isinstance(entry, str) and entry in word_lists():
        return word_lists()[entry]
    if isinstance(entry, list) and entry and all(isinstance(word, str) for word in entry):
        return tuple(entry)
    raise invalid(f"{entry!r} found, expected a list of words, or {' or '.join(word_lists())}")


def _lines(entry: object) -> tuple[str, ...]:
    if isinstance(entry, str) and entry.strip():
        return tuple(line for line in entry.splitlines() if line.strip())
    raise invalid(f"{entry!r} found, expected text, one template per line")


def _with_keys(entry: object) -> object:
    if isinstance(entry, dict):
        return {key: value | {"key": key} if isinstance(value, dict) else value for key, value in entry.items()}
    return entry


Templates = Annotated[tuple[str, ...], PlainValidator(_lines)]
"""Text in the file, one template per line."""
# YAML reads a formula that is just a number as a number.
_Calculated = Annotated[Formula, PlainValidator(lambda entry: parse_formula(str(entry)))]
_Condition = Annotated[Formula, PlainValidator(lambda entry: parse_condition(str(entry)))]


class Quantity(Model):
    """A quantity in a problem: the values that it can have, and the `noun` for what it counts.

    `words` maps values to other ways of expressing them, such as 7 to "a week". A `fixed` quantity keeps its range
    even if larger numbers are requested. A quantity with a `formula` is computed from other quantities instead of
    being chosen at random.
    """

    values: Annotated[Sequence[int], PlainValidator(_values)] = ()
    noun: str = ""
    words: dict[int, str] = Field({})
    fixed: bool = False
    formula: _Calculated | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.values) == bool(self.formula):
            raise invalid("expected either values or a formula")
        return self

    def draw(self, rng: random.Random, larger: bool) -> int:
        value = rng.choice(self.values)
        if not larger or self.fixed or self.words:
            return value
        # Beyond all values in training, on the same grid.
        top, low = max(self.values), min(self.values)
        return value + (top - low) + (self.values.step if isinstance(self.values, range) else 1)


class Counterpart(Model):
    """Problems with the same quantities in which a mistake is the right calculation. `what` gives new names, by
    key, to results that mean something else in these problems. `conditions` are added to those of the story."""

    problems: Templates
    what: dict[str, str] = Field({})
    conditions: ListOf[_Condition] = ()


class Mistake(Model):
    """A mistake that a calculation invites: computing `formula` instead of the right formula.

    `wording` fits the right calculation too and is used for both. `reason` fits only the mistake and is false for
    the right calculation. To keep the reason from giving the mistake away, `right` holds problems in which the
    reason is true.
    """

    kind: Annotated[ErrorKind, Strict(False)]
    formula: _Calculated
    wording: Templates = ()
    reason: Templates = ()
    right: Counterpart | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.kind in (ErrorKind.SLIP, ErrorKind.MISREAD, ErrorKind.ANSWER):
            raise invalid(f"{self.kind.value} is drawn, but no calculation invites it")
        return self


class Calculation(Model):
    """The calculation `key = formula`, which may use the quantities and the calculations before it.

    `what` names the result in words. `wording` holds step templates for this calculation. `mistakes` are the errors
    that it invites in addition to those that any formula of its form invites. `unit` is written after the result.
    """

    key: str
    formula: _Calculated
    what: str = ""
    wording: Templates = ()
    mistakes: ListOf[Mistake] = ()
    unit: str = ""

    @property
    def templates(self) -> tuple[str, ...]:
        """The templates that state this calculation, right or wrong, or () if it uses the common wording."""
        shared = [text for mistake in self.mistakes for text in mistake.wording]
        return tuple(dict.fromkeys((*(self.wording or (templates("says") if shared else ())), *shared)))

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(text for mistake in self.mistakes for text in mistake.reason)

    @property
    def invited(self) -> tuple[Mistake, ...]:
        """The mistakes of this calculation, followed by those that its formula invites by its form."""
        return (*self.mistakes, *_mistakes_by_form(self.formula, self.unit))

    @property
    def invites_terse(self) -> bool:
        """True if a mistake just copies a number, so that there is no calculation to show."""
        texts = [mistake.formula.text for mistake in self.invited]
        return any(text.isidentifier() or text.isdigit() for text in texts)


@cache
def _mistakes_by_form(formula: Formula, unit: str) -> tuple[Mistake, ...]:
    return tuple(
        Mistake.model_construct(kind=kind, formula=parse_formula(text))
        for kind, text in invited_errors(formula, unit)
    )


class BackCalculation(Model):
    """Calculations that lead backwards from the answer to a number in the problem. The result must equal `equals`.

    They may use the key `answer`, the quantities and their own keys, and each should have a single operation.
    `result` names the calculation that gives the result; by default it is the last one.
    """

    steps: Annotated[dict[str, _Calculated], Field(min_length=1)]
    equals: str
    result: str = ""
    kind: str = "add back"

    @cached_property
    def calculations(self) -> tuple[Calculation, ...]:
        return tuple(Calculation.model_construct(key=key, formula=formula) for key, formula in self.steps.items())

    @property
    def result_key(self) -> str:
        return self.result or list(self.steps)[-1]


class Story(Model):
    """A template of problems whose solution is a chain of calculations.

    In `problems`, {n} is a number, @{p} is an amount in dollars, and {d_} is "7 days" or "a week". `verifications`
    lead backwards from the answer. The right solution must meet `conditions`. `bounds` hold in any right solution,
    and each maps to a text that states it. Meeting a bound proves nothing; violating one proves an error. Results
    are whole unless `whole` is false. They lie between `smallest` and `largest`, which is raised if larger numbers
    are requested. `answers` replace the common wording of the last step. `outlines` announce the plan. `hidden`
    quantities, such as roots, do not appear in the problem, and other quantities are computed from them. `readings`
    is True if a step may read a quantity off the problem.
    """

    problems: Templates
    quantities: Annotated[dict[str, Quantity], Field(min_length=1)]
    steps: Annotated[dict[str, Calculation], BeforeValidator(_with_keys), Field(min_length=1)]
    names: dict[str, Annotated[tuple[str, ...], PlainValidator(_words)]] = Field({})
    hidden: dict[str, Quantity] = Field({})
    conditions: ListOf[_Condition] = ()
    verifications: ListOf[BackCalculation] = ()
    bounds: dict[_Condition, str] = Field({})
    largest: int = 400
    smallest: int = 1
    whole: bool = True
    decimals: bool = False
    answers: Templates = ()
    outlines: Templates = ()
    readings: bool = True

    @model_validator(mode="after")
    def _check(self) -> Self:
        if computed := [key for key, quantity in self.hidden.items() if quantity.formula]:
            raise invalid(f"hidden.{computed[0]} has a formula, expected values")
        for key, uses, allowed in self._iterate_uses():
            texts = "\n".join(text for text in uses if isinstance(text, str))
            names = {*_PLACE.findall(texts)}.union(*(use.names for use in uses if isinstance(use, Formula)))
            if unknown := sorted(names - set(allowed)):
                raise invalid(f"{key} uses {', '.join(unknown)}, expected some of {', '.join(allowed)}")
        return self

    def _iterate_uses(self) -> Iterator[tuple[str, Collection[str | Formula], Sequence[str]]]:
        """Yield a tuple for each part of the story: its key, its formulas and templates, and the names that these
        may use."""
        drawn = [key for key, quantity in self.quantities.items() if not quantity.formula]
        for key, quantity in self.quantities.items():
            if quantity.formula:
                yield f"quantities.{key}", [quantity.formula], [*self.hidden, *drawn]
            yield f"quantities.{key}", (quantity.noun, *quantity.words.values()), list(self.names)
        before, given = list(self.quantities), [*self.names, *self.quantities]
        calculated = [*given, *self.steps]
        yield "outlines", self.outlines, given
        problems = list(self.problems)
        for key, step in self.steps.items():
            yield f"steps.{key}", [step.formula, *(mistake.formula for mistake in step.mistakes)], before
            texts = (step.what, *step.templates, *step.reasons)
            yield f"steps.{key}", texts, [*calculated, "what", "What", "box", "eq", "weq", "res", "wres"]
            problems += [text for mistake in step.mistakes if mistake.right for text in mistake.right.problems]
            before.append(key)
        yield "problems", problems, [*given, *(f"{key}_" for key in self.quantities)]
        for condition in (*self.conditions, *self.bounds):
            yield f"the condition {condition.text}", [condition], before
        yield "bounds", tuple(self.bounds.values()), calculated
        yield "answers", self.answers, [*calculated, "what", "What", "box"]
        for number, verification in enumerate(self.verifications):
            place, back = f"verifications[{number}]", ["answer", *self.quantities]
            for key, formula in verification.steps.items():
                yield f"{place}.steps.{key}", [formula], back
                back.append(key)
            yield place, [parse_formula(verification.equals), parse_formula(verification.result_key)], back

    @cached_property
    def calculations(self) -> tuple[Calculation, ...]:
        return tuple(self.steps.values())

    @cached_property
    def counterparts(self) -> tuple["Story", ...]:
        """The variants of this story in which one of its mistakes is right."""
        return tuple(
            self._turn(calculation, mistake, mistake.right)
            for calculation in self.calculations
            for mistake in calculation.mistakes
            if mistake.right
        )

    def _turn(self, turned: Calculation, mistake: Mistake, right: Counterpart) -> Self:
        """Return the variant of this story in which `mistake` is right, and this story's own formula the mistake.

        The variant leaves out steps that are not needed and statements about the answer that may be false.
        """
        steps: dict[str, Calculation] = {}
        needed = {list(self.steps)[-1]}
        for key, step in reversed(self.steps.items()):
            changes: dict[str, Any] = (
                {"what": right.what[key], "wording": (), "mistakes": ()} if key in right.what else {}
            )
            if step is turned:
                own = {"formula": step.formula, "wording": (), "reason": step.wording, "right": None}
                changes["formula"], changes["wording"] = mistake.formula, (*mistake.reason, *mistake.wording)
                changes["mistakes"] = (mistake.model_copy(update=own),)
            if key in needed:
                steps[key] = step.model_copy(update=changes)
                needed |= steps[key].formula.names
        available = {*self.quantities, *needed}
        for key, step in steps.items():
            kept = tuple(mistake for mistake in step.mistakes if mistake.formula.names <= available)
            steps[key] = step.model_copy(update={"mistakes": kept})
        conditions = (*self.conditions, *right.conditions)
        changes = {
            "problems": right.problems,
            "steps": dict(reversed(steps.items())),
            "conditions": tuple(condition for condition in conditions if condition.names <= available),
        }
        silent: dict[str, Any] = {"verifications": (), "bounds": {}, "outlines": (), "answers": ()}
        return self.model_construct(**{name: getattr(self, name) for name in Story.model_fields} | silent | changes)

    @cached_property
    def error_kinds(self) -> tuple[tuple[ErrorKind, ...], ...]:
        """The kinds of errors that each calculation can contain."""
        read_at = {self.first_use(key) for key in self.quantities}
        possible = [
            {ErrorKind.SLIP, *(mistake.kind for mistake in calculation.invited)}
            | ({ErrorKind.MISREAD} if index in read_at else set())
            for index, calculation in enumerate(self.calculations)
        ]
        return tuple(tuple(kind for kind in ErrorKind if kind in kinds) for kinds in possible)

    @cached_property
    def joinable(self) -> tuple[int, ...]:
        """The indices of the calculations that can share a step with the next one. This requires that only the next
        calculation uses their result."""

        def single(calculation: Calculation) -> bool:
            operands = calculation.formula.operands(dict.fromkeys(calculation.formula.names, 1))
            return operands is not None and operands[0] != "%"

        indices = []
        for index in range(len(self.calculations) - 1 if len(self.calculations) > 2 else 0):
            here, after = self.calculations[index : index + 2]
            uses = [item for item in self.calculations if here.key in item.formula.names]
            worded = any((*item.templates, *item.reasons) for item in (here, after))
            if uses == [after] and single(here) and single(after) and not worded and not here.unit:
                indices.append(index)
        return tuple(indices)

    def first_use(self, key: str) -> int | None:
        """Return the index of the first calculation that uses a quantity, or None if no calculation does."""
        return next((i for i, item in enumerate(self.calculations) if key in item.formula.names), None)

    def draw(self, rng: random.Random, larger: bool) -> tuple[dict[str, Number], dict[str, str]]:
        """Choose random values for the quantities, and random names. The story's conditions are not checked."""
        drawn = {**self.hidden, **self.quantities}
        values: dict[str, Number] = {key: item.draw(rng, larger) for key, item in drawn.items() if not item.formula}
        for key, quantity in self.quantities.items():
            if quantity.formula:
                value = quantity.formula.value(values)
                assert value is not None
                values[key] = value
        values = {key: values[key] for key in self.quantities}
        return values, {key: rng.choice(choices) for key, choices in self.names.items()}

    def problem(self, values: Values, names: Mapping[str, str], style: Style, rng: random.Random) -> str:
        """Return the text of a problem with these values and names."""
        template, texts = rng.choice(self.problems), dict(names)
        for key, quantity in self.quantities.items():
            indirect = quantity.words.get(int(values[key]))
            plain = f"{values[key]} {quantity.noun.format(**names)}"
            texts[f"{key}_"] = indirect.format(**names) if indirect and rng.random() < _INDIRECT_RATE else plain
        return style.fill(template, texts, values, problem=True)
