"""`stepsight evaluators`: what it lists, fetches, and makes of a published figure."""

import json
import re
from pathlib import Path

import pytest

from stepsight.core.hubs.hub_cache import find_fetched
from stepsight.core.hubs.public import ProcessBenchFigures, PublicEvaluator
from stepsight.core.models import memory
from stepsight.core.scoring.scorer import Scorer
from stepsight.training.evaluate import verification
from tests.checkpoints import write_token_classifier
from tests.hub import COMMIT, Hub, point_to

REPO = "lab/tiny-prm"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    one = Hub()
    one.folders[REPO] = tmp_path / "published"
    write_token_classifier(one.folders[REPO], "qwen2", max_position_embeddings=512)
    point_to(monkeypatch, one.url, tmp_path / "hub")
    with one.running():
        yield one


@pytest.fixture
def db(tmp_path):
    return tmp_path / "store.db"


def part_file(folder, name="gsm8k"):
    """Twelve solutions as ProcessBench has them, every second one with an error."""
    rows = [
        {"id": f"{name}-{n}", "generator": "g", "problem": f"What is {n} + 3?", "final_answer_correct": n % 2 == 0,
         "steps": [f"{n} + 3 is asked for.", f"{n} + 3 = {n + 3 + n % 2}.", "Done."], "label": 1 if n % 2 else -1}
        for n in range(12)
    ]  # fmt: skip
    path = folder / f"{name}.json"
    path.write_text(json.dumps(rows))
    return path


def known(threshold=None, gsm8k=50.0):
    figures = ProcessBenchFigures(
        gsm8k=gsm8k, math=40.0, olympiadbench=30.0, omnimath=20.0, average=35.0, source="A"
    )
    return PublicEvaluator(REPO, 20_000, "token-classification", threshold=threshold, processbench=figures)


def test_the_list_has_what_is_here_and_what_can_be_fetched(command, hub, db):
    code, out, _ = command("evaluators", "--db", db)
    assert code == 0
    assert "Shipped: mini-bidir, mini-causal" in out
    (line,) = [line for line in out.splitlines() if line.startswith("Qwen/Qwen2.5-Math-PRM-7B ")]
    assert line.split()[1:5] == ["7B", "validity", "73.5", "65.5"]
    assert "GAIR/ReasonEval-7B" in out
    (line,) = [line for line in out.splitlines() if line.startswith("PRIME-RL/EurusPRM-Stage1 ")]
    # Two models of 7B in bfloat16.
    assert line.endswith("32.5 GB")
    command("evaluators", "fetch", REPO)
    _, out, _ = command("evaluators", "--db", db)
    assert f"Fetched: {REPO} at {COMMIT[:12]}, " in out


