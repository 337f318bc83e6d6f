"""A Space that is written runs as it is, with nothing of this installation."""

import os
import socket
import subprocess
import sys

import pytest
import yaml
from gradio_client import Client

from stepsight.app.commands.server.app import listen
from stepsight.app.demo.space import write_space
from tests.app.processes import until
from tests.messages import refused


def test_a_folder_with_content_and_an_evaluator_that_is_nowhere_are_refused(tmp_path):
    (tmp_path / "mine").write_text("")
    with refused():
        write_space(tmp_path, ["mini-bidir"])
    with refused():
        write_space(tmp_path / "new", ["nowhere"])
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.slow
def test_a_space_runs_by_itself_with_an_evaluator_of_this_machine(tmp_path, tiny):
    folder = tmp_path / "space"
    write_space(folder, [str(tiny)])
    header = yaml.safe_load((folder / "README.md").read_text().split("---")[1])
    assert (header["sdk"], header["app_file"]) == ("gradio", "app.py")
    assert "gradio" in (folder / "requirements.txt").read_text()
    listener = listen(0)
    port = listener.getsockname()[1]
    listener.close()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"GRADIO_SERVER_PORT": str(port), "STEPSIGHT_CACHE": str(tmp_path / "cache")}
    with subprocess.Popen([sys.executable, "app.py"], cwd=folder, env=environment) as process:
        try:
            until(lambda: _answers(port) or process.poll() is not None, 120)
            client = Client(f"http://127.0.0.1:{port}", verbose=False, httpx_kwargs={"timeout": 600})
            (record,) = client.predict("2 + 3?", ["5."], api_name="/score")["judgments"]
            assert record["evaluator"] == tiny.name
        finally:
            process.terminate()


def _answers(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
