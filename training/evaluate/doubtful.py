"""Ranking the gold labels of a dataset by the evidence against them."""

import re
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sqlalchemy import func, select

from stepsight.core.arrays import Floats64, Ints
from stepsight.core.equations.evaluator import checks_of, faults, finding
from stepsight.core.errors import ShowProgress, UserError
from stepsight.core.judgment import Mode
from stepsight.core.metrics.reasoneval import Errors
from stepsight.storage.database.labelling_schema import CampaignRow, EventRow
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.columns import Gold, read_gold, read_table, starts
from stepsight.storage.judgments.evaluators import (
    StoredEvaluator,
    evaluators_of,
    find_thresholds,
    read_versions,
    with_distinct_names,
)
from stepsight.storage.labelling.consensus import StepVotes, read_votes
from stepsight.storage.traces.queries import Dataset, iterate_traces
from stepsight.training.evaluate.evaluation import GoldView, evaluate
from stepsight.training.evaluate.judging import with_thresholds
from stepsight.training.evaluate.strength import read_card

# Labels that this many more people contradict than confirm come before all others except failing equations.
_CONTRADICTED = 2
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class Juror:
    """An evaluator that speaks for or against labels. Its `threshold` is its validity threshold."""

    name: str
    family: str
    threshold: float
    in_words: bool


@dataclass(frozen=True)
class DoubtfulLabel:
    """A gold label with the evidence against it.

    `trace_id` is the database id of the trace and `trace` its id in the dataset. `step` is the number of the step
    from 1, and `valid` its label. `doubt` is 1 minus the probability of the label, from 0 to 1. `validities` pairs
    each evaluator that gives the step a score with the validity. `finding` describes a failing equation of the
    step, or is "", and `holds` is True if it states equations and all hold. `votes` are the labels of people, or
    None.
    """

    trace_id: int
    trace: str
    step: int
    valid: bool
    doubt: float
    validities: tuple[tuple[Juror, float], ...]
    finding: str = ""
    holds: bool = False
    votes: StepVotes | None = None

    def reasons(self) -> list[str]:
        """Return the reasons against the label, each in a few words."""
        finding = [self.finding] if self.finding and self.valid else []
        votes = self.votes.against(self.valid) if self.votes else ""
        against = [(juror, value) for juror, value in self.validities if (value >= juror.threshold) != self.valid]
        word = "wrong" if self.valid else "valid"
        verdicts = [
            f"{juror.name} calls it {word}" if juror.in_words else f"{juror.name} gives validity {value:.2f}"
            for juror, value in against
        ]
        families = {juror.family for juror, _ in self.validities}
        opposed = {juror.family for juror, _ in against}
        share = f"{len(opposed)} of {len(families)}" if opposed < families else f"all {len(families)}"
        share = "both" if len(families) == 2 else share
        agree = [f"{share} families of evaluators contradict it"] if len(opposed) > 1 else []
        holds = ["its equations hold"] if self.holds and not self.valid else []
        return [*finding, *filter(None, [votes]), *verdicts, *agree, *holds]

    def reason(self) -> str:
        """Return a sentence that gives the reasons against the label, and a failing equation that supports it."""
        against = "; ".join(self.reasons()) or "little speaks against it"
        support = f"; but {self.finding}" if self.finding and not self.valid else ""
        return f"Gold calls step {self.step} {'valid' if self.valid else 'wrong'}: {against}{support}."

    def as_json(self) -> dict[str, Any]:
        """Return the label as JSON values."""
        votes = self.votes
        return {
            "id": self.trace,
            "step": self.step,
            "gold": "valid" if self.valid else "wrong",
            "doubt": round(self.doubt, 6),
            "reason": self.reason(),
            "validities": {juror.name: round(value, 6) for juror, value in self.validities},
            "finding": self.finding,
            "people": None if votes is None else {"valid": votes.valid, "wrong": votes.wrong},
        }


@dataclass(frozen=True, eq=False)
class LabelRanking:
    """The gold labels of validity of a dataset, the most doubtful first. `mode` is the mode of the judgments that
    were read, or None if no evaluator has a vote, and `notes` say what was left out and why."""

    labels: tuple[DoubtfulLabel, ...]
    mode: Mode | None
    notes: tuple[str, ...]

    def reasons(self, trace_ids: Collection[int]) -> dict[int, str]:
        """Return the reasons against labels of these traces, each in a sentence, by database id."""
        labels = (label for label in self.labels if label.trace_id in trace_ids)
        return {label.trace_id: label.reason() for label in labels if label.reasons()}


