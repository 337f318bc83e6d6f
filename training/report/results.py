"""The results of an evaluation as tables.

An entry of a table is a row of the evaluation with its cells by their columns, so that a column, its key and its
figure stand in one place.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from stepsight.core.judgment import Mode
from stepsight.core.metrics import ternary
from stepsight.core.metrics.bootstrap import Value
from stepsight.core.metrics.figures import (
    CALIBRATION,
    FIRST_ERRORS,
    METRICS,
    PRMSCORE,
    PROTOCOL,
    SHARES,
    Metric,
    Metrics,
    less_is_better,
)
from stepsight.core.metrics.first_error import Outcome, count_outcomes
from stepsight.core.metrics.published import Published
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.metrics.table import Third
from stepsight.core.scores import Outputs
from stepsight.core.trace import LABEL_NAMES, Label
from stepsight.storage.judgments.evaluators import StoredEvaluator
from stepsight.training.evaluate.diagnostics import (
    by_class,
    decide,
    is_three_way,
    pairs,
    thirds,
)
from stepsight.training.evaluate.evaluation import (
    FEWEST,
    Evaluation,
    Row,
    above_best_baseline,
    minus,
)
from stepsight.training.report.tables import Cell, CellKind, Column, Table, slug, table_of

POSITION = {name: METRICS[name] for name in ("step_auc", "macro_auc")}
"""The metrics that are measured in each third of the solutions."""
CLASS_FIGURES = {"auc": "AUC", "f1": "F1"}
"""The figures of a class against the rest."""
OUTCOMES = {
    Outcome.RIGHT: "Right", Outcome.MISSED: "Missed", Outcome.FALSE_ALARM: "False alarm",
    Outcome.WRONG_STEP: "Another step",
}  # fmt: skip
REDUNDANCY = "redundancy-outcomes"
"""The end of the name of the table of outcomes of redundancy."""
EVALUATOR = Column("evaluator", "Evaluator", CellKind.TEXT)
MODE = Column("mode", "Mode", CellKind.TEXT)
TRACES = Column("n_traces", "Traces", CellKind.COUNT)
_SOURCE = Column("source", "Source", CellKind.TEXT)
_BEYOND = Column("above_baselines", "Beyond its interval", CellKind.TEXT)
# The thresholds in the table of decision rules; the curve has all.
_TAUS = (0.05, 0.1, 0.15, 0.25, 0.5)

Cells = Mapping[Column, Cell]
"""The cells of one row of a table."""
Thirds = Mapping[tuple[str, Mode], dict[str, Value]]
"""Values by evaluator and mode, and by third and figure, such as `early_step_auc`."""


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Return the rows grouped by evaluator, with baselines last."""
    kept = list(rows)
    places = {name: place for place, name in enumerate(dict.fromkeys(row.evaluator for row in kept))}
    return sorted(kept, key=lambda row: (row.is_baseline, places[row.evaluator]))


def subjects(evaluation: Evaluation) -> list[Row]:
    """Return the first row of each evaluator and mode, which holds the figures common to all kinds of error,
    grouped by evaluator, with baselines last."""
    first: dict[tuple[str, Mode], Row] = {}
    for row in evaluation.rows:
        first.setdefault((row.evaluator, row.mode), row)
    return ordered(first.values())


def scored_rows(evaluation: Evaluation, mode: Mode) -> list[Row]:
    """Return the row in the mode `mode` of each evaluator that judges steps."""
    return [row for row in subjects(evaluation) if row.mode == mode and row.subject.outputs.has_steps]


def three_way_rows(evaluation: Evaluation) -> list[Row]:
    """Return the rows of evaluators with three-way probabilities, one for each evaluator and mode."""
    return [row for row in subjects(evaluation) if is_three_way(row.subject)]


def has_pairs(evaluation: Evaluation) -> bool:
    """True if an evaluator that is not a baseline was measured in both modes."""
    return any(not online.is_baseline for online, _ in pairs(evaluation.rows))


def has_gold(evaluation: Evaluation) -> bool:
    """True if gold labels anything that can be measured. Shares do not count."""
    return any(row.n_steps or row.n_solutions for row in evaluation.rows)


def has_shares(evaluation: Evaluation) -> bool:
    """True if a step that was measured has a soft label."""
    return any(row.subject.table.share is not None for row in evaluation.rows)


