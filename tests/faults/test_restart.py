"""A PostgreSQL server that is stopped and started while a server of pages has its store open."""

import pytest
from starlette.testclient import TestClient

from stepsight.storage.database.store import open_store
from tests.app.client import HERE
from tests.faults.labels import logged, open_page
from tests.labelling_server import build
from tests.postgresql import postgresql_server


@pytest.fixture
def own_server():
    """A server of its own, since others use the shared one meanwhile."""
    with postgresql_server() as server:
        yield server


def test_labels_go_on_after_a_restart_and_are_refused_while_the_server_is_down(own_server):
    with (
        open_store(own_server.make()) as store,
        TestClient(build(store), base_url="http://127.0.0.1", client=HERE) as client,
    ):
        page = open_page(store, client)
        assert page.label(0).status_code == 200
        own_server.stop()
        own_server.start()
        assert page.label(1).status_code == 200
        own_server.stop()
        refused = page.label(2, "again")
        assert refused.status_code == 503
        assert int(refused.headers["retry-after"]) > 0
        own_server.start()
        assert page.label(2, "again").status_code == 200
        assert logged(store) == page.stored
        assert len(page.stored) == 3
