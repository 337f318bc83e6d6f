"""The results of an evaluation as tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from stepsight.core.judgment import Mode
from stepsight.core.label import Label
from stepsight.core.metrics import ternary
from stepsight.core.metrics.bootstrap import Value
from stepsight.core.metrics.figures import CALIBRATION, FIRST_ERRORS, SHARES
from stepsight.core.metrics.first_error import Outcome, count_outcomes
from stepsight.core.metrics.published import Published
from stepsight.core.metrics.published import published as published_rows
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.metrics.table import Third
from stepsight.core.scores import Outputs
from stepsight.storage.judgments.evaluators import StoredEvaluator
from stepsight.training.evaluate.diagnostics import (
    RuleFigures,
    by_class,
    by_retroactive_change,
    decide,
    is_three_way,
    offline_gain,
    pairs,
    thirds,
)
from stepsight.training.evaluate.evaluation import FEWEST, RIVALRY, Evaluation, Row, compare
from stepsight.training.report.tables import Cell, CellKind, Column, Table, slug

PROTOCOL = {"sol_f1": "Sol-F1", "sol_auc": "Sol-AUC", "step_f1": "Step-F1", "step_auc": "Step-AUC"}
RIVAL_TITLES = PROTOCOL | SHARES
THREE_WAY = {
    "accuracy": "Accuracy", "macro_f1": "Macro-F1", "macro_auc": "Macro-AUC",
    "neg_auc": "neg AUC", "neu_auc": "neu AUC", "pos_auc": "pos AUC",
}  # fmt: skip
PRMSCORE = "prmscore"
EVALUATOR = Column("evaluator", "Evaluator", CellKind.TEXT)
MODE = Column("mode", "Mode", CellKind.TEXT)
TRACES = Column("n_traces", "Traces", CellKind.COUNT)


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Return the rows grouped by evaluator, with baselines last."""
    kept = list(rows)
    places = {name: place for place, name in enumerate(dict.fromkeys(row.evaluator for row in kept))}
    return sorted(kept, key=lambda row: (row.is_baseline, places[row.evaluator]))


def measured_on(evaluation: Evaluation) -> str:
    """Return the dataset's name, followed by the group, if any, and by `patched` if the labels are patched."""
    parts = (evaluation.dataset.name, evaluation.group, "patched" if evaluation.patch else "")
    return ", ".join(part for part in parts if part)


def make_table(
    evaluation: Evaluation,
    name: str,
    caption: str,
    columns: Sequence[Column],
    rows: Iterable[tuple[Row, tuple[Cell, ...]]],
    notes: Iterable[str] = (),
) -> Table:
    """Return a table in which each row belongs to a row of the evaluation. A line separates the baselines."""
    kept = list(rows)
    baselines = [i for i, (row, _) in enumerate(kept) if row.is_baseline]
    return Table(
        name=f"{slug(measured_on(evaluation))}-{name}",
        caption=f"{measured_on(evaluation)}: {caption}",
        columns=tuple(columns),
        rows=tuple(cells for _, cells in kept),
        notes=merged(notes),
        rules=tuple(baselines[:1]) if baselines[:1] != [0] else (),
    )


