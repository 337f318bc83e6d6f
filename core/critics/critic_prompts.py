"""The questions that a critic is asked about a trace, and the judgment built from its answers.

A critic that sees all steps and gives a verdict on each of them is asked once offline, once per step online, and
once per sub-step in hindsight. A critic that gives a verdict only on the last step is asked once per sub-step in
every mode, and never sees a later step.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from stepsight.core.arrays import Floats32
from stepsight.core.critics.presets import Preset
from stepsight.core.critics.verdict_parser import READINGS, Verdicts
from stepsight.core.judgment import Judgment, Mode, Usage
from stepsight.core.label import Label
from stepsight.core.scores import Hindsight, StepScores
from stepsight.core.trace import Trace

# The approximate number of characters per token, in problems and steps.
_CHARACTERS = 3
# The longest rationale in characters.
_LONGEST = 40_000


@dataclass(frozen=True)
class Line:
    """A sequence of questions to a critic about one trace, asked for sample number `sample`.

    `counts` gives the number of sub-steps that each question shows. If earlier answers stay in the conversation,
    the questions are asked one after the other; otherwise the sequence has a single question.
    """

    sample: int
    counts: tuple[int, ...]


@dataclass(frozen=True)
class CallEstimate:
    """The estimated number of calls and tokens needed to judge some traces."""

    traces: int = 0
    calls: int = 0
    tokens: int = 0

    def __add__(self, other: "CallEstimate") -> "CallEstimate":
        return CallEstimate(self.traces + other.traces, self.calls + other.calls, self.tokens + other.tokens)


def counts(preset: Preset, trace: Trace, mode: Mode) -> tuple[int, ...]:
    """Return the number of sub-steps that each question about a trace shows, in order."""
    whole = len(trace.substeps)
    if mode == Mode.HINDSIGHT or not READINGS[preset.reading].of_all:
        return tuple(range(1, whole + 1))
    return (whole,) if mode == Mode.OFFLINE else tuple(sorted({int(end) + 1 for end in trace.step_ends}))


def lines(preset: Preset, trace: Trace, mode: Mode, samples: int) -> Iterator[Line]:
    """Yield the sequences of questions about a trace, sample by sample."""
    shown = counts(preset, trace, mode)
    for sample in range(samples):
        if READINGS[preset.reading].keeps:
            yield Line(sample, shown)
        else:
            yield from (Line(sample, (count,)) for count in shown)


def estimate(preset: Preset, trace: Trace, mode: Mode, samples: int) -> CallEstimate:
    """Estimate the number of calls and tokens needed to judge a trace. The token estimate is based on the number of
    characters and the usual length of the critic's answers per step."""
    reading, shown, texts = READINGS[preset.reading], counts(preset, trace, mode), trace.substeps
    read = [0, *accumulate(map(len, texts))]
    whole = sum(len(message["content"]) for message in preset.messages(trace.problem, texts))
    tokens = 0
    for count in shown:
        tokens += (whole - read[-1] + read[count]) // _CHARACTERS
        tokens += preset.written * (count if reading.of_all else 1)
        # Earlier answers are sent again.
        tokens += preset.written * (count - 1) if reading.keeps else 0
    return CallEstimate(1, samples * len(shown), samples * tokens)


def judgment(
    preset: Preset, trace: Trace, mode: Mode, said: Mapping[int, Sequence[Verdicts]], spent: Usage | None = None
) -> Judgment:
    """Build the judgment of a trace. The probability of a label is its share among the samples.

    `said` maps the number of sub-steps that a question shows to the readable answers, of which there is at least
    one. It must contain all questions about the trace in this mode.
    """
    size, of_all = len(trace.substeps), READINGS[preset.reading].of_all
    # The verdicts with so many sub-steps in view. An answer on the last one leaves earlier ones as they were.
    rows: dict[int, Floats32] = {0: np.zeros((0, len(Label)), np.float32)}
    for count in sorted(said):
        shares = _shares(said[count])
        rows[count] = shares if of_all else np.concatenate([rows[count - 1], shares])
    result: StepScores | Hindsight
    if mode == Mode.OFFLINE:
        result = StepScores(rows[size])
    elif mode == Mode.ONLINE:
        result = StepScores(np.stack([rows[int(end) + 1][place] for place, end in enumerate(trace.step_ends)]))
    elif not of_all:
        result = Hindsight.constant(StepScores(rows[size]))
    else:
        result = Hindsight(tuple(rows[count] for count in range(1, size + 1)))
    return Judgment(trace, mode, result, rationale=_rationale(trace, mode, said, of_all), spent=spent)


def _shares(samples: Sequence[Verdicts]) -> Floats32:
    """Return the share of each label among the samples, with one row per step and one column per label."""
    labels = np.array([verdicts.labels for verdicts in samples])
    return np.stack([(labels == label).mean(axis=0) for label in Label], axis=1).astype(np.float32)


def _rationale(trace: Trace, mode: Mode, said: Mapping[int, Sequence[Verdicts]], of_all: bool) -> str:
    """Write a Markdown paragraph of the critic's reasons for each sub-step.

    In hindsight mode it explains the verdict given when the whole solution was shown. If the verdict was different
    when nothing after the step was shown, a paragraph on that earlier verdict comes first.
    """
    size, paragraphs = len(trace.substeps), []
    for place, end in enumerate(trace.step_ends.tolist()):
        name = _name(trace, place)
        # An answer on the last sub-step alone is the only one that judges it, in every mode.
        last = (said[end + 1 if mode == Mode.ONLINE else size], place) if of_all else (said[place + 1], 0)
        if mode == Mode.HINDSIGHT and of_all:
            first = (said[end + 1], place)
            if _word(*first)[0] != _word(*last)[0]:
                paragraphs.append(_paragraph(f"{name}, before later steps", *first))
        paragraphs.append(_paragraph(name, *last))
    text = "\n\n".join(paragraphs)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _paragraph(name: str, samples: Sequence[Verdicts], place: int) -> str:
    label, count = _word(samples, place)
    share = f" {count} of {len(samples)}" if len(samples) > 1 else ""
    texts = [one.rationales[place] for one in samples if one.labels[place] == label]
    return f"**{name}: {label.text}{share}.** {next(filter(None, texts), '')}".rstrip()


def _word(samples: Sequence[Verdicts], place: int) -> tuple[Label, int]:
    """Return the label that most samples give to the step at index `place`, and the number of these samples. In a
    tie, the label seen first wins."""
    return Counter(one.labels[place] for one in samples).most_common(1)[0]


def _name(trace: Trace, place: int) -> str:
    owner = int(trace.owners[place])
    if len(trace.steps[owner].substeps) == 1:
        return f"Step {owner + 1}"
    return f"Step {owner + 1}.{place - int((trace.owners < owner).sum()) + 1}"
