"""Steps that the gold calls valid without saying whether they are redundant, so that they are neither neu nor pos.

Benchmarks that name errors alone have them: in PRMBench every step but the errors, in Math-Shepherd every +.
"""

from dataclasses import replace

from core.errors import UserError
from core.label import Label
from core.trace import Step, Trace


def settle(trace: Trace, valid: str | None) -> Trace:
    """The trace with such steps as `valid` says: `pos`, or `unlabelled`.

    There is no default: unlabelled leaves errors alone to learn from, and pos says more than the gold does.
    Raises `UserError` where `valid` is None and the trace has such a step.
    """
    unrated = [number for number, step in enumerate(trace.steps, start=1) if _is_unrated(step)]
    if not unrated or valid == "unlabelled":
        return trace
    if valid is None:
        raise UserError(
            f"trace {trace.id!r}: step {unrated[0]} is valid, but nothing says whether it is redundant.",
            "Give the source valid: pos, or valid: unlabelled to learn from its other steps alone.",
        )
    return replace(trace, steps=tuple(_rated(step) if _is_unrated(step) else step for step in trace.steps))


def _is_unrated(step: Step) -> bool:
    return step.label is None and step.valid is True


def _rated(step: Step) -> Step:
    return Step(step.substeps, Label.POS)
