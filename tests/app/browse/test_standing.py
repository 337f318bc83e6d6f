"""Every reader gives the standing judgment: of those that are not stale and give the mode, the one saved last."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from stepsight.app.browse.evaluator_choice import find_choice, judge_trace, list_choices
from stepsight.core.evidence import Flip
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.metrics.reasoneval import SOLUTION_THRESHOLD
from stepsight.core.scores import Hindsight, Outputs, StepScores
from stepsight.core.trace import Label, Step, Trace
from stepsight.storage.browse.browse import browse, list_matching
from stepsight.storage.browse.filters import Sort, TraceFilter
from stepsight.storage.browse.outcomes import find_flips
from stepsight.storage.database import schema
from stepsight.storage.database.store import Store
from stepsight.storage.exports.frames import frame, judgment_frames
from stepsight.storage.judgments.columns import read_gold, read_table
from stepsight.storage.judgments.evaluators import register_evaluator
from stepsight.storage.judgments.judgments import count_missing, read_judgments, save_judgments
from stepsight.storage.labelling.review import shown_scores
from stepsight.storage.traces.queries import find_dataset
from tests.storage.samples import add

ONLINE, OFFLINE, HINDSIGHT = Mode.ONLINE, Mode.OFFLINE, Mode.HINDSIGHT
MODES = ONLINE, OFFLINE
EVALUATOR = "judge"
TRACE = Trace("", "q", (Step(("a", "b"), Label.NEG), Step(("c",), Label.POS)))
# Step 1 is its second sub-step, the less valid one; step 2 is valid whoever judges.
FIRST, LAST = 0.06, 0.97

Said = dict[tuple[str, Mode], float | bool | None]
"""By trace and mode the validity of step 1, or of the solution; None where nothing is said."""


@dataclass(frozen=True)
class Case:
    """Judgments in the order in which they are stored: mode, hour, and what is special. `stands` are the places of
    those that stand online, offline and in hindsight."""

    judgments: tuple[tuple[Mode, int, str], ...]
    stands: tuple[int | None, int | None, int | None]


CASES = {
    "online": Case(((ONLINE, 1, ""),), (0, None, None)),
    "offline": Case(((OFFLINE, 1, ""),), (None, 0, None)),
    "both": Case(((OFFLINE, 1, ""), (ONLINE, 2, "")), (1, 0, None)),
    "hindsight": Case(((HINDSIGHT, 1, ""),), (0, 0, 0)),
    "offline newer": Case(((HINDSIGHT, 1, ""), (OFFLINE, 2, "")), (0, 1, 0)),
    "offline older": Case(((OFFLINE, 1, ""), (HINDSIGHT, 2, "")), (1, 1, 1)),
    "online newer": Case(((HINDSIGHT, 1, ""), (ONLINE, 2, "")), (1, 0, 0)),
    "online older": Case(((ONLINE, 1, ""), (HINDSIGHT, 2, "")), (1, 1, 1)),
    "both newer": Case(((HINDSIGHT, 1, ""), (ONLINE, 2, ""), (OFFLINE, 3, "")), (1, 2, 0)),
    "by a clock that was set back": Case(((HINDSIGHT, 2, ""), (OFFLINE, 1, "")), (0, 1, 0)),
    "at once, hindsight first": Case(((HINDSIGHT, 1, ""), (OFFLINE, 1, "")), (0, 1, 0)),
    "at once, hindsight last": Case(((OFFLINE, 1, ""), (HINDSIGHT, 1, "")), (1, 1, 1)),
    "judged again": Case(((OFFLINE, 1, ""), (HINDSIGHT, 2, ""), (OFFLINE, 3, "")), (1, 2, 1)),
    "newest offline stale": Case(((HINDSIGHT, 1, ""), (OFFLINE, 2, "stale")), (0, 0, 0)),
    "newest hindsight stale": Case(((OFFLINE, 1, ""), (HINDSIGHT, 2, "stale")), (None, 0, None)),
    "all stale": Case(((HINDSIGHT, 1, "stale"), (ONLINE, 2, "stale")), (None, None, None)),
    "newest partial": Case(((HINDSIGHT, 1, ""), (OFFLINE, 2, "partial")), (0, 1, 0)),
}


def value(outputs, case, place, stored, mode):
    """The validity of step 1 that the judgment at a place gives in a mode, each its own. Hindsight turns it from
    valid to invalid where there are numbers for steps."""
    more = 0.001 * case + 0.02 * place
    if stored == HINDSIGHT:
        return (0.6 - more if mode == ONLINE and outputs.has_steps and outputs.has_scores else 0.1) + more / 2
    return (0.2 if mode == ONLINE else 0.8) + more


def rows(outputs, validity):
    """A row for each sub-step."""
    values = np.array([validity + FIRST, validity, LAST], np.float32)
    if outputs == Outputs.SOLUTION:
        return np.zeros((3, 3), np.float32)
    values = (values >= 0.5).astype(np.float32) if outputs.in_words else values
    return np.stack([1 - values, np.zeros_like(values), values], axis=1)


def judgment(outputs, trace, case, place, stored, how):
    trace = replace(trace, problem="What it was before") if how == "stale" else trace
    online, offline = (value(outputs, case, place, stored, mode) for mode in MODES)
    whole = online if stored == ONLINE else offline
    last = rows(outputs, whole)
    if how == "partial":
        last[1] = 0
    result: StepScores | Hindsight = StepScores(last)
    if stored == HINDSIGHT:
        first = rows(outputs, online)
        result = Hindsight((first[:1], first[:2], last))
    solution = whole if outputs == Outputs.SOLUTION else float(whole >= 0.5) if outputs.in_words else None
    return Judgment(trace, stored, result, solution)


class Judged:
    """A store with a trace of each case, judged by one evaluator, and what is expected of all readers."""

    def __init__(self, store: Store, outputs: Outputs, patch: pytest.MonkeyPatch) -> None:
        in_numbers = outputs in (Outputs.THREE_WAY, Outputs.VALIDITY)
        cases = {name: case for name, case in CASES.items() if in_numbers or "partial" not in name}
        self.store, self.outputs, self.in_numbers = store, outputs, in_numbers
        self.traces = add(store, [replace(TRACE, id=name, problem=name) for name in cases])
        self.dataset = find_dataset(store, "sums")
        self.ids = {trace.trace_id: trace.id for trace in self.traces}
        self.row = evaluator(store, EVALUATOR, outputs)
        self.expected: Said = {}
        self.change: dict[str, float] = {}
        self.modes: dict[str, set[Mode]] = {}
        for number, (trace, case) in enumerate(zip(self.traces, cases.values(), strict=True)):
            for place, (stored, hour, how) in enumerate(case.judgments):
                patch.setattr(schema, "_clock", lambda hour=hour: datetime(2030, 1, 1, hour, tzinfo=UTC))
                save_judgments(store, self.row.id, [judgment(outputs, trace, number, place, stored, how)])
            for mode, place in zip(MODES, case.stands[:2], strict=True):
                self.expected[trace.id, mode] = self._expected(number, case, place, mode)
            if case.stands[2] is not None and in_numbers:
                said = [value(outputs, number, case.stands[2], HINDSIGHT, mode) for mode in MODES]
                self.change[trace.id] = said[0] - said[1]
            self.modes[trace.id] = {case.judgments[place][0] for place in case.stands if place is not None}

    def _expected(self, number: int, case: Case, place: int | None, mode: Mode) -> float | bool | None:
        if place is None or case.judgments[place][2] == "partial":
            return None
        return self.shown(value(self.outputs, number, place, case.judgments[place][0], mode))

    def shown(self, validity: float | None) -> float | bool | None:
        """A validity as it is compared: to 4 digits, which Annotate's scores have; a verdict where it is one."""
        if validity is None or np.isnan(validity):
            return None
        return bool(validity >= 0.5) if self.outputs.in_words else round(float(validity), 4)

    def best(self, trace_id: str) -> float | bool | None:
        """What is expected offline, else online."""
        offline = self.expected[trace_id, OFFLINE]
        return self.expected[trace_id, ONLINE] if offline is None else offline


