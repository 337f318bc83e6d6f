"""What published versions wrote is read as it was then, on either database, and what others call is still there."""

import json
import re
from pathlib import Path

import pytest

from tests.compatibility.__main__ import EXPECTED, INTERFACES
from tests.compatibility.interfaces import interfaces, missing
from tests.compatibility.reading import READERS, client_of, copy_store, load_store, read_store, run

# Of a version that is not published yet.
WRITE = "python -m tests.compatibility writes what is meant"
VERSIONS = sorted(path.parent for path in Path(__file__).parent.glob(f"*/{EXPECTED}"))
versions = pytest.mark.parametrize("version", VERSIONS, ids=[version.name for version in VERSIONS])


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def differences(then, now, where=""):
    """The places where something of then is missing or another now. What has been added does not count."""
    if isinstance(then, dict) and isinstance(now, dict):
        gone = [f"{where}.{key} is missing" for key in then.keys() - now.keys()]
        return gone + [line for key in then.keys() & now.keys() for line in _inside(then, now, key, where)]
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        return [line for place in range(len(then)) for line in _inside(then, now, place, where)]
    if isinstance(then, float) and isinstance(now, int | float):
        return [] if now == pytest.approx(then, abs=1e-5) else [f"{where} is {now}, was {then}"]
    return [] if then == now else [f"{where} is {now!r:.200}, was {then!r:.200}"]


def _inside(then, now, key, where):
    return differences(then[key], now[key], f"{where}.{key}")


@versions
@pytest.mark.parametrize("name", READERS)
def test_files_of_a_version_are_read_as_they_were_then(tmp_path, version, name):
    assert differences(read_json(version / EXPECTED)[name], READERS[name](version, tmp_path)) == [], WRITE


@versions
def test_a_store_of_a_version_is_read_and_labelled_on_on_either_database(address, tmp_path, version):
    load_store(version, address)
    assert differences(read_json(version / EXPECTED)["store"], read_store(address, tmp_path)) == [], WRITE
    with client_of(address) as client:
        slot = re.search(r'data-slot="([0-9a-f]{16})"', client.get("/annotate/label?campaign=1").text)[1]
        event = {"kind": "label", "key": "later", "step": 0, "new": "neg", "seconds": 0.5, "guideline": 2}
        state = client.post(f"/annotate/slots/{slot}/events", json=event).json()["state"]
    assert state["labels"][0] == "neg"


@versions
def test_a_store_of_a_version_is_a_backup_that_is_restored(address, tmp_path, version):
    run("restore", copy_store(version, tmp_path), "--db", address)
    assert differences(read_json(version / EXPECTED)["store"], read_store(address, tmp_path)) == []


@versions
def test_every_name_that_programs_of_a_version_use_remains(version):
    assert missing(read_json(version / INTERFACES), interfaces()) == [], WRITE


def test_what_is_gone_or_newly_needed_is_named():
    then = {"commands": {"stepsight score": ["--mode", "--old"], "stepsight score needs": []}}
    now = {"commands": {"stepsight score": ["--mode", "--new"], "stepsight score needs": ["--new"]}}
    assert missing(then, now) == [
        "commands: stepsight score: --old is gone",
        "commands: stepsight score needs --new",
    ]
    assert missing(then, {"commands": {}})[0] == "commands: stepsight score is gone"
    assert differences({"a": [1.0, {"b": 2}]}, {"a": [1.000001, {"c": 2}], "d": 0}) == [".a.1.b is missing"]
