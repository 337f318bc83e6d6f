"""Opening fetched evaluators for the first time, in a child, and recording their properties.

The content of an untrusted repository is unknown until it is read. It is read in a child with limits, once for each
type of weights, and the findings are stored in the record of the fetched model. Lists of evaluators are built from
records alone. Does not need PyTorch.
"""

import atexit
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import cache
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.evaluator_summary import EvaluatorSummary
from stepsight.core.files.child import Answerer, Child, ChildError
from stepsight.core.hubs.hub_cache import (
    FetchedWeights,
    HubModel,
    caches,
    find_fetched,
    list_fetched,
    save_fetched,
    use_caches,
)
from stepsight.core.hubs.hub_download import Progress, fetch
from stepsight.core.hubs.hub_lookup import look_up
from stepsight.core.models.memory import check_memory, memory_of, opening_bounds
from stepsight.core.models.placement import STORED, Placement, computed_dtype
from stepsight.core.validation import validate

Room = Callable[[str, int], None]
"""Makes room for an evaluator, given its name and its size in bytes, and raises `UserError` if that fails."""


def fetched_in(folder: str) -> HubModel | None:
    """Return the downloaded evaluator whose folder this is, or None if there is none."""
    return next((fetched for fetched in list_fetched() if str(fetched.folder) == folder), None)


def known_description(fetched: HubModel, place: Placement) -> EvaluatorSummary | None:
    """Return the summary of an evaluator with weights at `place`, or None if it was never opened in their type."""
    return fetched.descriptions.get(_dtype_at(fetched, place))


def open_placement(fetched: HubModel, place: Placement) -> Placement:
    """Return the placement with the type in which a fetched evaluator is computed. Raises `UserError` if the
    evaluator has to be opened for that and cannot be."""
    return replace(place, dtype=_dtype_at(_with_weights(fetched), place))


def fetch_evaluator(
    repo: str, revision: str, pins: Mapping[str, str], progress: Progress, place: Placement, make_room: Room
) -> EvaluatorSummary:
    """Download a hub model at a commit, with the models that it needs at the commits `pins`, and return its
    summary. Raises `UserError` if the hub does not provide it or if it cannot be loaded."""
    fetched = find_fetched(repo)
    if fetched is None or fetched.revision != revision:
        # The child starts while files are downloaded.
        _opener().start()
        fetched = fetch(look_up(repo, revision, pins), progress)
    return describe_fetched(fetched, place, make_room)


def describe_fetched(fetched: HubModel, place: Placement, make_room: Room = check_memory) -> EvaluatorSummary:
    """Return the summary of a downloaded evaluator whose weights are loaded at `place`.

    If there is none in the record yet, the evaluator is loaded in a child, and the summary recorded. Raises
    `UserError` if it cannot be loaded; the reason is then stored in the record.
    """
    fetched = _with_weights(fetched)
    dtype = _dtype_at(fetched, place)
    summary = fetched.descriptions.get(dtype)
    if summary is not None:
        return summary
    if place.on_processor:
        make_room(fetched.repo, memory_of(fetched, dtype))
    description = validate(EvaluatorSummary, _describe(fetched, dtype))
    save_fetched(fetched.described(dtype, description))
    return description


def _with_weights(fetched: HubModel) -> HubModel:
    """Return the record with its weights, which are counted in a child if they are not known."""
    if fetched.weights is None:
        fetched = fetched.model_copy(update={"weights": validate(FetchedWeights, _describe(fetched, None))})
        save_fetched(fetched)
    return fetched


def _dtype_at(fetched: HubModel, place: Placement) -> str:
    if place.dtype != STORED or fetched.weights is None:
        return place.dtype
    return fetched.weights.dtype if fetched.weights.is_chosen else computed_dtype(fetched.weights.dtype, place)


def _describe(fetched: HubModel, dtype: str | None) -> Any:
    """Return a child's description of an evaluator with weights of the type `dtype`, or of its weights if `dtype`
    is None. If the child fails, the reason is stored in the record."""
    request = {"repo": fetched.repo, "dtype": dtype, "caches": caches()}
    try:
        return _opener().ask(request, bounds=opening_bounds(fetched.total))
    except UserError as error:
        failure = error
    except ChildError as error:
        failure = UserError(f"{error}.", "Choose another model.")
    save_fetched(fetched.model_copy(update={"failure": str(failure)}))
    raise UserError(f"{fetched.repo} was fetched, but cannot be loaded: {failure.message}", failure.hint)


@cache
def _opener() -> Child:
    """Return a child that stays alive, because importing PyTorch takes seconds. Copies of it open evaluators."""
    child = Child(make_opener, opening_bounds(0), fresh=True)
    atexit.register(child.close)
    return child


def make_opener() -> Answerer:
    """Return the function by which the child opens evaluators."""
    # This import loads PyTorch.
    from stepsight.core.evaluators.loading import describe, weigh

    def open_evaluator(request: Any, content: Iterator[bytes]) -> Any:
        use_caches(request["caches"])
        fetched = find_fetched(request["repo"])
        if fetched is None:
            raise UserError("a file is missing.", "Fetch the model again.")
        if request["dtype"] is None:
            return weigh(fetched).model_dump()
        return asdict(describe(fetched, request["dtype"]))

    return open_evaluator
