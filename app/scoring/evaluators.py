"""The evaluators that the pages score with. They are loaded once, requests are batched, and results are cached.

Evaluators named when the server starts are loaded at once. All others are loaded on first use, and PyTorch with
them: shipped evaluators, which then stay in memory, and those fetched from a model hub, which are offered as soon
as they have arrived.
"""

import threading
import time
from collections.abc import Hashable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stepsight.app.scoring.batcher import (
    REQUEST_TOKENS,
    Batcher,
    PendingScore,
    ScoringCost,
    Semaphores,
    SharedScore,
)
from stepsight.app.scoring.loading import Loader, LocalEvaluator
from stepsight.core.arrays import Floats32
from stepsight.core.equations.evaluator import EquationsEvaluator
from stepsight.core.errors import UserError
from stepsight.core.evaluator_summary import OWN_READING, EvaluatorSummary, Reading, split_reading
from stepsight.core.evaluators.opening import known_description
from stepsight.core.hubs.hub_cache import HubModel, list_fetched
from stepsight.core.inference_servers.address import CRITIC, is_address
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.keyed_cache import Computation, KeyedCache
from stepsight.core.models.location import is_shipped, shipped_summaries
from stepsight.core.models.placement import Placement, typed_name
from stepsight.core.scores import Thresholds
from stepsight.core.trace import Trace
from stepsight.storage.database.store import NotFoundError, Store
from stepsight.storage.judgments.evaluators import StoredEvaluator, find_thresholds, is_stored, register_loaded

if TYPE_CHECKING:
    from stepsight.core.models.evaluator_base import Evaluator
    from stepsight.core.scoring.scorer import Scorer

# The number of concurrent calls, each with every core; one long call may run besides them.
_AT_ONCE = 2
# The total size of cached judgments in bytes: about 5,000 of them, or three of 1,000 steps. They are scattered
# among temporary objects, so each also keeps malloc from returning some freed memory.
_KEPT = 20_000_000
# How many seconds a failure is kept for clients that come back for a judgment.
_FAILED_SECONDS = 5.0
# Seconds between checks for fetched evaluators, and how many seconds a page waits for one to be loaded.
_LOOKS = 1.0
_PATIENCE = 2.0


