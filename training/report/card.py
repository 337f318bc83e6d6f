"""An evaluator's card: the part of a report that covers one dataset, restricted to one evaluator.

Behind the report's sections it says how far scores follow the length and the place of a step, how far the evaluator
agrees with people who labelled the dataset in campaigns, beside the agreement among people, and what was measured.
Of people's labels only blind ones count, and those of hidden gold items do not.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

import stepsight
from stepsight.core.errors import UserError
from stepsight.core.hubs.hub_cache import list_fetched
from stepsight.core.metrics.agreement import RaterPair, agreeing, alpha, kappa
from stepsight.core.metrics.bootstrap import Value, Weights
from stepsight.core.metrics.figures import Subject
from stepsight.core.metrics.ratings import Ratings, valid_of
from stepsight.core.metrics.shortcuts import error_is_last, last_by_chance, last_is_least, rank_correlation
from stepsight.core.metrics.table import SILENT, StepTable
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import StoredEvaluator
from stepsight.storage.labelling.campaigns import list_campaigns
from stepsight.storage.labelling.ratings import read_ratings
from stepsight.storage.traces.queries import Dataset
from stepsight.training.evaluate.evaluation import Evaluation, GoldView, Row, evaluate
from stepsight.training.evaluate.judging import with_thresholds
from stepsight.training.report.dataset import dataset_part
from stepsight.training.report.html import Content, Part, Section
from stepsight.training.report.results import (
    EVALUATOR,
    MODE,
    Cells,
    has_gold,
    has_shares,
    head,
    make_table,
    subjects,
)
from stepsight.training.report.tables import CellKind, Column, Table, table_of


@dataclass(frozen=True)
class PeopleAgreement:
    """The agreement of an evaluator's verdicts with the majority label of a campaign.

    `agreeing` is the share of equal verdicts over `steps` steps of `traces` traces, and `kappa` Cohen's kappa.
    `among_people` is the share of equal pairs of labels, by validity, that two people gave to one step.
    """

    campaign: str
    people: int
    traces: int
    steps: int
    agreeing: Value
    kappa: Value
    among_people: Value


def agreement_with_people(
    store: Store, dataset_id: int, subject: Subject, weights: Weights
) -> Iterator[PeopleAgreement]:
    """Yield the agreement with each campaign of a dataset in which a step was labelled that the evaluator judged.
    `weights` are the resamples of the dataset's traces."""
    columns = select(TraceRow.id, TraceRow.digest).where(TraceRow.dataset_id == dataset_id)
    with store.read() as session:
        rows = session.execute(columns.order_by(TraceRow.position))
        places = {(id, digest): place for place, (id, digest) in enumerate(rows)}
    for campaign in list_campaigns(store):
        if campaign.dataset_id != dataset_id:
            continue
        rated = read_ratings(store, campaign).queue
        # A trace that has changed since it was rated has no place.
        of_trace = np.array(
            [places.get((rated_trace.trace_id, rated_trace.digest), -1) for rated_trace in rated.traces], np.int64
        )
        trace = of_trace[rated.last.trace]
        pair = _compared(rated.last, trace, subject)
        if not len(pair):
            continue
        in_dataset = trace >= 0
        yield PeopleAgreement(
            campaign.name,
            len(rated.last.people),
            pair.traces,
            len(pair),
            agreeing(pair, weights),
            kappa(pair, weights),
            alpha(rated.last.validity[:, in_dataset], trace=trace[in_dataset], weights=weights).agreeing,
        )