def results(evaluation: Evaluation, mode: Mode, errors: Errors) -> Table:
    """Return a table of the protocol's four figures, and of the difference from the best baseline. Rows of the
    paper that this evaluation lacks follow at the end, marked as published."""
    rows = ordered(row for row in evaluation.rows if (row.mode, row.errors) == (mode, errors))
    columns = [
        EVALUATOR,
        Column("source", "Source", CellKind.TEXT),
        *(Column(name, title) for name, title in PROTOCOL.items()),
        Column("beats_baseline_by", "Above best baseline", CellKind.POINTS),
        Column("above_baselines", "Beyond its interval", CellKind.TEXT),
        Column("n_solutions", "Solutions", CellKind.COUNT),
        Column("n_steps", "Steps", CellKind.COUNT),
    ]
    cells = [
        (row, (row.evaluator, "measured", *_values(row, PROTOCOL), *_against(row), row.n_solutions, row.n_steps))
        for row in rows
    ]
    beside = [one for one in evaluation.published if (one.mode, one.benchmark.errors) == (mode, errors)]
    printed: list[tuple[Cell, ...]] = [
        (one.evaluator, "published", *_printed(one), None, "", None, None) for one in beside
    ]
    compared = [row for row in rows if row.beats.exists]
    remarks = notes(rows, PROTOCOL, evaluation.traces)
    remarks += [
        f"{row.evaluator}: compared with the best baseline in {RIVAL_TITLES[row.beats_in]}"
        for row in compared
        if row.beats_in != RIVALRY[0]
    ]
    few = f"too few labels: a comparison with the baselines takes {FEWEST} with an error and {FEWEST} without"
    remarks += [few] if any(row.above_baselines is None for row in compared) else []
    remarks += [f"{one.evaluator}: published in the paper's {one.table}, not measured here" for one in beside]
    remarks += _other_traces(evaluation)
    caption = f"{errors} errors, {mode}, {evaluation.size}, in percent with 95 % intervals over traces"
    table = make_table(evaluation, f"{errors}-{mode}", caption, columns, cells, remarks)
    start = len(table.rows)
    return replace(
        table,
        rows=table.rows + tuple(printed),
        rules=table.rules + ((start,) if printed else ()),
        faint=tuple(range(start, start + len(printed))),
    )


def _other_traces(evaluation: Evaluation) -> list[str]:
    """Return a remark if the paper used a different number of traces of this benchmark."""
    printed = published_rows(evaluation.dataset.kind, evaluation.group)[:1]
    return [
        f"published figures are of {one.benchmark.traces:,} traces of this benchmark, these are"
        f" {evaluation.traces:,}, so none is shown"
        for one in printed
        if one.benchmark.traces != evaluation.traces
    ]


def _printed(one: Published) -> tuple[Value, ...]:
    """Return the protocol's figures as the paper prints them."""
    none = Value.none("not published")
    return tuple(Value(one.values[name]) if name in one.values else none for name in PROTOCOL)


def published(evaluation: Evaluation, errors: Errors) -> Table | None:
    """Return a table of the paper's figures and of the differences of the measured ones, for rows that have both. A
    difference is the measured figure minus the published one. Returns None if no row has both."""
    rows = [row for row in ordered(evaluation.rows) if row.errors == errors and row.published]
    columns = [EVALUATOR, MODE, Column("table", "Table", CellKind.TEXT)]
    for name, shown in PROTOCOL.items():
        columns += [
            Column(name, f"{shown}, published"),
            Column(f"{name}_difference", "Measured − published", CellKind.POINTS),
        ]
    cells = []
    for row in rows:
        one = row.published
        if one is None:
            continue
        pairs = [(value, _off(row, one, name)) for name, value in zip(PROTOCOL, _printed(one), strict=True)]
        cells.append((row, (row.evaluator, row.mode.value, one.table, *(cell for pair in pairs for cell in pair))))
    caption = f"{errors} errors, beside what the paper prints, to its last digit"
    return make_table(evaluation, f"{errors}-published", caption, columns, cells) if cells else None


def _off(row: Row, one: Published, name: str) -> Value:
    measured = row.measured[name].value
    if name not in one.values or not measured.exists:
        return Value.none(measured.reason or "not published")
    return Value(one.difference(name, measured.number))


def _values(row: Row, names: Iterable[str]) -> tuple[Value, ...]:
    none = Value.none("")
    return tuple(row.measured[name].value if name in row.measured else none for name in names)


def _against(row: Row) -> tuple[Value | None, str]:
    words = {True: "yes", False: "no", None: "too few labels"}
    return (row.beats, words[row.above_baselines]) if row.beats.exists else (None, "")


