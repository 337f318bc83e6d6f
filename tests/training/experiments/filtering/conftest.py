from pathlib import Path

import pytest

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models.evaluator_base import Evaluator
from tests.checkpoints import write_evaluator


@pytest.fixture(scope="package")
def tiny(tmp_path_factory) -> Path:
    """The folder of an evaluator that reads at most 256 tokens."""
    return write_evaluator(tmp_path_factory.mktemp("evaluators") / "tiny")


@pytest.fixture(scope="package")
def evaluator(tiny) -> Evaluator:
    return load_evaluator(tiny)
