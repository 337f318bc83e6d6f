"""Having evaluators judge those traces of a dataset that they have not judged yet.

Importing this module loads PyTorch and the store.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from stepsight.app.commands.evaluation.critics import confirm, judge, report
from stepsight.app.commands.evaluation.processes import Processes
from stepsight.app.options.shared import print_left_out, print_note, progress
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.inference_servers.address import is_address, is_critic
from stepsight.core.judgment import Mode
from stepsight.core.models.checkpoint_resolver import evaluator_folder, open_checkpoint, resolve_placement
from stepsight.core.models.location import EQUATIONS, can_load
from stepsight.core.models.placement import Placement, typed_name
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.scoring.scorer_base import Skip
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.judgments.evaluators import StoredEvaluator, register_loaded
from stepsight.storage.judgments.judgments import count_missing, missing_traces, save_judgments
from stepsight.storage.traces.queries import Dataset, find_dataset


@dataclass(frozen=True)
class Completion:
    """A run in which evaluators judge those traces of a dataset that they have not judged in one mode.

    Evaluators run at `place`. The traces are divided among the processes `ours`. A critic's hindsight needs a
    confirmation unless `yes` is True.
    """

    store: Store
    dataset: Dataset
    mode: Mode
    place: Placement
    ours: Processes
    yes: bool

    def find(self, name: str, stored: Mapping[str, StoredEvaluator]) -> StoredEvaluator | None:
        """Return the stored evaluator with this name, or None if it is not stored.

        If the evaluator can run here, the stored evaluator must have been run with weights of the type in which
        they would be loaded now. Returns None for a critic: its name does not include its prompt, so it can be
        identified only when it is opened.
        """
        if is_critic(name):
            return None
        return stored.get(typed_name(name, self._dtype(name))) if can_load(name) else stored.get(name)

    def resume(self, name: str, stored: StoredEvaluator) -> None:
        """Complete the judgments of a stored evaluator, provided that its weights would be loaded in the
        same type."""
        if self._dtype(name) == stored.dtype:
            self.complete(name, stored.fingerprint)

    def _dtype(self, name: str) -> str:
        """Return the type in which an evaluator's weights would be loaded. An evaluator without a folder counts as
        float32."""
        if name == EQUATIONS or is_address(name):
            return "float32"
        return resolve_placement(self.place, open_checkpoint(evaluator_folder(name))).dtype

    def complete(self, name: str, fingerprint: str | None) -> StoredEvaluator | None:
        """Have an evaluator judge the traces that it has not judged, and return its row in the store.

        Returns None if the evaluator cannot run here, or if `fingerprint` is given and does not match the weights
        that the name now refers to.
        """
        if not can_load(name):
            return None
        scorer = _open_scorer(name, self.place)
        evaluator = scorer.evaluator
        if fingerprint is not None and evaluator.fingerprint != fingerprint:
            return None
        row = register_loaded(self.store, evaluator)
        missing = count_missing(self.store, self.dataset.id, row.id, self.mode)
        if missing:
            if evaluator.format != "stepsight" and self.ours.is_main:
                print(evaluator.described, file=sys.stderr)
            if self.ours.is_main:
                print_note(evaluator.reading_note)
            try:
                self.judge_missing(scorer, row.id, missing, print_left_out, name)
            finally:
                report(evaluator)
        return row

    def judge_missing(self, scorer: Scorer, evaluator: int, missing: int, skip: Skip | None, unit: str) -> int:
        """Judge this process's share of the `missing` traces, and return the number of judgments stored.

        `evaluator` is the evaluator's database id, `skip` is called for each trace that it cannot judge, and `unit`
        labels the progress bar.
        """
        find = partial(missing_traces, self.store, self.dataset.id, evaluator, self.mode)
        confirm(scorer.evaluator, find(), self.mode, yes=self.yes, alone=self.ours.count == 1)
        traces = self.ours.share(find())
        judgments = judge(scorer, traces, self.mode, skip)
        shown = progress(judgments, missing // self.ours.count, unit) if self.ours.is_main else judgments
        return save_judgments(self.store, evaluator, shown)


def score_dataset(
    url: str | None,
    name: str,
    mode: Mode,
    scorer: Scorer,
    skip: Skip | None,
    ours: Processes,
    *,
    yes: bool = False,
) -> None:
    """Judge the unjudged traces of the dataset `name` in the store at `url`, and print how many there were."""
    evaluator = scorer.evaluator
    with open_store(url) as store:
        dataset = find_dataset(store, name)
        stored = register_loaded(store, evaluator)
        missing = count_missing(store, dataset.id, stored.id, mode)
        # Otherwise traces judged by a faster process would be missing from another one's count.
        ours.wait()
        run = Completion(store, dataset, mode, Placement(), ours, yes)
        done = ours.total(run.judge_missing(scorer, stored.id, missing, skip, "traces"))
    if ours.is_main:
        print(
            f"{dataset.name}: {done:,} traces judged by {evaluator.name} ({mode}), "
            f"{dataset.traces - missing:,} were judged before.",
            file=sys.stderr,
        )


def _open_scorer(spec: str, place: Placement) -> Scorer:
    return Scorer(load_evaluator(spec, place.device, place.dtype, place.device_map))
