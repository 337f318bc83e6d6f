"""Describing a fetched evaluator by loading it once, for pages and lists that show it while it is not in memory."""

import time

from stepsight.core.description import Description
from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.hubs.hub_cache import Fetched, save_fetched
from stepsight.core.models.checkpoint_resolver import resolve_placement
from stepsight.core.models.memory import check_memory, memory_of
from stepsight.core.models.placement import Placement


def describe_fetched(fetched: Fetched, place: Placement) -> Description:
    """The description of an evaluator with its weights at `place`, stored beside it. Raises `UserError` if it
    cannot be loaded."""
    place = resolve_placement(place, fetched.folder)
    kept = fetched.descriptions.get(place.dtype)
    if kept is not None:
        return kept
    start = time.perf_counter()
    try:
        if place.on_processor:
            check_memory(fetched.repo, memory_of(fetched, place.dtype))
        evaluator = load_evaluator(fetched.folder, place.device, place.dtype, place.device_map)
    except UserError as error:
        raise UserError(f"{fetched.repo} is here, but does not load: {error.message}", error.hint) from None
    description = evaluator.description(round(time.perf_counter() - start, 2))
    save_fetched(fetched.described(place.dtype, description))
    return description
