"""The evaluators that the pages score with. They are loaded once, requests are batched, and results are cached.

Evaluators named when the server starts are loaded at once. All others are loaded on first use, and PyTorch with
them: shipped evaluators, which then stay in memory, and those fetched from a model hub, which are offered as soon
as they have arrived.
"""

import threading
import time
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from stepsight.app.scoring.batcher import Batcher, Semaphores
from stepsight.app.scoring.fair_queue import PendingScore, SharedScore
from stepsight.app.scoring.limits import REQUEST_TOKENS, ScoringCost
from stepsight.app.scoring.loading import LazyEvaluator, Loader, LoadingError, default_budget
from stepsight.core.arrays import Floats32
from stepsight.core.equations.evaluator import EquationsEvaluator
from stepsight.core.errors import UserError
from stepsight.core.evaluator_summary import READINGS, EvaluatorSummary, Rereading, split_reading
from stepsight.core.evaluators.opening import known_description
from stepsight.core.hubs.hub_cache import Fetched, list_fetched
from stepsight.core.inference_servers.address import CRITIC, is_address
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.keyed_cache import KeyedCache
from stepsight.core.models.location import is_shipped, shipped_summaries
from stepsight.core.models.placement import Placement, typed_name
from stepsight.core.scores import Thresholds
from stepsight.core.trace import Trace
from stepsight.storage.database.store import NotFoundError, Store
from stepsight.storage.judgments.evaluators import StoredEvaluator, find_thresholds, register_loaded

if TYPE_CHECKING:
    from stepsight.core.scoring.scorer import Scorer

# The number of concurrent calls, each with every core; one long call may run besides them.
_AT_ONCE = 2
# The total size of cached judgments in bytes, some 5,000 of them, or three of 1,000 steps. They are scattered among
# temporary objects, so that each also keeps malloc from returning some freed memory.
_KEPT = 20_000_000
# Seconds that a failure stands for clients that come back for a judgment.
_FAILED_SECONDS = 5.0
# Seconds between looks for fetched evaluators, and seconds that a page waits for one to be loaded.
_LOOKS = 1.0
_PATIENCE = 2.0