class Evaluators:
    """Scores traces with evaluators, which are identified by name. It is thread-safe.

    A name may be followed by a reading that differs from the evaluator's own. Methods that take a name raise
    `NotFoundError` if no evaluator has it, and `UserError` if the evaluator cannot have the reading.
    """

    def __init__(
        self,
        folders: Sequence[str | Path] = (),
        *,
        shipped: bool = True,
        place: Placement | None = None,
        fetched: bool = False,
        budget: int | None = None,
        tokens: int = REQUEST_TOKENS,
    ) -> None:
        """Offer evaluators.

        These are the evaluators in `folders`, which are loaded at `place` now, and the shipped ones unless
        `shipped` is False. Shipped evaluators are small and stay on the processor. With `fetched`, evaluators
        fetched from a model hub are offered too. As many fetched evaluators as fit into `budget` bytes, but at
        least one, are kept in memory; None stands for half of the machine's memory.

        `tokens` is the limit on tokens computed for one trace. An evaluator whose name is taken is named after its
        path or id instead. Raises `UserError` if an evaluator cannot be loaded.
        """
        self.place = place or Placement()
        self._judgments = KeyedCache(_KEPT)
        self._rows: dict[tuple[str, str], StoredEvaluator] = {}
        self._places = Semaphores(threading.BoundedSemaphore(_AT_ONCE), threading.BoundedSemaphore())
        self._tokens = tokens
        self._looking = threading.Lock()
        self._loader = Loader(self._batcher, budget)
        self._looks_for_fetched, self._looked = fetched, 0.0
        descriptions = (*shipped_summaries(), EquationsEvaluator().description()) if shipped else ()
        # Replaced as a whole when evaluators are fetched or deleted.
        self._offered = {about.name: LocalEvaluator(about, about.name) for about in descriptions}
        for folder in folders:
            self._add(folder)
        if not self._offered:
            raise UserError("there is no evaluator.", "Train one and give its folder with --evaluator.")

    def _add(self, spec: str | Path) -> None:
        if str(spec).startswith(f"{CRITIC}:"):
            raise UserError(
                f"{spec}: pages only show stored judgments of critics, because each click would take many calls.",
                "Judge a dataset with stepsight score, and open it in Browse.",
            )
        # This import loads PyTorch, which takes seconds.
        from stepsight.core.evaluators.loading import load_evaluator

        evaluator = load_evaluator(spec, self.place.device, self.place.dtype, self.place.device_map)
        if evaluator.name in self._offered:
            evaluator = replace(evaluator, name=typed_name(str(spec), evaluator.dtype))
        batcher = self._batcher(evaluator)
        self._offered[evaluator.name] = LocalEvaluator(evaluator.description(), _spec(spec), batcher)

    def _batcher(self, evaluator: "Evaluator") -> Batcher:
        from stepsight.core.scoring.scorer import Scorer

        return Batcher(Scorer(evaluator), self._places, tokens=self._tokens)

    @property
    def names(self) -> list[str]:
        """The names of the evaluators that give scores. Bidirectional evaluators come first, because the pages are
        designed for them, and fetched evaluators come last."""
        return [name for name, local in self._sorted_evaluators() if local.description.outputs.has_scores]

    @property
    def default(self) -> str:
        """The evaluator used for requests that do not name an evaluator. Raises `NotFoundError` if no evaluator
        gives scores."""
        names = self.names
        if not names:
            raise NotFoundError("No evaluator here gives scores.", "Fetch one on the Evaluators page.")
        return names[0]

    @property
    def all_names(self) -> list[str]:
        """The names of all evaluators: first those in `names`, followed by those that give verdicts in words."""
        return [name for name, _ in self._sorted_evaluators()]

    def _sorted_evaluators(self) -> list[tuple[str, LocalEvaluator]]:
        self._look_for_fetched(_LOOKS)

        def place(item: tuple[str, LocalEvaluator]) -> tuple[bool, bool, str, str]:
            name, local = item
            is_fetched = local.fetched is not None
            about = local.description
            return about.outputs.in_words, is_fetched, "" if is_fetched else about.attention, name

        return sorted(self._offered.items(), key=place)

    def _find(self, name: str) -> tuple[LocalEvaluator, Reading]:
        """Return the evaluator with this name, and the reading that follows the name."""
        self._look_for_fetched(_LOOKS)
        # Read once, since evaluators may be fetched or deleted at any moment.
        offered = self._offered
        bare, reading = (name, OWN_READING) if name in offered else split_reading(name)
        if bare not in offered:
            names = ", ".join(self.all_names)
            raise NotFoundError(f"There is no evaluator {bare!r:.80}.", f"Choose one of: {names}.")
        offered[bare].description.read_as(reading)
        return offered[bare], reading

    def about(self, name: str) -> EvaluatorSummary:
        """Return the description of an evaluator, without loading the evaluator."""
        local, reading = self._find(name)
        return local.description.read_as(reading)

    def gives_scores(self, name: str) -> bool:
        """True if there is an evaluator with this name, with or without a reading, that gives scores."""
        try:
            return self.about(name).outputs.has_scores
        except UserError:
            return False

    def has_another_reading(self, name: str) -> bool:
        """True if `name` stands for an evaluator of this server with a reading that differs from its own."""
        return self.gives_scores(name) and self._find(name)[1] != OWN_READING

    def plain(self, name: str) -> str:
        """Return the name of the evaluator that reads whole solutions, given that of one that reads in windows.
        Other names are returned as they are."""
        local, reading = self._find(name)
        return name if reading.window is None else local.description.read_as(replace(reading, window=None)).name

    def spec(self, name: str) -> str:
        """Return the argument with which `load_evaluator` loads the evaluator in any process on this machine: the
        name of a shipped evaluator or the path of a folder, followed by the reading if `name` has one."""
        local, reading = self._find(name)
        return f"{local.spec}{reading}"

    def local(self, name: str) -> LocalEvaluator:
        """Return the evaluator with this name, whatever reading follows the name."""
        return self._find(name)[0]

    def give_room(self, needed: int) -> None:
        """Release idle fetched evaluators until this many bytes of memory are free."""
        self._loader.give_room(needed)

    def look_again(self) -> None:
        """Look for newly fetched evaluators now, even if that was done recently."""
        self._look_for_fetched(0.0)

    def _look_for_fetched(self, after: float) -> None:
        """Offer the evaluators that any process has fetched since the last call, and stop offering those that were
        deleted. Does nothing if the last call was less than `after` seconds ago."""
        if not self._looks_for_fetched:
            return
        with self._looking:
            if time.monotonic() - self._looked >= after:
                self._looked = time.monotonic()
                self._offered = self._with_fetched()

    def _with_fetched(self) -> dict[str, LocalEvaluator]:
        """Return the evaluators to offer. One that is loaded or being loaded stays, even if it is described
        differently now."""
        offered = {name: local for name, local in self._offered.items() if local.fetched is None}
        before = {
            (local.fetched.repo, local.fetched.revision): local
            for local in self._offered.values()
            if local.fetched is not None
        }
        for fetched in list_fetched():
            about = known_description(fetched, self.place)
            if about is None or self.is_given(fetched):
                continue
            if about.name in offered:
                about = replace(about, name=typed_name(fetched.repo, about.dtype))
            local = before.get((fetched.repo, fetched.revision))
            if local is None or (local.coming is None and local.description.fingerprint != about.fingerprint):
                local = LocalEvaluator(about, str(fetched.folder), place=self.place, fetched=fetched)
            offered[about.name] = local
        return offered

    def is_given(self, fetched: HubModel) -> bool:
        """True if the fetched evaluator was also named when the server started, and therefore stays in memory."""
        folder = str(fetched.folder.resolve())
        return any(local.spec == folder for local in self._offered.values() if local.fetched is None)

    def thresholds(self, store: Store, name: str) -> Thresholds:
        """Return the evaluator's thresholds in force: those chosen by calibration or, without a calibration, its
        own defaults."""
        about = self.about(name)
        if (store.name, about.fingerprint) not in self._rows and not is_stored(store, about.fingerprint):
            # Viewing a page writes nothing; otherwise each reading of an evaluator would get a row.
            return about.thresholds
        return find_thresholds(store, self.register(store, name).id)

    def register(self, store: Store, name: str) -> StoredEvaluator:
        """Return the evaluator's row in the store. The row is written only on the first call, so that opening a
        trace never has to wait for an import to end."""
        key = (store.name, self.about(name).fingerprint)
        if key not in self._rows:
            self._rows[key] = register_loaded(store, self.about(name))
        return self._rows[key]

    def _ready(self, name: str) -> tuple[Batcher, Reading]:
        """Return the queue of an evaluator, loading the evaluator if it is not in memory, and the reading that
        follows the name."""
        local, reading = self._find(name)
        return self._loader.batcher(local, None if local.fetched is None else _PATIENCE), reading

    def scorer(self, name: str) -> "Scorer":
        """Return the scorer of an evaluator, loading the evaluator if it is not in memory. Raises `LoadingError` if
        loading a fetched one takes long, and `UserError` if the evaluator cannot be loaded."""
        batcher, reading = self._ready(name)
        return batcher.scorer(reading)

    def cost(self, name: str, trace: Trace) -> ScoringCost | None:
        """Return the tokens that judging a trace takes, or None if the evaluator is not in memory or reads no
        tokens. Raises `UserError` if the trace is too long."""
        local, reading = self._find(name)
        # Read once, since another thread may release it.
        batcher = local.batcher
        cost = None if batcher is None else batcher.cost(trace, reading)
        return cost if cost is not None and cost.prefixes else None

    def fit(self, name: str, trace: Trace, *, every: bool = False) -> tuple[str, Mode]:
        """Return the name and the mode with which an evaluator can judge a trace.

        They are the given name and hindsight, unless the trace is longer than the evaluator's context: then it is
        read in windows of that size, and only as a whole, offline, unless `every` prefix is requested now or was
        recently. It is also read offline if hindsight needs more than a request may use.
        """
        local, reading = self._find(name)
        if local.fetched is None:
            # Its tokenizer counts the tokens; that of a fetched evaluator does so once it has been loaded.
            self.scorer(name)
        try:
            cost = self.cost(self.plain(name), trace)
            return name, Mode.HINDSIGHT if cost is None or cost.fits else Mode.OFFLINE
        except UserError:
            pass
        if reading.window is None:
            reading = replace(reading, window=self.about(name).context)
        try:
            windowed = local.description.read_as(reading).name
            cost = self.cost(windowed, trace)
        except UserError:
            # The error from the evaluator's own reading says more.
            return name, Mode.HINDSIGHT
        is_cheap = cost is None or cost.whole == cost.prefixes or (every and cost.fits)
        is_there = self._cached(windowed, trace, Mode.HINDSIGHT) is not None
        return windowed, Mode.HINDSIGHT if is_cheap or is_there else Mode.OFFLINE

    def judge(self, name: str, trace: Trace, mode: Mode = Mode.HINDSIGHT) -> Judgment:
        """Judge a trace, and wait for the judgment.

        Raises `UserError` if the trace is too long, `BusyError` if too many requests are waiting, `ShortError` if
        memory is short, and the same errors as `scorer`.
        """
        return self.submit_loaded(name, trace, mode).result()

    def submit_loaded(self, name: str, trace: Trace, mode: Mode = Mode.HINDSIGHT) -> PendingScore[Judgment]:
        """Like `submit`, but if the evaluator has to be loaded, raise the errors of `scorer` immediately.

        If the judgment is cached, the evaluator is not loaded. Otherwise, two evaluators that do not fit into
        memory together would evict each other for ever.
        """
        if all(self._cached(name, trace, cached_mode) is None for cached_mode in {Mode.HINDSIGHT, mode}):
            self.scorer(name)
        return self.submit(name, trace, mode)

    def submit(
        self, name: str, trace: Trace, mode: Mode = Mode.HINDSIGHT, *, comes_back: bool = False
    ) -> PendingScore[Judgment]:
        """Submit a trace and return the future of its judgment. Raises the same errors as `judge`.

        Requests that arrive together are scored in one batch, and all clients that request the same judgment share
        one computation. `comes_back` is True for a client that may leave before the judgment is ready and request
        it again later. It must not cancel the future.
        """
        answer: PendingScore[Judgment] = PendingScore()
        shared: Computation[Judgment] | None = self._cached(name, trace, Mode.HINDSIGHT)
        is_ours = False
        while shared is None:
            key = self._key(name, trace, mode)
            shared, is_ours = self._judgments.claim(key, kind=SharedScore, size=_size)
            if isinstance(shared, SharedScore) and not shared.join(answer):
                self._judgments.drop(key, shared)
                shared = None
        if comes_back:
            # Kept so that the client can be told the error.
            shared.error_seconds = _FAILED_SECONDS
        shared.add_done_callback(partial(_pass_on, answer, trace, mode))
        if is_ours:
            assert isinstance(shared, SharedScore)
            try:
                local, reading = self._find(name)
                submit = partial(Batcher.submit, trace=trace, mode=mode, answer=shared, reading=reading)
                self._loader.submit(local, submit, shared)
            except BaseException as error:
                if not shared.done():
                    shared.set_exception(error)
                raise
        return answer

    def _cached(self, name: str, trace: Trace, mode: Mode) -> Computation[Judgment] | None:
        return self._judgments.find(self._key(name, trace, mode))

    def _key(self, name: str, trace: Trace, mode: Mode) -> Hashable:
        return self.about(name).fingerprint, trace.digest, mode

    def scores_together(self, name: str) -> bool:
        """True if candidates for a next step have to be submitted with `submit_next`.

        For other evaluators, each candidate is submitted offline as the last step of a trace, and shares batches
        with all other requests. Raises the errors of `scorer`.
        """
        batcher, reading = self._ready(name)
        return reading == OWN_READING and batcher.scorer().next_steps is not None

    def submit_next(
        self, name: str, problem: str, steps: Sequence[str | Sequence[str]], candidates: Sequence[str]
    ) -> PendingScore[Floats32]:
        """Like `Batcher.submit_next`, for the evaluator with this name. Raises the same errors as `judge`."""
        return self._ready(name)[0].submit_next(problem, steps, candidates)


