"""Lines that reproduce a result elsewhere: Python for a machine with StepSight, curl for this server."""

import json
import shlex
from collections.abc import Mapping, Sequence

from stepsight.app.score.permalink import Steps
from stepsight.core.scores import Thresholds
from stepsight.core.trace import Trace

ADDRESS = "http://127.0.0.1:7860"
"""Stands for the server's own address, which only the browser knows."""


def python_snippet(
    trace: Trace, specs: Mapping[str, str], thresholds: Thresholds, dtypes: Mapping[str, str] | None = None
) -> str:
    """A program that prints, for each evaluator and mode, the validity of every sub-step and the verdict.

    `specs` gives what `load_evaluator` takes for each evaluator's name, `dtypes` the type of its weights where that
    is not float32.
    """
    steps = "".join(f"        {step!r},\n" for step in plain_steps(trace))
    types = dtypes or {}
    entries = {
        name: f"({spec!r}, torch.{types.get(name, 'float32')})" if types else repr(spec)
        for name, spec in specs.items()
    }
    listed = "".join(f"    {name!r}: {entry},\n" for name, entry in entries.items())
    taken, given = ("(spec, dtype)", "spec, dtype=dtype") if types else ("spec", "spec")
    imported = "import torch\n\n" if types else ""
    return f"""{imported}from stepsight.core.formats.loading import load_evaluator
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.scores import Thresholds, judge_solution
from stepsight.core.trace import Trace

trace = Trace.of(
    {trace.problem!r},
    [
{steps}    ],
)
evaluators = {{
{listed}}}
{threshold_line(thresholds)}

for name, {taken} in evaluators.items():
    hindsight = Scorer(load_evaluator({given})).score_one(trace).hindsight
    for mode, scores in (("online", hindsight.online), ("offline", hindsight.offline)):
        verdict = "valid" if judge_solution(scores, thresholds).valid else "not valid"
        print(name, mode, *(f"{{value:.4f}}" for value in scores.validity), verdict)
"""


def threshold_line(thresholds: Thresholds) -> str:
    """The line of the program that sets the thresholds, the last one of this text in it."""
    return f"thresholds = Thresholds(validity={thresholds.validity!r}, redundancy={thresholds.redundancy!r})"


def curl_lines(trace: Trace, evaluators: Sequence[str]) -> list[str]:
    """A request per evaluator, for a POSIX shell."""
    return [_curl(trace, name) for name in evaluators]


def _curl(trace: Trace, evaluator: str) -> str:
    body = {
        "problem": trace.problem,
        "steps": plain_steps(trace),
        "evaluator": evaluator,
        "mode": "hindsight",
    }
    data = shlex.quote(json.dumps(body, ensure_ascii=False))
    return f"curl -s {ADDRESS}/api/v1/score -H 'Content-Type: application/json' -d {data}"


def plain_steps(trace: Trace) -> Steps:
    """The steps as texts, a list of texts where a step has sub-steps."""
    return [step.substeps[0] if len(step.substeps) == 1 else list(step.substeps) for step in trace.steps]
