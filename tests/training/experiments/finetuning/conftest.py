import pytest

from stepsight.training.experiments.finetuning.sft import write_scratch_model
from tests.training.experiments.finetuning.small import BACKBONE, ROWS, write_subset


@pytest.fixture(scope="package")
def start(tmp_path_factory):
    """The folder of a tiny language model with random weights; not to be changed."""
    folder = tmp_path_factory.mktemp("language") / "start"
    write_scratch_model(folder, (text for row in ROWS for text in row), BACKBONE, 320, seed=1)
    return folder


@pytest.fixture
def subset(tmp_path):
    """A file of 24 rows."""
    return write_subset(tmp_path / "red.jsonl")
