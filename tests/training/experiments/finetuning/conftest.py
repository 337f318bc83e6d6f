import json

import pytest
import yaml

from stepsight.training.experiments.finetuning.experiment import Experiment
from stepsight.training.experiments.finetuning.models import write_scratch_model
from stepsight.training.experiments.finetuning.study import read_study
from tests.training.experiments.finetuning.small import BACKBONE, POOL, PROBLEM, ROWS, STUDY


@pytest.fixture(scope="package")
def start(tmp_path_factory):
    """The folder of a tiny language model with random weights; not to be changed."""
    folder = tmp_path_factory.mktemp("language") / "start"
    write_scratch_model(folder, (text for row in ROWS for text in row), BACKBONE, 320, seed=1)
    return folder


@pytest.fixture
def subset(tmp_path):
    """A file of 24 rows."""
    path = tmp_path / "red.jsonl"
    path.write_text("".join(json.dumps({"query": query, "response": response}) + "\n" for query, response in ROWS))
    return path


@pytest.fixture(scope="package")
def done(tmp_path_factory):
    """A study's file, and beside it its folder, run to the end."""
    root = tmp_path_factory.mktemp("study")
    (root / "pool.jsonl").write_text(POOL)
    (root / "problems.jsonl").write_text(PROBLEM * 3)
    path = root / "study.yaml"
    path.write_text(yaml.safe_dump(STUDY))
    Experiment(read_study(path), path, root / "out").run(jobs=1)
    return path, root / "out"
