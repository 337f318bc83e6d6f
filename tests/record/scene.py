"""The fixed store that everything is recorded on, built by commands from the files in `store`."""

import io
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from stepsight.app.commands.cli import main
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.scoring.gallery_seed import seed
from stepsight.storage.database.people_schema import ServerSecretRow
from stepsight.storage.database.store import open_store
from stepsight.storage.people.users import Role, add_user
from tests.conftest import ROOT
from tests.filling import steady_clock

FILES = Path(__file__).parent / "store"
EVALUATORS = ("mini-bidir", "mini-causal")
# What each run writes otherwise: moments, durations, shares of a machine, keys drawn at random.
_VARYING = {
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(\+00:00|Z)?": "MOMENT",
    r"\b\d{1,2} (Jan|Febr|March|April|May|June|July|Aug|Sept|Oct|Nov|Dec)[a-z]* \d{4}": "DAY",
    r"\b[\d.,]+ (ms|s|min|h|seconds|minutes)\b": "DURATION",
    r"\b[\d.,]+ (kB|MB|GB)\b": "SIZE",
    r"\b(just now|\d+ (second|minute|hour|day)s? ago)\b": "AGO",
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b": "UUID",
    r"\?v=[0-9a-f]+": "",
    r"\bslot=[0-9a-f]{16}\b": "slot=SLOT",
    r"(?m)^(hindsight|offline|online)( +)[\d.]+ +[\d,]+$": r"\1 SPEED",
    r"\b\d+%\|[^\n]*": "PROGRESS",
}


@dataclass(frozen=True)
class Scene:
    """A folder with the store, and files that commands read."""

    folder: Path

    @property
    def store(self) -> str:
        return str(self.folder / "store.db")

    @contextmanager
    def copy(self) -> Iterator["Scene"]:
        """A copy for what changes the store."""
        copied = self.folder.parent / f"{self.folder.name}-copy"
        shutil.copytree(self.folder, copied)
        try:
            yield Scene(copied)
        finally:
            shutil.rmtree(copied)

    def run(self, *argv: object) -> str:
        """Run a command in the folder; returns its exit code and what it printed."""
        out, err = io.StringIO(), io.StringIO()
        words = [str(word) for word in argv]
        before = Path.cwd()
        os.chdir(self.folder)
        os.environ["STEPSIGHT_DB"] = self.store
        try:
            with redirect_stdout(out), redirect_stderr(err):
                try:
                    code = main(words)
                except SystemExit as end:
                    code = int(end.code or 0)
        finally:
            os.chdir(before)
        parts = [f"$ stepsight {' '.join(words)}", f"exit {code}", out.getvalue(), err.getvalue() and "-- stderr"]
        return self.steady("\n".join(filter(None, [*parts, err.getvalue()])))

    def steady(self, text: str) -> str:
        """Return a text without what differs from run to run."""
        text = text.replace(str(self.folder), "FOLDER").replace(str(ROOT), "ROOT")
        for pattern, word in _VARYING.items():
            text = re.sub(pattern, word, text)
        return "\n".join(line.rstrip() for line in text.splitlines())


def build(folder):
    """Build the store in an empty folder."""
    for path in FILES.iterdir():
        shutil.copy(path, folder)
    scene = Scene(folder)
    # Help is as wide as the terminal.
    os.environ["COLUMNS"] = "100"
    with steady_clock(), open_store(scene.store) as store:
        with store.write() as session:
            session.add(ServerSecretRow(name="pseudonyms", secret=b"of the record"))
        shipped = Evaluators()
        seed(store, shipped, shipped.names)
        for role in Role:
            add_user(store, role.value, role, None)
    for argv in (
        ("import", "jsonl", "traces.sums.jsonl", "--dataset", "sums"),
        ("import", "jsonl", "traces.control.jsonl", "--dataset", "control"),
        ("synth", "--size", 40, "--seed", 7, "--output", "synthetic.jsonl"),
        ("import", "jsonl", "synthetic.jsonl", "--dataset", "synthetic"),
        *(
            ("score", "--dataset", dataset, "--mode", "hindsight", "--evaluator", name)
            for dataset in ("sums", "synthetic")
            for name in EVALUATORS
        ),
        ("score", "--dataset", "synthetic", "--evaluator", "equations"),
        *(("import", "labels", f"{name}.events.jsonl") for name in ("whole", "by-step", "blind")),
    ):
        printed = scene.run(*argv)
        assert "\nexit 0" in printed, printed
    return scene
