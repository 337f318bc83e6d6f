"""Evaluating evaluators on a stored dataset, from their stored judgments.

Every evaluation includes the trivial baselines. All evaluators share the same resamples of the traces, so
differences between evaluators are paired. The paper's figures for the dataset are shown beside the measured ones.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from stepsight.core.errors import UserError
from stepsight.core.files.label_patch import Patch
from stepsight.core.judgment import Mode
from stepsight.core.metrics.binary import McNemar, mcnemar
from stepsight.core.metrics.bootstrap import DRAWS, Value, Weights, difference, resamples
from stepsight.core.metrics.figures import Subject, as_json, common, figures, prm_scores, protocol, three_way
from stepsight.core.metrics.published import Published, published
from stepsight.core.metrics.reasoneval import CATEGORIES, Errors, Level, kinds_of_error
from stepsight.core.metrics.shortcuts import PREFIX, Baseline, baselines_of
from stepsight.core.metrics.table import StepTable
from stepsight.core.scores import Outputs
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.columns import Gold, build_columns, read_gold, read_table
from stepsight.storage.judgments.evaluators import Calibration
from stepsight.storage.labelling.disputes import apply_patch
from stepsight.storage.traces.queries import Dataset, iterate_traces
from stepsight.training.data.transforms import draw_kept
from stepsight.training.evaluate.judging import MeasuredEvaluator

ENDS_AT_ERROR = (
    "The traces of {name} stop at their first error, so the missing ending gives the error away offline: the"
    " rule that a last step without an answer is wrong is nearly perfect there (baseline:last-step). Offline"
    " figures say nothing about later evidence; online figures are shown instead."
)

CUT_AT_ERROR = (
    "The traces of {name} stop at their first error. Cut at random, they no longer all end with it, but a step with"
    " steps after it is still never wrong (baseline:last-step), and offline figures depend on that. Traces"
    " that continue beyond the error, as imported with --continued, do not have this flaw."
)


@dataclass(frozen=True)
class GoldView:
    """The gold that evaluators are measured against: that of a `dataset` or, if `group` is set, of the traces of
    that group.

    `patch` is a label patch whose labels replace gold labels (`storage.labelling.disputes`). If `cut` is given, it
    is the seed for cutting each trace after a step chosen uniformly at random, and evaluators need hindsight
    judgments. The paper's figures are for whole traces with the original labels.
    """

    dataset: Dataset
    group: str = ""
    patch: Patch | None = None
    cut: int | None = None

    @property
    def name(self) -> str:
        """The dataset's name, followed by the group, if any, and by `patched` if the labels are patched."""
        return ", ".join(filter(None, (self.dataset.name, self.group, "patched" if self.patch else "")))

    @property
    def reference(self) -> tuple[Published, ...]:
        """The paper's figures for the benchmark, which may be of more traces than the dataset has."""
        return published(self.dataset.kind, self.group) if self.patch is None and self.cut is None else ()

    def read(self, store: Store) -> tuple[Gold, NDArray[np.bool_], str]:
        """Return the gold labels of the dataset, a mask of shape (n,) that selects the traces of the group, and a
        warning that says why offline figures mean little, or "".

        Raises `UserError` if the dataset has no such group or the patch does not fit.
        """
        gold = read_gold(store, self.dataset)
        inside: NDArray[np.bool_] = np.array([self.group in ("", group) for group in gold.groups], np.bool_)
        if self.group and not inside.any():
            names = ", ".join(sorted(set(gold.groups) - {""})[:10])
            raise UserError(
                f"{self.dataset.name} has no group {self.group!r}.",
                f"Its groups are {names}." if names else "It has none.",
            )
        # A patch of the labels does not change where traces were cut.
        gives_away = ENDS_AT_ERROR if self.cut is None else CUT_AT_ERROR
        warning = gives_away.format(name=self.dataset.name) if gold.ends_at_first_error() else ""
        gold = apply_patch(gold, self.patch) if self.patch else gold
        return gold if self.cut is None else cut_at_random(gold, self.cut), inside, warning


