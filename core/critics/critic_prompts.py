"""The questions that a critic is asked about a trace, and the judgment built from its answers.

A critic gives a verdict on each step that it sees. It is asked once offline, once per step online, and once per
sub-step in hindsight.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from stepsight.core.arrays import Floats32
from stepsight.core.critics.presets import Preset
from stepsight.core.critics.verdict_parser import Verdicts
from stepsight.core.judgment import Judgment, Mode, Usage
from stepsight.core.label import Label
from stepsight.core.scores import Hindsight, StepScores
from stepsight.core.trace import Trace

# The approximate number of characters per token, in problems and steps.
_CHARACTERS = 3
# The longest rationale in characters.
_LONGEST = 40_000


@dataclass(frozen=True)
class CallEstimate:
    """The estimated number of calls and tokens needed to judge some traces."""

    traces: int = 0
    calls: int = 0
    tokens: int = 0

    def __add__(self, other: "CallEstimate") -> "CallEstimate":
        return CallEstimate(self.traces + other.traces, self.calls + other.calls, self.tokens + other.tokens)


def counts(trace: Trace, mode: Mode) -> tuple[int, ...]:
    """Return the number of sub-steps that each question about a trace shows, in order."""
    if mode == Mode.HINDSIGHT:
        return tuple(range(1, len(trace.substeps) + 1))
    return (len(trace.substeps),) if mode == Mode.OFFLINE else tuple(sorted(set((trace.step_ends + 1).tolist())))


def estimate(preset: Preset, trace: Trace, mode: Mode, samples: int) -> CallEstimate:
    """Estimate the number of calls and tokens needed to judge a trace. The token estimate is based on the number of
    characters and the usual length of the critic's answers per step."""
    shown, texts = counts(trace, mode), trace.substeps
    read = [0, *accumulate(map(len, texts))]
    whole = sum(len(message["content"]) for message in preset.messages(trace.problem, texts))
    tokens = sum((whole - read[-1] + read[count]) // _CHARACTERS + preset.written * count for count in shown)
    return CallEstimate(1, samples * len(shown), samples * tokens)


def judgment(trace: Trace, mode: Mode, answers: Mapping[int, Sequence[Verdicts]], spent: Usage) -> Judgment:
    """Build the judgment of a trace. The probability of a label is its share among the samples.

    `answers` maps the number of sub-steps that a question shows to the readable answers, of which there is at least
    one. It must contain all questions about the trace in this mode.
    """
    size = len(trace.substeps)
    rows: dict[int, Floats32] = {}
    for count, samples in answers.items():
        labels = np.array([verdicts.labels for verdicts in samples])
        rows[count] = np.stack([(labels == label).mean(axis=0) for label in Label], axis=1).astype(np.float32)
    result: StepScores | Hindsight
    if mode == Mode.OFFLINE:
        result = StepScores(rows[size])
    elif mode == Mode.ONLINE:
        result = StepScores(np.stack([rows[end + 1][i] for i, end in enumerate(trace.step_ends.tolist())]))
    else:
        result = Hindsight(tuple(rows[count] for count in range(1, size + 1)))
    return Judgment(trace, mode, result, rationale=_rationale(trace, mode, answers), spent=spent)


def _rationale(trace: Trace, mode: Mode, answers: Mapping[int, Sequence[Verdicts]]) -> str:
    """Write a Markdown paragraph of the critic's reasons for each sub-step.

    In hindsight mode it explains the verdict given when the whole solution was shown. If the verdict was different
    when nothing after the step was shown, a paragraph on that earlier verdict comes first.
    """
    size, paragraphs = len(trace.substeps), []
    for i, end in enumerate(trace.step_ends.tolist()):
        name = f"Step {trace.step_name(i)}"
        last = answers[end + 1 if mode == Mode.ONLINE else size]
        if mode == Mode.HINDSIGHT and _verdict(answers[end + 1], i)[0] != _verdict(last, i)[0]:
            paragraphs.append(_paragraph(f"{name}, before later steps", answers[end + 1], i))
        paragraphs.append(_paragraph(name, last, i))
    text = "\n\n".join(paragraphs)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _paragraph(name: str, samples: Sequence[Verdicts], i: int) -> str:
    label, count = _verdict(samples, i)
    share = f" {count} of {len(samples)}" if len(samples) > 1 else ""
    texts = [verdicts.rationales[i] for verdicts in samples if verdicts.labels[i] == label]
    return f"**{name}: {label.text}{share}.** {next(filter(None, texts), '')}".rstrip()


def _verdict(samples: Sequence[Verdicts], i: int) -> tuple[Label, int]:
    """Return the label that most samples give to sub-step `i`, and the number of these samples. In a tie, the label
    seen first wins."""
    return Counter(verdicts.labels[i] for verdicts in samples).most_common(1)[0]
