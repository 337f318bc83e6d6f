"""The evidence on one trace: the query string that names it, and an evaluator's hindsight matrix for a stored trace
or a solution from the Score page."""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from stepsight.app.browse.evaluator_choice import EvaluatorChoice, find_choice, judge_trace, list_choices
from stepsight.app.evidence.sentences import (
    change_sentence,
    constant_sentence,
    equation_sentence,
    gold_sentence,
    left_out_sentence,
    only_offline_sentence,
)
from stepsight.app.score.entered import Entered
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.scoring.loading import LoadingError
from stepsight.app.web.pages import Number, PageNumber, PageQuery
from stepsight.app.web.step_bars import TraceJudgments
from stepsight.core.equations.evaluator import FailingEquation, failing_equations, finding
from stepsight.core.errors import UserError
from stepsight.core.evaluator_summary import SERVED, EvaluatorSummary
from stepsight.core.evidence import Flip, LeaveOneOut, Revision, largest_jump, removals, revisions
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.judgment_record import judgment_record
from stepsight.core.scores import Hindsight, Thresholds
from stepsight.core.trace import Trace
from stepsight.core.validation import choice
from stepsight.storage.browse.outcomes import hindsight_evaluators
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import StoredEvaluator
from stepsight.storage.judgments.judgments import read_judgments
from stepsight.storage.judgments.left_outs import evaluators_with_left_out, find_left_out
from stepsight.storage.traces.queries import StoredTrace, get_trace

if TYPE_CHECKING:
    from stepsight.core.scoring.scorer import Scorer


STAYED = "stayed"
"""The kind of traces in which no verdict changed."""

KINDS = (*(flip.value for flip in Flip), STAYED)
"""The kinds of traces in the gallery."""

PROBLEM = "problem"
"""The place at which a presentation begins, before any step is revealed."""


class EvidenceAddress(PageQuery):
    """The query of the Evidence page, for one trace or for the gallery of a `dataset`.

    A trace is given as `trace`, a database id, or as `s`, the token of a permalink to the Score page. `evaluator`
    is the evaluator's key (see `EvaluatorChoice`), `kind` is one of `KINDS`, and `page` counts from 1.

    The remaining fields apply to one trace. `step` names the selected sub-step, and `after` the last sub-step
    revealed. `present` opens the page as a presentation, at `PROBLEM`, at the name of the last sub-step revealed,
    or, as `evidence`, at its end.
    """

    PATH: ClassVar[str] = "/evidence"

    trace: Number | None = None
    s: str = ""
    dataset: str = ""
    evaluator: str = ""
    kind: Annotated[str, choice(KINDS)] = ""
    page: PageNumber = 1
    step: str = ""
    after: str = ""
    present: str = ""

    @property
    def opens(self) -> bool:
        """True if the query names a trace."""
        return bool(self.s) or self.trace is not None


MOST_CELLS = 60
"""The largest number of sub-steps that each have a row and a column of the matrix; more are grouped."""


class JudgingError(LoadingError):
    """Raised while the evaluator is judging `trace` or being loaded. The trace can be shown in the meantime.
    `judged` is the number of sub-steps that are judged online so far, or 0 if that is unknown."""

    def __init__(self, evaluator: str, trace: Trace, judged: int = 0) -> None:
        steps = f", {judged} of {len(trace.substeps)} steps so far" if judged else ""
        super().__init__(f"{evaluator} is judging this solution{steps}.")
        self.trace = trace


