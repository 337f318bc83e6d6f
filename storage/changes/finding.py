"""Finding the thing to rename or delete from the parameters of an address or a command."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from stepsight.storage.jobs.job_changes import ChangeableJobs
from stepsight.storage.judgments.score_changes import ChangeableScores
from stepsight.storage.labelling.campaigns import ChangeableCampaign
from stepsight.storage.people.changes import Changeable
from stepsight.storage.traces.dataset_changes import ChangeableDataset

Parameters = Mapping[str, str]


class _Kind(NamedTuple):
    thing: type[Changeable[Any]]
    find: Callable[[Parameters], Changeable[Any]]


_KINDS = {
    "dataset": _Kind(ChangeableDataset, lambda given: ChangeableDataset(given.get("dataset", ""))),
    "scores": _Kind(
        ChangeableScores,
        lambda given: ChangeableScores(
            given.get("dataset", ""), _number(given, "evaluator"), given.get("called", "")
        ),
    ),
    "job": _Kind(ChangeableJobs, lambda given: ChangeableJobs((_number(given, "job"),))),
    "ended-jobs": _Kind(ChangeableJobs, lambda given: ChangeableJobs()),
    "campaign": _Kind(ChangeableCampaign, lambda given: ChangeableCampaign(_number(given, "campaign"))),
}
KINDS: Mapping[str, type[Changeable[Any]]] = {name: kind.thing for name, kind in _KINDS.items()}
"""The kinds of thing by the name that they have in addresses."""


def find_thing(kind: str, given: Parameters) -> Changeable[Any]:
    """Return the thing of one of `KINDS` to which `given` refers.

    `given` may hold the name of a `dataset`, the id of an `evaluator` or its name or fingerprint (`called`), and
    the id of a `job` or a `campaign`. The store is not accessed until the thing is read or changed.
    """
    return _KINDS[kind].find(given)


def _number(given: Parameters, name: str) -> int:
    """Return the id in a parameter, or 0 if there is none."""
    text = given.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 12 else 0
