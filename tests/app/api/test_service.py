"""The API as a whole: its description, its page, its errors."""

import re

import stepsight.app.api.scores
from stepsight.storage.database.store import open_store
from tests.app.client import asking
from tests.storage.samples import add


def test_every_route_is_described_with_what_it_takes_and_gives(client):
    document = client.get("/api/v1/openapi.json").json()
    assert document["openapi"].startswith("3.")
    assert set(document["paths"]) == {
        "/score", "/score/batch", "/next", "/evaluators", "/datasets", "/datasets/{name}/traces", "/traces/{trace}",
        "/jobs", "/jobs/{job}", "/jobs/{job}/cancel", "/jobs/{job}/resume",
    }  # fmt: skip
    schemas = document["components"]["schemas"]
    for methods in document["paths"].values():
        for route in methods.values():
            assert route["summary"]
            assert {"404", "422", "503"} <= set(route["responses"])
            for response in route["responses"].values():
                schema = response["content"]["application/json"]["schema"]
                for kind in schema.get("anyOf") or [schema]:
                    name = kind.get("$ref") or kind["items"]["$ref"]
                    assert name.rpartition("/")[2] in schemas
    assert schemas["Failure"]["required"] == ["error", "hint"]


def test_the_page_of_it_names_every_route_and_object_and_loads_nothing_from_elsewhere(client):
    response = client.get("/api/v1/docs")
    assert response.headers["content-type"].startswith("text/html")
    document = client.get("/api/v1/openapi.json").json()
    for path in document["paths"]:
        assert f"<code>/api/v1{path}</code>" in response.text
    for name in document["components"]["schemas"]:
        assert f'id="{name}"' in response.text
    # Each link within the page leads to something.
    targets = set(re.findall(r'href="#([^"]+)"', response.text)) - {"content"}
    assert targets <= set(re.findall(r'id="([^"]+)"', response.text))
    loaded = re.findall(r'(?:src|href)="([^"#]+)"', response.text)
    assert loaded
    assert [address for address in loaded if not address.startswith("/")] == []


def test_the_example_of_the_page_works(client):
    body = client.get("/api/v1/openapi.json").json()["components"]["schemas"]["ScoreRequest"]["properties"]
    example = {key: value["examples"][0] for key, value in body.items() if "examples" in value}
    assert client.post("/api/v1/score", json=example).status_code == 200


def test_another_method_is_refused(client):
    response = client.delete("/api/v1/score")
    assert response.status_code == 405
    assert response.json()["error"] == "This route does not take that method."


def test_a_vanished_database_is_503_and_comes_back(evaluators, tmp_path):
    path = tmp_path / "store.db"
    with open_store(str(path)) as store, asking(store, evaluators) as client:
        add(store)
        assert client.get("/api/v1/datasets").status_code == 200
        path.rename(tmp_path / "away.db")
        for address in ("datasets", "traces/1", "evaluators", "jobs"):
            response = client.get(f"/api/v1/{address}")
            assert response.status_code == 503
            assert "the file is gone" in response.json()["error"]
        # No empty file was put in its place.
        assert not path.exists()
        (tmp_path / "away.db").rename(path)
        assert client.get("/api/v1/datasets").json()[0]["traces"] == 4


def test_a_fault_of_ours_tells_nothing_of_itself(filled, evaluators, monkeypatch, caplog):
    def fail(*args):
        raise RuntimeError("secret of ours")

    monkeypatch.setattr(stepsight.app.api.scores, "list_evaluators", fail)
    with asking(filled, evaluators) as client:
        response = client.get("/api/v1/evaluators", headers={"x-request-id": "abc"})
    assert response.status_code == 500
    assert response.json() == {
        "error": "Something went wrong in StepSight itself.",
        "hint": "The server's log has the reason under request abc.",
    }
    assert "secret of ours" in caplog.text
