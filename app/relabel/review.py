"""A submitted trace: the person's labels beside gold, evaluators and what others submitted."""

from collections.abc import Sequence
from html import escape

from stepsight.app.relabel.disputes import DisputeAddress
from stepsight.app.relabel.label import LABEL_MARKS, error_name, scores_html, texts_html
from stepsight.app.web.judged import gold_html
from stepsight.app.web.text import text_html
from stepsight.core.trace import Step, Trace
from stepsight.storage.labelling.annotation import UNSURE, Annotation
from stepsight.storage.labelling.comparison import PeerAnnotation, Review, ShownScores
from stepsight.storage.labelling.queue import Assignment

_HIDDEN = """Gold, scores and what others say of this trace stay hidden: you have it before you in another
campaign."""


def review_html(task: Assignment, annotation: Annotation, shown: Review | None, person: int) -> str:
    """The page; without a comparison, with the person's own labels alone."""
    campaign = task.campaign
    trace: Trace = shown.trace if shown else task.trace
    peers = shown.peers if shown else ()
    scores = shown.scores if shown else ()
    steps = "".join(
        _step(number, trace.steps[number], annotation, peers, scores, _dispute(shown, number) if shown else "")
        for number in range(len(trace.steps))
    )
    told = _summary(annotation, shown) if shown else f'<p class="hint">{_HIDDEN}</p>'
    again = "" if campaign.closed else _take_back(task)
    return f"""<section id="review" data-person="{person}" data-slot="{task.slot_id}">
<p class="pager"><a href="/relabel">Campaigns</a><span>{escape(campaign.name)}</span>
<span class="keys"><kbd>n</kbd> next trace <kbd>?</kbd> all keys</span></p>
<h1>Submitted</h1>{told}<p class="q">{text_html(trace.problem)}</p>
{f'<p class="flagged">Flagged as a bad problem: {text_html(annotation.flag)}</p>' if annotation.flag else ""}
<ol class="steps">{steps}</ol><div class="acts"><div class="told"></div><div class="row">{again}
<span class="status"></span>
<a class="button primary next" href="/relabel/label?campaign={campaign.id}">Next trace</a></div></div></section>"""


def ended_html(task: Assignment) -> str:
    """The page of a trace that the person has skipped, or withdrawn the answer to."""
    return f"""<section id="review"><p class="pager"><a href="/relabel">Campaigns</a>
<span>{escape(task.campaign.name)}</span></p><h1>Skipped</h1>
<p class="lead">You skipped this trace, or withdrew your answer. Somebody else gets it.</p>
<p class="out"><a class="button primary next"
href="/relabel/label?campaign={task.campaign.id}">Next trace</a></p></section>"""


def _take_back(task: Assignment) -> str:
    return f"""<button type="button" class="button" data-reopen="/relabel/slots/{task.slot_id}/events"
data-guideline="{task.guideline}" title="Take the answer back, to change it">Take back</button>"""


def _summary(annotation: Annotation, shown: Review) -> str:
    """How often the person and the gold say the same, and where each sees the first error."""
    steps = shown.trace.steps
    said = [agrees(label, step) for label, step in zip(annotation.labels, steps, strict=True)]
    known = [one for one in said if one is not None]
    if not shown.trace.has_gold:
        return '<p class="hint">The dataset says nothing of this trace’s steps.</p>'
    mine = next((step for step, label in enumerate(annotation.labels) if label == "neg"), None)
    both = "the same" if mine == shown.trace.first_error else "not the same"
    return f"""<p class="lead">You agree with the gold on <strong>{sum(known)} of {len(known)}</strong> steps.
First error: you {_place(mine)}, gold {_place(shown.trace.first_error)}, {both}.</p>"""


def _place(step: int | None) -> str:
    return "<strong>none</strong>" if step is None else f"<strong>step {step + 1}</strong>"


def agrees(label: str | None, gold: Step) -> bool | None:
    """Whether a label says what the gold says; None where either says too little. Gold that only tells valid steps
    from wrong ones is taken at that."""
    if label in (None, UNSURE) or gold.valid is None:
        return None
    if gold.label is not None:
        return label == gold.label.text
    return (label != "neg") == gold.valid


def _dispute(shown: Review, number: int) -> str:
    """The way to say that the gold of a step is wrong; nothing where the dataset has none."""
    if not shown.trace.has_gold:
        return ""
    url = DisputeAddress(trace=shown.trace.trace_id, step=number + 1).url()
    return f'<a class="dispute" href="{url}" aria-label="Dispute the gold of step {number + 1}">dispute</a>'


def _step(
    number: int,
    step: Step,
    annotation: Annotation,
    peers: Sequence[PeerAnnotation],
    scores: Sequence[ShownScores],
    dispute: str,
) -> str:
    """A step's row. `dispute` leads on from its gold, "" where there is none or it is not shown."""
    mine = annotation.labels[number]
    said = [("You", _label(mine, annotation.errors[number] if mine == "neg" else None), "")]
    if dispute:
        said.append(("Gold", gold_html(step), f"{_verdict(agrees(mine, step))} {dispute}"))
    for place, peer in enumerate(peers, start=1):
        label = peer.labels[number]
        same = None if {mine, label} & {None, UNSURE} else mine == label
        said.append((f"Other {place}", _label(label, peer.errors[number]), _verdict(same)))
    rows = "".join(f"<dt>{name}</dt><dd>{label}{verdict}</dd>" for name, label, verdict in said)
    wrong = ' class="wrong"' if step.valid is False else ""
    return f"""<li{wrong}><b>{number + 1}</b>
<div class="what">{texts_html(number, step)}{scores_html(scores, number)}
{_texts(number, annotation)}</div><dl class="answers-of">{rows}</dl></li>"""


def _label(label: str | None, error: str | None) -> str:
    if label is None:
        return '<span class="g none">no label</span>'
    kind = f' <span class="kind">{escape(error_name(error))}</span>' if error else ""
    return f'<span class="label {label}">{LABEL_MARKS[label]} {label}</span>{kind}'


def _verdict(same: bool | None) -> str:
    if same is None:
        return ""
    return f' <em class="{"same" if same else "other"}">{"agrees" if same else "differs"}</em>'


def _texts(number: int, annotation: Annotation) -> str:
    """The person's comment and correction."""
    texts = (("Comment", annotation.comments[number]), ("As it should be", annotation.corrections[number]))
    return "".join(f'<p class="said-text"><b>{name}</b> {text_html(text)}</p>' for name, text in texts if text)