def notes(rows: Sequence[Row], names: Iterable[str], traces: int) -> list[str]:
    """Return remarks on missing figures, calibrated thresholds and traces that were not judged."""
    lines: list[str] = []
    chosen = list(names)
    for row in rows:
        reasons = {value.reason for value in _values(row, chosen)} - {""}
        lines += [f"{row.evaluator}: {reason}" for reason in sorted(reasons) if not row.is_baseline]
        if row.n_traces < traces:
            lines.append(f"{row.evaluator}: {row.n_traces:,} of {traces:,} traces judged")
        if row.on_thresholds:
            lines.append(f"{row.evaluator}: {row.on_thresholds}")
    return lines


def merged(notes: Iterable[str]) -> tuple[str, ...]:
    """Merge notes `NAME: REASON` that share a reason into `NAME, NAME: REASON`. Other notes stay as they are."""
    by_reason: dict[str, dict[str, None]] = {}
    for note in notes:
        names, separator, reason = note.rpartition(": ")
        by_reason.setdefault(reason, {}).update({names: None} if separator else {})
    return tuple(f"{', '.join(names)}: {reason}" if names else reason for reason, names in by_reason.items())


def first_error_figures(evaluation: Evaluation) -> Table | None:
    """Return a table of how well first errors are found in each mode, or None if no row has these figures."""

    def traces(row: Row) -> int:
        return len(row.subject.first_errors.trace)

    caption = "whether the first error is found"
    return measures(evaluation, "first-errors", caption, FIRST_ERRORS, CellKind.PERCENT, traces)


def calibration_figures(evaluation: Evaluation) -> Table | None:
    """Return a table of the calibration of step validity in each mode, or None if no row has any."""
    caption = "how far step validity is from the share of valid steps (ECE, ten bins; Brier score), lower is better"
    return measures(evaluation, "calibration", caption, CALIBRATION, CellKind.NUMBER)


def measures(
    evaluation: Evaluation,
    name: str,
    caption: str,
    titles: Mapping[str, str],
    kind: CellKind,
    traces: Callable[[Row], int] | None = None,
) -> Table | None:
    """Return a table of the figures in `titles`, in every mode, or None if no row has any of these figures. A
    figure that all rows lack is left out, and the notes say why. `traces` returns the trace count of a row."""
    rows = [row for row in ordered(subjects(evaluation)) if any(value.exists for value in _values(row, titles))]
    shown = [key for key in titles if any(_values(row, [key])[0].exists for row in rows)]
    if not shown:
        return None
    columns = [EVALUATOR, MODE, *(Column(key, titles[key], kind) for key in shown)]
    columns += [TRACES] if traces else []
    cells = [
        (row, (row.evaluator, row.mode.value, *_values(row, shown), *([traces(row)] if traces else [])))
        for row in rows
    ]
    lacking = {key: title for key, title in titles.items() if key not in shown}
    remarks = notes(rows, shown, evaluation.traces) + why_missing(evaluation, lacking)
    return make_table(evaluation, name, caption, columns, cells, remarks)


def why_missing(evaluation: Evaluation, titles: Mapping[str, str]) -> list[str]:
    """Return the reasons why the figures in `titles` are undefined in every row."""
    missing = []
    for key, title in titles.items():
        reasons = {_values(row, [key])[0].reason for row in evaluation.rows} - {""}
        missing += [f"{title}: {reason}" for reason in sorted(reasons)[:1]]
    return list(merged(missing))


def prm_titles(evaluation: Evaluation) -> dict[str, str]:
    """Return the titles of PRMScore and of its parts, keyed by figure. The result is empty unless the benchmark is
    PRMBench."""
    keys = dict.fromkeys(key for row in evaluation.rows for key in row.measured if key.startswith(PRMSCORE))
    return {key: key.removeprefix(PRMSCORE).strip("_").replace("_", " ") or "PRMScore" for key in keys}


