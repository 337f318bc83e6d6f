"""How fast the Scorer is, against the plain loop and against what the processor can do.

    python -m tests.bench scorer

One run measures everything in turn, several times over, and prints medians, so that a machine whose speed drifts
gives ratios that hold. Counted are the tokens of all prefixes, as a plain loop would read them.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Mode
from stepsight.core.models.checkpoint_resolver import evaluator_folder, open_checkpoint
from stepsight.core.models.evaluator import ModelEvaluator
from stepsight.core.models.kernels import packed, product
from stepsight.core.models.model import StepModel
from stepsight.core.models.pretrained import load_backbone
from stepsight.core.scoring.forward import PaddedForward
from stepsight.core.scoring.prefixes import PrefixCache
from stepsight.core.scoring.scorer import NextSteps, Scorer
from stepsight.core.scoring.scorer_base import AbstractScorer
from stepsight.core.trace import Trace
from stepsight.training.synth.corpus import generate
from tests.bench.figures import Figure
from tests.checkpoints import write_qwen_prm

EVALUATOR = "mini-bidir"
TRACES = 48
ROUNDS, FEW = 7, 2
BOUNDS = {Mode.OFFLINE: (None, None), Mode.HINDSIGHT: (2.6, 0.9)}
SIDE = 1024
# Those of Qwen2.5-0.5B, with a quarter of its layers: the ratio is that of the whole, in a quarter of the time.
QWEN = {
    "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 6, "num_attention_heads": 14,
    "num_key_value_heads": 2, "max_position_embeddings": 4096,
}  # fmt: skip


def figures(is_short=False):
    """Measure the scorer, and what continues and shares; with `is_short` the scorer alone, on fewer traces."""
    evaluator = load_evaluator(EVALUATOR, dtype="float32")
    backbone = load_backbone(open_checkpoint(evaluator_folder(EVALUATOR)), attention=evaluator.attention)
    plain = replace(evaluator, model=StepModel(backbone, evaluator.model.score).eval())
    scorer = Scorer(evaluator)
    traces = list(generate(seed=5, size=TRACES // 4 if is_short else TRACES))
    encoded = [evaluator.encode(trace) for trace in traces]
    tokens = {
        Mode.OFFLINE: sum(len(item) for item in encoded),
        Mode.HINDSIGHT: sum(int(end) + 1 for item in encoded for end in item.ends),
    }
    jobs: dict[str, Callable[[], object]] = {}
    for mode in tokens:
        jobs[f"{mode} loop"] = lambda mode=mode: list(loop(plain, traces, mode))
        jobs[f"{mode} scorer"] = lambda mode=mode: list(scorer.score(traces, mode))
    jobs["limit"] = lambda: [product(left, fixed) for _ in range(20)]
    left, right = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE)
    fixed = packed(right)
    seconds = measure(jobs, FEW if is_short else ROUNDS)
    limit = 20 * 2 * SIDE**3 / seconds["limit"]
    for mode, bounds in BOUNDS.items():
        taken = seconds[f"{mode} scorer"]
        yield Figure(f"{mode}, tokens of all that a plain loop reads", tokens[mode] / taken, "/s")
        ratio, share = seconds[f"{mode} loop"] / taken, flops(evaluator, encoded, mode) / taken / limit
        yield Figure("as many times as fast as the plain loop", ratio, "x", bounds[0], at_least=True)
        yield Figure("its share of the speed of oneDNN's matrix products", share, "", bounds[1], at_least=True)
    largest = difference(plain, scorer, traces)
    yield Figure("greatest difference of a probability to the plain loop", largest, "", 1e-5)
    if is_short:
        return
    yield next_step(load_evaluator("mini-causal"))
    yield dependence()


def measure(jobs, rounds=ROUNDS):
    """Median seconds of each job, run in turn after one round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(rounds + 1):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            if number:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


@torch.inference_mode()
def loop(evaluator: ModelEvaluator, traces: list[Trace], mode: Mode) -> Iterator[list[np.ndarray]]:
    """One input per forward through Transformers' model, as ReasonEval's script does; rows of probabilities."""
    for trace in traces:
        encoded = evaluator.encode(trace)
        rows = []
        for j in range(len(encoded.ends)) if mode == Mode.HINDSIGHT else [len(encoded.ends) - 1]:
            ids = torch.from_numpy(encoded.ids[: encoded.ends[j] + 1])[None]
            ends = torch.from_numpy(encoded.ends[: j + 1])[None]
            out = evaluator.model(ids, torch.ones_like(ids), ends)
            rows.append(out[0].softmax(-1).numpy())
        yield rows