BaselineTables = dict[Mode, list[tuple[Baseline, StepTable]]]


def read_tables(
    store: Store, gold: Gold, evaluators: Sequence[MeasuredEvaluator], trivial: BaselineTables
) -> Iterator[tuple[MeasuredEvaluator, Mode, StepTable]]:
    """Yield the tables of the baselines (`trivial`) and of the evaluators' judgments, mode by mode. To save memory,
    the judgments are read one evaluator at a time."""
    for mode, tables in trivial.items():
        for baseline, table in tables:
            yield MeasuredEvaluator(baseline.name, baseline.outputs), mode, table
        for evaluator in evaluators:
            assert evaluator.id is not None
            table = read_table(store, gold, evaluator.id, mode)
            if len(table):
                yield evaluator, mode, table


def baseline_tables(store: Store, gold: Gold, modes: Sequence[Mode]) -> BaselineTables:
    """Build the table of each baseline in each mode. The texts are read only once.

    Baselines that score sub-steps are included if any step has several sub-steps. If the scores of a baseline do
    not depend on the mode, all modes share one table.
    """
    baselines = baselines_of(has_substeps=bool((gold.substeps > 1).any()))
    views = [(baseline, mode) for baseline in baselines for mode in (modes if baseline.by_mode else modes[:1])]
    probs = [np.empty((int(gold.substeps.sum()), 3), np.float32) for _ in views]
    done = 0
    for place, trace in enumerate(iterate_traces(store, gold.dataset.id)):
        end = done + len(trace.substeps)
        seen = trace if gold.kept is None else replace(trace, steps=trace.steps[: gold.kept[place]])
        for part, (baseline, mode) in zip(probs, views, strict=True):
            part[done:end] = np.nan
            part[done : done + len(seen.substeps)] = baseline.score(seen, mode).probs
        done = end
    none = np.full(len(gold.ids), np.nan)
    tables = {
        (baseline.name, mode): build_columns(gold, probs.pop(0), none).where(gold.in_view)
        for baseline, mode in views
    }
    return {
        mode: [(baseline, tables[baseline.name, mode if baseline.by_mode else modes[0]]) for baseline in baselines]
        for mode in modes
    }


def cut_at_random(gold: Gold, seed: int) -> Gold:
    """Return the gold labels with each trace cut after a step chosen uniformly at random, using `seed`."""
    kept = [draw_kept(int(count), seed, place) for place, count in enumerate(gold.counts)]
    return replace(gold, kept=np.array(kept, np.int64))


MODES = (Mode.OFFLINE, Mode.ONLINE)
Question = tuple[Mode, Errors]
"""The mode and the kind of error of some figures."""
_PRMBENCH = frozenset(name for names in CATEGORIES.values() for name in names)
RIVALRY = ("step_auc", "sol_auc", "step_f1", "sol_f1", "share_spearman")
"""The figures for comparison with the baselines: the first of these that an evaluator has is used."""
FEWEST = 20
"""The smallest number of steps (or solutions, if steps are not judged) with an error, and without, to compare."""