def test_fetch_goes_on_after_a_break_and_names_the_folder(command, hub):
    weights = hub.folders[REPO] / "model.safetensors"
    hub.cut, hub.times = {weights.name: weights.stat().st_size // 2}, 1
    code, out, told = command("evaluators", "fetch", REPO, "--revision", "main")
    assert (code, out.strip()) == (0, str(find_fetched(REPO).folder))
    assert f"{REPO} at {COMMIT}: " in told
    assert "tiny-prm: token-classification format, causal, inputs of up to 512 tokens." in told
    hub.asked.clear()
    assert command("evaluators", "fetch", REPO)[0] == 0
    assert hub.sent(weights.name) == []


def test_a_card_states_what_a_model_of_the_hub_does_not(command, hub, tmp_path):
    (hub.folders[REPO] / "stepsight.json").unlink()
    code, _, told = command("evaluators", "fetch", REPO)
    assert (code, "its separator is not stated" in told, find_fetched(REPO)) == (2, True, None)
    for separator in ("\n", "\n\n"):
        (tmp_path / "card.json").write_text(json.dumps({"template": {"separator": separator}}))
        code, out, told = command("evaluators", "fetch", REPO, "--card", str(tmp_path / "card.json"))
        assert (code, "tiny-prm: token-classification format" in told) == (0, True)
        assert json.loads(Path(out.strip(), "stepsight.json").read_text())["template"]["separator"] == separator


def test_a_model_too_large_for_this_machine_is_fetched_with_a_warning(command, hub, monkeypatch):
    monkeypatch.setattr(memory, "total_memory", lambda: 1_000_000)
    code, out, told = command("evaluators", "fetch", REPO)
    assert (code, out.strip()) == (0, str(find_fetched(REPO).folder))
    assert re.search(rf"{REPO} needs about 300\.\d MB of memory; this machine has 1\.0 MB\.", told)
    assert "It is fetched for another machine" in told
    assert find_fetched(REPO).descriptions == {}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["fetch", "lab/none"], "the model hub has no model 'lab/none' to which you have access"),
        (["fetch", REPO, "--revision", "v9"], "lab/tiny-prm has no revision 'v9'"),
        (["verify", REPO], "lab/tiny-prm is not here. Fetch it first: stepsight evaluators fetch lab/tiny-prm"),
    ],
)
def test_an_unknown_model_or_revision_is_refused(command, hub, db, arguments, told):
    code, _, err = command("evaluators", *arguments, *(["--db", db] if arguments[0] == "verify" else []))
    assert (code, told in err) == (2, True), err


def test_a_figure_is_verified_with_the_best_threshold_which_is_given_for_the_other_parts(
    command, hub, db, tmp_path, monkeypatch
):
    monkeypatch.setattr(verification, "find_public", lambda repo: known())
    command("evaluators", "fetch", REPO)
    math = ("evaluators", "verify", REPO, "--part", "math", "--input", part_file(tmp_path, "math"), "--db", db)
    code, _, err = command(*math)
    assert (code, "give the threshold that it prints with --threshold" in err) == (2, True)
    code, out, err = command("evaluators", "verify", REPO, "--input", part_file(tmp_path), "--db", db)
    assert code == 0, err
    assert out.startswith(f"tiny-prm at {COMMIT}, float32\nProcessBench gsm8k (12 traces): F1 ")
    f1, low, high, threshold = map(
        float, re.search(r"F1 (\S+) \((\S+) to (\S+)\) at threshold (\S+),", out).groups()
    )
    assert low <= f1 <= high
    assert "published 50.0: " + ("agrees" if low <= 50 <= high else "differs") in out
    assert "Published in: A" in out
    code, out, _ = command(*math, "--limit", 7, "--threshold", threshold)
    assert "ProcessBench math (7 traces of it): F1 " in out
    assert f"at threshold {threshold:.4g}, published 40.0" in out


def test_a_threshold_of_its_authors_holds(command, hub, db, tmp_path, monkeypatch):
    monkeypatch.setattr(verification, "find_public", lambda repo: known(threshold=0.5))
    command("evaluators", "fetch", REPO)
    file = part_file(tmp_path, "math")
    code, out, _ = command("evaluators", "verify", REPO, "--part", "math", "--input", file, "--db", db)
    assert (code, "at threshold 0.5, published 40.0: " in out) == (0, True)


def test_a_dataset_of_the_store_is_judged_once(command, hub, db, tmp_path, monkeypatch):
    code, _, err = command("evaluators", "fetch", REPO)
    code, _, err = command("evaluators", "verify", REPO, "--db", db)
    assert (code, "the store has no dataset processbench-gsm8k" in err) == (2, True)
    command("import", "processbench", part_file(tmp_path), "--dataset", "processbench-gsm8k", "--db", db)
    code, out, err = command("evaluators", "verify", REPO, "--db", db)
    assert (code, "nothing is published" in out) == (0, True), err
    scored = []
    monkeypatch.setattr(Scorer, "score", lambda self, traces, *_: scored.extend(traces) or iter(()))
    assert command("evaluators", "verify", REPO, "--db", db)[1] == out
    assert scored == []
