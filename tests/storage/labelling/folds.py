"""Sequences of annotation events with the annotation that follows, for the fold in Python and in the script."""

import json
from pathlib import Path
from typing import Any

from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.labelling.annotation import UNDOABLE, Annotation, fold

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("folds.json").read_text(encoding="utf-8"))


class Log:
    """A person's events on a trace, as the store keeps them; their ids count from 1, their keys from k1."""

    def __init__(self, n_steps: int = 3, stepwise: bool = False) -> None:
        self.events: list[EventRow] = []
        self.n_steps, self.stepwise = n_steps, stepwise

    @property
    def annotation(self) -> Annotation:
        return fold(self.events, self.n_steps, stepwise=self.stepwise)

    def do(self, kind: str, step: int | None = None, new: Any = None) -> None:
        if kind in ("undo", "redo"):
            of = getattr(self.annotation, kind)[-1]
            event = next(event for event in self.events if event.key == of)
            self._add(event.kind, event.step, event.old if kind == "undo" else event.new, kind, event.id)
        else:
            self._add(kind, step, new)

    def _add(self, kind: str, step: int | None, new: Any, cause: str = "", of: int | None = None) -> None:
        old = self.annotation.value(kind, step) if kind in UNDOABLE else None
        id = len(self.events) + 1
        self.events.append(
            EventRow(id=id, kind=kind, step=step, old=old, new=new, cause=cause, of=of, key=f"k{id}")
        )


def as_json(annotation):
    """What the page is told of it."""
    return json.loads(json.dumps(annotation.as_json()))


def states(case):
    """The log before the first event of a case, and after each."""
    log = Log(case["steps"], case.get("stepwise", False))
    yield log
    for event in case["events"]:
        log.do(event["kind"], event.get("step"), event.get("new"))
        yield log
