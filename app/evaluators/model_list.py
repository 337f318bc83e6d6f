"""The evaluators on this machine and those that can be fetched, for the Evaluators page and `stepsight
evaluators`."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.evaluator_summary import EvaluatorSummary
from stepsight.core.hubs.hub_cache import Fetched, free_disk, list_fetched
from stepsight.core.hubs.public import PublicEvaluator, find_public, public_evaluators, unreadable
from stepsight.core.models.memory import needed_memory, total_memory
from stepsight.core.models.placement import Placement, expected_dtype
from stepsight.core.paths import format_bytes
from stepsight.core.scores import Outputs
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import StoredEvaluator, list_evaluators


@dataclass(frozen=True)
class LocalModel:
    """An evaluator that can score on this machine. `origin` says where it comes from. `repo` and `revision`
    identify a fetched evaluator, and are "" for all others."""

    name: str
    about: EvaluatorSummary
    origin: str
    in_memory: bool
    repo: str = ""
    revision: str = ""
    public: PublicEvaluator | None = None


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


@dataclass(frozen=True)
class Shelf:
    """The content of the Evaluators page.

    `here` lists the evaluators that can score on this server. `unloaded` lists those that were fetched but never
    loaded with weights of the current type, `imported` those of which only imported scores are known, and `offers`
    those that can be fetched. `stored` holds the fingerprints of all evaluators in the store.
    """

    here: tuple[LocalModel, ...]
    unloaded: tuple[Fetched, ...]
    imported: tuple[StoredEvaluator, ...]
    offers: tuple[FetchableModel, ...]
    stored: frozenset[str]


def read_shelf(store: Store, evaluators: Evaluators) -> Shelf:
    """Collect the current content of the Evaluators page."""
    # The page's last refresh is when a fetch ends, and its content then stays.
    evaluators.look_again()
    here = [_here(evaluators, name) for name in evaluators.all_names]
    fetched = list_fetched()
    shown = {one.repo for one in here}
    repos = {one.repo for one in fetched}
    scoring = {one.about.fingerprint for one in here}
    stored = list_evaluators(store)
    return Shelf(
        tuple(here),
        tuple(one for one in fetched if one.repo not in shown and not evaluators.is_given(one)),
        tuple(one for one in stored if one.is_imported and one.fingerprint not in scoring),
        tuple(offers(evaluators.place, repos)),
        frozenset(one.fingerprint for one in stored),
    )


def offers(place: Placement, here: Iterable[str]) -> list[FetchableModel]:
    """List the public evaluators, with the resources they need at `place`. `here` holds the ids of evaluators that
    have been fetched."""
    known = frozenset(here)
    return [_offer(one, one.id in known, place) for one in public_evaluators()]


def ordered(offers: Iterable[FetchableModel]) -> list[FetchableModel]:
    """Return the public evaluators in the order of the page.

    Fetched ones come first, then those for which this machine has room, and all others. Within each group, the best
    published figure comes first.
    """

    def place(one: FetchableModel) -> tuple[bool, bool, float, int]:
        return not one.is_here, bool(one.unfit), -(one.f1 or 0), one.public.parameters

    return sorted(offers, key=place)


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
    # They bring PyTorch.
    from stepsight.core.formats.recognition import FORMATS

    return frozenset(kind.NAME for kind in FORMATS)


def _offer(one: PublicEvaluator, is_here: bool, place: Placement) -> FetchableModel:
    dtype = expected_dtype(one.stored, place)
    memory = needed_memory(one.all_parameters, dtype)
    return FetchableModel(
        one,
        is_here,
        memory,
        dtype,
        unreadable(one, formats()),
        unfit(memory, 0 if is_here else one.size, place),
    )


def _here(evaluators: Evaluators, name: str) -> LocalModel:
    origin = evaluators.origin(name)
    repo, revision = evaluators.fetched_from(name)
    return LocalModel(
        name,
        evaluators.about(name),
        origin,
        name in evaluators.in_memory,
        repo,
        revision,
        public=find_public(repo) if repo else None,
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
