"""What can be done with a result: links, downloads, saving, and lines that reproduce it elsewhere."""

import json
import shlex
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from stepsight.app.score.entered import plain_steps, steps_of
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.html import render
from stepsight.core.evaluator_summary import SERVED
from stepsight.core.models.location import is_shipped
from stepsight.core.models.placement import STORED, typed_name
from stepsight.core.scores import Thresholds
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import NAME_LENGTH
from stepsight.storage.traces.writer import SAVED

ADDRESS = "http://127.0.0.1:7860"
"""Stands for the server's own address, which only the browser knows."""


def exports_html(
    evaluators: Evaluators,
    trace: Trace,
    names: Sequence[str],
    thresholds: Thresholds,
    token: str | None,
    *,
    read_only: bool = False,
) -> Markup:
    """Links, downloads, saving, and lines that reproduce the result of the evaluators of these `names`, whose
    permalink is `token`."""
    types = {name: evaluators.about(name).dtype for name in names}
    # What a server has cannot be asked of it.
    types = {name: "float32" if dtype == SERVED else dtype for name, dtype in types.items()}
    specs = {name: evaluators.spec(name) for name in names}
    if read_only:
        # A folder is the server's own business; who only reads here has the evaluator elsewhere, or not at all.
        bare = {name: name.removesuffix(typed_name("", dtype)) for name, dtype in types.items()}
        specs = {name: spec if is_shipped(spec) else bare[name] for name, spec in specs.items()}
    # Where no other type was asked for nor chosen, the program leaves it open too.
    chosen = evaluators.place.dtype != STORED or set(types.values()) != {"float32"}
    python = python_snippet(trace, specs, thresholds, types if chosen else None)
    before, _, after = python.rpartition(threshold_line(thresholds))
    return render(
        "score/exports.html",
        token=token,
        read_only=read_only,
        dataset=SAVED,
        longest=NAME_LENGTH,
        thresholds=thresholds,
        python=(before, after),
        curl=[line.split(ADDRESS, 1) for line in curl_lines(trace, names)],
        address=ADDRESS,
    )


def python_snippet(
    trace: Trace, specs: Mapping[str, str], thresholds: Thresholds, dtypes: Mapping[str, str] | None = None
) -> str:
    """A program that prints, for each evaluator and mode, the validity of every sub-step and the verdict.

    `specs` gives what `load_evaluator` takes for each evaluator's name, `dtypes` the type of its weights, where it
    is not left to that.
    """
    steps = "".join(f"        {step!r},\n" for step in plain_steps(steps_of(trace)))
    types = dtypes or {}
    if not types:
        entries, taken, arguments = {name: repr(spec) for name, spec in specs.items()}, "spec", "spec"
    else:
        entries = {name: f"({spec!r}, {types.get(name, 'float32')!r})" for name, spec in specs.items()}
        taken, arguments = "(spec, dtype)", "spec, dtype=dtype"
    listed = "".join(f"    {name!r}: {entry},\n" for name, entry in entries.items())
    return f"""from stepsight import Scorer, Trace, load_evaluator
from stepsight.core.scores import Thresholds, judge_solution

trace = Trace.of(
    {trace.problem!r},
    [
{steps}    ],
)
evaluators = {{
{listed}}}
{threshold_line(thresholds)}

for name, {taken} in evaluators.items():
    hindsight = Scorer(load_evaluator({arguments})).score_one(trace).hindsight
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
        "steps": plain_steps(steps_of(trace)),
        "evaluator": evaluator,
        "mode": "hindsight",
    }
    data = shlex.quote(json.dumps(body, ensure_ascii=False))
    return f"curl -s {ADDRESS}/api/v1/score -H 'Content-Type: application/json' -d {data}"