def _compared(ratings: Ratings, trace: NDArray[np.int64], subject: Subject) -> RaterPair:
    """Return people's majority verdicts beside the evaluator's, on the steps that have both. `trace` is the place
    in the dataset of the trace of each rated step, or -1."""
    table = subject.table
    limit = np.float32(0.5 if subject.outputs.in_words else subject.thresholds.validity)
    verdicts_of = np.where(np.isnan(table.validity), np.nan, table.validity >= limit)
    begins = np.searchsorted(table.trace, np.arange(table.traces + 1))
    counts = np.diff(begins)
    has_row = (trace >= 0) & (ratings.position < counts[trace])
    row = np.where(has_row, begins[trace] + ratings.position, 0)
    verdicts = np.where(has_row, verdicts_of[row], np.nan) if len(verdicts_of) else np.full(len(trace), np.nan)
    return RaterPair.of(valid_of(ratings.majority), verdicts, trace)


_LENGTH = "baseline:length"


def measure_card(store: Store, dataset: Dataset, evaluator: StoredEvaluator, draws: int) -> Part:
    """Measure an evaluator on a dataset by this many bootstrap draws, and return its card. Thresholds that were
    chosen on the dataset are marked. Raises `UserError` in the same cases as `make_card`."""
    measured = with_thresholds(store, dataset, evaluator, force=True)
    return make_card(store, evaluate(store, GoldView(dataset), [measured], draws=draws), evaluator)


def make_card(store: Store, evaluation: Evaluation, evaluator: StoredEvaluator) -> Part:
    """Return the card of an evaluator, named as in `evaluation`. Raises `UserError` if it has no row there."""
    rows = [row for row in evaluation.rows if row.evaluator == evaluator.name]
    name = evaluation.dataset.name
    if not rows:
        raise UserError(
            f"{evaluator.name} has not judged {name}"
            f"{' online, and offline figures say nothing there' if evaluation.warning else ''}.",
            "Score the dataset with it first.",
        )
    modes = {row.mode for row in rows}
    own = replace(
        evaluation,
        rows=[row for row in evaluation.rows if row in rows or (row.is_baseline and row.mode in modes)],
        published=tuple(row for row in evaluation.published if row.names(evaluator.name)),
    )
    part = dataset_part(own)
    if not has_gold(own) and not has_shares(own):
        missing = f"{name} has no gold labels to measure against. What follows needs none."
        part = replace(part, sections=[Section("Solutions and steps", [missing])])
    sections = [
        *part.sections,
        Section("Length and place of a step", [_length_and_place(own)]),
        Section("Agreement with people", [_people(store, own)]),
        Section("What was measured", [_facts(evaluator, rows)]),
    ]
    return replace(part, title=f"{evaluator.name} on {name}", sections=sections)


def _length_and_place(evaluation: Evaluation) -> Content:
    """Return a table of how closely the evaluator's validity follows the length and the position of a step, overall
    and beyond gold."""
    rows = [row for row in subjects(evaluation) if not row.is_baseline]
    outputs = rows[0].subject.outputs
    if not (outputs.has_steps and outputs.has_scores):
        return "The evaluator gives no scores of steps."
    columns = (
        Column("length", "Correlation with length", CellKind.NUMBER),
        Column("length_beyond_gold", "Beyond gold", CellKind.NUMBER),
        Column("last_is_least", "Least step is the last"),
        Column("last_by_chance", "By chance"),
    )
    entries: list[tuple[Row, Cells]] = []
    notes = [
        "Rank correlation of the validity of steps with their number of characters: negative if long steps are"
        " judged less valid. Beyond gold: within the steps that gold calls valid and those that it calls wrong."
    ]
    lengths = {row.mode: row.subject.table for row in evaluation.rows if row.evaluator == _LENGTH}
    weights = evaluation.weights
    for row in rows:
        table, length = row.subject.table, lengths[row.mode]
        length = length.where(table.present[length.trace])
        values = (
            _correlation(table, length, weights, beyond_gold=False),
            _correlation(table, length, weights, beyond_gold=True),
            last_is_least(table, weights),
            last_by_chance(table, weights),
        )
        entries.append((row, head(row) | dict(zip(columns, values, strict=True))))
        notes += [f"{row.evaluator}: {value.reason}" for value in values if value.reason]
    if has_gold(evaluation):
        gold = lengths[rows[-1].mode]
        none = Value.none("")
        of_gold = _correlation_of_gold(gold, weights), none, error_is_last(gold, weights), none
        of_rows = {EVALUATOR: "gold", MODE: ""} | dict(zip(columns, of_gold, strict=True))
        entries.append((rows[-1], of_rows))
        notes.append("Gold: how its labels correlate with length, and the share of first errors in a last step.")
    caption = "how far scores follow the length and the place of a step"
    return make_table(evaluation, "shortcuts", caption, entries, notes)