def subjects(evaluation: Evaluation) -> list[Row]:
    """Return the first row of each evaluator and mode, which holds the figures common to all kinds of error."""
    first: dict[tuple[str, Mode], Row] = {}
    for row in evaluation.rows:
        first.setdefault((row.evaluator, row.mode), row)
    return list(first.values())


def scored_rows(evaluation: Evaluation, mode: Mode) -> list[Row]:
    """Return the row in the mode `mode` of each evaluator that judges steps."""
    return [row for row in ordered(subjects(evaluation)) if row.mode == mode and row.subject.outputs.has_steps]


def evaluators_table(evaluators: Sequence[StoredEvaluator]) -> Table:
    """Return a table of the evaluators with their fingerprints, which tell apart evaluators of the same name."""
    keys = {"name": "Evaluator", "format": "Format", "attention": "Attention", "outputs": "Gives",
            "fingerprint": "Fingerprint"}  # fmt: skip
    columns = tuple(Column(key, title, CellKind.TEXT) for key, title in keys.items())
    rows = tuple((one.name, one.format, one.attention, one.outputs.value, one.fingerprint) for one in evaluators)
    return Table("evaluators", "The evaluators of this report", columns, rows)


# The thresholds in the table of decision rules; the curve has all.
_TAUS = (0.05, 0.1, 0.15, 0.25, 0.5)
_CLASS = (("auc", "AUC"), ("f1", "F1"))


def three_way_rows(evaluation: Evaluation) -> list[Row]:
    """Return the rows of evaluators with three-way probabilities, one for each evaluator and mode."""
    return [row for row in ordered(subjects(evaluation)) if is_three_way(row.subject)]


def classes(evaluation: Evaluation) -> Table:
    """Return a table of the AUC and F1 of each class against the rest."""
    columns = [EVALUATOR, MODE]
    columns += [Column(f"{label.text}_{key}", f"{label.text} {title}") for key, title in _CLASS for label in Label]
    cells, remarks = [], []
    for row in three_way_rows(evaluation):
        figures = by_class(row.subject, evaluation.weights)
        values = [getattr(figures[label], key) for key, _ in _CLASS for label in Label]
        cells.append((row, (row.evaluator, row.mode.value, *values)))
        remarks += [f"The gold labels no step {label.text}." for label in Label if not figures[label].f1.exists]
    return make_table(evaluation, "classes", "each class against the rest, F1 by argmax", columns, cells, remarks)


def confusions(evaluation: Evaluation) -> Table:
    """Return a table of step counts by gold label and by the label predicted by argmax."""
    columns = [EVALUATOR, MODE, Column("gold", "Gold", CellKind.TEXT)]
    columns += [Column(label.text, f"Predicted {label.text}", CellKind.COUNT) for label in Label]
    cells = []
    for row in three_way_rows(evaluation):
        counts = ternary.confusion(ternary.classify(row.subject.table))
        for label in Label:
            cells.append((row, (row.evaluator, row.mode.value, label.text, *map(int, counts[label]))))
    return make_table(evaluation, "confusion", "labels by the gold and by argmax, in steps", columns, cells)


def decisions(evaluation: Evaluation, label: Label = Label.NEU) -> Table:
    """Return a table of the precision, recall and F1 of predicting a class, by argmax and at several thresholds."""
    columns = [
        EVALUATOR, MODE, Column("rule", "Rule", CellKind.TEXT), Column("predicted", f"Predicted {label.text}"),
        Column("precision", "Precision"), Column("recall", "Recall"), Column("f1", "F1"),
    ]  # fmt: skip
    cells = [(row, (row.evaluator, row.mode.value, *_decision(decide(row.subject.table, label, tau))))
             for row in three_way_rows(evaluation) for tau in (None, *_TAUS)]  # fmt: skip
    caption = f"deciding for {label.text} by argmax, or where its probability reaches a threshold"
    remarks = ["The rules are shown for their sensitivity; a threshold is to be chosen on other data."]
    return make_table(evaluation, f"{label.text}-decisions", caption, columns, cells, remarks)