def evaluator(store, name, outputs):
    about = {"fingerprint": name, "format": "x", "attention": "bidirectional", "info": {"outputs": outputs.value}}
    return register_evaluator(store, name=name, **about)


@pytest.fixture(params=list(Outputs))
def judged(request, store, monkeypatch):
    return Judged(store, request.param, monkeypatch)


def test_every_reader_gives_the_judgment_that_stands(judged, evaluators):
    store, expected, dataset = judged.store, judged.expected, judged.dataset
    assert results(judged) == expected
    assert browsed(judged) == expected
    assert {id: value for id, value in browsed_changes(judged).items() if value is not None} == {
        id: round(value, 4) for id, value in judged.change.items()
    }
    parts = list(judgment_frames(store, "sums", list(judged.ids), [judged.row.id]))
    assert exported(judged, frame(store, "sums", metadata=False)) == expected
    assert {id: value for id, value in changes_exported(judged, parts).items() if id in judged.change} == {
        id: round(value, 4) for id, value in judged.change.items()
    }
    for mode in MODES:
        assert count_missing(store, dataset.id, judged.row.id, mode) == sum(
            not modes & {mode, HINDSIGHT} for modes in judged.modes.values()
        )
    check_page(judged, evaluators)
    check_labelling(judged)
    if judged.in_numbers:
        found = find_flips(store, dataset.id, judged.row.id, 0.5)
        assert {judged.ids[id] for id in found.of(Flip.RIGHTED).tolist()} == set(judged.change)


