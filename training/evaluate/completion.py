"""Having evaluators judge those traces of a dataset that they have not judged yet, and the cost of critics.

Importing this module loads PyTorch.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from stepsight.core.critics.critic import CallEstimate, Critic
from stepsight.core.errors import counted
from stepsight.core.evaluators.loading import identify_folder, load_evaluator
from stepsight.core.inference_servers.address import is_address, is_critic
from stepsight.core.judgment import Judgment, Mode, Skip
from stepsight.core.models.checkpoint_resolver import evaluator_folder, open_checkpoint, resolve_placement
from stepsight.core.models.evaluator_base import Evaluator
from stepsight.core.models.location import EQUATIONS, can_load
from stepsight.core.models.placement import Placement, typed_name
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.judgments.evaluators import StoredEvaluator, list_evaluators, register_loaded
from stepsight.storage.judgments.judgments import count_missing, missing_traces, save_judgments
from stepsight.storage.traces.queries import Dataset, find_dataset
from stepsight.training.runs.processes import Processes
from stepsight.training.runs.progress import confirm, print_left_out, print_note, progress

# The number of reasons that are printed.
_PRINTED = 5


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
            self.complete(name, stored)

    def _dtype(self, name: str) -> str:
        """Return the type in which an evaluator's weights would be loaded. An evaluator without a folder counts as
        float32."""
        if name == EQUATIONS or is_address(name):
            return "float32"
        return resolve_placement(self.place, open_checkpoint(evaluator_folder(name))).dtype

    def complete(self, name: str, stored: StoredEvaluator | None) -> StoredEvaluator | None:
        """Have an evaluator judge the traces that it has not judged, and return its row in the store.

        One that has judged all of them is not loaded. Returns None if the evaluator cannot run here, or if the
        fingerprint of `stored` does not match the weights that the name now refers to.
        """
        if not can_load(name):
            return None
        if stored is not None and not self._missing(stored) and find_stored(self.store, name, self.place) == stored:
            return stored
        evaluator = open_evaluator(name, self.place)
        if stored is not None and evaluator.fingerprint != stored.fingerprint:
            return None
        row = register_loaded(self.store, evaluator)
        if missing := self._missing(row):
            if self.ours.is_main:
                describe(evaluator)
            try:
                self.judge_missing(Scorer(evaluator), row.id, missing, print_left_out, name)
            finally:
                print_cost(evaluator)
        return row

    def _missing(self, row: StoredEvaluator) -> int:
        return self.ours.agree(count_missing(self.store, self.dataset.id, row.id, self.mode))

    def judge_missing(self, scorer: Scorer, evaluator: int, missing: int, skip: Skip | None, unit: str) -> int:
        """Judge this process's share of the `missing` traces, and return the number of judgments stored. All
        processes have the same number of missing traces.

        `evaluator` is the evaluator's database id, `skip` is called for each trace that it cannot judge, and `unit`
        labels the progress bar.
        """
        find = partial(missing_traces, self.store, self.dataset.id, evaluator, self.mode)
        confirm_cost(scorer.evaluator, find(), self.mode, yes=self.yes, alone=self.ours.count == 1)
        traces = self.ours.share(find(), missing)
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
        missing = ours.agree(count_missing(store, dataset.id, stored.id, mode))
        run = Completion(store, dataset, mode, Placement(), ours, yes)
        done = ours.total(run.judge_missing(scorer, stored.id, missing, skip, "traces"))
    if ours.is_main:
        print(
            f"{dataset.name}: {counted(done, 'trace')} judged by {evaluator.name} ({mode}), "
            f"{counted(dataset.traces - missing, 'was', 'were')} judged before.",
            file=sys.stderr,
        )


def open_evaluator(spec: str, place: Placement) -> Evaluator:
    """Load an evaluator at `place`."""
    return load_evaluator(spec, place.device, place.dtype, place.device_map)


def find_stored(store: Store, spec: str, place: Placement) -> StoredEvaluator | None:
    """Return the row of an evaluator that ran at `place` before, found by its files without loading it.

    Returns None if no row has its fingerprint and its thresholds, or if only loading shows the fingerprint.
    """
    identity = identify_folder(spec, place)
    return next((row for row in list_evaluators(store) if (row.fingerprint, row.thresholds) == identity), None)


def describe(evaluator: Evaluator) -> None:
    """Print how an evaluator of another format is read, and what is to be known of its reading."""
    if evaluator.format != "stepsight":
        print(evaluator.described, file=sys.stderr)
    print_note(evaluator.reading_note)


def confirm_cost(
    evaluator: Evaluator, traces: Iterable[Trace], mode: Mode, *, yes: bool, alone: bool = True
) -> None:
    """Print the expected cost of a critic's hindsight judgments and, unless `yes` is True, ask whether to continue.

    Raises `UserError` if the user declines. Also raises it if nobody can be asked, because there is no terminal or
    because several processes were launched (`alone` is False).
    """
    if not (isinstance(evaluator, Critic) and mode == Mode.HINDSIGHT):
        return
    takes = sum((evaluator.estimate(trace, mode) for trace in traces), CallEstimate())
    _confirm_calls(
        f"{evaluator.name}: {mode}",
        takes,
        yes=yes,
        instead="score in another mode, which takes fewer calls",
        alone=alone,
    )


def confirm_stress_cost(evaluator: Evaluator, traces: Iterable[Trace], variants: int, *, yes: bool) -> None:
    """Like `confirm_cost`, but for scoring the traces and at most `variants` variants of each."""
    if not isinstance(evaluator, Critic):
        return
    takes, passes = CallEstimate(), variants + 1
    for trace in traces:
        estimate = evaluator.estimate(trace, Mode.OFFLINE)
        takes += CallEstimate(1, estimate.calls * passes, estimate.tokens * passes)
    _confirm_calls(f"{evaluator.name}: a stress test, at most,", takes, yes=yes, instead="test fewer traces")


def _confirm_calls(what: str, takes: CallEstimate, *, yes: bool, instead: str, alone: bool = True) -> None:
    if takes.calls:
        traces = f"{takes.traces:,} {'trace' if takes.traces == 1 else 'traces'}"
        plan = f"{what} of {traces} takes {takes.calls:,} calls and about {takes.tokens:,} tokens."
        confirm(plan, yes=yes, instead=instead, alone=alone)


def judge(scorer: Scorer, traces: Iterable[Trace], mode: Mode, skip: Skip | None) -> Iterator[Judgment]:
    """Yield judgments of the traces. Traces for which a critic gave no readable answer are left out."""
    # A critic counts them, and `print_cost` names some.
    return scorer.score(traces, mode, (lambda *_: None) if isinstance(scorer.evaluator, Critic) else skip)


def print_cost(evaluator: Evaluator) -> None:
    """Print what a critic has cost, and the number of traces for which it gave no readable judgment."""
    if not isinstance(evaluator, Critic):
        return
    tally = evaluator.tally
    if tally.spent.calls:
        print(f"{evaluator.name}: {tally.spent}.", file=sys.stderr)
    if not tally.unread:
        return
    reasons = [
        f"{count:,}: {reason} (first {first!r:.80})"
        for reason, (count, first) in list(tally.silent.items())[:_PRINTED]
    ]
    print(
        f"{tally.unread:,} {'trace has' if tally.unread == 1 else 'traces have'} no judgment, and will be asked "
        f"about again: {'; '.join(reasons)}.",
        file=sys.stderr,
    )
