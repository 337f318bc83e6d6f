"""Evaluators that need more than one repository, from a hub on this machine: adapters, pairs, weights that came
alone."""

import json
import shutil

import pytest
from safetensors.torch import load_file

from stepsight.core.evaluators.loading import load_evaluator, load_fetched
from stepsight.core.evaluators.opening import describe_fetched
from stepsight.core.hubs.hub_cache import check_files, find_fetched, list_fetched, storage_folder
from stepsight.core.hubs.hub_download import fetch
from stepsight.core.hubs.hub_lookup import look_up
from stepsight.core.models.checkpoint_resolver import evaluator_folder, model_folder
from stepsight.core.models.location import can_load
from stepsight.core.models.memory import count_weights, memory_of, needed_memory
from stepsight.core.models.placement import Placement
from tests.checkpoints import QWEN2, write_adapter, write_language_model, write_pqm
from tests.core.formats.cases import tokenizer_of, write_pair
from tests.hub import Hub, point_to
from tests.messages import refused

PSA, QWEN = "openreasoner/Math-psa", "Qwen/Qwen2.5-Math-7B-Instruct"
PQM, DEEPSEEK = "Windy0822/PQM", "deepseek-ai/deepseek-math-7b-base"
EURUS = "PRIME-RL/EurusPRM-Stage1"
WEIGHTS = "model.safetensors"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    one = Hub()
    point_to(monkeypatch, one.url, tmp_path / "hub")
    monkeypatch.setenv("STEPSIGHT_CACHE", str(tmp_path / "cache"))
    with one.running():
        yield one


def publish_adapter(hub, tmp_path):
    """Math-psa's layout on its base, both published; returns the base's folder."""
    base = tmp_path / "published" / "base"
    write_language_model(base, QWEN2, tokenizer_of(QWEN2))
    folder = tmp_path / "published" / "Math-psa"
    write_adapter(folder / "checkpoint-2127", "/models/base", load_file(base / WEIGHTS))
    (folder / "checkpoint-999").mkdir()
    (folder / "checkpoint-999" / "adapter_model.safetensors").write_bytes(b"another")
    hub.folders |= {PSA: folder, QWEN: base}
    hub.commits[QWEN] = "b" * 40
    return base


def local(tmp_path, name, base):
    """The same as folders here, without a hub."""
    folder = tmp_path / "here" / name
    shutil.copytree(tmp_path / "published" / name, folder)
    card = folder / "stepsight.json"
    known = json.loads(card.read_text()) if card.is_file() else {}
    card.write_text(json.dumps(known | {"base": str(base)}))
    return load_evaluator(folder)


