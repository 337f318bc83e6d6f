"""The record of a judgment: the JSON object used wherever a judgment is written to a file, sent or read back; and
tables of records, with the same columns in all files.

`docs/api.md` describes the record for users, and `docs/judgment-record.schema.json` is its schema. Version 1
promises compatibility with both.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice, repeat
from typing import Annotated, Any, Literal, Protocol

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt

from stepsight.core.arrays import Floats32, rounded
from stepsight.core.errors import UserError
from stepsight.core.evidence import LeaveOneOut
from stepsight.core.judgment import Judgment, Mode, Usage
from stepsight.core.scores import Hindsight, Outputs, StepScores, Thresholds
from stepsight.core.trace import LABEL_NAMES, Label, Trace

FORMAT: Literal["stepsight-judgment"] = "stepsight-judgment"
_TOLERANCE = 1e-3

Places = tuple[tuple[int, int], ...]
Probability = Annotated[StrictFloat, Field(ge=0, le=1)]
Vector = Annotated[list[Probability], Field(min_length=3, max_length=3)]
Cell = Vector | Probability | Literal["neg", "neu", "pos"] | None
"""A verdict on one sub-step: neg, neu and pos, or validity alone, or a label, or nothing."""
_VECTORS = {None: [0.0, 0.0, 0.0], "neg": [1.0, 0.0, 0.0], "neu": [0.0, 1.0, 0.0], "pos": [0.0, 0.0, 1.0]}


def _null(description: str) -> Any:
    return Field(default=None, description=description)


class Described(Protocol):
    """The properties of an evaluator that are copied into a record."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def outputs(self) -> Outputs: ...


