import gc

import pytest
import torch

from stepsight.training.experiments.answers import Grader
from stepsight.training.train import run
from tests.storage.samples import add, evaluator
from tests.training.hand import say, traces
from tests.training.judged import fill, measure
from tests.training.small_runs import CONFIG


@pytest.fixture(scope="package", autouse=True)
def one_thread():
    """Sums split between threads may round differently, and small ones are quicker on one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="package", autouse=True)
def quick_collection():
    """A training collects garbage, and would go through all that PyTorch's modules hold, for half a second."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="package")
def whole(tmp_path_factory):
    """The folder of an uninterrupted run; not to be changed."""
    return run.train(CONFIG, tmp_path_factory.mktemp("runs") / "whole")


@pytest.fixture
def stored(sqlite_store):
    return add(sqlite_store, traces())


@pytest.fixture
def first(sqlite_store, stored):
    judge = evaluator(sqlite_store, "first")
    say(sqlite_store, stored, judge.id)
    return judge


@pytest.fixture
def evaluation(sqlite_store):
    return measure(sqlite_store, fill(sqlite_store))


@pytest.fixture(scope="module")
def grader():
    with Grader() as opened:
        yield opened
