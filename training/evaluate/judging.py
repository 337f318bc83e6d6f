"""Finding the evaluators that a user names, with the thresholds at which they are measured, and having them judge
unjudged traces first.

Measuring stored judgments needs no PyTorch, so that importing this module does not load it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from stepsight.core.errors import UserError
from stepsight.core.inference_servers.address import is_address
from stepsight.core.judgment import Mode
from stepsight.core.metrics.shortcuts import PREFIX, find_baseline
from stepsight.core.models.location import can_load
from stepsight.core.models.placement import Placement, untyped_name
from stepsight.core.scores import Outputs, Thresholds
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import (
    Calibration,
    StoredEvaluator,
    count_shared,
    evaluators_of,
    find_calibration,
    list_evaluators,
)
from stepsight.storage.judgments.judgments import count_missing
from stepsight.storage.traces.queries import Dataset
from stepsight.training.runs.processes import Processes

if TYPE_CHECKING:
    from stepsight.training.evaluate.completion import Completion

Checked = TypeVar("Checked")
# The largest share of a dataset's traces that may also be among those on which thresholds were chosen.
_MAY_SHARE = 0.03


@dataclass(frozen=True)
class MeasuredEvaluator:
    """A stored evaluator or a baseline, with the thresholds at which it is measured.

    `id` is the id of the stored evaluator, or None for a baseline. `calibration` holds its calibrated thresholds;
    if it is None, the evaluator's `own` thresholds apply. `chosen_here` is True if the calibration used this
    dataset.
    """

    name: str
    outputs: Outputs
    id: int | None = None
    calibration: Calibration | None = None
    own: Thresholds = field(default_factory=Thresholds)
    chosen_here: bool = False

    @property
    def thresholds(self) -> Thresholds:
        return self.calibration.thresholds if self.calibration else self.own


def with_thresholds(
    store: Store, dataset: Dataset, evaluator: StoredEvaluator, force: bool = False
) -> MeasuredEvaluator:
    """Return a stored evaluator with the thresholds at which it is to be measured.

    Raises `UserError` if the thresholds were calibrated on the dataset's own traces. With `force`, the evaluator's
    rows are marked instead.
    """
    calibration = find_calibration(store, evaluator.id)
    problem = _describe_calibration(store, dataset, calibration) if calibration else ""
    if problem and not force:
        raise UserError(
            f"the thresholds of {evaluator.name} were chosen {problem}: their figures there do not hold for"
            " other traces.",
            "Measure it on another dataset, or add --force, which marks its rows.",
        )
    return MeasuredEvaluator(
        evaluator.name, evaluator.outputs, evaluator.id, calibration, evaluator.thresholds, bool(problem)
    )


def _describe_calibration(store: Store, dataset: Dataset, calibration: Calibration) -> str:
    """Describe where the thresholds were calibrated if that was on traces of this dataset. Otherwise return ""."""
    for origin in calibration.origins.values():
        if dataset.id == origin.dataset_id or dataset.name == origin.dataset:
            return f"on {dataset.name}"
        if origin.dataset_id is None:
            continue
        shared = count_shared(store, dataset.id, origin.dataset_id)
        if shared > _MAY_SHARE * dataset.traces:
            return f"on {origin.dataset}, which has {shared:,} of the {dataset.traces:,} traces of {dataset.name}"
    return ""


def find_evaluators(
    store: Store,
    dataset: Dataset,
    names: Sequence[str],
    modes: Sequence[Mode],
    check: Callable[[StoredEvaluator], Checked],
    place: Placement,
    ours: Processes | None = None,
    *,
    yes: bool = False,
) -> list[Checked]:
    """Have evaluators judge the traces that they have not judged, and return the result of `check` for each
    evaluator.

    The evaluators are those in `names` or, if it is empty, those that have judged the dataset. Each evaluator that
    can run here first judges the remaining traces at `place`. The traces are divided among the processes `ours`. A
    critic's hindsight needs a confirmation unless `yes` is True.

    `check` is called once for each evaluator; for stored evaluators, it is called before anything is scored.
    Baselines may be named, but have no results. Raises `UserError` if a name is not a baseline, a stored or shipped
    evaluator, a folder or an address.
    """
    mode, ours = Mode.HINDSIGHT if len(modes) > 1 else modes[0], ours or Processes()

    def completion() -> "Completion":
        # This import loads PyTorch.
        from stepsight.training.evaluate.completion import Completion

        return Completion(store, dataset, mode, place, ours, yes)

    if not names:
        evaluators = evaluators_of(store, dataset.id)
        checked = [check(evaluator) for evaluator in evaluators]
        for evaluator in evaluators:
            # The model behind an address may have changed, and calls may cost money. An evaluator that has judged
            # everything is not loaded, which would take more time and memory than measuring most datasets.
            name = untyped_name(evaluator.name, evaluator.dtype, evaluator.reading)
            can_resume = can_load(name) and not is_address(name)
            if can_resume and ours.agree(count_missing(store, dataset.id, evaluator.id, mode)):
                completion().resume(name, evaluator)
        return checked
    run = completion() if any(map(can_load, names)) else None
    stored = {evaluator.name: evaluator for evaluator in list_evaluators(store)}
    meant = {name: run.find(name, stored) if run else stored.get(name) for name in names}
    checked_rows = {row.id: check(row) for row in meant.values() if row is not None}
    chosen = []
    for name, row in meant.items():
        if name.startswith(PREFIX):
            find_baseline(name)
            continue
        ran = (run.complete(name, row) if run else None) or row
        if ran is None:
            raise UserError(f"there is no evaluator {name!r}.", "Name a stored or shipped one, or a folder.")
        chosen.append(checked_rows[ran.id] if ran.id in checked_rows else check(ran))
    return chosen
