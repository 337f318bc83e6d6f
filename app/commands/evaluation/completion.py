"""Completing the judgments of a dataset by evaluators that can run. It brings PyTorch and the store."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stepsight.app.commands.evaluation.critics import confirm, judge, report
from stepsight.app.commands.evaluation.processes import Processes
from stepsight.app.commands.options import progress
from stepsight.core.errors import UserError
from stepsight.core.inference_servers.address import CRITIC, is_address
from stepsight.core.judgment import Mode
from stepsight.core.models.checkpoint_resolver import evaluator_folder, resolve_placement
from stepsight.core.models.location import EQUATIONS, can_load
from stepsight.core.models.placement import Placement, typed_name
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.scoring.scorer_base import Skip
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.judgments.evaluators import StoredEvaluator, register_loaded
from stepsight.storage.judgments.judgments import count_missing, missing_traces, save_judgments
from stepsight.storage.traces.queries import Dataset, find_dataset
from stepsight.training.runs.ray_scoring import RayScorer, check_for_workers, open_scorer


@dataclass(frozen=True)
class Completion:
    """Completes the judgments of a dataset in a mode: at `place`, by `ours` in shares, or by so many `workers` on
    Ray. Whether a critic's hindsight is worth its cost is asked first, unless `yes`."""

    store: Store
    dataset: Dataset
    mode: Mode
    place: Placement
    ours: Processes
    yes: bool
    workers: int | None

    def check_workers(self, names: Sequence[str]) -> None:
        """Raises `UserError` if there are workers, and one of these cannot be on each of them."""
        for name in names if self.workers is not None else ():
            check_for_workers(name, self.place)

    def find(self, name: str, stored: Mapping[str, StoredEvaluator]) -> StoredEvaluator | None:
        """The stored one that a name means; where it can run, only with its weights in the type that it would have
        now. What a critic is asked is in no name: it is told from others when it is opened."""
        if name.startswith(f"{CRITIC}:"):
            return None
        return stored.get(typed_name(name, self._dtype(name))) if can_load(name) else stored.get(name)

    def go_on(self, name: str, stored: StoredEvaluator) -> None:
        """`complete` one that can run, by what it is stored as."""
        if self._dtype(name) == stored.dtype:
            self.complete(name, stored.fingerprint)

    def _dtype(self, name: str) -> str:
        """The type of the weights of one that can run; what has no folder, has float32."""
        if name == EQUATIONS or is_address(name):
            return "float32"
        return resolve_placement(self.place, evaluator_folder(name)).dtype

    def complete(self, name: str, fingerprint: str | None) -> StoredEvaluator | None:
        """Judge what is missing, if the evaluator is there to run; None if it is not.

        A stored evaluator runs only where the name still leads to the same weights.
        """
        if not can_load(name):
            return None
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


def score_dataset(
    url: str | None,
    name: str,
    mode: Mode,
    scorer: Scorer | RayScorer,
    skip: Skip | None,
    ours: Processes,
    *,
    yes: bool = False,
) -> None:
    """Judge what is missing of a dataset of the store at `url`, and say how many traces that was."""
    evaluator = scorer.evaluator
    with open_store(url) as store:
        dataset = find_dataset(store, name)
        stored = register_loaded(store, evaluator)
        missing = count_missing(store, dataset.id, stored.id, mode)
        # Those that others have judged meanwhile would be missing from the count.
        ours.wait()
        wanted = missing_traces(store, dataset.id, stored.id, mode)
        confirm(evaluator, wanted, mode, yes=yes, alone=ours.count == 1)
        traces = ours.share(missing_traces(store, dataset.id, stored.id, mode))
        judgments = judge(scorer, traces, mode, skip)
        shown = progress(judgments, missing // ours.count, "traces") if ours.is_main else judgments
        done = ours.total(save_judgments(store, stored.id, shown))
    if ours.is_main:
        print(
            f"{dataset.name}: {done:,} traces judged by {evaluator.name} ({mode}), "
            f"{dataset.traces - missing:,} were judged before.",
            file=sys.stderr,
        )