def _decision(rule: RuleFigures) -> tuple[Cell, ...]:
    return rule.rule, Value(rule.predicted), rule.precision, rule.recall, rule.f1


POSITION = {"step_auc": "Step-AUC", "macro_auc": "Macro-AUC"}
OUTCOMES = {
    Outcome.RIGHT: "Right", Outcome.MISSED: "Missed", Outcome.FALSE_ALARM: "False alarm",
    Outcome.WRONG_STEP: "Wrong step",
}  # fmt: skip

REDUNDANCY = "redundancy-outcomes"
"""The end of the name of the table of outcomes of redundancy."""

Thirds = Mapping[tuple[str, Mode], dict[Third, dict[str, Value]]]


def differences(evaluation: Evaluation) -> Table | None:
    """Return a table of online minus offline figures, paired by trace, or None if no evaluator was measured in both
    modes."""
    columns = [EVALUATOR, Column("errors", "Errors", CellKind.TEXT)]
    columns += [Column(name, title, CellKind.POINTS) for name, title in PROTOCOL.items()]
    columns += [TRACES]
    cells = []
    for online, offline in pairs(ordered(evaluation.rows)):
        comparison = compare(online, offline, evaluation.weights)
        values = [comparison.differences[name] for name in PROTOCOL]
        cells.append((online, (online.evaluator, online.errors.value, *values, comparison.n_traces)))
    if not has_pairs(evaluation):
        return None
    caption = "online minus offline, in percentage points with 95 % intervals of the paired difference"
    return make_table(evaluation, "online-minus-offline", caption, columns, cells)


def has_pairs(evaluation: Evaluation) -> bool:
    """True if an evaluator that is not a baseline was measured in both modes."""
    return any(not online.is_baseline for online, _ in pairs(evaluation.rows))


def position_values(evaluation: Evaluation, errors: Errors) -> Thirds:
    """Return the figures in each third of the solutions, keyed by evaluator and mode. Besides each offline figure,
    the difference offline minus online is given under its name followed by `_gain`."""
    measured = {(row.evaluator, row.mode): thirds(row, evaluation.weights) for row in ordered(evaluation.rows)
                if row.errors == errors and row.subject.outputs.has_steps}  # fmt: skip
    values: dict[tuple[str, Mode], dict[Third, dict[str, Value]]] = {}
    for key, parts in measured.items():
        values[key] = {third: {name: m.value for name, m in part.items()} for third, part in parts.items()}
        online = measured.get((key[0], Mode.ONLINE))
        if key[1] == Mode.OFFLINE and online is not None:
            for name in parts[Third.EARLY]:
                for third, gain in offline_gain(online, parts, name).items():
                    values[key][third][f"{name}_gain"] = gain
    return values


def positions(evaluation: Evaluation, errors: Errors, values: Thirds) -> Table:
    """Return a table of step AUC by third of the solution, and of macro-AUC for evaluators with three classes."""
    names = [name for name in POSITION if any(name in part[Third.EARLY] for part in values.values())]
    columns = [EVALUATOR, MODE]
    columns += [Column(f"{third}_{name}", f"{POSITION[name]}, {third}") for name in names for third in Third]
    return _by_third(
        evaluation, f"position-{errors}", f"{errors} errors by the third of the solution", columns, names, values
    )


def position_gains(evaluation: Evaluation, errors: Errors, values: Thirds) -> Table | None:
    """Return a table of offline minus online by third, or None if no evaluator was measured in both modes."""
    if not has_pairs(evaluation):
        return None
    gains = {key: part for key, part in values.items() if any(name.endswith("_gain") for name in part[Third.EARLY])}
    names = [f"{name}_gain" for name in POSITION if any(f"{name}_gain" in p[Third.EARLY] for p in gains.values())]
    columns = [EVALUATOR]
    columns += [Column(f"{third}_{name}", f"{POSITION[name.removesuffix('_gain')]}, {third}", CellKind.POINTS)
                for name in names for third in Third]  # fmt: skip
    caption = f"{errors} errors, offline minus online by the third of the solution, percentage points"
    return _by_third(evaluation, f"position-{errors}-gain", caption, columns, names, gains)