@dataclass(frozen=True, eq=False)
class Evidence:
    """A hindsight judgment of one trace, by the evaluator that `about` describes.

    `evaluator` is the evaluator's key, and `choices` are the keys of all evaluators with evidence on the trace.
    `scorer` is a function that returns the evaluator's scorer, or None if the evaluator cannot score on this
    server. `has_left_out` is True if its leave-one-out scores are stored, and `find_left_out` reads them.
    `only_offline` is True if only offline scores are known, which then fill the whole matrix.
    """

    judgment: Judgment
    evaluator: str
    about: EvaluatorSummary | StoredEvaluator
    thresholds: Thresholds
    scorer: "Callable[[], Scorer] | None"
    choices: Sequence[str]
    has_left_out: bool = False
    find_left_out: Callable[[], LeaveOneOut | None] = lambda: None
    only_offline: bool = False

    @property
    def calls(self) -> int:
        """The approximate number of server calls that leaving out each sub-step takes, or 0 if the evaluator needs
        no inference server."""
        return len(self) + 1 if self.about.dtype == SERVED else 0

    @property
    def trace(self) -> Trace:
        return self.judgment.trace

    @cached_property
    def hindsight(self) -> Hindsight:
        assert self.judgment.hindsight is not None
        return self.judgment.hindsight

    @cached_property
    def judgments(self) -> TraceJudgments:
        """The judgment in the form that the list of steps shows. The evaluator's name is "", because it is shown
        above the list."""
        return TraceJudgments("", self.about.outputs, self.thresholds, dict.fromkeys(Mode, self.judgment))

    def judgment_data(self, *, is_whole: bool = False) -> dict[str, str]:
        """Return the judgment as attributes for the page's script.

        They hold its record or, for a long trace unless `is_whole`, the record of its offline scores and the
        triangle in base64: its rows one after another, with three little-endian float32 for each cell. If it is
        `constant`, this is the last row alone.
        """
        record = partial(judgment_record, evaluator=self.about, thresholds=self.thresholds, name=self.evaluator)
        if is_whole or len(self) <= MOST_CELLS:
            return {"judgment": record(self.judgment).model_dump_json()}
        offline = replace(self.judgment, mode=Mode.OFFLINE, result=self.hindsight.offline)
        *earlier, last = self.hindsight.rows
        is_constant = all(np.array_equal(row, last[: len(row)]) for row in earlier)
        constant = {"constant": "true"} if is_constant else {}
        packed = last if is_constant else self.hindsight.packed
        triangle = base64.b64encode(packed.astype("<f4").tobytes()).decode()
        return {"judgment": record(offline).model_dump_json(), "triangle": triangle} | constant

    def __len__(self) -> int:
        """Return the number of sub-steps."""
        return len(self.hindsight)

    @property
    def is_causal(self) -> bool:
        return not self.about.sees_later_steps

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the sub-steps, such as `3`, or `3.2` if step 3 has several."""
        return tuple(map(self.trace.step_name, range(len(self))))

    @cached_property
    def revisions(self) -> list[Revision]:
        """The revision of each step by later steps."""
        return revisions(self.hindsight, self.trace, self.thresholds.validity)

    @cached_property
    def focus(self) -> int:
        """The index of the sub-step that is selected at first: the one with the largest revision."""
        return max(self.revisions, key=lambda revision: abs(revision.change)).substep

    def place(self, name: str, otherwise: int) -> int:
        """Return the index of the sub-step with this name, or `otherwise` if the name is "". Raises `UserError` if
        no sub-step has this name."""
        if not name:
            return otherwise
        if name not in self.names:
            raise UserError(
                f"There is no step {name!r:.20} in this trace.",
                f"Its steps are {self.names[0]} to {self.names[-1]}.",
            )
        return self.names.index(name)

    def change_sentence(self, step: int) -> str:
        """Describe how later sub-steps affected the sub-step with index `step`."""
        return change_sentence(self.names, self.hindsight, step, largest_jump(self.hindsight, step))

    @cached_property
    def failing(self) -> list[FailingEquation]:
        """The failing equations of the solution, which are evidence for any evaluator."""
        return failing_equations(self.trace)

    @cached_property
    def marked_cells(self) -> dict[tuple[int, int], str]:
        """Words for the cells of the matrix at which an equation fails or is contradicted, by row and column."""
        words = {(equation.substep, equation.substep): "an equation fails here" for equation in self.failing}
        return words | {
            (later, equation.substep): "contradicts an equation"
            for equation in self.failing
            for later in equation.contradicted
        }

    def equation_sentence(self, step: int) -> str:
        """Say what is right in place of the failing equations of a sub-step, which later steps contradict it, and
        which earlier ones it contradicts. Returns "" if there is nothing to say."""
        own = [equation for equation in self.failing if equation.substep == step]
        findings = [finding(self.trace, step, equation.check) for equation in own]
        against = {later for equation in own for later in equation.contradicted}
        contradicted = {equation.substep for equation in self.failing if step in equation.contradicted}
        return equation_sentence(self.names, findings, against, contradicted, step)

    def gold_sentence(self, step: int) -> str:
        """Compare in words a step's revision with its gold label. `step` is the index of one of its sub-steps.

        Returns "" if the trace has no gold labels.
        """
        owner = int(self.trace.owners[step])
        return gold_sentence(self.revisions[owner], self.trace.steps[owner].valid) if self.trace.has_gold else ""

    @property
    def constant_sentence(self) -> str:
        """The reason why the matrix shows no changes: the evaluator reads no later steps, or only offline scores
        are stored. It is "" if neither is the case."""
        if self.only_offline:
            return only_offline_sentence(self.evaluator)
        return constant_sentence(self.evaluator) if self.is_causal else ""

    def left_out_sentence(self, left_out: LeaveOneOut, step: int) -> str:
        """Return a sentence that names the later sub-steps on which the verdict on a sub-step rests. Returns "" if
        the verdict never changes."""
        if self.is_causal or self.only_offline:
            return ""
        threshold = self.thresholds.validity
        without = removals(self.hindsight, left_out, step, threshold)
        online, offline = (side.validity[step] for side in (self.hindsight.online, self.hindsight.offline))
        turned = bool((online >= threshold) != (offline >= threshold))
        return left_out_sentence(self.names, self.hindsight, step, without, turned)


def open_evidence(store: Store, evaluators: Evaluators, address: EvidenceAddress, patience: float) -> Evidence:
    """Open the evidence on the stored trace or entered solution that an address names.

    Raises `JudgingError` if the judgment is not ready after `patience` seconds; judging then continues in the
    background, for a later request. Raises `UserError` if the trace or evaluator does not exist, if the evaluator
    cannot judge the trace, or if it has judged the trace only in a different mode.
    """
    return _judge(evaluators, address, patience) if address.s else _open(store, evaluators, address, patience)


def _judge(evaluators: Evaluators, address: EvidenceAddress, patience: float) -> Evidence:
    entered = Entered.from_token(address.s)
    trace = entered.trace
    offered = (name for name in entered.evaluators if evaluators.gives_scores(name))
    name = address.evaluator or next(offered, "") or evaluators.default
    pending = evaluators.submit(name, trace, comes_back=True)
    try:
        judgment = pending.result(patience)
    except TimeoutError:
        raise JudgingError(name, trace, len(pending.steps)) from None
    about, ask = evaluators.about(name), _scorer_on_demand(evaluators, name)
    return Evidence(judgment, name, about, entered.thresholds, ask, evaluators.names)


def _open(store: Store, evaluators: Evaluators, address: EvidenceAddress, patience: float) -> Evidence:
    assert address.trace is not None
    trace = get_trace(store, address.trace)
    listed = list_choices(store, evaluators, trace.dataset_id, address.evaluator)
    offers = [choice for choice in listed if choice.outputs.has_scores]
    offer = find_choice(offers, address.evaluator or _first_key(store, offers, trace) or evaluators.default)
    (answer,) = judge_trace(store, evaluators, [offer], trace, patience)
    left_out = evaluators_with_left_out(store, trace.trace_id)
    has_left_out = offer.id in left_out
    stored = answer.by_mode.get(Mode.HINDSIGHT)
    judgment = stored or _constant(offer.row, answer, has_left_out=has_left_out)
    if answer.waits and judgment is None:
        raise JudgingError(offer.key, trace, len(evaluators.submit(offer.key, trace, comes_back=True).steps))
    if judgment is None:
        reason = answer.silence or "it has judged this trace, but not in hindsight mode."
        raise UserError(f"{offer.key}: {reason}", "Choose another evaluator.")
    evaluator_ids = {*hindsight_evaluators(store).get(trace.dataset_id, ()), *left_out}
    choices = [offer.key for offer in offers if offer.runs or offer.id in evaluator_ids or _is_causal(offer.row)]
    about = evaluators.about(offer.key) if offer.runs else offer.row
    assert about is not None
    ask = _scorer_on_demand(evaluators, offer.key) if offer.runs else None
    find = partial(find_left_out, store, about.fingerprint, trace)
    only_offline = stored is None and not _is_causal(offer.row)
    return Evidence(judgment, offer.key, about, answer.thresholds, ask, choices, has_left_out, find, only_offline)


def _first_key(store: Store, offers: Sequence[EvaluatorChoice], trace: StoredTrace) -> str:
    """Return the key of the evaluator to begin with: one whose hindsight judgment of the trace is stored, or else
    the first one, preferring evaluators that are loaded here and, among these, bidirectional ones. Returns "" if
    there are none."""
    stored = {
        judgment.evaluator.id
        for judgment in read_judgments(store, trace)
        if judgment.mode == Mode.HINDSIGHT and not judgment.stale
    }
    return next((offer.key for offer in offers if offer.id in stored), offers[0].key if offers else "")


def _is_causal(row: StoredEvaluator | None) -> bool:
    return row is not None and not row.sees_later_steps


def _constant(row: StoredEvaluator | None, answer: TraceJudgments, *, has_left_out: bool) -> Judgment | None:
    """Build a hindsight judgment in which no score ever changes, from an offline judgment or, if the evaluator is
    causal, an online one. Returns None if the store has neither.

    If the evaluator is not causal, this is done only if it `has_left_out`, its leave-one-out scores in the store.
    """
    causal = _is_causal(row)
    given = answer.by_mode.get(Mode.OFFLINE) or (answer.by_mode.get(Mode.ONLINE) if causal else None)
    if given is None or not (causal or has_left_out):
        return None
    scores = given.offline or given.online
    assert scores is not None
    return replace(given, mode=Mode.HINDSIGHT, result=Hindsight.constant(scores))


def _scorer_on_demand(evaluators: Evaluators, name: str) -> "Callable[[], Scorer]":
    """Return a function that returns the scorer of an evaluator. The scorer is loaded only when the function is
    called, because stored evidence can be shown without it."""
    return lambda: evaluators.scorer(name)
