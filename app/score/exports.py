"""What can be done with a result: links, downloads, saving, and lines that reproduce it."""

from html import escape

from stepsight.app.score.permalink import ScoreForm
from stepsight.app.score.score_files import CSV_PATH, JSON_PATH
from stepsight.app.score.snippets import ADDRESS, curl_lines, python_snippet, threshold_line
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.formats.loading import shipped_evaluators
from stepsight.core.models.placement import dtype_name, typed_name
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import NAME_LENGTH
from stepsight.storage.traces.writer import SAVED

_SAVE = f"""<form class="save" data-save><label>Dataset
<input name="dataset" value="{SAVED}" maxlength="{NAME_LENGTH}" autocomplete="off"></label>
<button class="button">Save as a trace</button></form>"""


def exports_html(evaluators: Evaluators, form: ScoreForm, trace: Trace, *, read_only: bool = False) -> str:
    """Links, downloads, saving, and lines that reproduce the result. The page's script keeps thresholds up to date
    where an element has `data-at` or `data-threshold`."""
    save = "" if read_only else _SAVE
    return f"""<div class="out">{_links(form.token())}</div>{save}
{_snippets(evaluators, form, trace, read_only=read_only)}"""


def _links(token: str | None) -> str:
    if token is None:
        return '<span class="hint">Too long for a link: save it, or score it with stepsight score.</span>'
    return f"""<a class="link" data-at href="/?s={token}">Link to this result</a>
<a href="/evidence?s={token}">Evidence</a>
<a data-at download href="{JSON_PATH}?s={token}">Download JSON</a>
<a data-at download href="{CSV_PATH}?s={token}">Download CSV</a>
<button type="button" class="button" data-keep>Keep as comparison</button>
<span class="kept hint" hidden>Kept: what you score next is compared with this result.
<button type="button" class="button" data-forget>Forget</button></span>"""


def _snippets(evaluators: Evaluators, form: ScoreForm, trace: Trace, *, read_only: bool) -> str:
    types = {name: evaluators.scorer(name).evaluator.dtype for name in form.evaluators}
    specs = {name: evaluators.spec(name) for name in form.evaluators}
    if read_only:
        # A folder is the server's own business; who only reads here has the evaluator elsewhere, or not at all.
        shipped = shipped_evaluators()
        bare = {name: name.removesuffix(typed_name("", dtype)) for name, dtype in types.items()}
        specs = {name: spec if spec in shipped else bare[name] for name, spec in specs.items()}
    line = threshold_line(form.thresholds)
    others = {name: dtype_name(dtype) for name, dtype in types.items() if typed_name("", dtype)}
    first, _, rest = python_snippet(trace, specs, form.thresholds, others).rpartition(line)
    spans = (
        f'<span data-threshold="{name}">{value!r}</span>'
        for name, value in (("validity", form.validity), ("redundancy", form.redundancy))
    )
    python = (
        f"{escape(first)}thresholds = Thresholds(validity={next(spans)}, redundancy={next(spans)}){escape(rest)}"
    )
    curl = "\n".join(_with_origin(line) for line in curl_lines(trace, form.evaluators))
    return f"""<details class="snippets"><summary>Reproduce in Python or with curl</summary>
{_snippet("Python, where StepSight is installed", python)}{_snippet("curl, against this server", curl)}</details>"""


def _with_origin(line: str) -> str:
    """The address of this server in a span of its own: only the browser knows it."""
    first, _, rest = line.partition(ADDRESS)
    return f"{escape(first)}<span data-origin>{ADDRESS}</span>{escape(rest)}"


def _snippet(title: str, code: str) -> str:
    return f"""<div class="snippet"><p class="hint">{title}</p>
<button type="button" class="button" data-copy>Copy</button><pre tabindex="0"><code>{code}</code></pre></div>"""
