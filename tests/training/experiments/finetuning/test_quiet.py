from transformers.utils import logging

from stepsight.training.experiments.finetuning.models import no_bars


def test_bars_are_shown_again():
    shown = logging.is_progress_bar_enabled()
    with no_bars():
        assert not logging.is_progress_bar_enabled()
    assert logging.is_progress_bar_enabled() == shown
