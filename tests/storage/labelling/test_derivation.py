"""What follows from a person's events."""

from datetime import UTC, datetime
from typing import Any

import pytest

from stepsight.storage.labelling.annotation import Annotation, AnnotationEvent, fold

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


class Log:
    """Events as the database would hold them."""

    def __init__(self, n_steps: int = 3, stepwise: bool = False) -> None:
        self.events: list[AnnotationEvent] = []
        self.n_steps, self.stepwise = n_steps, stepwise

    @property
    def draft(self) -> Annotation:
        return fold(self.events, self.n_steps, self.stepwise)

    def do(
        self, kind: str, step: int | None = None, new: Any = None, cause: str = "", of: int | None = None
    ) -> None:
        undoable = kind in ("label", "comment", "correction", "error", "flag")
        old = self.draft.value(kind, step) if undoable else None
        id = len(self.events) + 1
        self.events.append(
            AnnotationEvent(
                id, 1, 1, 1, kind, step, old, new, cause, of, f"k{id}", MOMENT, 1.0, 1, "whole", None, {}
            )
        )

    def turn(self, cause: str) -> None:
        of = (self.draft.undo if cause == "undo" else self.draft.redo)[-1]
        event = next(event for event in self.events if event.id == of)
        self.do(event.kind, event.step, event.old if cause == "undo" else event.new, cause, of)


def test_nothing_yet() -> None:
    draft = Log().draft
    assert draft.labels == draft.comments == draft.corrections == draft.errors == draft.first == (None,) * 3
    assert (draft.flag, draft.revealed, draft.submitted, draft.undo, draft.redo) == (None, 3, False, (), ())
    assert Log(stepwise=True).draft.revealed == 1


def test_the_last_word_counts() -> None:
    log = Log()
    log.do("label", 0, "pos")
    log.do("label", 2, "neg")
    log.do("label", 0, "unsure")
    log.do("comment", 1, "Why?")
    log.do("correction", 2, "So 4.")
    log.do("error", 2, "confidence")
    log.do("flag", None, "Not a problem.")
    draft = log.draft
    assert draft.labels == ("unsure", None, "neg")
    assert draft.comments == (None, "Why?", None)
    assert draft.corrections == (None, None, "So 4.")
    assert draft.errors == (None, None, "confidence")
    assert draft.flag == "Not a problem."
    assert draft.undo == (1, 2, 3, 4, 5, 6, 7)


def test_undo_and_redo_go_back_and_forth_without_limit() -> None:
    log = Log()
    said = ["pos", "neu", "neg", None] * 10
    for label in said:
        log.do("label", 0, label)
    # After n of them are taken back, the label is the one before.
    for before in [None, *said[:-1]][::-1]:
        log.turn("undo")
        assert log.draft.labels[0] == before
    assert (log.draft.undo, len(log.draft.redo)) == ((), 40)
    for label in said:
        log.turn("redo")
        assert log.draft.labels[0] == label
    assert (len(log.draft.undo), log.draft.redo) == (40, ())


def test_something_new_ends_what_can_be_repeated() -> None:
    log = Log()
    log.do("label", 0, "pos")
    log.do("label", 1, "pos")
    log.turn("undo")
    assert (log.draft.labels, log.draft.redo) == (("pos", None, None), (2,))
    log.do("label", 2, "neg")
    assert (log.draft.undo, log.draft.redo) == ((1, 4), ())
    log.turn("undo")
    log.turn("undo")
    assert log.draft.labels == (None, None, None)


def test_what_changes_nothing_is_not_taken_back() -> None:
    log = Log()
    log.do("label", 0, "pos")
    log.do("label", 0, "pos")
    log.do("flag")
    assert log.draft.undo == (1,)


def test_undo_goes_across_submitting_and_taking_back() -> None:
    log = Log(n_steps=1)
    log.do("label", 0, "pos")
    log.do("label", 0, "neg")
    log.do("submit")
    assert log.draft.submitted
    log.do("reopen")
    assert not log.draft.submitted
    log.turn("undo")
    log.turn("undo")
    assert log.draft.labels == (None,)
    log.turn("redo")
    assert log.draft.labels == ("pos",)


@pytest.mark.parametrize("kind", ["withdraw", "skip"])
def test_who_withdraws_or_skips_has_no_answer(kind: str) -> None:
    log = Log()
    log.do("submit")
    log.do(kind)
    assert not log.draft.submitted


def test_step_by_step_the_first_label_is_the_one_before_the_next_step_was_seen() -> None:
    log = Log(stepwise=True)
    log.do("label", 0, "neu")
    log.do("label", 0, "pos")
    log.do("reveal", None, 2)
    assert log.draft.revealed == 2
    log.do("label", 0, "neg")
    log.do("label", 1, "neg")
    log.do("reveal", None, 3)
    log.do("label", 2, "unsure")
    log.do("label", 2, "neg")
    assert (log.draft.labels, log.draft.first) == (("neg", "neg", "neg"), ("pos", "neg", "neg"))
    log.do("submit")
    log.do("reopen")
    log.do("label", 2, "pos")
    # After the last step nothing is revealed; what counts is how it was first submitted.
    assert (log.draft.labels, log.draft.first) == (("neg", "neg", "pos"), ("pos", "neg", "neg"))


def test_revealing_again_changes_nothing() -> None:
    log = Log(stepwise=True)
    log.do("label", 0, "pos")
    log.do("reveal", None, 2)
    log.do("label", 0, "neg")
    log.do("reveal", None, 2)
    assert (log.draft.revealed, log.draft.first[0]) == (2, "pos")


def test_who_submitted_has_seen_all_steps() -> None:
    log = Log(stepwise=True)
    log.do("label", 0, "neg")
    log.do("submit")
    log.do("reopen")
    log.do("label", 0, "pos")
    assert log.draft.revealed == 3
    assert log.draft.first == ("neg", None, None)


def test_a_trace_that_lost_steps_is_as_long_as_the_events_say() -> None:
    log = Log(n_steps=3)
    log.do("label", 2, "pos")
    assert fold(log.events, 1, stepwise=False).labels == (None, None, "pos")
