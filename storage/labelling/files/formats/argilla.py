"""Argilla's format: a JSON array with one record per step.

    [{"id": "mr-math-invalid/7/2", "fields": {"problem": "…", "before": "…", "step": "…"},
      "metadata": {"dataset": "mr-math-invalid", "trace": "7", "step": 2, "steps": 3, "annotators": ["ada"]},
      "suggestions": {}, "responses": {"label": [{"value": "neg", "user_id": "…"}]}, "vectors": {}}]

With one record per step, traces of any length fit the same Argilla dataset. Its fields are `problem`, `before` (the
preceding steps) and `step`, and its question `label` takes neg, neu, pos or unsure. `step` in the metadata is
1-based. Annotators' labels are written as responses, and the consensus as a suggestion by the agent `consensus`. A
response needs a `user_id`, which is derived from the annotator's name. `annotators` names everybody who labelled
the trace.
"""

from uuid import NAMESPACE_URL, uuid5

from stepsight.storage.labelling.files.formats.label_format import Row
from stepsight.storage.labelling.files.formats.prm800k import CONSENSUS
from stepsight.storage.labelling.results.consensus import LabelledTrace

QUESTION = "label"


def user_id(name: str) -> str:
    """Return a UUID that is always the same for the same annotator name."""
    return str(uuid5(NAMESPACE_URL, f"stepsight:{name}"))


def rows(labelled: list[LabelledTrace], campaign: str) -> list[Row]:
    """Return one record per step of a trace, with the labels of each of its versions."""
    trace = labelled[0].trace
    texts = [step.text for step in trace.steps]
    about = {"dataset": trace.dataset, "trace": trace.id, "steps": len(texts)}
    names = [one.annotator or CONSENSUS for one in labelled]
    return [
        {
            "id": f"{trace.dataset}/{trace.id}/{place + 1}",
            "fields": {"problem": trace.problem, "before": "\n\n".join(texts[:place]), "step": text},
            "metadata": about | {"step": place + 1, "annotators": names},
            **_answers(labelled, place),
            "vectors": {},
        }
        for place, text in enumerate(texts)
    ]


def _answers(labelled: list[LabelledTrace], place: int) -> Row:
    suggestions, responses = {}, []
    for one in labelled:
        label = one.labels[place] if one.annotator is None else one.annotations[0].labels[place]
        if label is None:
            continue
        if one.annotator is None:
            suggestions[QUESTION] = {"value": label, "score": None, "agent": CONSENSUS}
        else:
            responses.append({"value": label, "user_id": user_id(one.annotator)})
    return {"suggestions": suggestions, "responses": {QUESTION: responses} if responses else {}}
