"""The record of a judgment: the one JSON object in which judgments are written, sent and read back.

`docs/record.md` describes it for users, `docs/judgment-record.schema.json` is its schema; both are part of what
version 1 promises.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, Literal, Protocol

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt

from stepsight.core.arrays import Floats32, rounded
from stepsight.core.errors import UserError
from stepsight.core.judgment import Judgment, Mode, Spent
from stepsight.core.label import LABEL_NAMES, Label
from stepsight.core.scores import Hindsight, Outputs, StepScores, Thresholds, judge_solution
from stepsight.core.trace import Trace

FORMAT = "stepsight-judgment"
_TOLERANCE = 1e-3

Probability = Annotated[StrictFloat, Field(ge=0, le=1)]
Vector = Annotated[list[Probability], Field(min_length=3, max_length=3)]
Cell = Vector | Probability | Literal["neg", "neu", "pos"] | None
"""A verdict on one sub-step: neg, neu and pos, or validity alone, or a label, or nothing."""


class Described(Protocol):
    """The part of an evaluator that a record names."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def outputs(self) -> Outputs: ...


class _RecordPart(BaseModel):
    """Unknown fields are ignored, so that files of a later minor version can be read."""

    model_config = ConfigDict(
        frozen=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        json_schema_serialization_defaults_required=True,
    )


class StepRecord(_RecordPart):
    """The scores of one sub-step in one mode; a step that is not divided is its own only sub-step."""

    step: Annotated[StrictInt, Field(ge=1)]
    """The step, counted from 1."""
    substep: Annotated[StrictInt, Field(ge=1)]
    """The sub-step within its step, counted from 1."""
    neg: Probability | None = None
    """Probability that it is wrong; null unless `outputs` is three-way."""
    neu: Probability | None = None
    """Probability that it is valid but redundant; null unless `outputs` is three-way."""
    pos: Probability | None = None
    """Probability that it is correct and useful; null unless `outputs` is three-way."""
    validity: Probability | None = None
    """neu + pos; null if `outputs` is verdict or checks."""
    redundancy: Probability | None = None
    """neu; null unless `outputs` is three-way."""
    spread: StrictFloat | None = None
    """Standard deviation of validity between the members of an ensemble; null of any other evaluator."""
    valid: StrictBool | None = None
    """True if validity reaches the threshold, or by a verdict in words; null if nothing is said of it."""
    redundant: StrictBool | None = None
    """True if redundancy reaches the threshold, or by a verdict in words; null if nothing is said of it."""

    @property
    def cell(self) -> Cell:
        if self.neg is not None and self.neu is not None and self.pos is not None:
            return [self.neg, self.neu, self.pos]
        if self.validity is not None or self.valid is None:
            return self.validity
        return "neg" if not self.valid else "neu" if self.redundant else "pos"


class SolutionRecord(_RecordPart):
    """The whole solution in one mode."""

    validity: Probability | None = None
    """Least validity of a sub-step; null if `outputs` is verdict or checks."""
    redundancy: Probability | None = None
    """Greatest redundancy of a sub-step; null unless `outputs` is three-way."""
    valid: StrictBool | None = None
    """True if validity reaches the threshold, or by a verdict in words; null if nothing is said of it."""
    redundant: StrictBool | None = None
    """True if redundancy reaches the threshold, or by a verdict in words; null if nothing is said of it."""


class ModeRecord(_RecordPart):
    """One mode of a judgment."""

    steps: list[StepRecord]
    """An entry per sub-step, in order."""
    solution: SolutionRecord
    """The solution as a whole."""


class ThresholdsRecord(_RecordPart):
    """The thresholds of the verdicts."""

    validity: StrictFloat
    """Least validity of what is valid."""
    redundancy: StrictFloat | None
    """Least redundancy of what is redundant; null unless `outputs` is three-way."""

    @classmethod
    def of(cls, thresholds: Thresholds, outputs: Outputs) -> "ThresholdsRecord":
        three = outputs == Outputs.THREE_WAY
        return cls(validity=thresholds.validity, redundancy=thresholds.redundancy if three else None)