class _RecordPart(BaseModel):
    """Base class of the parts of a record. Unknown fields are ignored, so that files of later minor versions can be
    read."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False, json_schema_serialization_defaults_required=True)


class StepRecord(_RecordPart):
    """The scores of one sub-step in one mode. A step that is not divided counts as a single sub-step."""

    step: StrictInt = Field(ge=1, description="The step, counted from 1.")
    substep: StrictInt = Field(ge=1, description="The sub-step within its step, counted from 1.")
    neg: Probability | None = _null("Probability that it is wrong; null unless `outputs` is three-way.")
    neu: Probability | None = _null("Probability that it is valid but redundant; null unless three-way.")
    pos: Probability | None = _null("Probability that it is correct and useful; null unless three-way.")
    validity: Probability | None = _null("neu + pos; null if `outputs` is verdict or checks.")
    redundancy: Probability | None = _null("neu; null unless `outputs` is three-way.")
    spread: StrictFloat | None = _null("Standard deviation of validity in an ensemble; null for any other.")
    valid: StrictBool | None = _null("True if validity reaches its threshold, or by a verdict in words.")
    redundant: StrictBool | None = _null("True if redundancy reaches its threshold, or by a verdict in words.")

    @property
    def cell(self) -> Cell:
        if self.neg is not None and self.neu is not None and self.pos is not None:
            return [self.neg, self.neu, self.pos]
        if self.validity is not None or self.valid is None:
            return self.validity
        return "neg" if not self.valid else "neu" if self.redundant else "pos"


class SolutionRecord(_RecordPart):
    """The scores and verdicts of the whole solution in one mode."""

    validity: Probability | None = _null("Least validity of a sub-step; null if `outputs` is verdict or checks.")
    redundancy: Probability | None = _null("Greatest redundancy; null unless `outputs` is three-way.")
    valid: StrictBool | None = _null("True if every sub-step is valid, or by a verdict in words on the whole.")
    redundant: StrictBool | None = _null("True if a sub-step is redundant.")


class ModeRecord(_RecordPart):
    """The scores that a judgment contains for one mode."""

    steps: list[StepRecord] = Field(description="An entry per sub-step, in order.")
    solution: SolutionRecord = Field(description="The solution as a whole.")


class ThresholdsRecord(_RecordPart):
    """The thresholds at which the verdicts were made."""

    validity: StrictFloat = Field(description="Least validity of a valid step or solution.")
    redundancy: StrictFloat | None = Field(
        description="Least redundancy of a redundant one; null unless three-way."
    )

    @classmethod
    def of(cls, thresholds: Thresholds, outputs: Outputs) -> "ThresholdsRecord":
        is_three_way = outputs == Outputs.THREE_WAY
        return cls(validity=thresholds.validity, redundancy=thresholds.redundancy if is_three_way else None)


class LeftOutRecord(_RecordPart):
    """The offline scores of a solution without one of its sub-steps."""

    step: StrictInt = Field(ge=1, description="The step of the missing sub-step, counted from 1.")
    substep: StrictInt = Field(ge=1, description="The missing sub-step within its step, counted from 1.")
    cells: list[Cell] = Field(
        description="Every sub-step in order, as in a row of `hindsight`; null for the missing one."
    )


class JudgmentRecord(_RecordPart):
    """The judgment of one trace by one evaluator in one mode. Every key is always present; null means no value."""

    format: Literal["stepsight-judgment"] = Field(default=FORMAT, description="Identifies the format.")
    version: Literal[1] = Field(default=1, description="Version of the format.")
    id: str | None = _null("Id of the trace within its dataset; null if it has none.")
    evaluator: str = Field(description="Name of the evaluator.")
    fingerprint: str = Field(description="Hash of its weights and their type, its tokenizer and its template.")
    outputs: Outputs = Field(
        description="The kind of outputs. three-way: neg, neu and pos of each sub-step; validity: a number for "
        "each; solution: one for the whole; verdict: a verdict on the whole, and the steps that it blames; checks: "
        "verdicts on what can be checked."
    )
    mode: Mode = Field(description="offline, online, or hindsight, which gives the other two as well.")
    thresholds: ThresholdsRecord = Field(description="The thresholds of the verdicts.")
    online: ModeRecord | None = _null(
        "With nothing after the step in view; null in mode offline, or without scores."
    )
    offline: ModeRecord | None = _null("With the whole solution in view; null in mode online, or without scores.")
    hindsight: list[list[Cell]] | None = _null(
        "Row j holds sub-steps 1 to j, scored with these in view: each [neg, neu, pos], or validity alone, or a "
        "label if `outputs` is verdict or checks; null in any other mode."
    )
    conclusion: str | None = _null(
        "The sentence that heads the result: what is wrong, where, how sure that is, and who says so; null in "
        "files of stored judgments, or if the trace has changed since."
    )
    solution_score: StrictFloat | None = _null(
        "Its own score of the whole solution; for a verdict, 1 is right and 0 wrong."
    )
    rationale: str | None = _null("The reasons for the verdicts.")
    left_out: list[LeftOutRecord] | None = _null(
        "Scores with single sub-steps left out; null if they are unknown or were not requested."
    )
    spent: Usage | None = _null(
        "Its cost on a server: `calls`, those left `unread`, `prompt_tokens`, `completion_tokens`."
    )
    created: datetime | None = _null("When it was stored; null if it was made for this answer.")
    stale: StrictBool = Field(False, description="True if the trace has since changed, and may have other steps.")

    @property
    def modes(self) -> dict[Mode, ModeRecord]:
        """The scores by mode, online first. Modes without scores are left out."""
        both = {Mode.ONLINE: self.online, Mode.OFFLINE: self.offline}
        return {mode: record for mode, record in both.items() if record is not None}

    def scores(self) -> tuple[Places, StepScores | Hindsight] | None:
        """Return the (step, sub-step) numbers of the scored sub-steps, counted from 1, and their scores.

        Returns None if the evaluator does not judge steps. Raises `UserError` if scores are missing or contradict
        each other.
        """
        if not self.outputs.has_steps:
            return None
        mode = Mode.ONLINE if self.mode == Mode.ONLINE else Mode.OFFLINE
        if mode not in self.modes:
            raise UserError(f"{mode} is null in a judgment of mode {self.mode}.")
        steps = self.modes[mode].steps
        places = tuple((step.step, step.substep) for step in steps)
        spread = [step.spread for step in steps]
        spreads = None if None in spread else np.array(spread, np.float32)
        if self.mode != Mode.HINDSIGHT:
            return places, StepScores(probabilities([step.cell for step in steps]), spreads)
        rows = self.hindsight or []
        if not rows or [len(row) for row in rows] != list(range(1, len(steps) + 1)):
            raise UserError(f"hindsight is not a triangle of {len(steps)} rows.")
        return places, Hindsight.from_packed(probabilities([cell for row in rows for cell in row]), spreads)

    def left_out_rows(self) -> dict[int, Floats32]:
        """Return, by the index of the missing sub-step, the probabilities of all other sub-steps.

        Each array has the shape (n - 1, 3). Raises `UserError` if an entry of `left_out` names a sub-step that the
        judgment does not have or has the wrong number of cells, or if there are no offline scores.
        """
        rows: dict[int, Floats32] = {}
        if not self.left_out:
            return rows
        scores = self.scores()
        places = () if scores is None else scores[0]
        for entry in self.left_out:
            place = entry.step, entry.substep
            if place not in places or len(entry.cells) != len(places) or self.offline is None:
                raise UserError(
                    f"left_out: step {place[0]}, sub-step {place[1]} with {len(entry.cells)} cells does not fit a "
                    f"judgment of {len(places)} sub-steps.",
                    "Check the file.",
                )
            missing = places.index(place)
            others = [cell for number, cell in enumerate(entry.cells) if number != missing]
            rows[missing] = probabilities(others)
        return rows

    def judgment(self, trace: Trace) -> Judgment:
        """Return the recorded judgment of `trace`, with scores rounded to six decimals. Raises `UserError` if the
        trace and the record have different sub-steps, or if `scores` raises it."""
        scores = scores_of(self.scores(), trace)
        return Judgment(trace, self.mode, scores, self.solution_score, self.rationale or "", self.spent)


def scores_of(scores: tuple[Places, StepScores | Hindsight] | None, trace: Trace) -> StepScores | Hindsight:
    """Check that recorded scores belong to the sub-steps of `trace`, and return them without their step numbers.

    If `scores` is None, all scores are zeros. Raises `UserError` if the step numbers differ.
    """
    if scores is None:
        return StepScores(np.zeros((len(trace.substeps), len(Label)), np.float32))
    if scores[0] != trace.places:
        raise UserError(
            f"the scores of {len(scores[0])} sub-steps do not match the {len(trace.places)} of trace {trace.id!r}.",
            "Check that the file belongs to this dataset.",
        )
    return scores[1]


def judgment_record(
    judgment: Judgment,
    evaluator: Described,
    thresholds: Thresholds | None = None,
    name: str = "",
    left_out: LeaveOneOut | None = None,
    conclusion: str | None = None,
) -> JudgmentRecord:
    """Build the record of a judgment made by `evaluator`. Verdicts are made at `thresholds`, or at the default
    thresholds if that is None. `name`, if given, is recorded instead of the evaluator's own name, and `conclusion`
    is the sentence on the solution (see `conclude`)."""
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
        conclusion=conclusion,
        solution_score=judgment.solution,
        rationale=judgment.rationale or None,
        left_out=None if offline is None else _left_out_records(judgment.trace, left_out, outputs) or None,
        spent=judgment.spent,
        created=judgment.created,
        stale=judgment.stale,
    )


def step_records(scores: StepScores, places: Places, outputs: Outputs, thresholds: Thresholds) -> list[StepRecord]:
    """Build a record for each row of the scores. `places` gives the step and sub-step number of each row, counted
    from 1."""
    # Verdicts in words are 0 or 1, whatever the threshold.
    valid = scores.validity >= (0.5 if outputs.in_words else thresholds.validity)
    columns: dict[str, list[Any]] = {"valid": valid.tolist()}
    if outputs.in_words:
        columns["redundant"] = [bool(redundant) or None for redundant in scores.redundancy]
    else:
        columns["validity"] = _round(scores.validity)
    if outputs == Outputs.THREE_WAY:
        columns |= dict(zip(LABEL_NAMES, _round(scores.probs.T), strict=True))
        columns["redundancy"] = columns["neu"]
        columns["redundant"] = (scores.redundancy >= thresholds.redundancy).tolist()
    if scores.spread is not None:
        columns["spread"] = rounded(scores.spread)
    judged = scores.probs.max(axis=1) > 0
    rows = zip(places, judged, zip(*columns.values(), strict=True), strict=True)
    return [
        StepRecord(step=step, substep=substep, **(dict(zip(columns, row, strict=True)) if is_judged else {}))
        for (step, substep), is_judged, row in rows
    ]


def _mode_record(judgment: Judgment, scores: StepScores, outputs: Outputs, thresholds: Thresholds) -> ModeRecord:
    places = judgment.trace.places
    if len(places) != len(scores):
        # How a stale judgment divided steps into sub-steps is unknown.
        places = tuple((step, 1) for step in range(1, len(scores) + 1))
    steps = step_records(scores, places, outputs, thresholds)
    return ModeRecord(steps=steps, solution=_solution_record(steps, judgment.solution, outputs))


def _left_out_records(trace: Trace, left_out: LeaveOneOut | None, outputs: Outputs) -> list[LeftOutRecord]:
    if left_out is None:
        return []
    cells = triangle_cells([left_out.probs[missing] for missing in left_out.known], outputs)
    return [
        LeftOutRecord(step=trace.places[missing][0], substep=trace.places[missing][1], cells=row)
        for missing, row in zip(left_out.known, cells, strict=True)
    ]


def _solution_record(steps: Sequence[StepRecord], verdict: float | None, outputs: Outputs) -> SolutionRecord:
    redundant = any(step.redundant for step in steps)
    if outputs.in_words:
        # A verdict on redundancy says nothing about errors.
        valid = None if redundant or verdict is None else verdict >= 0.5
        return SolutionRecord(valid=valid, redundant=redundant or None)
    judged = [step for step in steps if step.valid is not None]
    if not judged:
        return SolutionRecord()
    is_three_way = outputs == Outputs.THREE_WAY
    return SolutionRecord(
        validity=min(step.validity or 0.0 for step in judged),
        redundancy=max(step.redundancy or 0.0 for step in judged) if is_three_way else None,
        valid=all(step.valid for step in judged),
        redundant=redundant if is_three_way else None,
    )


def probabilities(cells: Sequence[Cell]) -> Floats32:
    """Convert record cells to an array of shape (cells, 3) with columns neg, neu, pos. A cell of None becomes a row
    of zeros. Raises `UserError` if the three probabilities of a cell do not add up to 1."""
    vectors = [
        _VECTORS[cell] if cell is None or isinstance(cell, str)
        else (1 - cell, 0.0, cell) if isinstance(cell, float) else cell for cell in cells
    ]  # fmt: skip
    rows = np.array(vectors, np.float32).reshape(-1, len(Label))
    sums = rows.sum(axis=1)
    if ((np.abs(sums - 1) > _TOLERANCE) & (sums != 0)).any():
        raise UserError("neg, neu and pos do not add up to 1.")
    return rows


def triangle_cells(rows: Sequence[Floats32], outputs: Outputs) -> list[list[Cell]]:
    """Convert the rows of a hindsight triangle to record cells. Each row has the shape (sub-steps, 3), with columns
    neg, neu, pos."""
    probs = np.concatenate(rows) if rows else np.zeros((0, len(Label)), np.float32)
    if outputs.in_words:
        cells = [LABEL_NAMES[label] for label in probs.argmax(axis=1)]
    else:
        cells = _round(probs if outputs == Outputs.THREE_WAY else StepScores(probs).validity)
    judged = probs.max(axis=1) > 0
    all_cells = iter([cell if is_judged else None for cell, is_judged in zip(cells, judged, strict=True)])
    return [list(islice(all_cells, len(row))) for row in rows]


def _round(values: Floats32) -> Any:
    """Round probabilities and clip them to the range 0 to 1, because single precision can exceed it slightly."""
    return rounded(np.clip(values, 0, 1))


_MODES = (Mode.ONLINE, Mode.OFFLINE)
PLACE = ("dataset", "trace", "step", "substep", "text", "gold", "share")
EVALUATOR = ("evaluator", "fingerprint")
SCORES = tuple(name for name in StepRecord.model_fields if name not in PLACE)
WHOLE = ("change", "solution_score", "rationale")
LONG = (*PLACE, *EVALUATOR, "mode", *SCORES, *WHOLE)
"""A row per sub-step, evaluator and mode; without a step if the evaluator scores only whole solutions."""
WIDE = (*PLACE, *EVALUATOR, *(f"{mode}_{name}" for mode in _MODES for name in SCORES), *WHOLE)
"""A row per sub-step and evaluator."""
_OF_THE_STORE = ("dataset", "trace", "gold", "share")

Row = dict[str, Any]
ByMode = Mapping[Mode, JudgmentRecord]
"""The judgment by one evaluator that stands in each mode; a hindsight judgment may stand in all of them."""


def judgment_table(
    trace: Trace, judgments: Iterable[ByMode], columns: Sequence[str], dataset: str = ""
) -> Iterator[list[object]]:
    """Yield the header of a table, then its rows. `columns` is `LONG` (one row per mode) or `WIDE` (both modes in
    one row).

    If there are no judgments, only the sub-steps are listed. `dataset` is the dataset in which the trace is stored;
    if it is "", the columns for dataset, id, gold and share are left out.
    """
    head = [name for name in columns if dataset or name not in _OF_THE_STORE]
    places: dict[tuple[int, int], Row] = {
        (step, part): {"step": step, "substep": part, "text": text, "gold": owner.gold, "share": owner.share}
        for (step, part), text in zip(trace.places, trace.substeps, strict=True)
        for owner in (trace.steps[step - 1],)
    }
    rows = [row for by_mode in judgments for row in (_wide(by_mode) if columns is WIDE else _long(by_mode))]
    yield list(head)
    for row in rows or places.values():
        place = places.get((row.get("step", 0), row.get("substep", 0)), {})
        yield list(map({"dataset": dataset, "trace": trace.id, **place, **row}.get, head))


def _long(by_mode: ByMode) -> Iterator[Row]:
    for mode in (mode for mode in _MODES if mode in by_mode):
        whole, view = _whole_solution(by_mode[mode]) | {"mode": mode.value}, by_mode[mode].modes.get(mode)
        if view is None:
            yield whole
            continue
        for step, change in zip(view.steps, _changes(by_mode), strict=False):
            yield {**whole, **dict(step), "change": change}


def _wide(by_mode: ByMode) -> Iterator[Row]:
    records = {mode: by_mode[mode] for mode in _MODES if mode in by_mode and mode in by_mode[mode].modes}
    sides = zip(*(record.modes[mode].steps for mode, record in records.items()), strict=True)
    for steps, change in zip(sides, _changes(by_mode), strict=False):
        scores = {
            f"{mode}_{name}": value for mode, step in zip(records, steps, strict=True) for name, value in step
        }
        yield {**_whole_solution(next(iter(records.values()))), **dict(steps[0]), **scores, "change": change}


def _whole_solution(record: JudgmentRecord) -> Row:
    return {name: getattr(record, name) for name in (*EVALUATOR, "solution_score", "rationale")}


def _changes(by_mode: ByMode) -> Iterable[float | None]:
    """Return the offline minus the online validity of each sub-step, from the judgment in hindsight mode. Every
    entry is None if there is no such judgment."""
    record = by_mode.get(Mode.HINDSIGHT)
    if record is None or record.online is None or record.offline is None:
        return repeat(None)
    pairs = zip(record.online.steps, record.offline.steps, strict=True)
    return [
        None if early.validity is None or late.validity is None else rounded(late.validity - early.validity)
        for early, late in pairs
    ]
