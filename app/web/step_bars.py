"""Judged steps as all pages show them: a row for each sub-step, with verdicts, bars, marks and gold labels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from markupsafe import Markup

from stepsight.app.markup.markdown import markdown_html
from stepsight.app.markup.marking import Span, mark_spans, read_pieces, without_number
from stepsight.app.markup.text import CHECK_WORDS, VERDICT_WORDS
from stepsight.app.web.html import macro
from stepsight.core.arrays import Bools, Floats32
from stepsight.core.equations.checks import Check
from stepsight.core.equations.evaluator import checks_of, faults, finding
from stepsight.core.errors import UserError
from stepsight.core.evaluators.conclusion import Opinion, conclude
from stepsight.core.judgment import Judgment, Mode, Usage
from stepsight.core.scores import Hindsight, Outputs, StepScores, Thresholds, judge_solution, verdict_word
from stepsight.core.trace import LABEL_NAMES, Step, Trace
from stepsight.training.evaluate.strength import opinion_of

_TEMPLATE = "step_bars.html"
_FAILS = (Markup('<mark class="fails">'), Markup("</mark>"))
NOTABLE = 0.1
"""The smallest retroactive change that is coloured."""

ONLY_VALIDITY = "gives validity only, not redundancy"
"""The remark on an evaluator whose outputs are not three-way."""


def words_of(outputs: Outputs) -> dict[str, str]:
    """Return an evaluator's words for its verdicts, keyed by label. It must give its verdicts in words."""
    return CHECK_WORDS if outputs == Outputs.CHECKS else VERDICT_WORDS


