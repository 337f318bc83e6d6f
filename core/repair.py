"""Errors that a later step repairs, and the four conventions for gold after an error.

Benchmarks differ in how they label the steps that follow an error. A convention is one of their rules, and
`convert` converts gold from one convention to another. What an error does to later steps depends on the step that
repairs it (`Step.repaired`). The steps from an error to its repair form a stretch. A wrong step within it that
names no repair of its own belongs to it; one that does extends it to the later of the two repairs. Without a
repair, it lasts until the end of the trace.

    gold                      neg  pos  pos  pos        step 1 is repaired by step 3
    first-error               neg  -    -    -
    all-wrong                 neg  neg  neg  neg
    until-ceased              neg  pos  pos  pos
    unless-repaired           neg  neg  pos  pos

Steps are counted from 0, except in messages.
"""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TypeVar

from stepsight.core.errors import UserError
from stepsight.core.label import Label
from stepsight.core.trace import Step, Trace, gold_of, label_and_validity

Gold = Sequence[str | None]
"""The gold of each step: neg, neu, pos, `valid`, or None if nothing is known (see `core.trace.gold_of`)."""
Links = Sequence[int | None]
"""The step that repairs each step, or None."""

_NEG = Label.NEG.text
_T = TypeVar("_T", bound=Trace)


class Convention(StrEnum):
    """The rule by which gold treats the steps after the first error.

    - first-error: they have no label (PRM800K, ProcessBench).
    - all-wrong: they are wrong.
    - until-ceased: each has a label of its own, and the error ends where a step is right again (Beyond the First
      Error). Gold is read in this way unless its dataset names another convention.
    - unless-repaired: they are wrong unless they rest on a repaired step, which are those from the repair on
      (AgentProcessBench).
    """

    FIRST_ERROR = "first-error"
    ALL_WRONG = "all-wrong"
    UNTIL_CEASED = "until-ceased"
    UNLESS_REPAIRED = "unless-repaired"


def find_convention(name: str) -> Convention | None:
    """Return the convention with this name, or None for "". Raises `UserError` if there is none."""
    if not name:
        return None
    if name not in {one.value for one in Convention}:
        raise UserError(f"There is no convention {name!r:.40}.", f"Expected one of {', '.join(Convention)}.")
    return Convention(name)


class ErrorState(StrEnum):
    """The state of the errors of a trace. An error is open if no step repairs it."""

    OPEN = "open"
    REPAIRED = "repaired"
    CLEAN = "clean"


class _Part(StrEnum):
    """The part of a trace that a step after the first error belongs to: a stretch that is never repaired, one that
    is, or neither."""

    OPEN = "open"
    BETWEEN = "between"
    AFTER = "after"


# True if the gold of a step in this part says something about the step itself, and does not follow from the rule.
_OWN = {
    (Convention.FIRST_ERROR, _Part.OPEN): False,
    (Convention.FIRST_ERROR, _Part.BETWEEN): False,
    (Convention.FIRST_ERROR, _Part.AFTER): False,
    (Convention.ALL_WRONG, _Part.OPEN): False,
    (Convention.ALL_WRONG, _Part.BETWEEN): False,
    (Convention.ALL_WRONG, _Part.AFTER): False,
    (Convention.UNTIL_CEASED, _Part.OPEN): True,
    (Convention.UNTIL_CEASED, _Part.BETWEEN): True,
    (Convention.UNTIL_CEASED, _Part.AFTER): True,
    (Convention.UNLESS_REPAIRED, _Part.OPEN): False,
    (Convention.UNLESS_REPAIRED, _Part.BETWEEN): False,
    (Convention.UNLESS_REPAIRED, _Part.AFTER): True,
}
# The gold that the rule gives to a step in this part whose own gold is not known.
_BY_RULE = {
    (Convention.FIRST_ERROR, _Part.OPEN): None,
    (Convention.FIRST_ERROR, _Part.BETWEEN): None,
    (Convention.FIRST_ERROR, _Part.AFTER): None,
    (Convention.ALL_WRONG, _Part.OPEN): _NEG,
    (Convention.ALL_WRONG, _Part.BETWEEN): _NEG,
    (Convention.ALL_WRONG, _Part.AFTER): _NEG,
    (Convention.UNTIL_CEASED, _Part.OPEN): None,
    (Convention.UNTIL_CEASED, _Part.BETWEEN): _NEG,
    (Convention.UNTIL_CEASED, _Part.AFTER): None,
    (Convention.UNLESS_REPAIRED, _Part.OPEN): _NEG,
    (Convention.UNLESS_REPAIRED, _Part.BETWEEN): _NEG,
    (Convention.UNLESS_REPAIRED, _Part.AFTER): None,
}