def make_table(
    evaluation: Evaluation,
    name: str,
    caption: str,
    entries: Iterable[tuple[Row, Cells]],
    notes: Iterable[str] = (),
    beside: Sequence[Cells] = (),
) -> Table:
    """Return a table of entries, with a line above the baselines. The cells `beside` follow behind another line and
    are shown as not measured."""
    kept = list(entries)
    starts = [place for place, (row, _) in enumerate(kept) if row.is_baseline][:1] + [len(kept)] * bool(beside)
    return table_of(
        f"{slug(evaluation.view.name)}-{name}",
        f"{evaluation.view.name}: {caption}",
        [*(cells for _, cells in kept), *beside],
        notes=merged(notes),
        rules=tuple(start for start in starts if start),
        faint=tuple(range(len(kept), len(kept) + len(beside))),
    )


def head(row: Row) -> dict[Column, Cell]:
    """Return the cells that name a row's evaluator and mode."""
    return {EVALUATOR: row.evaluator, MODE: row.mode.value}


def cells(metrics: Metrics, values: Mapping[str, Value], kind: CellKind | None = None) -> dict[Column, Cell]:
    """Return the cells of metrics, which are empty for those that `values` lacks. Each is shown as its metric says,
    or as a `kind` of difference."""
    none = Value.none("")
    return {
        Column(name, metric.title, kind or (CellKind.NUMBER if metric.is_number else CellKind.PERCENT)): values.get(
            name, none
        )
        for name, metric in metrics.items()
    }


def notes(rows: Sequence[Row], names: Iterable[str], traces: int) -> list[str]:
    """Return remarks on missing figures, calibrated thresholds and traces that were not judged."""
    lines: list[str] = []
    chosen = list(names)
    for row in rows:
        reasons = {row.measured[name].reason for name in chosen if name in row.measured} - {""}
        lines += [f"{row.evaluator}: {reason}" for reason in sorted(reasons) if not row.is_baseline]
        if row.n_traces < traces:
            lines.append(f"{row.evaluator}: {row.n_traces:,} of {traces:,} traces judged")
        if row.on_thresholds:
            lines.append(f"{row.evaluator}: {row.on_thresholds}")
    return lines


def merged(notes: Iterable[str]) -> tuple[str, ...]:
    """Merge notes `NAME: REASON` that share a reason into `NAME, NAME: REASON`. Other notes stay as they are, and
    empty ones are left out."""
    by_reason: dict[str, dict[str, None]] = {}
    for note in filter(None, notes):
        names, separator, reason = note.rpartition(": ")
        by_reason.setdefault(reason, {}).update({names: None} if separator else {})
    return tuple(f"{', '.join(names)}: {reason}" if names else reason for reason, names in by_reason.items())


def results(evaluation: Evaluation, mode: Mode, errors: Errors) -> Table:
    """Return a table of the protocol's four figures, and of the difference from the best baseline. Rows of the
    paper that this evaluation lacks follow at the end, marked as published."""
    rows = ordered(row for row in evaluation.rows if (row.mode, row.errors) == (mode, errors))
    compared = [row for row in rows if row.beats.exists]
    # If all rows have the same comparison, it is in the title; otherwise each row's comparison is in a note.
    comparisons = {(row.beats_in, row.rival) for row in compared}
    titles = [f"{METRICS[figure].title} above {rival}" for figure, rival in comparisons]
    above = Column("beats_baseline_by", titles[0] if len(titles) == 1 else "Above best baseline", CellKind.POINTS)
    beyond = {True: "yes", False: "no", None: "too few labels"}
    entries = [
        (
            row,
            {EVALUATOR: row.evaluator, _SOURCE: "measured"}
            | cells(PROTOCOL, row.measured)
            | {
                above: row.beats if row.beats.exists else None,
                _BEYOND: beyond[row.above_baselines] if row.beats.exists else "",
                Column("n_solutions", "Solutions counted", CellKind.COUNT): row.n_solutions,
                Column("n_steps", "Steps counted", CellKind.COUNT): row.n_steps,
            },
        )
        for row in rows
    ]
    paper = [
        printed for printed in evaluation.published if (printed.mode, printed.benchmark.errors) == (mode, errors)
    ]
    beside = [
        cells(PROTOCOL, _figures(printed)) | {EVALUATOR: printed.evaluator, _SOURCE: "published", _BEYOND: ""}
        for printed in paper
    ]
    remarks = notes(rows, PROTOCOL, evaluation.traces)
    remarks += [
        f"{row.evaluator}: compared with {row.rival} in {METRICS[row.beats_in].title}"
        for row in compared
        if len(comparisons) > 1
    ]
    few = f"too few labels: a comparison with the baselines takes {FEWEST} with an error and {FEWEST} without"
    remarks += [few] if any(row.above_baselines is None for row in compared) else []
    remarks += [f"{printed.evaluator}: published in the paper, not measured here" for printed in paper]
    for printed in evaluation.view.reference[:1]:
        if printed.benchmark.traces != evaluation.traces:
            remarks.append(
                f"published figures are of {printed.benchmark.traces:,} traces of this benchmark, these are"
                f" {evaluation.traces:,}, so none is shown"
            )
    caption = f"{errors} errors, {mode}, {evaluation.size}, in percent with 95 % intervals over traces"
    return make_table(evaluation, f"{errors}-{mode}", caption, entries, remarks, beside)