def _by_third(
    evaluation: Evaluation, name: str, caption: str, columns: Sequence[Column], names: Sequence[str], values: Thirds
) -> Table:
    rows = {(row.evaluator, row.mode): row for row in evaluation.rows}
    cells, remarks = [], []
    none = Value.none("")
    for key, parts in values.items():
        shown = [parts[third].get(figure, none) for figure in names for third in Third]
        head = (key[0], key[1].value) if MODE in columns else (key[0],)
        cells.append((rows[key], (*head, *shown)))
        remarks += _third_reasons(rows[key], parts, names)
    return make_table(evaluation, name, caption, columns, cells, remarks)


def _third_reasons(row: Row, parts: Mapping[Third, Mapping[str, Value]], names: Sequence[str]) -> list[str]:
    if row.is_baseline:
        return []
    remarks = []
    for name in names:
        values = {third: figures[name] for third, figures in parts.items() if name in figures}
        remarks += [
            f"{row.evaluator}: {reason}"
            for reason in third_reasons(values, f"{POSITION[name.removesuffix('_gain')]} ")
        ]
    return remarks


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
    rows = [row for row in ordered(subjects(evaluation)) if of_redundancy or _says_validity(row)]
    kinds = [kind for kind in OUTCOMES if not (of_redundancy and kind == Outcome.WRONG_STEP)]
    columns = [EVALUATOR, MODE, *(Column(kind.value, OUTCOMES[kind], CellKind.COUNT) for kind in kinds), TRACES]
    cells, remarks = [], []
    for row in rows:
        errors = row.subject.redundant_solutions if of_redundancy else row.subject.first_errors
        counts = count_outcomes(errors)
        shown = [counts[kind] for kind in kinds]
        if of_redundancy and not sum(shown):
            continue
        cells.append((row, (row.evaluator, row.mode.value, *shown, sum(shown))))
        remarks += [f"{row.evaluator}: {errors.left_out}"] if errors.left_out and not row.is_baseline else []
    name, caption = "outcomes", "the first step judged wrong against the first error, in traces"
    if of_redundancy:
        name, caption = REDUNDANCY, "solutions called redundant against those with a redundant step, in traces"
    return make_table(evaluation, name, caption, columns, cells, remarks) if cells else None


def _says_validity(row: Row) -> bool:
    """True if the evaluator judges whether steps are valid, and not only whether they are redundant."""
    subject = row.subject
    on_redundancy = subject.outputs == Outputs.VERDICT and bool((subject.table.redundancy > 0).any())
    return subject.outputs.has_steps and not on_redundancy


def changes(evaluation: Evaluation, errors: Errors) -> Table | None:
    """Return a table of errors by how later steps changed validity, or None if no evaluator was measured in both
    modes."""
    if not has_pairs(evaluation):
        return None
    columns = [
        EVALUATOR,
        Column("validity", "Validity", CellKind.TEXT),
        Column("steps", "Steps", CellKind.COUNT),
        Column("wrong", "With an error", CellKind.COUNT),
        Column("share_wrong", "Share with an error"),
        Column("online", "Judged correctly online"),
        Column("offline", "Judged correctly offline"),
    ]
    cells = []
    for online, offline in pairs(ordered(row for row in evaluation.rows if row.errors == errors)):
        if not online.subject.outputs.has_steps:
            continue
        for kind, part in by_retroactive_change(online, offline).items():
            head = (online.evaluator, kind, part.steps, part.wrong, part.share_wrong)
            cells += [(online, (*head, part.online, part.offline))] if part.steps else []
    caption = f"{errors} errors, steps by retroactive change: validity fell or rose by 0.1 or more, or stayed"
    return make_table(evaluation, f"change-{errors}", caption, columns, cells)
