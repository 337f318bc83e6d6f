"""Fetching from a model hub on this machine, asked by the hub's own client."""

import json
import resource

import huggingface_hub
import pytest
import torch
from filelock import FileLock
from safetensors.torch import load_file

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.hubs import hub_cache, hub_lookup
from stepsight.core.hubs.checkpoint_files import is_hub_id
from stepsight.core.hubs.hub_cache import find_fetched, keep_card, list_fetched, save_fetched, storage_folder
from stepsight.core.hubs.hub_download import check_disk, fetch
from stepsight.core.hubs.hub_lookup import look_up
from stepsight.core.models import kernels, memory
from stepsight.core.models.checkpoint_resolver import evaluator_folder, model_folder
from stepsight.core.models.location import cached, can_load
from stepsight.core.models.placement import Placement
from tests.checkpoints import write_token_classifier
from tests.hub import COMMIT, Hub, point_to
from tests.messages import refused

MODEL = "lab/tiny-prm"
WEIGHTS = "model.safetensors"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub with one model, and with files that must not be fetched."""
    folder = tmp_path / "published"
    write_token_classifier(folder, "qwen2")
    (folder / "README.md").write_text("# A card\n")
    (folder / "modeling.py").write_text("raise SystemExit")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "config.json").write_text("{}")
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    (folder / "consolidated.safetensors").write_bytes(b"the same weights")
    (folder / "training_args.bin").write_bytes(b"a pickle")
    one = Hub()
    one.folders[MODEL] = folder
    point_to(monkeypatch, one.url, tmp_path / "cache")
    with one.running():
        yield one


def whole(hub):
    return (hub.folders[MODEL] / WEIGHTS).stat().st_size


def test_a_model_is_fetched_at_one_commit_and_then_needs_no_hub(hub, tmp_path):
    shown = []
    remote = look_up(MODEL)
    assert remote.revision == COMMIT
    fetched = fetch(remote, lambda there, size: shown.append((there, size)))
    assert sorted(path.name for path in fetched.folder.iterdir()) == [
        "README.md", "config.json", WEIGHTS, "stepsight.json", "tokenizer.json", "tokenizer_config.json"
    ]  # fmt: skip
    assert shown == sorted(shown)
    assert shown[-1] == (remote.total, remote.total) == (sum(fetched.files.values()),) * 2
    assert fetched.size == whole(hub)
    assert [one.repo for one in list_fetched()] == [MODEL]
    # What changes there later changes nothing here.
    hub.commit = "f" * 40
    assert evaluator_folder(MODEL) == fetched.folder == cached(MODEL)
    evaluator = load_evaluator(MODEL)
    assert (evaluator.name, evaluator.fingerprint) == ("tiny-prm", load_evaluator(hub.folders[MODEL]).fingerprint)


def test_the_hubs_client_finds_fetched_files_in_its_cache(hub, monkeypatch):
    fetched = fetch(look_up(MODEL))
    asked = len(hub.asked)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    path = huggingface_hub.hf_hub_download(MODEL, WEIGHTS, revision=COMMIT)
    assert path == str(fetched.folder / WEIGHTS)
    assert len(hub.asked) == asked
    assert {one.repo_id for one in huggingface_hub.scan_cache_dir().repos} == {MODEL}


def test_a_connection_that_breaks_is_gone_on_with_by_itself(hub):
    hub.cut, hub.times = {WEIGHTS: whole(hub) // 3}, 2
    fetched = fetch(look_up(MODEL))
    assert len(hub.sent(WEIGHTS)) == 3
    assert load_evaluator(fetched.folder).fingerprint == load_evaluator(hub.folders[MODEL]).fingerprint


def test_an_ended_transfer_is_no_evaluator_and_the_next_needs_only_the_missing_files(hub):
    class EndError(Exception):
        pass

    remote = look_up(MODEL)
    half = remote.total - whole(hub) // 2

    def end(there, size):
        if there > half:
            raise EndError

    with pytest.raises(EndError):
        fetch(remote, end)
    assert (find_fetched(MODEL), cached(MODEL), can_load(MODEL), list_fetched()) == (None, None, False, [])
    assert look_up(MODEL).here == remote.total - whole(hub)
    hub.asked.clear()
    fetch(remote)
    assert (hub.sent(WEIGHTS), hub.sent("config.json")) == ([None], [])
    assert find_fetched(MODEL).revision == COMMIT
    assert not list(storage_folder(MODEL).glob("blobs/*incomplete"))


def test_a_connection_that_breaks_again_and_again_is_given_up(hub):
    hub.cut, hub.times = {WEIGHTS: 0}, 100
    with refused():
        fetch(look_up(MODEL))
    assert find_fetched(MODEL) is None
    hub.times = 0
    assert fetch(look_up(MODEL)).is_whole


def test_two_do_not_fetch_the_same_at_once(hub):
    remote = look_up(MODEL)
    storage_folder(MODEL).mkdir(parents=True)
    with FileLock(storage_folder(MODEL) / ".stepsight.lock"), refused():
        fetch(remote)
    assert fetch(remote).is_whole


def test_a_file_that_was_damaged_on_its_way_is_not_kept(hub):
    remote = look_up(MODEL)
    hub.damaged = {WEIGHTS}
    with refused():
        fetch(remote)
    assert find_fetched(MODEL) is None
    hub.damaged = set()
    assert fetch(remote).is_whole


def test_a_gated_model_needs_a_token_and_keeps_it_from_other_hosts(hub, monkeypatch):
    hub.gated = {MODEL}
    with refused():
        look_up(MODEL)
    monkeypatch.setenv("HF_TOKEN", "hf_others")
    with refused():
        look_up(MODEL)
    assert not storage_folder(MODEL).exists()
    monkeypatch.setenv("HF_TOKEN", hub.token)
    hub.asked.clear()
    assert fetch(look_up(MODEL)).is_whole
    assert {has_token for _, path, _, has_token in hub.asked if path.startswith("/stored/")} == {False}
    assert {has_token for _, path, _, has_token in hub.asked if "/resolve/" in path} == {True}


@pytest.mark.parametrize(("repo", "revision"), [("lab/other", "main"), (MODEL, "v9"), ("lab/a--b", "main")])
def test_a_model_that_the_hub_does_not_have_is_named(hub, repo, revision):
    with refused():
        look_up(repo, revision)


def test_no_network_is_said_at_once(hub, tmp_path, monkeypatch):
    remote = look_up(MODEL)
    point_to(monkeypatch, "http://127.0.0.1:9", tmp_path / "cache")
    with refused():
        look_up(MODEL)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with refused():
        look_up(MODEL)
    with refused():
        fetch(remote)


def test_pickled_weights_are_fetched_if_there_are_no_others_and_read_as_tensors(hub):
    folder = hub.folders[MODEL]
    as_published = load_evaluator(folder).fingerprint
    torch.save(load_file(folder / WEIGHTS), folder / "pytorch_model.bin")
    (folder / WEIGHTS).unlink()
    fetched = fetch(look_up(MODEL))
    assert sorted(path.name for path in fetched.folder.iterdir()) == [
        "README.md", "config.json", "pytorch_model.bin", "stepsight.json", "tokenizer.json", "tokenizer_config.json"
    ]  # fmt: skip
    assert load_evaluator(MODEL).fingerprint == as_published
    (folder / "pytorch_model.bin").unlink()
    with refused():
        look_up(MODEL)


def test_a_disk_without_room_is_refused_before_anything_is_written(hub, monkeypatch):
    remote = look_up(MODEL)
    monkeypatch.setattr(hub_cache, "free_disk", lambda: hub_cache._RESERVE + remote.total - 1)
    with refused():
        fetch(remote)
    assert not storage_folder(MODEL).exists()
    monkeypatch.setattr(hub_cache, "free_disk", lambda: hub_cache._RESERVE + remote.total)
    check_disk(remote)


def test_a_disk_that_cannot_be_written_leaves_nothing_half_stored(hub):
    """No file may grow beyond half of the weights, as on a disk that has no more room."""
    remote, limits = look_up(MODEL), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (whole(hub) // 2, limits[1]))
    try:
        with refused():
            fetch(remote)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(storage_folder(MODEL).glob("blobs/*incomplete"))
    assert (find_fetched(MODEL), cached(MODEL)) == (None, None)
    assert fetch(remote).is_whole


def test_an_answer_that_drips_is_not_waited_for(hub, monkeypatch):
    """The hub goes on sending, so that no silence is longer than the client allows."""
    monkeypatch.setattr(hub_lookup, "_PATIENCE", 0.3)
    monkeypatch.setattr(hub_lookup, "_PACE", 1e6)
    (hub.folders[MODEL] / "config.json").write_text(" " * 500_000)
    hub.pause = 0.2
    with refused():
        look_up(MODEL)


def test_a_list_of_very_many_files_is_not_parsed(hub):
    hub.beside = [{"rfilename": f"{number:0100}"} for number in range(200_000)]
    with refused():
        look_up(MODEL)


def test_a_file_that_is_gone_or_cut_later_makes_it_no_evaluator(hub):
    fetched = fetch(look_up(MODEL))
    save_fetched(fetched)
    (fetched.folder / WEIGHTS).resolve().write_bytes(b"cut")
    assert (find_fetched(MODEL), list_fetched()) == (None, [])
    assert fetch(look_up(MODEL)).is_whole
    (fetched.folder / WEIGHTS).resolve().unlink()
    assert (find_fetched(MODEL), list_fetched()) == (None, [])
    assert fetch(look_up(MODEL)).is_whole


def test_a_damaged_record_counts_as_missing(hub):
    fetch(look_up(MODEL))
    huge = json.dumps(
        {"repo": MODEL, "revision": "a" * 40, "files": {}, "weights": {"count": 10**400, "dtype": "x"}}
    )
    for text in ("{", "[]", "{}", '{"repo": "lab/tiny-prm", "revision": "x", "files": 3}', huge):
        (storage_folder(MODEL) / "stepsight.json").write_text(text)
        assert find_fetched(MODEL) is None
    assert fetch(look_up(MODEL)).is_whole
    assert find_fetched(MODEL) is not None


def test_a_chat_template_in_a_file_of_its_own_is_fetched(hub):
    (hub.folders[MODEL] / "chat_template.jinja").write_text("{{ messages }}")
    assert (fetch(look_up(MODEL)).folder / "chat_template.jinja").read_text() == "{{ messages }}"


def test_a_name_from_the_hub_is_no_path(hub):
    names = ("../evil.json", "/evil.json", "a/../../evil.json", "a\\..\\evil.json", "a\0b")
    for hub.beside, hub.commit in (*(([{"rfilename": name}], hub.commit) for name in names), ([], "../../outside")):
        with refused():
            look_up(MODEL)


def test_a_separator_that_nothing_states_is_asked_for_before_any_weights_arrive(hub):
    (hub.folders[MODEL] / "stepsight.json").unlink()
    with refused():
        look_up(MODEL)
    assert hub.sent(WEIGHTS) == []
    card = {"template": {"separator": "\n\n"}}
    fetched = keep_card(fetch(look_up(MODEL, card=card)), card)
    assert load_evaluator(MODEL).encoder.template.separator == "\n\n"
    # It stays, and is not a file that the hub has to have.
    assert look_up(MODEL).revision == fetched.revision
    assert fetched.is_whole


def test_a_card_is_refused_where_the_model_has_one(hub):
    with refused():
        look_up(MODEL, card={"template": {"separator": "\n\n"}})


def test_a_listed_model_that_no_source_describes_is_refused_by_its_reason(hub):
    hub.folders["Babelscape/Llama-3.1-8B-PRM800k-r"] = hub.folders[MODEL]
    (hub.folders[MODEL] / "stepsight.json").unlink()
    with refused():
        look_up("Babelscape/Llama-3.1-8B-PRM800k-r")


def test_a_model_larger_than_memory_is_not_fetched(hub, monkeypatch):
    # Whether the processor has instructions for bfloat16 decides how large the weights are.
    monkeypatch.setattr(kernels, "is_native", lambda dtype: True)
    monkeypatch.setattr(memory, "total_memory", lambda: 1_000_000)
    with refused():
        evaluator_folder(MODEL, Placement())
    assert hub.sent(WEIGHTS) == []


def test_an_unreachable_hub_is_named_and_the_clients_cache_is_used(hub, tmp_path, monkeypatch):
    huggingface_hub.snapshot_download(MODEL)
    point_to(monkeypatch, "http://127.0.0.1:9", tmp_path / "cache")
    assert load_evaluator(MODEL).name == "tiny-prm"
    assert (model_folder(MODEL) / "config.json").is_file()
    for ask in (evaluator_folder, model_folder, load_evaluator):
        with refused():
            ask("a/b")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with refused():
        load_evaluator("a/b")
    assert cached("a/b") is None


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("GAIR/ReasonEval-7B", True),
        ("mini-bidir", False),
        ("/models/own", False),
        ("./a/b", False),
        ("a/b/c", False),
        ("../b", False),
        ("a/", False),
    ],
)
def test_ids_are_distinguished_from_paths(spec, expected):
    assert is_hub_id(spec) == expected
