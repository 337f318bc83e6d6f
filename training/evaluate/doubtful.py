"""Ranking the gold labels of a dataset by how much there is against them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stepsight.core.arrays import Floats64, Ints
from stepsight.core.equations.evaluator import checks_of, faults, finding
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.metrics.doubtful import doubts
from stepsight.core.metrics.table import SILENT
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.columns import Gold, read_gold, read_table, starts
from stepsight.storage.judgments.evaluators import StoredEvaluator, evaluators_of
from stepsight.storage.traces.queries import Dataset, iterate_traces

Progress = Callable[[Iterable[Any], int, str], Iterator[Any]]


@dataclass(frozen=True)
class DoubtfulLabel:
    """A gold label with what there is against it.

    `trace` is the trace's id in the dataset, `step` the number of the step from 1, and `valid` its label. `doubt`
    is 1 minus the probability of the label, from 0 to 1. `validities` maps evaluators to their validity of the
    step. `finding` describes a failing equation of the step, or is "", and `holds` is True if it states equations
    and all hold.
    """

    trace: str
    step: int
    valid: bool
    doubt: float
    validities: dict[str, float]
    finding: str = ""
    holds: bool = False

    @property
    def reason(self) -> str:
        """A sentence that says what stands against the label."""
        against = [
            f"{name} gives {value:.2f}" for name, value in self.validities.items() if (value >= 0.5) != self.valid
        ]
        found = [self.finding] if self.finding and self.valid else []
        holds = ["its equations hold"] if self.holds and not self.valid else []
        said = "; ".join([*found, *against, *holds]) or "little stands against it"
        return f"Gold calls step {self.step} {'valid' if self.valid else 'wrong'}: {said}."

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.trace,
            "step": self.step,
            "gold": "valid" if self.valid else "wrong",
            "doubt": round(self.doubt, 6),
            "reason": self.reason,
            "validities": {name: round(value, 6) for name, value in self.validities.items()},
            "finding": self.finding,
        }


def rank_labels(
    store: Store,
    dataset: Dataset,
    names: Sequence[str] = (),
    mode: Mode = Mode.OFFLINE,
    progress: Progress = lambda items, total, unit: iter(items),
) -> list[DoubtfulLabel]:
    """Return all gold labels of validity, the most doubtful first.

    A step that gold calls valid although one of its equations fails comes before all others. `names` are the
    evaluators whose stored judgments in `mode` are read, by default all of the dataset. Raises `UserError` if there
    is no gold, no judgment, or only one problem.
    """
    gold = read_gold(store, dataset)
    labelled = np.flatnonzero(gold.valid != SILENT)
    if not len(labelled):
        raise UserError(f"{dataset.name} has no gold labels to doubt.", "Choose a labelled dataset.")
    scores = _validities(store, gold, _chosen(store, dataset, names), mode)
    if not scores:
        raise UserError(
            f"no evaluator has {mode} judgments of {dataset.name}.", "Score it, or import published scores, first."
        )
    findings, holding, problem = _read_texts(store, gold, progress)
    failing = np.array([place in findings for place in labelled.tolist()], np.bool_)
    numbers = np.column_stack([scores[name][labelled] for name in scores])
    owners = problem[gold.trace[labelled]]
    if len(np.unique(owners)) < 2:
        raise UserError(f"{dataset.name} has labels of one problem only.", "Doubts need labels of other problems.")
    valid = gold.valid[labelled]
    doubt = doubts(numbers, failing, valid, owners)
    order = np.lexsort((-doubt, ~(failing & (valid == 1))))
    return [
        DoubtfulLabel(
            gold.ids[gold.trace[place]],
            int(gold.position[place]) + 1,
            bool(gold.valid[place]),
            float(doubt[row]),
            {name: float(scores[name][place]) for name in scores if not np.isnan(scores[name][place])},
            findings.get(place, ""),
            place in holding,
        )
        for row in order.tolist()
        for place in [int(labelled[row])]
    ]


def _chosen(store: Store, dataset: Dataset, names: Sequence[str]) -> list[StoredEvaluator]:
    stored = evaluators_of(store, dataset.id)
    unknown = [name for name in names if name not in {one.name for one in stored}]
    if unknown:
        known = ", ".join(one.name for one in stored) or "none"
        raise UserError(f"{unknown[0]!r} has not judged {dataset.name}.", f"These have: {known}.")
    return [one for one in stored if not names or one.name in names]


def _validities(store: Store, gold: Gold, evaluators: Sequence[StoredEvaluator], mode: Mode) -> dict[str, Floats64]:
    """Return the validity of every step of the dataset by evaluator, NaN where it gave none. Evaluators without
    any score are left out."""
    first = starts(gold.counts)
    found = {}
    for evaluator in evaluators:
        table = read_table(store, gold, evaluator.id, mode)
        if not len(table) or np.isnan(table.validity).all():
            continue
        validity = np.full(len(gold.label), np.nan)
        validity[first[table.trace] + table.position] = table.validity
        found[evaluator.name] = validity
    return found


def _read_texts(store: Store, gold: Gold, progress: Progress) -> tuple[dict[int, str], set[int], Ints]:
    """Return the failing equation of each step that has one, by the step's place in the dataset; the places of the
    steps that state equations of which none fails; and the number of the problem of each trace."""
    findings: dict[int, str] = {}
    stating: set[int] = set()
    problems: dict[str, int] = {}
    numbers, start = [], 0
    for trace in progress(iterate_traces(store, gold.dataset.id), len(gold.ids), "traces"):
        numbers.append(problems.setdefault(" ".join(trace.problem.split()), len(problems)))
        for substep, (owner, checks) in enumerate(zip(trace.owners.tolist(), checks_of(trace), strict=True)):
            if checks:
                stating.add(start + owner)
            if wrong := faults(checks):
                findings.setdefault(start + owner, finding(trace, substep, wrong[0]))
        start += len(trace.steps)
    return findings, stating - findings.keys(), np.array(numbers, np.int64)
