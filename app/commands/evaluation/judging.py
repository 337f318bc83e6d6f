"""The evaluators that a command line names, with what they have yet to judge."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from stepsight.app.commands.evaluation.processes import Processes
from stepsight.app.commands.options import progress
from stepsight.core.errors import UserError
from stepsight.core.inference_servers.address import CRITIC, is_address
from stepsight.core.judgment import Mode
from stepsight.core.metrics.baselines import PREFIX, find_baseline
from stepsight.core.models.location import EQUATIONS, can_load
from stepsight.core.models.placement import Placement, typed_name
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import StoredEvaluator, evaluators_of, list_evaluators, register_loaded
from stepsight.storage.judgments.judgments import count_missing, missing_traces, save_judgments
from stepsight.storage.traces.queries import Dataset

Checked = TypeVar("Checked")


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
    workers: int | None = None,
) -> list[Checked]:
    """Those named, having judged the whole dataset where they can run; without names those that judged some of it.

    They run at `place`, by `ours` in shares, or by so many `workers` on Ray; one that can run is meant with its
    weights in the type that it has there. A baseline is measured with any of them and is not among them. `check`
    makes of each what is returned: once, and of those that are stored before any is scored. What a critic's
    hindsight takes is asked for, unless `yes`. Raises `UserError` if a name is neither that of a baseline, nor
    stored, nor shipped, nor a folder, nor an address.
    """
    run = _Run(
        store, dataset, Mode.HINDSIGHT if len(modes) > 1 else modes[0], place, ours or Processes(), yes, workers
    )
    if not names:
        evaluators = evaluators_of(store, dataset.id)
        checked = [check(evaluator) for evaluator in evaluators]
        for evaluator in evaluators:
            run.go_on(evaluator)
        return checked
    if workers is not None:
        from stepsight.training.runs.ray_scoring import check_for_workers

        for name in names:
            check_for_workers(name, place)
    stored = {evaluator.name: evaluator for evaluator in list_evaluators(store)}
    meant = {name: run.find(name, stored) for name in names}
    checked_rows = {row.id: check(row) for row in meant.values() if row is not None}
    chosen = []
    for name, row in meant.items():
        if name.startswith(PREFIX):
            find_baseline(name)
            continue
        ran = run.complete(name, row.fingerprint if row else None) or row
        if ran is None:
            raise UserError(f"there is no evaluator {name!r}.", "Name a stored or shipped one, or a folder.")
        chosen.append(checked_rows[ran.id] if ran.id in checked_rows else check(ran))
    return chosen


@dataclass(frozen=True)
class _Run:
    store: Store
    dataset: Dataset
    mode: Mode
    place: Placement
    ours: Processes
    yes: bool
    workers: int | None

    def find(self, name: str, stored: Mapping[str, StoredEvaluator]) -> StoredEvaluator | None:
        """The stored one that a name means; where it can run, only with its weights in the type that it would have
        now. What a critic is asked is in no name: it is told from others when it is opened."""
        if name.startswith(f"{CRITIC}:"):
            return None
        return stored.get(typed_name(name, self._dtype(name))) if can_load(name) else stored.get(name)

    def go_on(self, stored: StoredEvaluator) -> None:
        """`complete` one that is known by what it is stored as. If it has judged everything it is not loaded, which
        takes more time and memory than measuring most datasets."""
        if is_address(stored.name):
            # A server may be another one now, and its calls may cost money.
            return
        if not count_missing(self.store, self.dataset.id, stored.id, self.mode):
            return
        name = stored.name.removesuffix(typed_name("", stored.dtype))
        if can_load(name) and self._dtype(name) == stored.dtype:
            self.complete(name, stored.fingerprint)

    def _dtype(self, name: str) -> str:
        """The type of the weights of one that can run; what has no folder, has float32."""
        if name == EQUATIONS or is_address(name):
            return "float32"
        # It brings PyTorch.
        from stepsight.core.models.checkpoint_resolver import evaluator_folder, resolve_placement

        return resolve_placement(self.place, evaluator_folder(name)).dtype

    def complete(self, name: str, fingerprint: str | None) -> StoredEvaluator | None:
        """Judge what is missing, if the evaluator is there to run; None if it is not.

        A stored evaluator runs only where the name still leads to the same weights.
        """
        if not can_load(name):
            return None
        # They bring PyTorch, which stored judgments are measured without.
        from stepsight.app.commands.evaluation.critics import confirm, judge, report
        from stepsight.training.runs.ray_scoring import open_scorer

        scorer = open_scorer(name, self.place, self.workers)
        evaluator = scorer.evaluator
        if fingerprint is not None and evaluator.fingerprint != fingerprint:
            return None
        row = register_loaded(self.store, evaluator)
        missing = count_missing(self.store, self.dataset.id, row.id, self.mode)
        if missing:
            if evaluator.format != "stepsight" and self.ours.is_main:
                print(evaluator.described, file=sys.stderr)
            wanted = missing_traces(self.store, self.dataset.id, row.id, self.mode)
            confirm(evaluator, wanted, self.mode, yes=self.yes, alone=self.ours.count == 1)
            traces = self.ours.share(missing_traces(self.store, self.dataset.id, row.id, self.mode))
            judgments = judge(scorer, traces, self.mode, _skip)
            shown = progress(judgments, missing // self.ours.count, name) if self.ours.is_main else judgments
            try:
                save_judgments(self.store, row.id, shown)
            finally:
                report(evaluator)
        return row


def _skip(trace: object, error: UserError) -> None:
    """Traces over the evaluator's context are left out; the table's counts show it."""
    print(f"left out: {error.message}", file=sys.stderr)
