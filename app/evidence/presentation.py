"""The evidence on one trace as a presentation that is revealed piece by piece."""

import json
from collections.abc import Sequence

from markupsafe import Markup

from stepsight.app.evidence.address import PROBLEM, EvidenceAddress
from stepsight.app.evidence.evidence import Evidence
from stepsight.app.web.html import render

_EVIDENCE, _NOTE, _GOLD = "evidence", "note", "gold"


def presentation_html(evidence: Evidence, address: EvidenceAddress, ask: str, problems: Sequence[str]) -> Markup:
    """Render the presentation of a trace, starting at the place that the address names.

    Until the page's script reveals them, parts of the presentation are in `template` elements, which browsers
    neither display, search nor read out. The script requests leave-one-out scores from the URL `ask` unless it is
    "".
    """
    conclusions = _conclusions(evidence)
    places = (PROBLEM, *evidence.names, *conclusions)
    unknown = address.present not in places
    data = evidence.judgment_data() | {
        "places": json.dumps(places),
        "place": "0" if unknown else str(places.index(address.present)),
        "focus": str(evidence.focus),
    }
    if ask and not evidence.is_causal:
        data["ask"] = ask
    return render(
        "evidence/presentation.html",
        problems=[*problems, *_unknown(address.present, places)] if unknown else problems,
        evidence=evidence,
        steps=evidence.steps(),
        data=data,
        conclusions=conclusions,
    )


def _unknown(name: str, places: Sequence[str]) -> list[str]:
    # The message must not reveal the number of steps.
    return [f"The presentation has no place {name!r:.20}. It begins at {places[0]!r}."]


def _conclusions(evidence: Evidence) -> dict[str, Markup | str]:
    """Return the parts of the presentation that follow the last step, by name and in order. Empty parts are left
    out."""
    focus = evidence.focus
    sentence = evidence.constant_sentence or evidence.change_sentence(focus)
    conclusions = {
        _EVIDENCE: sentence,
        _NOTE: evidence.note,
        _GOLD: _gold(evidence),
    }
    return {name: text for name, text in conclusions.items() if text}


def _gold(evidence: Evidence) -> str:
    """Say which step is the first error by the gold labels, and compare the gold labels with the revision shown as
    evidence."""
    trace, error = evidence.trace, evidence.trace.first_error
    revision = "" if evidence.is_causal else evidence.gold_sentence(evidence.focus)
    if not trace.has_gold or (revision and error == int(trace.owners[evidence.focus])):
        return revision
    if error is not None:
        judged = trace.steps[int(trace.owners[evidence.focus])].valid is not None
        return f"By gold, step {error + 1} is the first error. {revision if judged else ''}".rstrip()
    return "Gold calls every step valid." if all(step.valid for step in trace.steps) else revision
