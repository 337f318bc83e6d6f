"""The API on a store with four traces, asked without a browser."""

import pytest

from stepsight.storage.database.store import open_store
from tests.app.client import asking
from tests.storage.samples import add


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    with open_store(str(tmp_path_factory.mktemp("api") / "store.db")) as store:
        add(store)
        yield store


@pytest.fixture(scope="module")
def client(filled, evaluators):
    with asking(filled, evaluators) as client:
        yield client
