"""`stepsight evaluators` and `calibrate`, and the type of weights that commands, jobs and pages agree on."""

import json
import re
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from stepsight.app.jobs.worker import Worker
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.hubs.hub_cache import find_fetched
from stepsight.core.hubs.public import ProcessBenchFigures, PublicEvaluator
from stepsight.core.judgment import Mode
from stepsight.core.models import kernels, memory
from stepsight.core.models.kernels import is_native
from stepsight.core.models.placement import Placement, typed_name
from stepsight.core.scoring.scorer import Scorer
from stepsight.storage.database.jobs_schema import State
from stepsight.storage.jobs.jobs import get_job
from stepsight.storage.judgments.evaluators import list_evaluators
from stepsight.storage.judgments.judgments import count_missing
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.evaluate import verification
from stepsight.training.evaluate.judging import find_evaluators
from tests.app.processes import start
from tests.checkpoints import write_evaluator, write_token_classifier
from tests.hub import COMMIT, Hub, point_to
from tests.storage.samples import add, evaluator
from tests.training.hand import say, traces

REPO = "lab/tiny-prm"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    hub = Hub()
    hub.folders[REPO] = tmp_path / "published"
    write_token_classifier(hub.folders[REPO], "qwen2", max_position_embeddings=512)
    point_to(monkeypatch, hub.url, tmp_path / "hub")
    with hub.running():
        yield hub


def write_part(folder, name):
    """Twelve solutions as ProcessBench has them, every second one with an error."""
    rows = [
        {"id": f"{name}-{n}", "generator": "g", "problem": f"What is {n} + 3?", "final_answer_correct": n % 2 == 0,
         "steps": [f"{n} + 3 is asked for.", f"{n} + 3 = {n + 3 + n % 2}.", "Done."], "label": 1 if n % 2 else -1}
        for n in range(12)
    ]  # fmt: skip
    (folder / f"{name}.json").write_text(json.dumps(rows))


def publish(monkeypatch, threshold=None):
    figures = ProcessBenchFigures(
        gsm8k=50.0, math=40.0, olympiadbench=30.0, omnimath=20.0, average=35.0, source="A"
    )
    known = PublicEvaluator(REPO, 20_000, "token-classification", threshold=threshold, processbench=figures)
    monkeypatch.setattr(verification, "find_public", lambda repo: known)


def test_the_list_has_what_is_here_and_what_can_be_fetched(typed, hub):
    printed = typed.run("evaluators").out
    assert "Shipped: mini-bidir, mini-causal" in printed
    lines = {line.split(" ")[0]: line for line in printed.splitlines() if line}
    assert lines["Qwen/Qwen2.5-Math-PRM-7B"].split()[1:5] == ["7B", "validity", "73.5", "65.5"]
    # Two models of 7B in bfloat16, which some processors do not compute.
    assert lines["PRIME-RL/EurusPRM-Stage1"].endswith("32.5 GB" if is_native("bfloat16") else "64.7 GB")
    typed.run(f"evaluators fetch {REPO}")
    assert f"Fetched: {REPO} at {COMMIT[:12]}, " in typed.run("evaluators").out