def _figures(paper: Published) -> dict[str, Value]:
    """Return the protocol's figures as the paper prints them."""
    none = Value.none("not published")
    return {name: Value(paper.values[name]) if name in paper.values else none for name in PROTOCOL}


def published(evaluation: Evaluation, errors: Errors) -> Table | None:
    """Return a table of the paper's figures and of the differences of the measured ones, for rows that have both. A
    difference is the measured figure minus the published one. Returns None if no row has both."""
    entries = []
    for row in ordered(row for row in evaluation.rows if row.errors == errors):
        if row.published is None:
            continue
        shown = head(row)
        for name, printed in _figures(row.published).items():
            measured = row.measured[name]
            off = Value.none(measured.reason or "not published")
            if printed.exists and measured.exists:
                off = Value(row.published.difference(name, measured.number))
            shown[Column(name, f"{PROTOCOL[name].title}, published")] = printed
            shown[Column(f"{name}_difference", "Measured − published", CellKind.POINTS)] = off
        entries.append((row, shown))
    caption = f"{errors} errors, beside what the paper prints, to its last digit"
    return make_table(evaluation, f"{errors}-published", caption, entries) if entries else None


def first_error_figures(evaluation: Evaluation) -> Table | None:
    """Return a table of how well first errors are found in each mode, or None if no row has these figures."""

    def traces(row: Row) -> int:
        return len(row.subject.first_errors.trace)

    caption = "whether the first error is found, in percent"
    return measures(evaluation, "first-errors", caption, FIRST_ERRORS, traces)


def calibration_figures(evaluation: Evaluation) -> Table | None:
    """Return a table of the calibration of step validity in each mode, or None if no row has any."""
    caption = "how far step validity is from the share of valid steps (ECE, ten bins; Brier score)"
    return measures(evaluation, "calibration", caption, CALIBRATION)


def measures(
    evaluation: Evaluation,
    name: str,
    caption: str,
    metrics: Metrics,
    traces: Callable[[Row], int] | None = None,
) -> Table | None:
    """Return a table of metrics in every mode, or None if no row has any of them. A metric that all rows lack is
    left out, and the notes say why. `traces` returns the trace count of a row."""
    defined = {
        id(row): {key for key in metrics if key in row.measured and row.measured[key].exists}
        for row in subjects(evaluation)
    }
    rows = [row for row in subjects(evaluation) if defined[id(row)]]
    shown = {key: metric for key, metric in metrics.items() if any(key in keys for keys in defined.values())}
    entries = [
        (row, head(row) | cells(shown, row.measured) | ({TRACES: traces(row)} if traces else {})) for row in rows
    ]
    lacking = {key: metric for key, metric in metrics.items() if key not in shown}
    remarks = [less_is_better(shown), *notes(rows, shown, evaluation.traces), *why_missing(evaluation, lacking)]
    return make_table(evaluation, name, caption, entries, remarks) if shown else None


def why_missing(evaluation: Evaluation, metrics: Metrics) -> list[str]:
    """Return the reasons why metrics are undefined in every row."""
    missing = []
    for key, metric in metrics.items():
        reasons = {row.measured[key].reason for row in evaluation.rows if key in row.measured} - {""}
        missing += [f"{metric.title}: {reason}" for reason in sorted(reasons)[:1]]
    return list(merged(missing))


def prm_score(evaluation: Evaluation) -> Table | None:
    """Return a table of PRMScore and its parts, or None unless the benchmark is PRMBench."""
    metrics = {
        name: Metric(name.removeprefix(PRMSCORE).strip("_").replace("_", " ") or "PRMScore")
        for row in evaluation.rows
        for name in row.measured
        if name.startswith(PRMSCORE)
    }
    return measures(evaluation, "prmscore", "PRMScore by category and class", metrics) if metrics else None