class Evaluators:
    """Scores traces with evaluators, which are identified by name. It is thread-safe."""

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
        self._scorers: dict[str, Scorer] = {}
        self._about: dict[str, EvaluatorSummary] = {}
        self._batchers: dict[str, Batcher] = {}
        # Those of an evaluator that is released go with it.
        self._reread: WeakKeyDictionary[Scorer, dict[Rereading, Scorer]] = WeakKeyDictionary()
        self._judgments = KeyedCache(_KEPT)
        self._rows: dict[tuple[str, str], StoredEvaluator] = {}
        self._places = Semaphores(threading.BoundedSemaphore(_AT_ONCE), threading.BoundedSemaphore())
        self._tokens = tokens
        descriptions = (*shipped_summaries(), EquationsEvaluator().description()) if shipped else ()
        self._shipped = {one.name: LazyEvaluator(one) for one in descriptions}
        self._lazy = self._shipped
        self._specs = {name: name for name in self._shipped}
        self._looking = threading.Lock()
        self._loader = Loader(self._batcher, default_budget() if budget is None else budget)
        self._looks_for_fetched, self._looked = fetched, 0.0
        for folder in folders:
            self._add(folder, self.place)
        if not self._scorers and not self._shipped:
            raise UserError("there is no evaluator.", "Train one and give its folder with --evaluator.")

    def _add(self, spec: str | Path, place: Placement) -> None:
        if str(spec).startswith(f"{CRITIC}:"):
            raise UserError(
                f"{spec}: pages only show stored judgments of critics, because a click would take many calls.",
                "Judge a dataset with stepsight score, and open it in Browse.",
            )
        # They bring PyTorch, which takes seconds to import.
        from stepsight.core.evaluators.loading import load_evaluator
        from stepsight.core.scoring.scorer import Scorer

        evaluator = load_evaluator(spec, place.device, place.dtype, place.device_map)
        if evaluator.name in self._scorers or evaluator.name in self._shipped:
            evaluator = replace(evaluator, name=typed_name(str(spec), evaluator.dtype))
        scorer = Scorer(evaluator)
        self._scorers[evaluator.name] = scorer
        self._specs[evaluator.name] = _spec(spec)
        self._about[evaluator.name] = evaluator.description()
        self._batchers[evaluator.name] = self._batcher(scorer)

    def _batcher(self, scorer: "Scorer") -> Batcher:
        return Batcher(scorer, self._places, tokens=self._tokens)

    @property
    def names(self) -> list[str]:
        """The names of the evaluators that give scores. Bidirectional evaluators come first, because the pages are
        designed for them, and fetched evaluators come last."""
        return [name for name in self.all_names if self.about(name).outputs.has_scores]

    @property
    def default(self) -> str:
        """The evaluator used for requests that do not name an evaluator. Raises `NotFoundError` if no evaluator
        gives scores."""
        if not self.names:
            raise NotFoundError("No evaluator here gives scores.", "Fetch one on the Evaluators page.")
        return self.names[0]

    @property
    def all_names(self) -> list[str]:
        """The names of all evaluators: first those in `names`, followed by those that give verdicts in words."""
        self._look()
        # Read once, since evaluators may be fetched or deleted meanwhile.
        lazy = self._lazy
        about = self._about | {name: one.description for name, one in lazy.items()}

        def place(name: str) -> tuple[bool, bool, str, str]:
            is_fetched = name in lazy and lazy[name].fetched is not None
            return about[name].outputs.in_words, is_fetched, "" if is_fetched else about[name].attention, name

        return sorted(about, key=place)

    @staticmethod
    def is_shipped(name: str) -> bool:
        """True if every installation has an evaluator of this name."""
        return is_shipped(name)

    def gives_scores(self, name: str) -> bool:
        """True if there is an evaluator with this name, with or without a reading, that gives scores."""
        try:
            return self.about(name).outputs.has_scores
        except UserError:
            return False

    def readings(self, name: str) -> list[tuple[str, str]]:
        """Return the readings that a causal model can have, labelled, each with the model's name with this reading.

        The list is empty for any other evaluator. `name` may itself have a reading.
        """
        about = self.about(self._split(name)[0])
        return [(one.label, about.reread(one).name) for one in READINGS] if about.is_causal_model else []

    def is_reread(self, name: str) -> bool:
        """True if `name` stands for an evaluator of this server with a reading that differs from its own."""
        return self._split(name)[1] is not None and self.gives_scores(name)

    def about(self, name: str) -> EvaluatorSummary:
        """Return the description of an evaluator, without loading the evaluator. Raises `NotFoundError` if no
        evaluator has this name, and `UserError` if the evaluator cannot have the reading that follows the name."""
        self._look()
        name, reading = self._split(name)
        if reading is not None:
            return self.about(name).reread(reading)
        lazy = self._lazy.get(name)
        if lazy is not None:
            return lazy.description
        if name not in self._about:
            names = ", ".join(self.all_names)
            raise NotFoundError(f"There is no evaluator {name!r:.80}.", f"Choose one of: {names}.")
        return self._about[name]

    def scorer(self, name: str) -> "Scorer":
        """Return the scorer of an evaluator, loading the evaluator if it is not in memory.

        Raises `NotFoundError` if no evaluator has this name, `LoadingError` if loading a fetched one takes long,
        and `UserError` if the evaluator cannot be loaded.
        """
        self.about(name)
        name, reading = self._split(name)
        lazy = self._lazy.get(name)
        if lazy is None:
            scorer = self._scorers[name]
        else:
            scorer = self._loader.scorer(lazy, None if lazy.fetched is None else _PATIENCE)
        if reading is None:
            return scorer
        others = self._reread.setdefault(scorer, {})
        if reading not in others:
            others[reading] = scorer.reread(reading)
        return others[reading]

    def _split(self, name: str) -> tuple[str, Rereading | None]:
        """Split a name from its reading, unless an evaluator was given with it."""
        return (name, None) if name in self._about else split_reading(name)

    def spec(self, name: str) -> str:
        """Return the argument with which `load_evaluator` loads the evaluator in any process on this machine: the
        name of a shipped evaluator or the path of a folder, followed by the reading if `name` has one."""
        self.about(name)
        name, reading = self._split(name)
        fetched = self._fetched(name)
        return f"{self._specs[name] if fetched is None else fetched.folder}{reading or ''}"

    def origin(self, name: str) -> str:
        """Return the origin of an evaluator: `shipped`, `fetched`, or `started with` if it was named at the
        server's start."""
        if self._fetched(name) is not None:
            return "fetched"
        return "shipped" if is_shipped(self.spec(name)) else "started with"

    def fetched_from(self, name: str) -> tuple[str, str]:
        """Return the hub id and the commit of a fetched evaluator. Both are "" for any other evaluator."""
        fetched = self._fetched(name)
        return (fetched.repo, fetched.revision) if fetched is not None else ("", "")

    def _fetched(self, name: str) -> Fetched | None:
        lazy = self._lazy.get(self._split(name)[0])
        return None if lazy is None else lazy.fetched

    @property
    def in_memory(self) -> frozenset[str]:
        """The names of the evaluators that are currently in memory."""
        return frozenset(self._scorers) | {name for name, one in self._lazy.items() if one.is_loaded}

    def give_room(self, needed: int) -> None:
        """Release idle fetched evaluators until this many bytes of memory are free."""
        self._loader.give_room(needed)

    def look_again(self) -> None:
        """Look for newly fetched evaluators now, even if that was done recently."""
        self._look(0.0)

    def _look(self, after: float | None = None) -> None:
        """Offer the evaluators that any process has fetched since the last call, and stop offering those that were
        deleted. Does nothing if the last call was less than `after` seconds ago."""
        if not self._looks_for_fetched:
            return
        with self._looking:
            if time.monotonic() - self._looked >= (_LOOKS if after is None else after):
                self._looked = time.monotonic()
                self._lazy = self._found()

    def is_given(self, fetched: Fetched) -> bool:
        """True if the fetched evaluator was also named when the server started, and therefore stays in memory."""
        return str(fetched.folder.resolve()) in self._specs.values()

    def _found(self) -> dict[str, LazyEvaluator]:
        known = {
            (one.fetched.repo, one.fetched.revision): one for one in self._lazy.values() if one.fetched is not None
        }
        offered = dict(self._shipped)
        for fetched in list_fetched():
            description = known_description(fetched, self.place)
            if description is None or self.is_given(fetched):
                continue
            name = description.name
            if name in self._about or name in offered:
                name = typed_name(fetched.repo, description.dtype)
            before = known.get((fetched.repo, fetched.revision))
            if before is not None and (
                before.is_asked or before.description.fingerprint == description.fingerprint
            ):
                offered[name] = before
            else:
                offered[name] = LazyEvaluator(replace(description, name=name), self.place, fetched)
        return offered

    def thresholds(self, store: Store, name: str) -> Thresholds:
        """Return the evaluator's thresholds in force: those chosen by calibration or, without a calibration, its
        own defaults."""
        return find_thresholds(store, self.register(store, name).id)

    def cost(self, name: str, trace: Trace) -> ScoringCost | None:
        """Return the tokens that judging a trace takes, or None if the evaluator is not in memory or reads no
        tokens. Raises `UserError` if the trace is too long, and `NotFoundError` if no evaluator has this name."""
        self.about(name)
        name, reading = self._split(name)
        lazy = self._lazy.get(name)
        batcher = self._batchers[name] if lazy is None else lazy.batcher
        cost = None if batcher is None else batcher.cost(trace, reading)
        return cost if cost is not None and cost.prefixes else None

    def plain(self, name: str) -> str:
        """Return the name of the evaluator that reads whole solutions, given that of one that reads in windows.
        Other names are returned as they are."""
        bare, reading = self._split(name)
        return name if reading is None or reading.window is None else self.about(bare).reread(reading.plain).name

    def fit(self, name: str, trace: Trace) -> tuple[str, Mode]:
        """Return the name and the mode with which an evaluator can judge a trace.

        They are the given name and hindsight, unless the trace is longer than the evaluator's context: then it is
        read in windows of that size, and as a whole alone, offline. It is also read offline if hindsight takes more
        than a request may. Raises `NotFoundError` if no evaluator has this name.
        """
        context = self.about(name).context
        bare, reading = self._split(name)
        if bare in self._shipped:
            # Its tokenizer counts; that of a fetched one is asked once something has loaded it.
            self.scorer(name)
        try:
            cost = self.cost(self.plain(name), trace)
            return name, Mode.HINDSIGHT if cost is None or cost.fits else Mode.OFFLINE
        except UserError:
            pass
        if reading is None or reading.window is None:
            reading = replace(reading or Rereading(), window=context)
        try:
            windowed = self.about(bare).reread(reading).name
            cost = self.cost(windowed, trace)
        except UserError:
            # The error of the evaluator's own reading says more.
            return name, Mode.HINDSIGHT
        return windowed, Mode.OFFLINE if cost is not None and cost.whole < cost.prefixes else Mode.HINDSIGHT

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
        if self._find(name, trace, mode) is None:
            self.scorer(name)
        return self.submit(name, trace, mode)

    def submit(self, name: str, trace: Trace, mode: Mode = Mode.HINDSIGHT) -> PendingScore[Judgment]:
        """Submit a trace and return the future of its judgment. Requests that arrive together are scored in one
        batch. Raises the same errors as `judge`."""
        return self._share(name, trace, mode)

    def begin(self, name: str, trace: Trace, mode: Mode = Mode.HINDSIGHT) -> PendingScore[Judgment]:
        """Like `submit`, but for a client that may leave before the judgment is ready and request it again later.
        The returned future must not be cancelled."""
        return self._share(name, trace, mode, comes_back=True)

    def _find(self, name: str, trace: Trace, mode: Mode) -> Judgment | None:
        """Return the cached hindsight judgment, which contains all modes, or else the one in this mode."""
        keys = dict.fromkeys(self._key(name, trace, one) for one in (Mode.HINDSIGHT, mode))
        kept = filter(None, map(self._judgments.find, keys))
        return next((one.result() for one in kept), None)

    def _share(self, name: str, trace: Trace, mode: Mode, *, comes_back: bool = False) -> PendingScore[Judgment]:
        """Return the future of a judgment. All clients that request the same judgment share one computation.
        `comes_back` is True for a client that may leave and request it again later."""
        found = self._find(name, trace, mode)
        key = self._key(name, trace, mode)
        answer: PendingScore[Judgment] = PendingScore()
        adapt = partial(_of_mode, trace=trace, mode=mode)
        if found is not None:
            answer.set_result(adapt(found))
            return answer
        while True:
            shared, is_ours = self._judgments.claim(key, kind=SharedScore, size=_size)
            if not isinstance(shared, SharedScore):
                answer.set_result(adapt(shared.result()))
                return answer
            if comes_back:
                # So that the client can be told the error.
                shared.stands = _FAILED_SECONDS
            if shared.join(answer, adapt):
                break
            self._judgments.drop(key, shared)
        if is_ours:
            try:
                self._compute(name, trace, mode, shared)
            except BaseException as error:
                if not shared.done():
                    shared.set_exception(error)
                raise
        return answer

    def _compute(
        self, name: str, trace: Trace, mode: Mode, answer: PendingScore[Judgment]
    ) -> PendingScore[Judgment]:
        name, reading = self._split(name)
        lazy = self._lazy.get(name)
        if lazy is not None:
            return self._loader.submit(lazy, trace, mode, answer, reading)
        return self._batchers[name].submit(trace, mode, answer, reading)

    def _key(self, name: str, trace: Trace, mode: Mode) -> Hashable:
        return self.about(name).fingerprint, trace.digest, mode

    def scores_together(self, name: str) -> bool:
        """True if candidates for a next step have to be submitted with `submit_next`.

        For other evaluators, each candidate is submitted offline as the last step of a trace, and shares batches
        with all other requests. Raises the errors of `scorer`.
        """
        return self.scorer(name).next_steps is not None and self._split(name)[1] is None

    def submit_next(
        self,
        name: str,
        problem: str,
        steps: Sequence[str | Sequence[str]],
        candidates: Sequence[str],
    ) -> PendingScore[Floats32]:
        """Like `Batcher.submit_next`, for the evaluator with this name. Raises the same errors as `judge`."""
        self.scorer(name)
        lazy = self._lazy.get(name)
        # Read once, since another thread may release it.
        batcher = self._batchers[name] if lazy is None else lazy.batcher
        if batcher is None:
            raise LoadingError(f"{name} was replaced by another evaluator in memory and is being loaded again.")
        return batcher.submit_next(problem, steps, candidates)

    def register(self, store: Store, name: str) -> StoredEvaluator:
        """Return the evaluator's row in the store. The row is written only on the first call, so that opening a
        trace never has to wait for an import to end."""
        key = (store.name, self.about(name).fingerprint)
        if key not in self._rows:
            self._rows[key] = register_loaded(store, self.about(name))
        return self._rows[key]


def _spec(spec: str | Path) -> str:
    if is_shipped(spec) or is_address(spec):
        return str(spec)
    # It brings PyTorch.
    from stepsight.core.models.checkpoint_resolver import evaluator_folder

    return f"{evaluator_folder(spec).resolve()}{split_reading(str(spec))[1] or ''}"


def _of_mode(kept: Judgment, trace: Trace, mode: Mode) -> Judgment:
    """Derive the judgment in a mode from one in hindsight, which contains all modes, or from one in that mode."""
    result = {Mode.HINDSIGHT: kept.result, Mode.ONLINE: kept.online, Mode.OFFLINE: kept.offline}[mode]
    assert result is not None
    return replace(kept, trace=trace, mode=mode, result=result)


def _size(judgment: Judgment) -> int:
    """Estimate the size of a cached judgment in bytes, from its texts and the arrays of its matrix, if there is
    one."""
    texts = (judgment.trace.problem, *judgment.trace.substeps)
    n = len(texts) - 1
    return sum(map(len, texts)) + n * (150 if judgment.hindsight is None else 150 + 6 * (n + 1))
