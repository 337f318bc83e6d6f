"""What released versions wrote is read as it was then, on either database, and what others call is still there."""

import json
from pathlib import Path
from typing import Any

import pytest

from stepsight.storage.database.store import Store
from tests.compatibility.__main__ import EXPECTED, INTERFACES
from tests.compatibility.interfaces import broken, interfaces
from tests.compatibility.reading import READERS, read_address, read_backup
from tests.compatibility.stores import load_store

FOLDER = Path(__file__).parent
VERSIONS = sorted(path.parent.name for path in FOLDER.glob(f"*/{EXPECTED}"))
# The stores of 0.1.0 have the rows of those of the first version that stays compatible.
STORES = [*(("0.1.0", first) for first in VERSIONS[:1]), *((version, version) for version in VERSIONS)]


def read_json(version: str, name: str) -> Any:
    return json.loads((FOLDER / version / name).read_text(encoding="utf-8"))


def differences(then: Any, now: Any, where: str = "") -> list[str]:
    """The places where something of then is missing or another now. What has been added does not count."""
    if isinstance(then, dict) and isinstance(now, dict):
        missing = [f"{where}.{key} is missing" for key in then.keys() - now.keys()]
        return missing + [one for key in then.keys() & now.keys() for one in _within(then, now, key, where)]
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        return [one for place in range(len(then)) for one in _within(then, now, place, where)]
    if isinstance(then, float) and isinstance(now, int | float):
        return [] if now == pytest.approx(then, abs=1e-5) else [f"{where} is {now}, was {then}"]
    return [] if then == now else [f"{where} is {now!r:.200}, was {then!r:.200}"]


def _within(then: Any, now: Any, key: Any, where: str) -> list[str]:
    return differences(then[key], now[key], f"{where}.{key}")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", READERS)
def test_files_of_a_version_are_read_as_they_were_then(tmp_path: Path, version: str, name: str) -> None:
    now = READERS[name](FOLDER / version, tmp_path)
    assert differences(read_json(version, EXPECTED)[name], now) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_backup_of_a_version_holds_the_store_of_then(tmp_path: Path, version: str) -> None:
    assert differences(read_json(version, EXPECTED)["store"], read_backup(FOLDER / version, tmp_path)) == []


@pytest.mark.parametrize(("version", "expected"), STORES)
def test_stores_of_a_version_on_either_database_are_read_as_they_were_then(
    address: str, tmp_path: Path, version: str, expected: str
) -> None:
    load_store(FOLDER / version, address)
    assert differences(read_json(expected, EXPECTED)["store"], read_address(address, tmp_path)) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_every_name_that_programs_of_a_version_call_remains(sqlite_store: Store, version: str) -> None:
    assert broken(read_json(version, INTERFACES), interfaces(sqlite_store)) == []


def test_removed_names_and_new_required_arguments_are_named() -> None:
    then = {"commands": {"stepsight score": ["--mode", "--old"], "stepsight score needs": []}}
    now = {"commands": {"stepsight score": ["--mode", "--new"], "stepsight score needs": ["--new"]}}
    assert broken(then, now) == [
        "commands: stepsight score: --old is gone",
        "commands: stepsight score needs --new",
    ]
    assert broken(then, {"commands": {}})[0] == "commands: stepsight score is gone"
    assert differences({"a": [1.0, {"b": 2}]}, {"a": [1.000001, {"c": 2}], "d": 0}) == [".a.1.b is missing"]
