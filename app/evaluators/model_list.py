"""The public evaluators that can be fetched, for the Evaluators page and `stepsight evaluators`."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from stepsight.core.hubs.hub_cache import free_disk
from stepsight.core.hubs.public import PublicEvaluator, public_evaluators, unreadable
from stepsight.core.models.memory import needed_memory, total_memory
from stepsight.core.models.placement import Placement, expected_dtype
from stepsight.core.paths import format_bytes
from stepsight.core.scores import Outputs

USUAL_TOKENS = 300
"""The number of tokens in a typical solution."""

# Additions and multiplications per second and processor core: in float32 with AVX2, and in the types that only
# processors with special instructions support.
_SPEED, _SPECIAL = 40e9, 120e9


@dataclass(frozen=True)
class FetchableModel:
    """A public evaluator that can be fetched. `is_here` is True if it has been fetched.

    `memory` is its size in bytes with weights in `dtype`.
    `unreadable` is the reason why this version cannot read the evaluator, and `unfit` the reason why this machine
    has no room for it. Each is "" if the problem does not exist.
    """

    public: PublicEvaluator
    is_here: bool
    memory: int
    dtype: str
    unreadable: str = ""
    unfit: str = ""

    @property
    def can_be_fetched(self) -> bool:
        return not self.is_here and not self.unreadable and not self.unfit

    @property
    def f1(self) -> float | None:
        """The published average F1 on ProcessBench, in percent, or None if there is none."""
        return self.public.processbench.average if self.public.processbench else None

    @property
    def seconds(self) -> float:
        """An estimate of the time in which this machine's processor reads a typical solution: each weight is
        multiplied and added once per token."""
        speed = _SPEED if self.dtype == "float32" else _SPECIAL
        return 2 * self.public.all_parameters * USUAL_TOKENS / (speed * (os.cpu_count() or 1))


def offers(place: Placement, here: Iterable[str]) -> list[FetchableModel]:
    """List the public evaluators, with the resources they need at `place`. `here` holds the ids of evaluators that
    have been fetched."""
    fetched = frozenset(here)
    return [_offer(public, public.id in fetched, place) for public in public_evaluators()]


def ordered(offers: Iterable[FetchableModel]) -> list[FetchableModel]:
    """Return the public evaluators in the order of the page.

    Fetched ones come first, then those for which this machine has room, and all others. Within each group, the best
    published figure comes first.
    """

    def rank(model: FetchableModel) -> tuple[bool, bool, float, int]:
        return not model.is_here, bool(model.unfit), -(model.f1 or 0), model.public.parameters

    return sorted(offers, key=rank)


def unfit(memory: int, disk: int, place: Placement) -> str:
    """Return the reason why this machine has no room for an evaluator that takes `memory` and `disk` bytes. Returns
    "" if it has room or its own capacity is unknown."""
    total = total_memory() if place.on_processor else None
    if total is not None and memory > total:
        return f"Takes about {format_bytes(memory)} of memory, and this machine has {format_bytes(total)}."
    free = free_disk()
    if free is not None and disk > free:
        return f"Takes about {format_bytes(disk)} on the disk, and {format_bytes(free)} are free."
    return ""


@cache
def formats() -> frozenset[str]:
    """Return the names of the checkpoint formats that this version reads."""
    # These imports load PyTorch.
    from stepsight.core.formats.recognition import FORMATS

    return frozenset(kind.name for kind in FORMATS)


def _offer(public: PublicEvaluator, is_here: bool, place: Placement) -> FetchableModel:
    dtype = expected_dtype(public.stored, place)
    memory = needed_memory(public.all_parameters, dtype)
    return FetchableModel(
        public,
        is_here,
        memory,
        dtype,
        unreadable(public, formats()),
        unfit(memory, 0 if is_here else public.size, place),
    )


def judges(outputs: Outputs) -> str:
    """Describe in words the kind of verdict that an evaluator gives."""
    return {
        Outputs.THREE_WAY: "validity and redundancy",
        Outputs.VALIDITY: "validity",
        Outputs.SOLUTION: "the whole solution",
        Outputs.VERDICT: "in words",
        Outputs.CHECKS: "equations",
    }[outputs]
