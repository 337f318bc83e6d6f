"""What can be done with a result: links, downloads, saving, and lines that reproduce it."""

from markupsafe import Markup

from stepsight.app.score.permalink import ScoreForm
from stepsight.app.score.snippets import ADDRESS, curl_lines, python_snippet, threshold_line
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.html import render
from stepsight.core.models.location import shipped_evaluators
from stepsight.core.models.placement import typed_name
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import NAME_LENGTH
from stepsight.storage.traces.writer import SAVED


def exports_html(evaluators: Evaluators, form: ScoreForm, trace: Trace, *, read_only: bool = False) -> Markup:
    """Links, downloads, saving, and lines that reproduce the result."""
    types = {name: evaluators.scorer(name).evaluator.dtype for name in form.evaluators}
    specs = {name: evaluators.spec(name) for name in form.evaluators}
    if read_only:
        # A folder is the server's own business; who only reads here has the evaluator elsewhere, or not at all.
        shipped = shipped_evaluators()
        bare = {name: name.removesuffix(typed_name("", dtype)) for name, dtype in types.items()}
        specs = {name: spec if spec in shipped else bare[name] for name, spec in specs.items()}
    others = {name: dtype for name, dtype in types.items() if typed_name("", dtype)}
    python = python_snippet(trace, specs, form.thresholds, others)
    before, _, after = python.rpartition(threshold_line(form.thresholds))
    return render(
        "score/exports.html",
        token=form.token(),
        read_only=read_only,
        dataset=SAVED,
        longest=NAME_LENGTH,
        thresholds=form.thresholds,
        python=(before, after),
        curl=[line.split(ADDRESS, 1) for line in curl_lines(trace, form.evaluators)],
        address=ADDRESS,
    )