def _spec(spec: str | Path) -> str:
    if is_shipped(spec) or is_address(spec):
        return str(spec)
    # This import loads PyTorch.
    from stepsight.core.models.checkpoint_resolver import evaluator_folder

    return f"{evaluator_folder(spec).resolve()}{split_reading(str(spec))[1]}"


def _pass_on(answer: PendingScore[Judgment], trace: Trace, mode: Mode, shared: "Future[Judgment]") -> None:
    """Give the client that waits for `answer` the judgment of its own trace, or the error, unless it has left."""
    if not answer.set_running_or_notify_cancel():
        return
    try:
        judgment = shared.result()
        # A judgment in hindsight mode contains all modes.
        by_mode = {Mode.HINDSIGHT: judgment.result, Mode.ONLINE: judgment.online, Mode.OFFLINE: judgment.offline}
        result = by_mode[mode]
        assert result is not None
        answer.set_result(replace(judgment, trace=trace, mode=mode, result=result))
    except BaseException as error:  # any error must reach the waiting client
        answer.set_exception(error)


def _size(judgment: Judgment) -> int:
    """Estimate the size of a cached judgment in bytes, from its texts and the arrays of its matrix, if there is
    one."""
    texts = (judgment.trace.problem, *judgment.trace.substeps)
    n = len(texts) - 1
    return sum(map(len, texts)) + n * (150 if judgment.hindsight is None else 150 + 6 * (n + 1))