@dataclass(frozen=True, eq=False)
class TraceJudgments:
    """The standing judgments of a trace in each mode, by the evaluator called `name`.

    If the trace has no judgments, `silence` is the reason. `stored` is True if they come from the store, and False
    if they were computed for this page. `runs` is True if the evaluator can score on this server, and `waits` is
    True while it is scoring the trace.
    """

    name: str
    outputs: Outputs
    thresholds: Thresholds
    by_mode: Mapping[Mode, Judgment] = field(default_factory=dict)
    stored: bool = False
    runs: bool = False
    silence: str = ""
    waits: bool = False

    @property
    def judgments(self) -> tuple[Judgment, ...]:
        """The standing judgments without duplicates. A single judgment may be the standing one in several modes."""
        return tuple(dict.fromkeys(self.by_mode.values()))

    @property
    def opinion(self) -> Opinion:
        """What the evaluator says, for the sentence that heads the result."""
        return opinion_of(self.name, self.outputs, self.thresholds, self.judgments)

    @property
    def is_three_way(self) -> bool:
        return self.outputs == Outputs.THREE_WAY

    @cached_property
    def online(self) -> StepScores | None:
        """The online scores of the steps, or None if there are none."""
        return self.by_mode[Mode.ONLINE].online if Mode.ONLINE in self.by_mode and self.outputs.has_steps else None

    @cached_property
    def offline(self) -> StepScores | None:
        """The offline scores of the steps, or None if there are none."""
        return (
            self.by_mode[Mode.OFFLINE].offline if Mode.OFFLINE in self.by_mode and self.outputs.has_steps else None
        )

    @property
    def hindsight(self) -> Hindsight | None:
        """The hindsight matrix, or None if there is none."""
        judgment = self.by_mode.get(Mode.HINDSIGHT)
        return judgment.hindsight if judgment is not None and self.outputs.has_scores else None

    @cached_property
    def modes(self) -> dict[Mode, StepScores]:
        """The scores of the steps, keyed by mode, with online first. Modes without scores are left out."""
        both = {Mode.ONLINE: self.online, Mode.OFFLINE: self.offline}
        if self.outputs == Outputs.CHECKS:
            # Later steps do not change a check.
            del both[Mode.ONLINE if self.offline is not None else Mode.OFFLINE]
        return {mode: scores for mode, scores in both.items() if scores is not None}

    @cached_property
    def silent(self) -> dict[Mode, Bools]:
        """For each mode, a mask of shape (n,) that selects the sub-steps without a verdict. The probabilities of
        these sub-steps are all zero."""
        return {mode: scores.probs.sum(axis=1) == 0 for mode, scores in self.modes.items()}

    @cached_property
    def change(self) -> Floats32 | None:
        """The offline minus the online validity of each sub-step, with shape (n,), or None if either is missing or
        the verdicts are in words. It comes from the hindsight judgment if there is one."""
        if self.outputs.in_words:
            return None
        if self.hindsight is not None:
            return self.hindsight.retroactive
        if self.online is None or self.offline is None:
            return None
        return self.offline.validity - self.online.validity

    def largest_change(self, trace: Trace) -> str:
        """Return as text the name of the sub-step whose validity changed most, and the change. Returns `none` if no
        validity changed visibly."""
        largest = 0 if self.change is None else int(abs(self.change).argmax())
        # The change would not show in two decimals.
        if self.change is None or abs(self.change[largest]) < 0.005:
            return "none"
        return f"step {trace.step_name(largest)}, {signed(float(self.change[largest]))}"

    def bar(self, mode: Mode, i: int, *, named: bool = False) -> Markup:
        """Render the scores of sub-step `i` in a mode as a bar. With `named`, its tooltip names the evaluator."""
        name = self.name if named else ""
        return bar_html(mode, self.modes[mode], i, self.thresholds, name, self.outputs)

    def verdict(self, mode: Mode, i: int) -> str:
        """Return the word for the verdict on sub-step `i` in a mode, at the current thresholds."""
        return verdict_word(self.modes[mode].probs[i], self.thresholds, self.outputs)

    def changed(self, i: int) -> Markup:
        """Render the retroactive change of sub-step `i`, or return empty markup if a mode is missing."""
        return Markup() if self.change is None else change_html(float(self.change[i]))

    @property
    def shape(self) -> str:
        """The kind of column: `marks` for verdicts in words, and otherwise bars for a `single` mode or for `both`
        modes."""
        if self.outputs.in_words:
            return "marks"
        return "single" if self.change is None else "both"

    @property
    def titles(self) -> dict[Mode, str]:
        """The titles of the modes, for a column without a heading. A title is "" if the modes do not differ."""
        return {mode: "" if self.outputs == Outputs.CHECKS else mode.value for mode in self.modes}

    @property
    def words(self) -> dict[str, str]:
        """The evaluator's words for its verdicts, keyed by label."""
        return words_of(self.outputs)

    @property
    def unsaid(self) -> str:
        """The text shown for a step without a verdict."""
        return "nothing to check" if self.outputs == Outputs.CHECKS else "no verdict"

    @property
    def solution(self) -> float | None:
        """The evaluator's own score of the whole solution: the offline score, or else the online score, or None."""
        both = [self.by_mode.get(mode) for mode in (Mode.OFFLINE, Mode.ONLINE)]
        return next((part.solution for part in both if part is not None and part.solution is not None), None)

    @property
    def rationales(self) -> list[str]:
        """The reasons that the evaluator gives for its verdicts, without duplicates."""
        return list(dict.fromkeys(judgment.rationale for judgment in self.judgments if judgment.rationale))

    @property
    def spent(self) -> Usage | None:
        """The total cost of the judgments on an inference server, or None if no cost is recorded."""
        each = [judgment.spent for judgment in self.judgments if judgment.spent is not None]
        return sum(each[1:], each[0]) if each else None


@dataclass(frozen=True)
class JudgedStep:
    """A row in a list of steps: one sub-step, whose index is `place`.

    `name` is the name of the sub-step (see `Trace.step_name`), and `html` is its text, with failing equations
    marked. `number` is the index of its `step`. `starts` is True for the first sub-step of a step.
    """

    place: int
    name: str
    html: Markup
    text: str
    step: Step
    number: int
    starts: bool
    is_first_error: bool

    @property
    def wrong(self) -> bool:
        """True if the gold label says that the step is wrong."""
        return self.step.valid is False

    @property
    def gold(self) -> Markup:
        return gold_html(self.step)