class JudgmentRecord(_RecordPart):
    """The judgment of one trace by one evaluator in one mode. Every key is always there; null says nothing."""

    format: Literal["stepsight-judgment"] = "stepsight-judgment"
    """Tells this object from any other."""
    version: Literal[1] = 1
    """Version of the format."""
    id: str | None = None
    """Id of the trace within its dataset; null if it has none."""
    evaluator: str
    """Name of the evaluator."""
    fingerprint: str
    """Hash of its weights and their type, its tokenizer and its template."""
    outputs: Outputs
    """three-way: neg, neu and pos of each sub-step. validity: one number for each. solution: one for the whole.
    verdict: a verdict on the whole and the steps that it blames. checks: verdicts on steps that can be checked."""
    mode: Mode
    """offline, online, or hindsight, which gives the other two as well."""
    thresholds: ThresholdsRecord
    """Those that the verdicts were made with."""
    online: ModeRecord | None = None
    """Every step scored with nothing after it; null if the mode is offline, or `outputs` is solution."""
    offline: ModeRecord | None = None
    """Every step scored with all others in view; null if the mode is online, or `outputs` is solution."""
    hindsight: list[list[Cell]] | None = None
    """Row j holds sub-steps 1 to j, scored with these in view: each [neg, neu, pos], or validity alone, or a label
    where `outputs` is verdict or checks; null in any other mode, or if `outputs` is solution."""
    solution_score: StrictFloat | None = None
    """The evaluator's own number for the whole solution; of a verdict 1 is right, 0 is wrong."""
    rationale: str | None = None
    """The reasons that it gives."""
    spent: Spent | None = None
    """What a server that wrote it was asked: `calls`, those `unread`, `prompt_tokens`, `completion_tokens`."""
    created: datetime | None = None
    """When it was stored; null if it was made for this answer."""
    stale: StrictBool = False
    """True if the trace has changed since; then it may have other steps."""

    @property
    def modes(self) -> dict[Mode, ModeRecord]:
        """The modes that it gives, online first."""
        both = {Mode.ONLINE: self.online, Mode.OFFLINE: self.offline}
        return {mode: record for mode, record in both.items() if record is not None}

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many sub-steps each step has; empty if the evaluator says nothing of steps."""
        steps = [step for record in list(self.modes.values())[:1] for step in record.steps]
        return tuple(Counter(step.step for step in steps).values())

    def judgment(self, trace: Trace) -> Judgment:
        """The judgment of `trace` that this is the record of, to six decimals.

        Raises `UserError` if it is of other sub-steps, or is incomplete.
        """
        scores = self.scores()
        if scores is None:
            scores = StepScores(np.zeros((len(trace.substeps), len(Label)), np.float32))
        else:
            check_sizes(self.sizes, trace)
        return Judgment(trace, self.mode, scores, self.solution_score, self.rationale or "", self.spent)

    def scores(self) -> StepScores | Hindsight | None:
        """The scores of all sub-steps; None if the evaluator says nothing of steps.

        Raises `UserError` if they are incomplete or contradict each other.
        """
        if not self.outputs.has_steps:
            return None
        mode = Mode.ONLINE if self.mode == Mode.ONLINE else Mode.OFFLINE
        if mode not in self.modes:
            raise UserError(f"{mode} is null in a judgment of mode {self.mode}.")
        steps = self.modes[mode].steps
        if [(step.step, step.substep) for step in steps] != _places(self.sizes):
            raise UserError(f"the steps of {mode} are not counted from 1 and in order.")
        spread = [step.spread for step in steps]
        spreads = None if None in spread else np.array(spread, np.float32)
        if self.mode != Mode.HINDSIGHT:
            return StepScores(probabilities([step.cell for step in steps]), spreads)
        rows = self.hindsight or []
        if [len(row) for row in rows] != list(range(1, len(steps) + 1)):
            raise UserError(f"hindsight is no triangle of {len(steps)} rows.")
        packed = probabilities([cell for row in rows for cell in row])
        return Hindsight.from_packed(packed, spreads)


def judgment_record(
    judgment: Judgment,
    evaluator: Described,
    thresholds: Thresholds | None = None,
    name: str = "",
) -> JudgmentRecord:
    """The record of a judgment by `evaluator`, with the verdicts at the thresholds, the defaults if None.

    `name` is what the evaluator is called here, if that is not its own name.
    """
    outputs, thresholds = evaluator.outputs, thresholds or Thresholds()
    online, offline = (
        None if scores is None or not outputs.has_steps else _mode_record(judgment, scores, outputs, thresholds)
        for scores in (judgment.online, judgment.offline)
    )
    hindsight = judgment.hindsight if outputs.has_steps else None
    return JudgmentRecord(
        id=judgment.trace.id or None,
        evaluator=name or evaluator.name,
        fingerprint=evaluator.fingerprint,
        outputs=outputs,
        mode=judgment.mode,
        thresholds=ThresholdsRecord.of(thresholds, outputs),
        online=online,
        offline=offline,
        hindsight=None if hindsight is None else triangle_cells(hindsight.rows, outputs),
        solution_score=judgment.solution,
        rationale=judgment.rationale or None,
        spent=judgment.spent,
        created=judgment.created,
        stale=judgment.stale,
    )


def step_records(
    scores: StepScores, places: Sequence[tuple[int, int]], outputs: Outputs, thresholds: Thresholds
) -> list[StepRecord]:
    """A record per row of the scores, whose step and sub-step `places` gives, counted from 1."""
    # Words are above every threshold or below.
    valid = scores.validity >= (0.5 if outputs.in_words else thresholds.validity)
    columns: dict[str, list[Any]] = {"valid": valid.tolist()}
    if outputs.in_words:
        columns["redundant"] = [bool(redundant) or None for redundant in scores.redundancy]
    else:
        columns["validity"] = _within(scores.validity)
    if outputs == Outputs.THREE_WAY:
        columns |= dict(zip(LABEL_NAMES, _within(scores.probs.T), strict=True))
        columns |= {
            "redundancy": columns["neu"],
            "redundant": (scores.redundancy >= thresholds.redundancy).tolist(),
        }
    if scores.spread is not None:
        columns["spread"] = rounded(scores.spread)
    rows = zip(places, _judged(scores.probs), zip(*columns.values(), strict=True), strict=True)
    return [
        StepRecord(step=step, substep=substep, **(dict(zip(columns, row, strict=True)) if is_judged else {}))
        for (step, substep), is_judged, row in rows
    ]


def probabilities(cells: Sequence[Cell]) -> Floats32:
    """The rows of neg, neu and pos that cells stand for, shape (cells, 3); zeros for nothing.

    Raises `UserError` if three probabilities do not add up to 1.
    """
    rows = np.array([_VECTORS[cell] if cell is None or isinstance(cell, str) else cell
                     if isinstance(cell, list) else (1 - cell, 0, cell) for cell in cells], np.float32)  # fmt: skip
    rows = rows.reshape(-1, len(Label))
    sums = rows.sum(axis=1)
    if ((np.abs(sums - 1) > _TOLERANCE) & (sums != 0)).any():
        raise UserError("neg, neu and pos do not add up to 1.")
    return rows


def triangle_cells(rows: Sequence[Floats32], outputs: Outputs) -> list[list[Cell]]:
    """The cells of rows of neg, neu and pos, each of shape (sub-steps, 3)."""
    cells = iter(_cells(np.concatenate(rows), outputs) if rows else ())
    return [list(islice(cells, len(row))) for row in rows]


_VECTORS: dict[str | None, list[float]] = {None: [0.0] * len(Label)} | dict(
    zip(LABEL_NAMES, np.eye(len(Label)).tolist(), strict=True)
)


def _mode_record(judgment: Judgment, scores: StepScores, outputs: Outputs, thresholds: Thresholds) -> ModeRecord:
    sizes = _sizes(judgment.trace)
    # How the sub-steps of a stale judgment were divided is not known.
    places = _places(sizes if sum(sizes) == len(scores) else [1] * len(scores))
    return ModeRecord(
        steps=step_records(scores, places, outputs, thresholds),
        solution=_solution_record(judgment, scores, outputs, thresholds),
    )


def _solution_record(
    judgment: Judgment, scores: StepScores, outputs: Outputs, thresholds: Thresholds
) -> SolutionRecord:
    if outputs.in_words:
        # A verdict on redundancy says nothing of errors.
        is_redundant = bool(scores.redundancy.any())
        is_valid = None if is_redundant or judgment.solution is None else judgment.solution >= 0.5
        return SolutionRecord(valid=is_valid, redundant=is_redundant or None)
    judged = StepScores(scores.probs[_judged(scores.probs)])
    if not len(judged):
        return SolutionRecord()
    verdict, three = judge_solution(judged, thresholds), outputs == Outputs.THREE_WAY
    return SolutionRecord(
        validity=_within(verdict.validity),
        redundancy=_within(verdict.redundancy) if three else None,
        valid=verdict.valid,
        redundant=verdict.redundant if three else None,
    )


def check_sizes(sizes: Sequence[int], trace: Trace) -> None:
    """Raises `UserError` unless the steps of `trace` have so many sub-steps each."""
    if list(sizes) != _sizes(trace):
        own = _sizes(trace)
        raise UserError(
            f"scores of steps with {list(sizes)!s:.60} sub-steps, those of trace {trace.id!r} have {own!s:.60}.",
            "Check that the file belongs to this dataset.",
        )


def _sizes(trace: Trace) -> list[int]:
    return [len(step.substeps) for step in trace.steps]


def _places(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Step and sub-step of each sub-step, counted from 1, of steps with so many sub-steps each."""
    return [(step, part) for step, size in enumerate(sizes, start=1) for part in range(1, size + 1)]


def _cells(probs: Floats32, outputs: Outputs) -> list[Cell]:
    cells: list[Cell]
    if outputs.in_words:
        cells = [LABEL_NAMES[label] for label in probs.argmax(axis=1)]
    else:
        cells = _within(probs if outputs == Outputs.THREE_WAY else StepScores(probs).validity)
    return [cell if is_judged else None for cell, is_judged in zip(cells, _judged(probs), strict=True)]


def _judged(probs: Floats32) -> list[bool]:
    """True for each sub-step that the evaluator judges; any other has a row of zeros."""
    judged: Any = probs.any(axis=1).tolist()
    return list(judged)


def _within(values: Floats32 | float) -> Any:
    """Probabilities as they are written: rounding in single precision may have taken them beyond 0 or 1."""
    return rounded(np.clip(values, 0, 1))
