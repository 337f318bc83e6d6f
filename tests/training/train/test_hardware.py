import pytest

from stepsight.core.errors import UserError
from stepsight.training.train.estimate import DEFAULT, GPUS, find_gpu


def test_the_usable_memory_is_a_share_of_it():
    # 92 % of 80 * 1024^3 bytes.
    assert find_gpu("h100-80gb").usable == pytest.approx(0.92 * 85_899_345_920)
    assert DEFAULT in GPUS


def test_an_unknown_one_is_named_with_those_that_are_known():
    with pytest.raises(UserError, match=r"there is no figure of the GPU 'h101'\. There are rtx-4090, .*, b200\."):
        find_gpu("h101")
