"""Hostile data files are refused or shown within bounds, outside the server's memory, and the next file is read."""

from dataclasses import asdict
from pathlib import Path

import pytest

from stepsight.core.errors import UserError
from stepsight.storage.importers.recognition import Holds
from stepsight.storage.jobs.imports import run_import
from stepsight.storage.jobs.preview import preview
from stepsight.storage.people.users import local_user
from stepsight.storage.traces.queries import list_datasets
from tests.hostile.data_files import FILES, ROW, lines
from tests.storage.jobs.samples import send

QUICK = (
    "references-of-many.eval",
    "references-of-one.eval",
    "references-too-many.parquet",
    "one-long-row.parquet",
    "deep-structs.parquet",
    "footer-beyond-the-file.parquet",
    "damaged-2.parquet",
    "damaged-3.jsonl.gz",
    "deep.jsonl",
    "open-objects.json",
    "many-columns.csv",
)
_MOST = 100_000
"""The kilobytes by which the memory of the server may rise."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.nightly) for name in FILES]
)
def test_a_hostile_file_harms_nobody(sqlite_store, name):
    me = local_user(sqlite_store).id
    content = FILES[name]()
    before = memory()
    try:
        upload = send(sqlite_store, me, content, name, 512 * 1024)
        shown = preview(sqlite_store, upload)
        if shown.can_be_added and shown.finding.holds == Holds.TRACES:
            wanted = {"upload": upload.id, "sha256": upload.sha256, "holds": "traces", "dataset": "theirs"}
            columns = asdict(shown.finding.columns) if shown.finding.columns else None
            run_import(
                sqlite_store, wanted | {"kind": shown.finding.kind, "columns": columns}, lambda done, size: None
            )
    except UserError:
        assert list_datasets(sqlite_store) == []
    assert memory(most=True) - before < _MOST
    assert preview(sqlite_store, send(sqlite_store, me, lines(ROW), "mine.jsonl")).good == 1


def memory(*, most=False):
    """The kilobytes that this process has, or the most that it has had since this was asked last."""
    if not most:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
