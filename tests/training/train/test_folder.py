import json
from dataclasses import replace

import pytest

from stepsight.core.errors import UserError
from stepsight.training.train.folder import RunFolder, settings
from tests.training.small_runs import CONFIG, synthetic


def test_a_folder_is_one_configuration_s(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.check(CONFIG)
    folder.claim(CONFIG, "abc")
    assert json.loads((tmp_path / "run" / "config.used.json").read_text()) == settings(CONFIG) | {
        "examples_sha256": "abc"
    }
    folder.check(CONFIG)
    other = replace(CONFIG, seed=14, data=synthetic(241, seed=3))
    with pytest.raises(UserError, match=r"run holds a run with another configuration \(data, seed\)\. Choose"):
        folder.check(other)


@pytest.mark.parametrize("change", [{"notes": "why"}, {"accumulation": 4}, {"activation_checkpointing": True}])
def test_what_changes_nothing_that_is_learnt_may_change(tmp_path, change):
    folder = RunFolder(tmp_path / "run")
    folder.claim(CONFIG, "abc")
    folder.check(replace(CONFIG, **change))


def test_a_record_with_a_key_of_another_version_is_another_configuration(tmp_path):
    folder = RunFolder(tmp_path)
    folder.claim(CONFIG, "abc")
    values = settings(CONFIG) | {"optimiser": "adam"}
    del values["clip"]
    (tmp_path / "config.used.json").write_text(json.dumps(values))
    with pytest.raises(UserError, match=r"another configuration \(clip, optimiser\)"):
        folder.check(CONFIG)


def test_a_run_goes_on_with_the_traces_it_began_with(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.claim(CONFIG, "abc")
    folder.claim(CONFIG, "abc")
    with pytest.raises(UserError, match=r"run holds a run on other traces: a file, or the code .* has changed"):
        folder.claim(CONFIG, "abd")


def test_claiming_clears_what_was_left_unfinished(tmp_path):
    folder = RunFolder(tmp_path)
    (folder.checkpoints.partial / "checkpoint-10").mkdir(parents=True)
    folder.claim(CONFIG, "abc")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["checkpoints", "config.used.json"]


def test_a_run_is_done_once_its_card_is_there(tmp_path):
    folder = RunFolder(tmp_path)
    made = folder.checkpoints.partial
    made.mkdir(parents=True)
    for name in ("stepsight.json", "tokenizer.json", "a.json"):
        (made / name).write_text(name)
    (tmp_path / "a.json").write_text("before")
    (tmp_path / "config.used.json").write_text(json.dumps(settings(CONFIG)))
    assert not folder.is_done()
    folder.adopt(made)
    assert folder.is_done()
    assert (tmp_path / "a.json").read_text() == "a.json"
    assert not made.exists()


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"file: cannot be written \(.*\)\. Choose another --output"):
        RunFolder(tmp_path / "file").claim(CONFIG, "abc")
