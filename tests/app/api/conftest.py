"""The API on a store with four traces, asked without a browser."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.storage.database.store import Store, open_store
from tests.app.client import asking
from tests.storage.samples import add


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(str(tmp_path_factory.mktemp("api") / "store.db")) as store:
        add(store)
        yield store


@pytest.fixture(scope="module")
def client(filled: Store, evaluators: Evaluators) -> Iterator[TestClient]:
    with asking(filled, evaluators) as client:
        yield client
