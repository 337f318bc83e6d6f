"""The findings of steps, as tables: by where a step stands, and by what later steps change."""

from collections.abc import Mapping, Sequence

from core.judgment import Mode
from core.metrics.first_error import Outcome, count_outcomes, first_errors
from core.metrics.position import Third
from core.metrics.reasoneval import Errors
from core.metrics.value import Value
from core.outputs import Outputs
from training.diagnostics import by_retroactive_change, offline_gain, pairs, thirds
from training.evaluation import Evaluation, Row, compare
from training.findings import EVALUATOR, MODE, PROTOCOL, make_table, ordered, subjects
from training.measures import Subject
from training.tables import Column, Kind, Table

POSITION = {"step_auc": "Step-AUC", "macro_auc": "Macro-AUC"}
OUTCOMES = {
    Outcome.RIGHT: "Right", Outcome.MISSED: "Missed", Outcome.FALSE_ALARM: "False alarm",
    Outcome.WRONG_STEP: "Wrong step",
}  # fmt: skip

Thirds = Mapping[tuple[str, Mode], dict[Third, dict[str, Value]]]


def differences(found: Evaluation) -> Table | None:
    """Online minus offline, paired trace by trace; None where no evaluator has judged in both modes."""
    columns = [EVALUATOR, Column("errors", "Errors", Kind.TEXT)]
    columns += [Column(name, title, Kind.POINTS) for name, title in PROTOCOL.items()]
    columns += [Column("n_traces", "Traces", Kind.COUNT)]
    cells = []
    for online, offline in pairs(ordered(found.rows)):
        told = compare(online, offline, found.weights)
        values = [told.differences[name] for name in PROTOCOL]
        cells.append((online, (online.evaluator, online.errors.value, *values, told.n_traces)))
    if not has_pairs(found):
        return None
    caption = "online minus offline, in percentage points with 95 % intervals of the paired difference"
    return make_table(found, "online-minus-offline", caption, columns, cells)


def has_pairs(found: Evaluation) -> bool:
    """Whether an evaluator, not only the baselines, has judged in both modes."""
    return any(not online.is_baseline for online, _ in pairs(found.rows))


def position_values(found: Evaluation, errors: Errors) -> Thirds:
    """The figures in each third of the solutions, by evaluator and mode, and under `gain` what offline adds."""
    measured = {(row.evaluator, row.mode): thirds(row, found.weights) for row in ordered(found.rows)
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


def positions(found: Evaluation, errors: Errors, values: Thirds) -> Table:
    """Step AUC, and macro-AUC where there are three classes, by the third that a step stands in."""
    names = [name for name in POSITION if any(name in part[Third.EARLY] for part in values.values())]
    columns = [EVALUATOR, MODE]
    columns += [Column(f"{third}_{name}", f"{POSITION[name]}, {third}") for name in names for third in Third]
    return _by_third(
        found, f"position-{errors}", f"{errors} errors by the third of the solution", columns, names, values
    )


def position_gains(found: Evaluation, errors: Errors, values: Thirds) -> Table | None:
    """Offline minus online in each third; None where no evaluator has judged in both modes."""
    if not has_pairs(found):
        return None
    gains = {key: part for key, part in values.items() if any(name.endswith("_gain") for name in part[Third.EARLY])}
    names = [f"{name}_gain" for name in POSITION if any(f"{name}_gain" in p[Third.EARLY] for p in gains.values())]
    columns = [EVALUATOR]
    columns += [Column(f"{third}_{name}", f"{POSITION[name.removesuffix('_gain')]}, {third}", Kind.POINTS)
                for name in names for third in Third]  # fmt: skip
    caption = f"{errors} errors, offline minus online by the third of the solution, percentage points"
    return _by_third(found, f"position-{errors}-gain", caption, columns, names, gains)


def _by_third(
    found: Evaluation, name: str, caption: str, columns: Sequence[Column], names: Sequence[str], values: Thirds
) -> Table:
    rows = {(row.evaluator, row.mode): row for row in found.rows}
    cells, told = [], []
    none = Value.none("")
    for key, parts in values.items():
        shown = [parts[third].get(figure, none) for figure in names for third in Third]
        head = (key[0], key[1].value) if MODE in columns else (key[0],)
        cells.append((rows[key], (*head, *shown)))
        told += _third_reasons(rows[key], parts, names)
    return make_table(found, name, caption, columns, cells, told)


def _third_reasons(row: Row, parts: Mapping[Third, Mapping[str, Value]], names: Sequence[str]) -> list[str]:
    if row.is_baseline:
        return []
    told = []
    for name in names:
        values = {third: figures[name] for third, figures in parts.items() if name in figures}
        told += [
            f"{row.evaluator}: {reason}"
            for reason in third_reasons(values, f"{POSITION[name.removesuffix('_gain')]} ")
        ]
    return told


def third_reasons(values: Mapping[Third, Value], name: str = "") -> list[str]:
    """What the thirds leave out, each reason once with the thirds that it is of, unless it is of all."""
    by_reason: dict[str, list[str]] = {}
    for third, value in values.items():
        if value.reason:
            by_reason.setdefault(value.reason, []).append(third.value)
    return [
        reason if len(thirds) == len(Third) else f"{name}{' and '.join(thirds)}, {reason}"
        for reason, thirds in by_reason.items()
    ]


def outcomes(found: Evaluation) -> Table | None:
    """What became of the first errors, in traces: the first step called wrong is the gold's, another one, or there
    is one on one side only. None where no evaluator says anything of steps."""
    rows = [row for row in ordered(subjects(found)) if _says_validity(row.subject)]
    columns = [EVALUATOR, MODE, *(Column(kind.value, title, Kind.COUNT) for kind, title in OUTCOMES.items())]
    columns += [Column("n_traces", "Traces", Kind.COUNT)]
    cells = []
    for row in rows:
        counts = count_outcomes(first_errors(row.subject.table, row.subject.thresholds.validity))
        told = [counts[kind] for kind in OUTCOMES]
        cells.append((row, (row.evaluator, row.mode.value, *told, sum(told))))
    caption = "the first step called wrong beside the first error, in traces"
    return make_table(found, "outcomes", caption, columns, cells) if cells else None


def _says_validity(subject: Subject) -> bool:
    """Whether the evaluator says of steps that they are wrong. Verdicts on redundancy do not."""
    on_redundancy = subject.outputs == Outputs.VERDICT and bool((subject.table.redundancy > 0).any())
    return subject.outputs.has_steps and not on_redundancy


def changes(found: Evaluation, errors: Errors) -> Table | None:
    """What became of the steps whose validity later steps moved; None where nobody has judged in both modes."""
    if not has_pairs(found):
        return None
    columns = [
        EVALUATOR,
        Column("validity", "Validity", Kind.TEXT),
        Column("steps", "Steps", Kind.COUNT),
        Column("wrong", "With an error", Kind.COUNT),
        Column("share_wrong", "Share with an error"),
        Column("online", "Judged rightly online"),
        Column("offline", "Judged rightly offline"),
    ]
    cells = []
    for online, offline in pairs(ordered(row for row in found.rows if row.errors == errors)):
        if not online.subject.outputs.has_steps:
            continue
        for kind, part in by_retroactive_change(online, offline).items():
            head = (online.evaluator, kind, part.steps, part.wrong, part.share_wrong)
            cells += [(online, (*head, part.online, part.offline))] if part.steps else []
    caption = f"{errors} errors, steps by retroactive change: validity fell or rose by 0.1 or more, or stayed"
    return make_table(found, f"change-{errors}", caption, columns, cells)
