"""Label Studio's format: a JSON array of tasks. A task is a trace with one annotation per annotator.

    [{"data": {"id": "7", "dataset": "mr-math-invalid", "problem": "…", "steps": [{"text": "…"}, {"text": "…"}],
               "annotators": ["ada"]},
      "annotations": [{"lead_time": 41.5, "created_at": "2026-03-01T09:30:00+00:00", "was_cancelled": false,
        "result": [{"id": "label-1", "type": "choices", "from_name": "label_1", "to_name": "step_1",
                    "value": {"choices": ["neg"]}}]}]}]

The indices in `from_name` and `to_name` are 0-based, as in Label Studio's repeaters. A step without a label has no
result. `annotators` names the annotator of each annotation, in order, because Label Studio only knows its own
users. The matching project configuration is:

    <View>
      <Text name="problem" value="$problem"/>
      <Repeater on="$steps" indexFlag="{{idx}}">
        <Text name="step_{{idx}}" value="$steps[{{idx}}].text"/>
        <Choices name="label_{{idx}}" toName="step_{{idx}}" choice="single" showInline="true">
          <Choice value="neg"/> <Choice value="neu"/> <Choice value="pos"/> <Choice value="unsure"/>
        </Choices>
      </Repeater>
    </View>
"""

from stepsight.storage.labelling.files.formats.label_format import Row
from stepsight.storage.labelling.files.formats.prm800k import CONSENSUS
from stepsight.storage.labelling.results.consensus import LabelledTrace


def rows(versions: list[LabelledTrace], campaign: str) -> list[Row]:
    """Return a trace as a task, with an annotation for each of its versions."""
    trace = versions[0].trace
    data = {
        "id": trace.id,
        "dataset": trace.dataset,
        "problem": trace.problem,
        "steps": [{"text": step.text} for step in trace.steps],
        "annotators": [labelled.annotator or CONSENSUS for labelled in versions],
    }
    return [{"data": data, "annotations": list(map(_annotation, versions))}]


def _annotation(labelled: LabelledTrace) -> Row:
    # One annotator's labels as given, since unsure is a choice too.
    own = labelled.how is None
    labels = labelled.annotations[0].labels if own else labelled.labels
    moments = [*(one.submitted for one in labelled.annotations), *(one.moment for one in labelled.decisions)]
    return {
        "lead_time": sum(one.seconds for one in labelled.annotations),
        "created_at": max(moments).isoformat(),
        "was_cancelled": False,
        "result": [
            {
                "id": f"label-{place}",
                "type": "choices",
                "from_name": f"label_{place}",
                "to_name": f"step_{place}",
                "value": {"choices": [label]},
            }
            for place, label in enumerate(labels)
            if label is not None
        ],
    }