def flops(evaluator, encoded, mode):
    """Multiply-adds times two of the plain forward passes: projections, MLP and attention."""
    config = evaluator.model.config
    d, layers = config.hidden_size, config.num_hidden_layers
    per_token = 2 * layers * (4 * d * d + 3 * d * config.intermediate_size)
    lengths = [
        int(end) + 1 for item in encoded for end in (item.ends if mode == Mode.HINDSIGHT else item.ends[-1:])
    ]
    return float(sum(length * per_token + 4 * layers * length * length * d for length in lengths))


def difference(evaluator, scorer, traces):
    """Largest difference of a probability between the two."""
    pairs = zip(scorer.score(traces, Mode.HINDSIGHT), loop(evaluator, traces, Mode.HINDSIGHT), strict=True)
    return max(
        float(np.abs(ours - theirs).max())
        for judgment, rows in pairs
        for ours, theirs in zip(judgment.hindsight.rows, rows, strict=True)
    )


def next_step(evaluator, size=1000, count=8):
    """What scores of candidates for the next step cost after a prefix of `size` tokens, against from scratch."""
    problem, steps = "Add the numbers from the list one after the other.", ["Let us begin."]
    while (tokens := len(evaluator.encode(Trace.of(problem, steps)))) < size:
        steps.append(f"Then we add {len(steps)} and get {tokens} + {len(steps)} = {tokens + len(steps)}.")
    candidates = [
        f"Next, {number} + {3 * number} = {4 * number}, which leaves us {number}." for number in range(count)
    ]
    traces = [Trace.of(problem, [*steps, text]) for text in candidates]
    scorer, padded = Scorer(evaluator), Scorer(evaluator, PaddedForward(evaluator.model))
    kept = next_steps(evaluator, scorer)
    kept.score(problem, steps[:-1], candidates)
    beams = iter(range(ROUNDS + 1))
    seconds = measure(
        {
            "from scratch": lambda: list(scorer.score(traces, Mode.ONLINE)),
            "from scratch, padded": lambda: list(padded.score(traces, Mode.ONLINE)),
            "a new prefix": lambda: next_steps(evaluator, scorer).score(problem, steps, candidates),
            # Every time another step is the last.
            "one step further": lambda: kept.score(problem, [*steps[:-1], f"{next(beams)}: yes."], candidates),
        }
    )
    found = kept.score(problem, steps, candidates)
    scratch = np.stack([judgment.online.probs[-1] for judgment in scorer.score(traces, Mode.ONLINE)])
    print(f"{evaluator.name}, {count} candidates after {tokens:,} tokens:")
    for name, taken in seconds.items():
        ratio = seconds["from scratch"] / taken
        print(f"{name:22}{1000 * taken:>8.0f} ms{ratio:>8.1f} x from scratch")
    print(f"largest difference: {np.abs(found - scratch).max():.1e}")
    ratio = seconds["from scratch"] / seconds["one step further"]
    return Figure(
        f"{count} candidates one step further after {tokens:,} tokens, against from scratch",
        ratio,
        "x",
        25,
        at_least=True,
    )


def next_steps(evaluator, scorer):
    """The scorer of candidates, without a prefix in the cache."""
    scorer.forward.prefixes = PrefixCache()
    return NextSteps(evaluator, scorer.forward)


def dependence(steps=30, rounds=3):
    """What a trace of 30 steps without each of them costs a causal evaluator of the layout and the widths of
    Qwen2.5-0.5B, with random weights, against 30 runs."""
    with tempfile.TemporaryDirectory() as folder:
        write_qwen_prm(Path(folder), **QWEN)
        scorer = Scorer(load_evaluator(folder, dtype="float32"))
    texts = [f"Then we add {i} to what we have, so that {i} + {i} = {2 * i} are there." for i in range(steps)]
    trace = Trace.of("Add the numbers from the list one after the other.", texts)
    size, found, taken = len(scorer.evaluator.encode(trace)), [], [[], []]
    for _ in range(rounds):
        for place, leave_out in enumerate((scorer.leave_one_out, partial(AbstractScorer.leave_one_out, scorer))):
            start = time.perf_counter()
            found.append(leave_out(trace))
            taken[place].append(time.perf_counter() - start)
    shared, apart = map(statistics.median, taken)
    ratios = [b / a for a, b in zip(*taken, strict=True)]
    difference = np.nanmax(np.abs(found[-1].probs - found[-2].probs))
    print(f"{steps} steps, {size:,} tokens, each left out: {shared:.1f} s, {apart:.1f} s in runs of their own")
    print(f"largest difference {difference:.1e}")
    return Figure(f"{steps} steps, each left out, against {steps} runs", statistics.median(ratios), "x")
