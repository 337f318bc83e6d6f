"""Stress tests of datasets: the variants of their traces, and evaluators' scores for them.

Each variant is created once per seed and stored, so that all evaluators are tested on the same variants and an
interrupted test can resume. Verdicts are computed when a test is read, at any threshold.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Annotated, Any

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass as validated
from sqlalchemy import ColumnElement, Select, delete, func, select
from sqlalchemy.orm import Session

from stepsight.core.errors import Check, UserError, never_cancel
from stepsight.core.scores import Outputs, StepScores
from stepsight.core.stress.content import from_content, to_content
from stepsight.core.stress.measure import StressedTrace, StressFigures
from stepsight.core.stress.stress import NothingToChangeError, ScoreAll, StressTest
from stepsight.core.stress.transforms import all_transforms
from stepsight.core.stress.variant import Transform, Variant, by_substep
from stepsight.core.validation import STRICT, ListOf, Record, choice, validate
from stepsight.storage.database.schema import (
    DatasetRow,
    EvaluatorRow,
    TraceRow,
    now,
)
from stepsight.storage.database.store import Store
from stepsight.storage.database.stored_json import MOST_NUMBER, DamagedError
from stepsight.storage.database.stress_schema import StressScoresRow, StressVariantRow
from stepsight.storage.database.upsert import insert_once
from stepsight.storage.judgments.judgments import is_fresh, read_offline
from stepsight.storage.traces.queries import StoredTrace, trace_batches

_FLOATS = np.dtype("<f4")
# Traces from which steps are taken, the first ones that are drawn.
_DONORS = 50

MOST_TRACES = 100_000


@validated(frozen=True, config=STRICT)
class StressPlan(Record):
    """The plan of a stress test of a dataset: at most `traces` of its traces, drawn at random with `seed`, and
    these `transforms`, or all if none are given. With the same seed, a larger number of traces includes those of a
    smaller one."""

    seed: Annotated[int, Field(ge=-MOST_NUMBER, le=MOST_NUMBER)] = 0
    traces: Annotated[int, Field(ge=1, le=MOST_TRACES)] = 200
    transforms: ListOf[Annotated[str, choice(tuple(all_transforms()))]] = ()

    @property
    def chosen(self) -> list[Transform]:
        return [one for one in all_transforms().values() if not self.transforms or one.name in self.transforms]

    def request(self) -> dict[str, Any]:
        """Return the plan as the request of a job."""
        return asdict(self) | {"transforms": [one.name for one in self.chosen]}


def read_plan(request: Mapping[str, Any]) -> StressPlan:
    """Parse the request of a stored job, or the options of a command. Raises `UserError` if it is not a stress
    test."""
    return validate(StressPlan, dict(request), "the stress test")


def check_judges_steps(evaluator: str, outputs: Outputs) -> None:
    """Raise `UserError` unless an evaluator with these outputs judges steps. The message names `evaluator`."""
    if not outputs.has_steps:
        raise UserError(
            f"{evaluator} judges only whole solutions, and a stress test asks for verdicts on steps.",
            "Choose an evaluator that judges steps.",
        )


@dataclass(frozen=True, eq=False)
class StoredStressTest:
    """The stored results of an evaluator's stress test of a dataset with one seed.

    `test` holds the traces and their variants, and `stressed` the variants that the evaluator could score. `rows`
    has the database ids of the traces.
    """

    seed: int
    test: StressTest
    stressed: Sequence[StressedTrace]
    rows: Sequence[int]

    def figures(self, threshold: float) -> list[StressFigures]:
        """Return the measures of every transform that was tried, in order. A step is valid if its validity reaches
        `threshold`."""
        return self.test.figures(self.stressed, threshold)

    @property
    def unscored(self) -> int:
        """The number of variants that the evaluator could not score, such as those that are too long."""
        return len(self.test) - len(self.stressed)

    @property
    def nbytes(self) -> int:
        return 2000 * len(self.stressed) + 1000 * len(self.rows)


def score_stress_test(
    store: Store,
    score: ScoreAll,
    dataset_id: int,
    evaluator_id: int,
    plan: StressPlan,
    on_skip: Callable[[StoredTrace, UserError], None],
    check: Check = never_cancel,
) -> Iterator[StoredTrace]:
    """Build the variants of a dataset's traces and score them, skipping those that are done.

    Traces come in the order in which they are drawn, and each is yielded once its scores are stored. A trace that
    the evaluator cannot score is passed to `on_skip` instead, and is not scored again. Passes on any exception that
    `check` or `score` raises.
    """
    drawn = _drawn(store, dataset_id, plan.seed)
    donors: list[StoredTrace] | None = None
    for trace in missing_stress(store, dataset_id, evaluator_id, plan):
        if donors is None:
            donors = _load(store, drawn[:_DONORS])
        check()
        if _score(store, score, evaluator_id, trace, _variants(store, trace, plan, donors)):
            yield trace
        else:
            on_skip(trace, UserError(f"trace {trace.id!r:.200} is too long, or has no verdict that can be read."))


def missing_stress(store: Store, dataset_id: int, evaluator_id: int, plan: StressPlan) -> Iterator[StoredTrace]:
    """Yield the traces that `score_stress_test` would yield."""
    for batch in trace_batches(store, _missing(store, dataset_id, evaluator_id, plan)):
        yield from batch


def stress_outcome(store: Store, dataset_id: int, evaluator_id: int, plan: StressPlan) -> str:
    """Return a sentence if a finished stress test has nothing to show, and "" otherwise."""
    found = read_stress_test(store, dataset_id, evaluator_id, plan)
    return "" if found is not None and len(found.test) else str(NothingToChangeError())


def count_missing_stress(store: Store, dataset_id: int, evaluator_id: int, plan: StressPlan) -> int:
    """Return the number of traces that `missing_stress` yields."""
    return len(_missing(store, dataset_id, evaluator_id, plan))


def read_stress_test(
    store: Store, dataset_id: int, evaluator_id: int, plan: StressPlan | None = None, seed: int | None = None
) -> StoredStressTest | None:
    """Return an evaluator's stored stress test of a dataset, or None if there is none.

    With a `plan`, only its traces, transforms and seed are included. Otherwise everything stored for one seed is:
    `seed` or, by default, the seed with the most variants, or the lowest such seed in a tie.
    """
    seeds = list_seeds(store, dataset_id, evaluator_id)
    if plan is not None:
        seed = plan.seed
    elif seed is None:
        seed = next(iter(seeds), 0)
    if seed not in seeds:
        return None
    chosen = {one.name: one for one in (StressPlan() if plan is None else plan).chosen}
    done = _done(dataset_id, evaluator_id, seed).where(StressVariantRow.transform.in_(chosen))
    columns = StressVariantRow.content, StressScoresRow.before, StressScoresRow.after
    found: dict[int, dict[str, Any]] = {}
    with store.read() as session:
        for row in session.execute(done.add_columns(*columns)):
            found.setdefault(row.trace_id, {})[row.transform] = row[2:]
    drawn = _drawn(store, dataset_id, seed)[: None if plan is None else plan.traces]
    traces = _load(store, [trace_id for trace_id in drawn if trace_id in found])
    transforms = tuple(one for name, one in chosen.items() if any(name in rows for rows in found.values()))
    variants, stressed = [], []
    for number, trace in enumerate(traces):
        tried = []
        for transform in transforms:
            if transform.name not in found[trace.trace_id]:
                continue
            content, before, after = found[trace.trace_id][transform.name]
            variant = None if content is None else _variant(trace, content)
            tried.append((transform, variant))
            if variant is not None and before is not None:
                scores = _scores(before, len(trace.substeps)), _scores(after, len(variant.origins))
                stressed.append(StressedTrace(number, transform, variant, *scores))
        variants.append(tuple(tried))
    test = StressTest(transforms, tuple(map(by_substep, traces)), tuple(variants))
    return StoredStressTest(seed, test, stressed, [trace.trace_id for trace in traces])


def list_seeds(store: Store, dataset_id: int, evaluator_id: int) -> list[int]:
    """Return the seeds of an evaluator's stress tests of a dataset, starting with the one that has the most
    variants. In a tie, the lowest seed comes first."""
    counted = _done(dataset_id, evaluator_id).with_only_columns(StressVariantRow.seed)
    ordered = counted.group_by(StressVariantRow.seed).order_by(func.count().desc(), StressVariantRow.seed)
    with store.read() as session:
        return list(session.scalars(ordered))


def stress_tested(store: Store) -> dict[int, dict[int, str]]:
    """Return, for each dataset id, the evaluators with a stress test of it: their names by their ids, sorted by
    name."""
    pairs = select(StressScoresRow.dataset_id, EvaluatorRow.id, EvaluatorRow.name).distinct()
    ordered = pairs.join(EvaluatorRow, EvaluatorRow.id == StressScoresRow.evaluator_id)
    found: dict[int, dict[int, str]] = {}
    with store.read() as session:
        for dataset_id, evaluator_id, name in session.execute(ordered.order_by(EvaluatorRow.name, EvaluatorRow.id)):
            found.setdefault(dataset_id, {})[evaluator_id] = name
    return found


def read_stress_version(store: Store, dataset_id: int, evaluator_id: int) -> tuple[int, ...]:
    """Return a version key that changes whenever an evaluator's stress test of a dataset may change."""
    traces = select(DatasetRow.revision).where(DatasetRow.id == dataset_id)
    of = StressScoresRow.dataset_id == dataset_id, StressScoresRow.evaluator_id == evaluator_id
    scores = select(func.count(), func.max(StressScoresRow.variant_id)).where(*of)
    with store.read() as session:
        count, newest = session.execute(scores).one()
        return session.scalar(traces) or 0, count, newest or 0