@dataclass(frozen=True, eq=False)
class Row:
    """The figures of one evaluator in one mode for one kind of error.

    `beats` is the evaluator's difference from the best baseline, whose name is `rival`. The difference is taken in
    the figure named by `beats_in`: step AUC or, if that is undefined, the next figure in `RIVALRY`.
    `above_baselines` is True if its interval lies above 0, and None if it has none or there are too few labels
    (`FEWEST`), where hardly any evaluator could pass. `calibration` says how the thresholds were calibrated, or is
    None, and `chosen_here` is True if the calibration used this dataset. `published` holds the paper's figures for
    this evaluator on these traces.
    """

    evaluator: str
    mode: Mode
    errors: Errors
    subject: Subject
    measured: dict[str, Value]
    n_traces: int
    n_solutions: int
    n_steps: int
    calibration: Calibration | None = None
    chosen_here: bool = False
    published: Published | None = None
    beats: Value = field(default_factory=lambda: Value.none("no baseline"))
    beats_in: str = RIVALRY[0]
    rival: str = ""
    above_baselines: bool | None = None

    @property
    def is_baseline(self) -> bool:
        return self.evaluator.startswith(PREFIX)

    @property
    def on_thresholds(self) -> str:
        """A description of the calibrated thresholds and of where they were chosen, or "" without calibration."""
        if self.calibration is None:
            return ""
        cut = self.subject.thresholds
        where = "this dataset" if self.chosen_here else " and ".join(self.calibration.datasets)
        return f"thresholds {cut.validity:g} and {cut.redundancy:g}, chosen on {where}"

    def as_json(self) -> dict[str, object]:
        """Return the row as JSON values. Each figure is a fraction with its interval, or null with the reason."""
        head: dict[str, object] = {"evaluator": self.evaluator, "mode": self.mode.value}
        head |= {"errors": self.errors.value}
        counts = {"n_traces": self.n_traces, "n_solutions": self.n_solutions, "n_steps": self.n_steps}
        tail = {
            "beats_baseline_by": self.beats.as_json(),
            "beats_baseline_in": self.beats_in,
            "above_baselines": self.above_baselines,
            "thresholds": vars(self.subject.thresholds),
            "calibrated_on": list(self.calibration.datasets) if self.calibration else [],
            "thresholds_chosen_on_this_dataset": self.chosen_here,
            "published": self._published_json(),
        }
        return head | as_json(self.measured) | counts | tail

    def _published_json(self) -> dict[str, object] | None:
        if self.published is None:
            return None
        values = {name: self.measured[name] for name in self.published.values}
        differences = {
            name: self.published.difference(name, value.number) if value.exists else None
            for name, value in values.items()
        }
        return self.published.as_json() | {"differences": differences}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The rows of an evaluation against the gold of a view, over the resamples `weights`.

    `traces` is the number of traces. `warning` says why offline figures are left out, or how far they can be
    trusted. `published` holds the paper's figures that match none of the rows.
    """

    view: GoldView
    rows: list[Row]
    weights: Weights
    warning: str = ""
    traces: int = 0
    published: tuple[Published, ...] = ()

    @property
    def dataset(self) -> Dataset:
        return self.view.dataset

    @property
    def size(self) -> str:
        """The number of traces in words, such as `6,116 of 6,216 rows`, with any group or cut."""
        traces = f"{self.traces:,} {'trace' if self.traces == 1 else 'traces'}"
        if self.view.cut is not None:
            return f"{traces}, each cut after a step drawn by seed {self.view.cut}"
        if self.view.group:
            return f"{traces} of group {self.view.group}"
        return f"{self.dataset.size} rows" if self.dataset.left_out else traces

    @property
    def judged(self) -> list[Question]:
        """The modes and kinds of error that have evaluators' rows or, without evaluators, baselines' rows."""
        evaluators = dict.fromkeys((row.mode, row.errors) for row in self.rows if not row.is_baseline)
        return list(evaluators or dict.fromkeys((row.mode, row.errors) for row in self.rows))

    def as_json(self) -> dict[str, object]:
        shown: dict[str, object] = {
            "dataset": self.dataset.name,
            "group": self.view.group or None,
            "rows": [row.as_json() for row in self.rows],
            "published": [row.as_json() for row in self.published],
            "n_traces": self.traces,
            "left_out": self.dataset.left_out,
        }
        shown |= {"patch": self.view.patch.about()} if self.view.patch else {}
        shown |= {"cut": self.view.cut} if self.view.cut is not None else {}
        return shown | ({"warning": self.warning} if self.warning else {})


def evaluate(
    store: Store,
    view: GoldView,
    evaluators: Sequence[MeasuredEvaluator],
    modes: Iterable[Mode] = MODES,
    draws: int = DRAWS,
    force: bool = False,
) -> Evaluation:
    """Measure the evaluators and every baseline against the gold of a view.

    If the traces stop at their first error, only online figures are given, unless `force` is set. An evaluator
    has no row in a mode in which it has not judged any trace. Raises `UserError` in the same cases as
    `GoldView.read`.
    """
    gold, inside, warning = view.read(store)
    chosen = [Mode.ONLINE] if warning and not force and view.cut is None else list(dict.fromkeys(modes))
    weights = weights_of(inside, draws)
    rows: list[Row] = []
    trivial = baseline_tables(store, gold, chosen)
    # Several modes may share a baseline's table.
    done: dict[int, list[Row]] = {}
    for evaluator, mode, table in read_tables(store, gold, evaluators, trivial):
        if id(table) in done:
            rows += [replace(row, mode=mode) for row in done[id(table)]]
            continue
        inner = table.where(inside[table.trace])
        of_table = list(_rows(evaluator, mode, inner, weights)) if len(inner) else []
        rows += of_table
        if evaluator.id is None:
            done[id(table)] = of_table
    rows = [against_baselines(row, rows, weights) for row in rows]
    printed = [row for row in view.reference if row.benchmark.traces == inside.sum() and row.mode in chosen]
    rows, left = _beside_published(rows, printed)
    return Evaluation(view, rows, weights, warning, int(inside.sum()), left)


def weights_of(inside: NDArray[np.bool_], draws: int = DRAWS) -> Weights:
    """Return resampling weights of shape (draws, n), which are 0 for traces outside the mask `inside`."""
    drawn = resamples(int(inside.sum()), draws)
    if inside.all():
        return drawn
    weights = np.zeros((draws, len(inside)), np.uint8)
    weights[:, inside] = drawn
    return weights


def _rows(evaluator: MeasuredEvaluator, mode: Mode, table: StepTable, weights: Weights) -> Iterator[Row]:
    """Yield a row for each kind of error in the gold labels. Only the first row has
    the figures that do not depend on the kind of error."""
    subject = Subject(table, evaluator.outputs, evaluator.thresholds)
    more = three_way(subject, weights) | common(subject, weights)
    if set(table.groups) & _PRMBENCH:
        more |= prm_scores(subject, weights)
    for errors in kinds_of_error(table):
        measured = protocol(subject, errors, weights) | more
        solutions, steps = (len(subject.items(errors, level)) for level in (Level.SOLUTION, Level.STEP))
        yield Row(
            evaluator=evaluator.name,
            mode=mode,
            errors=errors,
            subject=subject,
            measured=measured,
            n_traces=int(table.present.sum()),
            n_solutions=solutions,
            n_steps=steps,
            calibration=evaluator.calibration,
            chosen_here=evaluator.chosen_here,
        )
        more = {}


def _beside_published(rows: Sequence[Row], printed: Sequence[Published]) -> tuple[list[Row], tuple[Published, ...]]:
    """Return the rows with the published figures that match them, and the published figures that match no row. A
    published figure only matches an evaluator that has judged all of the benchmark's traces."""
    matched, beside = set(), []
    for row in rows:
        matches = [
            paper
            for paper in printed
            if paper.names(row.evaluator)
            and (paper.mode, paper.benchmark.errors, paper.benchmark.traces) == (row.mode, row.errors, row.n_traces)
        ]
        matched.update(matches)
        beside.append(replace(row, published=matches[0]) if matches else row)
    return beside, tuple(paper for paper in printed if paper not in matched)


