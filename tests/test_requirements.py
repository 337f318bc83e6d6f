"""The pinned versions: one of each thing, and all that a server needs with hashes."""

import re
from importlib.metadata import requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.audit import REQUIREMENTS, ROOT, summarize

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