def test_fetch_goes_on_after_a_break_and_names_the_folder(typed, hub):
    weights = hub.folders[REPO] / "model.safetensors"
    hub.cut, hub.times = {weights.name: weights.stat().st_size // 2}, 1
    fetched = typed.run(f"evaluators fetch {REPO} --revision main")
    assert (fetched.code, fetched.out.strip()) == (0, str(find_fetched(REPO).folder)), fetched.err
    assert f"{REPO} at {COMMIT}: " in fetched.err
    assert "tiny-prm: token-classification format, causal, inputs of up to 512 tokens." in fetched.err
    hub.asked.clear()
    assert typed.run(f"evaluators fetch {REPO}").code == 0
    assert hub.sent(weights.name) == []


def test_a_card_states_what_a_model_of_the_hub_does_not(typed, hub, tmp_path):
    (hub.folders[REPO] / "stepsight.json").unlink()
    refused = typed.run(f"evaluators fetch {REPO}")
    assert (refused.code, "its separator, the text" in refused.err, find_fetched(REPO)) == (2, True, None)
    for separator in ("\n", "\n\n"):
        (tmp_path / "card.json").write_text(json.dumps({"template": {"separator": separator}}))
        fetched = typed.run(f"evaluators fetch {REPO} --card card.json")
        assert (fetched.code, "tiny-prm: token-classification format" in fetched.err) == (0, True), fetched.err
        written = json.loads(Path(fetched.out.strip(), "stepsight.json").read_text())
        assert written["template"]["separator"] == separator


def test_a_model_too_large_for_this_machine_is_fetched_with_a_warning(typed, hub, monkeypatch):
    monkeypatch.setattr(memory, "total_memory", lambda: 1_000_000)
    fetched = typed.run(f"evaluators fetch {REPO}")
    assert (fetched.code, fetched.out.strip()) == (0, str(find_fetched(REPO).folder)), fetched.err
    assert re.search(rf"{REPO} needs about 300\.\d MB of memory; this machine has 1\.0 MB\.", fetched.err)
    assert "It is fetched for another machine" in fetched.err
    assert find_fetched(REPO).descriptions == {}


@pytest.mark.usefixtures("hub")
def test_an_unknown_model_or_revision_is_refused(typed):
    typed("evaluators fetch lab/none")
    typed(f"evaluators fetch {REPO} --revision v9")
    typed(f"evaluators verify {REPO}")


@pytest.mark.usefixtures("hub")
def test_a_figure_is_verified_with_the_best_threshold_which_is_given_for_the_other_parts(
    typed, tmp_path, monkeypatch
):
    publish(monkeypatch)
    for part in ("gsm8k", "math"):
        write_part(tmp_path, part)
    typed.run(f"evaluators fetch {REPO}")
    math = f"evaluators verify {REPO} --part math --input math.json"
    refused = typed.run(math)
    assert (refused.code, "give the threshold that it prints with --threshold" in refused.err) == (2, True)
    printed = typed.run(f"evaluators verify {REPO} --input gsm8k.json").out
    assert printed.startswith(f"tiny-prm at {COMMIT}, float32\nProcessBench gsm8k (12 traces): F1 ")
    figures = re.search(r"F1 (\S+) \[(\S+), (\S+)\] at threshold (\S+),", printed).groups()
    f1, low, high, threshold = map(float, figures)
    assert low <= f1 <= high
    assert "published 50.0: " + ("agrees" if low <= 50 <= high else "differs") in printed
    assert "Published in: A" in printed
    printed = typed.run(f"{math} --limit 7 --threshold {threshold}").out
    assert "ProcessBench math (7 traces of it): F1 " in printed
    assert f"at threshold {threshold:.4g}, published 40.0" in printed
    # A threshold of its authors holds.
    publish(monkeypatch, threshold=0.5)
    assert "at threshold 0.5, published 40.0: " in typed.run(math).out


@pytest.mark.usefixtures("hub")
def test_a_dataset_of_the_store_is_judged_once(typed, tmp_path, monkeypatch):
    typed.run(f"evaluators fetch {REPO}")
    refused = typed.run(f"evaluators verify {REPO}")
    assert (refused.code, "the store has no dataset processbench-gsm8k" in refused.err) == (2, True)
    write_part(tmp_path, "gsm8k")
    typed.run("import processbench gsm8k.json --dataset processbench-gsm8k")
    printed = typed.run(f"evaluators verify {REPO}").out
    assert "nothing is published" in printed
    scored = []
    monkeypatch.setattr(Scorer, "score", lambda self, traces, *_: scored.extend(traces) or iter(()))
    assert typed.run(f"evaluators verify {REPO}").out == printed
    assert scored == []


def test_a_threshold_is_told_and_kept(typed, sqlite_store):
    """The figures are those of tests/training/test_calibration.py."""
    say(sqlite_store, add(sqlite_store, traces()), evaluator(sqlite_store, "first").id)
    line = "calibrate --dataset sums --evaluator first"
    typed(line)
    written = json.loads(typed.run(f"{line} --errors redundant --goal recall --recall 1 --json").out)
    assert written.pop("macro_f1") == pytest.approx((12 / 14 + 2 / 4) / 2)
    assert written.pop("precision") == pytest.approx(1 / 3)
    assert written == {
        "evaluator": "first", "dataset": "sums", "mode": "offline", "threshold": "redundancy", "before": 0.15,
        "value": 0.15, "recall": 1.0, "n_steps": 9, "n_errors": 1,
        "thresholds": {"validity": 0.66, "redundancy": 0.15},
    }  # fmt: skip


def test_an_evaluator_that_can_run_scores_before_its_threshold_is_chosen(typed, sqlite_store, tiny):
    add(sqlite_store, traces())
    outcome = typed.run("calibrate --dataset sums --mode online --evaluator", tiny)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("tiny: threshold of validity ")


@pytest.mark.parametrize("able", [True, False])
def test_commands_jobs_and_pages_take_weights_in_the_same_type(typed, sqlite_store, tmp_path, monkeypatch, able):
    """The evaluator's weights are stored in bfloat16, which the machine is able to compute well or not."""
    folder = write_evaluator(tmp_path / "it")
    tensors = {name: tensor.bfloat16() for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    monkeypatch.setattr(kernels, "is_native", lambda dtype: able)
    add(sqlite_store)
    dataset = find_dataset(sqlite_store, "sums")
    dtype, other = ("bfloat16", "float32") if able else ("float32", "bfloat16")
    typed("score --dataset sums --evaluator ./it")
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
        (row,) = find_evaluators(sqlite_store, dataset, names, [Mode.OFFLINE], lambda row: row, Placement())
        assert row == stored
    assert count_missing(sqlite_store, dataset.id, stored.id, Mode.ONLINE) == 0
    # A type that is asked for is another evaluator.
    find_evaluators(sqlite_store, dataset, [str(folder)], [Mode.OFFLINE], lambda _: None, Placement(dtype=other))
    assert {row.dtype for row in list_evaluators(sqlite_store)} == {"float32", "bfloat16"}
