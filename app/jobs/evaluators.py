"""Loading evaluators for jobs, one at a time and within the free memory."""

from dataclasses import replace

from stepsight.core.evaluator_summary import split_reading
from stepsight.core.evaluators.loading import load_evaluator, load_fetched
from stepsight.core.evaluators.opening import Room, fetched_in, open_placement
from stepsight.core.models.evaluator_base import Evaluator
from stepsight.core.models.location import is_shipped
from stepsight.core.models.memory import memory_of
from stepsight.core.models.placement import Placement
from stepsight.core.scoring.scorer import Scorer
from stepsight.storage.jobs.jobs import Judging


class JobEvaluators:
    """Loads evaluators for jobs, and keeps the last one in memory. `place` means the same as for `Worker`, and
    `find_room` makes room for an evaluator."""

    def __init__(self, place: Placement | None, find_room: Room) -> None:
        self._place, self._find_room = place, find_room
        self._loaded: tuple[str, Scorer] | None = None

    def rest(self) -> None:
        """Release the evaluator in memory unless it is a shipped one, because the server may need the memory."""
        if self._loaded is not None and not is_shipped(self._loaded[0]):
            self._loaded = None

    def scorer(self, job: Judging) -> Scorer:
        """Return a scorer for the job's evaluator, reusing the last scorer if it is for the same evaluator. Raises
        `UserError` if the evaluator cannot be loaded."""
        if (
            self._loaded is None
            or self._loaded[0] != job.spec
            or (self._loaded[1].evaluator.fingerprint != job.fingerprint)
        ):
            self._loaded = None
            self._loaded = job.spec, Scorer(replace(self._load(job), name=job.evaluator))
        return self._loaded[1]

    def _load(self, job: Judging) -> Evaluator:
        """Load the evaluator of a job on the device and in the data type that the server uses for it. A shipped
        evaluator is loaded at `place` only if it was named when the server started."""
        place = self._place or Placement()
        folder, reading = split_reading(job.spec)
        fetched = fetched_in(folder)
        if fetched is not None:
            place = open_placement(fetched, place)
            if place.on_processor:
                self._find_room(fetched.name, memory_of(fetched, place.dtype))
            return load_fetched(fetched, place, reading)
        shipped = load_evaluator(job.spec) if is_shipped(job.spec) else None
        if shipped is not None and (self._place is None or shipped.fingerprint == job.fingerprint):
            return shipped
        evaluator = load_evaluator(job.spec, place.device, place.dtype, place.device_map)
        if shipped is not None and evaluator.fingerprint != job.fingerprint:
            return shipped
        return evaluator
