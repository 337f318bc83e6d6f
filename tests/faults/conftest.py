"""A store on a small disk, and a client of the routes that people label by."""

import pytest
from starlette.testclient import TestClient

from stepsight.storage.database.store import open_store
from tests.app.client import HERE
from tests.faults.disks import small_disk
from tests.labelling_server import build


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk", 4) as disk:
        yield disk


@pytest.fixture
def disk_store(disk):
    with open_store(str(disk.path / "store.db")) as store:
        yield store


@pytest.fixture
def labelling(request):
    """Of `disk_store` where the test has one, else of `sqlite_store`."""
    name = "disk_store" if "disk_store" in request.fixturenames else "sqlite_store"
    with TestClient(build(request.getfixturevalue(name)), base_url="http://127.0.0.1", client=HERE) as client:
        yield client
