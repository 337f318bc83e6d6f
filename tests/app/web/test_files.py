"""Files as a browser gets them."""

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from stepsight.app.web.bundles import FreshFiles


@pytest.fixture
def client(tmp_path):
    (tmp_path / "page.js").write_text("export const version = 1;")
    application = Starlette()
    application.mount("/files", FreshFiles(directory=tmp_path))
    with TestClient(application) as client:
        yield client


def test_a_kept_file_is_asked_about_each_time(client):
    first = client.get("/files/page.js")
    assert (first.status_code, first.headers["cache-control"]) == (200, "no-cache")
    assert "javascript" in first.headers["content-type"]
    again = client.get("/files/page.js", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.headers["cache-control"], again.content) == (304, "no-cache", b"")


def test_a_new_version_is_seen(client, tmp_path):
    kept = client.get("/files/page.js").headers["etag"]
    (tmp_path / "page.js").write_text("export const version = 22;")
    again = client.get("/files/page.js", headers={"if-none-match": kept})
    assert (again.status_code, again.text) == (200, "export const version = 22;")