def _drawn(store: Store, dataset_id: int, seed: int) -> list[int]:
    """Return the database ids of a dataset's traces in the order in which a seed draws them.

    The order depends on the ids within the dataset, so that traces added later leave it as it is.
    """
    wanted = select(TraceRow.id, TraceRow.external_id).where(TraceRow.dataset_id == dataset_id)
    with store.read() as session:
        rows = session.execute(wanted).all()
    place = {row.id: blake2b(f"{seed} {row.external_id}".encode(), digest_size=16).digest() for row in rows}
    return sorted(place, key=place.__getitem__)


def _load(store: Store, trace_ids: Sequence[int]) -> list[StoredTrace]:
    """Return traces in file order."""
    loaded = [trace for batch in trace_batches(store, trace_ids) for trace in batch]
    return sorted(loaded, key=lambda trace: trace.position)


def _missing(store: Store, dataset_id: int, evaluator_id: int, plan: StressPlan) -> list[int]:
    wanted = {one.name for one in plan.chosen}
    done: dict[int, set[str]] = {}
    with store.read() as session:
        for trace_id, transform in session.execute(_done(dataset_id, evaluator_id, plan.seed)):
            done.setdefault(trace_id, set()).add(transform)
    drawn = _drawn(store, dataset_id, plan.seed)[: plan.traces]
    return [trace_id for trace_id in drawn if not wanted <= done.get(trace_id, set())]