def results(judged):
    gold, said = read_gold(judged.store, judged.dataset), {}
    for mode in MODES:
        table = read_table(judged.store, gold, judged.row.id, mode)
        of_step = dict(
            zip(table.trace[table.position == 0].tolist(), table.validity[table.position == 0], strict=True)
        )
        of_trace = table.solution if judged.outputs == Outputs.SOLUTION else of_step
        for place, name in enumerate(gold.ids):
            there = judged.outputs == Outputs.SOLUTION or place in of_trace
            said[name, mode] = judged.shown(of_trace[place] if there else None)
    return said


def browsed(judged):
    """What the list shows; the filter and the facet agree with it."""
    said = {}
    for mode in MODES:
        where = TraceFilter(evaluator=judged.row.id, mode=mode.value)
        page = browse(judged.store, judged.dataset.id, where)
        for row in page.rows:
            assert row.validity == (row.online_validity if mode == ONLINE else row.offline_validity)
            said[row.id, mode] = judged.shown(row.validity)
        bound = SOLUTION_THRESHOLD if judged.outputs == Outputs.SOLUTION else 0.5
        valid = [row.trace_id for row in page.rows if row.validity is not None and row.validity >= bound]
        assert (
            list_matching(judged.store, judged.dataset.id, where.model_copy(update={"verdict": "valid"})) == valid
        )
        assert page.counts["verdict"]["valid"] == len(valid)
    return said


def browsed_changes(judged):
    """The largest change of each trace, as either mode has it."""
    if not judged.in_numbers:
        return {}
    online, offline = (
        browse(
            judged.store, judged.dataset.id, TraceFilter(evaluator=judged.row.id, mode=mode.value), Sort("change")
        )
        for mode in MODES
    )
    changes = {row.id: row.change and round(row.change, 4) for row in online.rows}
    assert changes == {row.id: row.change and round(row.change, 4) for row in offline.rows}
    return changes


def exported(judged, rows):
    said = dict.fromkeys(judged.expected)
    for row in rows.to_dict("records"):
        if judged.outputs == Outputs.SOLUTION:
            said[row["trace"], Mode(row["mode"])] = judged.shown(row["solution_score"])
        # The second sub-step, where there is a row for each.
        elif row["step"] == 1 and row.get("substep", 2) == 2:
            number = row["valid"] if judged.outputs.in_words else row["validity"]
            said[row["trace"], Mode(row["mode"])] = judged.shown(None if pd.isna(number) else number)
    return said


def changes_exported(judged, parts):
    rows = pd.concat(parts)
    changes = (
        rows[rows.change.notna() & (rows.step == 1) & (rows.substep == 2)].groupby("trace", observed=True).change
    )
    assert (changes.nunique() == 1).all()
    return {str(id): round(-float(change), 4) for id, change in changes.first().items()}


def check_page(judged, evaluators):
    choice = find_choice(list_choices(judged.store, evaluators, judged.dataset.id), EVALUATOR)
    for trace in judged.traces:
        (answer,) = judge_trace(judged.store, evaluators, [choice], trace, 60.0)
        if judged.outputs == Outputs.SOLUTION:
            assert judged.shown(answer.solution) == judged.best(trace.id)
            continue
        for mode, scores in ((ONLINE, answer.online), (OFFLINE, answer.offline)):
            said = scores is not None and scores.probs[1].any()
            found = judged.shown(float(scores.validity[1]) if said else None)  # type: ignore[union-attr]
            assert found == judged.expected[trace.id, mode], (trace.id, mode)
        if trace.id in judged.change:
            assert answer.change is not None
            assert -answer.change[1] == pytest.approx(judged.change[trace.id], abs=1e-6)


def check_labelling(judged):
    store = judged.store
    for trace in judged.traces:
        shown = shown_scores(trace, read_judgments(store, trace)) if judged.outputs.has_steps else ()
        # What an offline judgment leaves out is not taken from an online one.
        if shown and judged.expected[trace.id, OFFLINE] is not None:
            assert judged.shown(shown[0].validity[0]) == judged.expected[trace.id, OFFLINE]
        elif shown and shown[0].mode == ONLINE:
            assert judged.shown(shown[0].validity[0]) == judged.expected[trace.id, ONLINE]
