"""The API on a store with four traces, asked without a browser."""

import pytest

from tests.app.client import asking
from tests.storage.samples import add


@pytest.fixture(scope="module")
def filled(module_store):
    add(module_store)
    return module_store


@pytest.fixture(scope="module")
def client(filled, evaluators):
    with asking(filled, evaluators) as client:
        yield client