def _correlation(table: StepTable, lengths: StepTable, weights: Weights, *, beyond_gold: bool) -> Value:
    judged = ~np.isnan(table.validity) & (table.valid != SILENT if beyond_gold else True)
    if not judged.any():
        return Value.none("gold labels no step")
    validity, length = (part.validity[judged].astype(np.float64) for part in (table, lengths))
    group = table.valid[judged] if beyond_gold else np.zeros(int(judged.sum()), np.int64)
    return rank_correlation(validity, -length, table.trace[judged], weights, group)


def _correlation_of_gold(lengths: StepTable, weights: Weights) -> Value:
    labelled = lengths.valid != SILENT
    if not labelled.any():
        return Value.none("")
    gold, length = lengths.valid[labelled].astype(np.float64), -lengths.validity[labelled].astype(np.float64)
    return rank_correlation(gold, length, lengths.trace[labelled], weights)


def _people(store: Store, evaluation: Evaluation) -> Content:
    rows: list[Cells] = [
        {
            Column("campaign", "Campaign", CellKind.TEXT): people.campaign,
            MODE: row.mode.value,
            Column("agreeing", "Same verdict as the majority"): people.agreeing,
            Column("kappa", "Cohen's κ", CellKind.NUMBER): people.kappa,
            Column("among_people", "Two people agree"): people.among_people,
            Column("people", "People", CellKind.COUNT): people.people,
            Column("n_traces", "Traces", CellKind.COUNT): people.traces,
            Column("n_steps", "Steps", CellKind.COUNT): people.steps,
        }
        for row in subjects(evaluation)
        if not row.is_baseline and row.subject.outputs.has_steps
        for people in agreement_with_people(store, evaluation.dataset.id, row.subject, evaluation.weights)
    ]
    if not rows:
        return "Nobody has labelled steps of this dataset blindly that the evaluator has judged."
    notes = (
        "Verdicts on validity. Labels by people who had seen scores, gold or others' labels do not"
        " count, nor does unsure.",
    )
    return table_of("people", "the evaluator and people", rows, notes)


def _facts(evaluator: StoredEvaluator, rows: list[Row]) -> Table:
    fetched = {
        model.repo: model.revision
        for model in list_fetched()
        if evaluator.fingerprint in {each.fingerprint for each in model.descriptions.values()}
    }
    parameters = evaluator.info.get("parameters")
    cut = rows[0].subject.thresholds
    facts = {
        "Name": evaluator.name,
        "Fingerprint": evaluator.fingerprint,
        "Fetched": ", ".join(f"{repo} at {revision}" for repo, revision in fetched.items()),
        "Format": evaluator.format,
        "Attention": evaluator.attention,
        "Gives": evaluator.outputs.value,
        "Parameters": f"{parameters:,}" if parameters else "",
        "Weights": "" if evaluator.is_imported or not parameters else evaluator.dtype,
        "Thresholds": rows[0].on_thresholds or f"{cut.validity:g} and {cut.redundancy:g}, its own",
        "Traces judged": ", ".join(f"{row.n_traces:,} {mode}" for mode, row in {r.mode: r for r in rows}.items()),
        "Measured by": f"StepSight {stepsight.__version__}",
    }
    columns = Column("fact", "Property", CellKind.TEXT), Column("value", "Value", CellKind.TEXT)
    return Table("evaluator", "The evaluator", columns, tuple(pair for pair in facts.items() if pair[1]))
