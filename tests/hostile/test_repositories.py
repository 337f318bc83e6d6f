"""No hostile repository leaves the cache, fills the memory, takes the token or keeps a page away.

It is refused when it is fetched or opened, or it works.
A part of them runs in `make test`, all of them in `make nightly`.
"""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_fetched
from stepsight.core.evaluators.opening import describe_fetched
from stepsight.core.hubs.hub_cache import HubModel, find_fetched, save_fetched
from stepsight.core.models.placement import Placement
from stepsight.core.paths import CACHE_VARIABLE
from stepsight.core.trace import Trace
from tests.app.client import PAGE, asking
from tests.checkpoints import write_evaluator, write_token_classifier
from tests.hostile.repositories import Attack, repositories
from tests.hostile.test_data_files import memory
from tests.hub import COMMIT, point_to

REPO = "lab/hostile"
TRACE = Trace.of("What is 2 + 3? aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaX", ["It is 5.", "a" * 100])
REFUSED = [
    "model: lists",
    "model: strides",
    "model: many ranks",
    "tokenizer: 9 times 10",
    "tokenizer: no unknown token",
    "tokenizer: the pattern (a+)+$",
]
_MOST = 100_000
"""The kilobytes by which the memory of the process may rise."""


@dataclass
class Place:
    """The pages of a server, and the folder in which its caches are beside a sound model."""

    pages: TestClient
    root: Path

    def take(self, attack: Attack) -> None:
        """Open a repository with a hostile model and encode a text. The model is put into the cache, as if its
        fetch had checked nothing. Raises `UserError` if it is refused."""
        shutil.rmtree(self.root / "hub", ignore_errors=True)
        folder = HubModel(repo=REPO, revision=COMMIT).folder
        shutil.copytree(self.root / "sound", folder)
        attack(folder)
        files = {path.name: path.stat().st_size for path in folder.iterdir()}
        save_fetched(HubModel(repo=REPO, revision=COMMIT, files=files))
        one = find_fetched(REPO)
        assert one is not None
        describe_fetched(one, Placement())
        load_fetched(one, Placement()).encode(TRACE)

    def refused(self, names: Iterable[str]) -> list[str]:
        """Take some of the repositories, and return the names of those that are refused."""
        found, known, left = [], repositories(), {*self.root.iterdir(), self.root / "hub", self.root / "cache"}
        for name in names:
            before = memory()
            try:
                self.take(known[name])
            except UserError:
                found.append(name)
            assert memory(most=True) - before < _MOST, name
            assert set(self.root.iterdir()) <= left, name
            assert all(path.resolve().is_relative_to(self.root) for path in self.root.rglob("*")), name
            for path in ("/", "/evaluators"):
                assert self.pages.get(path, headers=PAGE).status_code == 200, name
        return found


@pytest.fixture
def place(tmp_path, sqlite_store, monkeypatch):
    root = tmp_path / "models"
    point_to(monkeypatch, "http://127.0.0.1:9", root / "hub")
    monkeypatch.setenv(CACHE_VARIABLE, str(root / "cache"))
    monkeypatch.setattr("stepsight.app.scoring.evaluators._LOOKS", 0.0)
    write_token_classifier(root / "sound", "qwen2")
    evaluators = Evaluators([write_evaluator(root / "tiny")], shipped=False, fetched=True)
    with asking(sqlite_store, evaluators) as pages:
        yield Place(pages, root)


def test_some_hostile_repositories_are_refused(place):
    assert place.refused(REFUSED) == REFUSED


@pytest.mark.nightly
def test_hostile_repositories_are_refused_or_work(place):
    names = list(repositories())
    refused = place.refused(names)
    for kind, least in (("model", 30), ("tokenizer", 20)):
        assert sum(name.startswith(kind) for name in refused) >= least
