"""Evaluators whose prompt template is changed for a comparison, by their names."""

import pytest

from stepsight.core.evaluator_summary import EvaluatorSummary
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.reading import Reading, Rereading, TemplateChoice, split_reading
from stepsight.core.trace import Trace
from tests.messages import refused

TRACE = Trace.of("What is 2 + 3?", ["2 + 3 = 5.", "So 5."])
NAME = "mini-bidir, read once, no separator after the prompt"


def test_a_name_with_a_choice_loads_the_evaluator_with_that_template():
    own, changed = load_evaluator("mini-bidir"), load_evaluator(NAME)
    assert changed.name == NAME
    assert split_reading(NAME) == ("mini-bidir", Rereading(Reading.ONCE, template=TemplateChoice.NOT_OPENED))
    # One token fewer: the separator after the prompt.
    assert len(changed.encode(TRACE)) == len(own.encode(TRACE)) - 1
    assert changed.fingerprint != own.fingerprint
    assert "another template of its own" in changed.reading_note


def test_a_summary_knows_the_choices_and_the_fingerprints_of_what_is_loaded():
    own = load_evaluator("mini-bidir").description()
    assert EvaluatorSummary.from_json(own.as_json()) == own
    names = [own.reread(one).name for one in own.template_readings]
    assert NAME in names
    for one in own.template_readings:
        found, loaded = own.reread(one), load_evaluator(f"mini-bidir{one}")
        assert (found.name, found.fingerprint) == (loaded.name, loaded.fingerprint)


@pytest.mark.parametrize("words", ["no system prompt", "tokenized in parts"])
def test_a_choice_that_the_template_does_not_have_is_refused(words):
    with refused():
        load_evaluator(f"mini-bidir, read once, {words}")
