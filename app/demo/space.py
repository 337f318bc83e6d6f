"""Writing the demo as a Space: a folder that a model hub can run unchanged.

The folder holds this version of the package itself, because it may be unavailable elsewhere, and the evaluators
that are folders of this machine.
"""

import shutil
from collections.abc import Sequence
from importlib.metadata import requires
from pathlib import Path
from platform import python_version_tuple

import gradio as gr

import stepsight
from stepsight.core.errors import UserError
from stepsight.core.hubs.checkpoint_files import is_hub_id
from stepsight.core.models.checkpoint_resolver import evaluator_folder
from stepsight.core.models.location import bare_spec, is_shipped, local_folder

_APP = '''"""A demo of StepSight: every step of a solution, judged online and offline."""

import stepsight
from stepsight.app.demo.interface import LAUNCHED
from stepsight.core.errors import UserError

try:
    demo = stepsight.demo({evaluators})
except UserError as error:
    raise SystemExit(f"The demo cannot start: {{error}}") from None

if __name__ == "__main__":
    demo.launch(**LAUNCHED)
'''
_README = """---
title: StepSight
colorFrom: blue
colorTo: gray
sdk: gradio
sdk_version: {gradio}
python_version: "{python}"
app_file: app.py
license: mit
short_description: Judges every step of a worked maths solution
---

# StepSight

Every step of a solution is judged twice: online, with the steps up to it in view, and offline, with the whole
solution in view. Evaluators: {evaluators}.

On your own machine, `pip install -r requirements.txt` and `python app.py` run it. Programs use `/score`:

    from gradio_client import Client

    client = Client("OWNER/SPACE")
    client.predict(problem="What is 2 + 3?", solution=["2 + 3 = 6."], api_name="/score")
"""
# A hub keeps large and binary files apart from its git repository.
_BINARY = ("*.safetensors", "*.png", "*.woff2", "*.gz")


def write_space(folder: Path, evaluators: Sequence[str]) -> None:
    """Write a Space with these evaluators, each an argument of `load_evaluator`, into a new or empty folder.

    Raises `UserError` if the folder has content, if it cannot be written, or if there is no such evaluator.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists, and is not an empty folder.", "Choose another (--space).")
    places = [_place(spec) for spec in evaluators]
    names = [Path(spec).name if source is not None else spec for spec, source in places]
    python = ".".join(python_version_tuple()[:2])
    texts = {
        "app.py": _APP.format(evaluators=[spec for spec, _ in places]),
        "requirements.txt": "".join(f"{line}\n" for line in requirements()),
        "README.md": _README.format(gradio=gr.__version__, python=python, evaluators=", ".join(names)),
        ".gitattributes": "".join(f"{name} filter=lfs diff=lfs merge=lfs -text\n" for name in _BINARY),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8", newline="")
        _copy(Path(stepsight.__file__).parent, folder / "stepsight")
        for spec, source in places:
            if source is not None:
                _copy(source, folder / spec)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror}).", "Choose another (--space).") from None


def requirements() -> list[str]:
    """Return the package's requirements, without its extras, in the form of a requirements file."""
    return [line for line in requires("stepsight") or [] if "extra ==" not in line]


def _place(spec: str) -> tuple[str, Path | None]:
    """Return an evaluator's argument of `load_evaluator` within the Space, and the folder to copy there. Raises
    `UserError` if this machine has no such evaluator, and it cannot be on a hub."""
    source = None if is_shipped(spec) else local_folder(bare_spec(spec))
    if source is not None:
        evaluator_folder(spec)
        return f"evaluators/{source.resolve().name}{spec.removeprefix(bare_spec(spec))}", source
    if not (is_shipped(spec) or is_hub_id(bare_spec(spec))):
        evaluator_folder(spec)
    return spec, None


def _copy(source: Path, folder: Path) -> None:
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("__pycache__", "screenshots", "reports"))