def convert(gold: Gold, repaired: Links, source: Convention, target: Convention) -> tuple[str | None, ...]:
    """Return the gold of a trace by the convention `target`, given its gold by the convention `source`.

    Steps up to the first error keep their gold. If the source does not state a later step's own gold, the step gets
    the label that the target's rule gives it, or None. `lost` says which gold cannot be restored.
    """
    if source == target or _NEG not in gold:
        return tuple(gold)
    first = list(gold).index(_NEG)
    converted = list(gold)
    for step, part in enumerate(_parts(gold, repaired, source, first), start=first + 1):
        own = gold[step] if _OWN[source, part] else None if repaired[step] is None else _NEG
        told = own if _OWN[target, part] else None
        converted[step] = _BY_RULE[target, part] if told is None else told
    return tuple(converted)


def lost(gold: Gold, repaired: Links, source: Convention, target: Convention) -> tuple[int, ...]:
    """Return the steps whose gold would not be restored by converting it to the convention `target` and back to
    `source`."""
    back = convert(convert(gold, repaired, source, target), repaired, target, source)
    return tuple(step for step, (before, after) in enumerate(zip(gold, back, strict=True)) if before != after)


def _parts(gold: Gold, repaired: Links, source: Convention, first: int) -> list[_Part]:
    """Return the part that each step after the first error belongs to."""
    size = len(gold)
    end = _end(repaired[first], size)
    # A stretch that becomes longer by an error within it is of one kind from its start on.
    starts, parts = first + 1, []
    for step in range(first + 1, size):
        if step >= end:
            parts += [_Part.BETWEEN] * (step - starts)
            parts.append(_Part.AFTER)
            starts = step + 1
            wrong = repaired[step] is not None or (gold[step] == _NEG and _OWN[source, _Part.AFTER])
            end = _end(repaired[step], size) if wrong else step
        elif repaired[step] is not None:
            end = max(end, _end(repaired[step], size))
    return parts + [_Part.OPEN if end >= size else _Part.BETWEEN] * (size - starts)


def _end(repair: int | None, size: int) -> int:
    return size if repair is None else repair


def check_follows(gold: Gold, repaired: Links, convention: Convention) -> None:
    """Raise `UserError` if a step after the first error has a label that the convention does not give it."""
    if _NEG not in gold:
        return
    first = list(gold).index(_NEG)
    for step, part in enumerate(_parts(gold, repaired, convention, first), start=first + 1):
        by_rule = _BY_RULE[convention, part]
        if not _OWN[convention, part] and gold[step] not in (None, by_rule):
            expected = f"is {by_rule}" if by_rule else "has no label"
            raise UserError(
                f"step {step + 1} is {gold[step]}, and by {convention} it {expected}, after the error in step"
                f" {first + 1}.",
                "Name the convention that the file follows (--convention), or none.",
            )


def error_state(gold: Gold, repaired: Links, source: Convention = Convention.UNTIL_CEASED) -> ErrorState | None:
    """Return the state of the errors of a trace whose gold follows the convention `source`, or None if it has no
    gold."""
    if _NEG not in gold:
        return ErrorState.CLEAN if any(one is not None for one in gold) else None
    first = list(gold).index(_NEG)
    parts = _parts(gold, repaired, source, first)
    last_is_wrong = gold[-1] == _NEG and (not parts or (parts[-1] == _Part.AFTER and _OWN[source, _Part.AFTER]))
    return ErrorState.OPEN if last_is_wrong or _Part.OPEN in parts else ErrorState.REPAIRED


