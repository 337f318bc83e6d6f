"""The README's claims that a machine can check."""

import re
import shlex
from pathlib import Path

import pytest

from stepsight.app.commands.cli import COMMANDS, build_parser

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TREE = README.split("## Tree")[1].split("## ")[0]
PACKAGES = ("app", "core", "storage", "training")
# Named in the tree by their folder.
FOLDERS = (
    "app/api", "app/browse", "app/commands", "app/evidence", "app/pages", "app/relabel", "app/results",
    "app/score", "app/web", "storage/importers", "storage/labelling", "storage/migrations", "storage/people",
    "training/synth", "training/filtering", "training/grid", "training/reranking", "training/finetuning",
    "core/formats",
)  # fmt: skip


@pytest.mark.parametrize("package", PACKAGES)
def test_the_tree_names_every_module(package):
    names = [path.name for path in (ROOT / package).glob("*.py") if path.name != "__init__.py"]
    assert names
    section = next(part for part in re.split(r"\n    (?=\w+/ )", TREE) if part.startswith(f"{package}/"))
    assert [name for name in names if name not in section] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_tree_names_every_folder(folder):
    assert (ROOT / folder).is_dir()
    assert f"{folder.split('/')[1]}/" in TREE


def test_the_commands_in_the_table_exist():
    commands = re.findall(r"^\| `stepsight ([^`]+)` \|", README, re.MULTILINE)
    named = {command.split()[0] for command in commands}
    assert named == {module.__name__.rpartition(".")[2] for module in COMMANDS} - SPELLED.keys() | set(
        SPELLED.values()
    )
    for command in commands:
        assert build_parser().parse_args(shlex.split(command)).run


# Modules whose command is a word that Python or another module has taken.
SPELLED = {
    "serving": "app",
    "scoring": "score",
    "importing": "import",
    "scores": "import-scores",
    "evaluation": "evaluate",
    "filtering": "filter",
    "filter_study": "filter-study",
    "calibration": "calibrate",
    "training": "train",
    "synthesis": "synth",
    "labels": "export",
    "campaigns": "campaign",
    "users": "user",
}


def test_the_files_it_links_to_exist():
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_python_example_runs(capsys):
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.count("[") == 3


def test_the_make_targets_it_names_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"`make (\w+)`|^    make (\w+)$", README, re.MULTILINE))
    names = {name for pair in targets for name in pair if name}
    assert names >= {"app", "test", "check", "bench"}
    assert [name for name in names if f"\n{name}:" not in makefile] == []
