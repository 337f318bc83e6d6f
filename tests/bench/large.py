"""A large store: a dataset of synthetic traces, judged in hindsight mode by evaluators that draw at random.

A few thousand traces are made and judged; the rest are copies of them, made within SQLite.
"""

from itertools import islice

import numpy as np
from sqlalchemy import text

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Hindsight
from stepsight.core.trace import Step, Trace
from stepsight.storage.database.schema import Base
from stepsight.storage.database.store import open_store
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
# Of each table that is copied, the columns whose values differ between the copies.
_COPIES = {
    "traces": {
        "id": "id + :more",
        "external_id": "external_id || '-' || :more",
        "position": "position + :more",
        "problem": "problem || ' Variant ' || (id + :more)",
    },
    "steps": {"trace_id": "trace_id + :more"},
    "substeps": {"trace_id": "trace_id + :more"},
    "judgments": {"trace_id": "trace_id + :more"},
    "triangles": {"trace_id": "trace_id + :more"},
}
_SEARCH = (
    "INSERT INTO trace_search (rowid, text) SELECT rowid + :more, text || ' Variant ' || (rowid + :more)"
    " FROM trace_search WHERE rowid <= :made AND rowid + :more <= :all"
)


def build_store(path, size, evaluators=EVALUATORS):
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
                for statement in (*map(_copy, _COPIES), _SEARCH):
                    session.execute(text(statement), {"more": more, "made": made, "all": size})
        with store.write() as session:
            for table in ("datasets", "judged"):
                session.execute(text(f"UPDATE {table} SET revision = revision + 1"))
            session.execute(text("ANALYZE"))


def _copy(table):
    """The statement that copies the rows of a table for the traces after those that were made."""
    columns = Base.metadata.tables[table].columns.keys()
    values = {column: _COPIES[table].get(column, column) for column in columns}
    trace = "id" if table == "traces" else "trace_id"
    return (
        f"INSERT INTO {table} ({', '.join(values)}) SELECT {', '.join(values.values())} FROM {table}"
        f" WHERE {trace} <= :made AND {trace} + :more <= :all"
    )


def _add_traces(store, count):
    with store.write() as session:
        writer = TraceWriter(session, DATASET, "synthetic", DATASET)
        writer.add([(f"trace {number}", trace) for number, trace in enumerate(_traces(count), start=1)])
        writer.finish(DATASET, "")


def _traces(count):
    for number, trace in enumerate(islice(generate(1, count), count)):
        steps = trace.steps
        if number % _WITHOUT_GOLD == 0:
            steps = tuple(Step(step.substeps) for step in steps)
        yield Trace(str(number), trace.problem, steps, trace.meta)


def _judgments(traces, seed):
    """A random triangle for each trace."""
    rng = np.random.default_rng(seed)
    for trace in traces:
        n = len(trace.substeps)
        packed = rng.dirichlet([1, 0.5, 4 + seed], n * (n + 1) // 2).astype(np.float32)
        yield Judgment(trace, Mode.HINDSIGHT, Hindsight.from_packed(packed))