def rank_labels(
    store: Store,
    dataset: Dataset,
    progress: ShowProgress = lambda items, total, unit: iter(items),
    *,
    only_closed: bool = False,
) -> LabelRanking:
    """Rank the gold labels of validity of a dataset.

    A step that gold calls valid although one of its equations fails comes before all others; a label that people
    contradict follows. A step that gold calls wrong and one of whose equations fails comes last. Only evaluators
    that clear the trivial baselines on the dataset have a vote; if none has, only labels that an equation or a
    person confirms or contradicts are ranked. Judgments are read in offline mode, or in online mode if traces end
    at their first error or there are no others. With `only_closed`, the labels of open campaigns do not count.

    Raises `UserError` if there is no gold, if neither evaluators with a vote nor people have judged the dataset and
    no equation contradicts its gold, or if it has only one problem.
    """
    gold = read_gold(store, dataset)
    labelled = np.flatnonzero(gold.valid >= 0)
    if not len(labelled):
        raise UserError(f"{dataset.name} has no gold labels to doubt.", "Choose a labelled dataset.")
    mode, judged, notes = _scores(store, gold)
    scores, excluded = _voters(store, dataset, judged, mode)
    votes = read_votes(store, gold, only_closed=only_closed)
    findings, holding, problem = _read_texts(store, gold, progress)
    owners = problem[gold.trace[labelled]]
    if len(np.unique(owners)) < 2:
        raise UserError(f"{dataset.name} has labels of one problem only.", "Doubts need labels of other problems.")
    if scores:
        notes += [f"No vote for {excluded}."] if excluded else []
    else:
        nobody = f"No evaluator has judgments of the steps of {dataset.name}"
        hint = "Score it, or import published scores, first."
        if judged:
            nobody = f"No evaluator here is strong enough to doubt labels of {dataset.name}: {excluded}"
            hint = "Have a stronger evaluator judge it, or import published scores."
        if not votes and not any(gold.valid[place] == 1 for place in findings):
            raise UserError(f"{nobody}.", hint)
        notes.append(f"{nobody}. Only failing equations and people speak against labels here.")
    jurors = [
        Juror(row.name, family_of(row.name), find_thresholds(store, row.id).validity, row.outputs.in_words)
        for row, _ in scores
    ]
    valid = gold.valid[labelled]
    failing = np.array([place in findings for place in labelled.tolist()], np.bool_)
    net = np.array([votes[place].net if place in votes else 0 for place in labelled.tolist()], np.float64)
    # It uses scikit-learn's regression, which takes a second to import.
    from stepsight.core.metrics.doubtful import doubts

    doubt = doubts(
        np.column_stack([*(values[labelled] for _, values in scores), np.empty((len(labelled), 0))]),
        failing,
        valid,
        owners,
        families=[juror.family for juror in jurors],
        votes=net,
    )
    contradicted = np.where(valid == 1, -net, net) >= _CONTRADICTED
    order = np.lexsort((-doubt, ~contradicted, np.where(failing, 1 - 2 * valid, 0)))
    columns = [(juror, values) for juror, (_, values) in zip(jurors, scores, strict=True)]
    labels = [
        DoubtfulLabel(
            int(gold.trace_ids[gold.trace[place]]),
            gold.ids[gold.trace[place]],
            int(gold.position[place]) + 1,
            bool(gold.valid[place]),
            float(doubt[row]),
            tuple((juror, float(values[place])) for juror, values in columns if not np.isnan(values[place])),
            findings.get(place, ""),
            place in holding,
            votes.get(place),
        )
        for row in order.tolist()
        for place in [int(labelled[row])]
        # Without an evaluator's vote, there is no evidence about the other steps.
        if scores or place in votes or (failing[row] and gold.valid[place])
    ]
    return LabelRanking(tuple(labels), mode if scores else None, tuple(notes))


UNRANKED = LabelRanking((), None, ())
"""Stands for a ranking that is still being computed."""