@dataclass(frozen=True, eq=False)
class PairedComparison:
    """A comparison of two evaluators on the traces that both have judged.

    `differences` maps each figure to the first evaluator's value minus the second's. `tests` holds McNemar's test
    for steps, for solutions or for both, depending on what both evaluators judge.
    """

    first: str
    second: str
    mode: Mode
    errors: Errors
    n_traces: int
    differences: dict[str, Value]
    tests: dict[Level, McNemar]

    def as_json(self) -> dict[str, object]:
        tests = {
            level.value: {"first_only": test.first_only, "second_only": test.second_only, "p": test.p.as_json()}
            for level, test in self.tests.items()
        }
        head = {"first": self.first, "second": self.second, "mode": self.mode.value, "errors": self.errors.value}
        differences = {name: value.as_json() for name, value in self.differences.items()}
        return head | {"n_traces": self.n_traces, "differences": differences, "mcnemar": tests}


def compare(first: Row, second: Row, weights: Weights) -> PairedComparison:
    """Compare two rows for the same kind of error on the traces that both evaluators have judged."""
    names = [name for name in second.measured if name in first.measured]
    ours, theirs = _on_common_traces(first, second, weights, names)
    tests = {}
    for level in Level:
        items = [row.subject.items(first.errors, level) for row in (ours, theirs)]
        if len(items[0]) and len(items[0]) == len(items[1]):
            tests[level] = mcnemar(*items)
    return PairedComparison(
        first.evaluator, second.evaluator, first.mode, first.errors, ours.n_traces,
        minus(ours.measured, theirs.measured), tests,
    )  # fmt: skip


