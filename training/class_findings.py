"""The findings that need three classes, as tables."""

from core.label import Label
from core.metrics import ternary
from core.metrics.value import Value
from training.diagnostics import Decision, by_class, decide, is_three_way
from training.evaluation import Evaluation, Row
from training.findings import EVALUATOR, MODE, make_table, ordered, subjects
from training.tables import Cell, Column, Kind, Table

# Where the table of decision rules is read off; the curve has the rest.
_TAUS = (0.05, 0.1, 0.15, 0.25, 0.5)
_CLASS = (("auc", "AUC"), ("f1", "F1"))


def three_way_rows(found: Evaluation) -> list[Row]:
    """The rows, one per evaluator and mode, of which there is something to tell by class."""
    return [row for row in ordered(subjects(found)) if is_three_way(row.subject)]


def classes(found: Evaluation) -> Table:
    """AUC and F1 of each class: the class-wise diagnostics."""
    columns = [EVALUATOR, MODE]
    columns += [Column(f"{label.text}_{key}", f"{label.text} {title}") for key, title in _CLASS for label in Label]
    cells, told = [], []
    for row in three_way_rows(found):
        figures = by_class(row.subject, found.weights)
        values = [getattr(figures[label], key) for key, _ in _CLASS for label in Label]
        cells.append((row, (row.evaluator, row.mode.value, *values)))
        told += [f"The gold labels no step {label.text}." for label in Label if not figures[label].f1.exists]
    return make_table(found, "classes", "each class against the rest, F1 by argmax", columns, cells, told)


def confusions(found: Evaluation) -> Table:
    """Gold against argmax, in steps."""
    columns = [EVALUATOR, MODE, Column("gold", "Gold", Kind.TEXT)]
    columns += [Column(label.text, f"Predicted {label.text}", Kind.COUNT) for label in Label]
    cells = []
    for row in three_way_rows(found):
        counts = ternary.confusion(ternary.classify(row.subject.table))
        for label in Label:
            cells.append((row, (row.evaluator, row.mode.value, label.text, *map(int, counts[label]))))
    return make_table(found, "confusion", "labels by the gold and by argmax, in steps", columns, cells)


def decisions(found: Evaluation, label: Label = Label.NEU) -> Table:
    """What argmax and thresholds reach for a class."""
    columns = [
        EVALUATOR, MODE, Column("rule", "Rule", Kind.TEXT), Column("predicted", f"Predicted {label.text}"),
        Column("precision", "Precision"), Column("recall", "Recall"), Column("f1", "F1"),
    ]  # fmt: skip
    cells = [(row, (row.evaluator, row.mode.value, *_decision(decide(row.subject.table, label, tau))))
             for row in three_way_rows(found) for tau in (None, *_TAUS)]  # fmt: skip
    caption = f"deciding for {label.text} by argmax, or where its probability reaches a threshold"
    told = ["The rules are shown for their sensitivity; a threshold is to be chosen on other data."]
    return make_table(found, f"{label.text}-decisions", caption, columns, cells, told)


def _decision(found: Decision) -> tuple[Cell, ...]:
    return found.rule, Value(found.predicted), found.precision, found.recall, found.f1