def rank_traces(store: Store, dataset: Dataset) -> LabelRanking:
    """Rank the traces of a dataset by their most doubtful label: like `rank_labels`, but with one label per trace.
    Labels of open campaigns, which not everybody may see, do not count. Raises the same errors."""
    ranking = rank_labels(store, dataset, only_closed=True)
    firsts: dict[int, DoubtfulLabel] = {}
    for label in ranking.labels:
        firsts.setdefault(label.trace_id, label)
    return replace(ranking, labels=tuple(firsts.values()))


def version_of_doubts(store: Store, dataset: Dataset) -> Hashable:
    """Return a value that changes whenever `rank_traces` would return something else."""
    closed = select(func.count(CampaignRow.id)).where(CampaignRow.closed.is_not(None)).scalar_subquery()
    with store.read() as session:
        labels = session.execute(select(func.max(EventRow.id), closed)).one()
        versions = read_versions(session, dataset.id)
    return versions.traces, tuple(versions.verdicts.items()), tuple(labels)


def _scores(store: Store, gold: Gold) -> tuple[Mode, list[tuple[StoredEvaluator, Floats64]], list[str]]:
    """Read the validity of every step of the dataset by evaluator. Return the mode that was read, the validities,
    NaN where an evaluator gave none, and notes.

    Evaluators without any score of a step are left out, and so are those whose scores equal another one's.
    """
    stored = evaluators_of(store, gold.dataset.id)
    # Equations are checked again.
    evaluators = with_distinct_names(row for row in stored if row.outputs.has_steps and row.outputs != "checks")
    modes = [Mode.ONLINE, Mode.OFFLINE] if gold.ends_at_first_error() else [Mode.OFFLINE, Mode.ONLINE]
    judged: list[tuple[StoredEvaluator, Floats64]] = []
    notes = []
    for mode in modes:
        for evaluator in evaluators:
            table = read_table(store, gold, evaluator.id, mode)
            if not len(table) or np.isnan(table.validity).all():
                continue
            validity = np.full(len(gold.label), np.nan)
            validity[starts(gold.counts)[table.trace] + table.position] = table.validity
            same = next(
                (earlier for earlier, other in judged if np.array_equal(other, validity, equal_nan=True)), None
            )
            if same is None:
                judged.append((evaluator, validity))
            else:
                notes.append(f"{evaluator.name} has the same scores as {same.name}, so they count once.")
        if judged:
            return mode, judged, notes
    return modes[0], [], []


def _voters(
    store: Store, dataset: Dataset, judged: Sequence[tuple[StoredEvaluator, Floats64]], mode: Mode
) -> tuple[list[tuple[StoredEvaluator, Floats64]], str]:
    """Return the evaluators that have a vote, with their validities, and the others in words, each with the reason.

    An evaluator has a vote if it clears the trivial baselines on the dataset, unless it is a shipped demonstration
    that is weak elsewhere.
    """
    measured = [with_thresholds(store, dataset, evaluator, force=True) for evaluator, _ in judged]
    rows = evaluate(store, GoldView(dataset), measured, [mode], force=True).rows if judged else []
    above = {row.evaluator: row.above_baselines for row in rows if row.errors == Errors.INVALID}
    why = {
        None: "too few labels to compare it with the trivial baselines",
        False: "does not clear the trivial baselines",
    }
    voters, excluded = [], []
    for evaluator, validity in judged:
        is_weak = read_card(evaluator.name).is_weak
        if above.get(evaluator.name) and not is_weak:
            voters.append((evaluator, validity))
        else:
            reason = "a demonstration" if is_weak else why[above.get(evaluator.name)]
            excluded.append(f"{evaluator.name} ({reason})")
    return voters, ", ".join(excluded)


def family_of(name: str) -> str:
    """Return the family of an evaluator: the first word of its name, without digits and in lower case. Members of
    one family are likely to have learned the same mistakes."""
    word = _WORD.search(name)
    return word[0].lower() if word else name


def _read_texts(store: Store, gold: Gold, progress: ShowProgress) -> tuple[dict[int, str], set[int], Ints]:
    """Return the failing equation of each step that has one, by the step's place in the dataset; the places of the
    steps whose equations all hold; and the number of the problem of each trace."""
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
