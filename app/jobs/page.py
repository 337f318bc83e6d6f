"""The Jobs page: datasets that evaluators judge beside the server, and how far they are.

Its content comes from `jobs_html` by a route of its own, which the page's script asks every few seconds.
"""

from datetime import datetime
from html import escape
from math import ceil

import gradio as gr

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.gradio_page import block, header
from stepsight.app.web.text import text_html
from stepsight.core.judgment import Mode
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.jobs import Job, State, list_jobs
from stepsight.storage.traces.queries import list_datasets

_SHOWN = 50
_STATES = {State.QUEUED: "waits", State.RUNNING: "running", State.DONE: "done", State.FAILED: "failed",
           State.CANCELLED: "cancelled"}  # fmt: skip
_MODES = ((Mode.HINDSIGHT, "hindsight (online and offline)"), (Mode.OFFLINE, "offline"),
          (Mode.ONLINE, "online"))  # fmt: skip


def build() -> None:
    """Lay the page out within an open `gr.Blocks`."""
    header("Jobs")
    with gr.Column(elem_classes="page"):
        block(
            '<h1>Jobs</h1><p class="lead">A job has an evaluator judge a whole dataset. You may leave this '
            "page or stop the server: what is judged is kept, and the job goes on from there.</p>"
        )
        block(
            '<div id="jobs"><div class="said"></div><div class="start"></div>'
            '<div class="list"><p class="hint">Loading</p></div></div>'
        )


def jobs_html(store: Store, evaluators: Evaluators, *, read_only: bool = False) -> str:
    """The form that starts a job, unless `read_only`, and the newest jobs."""
    found = list_jobs(store, _SHOWN)
    rows = "".join(_row(job, read_only=read_only) for job in found)
    jobs = f'<ol class="jobs">{rows}</ol>' if rows else '<p class="hint">There is no job yet.</p>'
    start = "" if read_only else _form(store, evaluators)
    return f'<div class="start">{start}</div><div class="list">{jobs}</div>'


def _form(store: Store, evaluators: Evaluators) -> str:
    datasets = list_datasets(store)
    if not datasets:
        return '<p class="hint">The store is empty. Import a file: stepsight import KIND PATH</p>'
    names = _options([(row.name, f"{row.name} ({row.traces:,})") for row in datasets])
    return f"""<form class="filters" data-post="/api/v1/jobs">
<label>Dataset <select name="dataset">{names}</select></label>
<label>Evaluator <select name="evaluator">{_options([(name, name) for name in evaluators.names])}</select></label>
<label>Mode <select name="mode">{_options([(mode.value, text) for mode, text in _MODES])}</select></label>
<button>Start</button></form>"""


def _options(choices: list[tuple[str, str]]) -> str:
    return "".join(f'<option value="{escape(value)}">{escape(label)}</option>' for value, label in choices)


def _row(job: Job, *, read_only: bool) -> str:
    percent = f"{100 * job.progress:.1f}"
    name = f"{job.dataset}, {job.evaluator}, {job.mode.value}"
    reason = f'<p class="reason">{text_html(job.reason)}</p>' if job.reason else ""
    return f"""<li id="job-{job.id}" class="card {job.state.value}"><div class="what">
<b>{escape(job.dataset)}</b> <span>{escape(job.evaluator)}</span> <span>{job.mode.value}</span>
<span class="end"><strong class="state">{_STATES[job.state]}</strong>
{"" if read_only else _action(job, name)}</span></div>
<div class="meter" role="progressbar" aria-label="{escape(name)}" aria-valuemin="0" aria-valuemax="100"
 aria-valuenow="{percent}"><i style="width:{percent}%"></i></div>
<p class="hint">{_progress(job)}</p>{reason}</li>"""


def _action(job: Job, name: str) -> str:
    what = "cancel" if job.state.is_active else "resume" if job.state != State.DONE else ""
    if not what:
        return ""
    label = escape(f"{what.title()} {name}")
    return f"""<button type="button" class="button" data-post="/api/v1/jobs/{job.id}/{what}"
 aria-label="{label}">{what.title()}</button>"""


def _progress(job: Job) -> str:
    """Such as `120 of 3,000 traces · 14.2 per second · 4 min left · 2 left out as too long`."""
    parts = [f"{job.done:,} of {job.total:,} traces"]
    if job.rate:
        parts.append(f"{job.rate:,.1f} per second" if job.rate >= 1 else f"{60 * job.rate:,.1f} per minute")
    if job.seconds_left is not None and job.state == State.RUNNING:
        parts.append(f"{duration(job.seconds_left)} left")
    if job.left_out:
        parts.append(f"{job.left_out:,} left out as too long")
    if job.state == State.QUEUED:
        parts.append(f"queued {_moment(job.created)}")
    if job.finished is not None:
        parts.append(_moment(job.finished))
    return " · ".join(parts)


def duration(seconds: float) -> str:
    """Such as `40 s`, `4 min`, `2 h 5 min`: rounded up."""
    if seconds < 60:
        return f"{ceil(seconds)} s"
    minutes = ceil(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _moment(moment: datetime) -> str:
    return f'<time datetime="{moment.isoformat()}">{moment:%Y-%m-%d %H:%M} UTC</time>'
