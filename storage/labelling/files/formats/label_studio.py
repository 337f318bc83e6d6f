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

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from stepsight.storage.labelling.files.formats.label_format import LabelFormat, Row, Tally, line
from stepsight.storage.labelling.files.formats.prm800k import CONSENSUS
from stepsight.storage.labelling.results.consensus import LabelledTrace


def task(labelled: list[LabelledTrace]) -> Row:
    """Convert a trace to a task. `labelled` holds the trace with the consensus labels, or with those of each
    annotator."""
    trace = labelled[0].trace
    return {
        "data": {
            "id": trace.id,
            "dataset": trace.dataset,
            "problem": trace.problem,
            "steps": [{"text": step.text} for step in trace.steps],
            "annotators": [one.annotator or CONSENSUS for one in labelled],
        },
        "annotations": [_annotation(one) for one in labelled],
    }


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


def by_trace(traces: Iterable[LabelledTrace]) -> Iterator[list[LabelledTrace]]:
    """Yield, for each trace, the list of its labelled versions, which must be adjacent in `traces`."""
    for _, same in groupby(traces, key=lambda labelled: labelled.trace.trace_id):
        yield list(same)


def _write(traces: Iterable[LabelledTrace], path: Path, campaign: str, left_out: Tally) -> int:
    written = 0
    with open(path, "w", encoding="utf-8") as file:
        for number, same in enumerate(by_trace(traces)):
            file.write(f"{',' if number else '['}\n{line(task(same))}")
            written += len(same)
        file.write("\n]\n" if written else "[]\n")
    return written


FORMAT = LabelFormat("label-studio", "Label Studio: tasks with a choice per step", _write, with_gold=True)
