"""Probabilities of the shipped pair on its gallery, and of a small checkpoint of each format, in all modes."""

import json
from collections.abc import Callable
from pathlib import Path

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Mode
from stepsight.core.scoring.scorer import Scorer
from stepsight.training.evaluate.strength import read_gallery
from tests import checkpoints
from tests.core.formats.by_hand import TRACES
from tests.record.scene import EVALUATORS

CHECKPOINTS: dict[str, Callable[[Path], object]] = {
    "stepsight": checkpoints.write_evaluator,
    "llada": checkpoints.write_llada,
    "reasoneval": checkpoints.write_reasoneval,
    "math-shepherd": lambda folder: checkpoints.write_math_shepherd(folder, card={"format": "math-shepherd"}),
    "qwen-prm": checkpoints.write_qwen_prm,
    "skywork": checkpoints.write_skywork,
    "token-classification": lambda folder: checkpoints.write_token_classifier(folder, "modernbert"),
    "actprm": checkpoints.write_actprm,
}


def record(scene):
    """Yield the probabilities of each evaluator as JSON, in numbers that are compared within `TOLERANCE`."""
    for name in EVALUATORS:
        yield f"scores/{name}.json", _scores(name, read_gallery())
    for name, write in CHECKPOINTS.items():
        folder = scene.folder / name
        write(folder)
        yield f"scores/format-{name}.json", _scores(folder, TRACES)


def _scores(spec, traces):
    evaluator = load_evaluator(spec)
    scorer = Scorer(evaluator)
    # Shipped weights have a fingerprint of their own; those drawn at random depend on the version of PyTorch.
    lines = [json.dumps({"fingerprint": evaluator.fingerprint} if isinstance(spec, str) else {})]
    for judgment in scorer.score(traces, Mode.HINDSIGHT):
        hindsight = judgment.hindsight
        assert hindsight is not None
        lines.append(json.dumps([[[round(float(p), 6) for p in step] for step in row] for row in hindsight.rows]))
    for mode in (Mode.ONLINE, Mode.OFFLINE):
        for judgment in scorer.score(traces, mode):
            lines.append(json.dumps([[round(float(p), 6) for p in step] for step in judgment.result.probs]))
    return "\n".join(lines)
