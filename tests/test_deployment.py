"""The files that the manual has for a server: what they start is what there is. nginx's is tried by
tests/faults/test_proxy.py."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from stepsight.app.commands.cli import build_parser
from stepsight.app.commands.serve import listen
from stepsight.app.scoring.evaluators import Evaluators
from tests.checkpoints import write_evaluator
from tests.serving import served

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "deployment"


@pytest.fixture(scope="module")
def dockerfile():
    """The instructions with their arguments, those that go on joined."""
    text = (FOLDER / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def arguments(dockerfile, instruction):
    return [rest for name, rest in dockerfile if name == instruction]


def test_the_unit_starts_a_server_that_people_reach_through_the_proxy():
    unit = (FOLDER / "stepsight.service").read_text(encoding="utf-8")
    (line,) = re.findall("^ExecStart=(.*)$", unit, re.MULTILINE)
    program, *words = shlex.split(line)
    assert program.endswith("/bin/stepsight")
    args = build_parser().parse_args(words)
    nginx = (FOLDER / "nginx.conf").read_text(encoding="utf-8")
    assert f"server {args.host}:{args.port} " in nginx
    assert f"server_name {args.name[0]};" in nginx


def test_the_image_starts_a_server_at_the_port_that_it_names(dockerfile):
    (entry,), (command,) = (arguments(dockerfile, name) for name in ("ENTRYPOINT", "CMD"))
    assert json.loads(entry) == ["stepsight"]
    args = build_parser().parse_args(json.loads(command))
    assert arguments(dockerfile, "EXPOSE") == [str(args.port)]


def test_the_image_has_all_that_the_package_is_made_of(dockerfile):
    copied = {path for line in arguments(dockerfile, "COPY") for path in line.split()[:-1]}
    linked = {
        os.path.normpath(path.readlink()).lstrip("./")
        for path in (ROOT / "stepsight").iterdir()
        if path.is_symlink()
    }
    assert linked
    assert {*linked, "stepsight", "pyproject.toml", "requirements-hashed.txt"} <= copied
    assert sorted(path for path in copied if not (ROOT / path).exists()) == []


def test_the_health_check_tells_a_server_that_answers_from_one_that_does_not(dockerfile, sqlite_store, tmp_path):
    (check,) = arguments(dockerfile, "HEALTHCHECK")
    python, *words = json.loads(check.partition("CMD")[2])
    assert python == "python"

    def asked(port):
        command = [sys.executable, *(word.replace(":7860/", f":{port}/") for word in words)]
        return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode

    evaluators = Evaluators([write_evaluator(tmp_path / "tiny")], shipped=False)
    healthy = True
    with served(sqlite_store, evaluators, has_worker=lambda: healthy) as address:
        port = int(address.rpartition(":")[2])
        assert asked(port) == 0
        healthy = False
        assert asked(port) == 1
    with listen(0) as closed:
        port = closed.getsockname()[1]
    assert asked(port) == 1