def judged_steps(
    trace: Trace,
    html_of: Callable[[str], Markup] = markdown_html,
    places: range | None = None,
) -> list[JudgedStep]:
    """Return a row for each sub-step of a trace, or for those with the indices in `places`. `html_of` renders the
    text of a sub-step as HTML, before failing equations are marked in it."""
    places = range(len(trace.substeps)) if places is None else places
    checks, first_error = checks_of(trace, places.stop), trace.first_error
    return [
        JudgedStep(
            i,
            trace.step_name(i),
            _step_html(trace, i, checks[i], html_of),
            trace.substeps[i],
            trace.steps[step - 1],
            step - 1,
            part == 1,
            part == 1 and step - 1 == first_error,
        )
        for i, (step, part) in zip(places, trace.places[places.start : places.stop], strict=True)
    ]


def substeps_of(trace: Trace, steps: range) -> range:
    """Return the indices of the sub-steps of consecutive steps."""
    start, end = np.searchsorted(trace.owners, [steps.start, steps.stop]).tolist()
    return range(start, end)


def column_names(columns: Sequence[TraceJudgments]) -> list[str]:
    """Return the names of a sub-step's bars, in their order: the mode, after the evaluator if there are several."""
    several = len(columns) > 1
    return [f"{column.name} {mode}" if several else mode.value for column in columns for mode in column.modes]


def legend_html(columns: Sequence[TraceJudgments]) -> Markup:
    """Render a legend of the marks and colours in these evaluators' bars."""
    spread = any(scores.spread is not None for column in columns for scores in column.modes.values())
    return macro(_TEMPLATE, "legend", any(column.is_three_way for column in columns), spread)


def notice_html(message: str | UserError) -> Markup:
    """Render a message about a failure and what to do about it. An empty message renders as nothing."""
    return macro(_TEMPLATE, "notice", message)


def note_html(note: object) -> Markup:
    """Render the note that comes with a trace. It is about the solution and not about any evaluator's verdict."""
    return macro(_TEMPLATE, "note", note) if isinstance(note, str) and note else Markup()


def signed(value: float) -> str:
    """Format a change with its sign, using a true minus sign and never a negative zero."""
    text = f"{abs(value):.2f}"
    return text if text == "0.00" else f"{'+' if value > 0 else '−'}{text}"


def solution_html(scores: StepScores, thresholds: Thresholds, outputs: Outputs = Outputs.THREE_WAY) -> Markup:
    """Render the verdict on the whole solution with its scores. Redundancy is included only if `outputs` are
    three-way."""
    return macro(_TEMPLATE, "solution", judge_solution(scores, thresholds), outputs == Outputs.THREE_WAY)


def gold_html(step: Step) -> Markup:
    """Render the gold label of a step and its share, or `unlabelled` if it has neither."""
    return macro(_TEMPLATE, "gold", step)


def bar_html(
    mode: str,
    scores: StepScores,
    i: int,
    thresholds: Thresholds,
    name: str = "",
    outputs: Outputs = Outputs.THREE_WAY,
) -> Markup:
    """Render the three probabilities of sub-step `i` as a bar with its mark and validity.

    The other numbers are in its tooltip. If the evaluator's `outputs` are not three-way, only validity is drawn.
    `name` is the evaluator's name for the tooltip, which is needed if several evaluators are side by side. The
    spread of an ensemble is drawn as a line across the end of the invalid part.
    """
    values = {name: float(p) for name, p in zip(LABEL_NAMES, scores.probs[i], strict=True)}
    validity, three = values["neu"] + values["pos"], outputs == Outputs.THREE_WAY
    spread = None if scores.spread is None else float(scores.spread[i])
    verdict = verdict_word(scores.probs[i], thresholds, outputs)
    numbers, reach = values if three else {"validity": validity}, None
    if spread is not None:
        numbers = numbers | {"spread": spread}
        # Both ends of the line, as fractions of the bar's length from its invalid end.
        reach = max(0.0, 1 - validity - spread), min(1.0, 1 - validity + spread)
    words = ", ".join(f"{key} {number:.2f}" for key, number in numbers.items())
    return macro(
        _TEMPLATE,
        "bar",
        mode=mode,
        verdict=verdict,
        title=f"{name}, {mode}: {words}; {verdict}" if name else f"{mode}: {words}; {verdict}",
        parts=values if three else {"neg": 1 - validity, "pos": validity},
        validity=validity,
        spread=reach,
    )


