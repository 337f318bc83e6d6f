"""Acts: what is refused whatever the trace."""

from typing import Any

import pytest

from stepsight.core.errors import UserError
from stepsight.storage.importers.prmbench import _CLASSES
from stepsight.storage.labelling.annotation import ERROR_KINDS, LABELS, NewEvent, check_new_event


def test_what_a_person_can_do() -> None:
    for act in (
        *(NewEvent("label", "k", 0, label) for label in (*LABELS, None)),
        *(NewEvent("error", "k", 3, kind) for kind in (*ERROR_KINDS, None)),
        *(NewEvent(kind, "k", 1, new) for kind in ("comment", "correction") for new in ("A text.", None)),
        NewEvent("flag", "k", None, "Two problems in one."),
        NewEvent("flag", "k"),
        NewEvent("reveal", "k", None, 2),
        NewEvent("skip", "k", None, "I know the author."),
        *(NewEvent(kind, "k") for kind in ("submit", "reopen", "withdraw")),
        NewEvent("", "k", cause="undo"),
        NewEvent("label", "K" * 64, 0, "pos", seconds=0.25, revealed=1, guideline=1),
    ):
        check_new_event(act)


def test_kinds_of_error_are_prmbench_s() -> None:
    assert set(ERROR_KINDS) == set(_CLASSES) - {"multi_solutions"}


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (NewEvent("praise", "k", 0, "pos"), "The kind is 'praise'"),
        (NewEvent("decide", "k", 0, "pos"), "The kind is 'decide'"),
        (NewEvent("label", "k", 0, "good"), "The label is 'good'"),
        (NewEvent("label", "k", 0, 1), "The label is 1"),
        (NewEvent("label", "k", 0, ["pos"]), "The label is"),
        (NewEvent("label", "k", None, "pos"), "The step is None"),
        (NewEvent("label", "k", -1, "pos"), "The step is -1"),
        (NewEvent("label", "k", 2**31, "pos"), "The step is 2147483648"),
        (NewEvent("label", "k", True, "pos"), "The step is True"),
        (NewEvent("label", "k", "0", "pos"), "The step is '0'"),  # type: ignore[arg-type]
        (NewEvent("label", "k", 0.0, "pos"), "The step is 0.0"),  # type: ignore[arg-type]
        (NewEvent("error", "k", 0, "typo"), "The kind of error is 'typo'"),
        (NewEvent("error", "k", 0, "multi_solutions"), "The kind of error is 'multi_solutions'"),
        (NewEvent("comment", "k", 0, "  "), "the comment is empty"),
        (NewEvent("comment", "k", 0, "x" * 10_001), "the comment has 10,001 characters"),
        (NewEvent("comment", "k", 0, "a\x00"), "NUL byte"),
        (NewEvent("comment", "k", 0, "\ud800"), "half of a surrogate pair"),
        (NewEvent("comment", "k", 0, 5), "the comment is int"),
        (NewEvent("flag", "k", 0, "Bad."), "The step of flag is 0"),
        (NewEvent("skip", "k"), "the reason for skipping is NoneType"),
        (NewEvent("skip", "k", None, ""), "the reason for skipping is empty"),
        (NewEvent("reveal", "k"), "The reveal is None"),
        (NewEvent("reveal", "k", None, -1), "The reveal is -1"),
        (NewEvent("submit", "k", None, "pos"), "submit came with 'pos'"),
        (NewEvent("submit", "k", 0), "The step of submit is 0"),
        (NewEvent("label", "", 0, "pos"), "The key is ''"),
        (NewEvent("label", "k" * 65, 0, "pos"), "The key is"),
        (NewEvent("label", "a b", 0, "pos"), "The key is 'a b'"),
        (NewEvent("label", "k\n", 0, "pos"), "The key is"),
        (NewEvent("label", None, 0, "pos"), "The key is None"),  # type: ignore[arg-type]
        (NewEvent("label", "k", 0, "pos", cause="again"), "The cause is 'again'"),
        (NewEvent("label", "k", 0, "pos", of=1), "Only undo and redo"),
        (NewEvent("", "k", cause="undo", of=-1), "The of is -1"),
        (NewEvent("label", "k", 0, "pos", seconds=-1), "The seconds are -1"),
        (NewEvent("label", "k", 0, "pos", seconds=float("nan")), "The seconds are nan"),
        (NewEvent("label", "k", 0, "pos", seconds=1e9), "The seconds are 1000000000.0"),
        (NewEvent("label", "k", 0, "pos", seconds=10**400), "The seconds are 1000"),
        (NewEvent("label", "k", 0, "pos", seconds="1"), "The seconds are '1'"),  # type: ignore[arg-type]
        (NewEvent("label", "k", 0, "pos", revealed=-1), "The revealed is -1"),
        (NewEvent("label", "k", 0, "pos", guideline="1"), "The guideline is '1'"),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_what_nobody_can_do(act: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_new_event(act)
