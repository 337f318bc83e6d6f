"""StepSight as an installed package, and the versions of what it needs."""

import os
import re
import subprocess
import sys
from importlib.metadata import requires, version

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.audit import REQUIREMENTS, summarize
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


@pytest.mark.slow
def test_the_public_names_can_be_imported_and_explain_themselves(elsewhere):
    done = run(elsewhere, "-c", PUBLIC)
    assert (done.stdout.split(), done.stderr) == (PUBLIC_NAMES, "")


@pytest.mark.slow
def test_commands_run_with_a_new_store(elsewhere):
    (elsewhere / "one.jsonl").write_text('{"id": "1", "problem": "2 + 3?", "steps": ["2 + 3 = 5."]}\n')
    stored = run(elsewhere, "-m", "stepsight", "import", "jsonl", "one.jsonl", "--dataset", "one", "--db", "a.db")
    assert (stored.returncode, stored.stderr) == (0, "")
    scored = run(
        elsewhere, "-m", "stepsight", "score", "--dataset", "one", "--evaluator", "mini-bidir", "--db", "a.db"
    )
    assert (scored.returncode, "1 trace judged by mini-bidir" in scored.stderr) == (0, True)
    assert "1" in run(elsewhere, "-m", "stepsight", "datasets", "--db", "a.db").stdout


def test_the_version_is_that_of_the_installed_package(elsewhere):
    done = run(elsewhere, "-m", "stepsight", "--version")
    assert (done.stdout, done.returncode) == (f"{version('stepsight')}\n", 0)


def test_an_unknown_name_is_an_attribute_error():
    import stepsight

    with pytest.raises(AttributeError, match="has no attribute 'Scores'"):
        _ = stepsight.Scores  # type: ignore[attr-defined]


EXTRAS = ("", "lora", "parquet", "postgresql")


def read_pins(path):
    """Every package of a file of requirements, with its version and hashes."""
    text = re.sub(r"^#.*\n", "", path.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    pins = {}
    for line in text.splitlines():
        requirement = Requirement(line.partition("--hash")[0])
        (version,) = requirement.specifier
        assert version.operator == "=="
        hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})\b", line)
        assert len(hashes) == line.count("--hash")
        pins[canonicalize_name(requirement.name)] = version.version, hashes
    return pins


PINNED = read_pins(ROOT / "constraints.txt")
HASHED = read_pins(REQUIREMENTS)


def test_both_files_name_the_same_versions():
    common = PINNED.keys() & HASHED.keys()
    assert len(common) > 60
    assert {name: HASHED[name][0] for name in common} == {name: PINNED[name][0] for name in common}


def test_every_package_that_a_server_needs_has_hashes():
    assert [name for name, (_, hashes) in HASHED.items() if not hashes] == []
    missing, waiting, seen = [], ["stepsight"], set()
    while waiting:
        name = waiting.pop()
        for line in requires(name) or ():
            needed = Requirement(line)
            extras = EXTRAS if name == "stepsight" else ("",)
            found = canonicalize_name(needed.name)
            if found in seen or not any(
                needed.marker is None or needed.marker.evaluate({"extra": one}) for one in extras
            ):
                continue
            seen.add(found)
            if found not in HASHED:
                missing.append(found)
            else:
                waiting.append(found)
    assert missing == []
    assert len(seen) > 50


def test_no_server_is_named():
    assert "://" not in REQUIREMENTS.read_text()


def test_an_audit_tells_holes_from_silence():
    fine = {"name": "a", "version": "1", "vulns": []}
    holed = {"name": "b", "version": "2", "vulns": [{"id": "X-1", "fix_versions": ["3"]}]}
    silent = {"name": "c", "skip_reason": "not found"}
    assert summarize({"dependencies": [fine, fine]}) == (0, "No hole is known in 2 packages.")
    assert summarize({"dependencies": [fine, holed]}) == (1, "b 2: X-1, mended in 3")
    code, words = summarize({"dependencies": [fine, silent]})
    assert (code, words.splitlines()[0]) == (2, "The database did not answer for 1 of 2 packages.")
    assert summarize({"dependencies": [holed, silent]})[0] == 1