def share_figures(evaluation: Evaluation) -> Table:
    """Return a table of the figures of soft labels in each mode, and of the difference from the best baseline in
    Spearman's correlation. Some of the steps of the evaluation must have a share."""
    ranks = "share_spearman"
    rows = [row for row in subjects(evaluation) if ranks in row.measured]
    entries = []
    for row in rows:
        above = Column("above_baseline", f"{SHARES[ranks].title} above best baseline", CellKind.NUMBER)
        beats, _ = above_best_baseline(row, evaluation.rows, ranks, evaluation.weights)
        table = row.subject.table
        assert table.share is not None
        shared = ~np.isnan(table.share)
        entries.append((
            row,
            head(row)
            | cells(SHARES, row.measured)
            | {above: beats if row.measured[ranks].exists else None}
            | {Column("n_shares", "Steps", CellKind.COUNT): int(shared.sum())}
            | {TRACES: len(np.unique(table.trace[shared]))},
        ))  # fmt: skip
    caption = "validity beside the share of each step, with 95 % intervals over traces"
    remarks = [less_is_better(SHARES), *notes(rows, SHARES, evaluation.traces)]
    return make_table(evaluation, "soft-labels", caption, entries, remarks)


def evaluators_table(evaluators: Sequence[StoredEvaluator]) -> Table:
    """Return a table of the evaluators with their fingerprints, which tell apart evaluators of the same name."""
    titles = {"name": "Evaluator", "format": "Format", "attention": "Attention", "outputs": "Gives",
              "fingerprint": "Fingerprint"}  # fmt: skip
    rows = [
        {Column(key, title, CellKind.TEXT): str(getattr(evaluator, key)) for key, title in titles.items()}
        for evaluator in evaluators
    ]
    return table_of("evaluators", "The evaluators of this report", rows)


def classes(evaluation: Evaluation) -> Table:
    """Return a table of the AUC and F1 of each class against the rest."""
    metrics = {
        f"{label}_{key}": Metric(f"{label} {title}")
        for key, title in CLASS_FIGURES.items()
        for label in LABEL_NAMES
    }
    entries, remarks = [], []
    for row in three_way_rows(evaluation):
        figures = by_class(row.subject.table, evaluation.weights)
        entries.append((row, head(row) | cells(metrics, figures)))
        remarks += [f"The gold labels no step {name}." for name in LABEL_NAMES if not figures[f"{name}_f1"].exists]
    return make_table(evaluation, "classes", "each class against the rest, F1 by argmax", entries, remarks)


def confusions(evaluation: Evaluation) -> Table:
    """Return a table of step counts by gold label and by the label predicted by argmax."""
    entries = []
    for row in three_way_rows(evaluation):
        counts = ternary.confusion(ternary.classify(row.subject.table))
        for gold in Label:
            shown = head(row) | {Column("gold", "Gold", CellKind.TEXT): gold.text}
            for label in Label:
                column = Column(label.text, f"Predicted {label.text}", CellKind.COUNT)
                shown[column] = int(counts[gold][label])
            entries.append((row, shown))
    return make_table(evaluation, "confusion", "labels by the gold and by argmax, in steps", entries)


def decisions(evaluation: Evaluation) -> Table:
    """Return a table of the precision, recall and F1 of predicting neu, by argmax and at several thresholds."""
    entries, label = [], Label.NEU
    for row in three_way_rows(evaluation):
        for tau in (None, *_TAUS):
            rule = decide(row.subject.table, label, tau)
            shown: dict[Column, Cell] = {
                Column("rule", "Rule", CellKind.TEXT): rule.rule,
                Column("predicted", f"Predicted {label.text}"): Value(rule.predicted),
                Column("precision", "Precision"): rule.precision,
                Column("recall", "Recall"): rule.recall,
                Column("f1", "F1"): rule.f1,
            }
            entries.append((row, head(row) | shown))
    caption = f"deciding for {label.text} by argmax, or where its probability reaches a threshold"
    remarks = ["The rules are shown for their sensitivity; a threshold is to be chosen on other data."]
    return make_table(evaluation, f"{label.text}-decisions", caption, entries, remarks)


def position_values(evaluation: Evaluation, errors: Errors) -> Thirds:
    """Return the figures in each third of the solutions. Besides each offline figure, the difference offline minus
    online is given under its name followed by `_gain`."""
    measured = {(row.evaluator, row.mode): thirds(row, evaluation.weights) for row in ordered(evaluation.rows)
                if row.errors == errors and row.subject.outputs.has_steps}  # fmt: skip
    values = {place: dict(figures) for place, figures in measured.items()}
    for (evaluator, mode), figures in measured.items():
        if mode == Mode.OFFLINE and (online := measured.get((evaluator, Mode.ONLINE))):
            values[evaluator, mode] |= {f"{name}_gain": gain for name, gain in minus(figures, online).items()}
    return values


