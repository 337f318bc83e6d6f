"""Write the folder of this version: `python -m tests.compatibility`.

Until the version is released its folder may be removed and written again; from then on it stays as it is.
"""

import json
import shutil
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from stepsight.app.score.entered import Entered
from stepsight.core.scores import Thresholds
from stepsight.storage.database.store import open_store
from tests.checkpoints import write_evaluator
from tests.compatibility.interfaces import interfaces
from tests.compatibility.reading import (
    BACKUP,
    DATASETS,
    EVALUATOR,
    EVENTS,
    LABELS,
    LINKS,
    PATCH,
    READERS,
    SCORES,
    read_backup,
    run,
    traces_of,
)
from tests.compatibility.stores import SQLITE, write_stores
from tests.conftest import ROOT

# A text that was split, steps with sub-steps, and other thresholds.
ENTERED: list[dict[str, Any]] = [
    {"problem": "What is 2 + 3?", "text": "1. 2 + 3 = 6.\n2. So 6.", "steps": (("2 + 3 = 6.",), ("So 6.",))},
    {"problem": "Was ist ∑ 1 + 1?", "steps": (("1 + 1 = 2.", "Ja."), ("So 2.",))},
    {"problem": "What is 2?", "steps": (("2.",),), "thresholds": Thresholds(0.25, 0.75)},
]
INTERFACES, EXPECTED = "interfaces.json", "expected.json"


def write_folder(folder: Path) -> None:
    """Fill an empty folder with what this version writes, and with what it reads from that."""
    write_stores(folder)
    with tempfile.TemporaryDirectory() as scratch:
        address = shutil.copyfile(folder / SQLITE, Path(scratch) / "store.db")
        for dataset in DATASETS:
            run("export", "traces", dataset, folder / traces_of(dataset), "--db", address)
        for path, format in ((EVENTS, "events"), (LABELS, "jsonl")):
            run("export", "labels", "blind", folder / path, "--format", format, "--db", address)
        run("patch", "export", "sums", folder / PATCH, "--db", address)
        run("backup", folder / BACKUP, "--db", address)
        write_evaluator(folder / EVALUATOR)
        scored = ("--evaluator", folder / EVALUATOR, "--mode", "hindsight", "--output", folder / SCORES)
        run("score", "--input", folder / traces_of("sums"), *scored)
        links = [Entered(**one, evaluators=(EVALUATOR,)).token() for one in ENTERED]
        write_json(folder / LINKS, links)
        with open_store(str(address)) as store:
            write_json(folder / INTERFACES, interfaces(store))
    expected = {}
    for name, read in {"store": read_backup, **READERS}.items():
        with tempfile.TemporaryDirectory() as scratch:
            expected[name] = read(folder, Path(scratch))
    write_json(folder / EXPECTED, expected)


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    major, minor, *_ = project["version"].split(".")
    made = Path(__file__).parent / f"{major}.{minor}"
    made.mkdir()
    write_folder(made)
    print(made)
