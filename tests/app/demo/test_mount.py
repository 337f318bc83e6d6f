"""The demo as a part of the server: it starts when it is asked for, and ends when nobody is there."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from gradio_client import Client

from stepsight.app.demo import mount
from stepsight.app.demo.mount import PATH, DemoOnRequest
from stepsight.app.server import build_app
from stepsight.storage.database.store import open_store
from tests.app.client import HERE
from tests.app.processes import until
from tests.serving import served

BODY = {"data": ["What is 2 + 3?", ["2 + 3 = 5."], ["tiny"], 0.5, 0.15]}


@pytest.fixture
def store(tmp_path):
    with open_store(str(tmp_path / "store.db")) as store:
        yield store


@pytest.fixture
def application(store, evaluators):
    return build_app(store, evaluators)


def demo_of(application):
    return next(route.app for route in application.routes if isinstance(getattr(route, "app", None), DemoOnRequest))


def test_the_demo_starts_on_request_and_ends_when_nobody_asks_any_more(application, monkeypatch):
    monkeypatch.setattr(mount, "_IDLE", 0.0)
    with TestClient(application, base_url="http://127.0.0.1", client=HERE) as client:
        client.get("/healthz")
        assert not demo_of(application).is_running
        for _ in range(2):
            assert "<gradio-app" in client.get(PATH).text
            until(lambda: not demo_of(application).is_running)


def test_a_program_scores_with_the_evaluators_of_the_server(store, evaluators):
    with served(store, evaluators) as address:
        client = Client(f"{address}{PATH}", verbose=False, httpx_kwargs={"timeout": 600})
        (record,) = client.predict(*BODY["data"], api_name="/score")["judgments"]
    assert record["fingerprint"] == evaluators.about("tiny").fingerprint


def test_every_script_of_gradios_page_has_the_nonce_of_its_policy(application):
    with TestClient(application, base_url="http://127.0.0.1", client=HERE) as client:
        for _ in range(2):
            page = client.get(PATH)
            policy = page.headers["content-security-policy"]
            (nonce,) = re.findall("'nonce-([^']+)' 'unsafe-eval'", policy)
            scripts = re.findall(r"<script\b[^>]*>", page.text)
            assert len(scripts) > 3
            assert all(f'<script nonce="{nonce}"' in script for script in scripts)
        assert "'unsafe-eval'" not in client.get("/").headers["content-security-policy"]


def test_an_unknown_event_or_page_ends_in_an_answer(application):
    with TestClient(application, base_url="http://127.0.0.1", client=HERE) as client:
        assert "<gradio-app" in client.get(f"{PATH}/", params={"page": "nowhere"}).text
        assert "404" in client.get(f"{PATH}/gradio_api/call/score/1").text


FILE = {"path": "/etc/hostname", "meta": {"_type": "gradio.FileData"}}


@pytest.mark.parametrize("body", ["", "[]", '{"data": NaN}', json.dumps({"data": [FILE]})])
def test_a_body_that_gradio_should_not_see_is_refused(application, body):
    with TestClient(application, base_url="http://127.0.0.1", client=HERE) as client:
        answer = client.post(f"{PATH}/gradio_api/call/score", content=body)
        assert answer.status_code == 422
        assert answer.json()["error"].startswith("The body is not")
        assert not demo_of(application).is_running


@pytest.mark.slow
def test_gradios_folder_is_private_and_goes_with_the_process():
    source = """
import os
os.umask(0)
from stepsight.app.demo.mounted import prepare_gradio
prepare_gradio()
folder = os.environ["GRADIO_TEMP_DIR"]
print(folder, oct(os.stat(folder).st_mode))
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    folder, mode = done.stdout.split()
    assert mode == "0o40700"
    assert not Path(folder).exists()