def _done(dataset_id: int, evaluator_id: int, seed: int | None = None) -> Select[Any]:
    """Select the variants, with or without content, for which an evaluator is done, ignoring traces that have
    changed since."""
    variants, scores = StressVariantRow, StressScoresRow
    conditions = [
        variants.dataset_id == dataset_id,
        scores.dataset_id == dataset_id,
        scores.evaluator_id == evaluator_id,
        is_fresh(variants.trace_digest, TraceRow.digest),
    ]
    if seed is not None:
        conditions.append(variants.seed == seed)
    columns: list[Any] = [variants.trace_id, variants.transform]
    return (
        select(*columns)
        .join(scores, scores.variant_id == variants.id)
        .join(TraceRow, TraceRow.id == variants.trace_id)
        .where(*conditions)
    )


def _variants(
    store: Store, trace: StoredTrace, plan: StressPlan, donors: Sequence[StoredTrace]
) -> dict[int, Variant | None]:
    """Return the variants of a trace by their database ids, creating those that are not stored."""
    names = {one.name for one in plan.chosen}
    with store.read() as session:
        stored = _stored_variants(session, trace, plan)
    known = {row.transform for row in stored.values() if is_fresh(row.trace_digest, trace.digest)}
    if known != names:
        made = {one.name: one.variant(trace, plan.seed, donors) for one in plan.chosen if one.name not in known}
        common = {"trace_id": trace.trace_id, "dataset_id": trace.dataset_id, "seed": plan.seed}
        rows = [
            common
            | {"transform": name, "trace_digest": trace.digest, "created": now()}
            | {"content": None if variant is None else to_content(trace, variant)}
            for name, variant in made.items()
        ]
        with store.write() as session:
            stale = StressVariantRow.trace_digest != trace.digest
            session.execute(delete(StressVariantRow).where(*_of(trace, plan), stale))
            insert_once(session, StressVariantRow, rows, "trace_id", "seed", "transform")
        with store.read() as session:
            stored = _stored_variants(session, trace, plan)
    return {id: None if row.content is None else _variant(trace, row.content) for id, row in stored.items()}