def change_html(value: float) -> Markup:
    """Render a retroactive change of validity, coloured if it is notable."""
    return macro(_TEMPLATE, "change", notable(value), signed(value))


def notable(value: float) -> str:
    """Return the CSS class that colours a change of validity, or "" for a small change."""
    return ("rise" if value > 0 else "fall") if abs(value) >= NOTABLE else ""


def _step_html(trace: Trace, i: int, checks: Sequence[Check], html_of: Callable[[str], Markup]) -> Markup:
    text, failing, (step, part) = trace.substeps[i], faults(checks), trace.places[i]
    html = html_of(text)
    if failing:
        places = [span for check in failing if (span := _place(html, text, check)) is not None]
        html = mark_spans(html, _merge_spans(places, _formulas(html)), _FAILS)
        html += macro(_TEMPLATE, "findings", [finding(trace, i, check) for check in failing])
    return without_number(html, step) if part == 1 else html


def conclusion_html(trace: Trace, columns: Sequence[TraceJudgments], thinking: int | None = None) -> Markup:
    """Render the sentence that heads a result, about a trace and its judgments by evaluators. `thinking` is as in
    `conclude`."""
    return macro(_TEMPLATE, "conclusion", conclude(trace, [column.opinion for column in columns], thinking))


def failing_steps(trace: Trace) -> list[int]:
    """Return the indices of the sub-steps that have a failing equation."""
    return [i for i, part in enumerate(checks_of(trace)) if faults(part)]


def checked_step(trace: Trace, step: int) -> list[Markup]:
    """Render the sub-steps of the step with this index, with failing equations marked."""
    return [row.html for row in judged_steps(trace, places=substeps_of(trace, range(step, step + 1)))]


def _merge_spans(places: list[Span], formulas: list[Span]) -> list[Span]:
    """Merge marked spans that overlap, such as those within one formula."""
    joined: list[Span] = []
    for start, end in sorted(_with_whole_formulas(span, formulas) for span in places):
        if joined and start < joined[-1][1]:
            first, last = joined.pop()
            start, end = first, max(last, end)
        joined.append((start, end))
    return joined


def _with_whole_formulas(span: Span, formulas: list[Span]) -> Span:
    """Extend a span to include the whole of each formula that it overlaps."""
    met = [formula for formula in formulas if formula[0] < span[1] and span[0] < formula[1]]
    return min(start for start, _ in [span, *met]), max(end for _, end in [span, *met])


def _formulas(html: Markup) -> list[Span]:
    """Return the spans of all formulas, as positions in the text of the HTML."""
    spans, start = [], 0
    for number, text in enumerate(read_pieces(html)[1]):
        if number % 2 and text:
            spans.append((start, start + len(text)))
        start += len(text)
    return spans


def _place(html: Markup, text: str, check: Check) -> Span | None:
    """Return the span of an equation as positions in the text of the HTML, in which Markdown syntax is missing.
    Returns None if the equation itself contains Markdown syntax."""
    shown = "".join(read_pieces(html)[1])
    if shown == text:
        return check.start, check.end
    equation = text[check.start : check.end]
    # The same equation may occur earlier in the text, and then as many times in the HTML.
    position, earlier = -1, text[: check.start].count(equation)
    for _ in range(earlier + 1):
        position = shown.find(equation, position + 1)
        if position < 0:
            return None
    return position, position + len(equation)
