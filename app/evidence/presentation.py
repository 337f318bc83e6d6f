"""The evidence of one trace as a presentation: one thing after the other, and nothing before its time."""

import json
from collections.abc import Sequence

from markupsafe import Markup

from stepsight.app.evidence.address import PROBLEM, EvidenceAddress
from stepsight.app.evidence.evidence import Evidence
from stepsight.app.evidence.sentences import constant_sentence
from stepsight.app.web.html import render
from stepsight.app.web.step_bars import note_html

_EVIDENCE, _NOTE, _GOLD = "evidence", "note", "gold"


def presentation_html(
    evidence: Evidence, address: EvidenceAddress, ask: str = "", problems: Sequence[str] = ()
) -> Markup:
    """The presentation of a trace, as far as the address goes.

    What is not revealed is in templates, which no browser draws, reads out or searches; the page's script takes it
    from there. It asks for what leaving steps out does at the address `ask`, if there is one.
    """
    conclusions = _conclusions(evidence)
    places = (PROBLEM, *evidence.names, *conclusions)
    unknown = address.present not in places
    data = {
        "judgment": evidence.record.model_dump_json(),
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
        data=data,
        conclusions=conclusions,
    )


def _unknown(name: str, places: Sequence[str]) -> list[str]:
    # Its hint may not tell how many steps there are.
    return [f"The presentation has no place {name!r:.20}. It begins at {places[0]!r}."]


def _conclusions(evidence: Evidence) -> dict[str, Markup | str]:
    """What comes after the last step, by its name in the address, in the order of the talk."""
    focus = evidence.focus
    sentence = constant_sentence(evidence.evaluator) if evidence.is_causal else evidence.change_sentence(focus)
    conclusions = {
        _EVIDENCE: sentence,
        _NOTE: note_html(evidence.trace.meta.get("note")),
        _GOLD: _gold(evidence),
    }
    return {name: text for name, text in conclusions.items() if text}


def _gold(evidence: Evidence) -> str:
    """Which step gold calls wrong first, and how it stands to the revision that the evidence is about."""
    trace, error = evidence.trace, evidence.trace.first_error
    revision = "" if evidence.is_causal else evidence.gold_sentence(evidence.focus)
    if not trace.has_gold or (revision and error == int(trace.owners[evidence.focus])):
        return revision
    if error is not None:
        judged = trace.steps[int(trace.owners[evidence.focus])].valid is not None
        return f"By gold, step {error + 1} is the first error. {revision if judged else ''}".rstrip()
    return "Gold calls every step valid." if all(step.valid for step in trace.steps) else revision
