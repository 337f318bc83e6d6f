"""The type of the weights where none is asked for: commands, jobs and pages have to agree on it."""

import pytest
from safetensors.torch import load_file, save_file

from stepsight.app.jobs.worker import Worker
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.judgment import Mode
from stepsight.core.models import kernels
from stepsight.core.models.placement import Placement, typed_name
from stepsight.storage.database.jobs_schema import State
from stepsight.storage.jobs.jobs import get_job
from stepsight.storage.judgments.evaluators import list_evaluators
from stepsight.storage.judgments.judgments import count_missing
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.evaluate.judging import find_evaluators
from tests.app.processes import start
from tests.checkpoints import write_evaluator
from tests.storage.samples import add


@pytest.fixture
def folder(tmp_path):
    """An evaluator whose weights are stored in bfloat16."""
    folder = write_evaluator(tmp_path / "it")
    tensors = {name: tensor.bfloat16() for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.mark.parametrize("able", [True, False])
def test_commands_jobs_and_pages_take_weights_in_the_same_type(command, sqlite_store, folder, monkeypatch, able):
    monkeypatch.setattr(kernels, "is_native", lambda dtype: able)
    add(sqlite_store)
    dataset = find_dataset(sqlite_store, "sums")
    dtype = "bfloat16" if able else "float32"
    code, _, err = command("score", "--dataset", "sums", "--evaluator", folder, "--db", sqlite_store.name)
    assert (code, err) == (
        0,
        f"sums: 4 traces judged by {typed_name('it', dtype)} (offline), 0 were judged before.\n",
    )
    (stored,) = list_evaluators(sqlite_store)
    assert (stored.name, stored.dtype) == (typed_name("it", dtype), dtype)
    offered = Evaluators([folder], shipped=False)
    assert offered.names == [stored.name]
    assert offered.about(stored.name).fingerprint == stored.fingerprint
    job = start(sqlite_store, folder, Mode.ONLINE, fingerprint=stored.fingerprint)
    assert Worker(sqlite_store).work_one()
    assert get_job(sqlite_store, job.id).state == State.DONE
    # By its folder, and as the one that has judged here.
    for names in ([str(folder)], []):
        (found,) = find_evaluators(sqlite_store, dataset, names, [Mode.OFFLINE], lambda one: one, Placement())
        assert found == stored
    assert count_missing(sqlite_store, dataset.id, stored.id, Mode.ONLINE) == 0
    # A type that is asked for is another evaluator.
    other = "float32" if able else "bfloat16"
    find_evaluators(sqlite_store, dataset, [str(folder)], [Mode.OFFLINE], lambda _: None, Placement(dtype=other))
    assert {one.dtype for one in list_evaluators(sqlite_store)} == {"float32", "bfloat16"}
