"""What is particular to implicit PRMs; `test_conformance` compares them with their authors."""

import json

from stepsight.core.evaluators.loading import load_evaluator
from tests.cases import each
from tests.checkpoints import QWEN2, pickled, write_language_model
from tests.core.formats.by_hand import TRACES, check_modes
from tests.core.formats.cases import eurus, write_pair
from tests.messages import refused
from tests.vocabularies import byte_level


def test_long_inputs_are_computed_in_chunks(tmp_path, monkeypatch):
    models, folder = write_pair(tmp_path), tmp_path / "prm"
    monkeypatch.setattr("stepsight.core.formats.log_ratio._CHUNK", 7)
    check_modes(load_evaluator(folder), lambda trace, j: eurus(folder, models, trace, j), TRACES[:2])


def test_reference_and_coefficient_are_part_of_the_fingerprint(tmp_path):
    write_pair(tmp_path)
    path = tmp_path / "prm" / "stepsight.json"
    card, fingerprints = json.loads(path.read_text()), set()
    for changes in ({}, {"coefficient": 0.25}, {"reference": str(tmp_path / "prm")}):
        path.write_text(json.dumps(card | changes))
        fingerprints.add(load_evaluator(tmp_path / "prm").fingerprint)
    assert len(fingerprints) == 3


def test_both_may_be_pickled_and_in_bfloat16(tmp_path):
    write_pair(tmp_path, 0.01)
    exact = load_evaluator(tmp_path / "prm").fingerprint
    pickled(tmp_path / "prm", shards=2)
    pickled(tmp_path / "reference")
    assert load_evaluator(tmp_path / "prm").fingerprint == exact
    assert load_evaluator(tmp_path / "prm", dtype="bfloat16").dtype == "bfloat16"


@each("changes", [{"reference": ...}, {"reference": "no/such/model"}, {"coefficient": -1}])
def test_what_a_card_says_of_the_reference_has_to_make_sense(tmp_path, changes):
    write_pair(tmp_path)
    path = tmp_path / "prm" / "stepsight.json"
    card = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in card.items() if value is not ...}))
    with refused():
        load_evaluator(tmp_path / "prm")


def test_a_reference_of_another_vocabulary_is_refused(tmp_path):
    write_pair(tmp_path)
    write_language_model(tmp_path / "reference", QWEN2, byte_level(learnt=("other words",)))
    with refused():
        load_evaluator(tmp_path / "prm")