def test_an_adapter_comes_with_its_base_each_at_its_commit_under_one_progress(hub, tmp_path, monkeypatch):
    base = publish_adapter(hub, tmp_path)
    weights = base / WEIGHTS
    hub.cut, hub.times = {WEIGHTS: weights.stat().st_size // 2}, 1
    remote = look_up(PSA)
    assert {key: part.revision for key, part in remote.parts.items()} == {f"{QWEN}@main": "b" * 40}
    adapter = hub.folders[PSA] / "checkpoint-2127" / "adapter_model.safetensors"
    assert remote.size == weights.stat().st_size + adapter.stat().st_size
    shown = []
    fetched = fetch(remote, lambda there, size: shown.append((there, size)))
    assert shown == sorted(shown)
    assert shown[-1] == (remote.total, remote.total)
    assert len(hub.sent(WEIGHTS)) == 2
    assert not any("checkpoint-999" in path for _, path, _, _ in hub.asked)
    assert (fetched.size, fetched.pins) == (remote.size, remote.pins)
    # What changes there later changes nothing here, and nothing is asked for.
    hub.commits[QWEN] = "c" * 40
    hub.asked.clear()
    evaluator = load_evaluator(PSA)
    assert (evaluator.name, evaluator.format) == ("Math-psa", "two-token")
    assert evaluator.fingerprint == local(tmp_path, "Math-psa", base).fingerprint
    assert (hub.asked, can_load(PSA)) == ([], True)
    # The base judges nothing by itself.
    assert [one.repo for one in list_fetched()] == [PSA]
    check_files(fetched)
    config = (fetched.parts[f"{QWEN}@main"].folder / "config.json").resolve()
    sound = config.read_bytes()
    config.write_bytes(sound.swapcase())
    with refused():
        load_fetched(fetched, Placement())
    config.write_bytes(sound)
    part = fetched.parts[f"{QWEN}@main"]
    content = bytearray((part.folder / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (part.folder / WEIGHTS).resolve().write_bytes(content)
    # They are mapped before they are compared, but no evaluator is made of them.
    with refused():
        load_fetched(fetched, Placement())


def test_a_base_that_is_gone_makes_it_no_evaluator(hub, tmp_path):
    publish_adapter(hub, tmp_path)
    fetched = fetch(look_up(PSA))
    (fetched.parts[f"{QWEN}@main"].folder / WEIGHTS).resolve().unlink()
    assert (find_fetched(PSA), list_fetched()) == (None, [])
    assert fetch(look_up(PSA)).is_whole
    assert hub.sent("adapter_model.safetensors") == [None]


def test_a_break_in_the_base_leaves_no_evaluator_and_the_next_fetch_has_the_same_commits(hub, tmp_path):
    publish_adapter(hub, tmp_path)
    remote = look_up(PSA)

    class EndError(Exception):
        pass

    def end(there, size):
        # Half of the base has come then: what is sent after the break may come at once.
        if there > 0.4 * size:
            raise EndError

    with pytest.raises(EndError):
        fetch(remote, end)
    assert (find_fetched(PSA), can_load(PSA)) == (None, False)
    hub.commits[QWEN] = "c" * 40
    hub.tags = {"b" * 40}
    assert look_up(PSA).pins == {f"{QWEN}@main": "c" * 40}
    again = look_up(PSA, remote.revision, remote.pins)
    assert again.pins == remote.pins
    hub.asked.clear()
    fetched = fetch(again)
    assert (hub.sent(WEIGHTS), hub.sent("adapter_model.safetensors")) == ([None], [])
    assert (fetched.pins, find_fetched(PSA)) == (remote.pins, fetched)


def test_an_adapters_base_that_cannot_be_fetched_is_named(hub, tmp_path):
    publish_adapter(hub, tmp_path)
    hub.gated = {QWEN}
    with refused():
        look_up(PSA)
    del hub.folders[QWEN]
    with refused():
        look_up(PSA)
    hub.folders["someone/prm"] = hub.folders[PSA] / "checkpoint-2127"
    with refused():
        look_up("someone/prm")
    assert not storage_folder(PSA).exists()


@pytest.mark.slow
def test_an_adapter_of_an_adapter_comes_with_both_and_a_circle_is_refused(hub, tmp_path):
    base = publish_adapter(hub, tmp_path)
    second = tmp_path / "published" / "second"
    write_adapter(second, "someone/first", load_file(base / WEIGHTS), ("k_proj",))
    first = tmp_path / "published" / "first"
    write_adapter(first, QWEN, load_file(base / WEIGHTS))
    card = {"format": "two-token", "tokens": {"right": " +", "wrong": " -"},
            "template": {"prompt": "{problem} ", "separator": " ки"}}  # fmt: skip
    (second / "stepsight.json").write_text(json.dumps(card))
    hub.folders |= {"someone/first": first, "someone/second": second}
    fetched = fetch(look_up("someone/second"))
    assert sorted(fetched.parts) == [f"{QWEN}@main", "someone/first@main"]
    hub.asked.clear()
    assert load_evaluator("someone/second").format == "two-token"
    assert hub.asked == []
    write_adapter(first, "someone/second", load_file(base / WEIGHTS))
    hub.commit = "d" * 40
    with refused():
        load_evaluator(fetch(look_up("someone/second")).folder)


@pytest.mark.slow
def test_a_pair_comes_with_its_reference_and_takes_the_memory_of_both(hub, tmp_path):
    write_pair(tmp_path)
    folder, reference = tmp_path / "prm", tmp_path / "reference"
    (folder / "stepsight.json").unlink()
    hub.folders |= {EURUS: folder, QWEN: reference}
    fetched = fetch(look_up(EURUS))
    hub.asked.clear()
    evaluator = load_evaluator(EURUS)
    assert (evaluator.format, hub.asked) == ("log-ratio", [])
    sizes = [(one / WEIGHTS).stat().st_size for one in (folder, reference)]
    assert fetched.size == sum(sizes)
    stored = json.loads((folder / "config.json").read_text()).get("dtype", "float32")
    each = {"float32": 4, "bfloat16": 2}[stored]
    assert count_weights(fetched, stored) == sum(size // each for size in sizes)
    assert describe_fetched(fetched, Placement()).format == "log-ratio"
    assert find_fetched(EURUS).parts == fetched.parts


def test_weights_in_a_folder_get_config_and_tokenizer_of_their_base_without_its_weights(hub, tmp_path):
    base = tmp_path / "published" / "base"
    write_pqm(tmp_path / "published" / "PQM", base)
    (tmp_path / "published" / "PQM" / "zeta-4").mkdir()
    (tmp_path / "published" / "PQM" / "zeta-4" / WEIGHTS).write_bytes(b"another")
    hub.folders |= {PQM: tmp_path / "published" / "PQM", DEEPSEEK: base}
    expected = local(tmp_path, "PQM", base).fingerprint
    (base / WEIGHTS).write_bytes(b"not needed")
    evaluator = load_evaluator(PQM)
    assert (evaluator.name, evaluator.format, evaluator.fingerprint) == ("PQM", "value-head", expected)
    stored = [path for _, path, _, _ in hub.asked if path.startswith("/stored/")]
    assert set(stored) == {f"/stored/{PQM}/zeta-2/{WEIGHTS}"}
    assert find_fetched(PQM).size == (hub.folders[PQM] / "zeta-2" / WEIGHTS).stat().st_size
    # It has no config of its own, and counts in the type that its base's says.
    size = find_fetched(PQM).size
    assert memory_of(find_fetched(PQM), "float32") in [needed_memory(size // each, "float32") for each in (2, 4)]


@pytest.mark.parametrize("name", ["../outside", "/etc", "a//b", ["zeta-2"]])
def test_a_subfolder_is_a_plain_name(hub, tmp_path, name):
    publish_adapter(hub, tmp_path)
    folder = hub.folders["lab/other"] = hub.folders.pop(PSA)
    (folder / "stepsight.json").write_text(json.dumps({"subfolder": name}))
    with refused():
        look_up("lab/other")


def test_a_card_that_is_no_object_is_refused(hub, tmp_path):
    publish_adapter(hub, tmp_path)
    (hub.folders[PSA] / "stepsight.json").write_text("[]")
    with refused():
        look_up(PSA)


def test_evaluator_by_name_is_the_same_as_fetched(hub, tmp_path, capsys):
    publish_adapter(hub, tmp_path)
    folder = evaluator_folder(PSA, Placement())
    assert f"{PSA} at {hub.commit}, with {QWEN}: " in capsys.readouterr().err
    assert folder == find_fetched(PSA).folder


def test_a_folder_here_gets_the_base_that_it_names_at_the_revision_that_it_names(hub, tmp_path):
    base = tmp_path / "base"
    write_language_model(base, QWEN2, tokenizer_of(QWEN2))
    tensors = load_file(base / "model.safetensors")
    folder = tmp_path / "prm"
    write_adapter(folder, "Qwen/base", tensors, revision="v1")
    card = {"format": "two-token", "tokens": {"right": " +", "wrong": " -"}}
    template = {"prompt": "{problem} ", "separator": " ки"}
    (folder / "stepsight.json").write_text(json.dumps(card | {"template": template}))
    hub.folders["Qwen/base"] = base
    with refused():
        load_evaluator(folder)
    hub.tags = {"v1"}
    evaluator = load_evaluator(folder)
    assert (evaluator.name, evaluator.format) == ("prm", "two-token")
    # It is no evaluator, and it is brought once.
    assert list_fetched() == []
    hub.asked.clear()
    assert load_evaluator(folder).fingerprint == evaluator.fingerprint
    assert model_folder("Qwen/base", "v1").name == hub.commit
    assert hub.asked == []
    write_adapter(folder, "Qwen/other", tensors)
    with refused():
        load_evaluator(folder)
