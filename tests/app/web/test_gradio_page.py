"""Gradio's page: what does not run beside it."""

import asyncio
from typing import Any

import gradio as gr
import pytest
from fastapi import FastAPI
from gradio.events import api

from stepsight.app.web.gradio_page import interface, mount


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
