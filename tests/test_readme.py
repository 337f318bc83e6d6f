"""The README's claims that a machine can check."""

import re
import shlex
from pathlib import Path

from stepsight.app.commands.cli import COMMANDS, build_parser

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


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
