"""StepSight as an installed package: it needs nothing but its own name, whatever lies in the current folder."""

import os
import subprocess
import sys
from importlib.metadata import version

import pytest

from tests.conftest import ROOT

PUBLIC_NAMES = [
    "Client",
    "Hindsight",
    "Scorer",
    "Store",
    "Trace",
    "demo",
    "frame",
    "frame_of",
    "left_out_frame",
    "load_evaluator",
    "open_store",
]
PUBLIC = "import stepsight; print(*sorted(x for x in stepsight.__all__ if getattr(stepsight, x).__doc__))"


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """A folder with a `core` and an `app` of somebody else's, and `lib` with nothing but the package."""
    folder = tmp_path_factory.mktemp("elsewhere")
    for name in ("core", "app", "storage", "training"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise ImportError('not ours')\n")
    (folder / "lib").mkdir()
    (folder / "lib" / "stepsight").symlink_to(ROOT / "stepsight")
    return folder


def run(folder, *arguments):
    command = [sys.executable, *map(str, arguments)]
    # Without PYTHONSAFEPATH, the current folder is looked in first, as a person's would be.
    environment = os.environ | {"PYTHONPATH": str(folder / "lib"), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def test_the_public_names_can_be_imported_and_explain_themselves(elsewhere):
    done = run(elsewhere, "-c", PUBLIC)
    assert (done.stdout.split(), done.stderr) == (PUBLIC_NAMES, "")


def test_commands_run_with_a_new_store(elsewhere):
    (elsewhere / "one.jsonl").write_text('{"id": "1", "problem": "2 + 3?", "steps": ["2 + 3 = 5."]}\n')
    stored = run(elsewhere, "-m", "stepsight", "import", "jsonl", "one.jsonl", "--dataset", "one", "--db", "a.db")
    assert (stored.returncode, stored.stderr) == (0, "")
    scored = run(
        elsewhere, "-m", "stepsight", "score", "--dataset", "one", "--evaluator", "mini-bidir", "--db", "a.db"
    )
    assert (scored.returncode, "1 traces judged by mini-bidir" in scored.stderr) == (0, True)
    assert "1" in run(elsewhere, "-m", "stepsight", "datasets", "--db", "a.db").stdout


def test_the_version_is_that_of_the_installed_package(elsewhere):
    done = run(elsewhere, "-m", "stepsight", "--version")
    assert (done.stdout, done.returncode) == (f"{version('stepsight')}\n", 0)


def test_an_unknown_name_is_an_attribute_error():
    import stepsight

    with pytest.raises(AttributeError, match="has no attribute 'Scores'"):
        _ = stepsight.Scores  # type: ignore[attr-defined]