def of_thirds(values: Mapping[str, Value], name: str) -> dict[Third, Value]:
    """Return the values of a figure by third. The result is empty if there are none."""
    return {third: values[f"{third}_{name}"] for third in Third if f"{third}_{name}" in values}


def positions(evaluation: Evaluation, errors: Errors, values: Thirds) -> Table:
    """Return a table of step AUC by third of the solution, and of macro-AUC for evaluators with three classes."""
    caption = f"{errors} errors by the third of the solution"
    return _third_table(evaluation, f"position-{errors}", caption, values, POSITION, CellKind.PERCENT)


def position_gains(evaluation: Evaluation, errors: Errors, values: Thirds) -> Table | None:
    """Return a table of offline minus online by third, or None if no evaluator was measured in both modes."""
    if not has_pairs(evaluation):
        return None
    gains = {f"{name}_gain": metric for name, metric in POSITION.items()}
    caption = f"{errors} errors, offline minus online by the third of the solution, percentage points"
    return _third_table(evaluation, f"position-{errors}-gain", caption, values, gains, CellKind.POINTS)


def _third_table(
    evaluation: Evaluation, name: str, caption: str, values: Thirds, metrics: Metrics, kind: CellKind
) -> Table:
    """Return a table of metrics in each third, of the rows that have any of them."""
    rows = {(row.evaluator, row.mode): row for row in evaluation.rows}
    shown = {
        key: metric for key, metric in metrics.items() if any(of_thirds(of_row, key) for of_row in values.values())
    }
    columns = {
        f"{third}_{key}": Metric(f"{metric.title}, {third}") for key, metric in shown.items() for third in Third
    }
    entries, remarks = [], []
    for place, of_row in values.items():
        row = rows[place]
        if of_row.keys() & columns.keys():
            start: dict[Column, Cell] = {EVALUATOR: row.evaluator}
            start |= head(row) if kind == CellKind.PERCENT else {}
            entries.append((row, start | cells(columns, of_row, kind)))
            for key, metric in shown.items() if not row.is_baseline else ():
                reasons = third_reasons(of_thirds(of_row, key), f"{metric.title} ")
                remarks += [f"{row.evaluator}: {reason}" for reason in reasons]
    return make_table(evaluation, name, caption, entries, remarks)


def third_reasons(values: Mapping[Third, Value], name: str = "") -> list[str]:
    """Return the reasons why thirds have no value. A reason names its thirds unless it applies to all of them."""
    by_reason: dict[str, list[str]] = {}
    for third, value in values.items():
        if value.reason:
            by_reason.setdefault(value.reason, []).append(third.value)
    return [
        reason if len(thirds) == len(Third) else f"{name}{' and '.join(thirds)}, {reason}"
        for reason, thirds in by_reason.items()
    ]


def outcomes(evaluation: Evaluation, of_redundancy: bool = False) -> Table | None:
    """Return a table that counts the traces by outcome, or None if no evaluator has any.

    The outcome says whether the first step judged wrong is the first gold error or a different step, and whether
    only one of the two exists. With `of_redundancy`, solutions called redundant are compared instead.
    """
    kinds = [kind for kind in OUTCOMES if not (of_redundancy and kind == Outcome.WRONG_STEP)]
    entries, remarks = [], []
    for row in subjects(evaluation):
        subject = row.subject
        errors = subject.redundant_solutions if of_redundancy else subject.first_errors
        counts = count_outcomes(errors)
        total = sum(counts[kind] for kind in kinds)
        # Some verdicts say only whether steps are redundant, and not whether they are valid.
        on_redundancy = subject.outputs == Outputs.VERDICT and bool((subject.table.redundancy > 0).any())
        if not total if of_redundancy else on_redundancy or not subject.outputs.has_steps:
            continue
        shown = {Column(kind.value, OUTCOMES[kind], CellKind.COUNT): counts[kind] for kind in kinds}
        entries.append((row, head(row) | shown | {TRACES: total}))
        remarks += [f"{row.evaluator}: {errors.left_out}"] if errors.left_out and not row.is_baseline else []
    name, caption = "outcomes", "traces by outcome: the first step judged wrong, against the gold’s first error"
    if of_redundancy:
        name, caption = REDUNDANCY, "traces by outcome: called redundant, against having a redundant step"
    return make_table(evaluation, name, caption, entries, remarks) if entries else None
