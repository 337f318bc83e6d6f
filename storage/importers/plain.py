"""StepSight's plain format, which is JSON Lines as described in `core.files.jsonl` (`stepsight import jsonl`).

A step is a text, or a list of texts if it has sub-steps. `labels` and all other fields are optional:

    {"id": "pencils-1", "problem": "Three pencils cost $1.24. …", "steps":
     ["Let p be …", ["Then …", "So p = 29."]], "labels": ["pos", null], "generator": "a model"}
"""

from stepsight.core.files.jsonl import parse_trace
from stepsight.storage.importers.kind import FileKind

KIND = FileKind(
    name="plain",
    title="JSON Lines with id, problem, steps and optional labels",
    fields=frozenset({"id", "problem", "steps"}),
    parse=parse_trace,
)
