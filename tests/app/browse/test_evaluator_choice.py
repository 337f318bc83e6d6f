import pytest

from stepsight.app.browse.address import Address
from stepsight.app.browse.evaluator_choice import (
    EvaluatorChoice,
    default_choice,
    list_choices,
    shown_choices,
)
from stepsight.core.judgment import Mode
from stepsight.core.scores import Outputs
from stepsight.storage.judgments.evaluators import register_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset
from tests.storage.samples import add, judge


@pytest.fixture
def dataset(sqlite_store):
    """A dataset that `old` and a model of the same name as one that is loaded have judged."""
    trace = add(sqlite_store)[0]
    for name, fingerprint in (("tiny", "0123456789"), ("old", "of old")):
        row = register_evaluator(
            sqlite_store, name=name, fingerprint=fingerprint, format="stepsight", attention="causal"
        )
        save_judgments(sqlite_store, row.id, [judge(trace, Mode.HINDSIGHT)])
    return find_dataset(sqlite_store, "sums")


def keys(offers):
    return [offer.key for offer in offers]


def test_those_loaded_come_first_and_others_of_their_name_by_fingerprint(sqlite_store, evaluators, dataset):
    offers = list_choices(sqlite_store, evaluators, dataset.id)
    assert keys(offers) == ["tiny", "tiny-causal", "old", "tiny 01234567"]
    assert [offer.loaded for offer in offers] == ["tiny", "tiny-causal", None, None]
    assert [offer.judged for offer in offers] == [False, False, True, True]
    assert [offer.id is None for offer in offers] == [True, True, False, False]


def test_one_that_judged_another_dataset_is_offered_only_where_it_runs(sqlite_store, evaluators, dataset):
    other = find_dataset(sqlite_store, add(sqlite_store, dataset="other")[0].dataset)
    assert keys(list_choices(sqlite_store, evaluators, other.id)) == ["tiny", "tiny-causal"]
    row = evaluators.register(sqlite_store, "tiny")
    (tiny, _) = list_choices(sqlite_store, evaluators, other.id)
    assert (tiny.id, tiny.judged) == (row.id, False)


def test_a_page_that_names_nobody_is_about_one_that_has_judged(sqlite_store, evaluators, dataset):
    offers = list_choices(sqlite_store, evaluators, dataset.id)
    assert default_choice(offers).key == "old"
    assert default_choice(offers[:2]).key == "tiny"
    judged_here = EvaluatorChoice("mine", "mine", None, judged=True)
    assert default_choice([*offers, judged_here]).key == "mine"
    # A job of a shipped evaluator does not take the page from one that had judged before.
    demonstration = EvaluatorChoice("mini-bidir", "mini-bidir", None, judged=True, shipped=True)
    published = EvaluatorChoice("published", None, None, judged=True, outputs=Outputs.VALIDITY)
    assert default_choice([demonstration, published]).key == "published"


def test_those_side_by_side(sqlite_store, evaluators, dataset):
    offers = list_choices(sqlite_store, evaluators, dataset.id)
    assert keys(shown_choices(offers, Address().shown)) == ["old"]
    assert keys(shown_choices(offers, Address(evaluator="tiny", against="old").shown)) == ["tiny", "old"]
    beside = ("tiny 01234567", "tiny-causal")
    assert keys(shown_choices(offers, Address(evaluator="tiny", beside=beside).shown)) == list(beside)
    many = [EvaluatorChoice(f"e{i}", None, None, judged=True) for i in range(8)]
    assert keys(shown_choices(many, Address(beside=tuple(keys(many))).shown)) == ["e0", "e1", "e2", "e3", "e4"]


def test_one_that_never_judged_is_known_by_what_it_gives(sqlite_store, mixed, dataset):
    found = {offer.key: (offer.row, offer.outputs) for offer in list_choices(sqlite_store, mixed, dataset.id)}
    assert found["math-shepherd"] == found["two"] == (None, Outputs.VALIDITY)
    assert found["tiny"] == (None, Outputs.THREE_WAY)
    assert found["old"][1] == Outputs.THREE_WAY