def minus(figures: Mapping[str, Value], others: Mapping[str, Value]) -> dict[str, Value]:
    """Return the differences of the figures that both have, with intervals paired by trace."""
    return {name: difference(figures[name], other) for name, other in others.items() if name in figures}


def _on_common_traces(first: Row, second: Row, weights: Weights, names: Collection[str]) -> tuple[Row, Row]:
    """Return two rows with the figures `names` on the traces that both evaluators have judged."""
    both = first.subject.table.present & second.subject.table.present
    if np.array_equal(first.subject.table.present, second.subject.table.present):
        return first, second

    def common(row: Row) -> Row:
        table = row.subject.table
        subject = replace(row.subject, table=table.where(both[table.trace]))
        measured = figures(subject, row.errors, weights, names)
        return replace(row, subject=subject, measured=measured, n_traces=int(both.sum()))

    return common(first), common(second)


def against_baselines(row: Row, rows: Sequence[Row], weights: Weights) -> Row:
    """Return a copy of the row with its difference from the best baseline, computed on the row's own traces."""
    name = next((name for name in RIVALRY if name in row.measured and row.measured[name].exists), RIVALRY[0])
    beats, rival = above_best_baseline(row, rows, name, weights)
    name = name if rival else RIVALRY[0]
    gold = row.subject.items(row.errors, Level.STEP if name.startswith("step") else Level.SOLUTION).gold
    has_enough = min(int(gold.sum()), int((~gold).sum())) >= FEWEST and not math.isnan(beats.low)
    above = bool(beats.low > 0) if has_enough else None
    return replace(row, beats=beats, beats_in=name, rival=rival, above_baselines=above)


def above_best_baseline(row: Row, rows: Sequence[Row], name: str, weights: Weights) -> tuple[Value, str]:
    """Return the difference of a row from the best baseline in the figure `name`, and the baseline's name, or "" if
    there is none."""
    question = () if row.is_baseline else (row.mode, row.errors)
    rivals = [rival for rival in rows if rival.is_baseline and (rival.mode, rival.errors) == question]
    differences = {rival.evaluator: _difference(row, rival, name, weights) for rival in rivals}
    existing = {rival: value for rival, value in differences.items() if value.exists}
    best = min(existing, key=lambda rival: existing[rival].number, default="")
    return existing.get(best) or next(iter(differences.values()), Value.none("no baseline")), best


def _difference(row: Row, rival: Row, name: str, weights: Weights) -> Value:
    """Return the figure `name` of a row minus that of a baseline, on the traces that the row covers."""
    if row.n_traces < rival.n_traces:
        row, rival = _on_common_traces(row, rival, weights, [name])
    if row.subject.outputs == Outputs.CHECKS:
        rival = _restrict_to_judged(row, rival, weights)
    return difference(row.measured[name], rival.measured[name])


def _restrict_to_judged(row: Row, rival: Row, weights: Weights) -> Row:
    """Return a baseline's row restricted to the steps that the evaluator of `row` judges. Both rows have the same
    traces."""
    silent = np.isnan(row.subject.table.validity)
    probs = np.where(silent[:, None], np.float32(np.nan), rival.subject.table.probs)
    table = replace(rival.subject.table, probs=probs)
    subject = Subject(table, Outputs.CHECKS, rival.subject.thresholds)
    return replace(rival, subject=subject, measured=protocol(subject, rival.errors, weights, row.measured))
