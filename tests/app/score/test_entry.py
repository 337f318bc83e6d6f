import json

import pytest

from stepsight.app.score.entry import Entry
from stepsight.app.score.permalink import ScoreForm
from stepsight.app.web.text import text_key
from stepsight.core.errors import UserError
from stepsight.core.scores import Thresholds

TEXT = "1. a\n2. b"


def test_nothing_is_the_state_of_a_page_whose_script_did_not_run():
    assert Entry.read("") == Entry()
    assert Entry().form("q", TEXT, ["tiny"]) == ScoreForm("q", TEXT, ("tiny",))


def test_a_state_is_read():
    state = {"steps": [["a", "b"]], "corrected": True, "key": "k", "validity": 0.4, "redundancy": 1,
             "before": "B", "kept": True, "token": "T", "dataset": "mine"}  # fmt: skip
    assert Entry.read(json.dumps(state)) == Entry(
        [["a", "b"]], True, "k", Thresholds(0.4, 1), "B", True, "T", "mine"
    )


@pytest.mark.parametrize("state", ["{", "[]", "7", "null", '{"steps": 7}', '{"steps": [7]}', "[" * 5000])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(UserError, match="Reload the page"):
        Entry.read(state)


def test_a_threshold_outside_0_to_1_is_refused():
    with pytest.raises(UserError, match=r"validity is 1\.5, expected a number from 0 to 1"):
        Entry.read('{"validity": 1.5}')


def test_corrected_steps_count_while_the_text_is_the_one_they_are_of():
    entry = Entry([["b"], ["c", "d"]], True, text_key(TEXT))
    assert entry.form("q", TEXT, []).trace().substeps == ("b", "c", "d")
    assert entry.form("q", "1. x\n2. y", []).trace().substeps == ("x", "y")
    as_split = Entry([["a"], ["b"]], False, text_key(TEXT))
    assert as_split.form("q", TEXT, []).solution == TEXT


def test_steps_that_were_all_deleted_are_none():
    with pytest.raises(UserError, match="There are no steps"):
        Entry([], True, text_key(TEXT)).form("q", TEXT, []).trace()
