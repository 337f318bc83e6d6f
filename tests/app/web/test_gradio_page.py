"""Gradio's page: what does not run beside it, and the bodies that do not reach it."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from fastapi import FastAPI
from gradio.events import api
from starlette.testclient import TestClient

from stepsight.app.web.gradio_page import EventBodies, interface, mount
from tests.cases import each


def test_an_event_that_needs_the_queue_is_refused():
    with gr.Blocks() as demo:
        api(double, api_name="late")
    with pytest.raises(ValueError, match=r"queue does not run here, and \['late'\]"):
        mount(FastAPI(), demo)


def test_a_value_that_is_kept_for_each_visitor_is_refused():
    with gr.Blocks() as demo:
        gr.State(0)
    with pytest.raises(ValueError, match="a state needs it"):
        mount(FastAPI(), demo)


def double(number: int) -> dict[str, Any]:
    return {"doubled": 2 * number}


def test_nothing_of_gradios_runs_between_requests():
    mounted = mount(FastAPI(), interface("A page", {"double": double}))

    async def tasks():
        async with mounted.router.lifespan_context(mounted):
            await asyncio.sleep(0.1)
            return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(tasks()) == set()


def half(text: str, number: int, request: gr.Request) -> dict[str, Any]:
    return {"half": text[: number // 2]}


def count(values: dict[str, Any]) -> dict[str, Any]:
    return {"count": len(values)}


FILE = {"path": __file__, "meta": {"_type": "gradio.FileData"}}

BODIES = [
    *(b"", b"null", b"[]", b"{", b"1e999", b"[" * 5000, b"\xff", b'{"data": {}}', b'{"data": null}'),
    *(
        b'{"data": []}',
        b'{"data": ["a"]}',
        b'{"data": ["a", 1, 2]}',
        b'{"data": ["a", "1"]}',
        b'{"data": ["a", 1e400]}',
    ),
    *(b'{"data": [{"path": "a", "meta": {"_type": "gradio.FileData"}}, 1]}', b'{"data": ["\\ud800", 1]}'),
]


@pytest.fixture(scope="module")
def client():
    application = FastAPI()
    events: dict[str, Any] = {"half": half, "count": count}
    application.add_middleware(EventBodies, events=events)
    with TestClient(mount(application, interface("A page", events))) as client:
        yield client


@each("body", BODIES)
def test_a_body_that_does_not_fit_the_event_is_refused(client, body):
    assert client.post("/gradio_api/run/half", content=body).status_code == 422


@each("value", [FILE, {"a": [FILE]}, FILE | {"path": "http://127.0.0.1/"}, FILE | {"meta": 1}])
def test_a_file_that_a_body_names_is_not_copied(client, value):
    assert client.post("/gradio_api/run/count", json={"data": [value]}).status_code == 422
    assert client.post("/gradio_api/run/count", json={"data": [{"a": 1}]}).json()["data"] == [{"count": 1}]
    assert [path for path in Path(os.environ["GRADIO_TEMP_DIR"]).rglob("*") if path.is_file()] == []


def test_gradios_folder_is_private_and_goes_with_the_process():
    source = """
import os
os.umask(0)
from stepsight.app.web.gradio_page import interface, mount
from fastapi import FastAPI
mount(FastAPI(), interface("A page", {}))
folder = os.environ["GRADIO_TEMP_DIR"]
print(folder, oct(os.stat(folder).st_mode), *os.listdir(folder))
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    folder, mode, *inside = done.stdout.split()
    assert (mode, inside) == ("0o40700", ["vibe_edit_history"])
    assert not Path(folder).exists()


@each("others", [{}, {"fn_index": 99}, {"session_hash": 1}, {"event_data": "a"}, {"batched": True}, {"request": 1}])
def test_of_a_body_gradio_gets_the_values_alone(client, others):
    response = client.post("/gradio_api/run/half", json={"data": ["abcdef", 4], **others})
    assert response.json()["data"] == [{"half": "ab"}]
