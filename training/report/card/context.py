"""The sections of a card on people, speed and verifications."""

from collections.abc import Iterator, Sequence

import stepsight
from stepsight.core.hubs.hub_cache import list_fetched
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import StoredEvaluator
from stepsight.storage.judgments.judgments import seconds_per_trace
from stepsight.storage.judgments.verifications import list_verifications
from stepsight.training.evaluate.evaluation import Evaluation, Row
from stepsight.training.evaluate.people import agreement_with_people, labels_version
from stepsight.training.report.html import Content, Section
from stepsight.training.report.results import MODE, subjects
from stepsight.training.report.tables import Cell, CellKind, Column, Table


def context_sections(store: Store, evaluation: Evaluation, evaluator: StoredEvaluator) -> Iterator[Section]:
    """Yield the sections. `evaluation` holds the rows of the evaluator and of the baselines."""
    rows = [row for row in evaluation.rows if not row.is_baseline]
    yield Section("Agreement with people", [_people(store, evaluation)])
    yield Section("Speed", [_speed(store, evaluation, evaluator)])
    yield Section("What was measured", [*_verified(store, evaluator), _facts(evaluator, rows)])


def card_version(store: Store, dataset_id: int) -> tuple[int, ...]:
    """Return a version key that changes whenever a card may change without new judgments."""
    return *labels_version(store, dataset_id), len(list_verifications(store))


def _people(store: Store, evaluation: Evaluation) -> Content:
    columns = (
        Column("campaign", "Campaign", CellKind.TEXT),
        MODE,
        Column("agreeing", "Same verdict as the majority"),
        Column("kappa", "Cohen's κ", CellKind.NUMBER),
        Column("among_people", "Two people agree"),
        Column("people", "People", CellKind.COUNT),
        Column("n_traces", "Traces", CellKind.COUNT),
        Column("n_steps", "Steps", CellKind.COUNT),
    )
    rows: list[tuple[Cell, ...]] = []
    for row in subjects(evaluation):
        if row.is_baseline or not row.subject.outputs.has_steps:
            continue
        for one in agreement_with_people(store, evaluation.dataset.id, row.subject, evaluation.weights):
            counts = one.people, one.traces, one.steps
            rows.append((one.campaign, row.mode.value, one.agreeing, one.kappa, one.among_people, *counts))
    if not rows:
        return "Nobody has labelled steps of this dataset blindly that the evaluator has judged."
    notes = (
        "Verdicts on validity. Labels by people who had seen scores, gold or others' labels do not"
        " count, nor does unsure.",
    )
    return Table("people", "the evaluator and people", columns, tuple(rows), notes)


def _speed(store: Store, evaluation: Evaluation, evaluator: StoredEvaluator) -> Content:
    if evaluator.is_imported:
        return "Its scores were imported; how long it took is not known."
    found = seconds_per_trace(store, evaluation.dataset.id, evaluator.id)
    if not found:
        return "Too few judgments were made here to say how long one takes."
    rows = tuple((mode.value, f"{found[mode]:.3g}", f"{3600 / found[mode]:,.0f}") for mode in found)
    columns = (
        MODE,
        Column("seconds", "Seconds a trace", CellKind.TEXT),
        Column("hourly", "Traces an hour", CellKind.TEXT),
    )
    steps = evaluation.dataset.steps / evaluation.dataset.traces
    notes = (
        f"As it judged here, pauses of more than ten minutes left out. A trace has {steps:.1f} steps on average.",
    )
    return Table("speed", "Time between judgments", columns, rows, notes)


def _verified(store: Store, evaluator: StoredEvaluator) -> Iterator[str]:
    """Yield a sentence for each verification of the evaluator, or one that says that there is none."""
    found = [one for one in list_verifications(store) if one.fingerprint == evaluator.fingerprint]
    for one in found:
        yield f"{one.words}; {one.repo} at revision {one.revision}, weights in {one.dtype}."
    if not found:
        yield "No published figure of it has been verified with these weights."


def _facts(evaluator: StoredEvaluator, rows: Sequence[Row]) -> Table:
    found = {
        one.repo: one.revision
        for one in list_fetched()
        if evaluator.fingerprint in {each.fingerprint for each in one.descriptions.values()}
    }
    parameters = evaluator.info.get("parameters")
    cut = rows[0].subject.thresholds
    facts = {
        "Name": evaluator.name,
        "Fingerprint": evaluator.fingerprint,
        "Fetched": ", ".join(f"{repo} at {revision}" for repo, revision in found.items()),
        "Format": evaluator.format,
        "Attention": evaluator.attention,
        "Gives": evaluator.outputs.value,
        "Parameters": f"{parameters:,}" if parameters else "",
        "Weights": "" if evaluator.is_imported or not parameters else evaluator.dtype,
        "Thresholds": rows[0].on_thresholds or f"{cut.validity:g} and {cut.redundancy:g}, its own",
        "Traces judged": ", ".join(
            f"{row.n_traces:,} {row.mode}" for row in {one.mode: one for one in rows}.values()
        ),
        "Measured by": f"StepSight {stepsight.__version__}",
    }
    columns = Column("fact", "Property", CellKind.TEXT), Column("value", "Value", CellKind.TEXT)
    return Table("evaluator", "The evaluator", columns, tuple(pair for pair in facts.items() if pair[1]))
