"""Acts: what is refused whatever the trace."""

from typing import Any

import pytest

from stepsight.core.errors import UserError
from stepsight.storage.importers.prmbench import _CLASSES
from stepsight.storage.labelling.annotation import ERROR_KINDS, LABELS, Act, check_act


def test_what_a_person_can_do() -> None:
    for act in (
        *(Act("label", "k", 0, label) for label in (*LABELS, None)),
        *(Act("error", "k", 3, kind) for kind in (*ERROR_KINDS, None)),
        *(Act(kind, "k", 1, new) for kind in ("comment", "correction") for new in ("A text.", None)),
        Act("flag", "k", None, "Two problems in one."),
        Act("flag", "k"),
        Act("reveal", "k", None, 2),
        Act("skip", "k", None, "I know the author."),
        *(Act(kind, "k") for kind in ("submit", "reopen", "withdraw")),
        Act("", "k", cause="undo"),
        Act("label", "K" * 64, 0, "pos", seconds=0.25, revealed=1, guideline=1),
    ):
        check_act(act)


def test_kinds_of_error_are_prmbench_s() -> None:
    assert set(ERROR_KINDS) == set(_CLASSES) - {"multi_solutions"}


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (Act("praise", "k", 0, "pos"), "The kind is 'praise'"),
        (Act("decide", "k", 0, "pos"), "The kind is 'decide'"),
        (Act("label", "k", 0, "good"), "The label is 'good'"),
        (Act("label", "k", 0, 1), "The label is 1"),
        (Act("label", "k", 0, ["pos"]), "The label is"),
        (Act("label", "k", None, "pos"), "The step is None"),
        (Act("label", "k", -1, "pos"), "The step is -1"),
        (Act("label", "k", 2**31, "pos"), "The step is 2147483648"),
        (Act("label", "k", True, "pos"), "The step is True"),
        (Act("label", "k", "0", "pos"), "The step is '0'"),  # type: ignore[arg-type]
        (Act("label", "k", 0.0, "pos"), "The step is 0.0"),  # type: ignore[arg-type]
        (Act("error", "k", 0, "typo"), "The kind of error is 'typo'"),
        (Act("error", "k", 0, "multi_solutions"), "The kind of error is 'multi_solutions'"),
        (Act("comment", "k", 0, "  "), "the comment is empty"),
        (Act("comment", "k", 0, "x" * 10_001), "the comment has 10,001 characters"),
        (Act("comment", "k", 0, "a\x00"), "NUL byte"),
        (Act("comment", "k", 0, "\ud800"), "half of a surrogate pair"),
        (Act("comment", "k", 0, 5), "the comment is int"),
        (Act("flag", "k", 0, "Bad."), "The step of flag is 0"),
        (Act("skip", "k"), "the reason for skipping is NoneType"),
        (Act("skip", "k", None, ""), "the reason for skipping is empty"),
        (Act("reveal", "k"), "The reveal is None"),
        (Act("reveal", "k", None, -1), "The reveal is -1"),
        (Act("submit", "k", None, "pos"), "submit came with 'pos'"),
        (Act("submit", "k", 0), "The step of submit is 0"),
        (Act("label", "", 0, "pos"), "The key is ''"),
        (Act("label", "k" * 65, 0, "pos"), "The key is"),
        (Act("label", "a b", 0, "pos"), "The key is 'a b'"),
        (Act("label", "k\n", 0, "pos"), "The key is"),
        (Act("label", None, 0, "pos"), "The key is None"),  # type: ignore[arg-type]
        (Act("label", "k", 0, "pos", cause="again"), "The cause is 'again'"),
        (Act("label", "k", 0, "pos", of=1), "Only undo and redo"),
        (Act("", "k", cause="undo", of=-1), "The of is -1"),
        (Act("label", "k", 0, "pos", seconds=-1), "The seconds are -1"),
        (Act("label", "k", 0, "pos", seconds=float("nan")), "The seconds are nan"),
        (Act("label", "k", 0, "pos", seconds=1e9), "The seconds are 1000000000.0"),
        (Act("label", "k", 0, "pos", seconds=10**400), "The seconds are 1000"),
        (Act("label", "k", 0, "pos", seconds="1"), "The seconds are '1'"),  # type: ignore[arg-type]
        (Act("label", "k", 0, "pos", revealed=-1), "The revealed is -1"),
        (Act("label", "k", 0, "pos", guideline="1"), "The guideline is '1'"),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_what_nobody_can_do(act: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_act(act)
