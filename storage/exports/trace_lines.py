"""Exporting traces: read a few at a time, in any order, and as lines of the plain format."""

import json
from collections.abc import Iterator, Sequence

from stepsight.core.files.jsonl import format_trace
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.database.store import Store
from stepsight.storage.traces.queries import StoredTrace, load_traces, traces

# Traces in memory.
_BATCH = 200


def batches(store: Store, trace_ids: Sequence[int]) -> Iterator[list[StoredTrace]]:
    """The traces with these database ids, in order, except those deleted meanwhile; no connection is held between
    batches."""
    for start in range(0, len(trace_ids), _BATCH):
        ids = trace_ids[start : start + _BATCH]
        with store.read() as session:
            loaded = load_traces(session, traces().where(TraceRow.id.in_(ids)))
        by_id = {trace.trace_id: trace for trace in loaded}
        yield [by_id[id] for id in ids if id in by_id]


def trace_lines(store: Store, trace_ids: Sequence[int]) -> Iterator[bytes]:
    """The lines of a file that `stepsight import jsonl` reads back, gold included."""
    for batch in batches(store, trace_ids):
        yield "".join(f"{json.dumps(format_trace(trace), ensure_ascii=False)}\n" for trace in batch).encode()
