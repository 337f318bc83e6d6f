"""The records of what was fetched from a model hub, damaged: each is what was written, or as good as not there."""

import shutil

import huggingface_hub
import pytest

from stepsight.core.evaluators.opening import describe_fetched
from stepsight.core.hubs.hub_cache import (
    HubModel,
    check_files,
    find_fetched,
    find_part,
    list_fetched,
    part_key,
    save_fetched,
    save_part,
    storage_folder,
)
from stepsight.core.models.memory import memory_of
from stepsight.core.models.placement import Placement
from tests.checkpoints import write_evaluator
from tests.fuzz.attack import COUNT
from tests.fuzz.mutations import changed_json, damaged
from tests.seeds import chance

REPO, BASE, COMMIT = "lab/tiny", "lab/base", "a" * 40


@pytest.fixture
def fetched(tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    made = write_evaluator(tmp_path / "made")
    sizes = {path.name: path.stat().st_size for path in made.iterdir()}
    base = HubModel(repo=BASE, revision=COMMIT, files=sizes)
    whole = HubModel(repo=REPO, revision=COMMIT, files=sizes, parts={part_key(BASE, "main"): base})
    for one in (base, whole):
        shutil.copytree(made, one.folder)
    save_part("main", base)
    save_fetched(whole)
    describe_fetched(whole, Placement())
    found = find_fetched(REPO)
    assert found is not None
    assert found.descriptions
    return found


@pytest.mark.parametrize("name", ["stepsight.json", "stepsight-parts.json"])
def test_records(name, fetched):
    path = storage_folder(REPO if name == "stepsight.json" else BASE) / name
    sound, lost = path.read_bytes(), 0
    for number in range(COUNT):
        rng = chance(f"{name}:{number}")
        path.write_bytes(rng.choice([damaged, changed_json, changed_json])(sound, rng))
        found = [find_fetched(REPO), find_part(BASE, "main"), *list_fetched()]
        lost += None in found
        for one in filter(None, found):
            assert isinstance(one, HubModel)
            assert one.folder.is_dir()
            assert memory_of(one, "float32") >= 0
            check_files(one)
            for known in one.descriptions.values():
                # As pages write it.
                assert (
                    f"{known.parameters:,} {known.context or 0:,} {known.seconds:.1f} {known.thresholds.validity:g}"
                )
    assert lost > COUNT / 20