def _of(trace: StoredTrace, plan: StressPlan) -> tuple[ColumnElement[bool], ...]:
    chosen = StressVariantRow.transform.in_([one.name for one in plan.chosen])
    return StressVariantRow.trace_id == trace.trace_id, StressVariantRow.seed == plan.seed, chosen


def _stored_variants(session: Session, trace: StoredTrace, plan: StressPlan) -> dict[int, StressVariantRow]:
    wanted = select(StressVariantRow).where(*_of(trace, plan)).order_by(StressVariantRow.id)
    return {row.id: row for row in session.scalars(wanted)}


def _score(
    store: Store,
    score: ScoreAll,
    evaluator_id: int,
    trace: StoredTrace,
    variants: Mapping[int, Variant | None],
) -> bool:
    """Score a trace and those of its variants that the evaluator has not scored, and store the scores. Returns
    False if the trace cannot be scored."""
    wanted = select(StressScoresRow).where(
        StressScoresRow.evaluator_id == evaluator_id, StressScoresRow.variant_id.in_(variants)
    )
    with store.read() as session:
        done = {row.variant_id: row.before for row in session.scalars(wanted)}
    rest = {id: variant for id, variant in variants.items() if id not in done}
    changed = {id: variant.trace for id, variant in rest.items() if variant is not None}
    before, after = None, {}
    if changed:
        before = _scores_before(store, trace, evaluator_id, done.values())
        first = [] if before is not None else [by_substep(trace)]
        scores = list(score([*first, *changed.values()]))
        before = scores[0] if before is None else before
        after = dict(zip(changed, scores[len(first) :], strict=True))
    values = {"evaluator_id": evaluator_id, "dataset_id": trace.dataset_id, "created": now()}
    with store.write() as session:
        # The trace may have changed meanwhile, and its variants may be gone.
        there = session.scalars(select(StressVariantRow.id).where(StressVariantRow.id.in_(rest))).all()
        rows = [values | {"variant_id": id} | _pair(before, after.get(id)) for id in there]
        if rows:
            insert_once(session, StressScoresRow, rows, "variant_id", "evaluator_id")
    return before is not None or not changed


def _scores_before(
    store: Store, trace: StoredTrace, evaluator_id: int, stored: Iterable[bytes | None]
) -> StepScores | None:
    """Return the scores of the original if the store has them: from another variant, or from a judgment of a trace
    whose steps are not divided."""
    known = next((one for one in stored if one is not None), None)
    if known is not None:
        return _scores(known, len(trace.substeps))
    if len(trace.steps) != len(trace.substeps):
        return None
    return read_offline(store, trace, evaluator_id)


def _pair(before: StepScores | None, after: StepScores | None) -> dict[str, bytes | None]:
    if before is None or after is None:
        return {"before": None, "after": None}
    return {"before": before.probs.astype(_FLOATS).tobytes(), "after": after.probs.astype(_FLOATS).tobytes()}


def _variant(trace: StoredTrace, content: Mapping[str, Any]) -> Variant:
    try:
        return from_content(trace, content)
    except ValueError as error:
        raise DamagedError(f"stress_variants.content: {error}.") from None


def _scores(stored: bytes, steps: int) -> StepScores:
    try:
        return StepScores(np.frombuffer(stored, _FLOATS).reshape(steps, 3))
    except ValueError as error:
        raise DamagedError(f"stress_scores: {error}.") from None
