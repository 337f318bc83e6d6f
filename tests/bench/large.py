"""A large store: a dataset of synthetic traces, judged in hindsight mode by evaluators that draw at random.

A few thousand traces are made and judged; the rest are copies of them, made within SQLite.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from sqlalchemy import text

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Hindsight
from stepsight.core.trace import Step, Trace
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.judgments.evaluators import register_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from stepsight.storage.traces.writer import TraceWriter
from stepsight.training.synth.corpus import generate

DATASET = "large"
EVALUATORS = 5
_MADE = 2000
# Every so-manieth trace has no gold.
_WITHOUT_GOLD = 10
_COPIES = (
    "INSERT INTO traces (id, dataset_id, external_id, position, problem, digest, n_steps, n_substeps, first_error,"
    " has_gold, meta) SELECT id + :more, dataset_id, external_id || '-' || :more, position + :more,"
    " problem || ' Variant ' || (id + :more), digest, n_steps, n_substeps, first_error, has_gold, meta"
    " FROM traces WHERE id <= :made AND id + :more <= :all",
    "INSERT INTO steps SELECT trace_id + :more, position, label, valid FROM steps"
    " WHERE trace_id <= :made AND trace_id + :more <= :all",
    "INSERT INTO substeps SELECT trace_id + :more, step, position, text FROM substeps"
    " WHERE trace_id <= :made AND trace_id + :more <= :all",
    "INSERT INTO judgments (trace_id, dataset_id, evaluator_id, mode, trace_digest, probabilities, validity,"
    " redundancy, online_validity, online_redundancy, retroactive, created, solution)"
    " SELECT trace_id + :more, dataset_id, evaluator_id, mode, trace_digest, probabilities, validity, redundancy,"
    " online_validity, online_redundancy, retroactive, created, solution FROM judgments"
    " WHERE trace_id <= :made AND trace_id + :more <= :all",
    "INSERT INTO profiles SELECT evaluator_id, dataset_id, mode, trace_id + :more, online, offline FROM profiles"
    " WHERE trace_id <= :made AND trace_id + :more <= :all",
    "INSERT INTO trace_search (rowid, text) SELECT rowid + :more, text || ' Variant ' || (rowid + :more)"
    " FROM trace_search WHERE rowid <= :made AND rowid + :more <= :all",
)


def build_store(path: Path, size: int, evaluators: int = EVALUATORS) -> None:
    """Make a store on SQLite with a dataset of `size` traces, judged by `evaluators`."""
    with open_store(str(path)) as store:
        made = min(size, _MADE)
        _add_traces(store, made)
        dataset = find_dataset(store, DATASET)
        for number in range(evaluators):
            name = f"random-{number}"
            row = register_evaluator(store, name=name, fingerprint=name, format="none", attention="none")
            save_judgments(store, row.id, _judgments(iterate_traces(store, dataset.id), number))
        for more in range(made, size, made):
            with store.write() as session:
                for statement in _COPIES:
                    session.execute(text(statement), {"more": more, "made": made, "all": size})
        with store.write() as session:
            for table in ("datasets", "judged"):
                session.execute(text(f"UPDATE {table} SET revision = revision + 1"))
            session.execute(text("ANALYZE"))


def _add_traces(store: Store, count: int) -> None:
    with store.write() as session:
        writer = TraceWriter(session, DATASET, "synthetic", DATASET)
        writer.add([(f"trace {number}", trace) for number, trace in enumerate(_traces(count), start=1)])
        writer.finish(DATASET, "")


def _traces(count: int) -> Iterator[Trace]:
    for number, trace in enumerate(islice(generate(1, count), count)):
        steps = trace.steps
        if number % _WITHOUT_GOLD == 0:
            steps = tuple(Step(step.substeps) for step in steps)
        yield Trace(str(number), trace.problem, steps, trace.meta)


def _judgments(traces: Iterator[Trace], seed: int) -> Iterator[Judgment]:
    """A random triangle for each trace."""
    rng = np.random.default_rng(seed)
    for trace in traces:
        n = len(trace.substeps)
        packed = rng.dirichlet([1, 0.5, 4 + seed], n * (n + 1) // 2).astype(np.float32)
        yield Judgment(trace, Mode.HINDSIGHT, Hindsight.from_packed(packed))