def state_of(trace: Trace, source: Convention = Convention.UNTIL_CEASED) -> ErrorState | None:
    """Return the state of the errors of a trace whose gold follows the convention `source`, or None if it has no
    gold."""
    return error_state([gold_of(step) for step in trace.steps], [step.repaired for step in trace.steps], source)


def by_convention(trace: _T, convention: Convention | None, source: Convention | None = None) -> _T:
    """Return a copy of a trace whose gold follows a convention, or the unchanged trace if `convention` is None. Its
    gold follows the convention `source`, by default `until-ceased`.

    A step that is no longer wrong loses its repair.
    """
    if convention is None:
        return trace
    gold = [gold_of(step) for step in trace.steps]
    converted = convert(
        gold, [step.repaired for step in trace.steps], source or Convention.UNTIL_CEASED, convention
    )
    pairs = zip(trace.steps, gold, converted, strict=True)
    return replace(trace, steps=tuple(step if old == new else _with_gold(step, new) for step, old, new in pairs))


def _with_gold(step: Step, gold: str | None) -> Step:
    label, valid = label_and_validity(gold)
    return replace(step, label=label, valid=valid, repaired=step.repaired if gold == _NEG else None)


def with_links(steps: Sequence[Step], repaired: Sequence[object], notices: Sequence[object]) -> tuple[Step, ...]:
    """Return the steps with links, which are given by the numbers of steps counted from 1, or None.

    Raises `UserError` if there is not one per step, or if `check_links` does.
    """
    for name, links in (("repaired", repaired), ("notices", notices)):
        if len(links) != len(steps):
            raise UserError(
                f"{name} has {len(links)} entries for {len(steps)} steps.", "Give one per step, null where none."
            )
        for number, value in enumerate(links, start=1):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise UserError(f"{name} of step {number} is {value!r:.40}, expected the number of a step.")
    linked = tuple(
        replace(step, repaired=_from_one(repair), notices=_from_one(notice))
        for step, repair, notice in zip(steps, repaired, notices, strict=True)
    )
    check_links(linked)
    return linked


def _from_one(number: object) -> int | None:
    return number - 1 if isinstance(number, int) else None


def check_links(steps: Sequence[Step]) -> None:
    """Raise `UserError` unless every link refers to an existing step: the repair of a wrong step to a later one,
    and a notice to an earlier one."""
    for number, step in enumerate(steps, start=1):
        if step.repaired is not None:
            check_repair(number - 1, step.repaired, len(steps), is_wrong=step.valid is False)
        if step.notices is not None:
            check_notice(number - 1, step.notices, len(steps))


def check_repair(step: int, repair: int, size: int, *, is_wrong: bool) -> None:
    """Raise `UserError` unless step `repair` of a trace with `size` steps can repair `step`."""
    number, repairing = step + 1, repair + 1
    what = f"step {number} is repaired by step {repairing}"
    _check_there(what, repairing, size)
    if repairing <= number:
        raise UserError(f"{what}, {_order(repairing, number)}.", "A step is repaired by a later one.")
    if not is_wrong:
        raise UserError(f"{what}, and step {number} is not wrong.", "Only a step labelled neg is repaired.")


def check_notice(step: int, noticed: int, size: int) -> None:
    """Raise `UserError` unless `step` of a trace with `size` steps can notice the step `noticed`."""
    number, earlier = step + 1, noticed + 1
    what = f"step {number} notices step {earlier}"
    _check_there(what, earlier, size)
    if earlier >= number:
        raise UserError(f"{what}, {_order(earlier, number)}.", "A step notices an earlier one.")


def _check_there(what: str, number: int, size: int) -> None:
    if not 1 <= number <= size:
        raise UserError(f"{what}, which the trace does not have.", f"It has {size}, counted from 1.")


def _order(number: int, other: int) -> str:
    return "which is the same step" if number == other else f"which is {'later' if number > other else 'earlier'}"
