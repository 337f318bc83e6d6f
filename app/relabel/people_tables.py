"""Who agrees with whom, as tables: pairs of people, each with the others, and with the gold."""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from app.relabel.agreement_tables import reasons
from core.agreement import Level, agreeing_with_others, alpha, alpha_draws, several
from core.metrics.bootstrap import Floats, Weights
from core.metrics.items import ONE_CLASS
from core.metrics.kappa import RaterPair, agreeing, kappa
from core.metrics.paired import difference
from core.metrics.ratings import UNSURE, valid_of
from core.metrics.value import Value
from storage.labelling.ratings import RatedTraces
from training.tables import Cell, Column, Kind, Table

MAJORITY = "the majority"
"""Named beside people, compared with the gold."""

_TRACES = Column("traces", "traces", Kind.COUNT)


def pair_table(rated: RatedTraces, weights: Weights) -> Table:
    """Cohen's kappa of every two people who share a trace, and how often they name the same first error."""
    ratings, traces = rated.last, np.arange(len(rated.traces))
    rows: list[tuple[Cell, ...]] = []
    told = []
    for first, second in combinations(range(len(ratings.people)), 2):
        pair = RaterPair.of(ratings.labels[first], ratings.labels[second], ratings.trace)
        errors = RaterPair.of(ratings.first_errors[first], ratings.first_errors[second], traces)
        if not len(pair) and not len(errors):
            continue
        names = ratings.people[first], ratings.people[second]
        value = kappa(pair, weights)
        same = agreeing(pair, weights), len(errors), agreeing(errors, weights)
        rows.append((*names, pair.traces, len(pair), value, *same))
        told.append((" and ".join(names), value))
    return Table(
        "pairs",
        "Every two people: Cohen's kappa and shared verdicts, with 95 % intervals over traces",
        (
            Column("first", "", Kind.TEXT),
            Column("second", "", Kind.TEXT),
            _TRACES,
            Column("steps", "steps", Kind.COUNT),
            Column("kappa", "kappa", Kind.NUMBER),
            Column("agreeing", "same label, %"),
            Column("known", "traces whose first error both tell", Kind.COUNT),
            Column("first_error", "same first error, %"),
        ),
        tuple(rows),
        reasons(told),
    )


def annotator_table(rated: RatedTraces, weights: Weights) -> Table:
    """Each person with all others, and the alpha of the others alone: where it is higher, the person lowers it."""
    ratings = rated.last
    everybody = alpha(ratings.labels, Level.ORDINAL).alpha
    draws = alpha_draws(ratings.labels, Level.ORDINAL, ratings.trace, weights) if everybody.exists else None
    rows: list[tuple[Cell, ...]] = []
    told = []
    for person, name in enumerate(ratings.people):
        codes = ratings.codes[person]
        labelled = int((~np.isnan(ratings.labels[person])).sum())
        counts = int(ratings.answers[person].sum()), labelled, int((codes == UNSURE).sum())
        with_others = agreeing_with_others(ratings.labels, person, ratings.trace, weights)
        without, change = _without(ratings.labels, person, ratings.trace, weights, everybody, draws)
        rows.append((name, *counts, with_others, without, change))
        told.append((name, without))
    return Table(
        "annotators",
        "Each person: agreement with the others, and what alpha (labels in order) is without the person",
        (
            Column("annotator", "annotator", Kind.TEXT),
            _TRACES,
            Column("labels", "labels", Kind.COUNT),
            Column("unsure", "unsure", Kind.COUNT),
            Column("agreeing", "same label as others, %"),
            Column("without", "alpha without", Kind.NUMBER),
            Column("change", "rises by", Kind.NUMBER),
        ),
        tuple(rows),
        reasons(told),
    )


def _without(
    labels: Floats, person: int, trace: NDArray[np.int64], weights: Weights, everybody: Value, draws: Floats | None
) -> tuple[Value, Value]:
    """The alpha of all others, and that minus everybody's, on the same resamples."""
    others = np.delete(labels, person, axis=0)
    value = alpha(others, Level.ORDINAL).alpha
    if not value.exists or draws is None:
        return value, Value.none(value.reason or everybody.reason)
    if not several(trace):
        return value, Value(value.number - everybody.number)
    return value, difference(value, everybody, alpha_draws(others, Level.ORDINAL, trace, weights), draws)


def gold_table(rated: RatedTraces, weights: Weights, name: str, caption: str) -> Table:
    """Each person, and the majority, against the benchmark's own labels, and against all it says of validity."""
    ratings, rows, told = rated.last, list[tuple[Cell, ...]](), []
    for person, labels in (*zip(ratings.people, ratings.labels, strict=True), (MAJORITY, ratings.majority)):
        of_labels = RaterPair.of(labels, rated.gold, ratings.trace)
        of_validity = RaterPair.of(valid_of(labels), rated.valid, ratings.trace)
        if not len(of_validity):
            continue
        cells: list[Cell] = [person]
        for what, pair in (("labels", of_labels), ("validity", of_validity)):
            value = _kappa_with_gold(pair, weights)
            cells += [len(pair), agreeing(pair, weights), value]
            told.append((f"{what} of {person}", value))
        rows.append(tuple(cells))
    return Table(
        name,
        caption,
        (
            Column("annotator", "annotator", Kind.TEXT),
            Column("steps", "steps with a gold label", Kind.COUNT),
            Column("accuracy", "same label, %"),
            Column("kappa", "kappa of labels", Kind.NUMBER),
            Column("valid_steps", "steps with gold validity", Kind.COUNT),
            Column("valid_accuracy", "same validity, %"),
            Column("valid_kappa", "kappa of validity", Kind.NUMBER),
        ),
        tuple(rows),
        reasons(told),
        rules=(len(rows) - 1,) if rows else (),
    )


def _kappa_with_gold(pair: RaterPair, weights: Weights) -> Value:
    """Where the gold never says but one thing, kappa is 0 whatever people say."""
    return Value.none(ONE_CLASS) if len(np.unique(pair.second)) == 1 else kappa(pair, weights)
