"""Deriving from the log where a person stands with a trace."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.labelling.acts import ON_STEPS, UNDOABLE
from storage.labelling.log import Event

Texts = tuple[str | None, ...]


@dataclass(frozen=True)
class Draft:
    """What follows from a person's events. The tuples hold an entry per step, None where there is nothing.

    `revealed` is how many steps the person has seen, `submitted` whether the answer stands. `undo` and `redo` hold
    the ids of events, the last one the next to be taken back or repeated. `first` are the labels as they were when
    the next step was revealed, those of steps after which nothing was revealed as they were first submitted.
    """

    labels: Texts
    comments: Texts
    corrections: Texts
    errors: Texts
    flag: str | None
    revealed: int
    submitted: bool
    undo: tuple[int, ...]
    redo: tuple[int, ...]
    first: Texts

    def value(self, kind: str, step: int | None) -> str | None:
        """What an undoable act of that kind would replace."""
        if step is None:
            return self.flag
        columns = {
            "label": self.labels,
            "comment": self.comments,
            "correction": self.corrections,
            "error": self.errors,
        }
        return columns[kind][step]


def derive(events: Sequence[Event], n_steps: int, stepwise: bool) -> Draft:
    """Where the person stands after these events, with a trace of so many steps; they are in order.

    A trace that lost steps since counts as long as the events say.
    """
    steps = max([n_steps, *(event.step + 1 for event in events if event.step is not None)])
    state = _State(steps, 1 if stepwise else steps)
    for event in events:
        state.take(event)
    return state.draft()


class _State:
    def __init__(self, n_steps: int, revealed: int) -> None:
        self.values: dict[str, list[str | None]] = {kind: [None] * n_steps for kind in ON_STEPS}
        self.first: dict[int, str | None] = {}
        self.flag: str | None = None
        self.revealed = revealed
        self.submitted = False
        self.undo: list[int] = []
        self.redo: list[int] = []

    def take(self, event: Event) -> None:
        if event.kind in UNDOABLE:
            self._stack(event)
            if event.step is None:
                self.flag = event.new
            else:
                self.values[event.kind][event.step] = event.new
        elif event.kind == "reveal":
            self._reveal(event.new)
        elif event.kind == "submit":
            self.submitted = True
            # The answer is shown beside the whole trace.
            self._reveal(len(self.values["label"]))
            self._keep_first(len(self.values["label"]))
        elif event.kind in ("reopen", "withdraw", "skip"):
            self.submitted = False

    def _stack(self, event: Event) -> None:
        if event.of is not None:
            away, to = (self.undo, self.redo) if event.cause == "undo" else (self.redo, self.undo)
            away.remove(event.of)
            to.append(event.of)
        elif event.old != event.new:
            self.undo.append(event.id)
            self.redo.clear()

    def _reveal(self, count: int) -> None:
        if count > self.revealed:
            self._keep_first(self.revealed)
            self.revealed = count

    def _keep_first(self, end: int) -> None:
        for step in range(end):
            self.first.setdefault(step, self.values["label"][step])

    def draft(self) -> Draft:
        labels = tuple(self.values["label"])
        return Draft(
            labels=labels,
            comments=tuple(self.values["comment"]),
            corrections=tuple(self.values["correction"]),
            errors=tuple(self.values["error"]),
            flag=self.flag,
            revealed=self.revealed,
            submitted=self.submitted,
            undo=tuple(self.undo),
            redo=tuple(self.redo),
            first=tuple(self.first.get(step, label) for step, label in enumerate(labels)),
        )
