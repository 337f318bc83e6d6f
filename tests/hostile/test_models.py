"""Hostile repositories that were fetched: each is described or refused, and the server stays as it was.

A part of them runs in `make test`, all of them in `make test-all`.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import huggingface_hub
import pytest
from fastapi.testclient import TestClient

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_fetched
from stepsight.core.evaluators.opening import describe_fetched
from stepsight.core.hubs.hub_cache import Fetched, find_fetched, save_fetched, storage_folder
from stepsight.core.models.placement import Placement
from stepsight.core.paths import CACHE_VARIABLE
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store
from tests.app.client import PAGE, asking
from tests.checkpoints import write_evaluator, write_token_classifier
from tests.hostile.models import Attack, repositories, tokenizers

TRACE = Trace.of("What is 2 + 3? aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaX", ["It is 5.", "a" * 100])
COMMIT = "a" * 40
# Bytes by which the process may have grown after all of them.
MEMORY = 100_000_000


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "models"
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(root / "hub"))
    monkeypatch.setenv(CACHE_VARIABLE, str(root / "cache"))
    write_token_classifier(root / "sound", "qwen2")
    return root


@pytest.fixture
def pages(caches: Path, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setattr("stepsight.app.scoring.evaluators._LOOKS", 0.0)
    evaluators = Evaluators([write_evaluator(caches / "tiny")], shipped=False, fetched=True)
    with asking(sqlite_store, evaluators) as client:
        yield client


def taken() -> int:
    return 4096 * int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])


def fetched(caches: Path, attack: Attack) -> Fetched:
    """What a fetch leaves of a repository. The hub checked its hashes and not what it is."""
    one = Fetched("lab/hostile", COMMIT, {})
    shutil.rmtree(storage_folder(one.repo), ignore_errors=True)
    shutil.copytree(caches / "sound", one.folder)
    attack(one.folder)
    sizes = {path.name: path.stat().st_size for path in one.folder.iterdir()}
    save_fetched(Fetched(one.repo, COMMIT, sizes))
    found = find_fetched(one.repo)
    assert found is not None
    return found


def attacked(caches: Path, pages: TestClient, attacks: dict[str, Attack]) -> list[str]:
    """Open what each attack makes, and encode a text where that is possible. Returns the names of those refused."""
    left, before, refused = sorted(caches.iterdir()), taken(), []
    for name, attack in attacks.items():
        try:
            one = fetched(caches, attack)
            describe_fetched(one, Placement())
            load_fetched(one, Placement()).encode(TRACE)
        except UserError:
            refused.append(name)
        begin = time.monotonic()
        for path in ("/", "/evaluators"):
            assert pages.get(path, headers=PAGE).status_code == 200, name
        # A second by itself; the machine may be busy.
        assert time.monotonic() - begin < 20, name
        assert set(caches.iterdir()) <= {*left, caches / "hub", caches / "cache"}, name
    assert taken() - before < MEMORY
    return refused


@pytest.mark.parametrize(
    ("made", "names"),
    [
        (repositories, ["lists", "strides", "many ranks"]),
        (tokenizers, ["9 times 10", "no unknown token", "the pattern (a+)+$"]),
    ],
)
def test_some_hostile_models_are_refused(
    made: Callable[[], dict[str, Attack]], names: list[str], caches: Path, pages: TestClient
) -> None:
    attacks = made()
    assert attacked(caches, pages, {name: attacks[name] for name in names}) == names


@pytest.mark.slow
@pytest.mark.parametrize("made", [repositories, tokenizers])
def test_hostile_models_are_refused_or_work(
    made: Callable[[], dict[str, Attack]], caches: Path, pages: TestClient
) -> None:
    attacks = made()
    assert len(attacks) >= 60
    assert len(attacked(caches, pages, attacks)) > len(attacks) / 3
