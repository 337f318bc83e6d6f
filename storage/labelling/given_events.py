"""The events that an answer or a decision of a file amounts to, where its own events are not known."""

from collections.abc import Iterator
from typing import Any

from storage.labelling.decisions import KIND
from storage.labelling.given import GivenAnswer, GivenDecision, digest
from storage.labelling.plans import View
from storage.people.exposures import WHAT

Event = dict[str, Any]


def answer_events(answer: GivenAnswer, about: str) -> Iterator[Event]:
    """Events of which `storage.labelling.answers` derives the answer again, all at the moment of its submission.

    What was labelled before the next step was seen comes first, then what else became of it; the time that it took
    stands at the submission. `about` is the campaign and the trace: it makes the keys others than those of the
    same answer to another trace.
    """
    key = digest(about.encode() + answer.content)[:32]
    visible = {what: what in answer.exposed for what in WHAT}
    every = {
        "moment": answer.submitted,
        "guideline": answer.guideline,
        "view": answer.view,
        "visible": visible,
        "seconds": None,
        "cause": "",
        "of": None,
        "old": None,
    }
    for number, event in enumerate(_events(answer)):
        yield every | event | {"key": f"import-{key}-{number}"}


def decision_event(decision: GivenDecision, about: str) -> Event:
    """The event of a decision."""
    return {
        "kind": KIND,
        "step": decision.step,
        "old": None,
        "new": {"label": decision.label, "reason": decision.reason, "own": decision.own},
        "moment": decision.moment,
        "visible": {what: what == "labels" for what in WHAT},
        "seconds": None,
        "revealed": None,
        "cause": "",
        "of": None,
        "key": f"import-{digest(about.encode() + decision.content)[:32]}",
    }


def _events(answer: GivenAnswer) -> Iterator[Event]:
    steps, stepwise = len(answer.labels), answer.view == View.STEPWISE
    first = answer.first if stepwise else answer.labels
    for step, label in enumerate(first):
        seen = step + 1 if stepwise else steps
        if stepwise and step:
            yield _event("reveal", None, seen, seen)
        if label is not None:
            yield _event("label", step, label, seen)
    # A step after which none came into view was first labelled when it was submitted.
    changed = [step for step in range(steps) if answer.labels[step] != first[step]]
    for step in changed:
        if step < steps - 1:
            yield _change(answer, step, first[step])
    yield from _notes(answer)
    yield _event("submit", None, None, steps) | {"seconds": answer.seconds}
    if steps - 1 in changed:
        yield _event("reopen", None, None, steps)
        yield _change(answer, steps - 1, first[-1])
        yield _event("submit", None, None, steps)


def _notes(answer: GivenAnswer) -> Iterator[Event]:
    steps = len(answer.labels)
    notes = (("error", answer.errors), ("comment", answer.comments), ("correction", answer.corrections))
    for kind, texts in notes:
        for step, text in enumerate(texts):
            if text is not None:
                yield _event(kind, step, text, steps)
    if answer.flag is not None:
        yield _event("flag", None, answer.flag, steps)


def _change(answer: GivenAnswer, step: int, old: str | None) -> Event:
    return _event("label", step, answer.labels[step], len(answer.labels)) | {"old": old}


def _event(kind: str, step: int | None, new: Any, revealed: int) -> Event:
    return {"kind": kind, "step": step, "new": new, "revealed": revealed}
