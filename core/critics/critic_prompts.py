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

# The longest rationale in characters.
_LONGEST = 40_000
# Approximate characters per token, in problems and steps.
_CHARACTERS = 3


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
    whole = sum(len(message["content"]) for message in preset.messages(trace.problem, texts, before=before(trace)))
    tokens = 0
    for count in shown:
        tokens += (whole - read[-1] + read[count]) // _CHARACTERS + preset.written * (
            count if reading.of_all else 1
        )
        # Earlier answers are sent again.
        tokens += preset.written * (count - 1) if reading.keeps else 0
    return CallEstimate(1, samples * len(shown), samples * tokens)


def before(trace: Trace) -> list[str]:
    """Return what an agent read before each sub-step of a trace, as evaluators read it."""
    return [trace.read_before(place) for place in range(len(trace.substeps))] if trace.context else []


def judgment(
    preset: Preset, trace: Trace, mode: Mode, said: Mapping[int, Sequence[Verdicts]], spent: Usage | None = None
) -> Judgment:
    """Build the judgment of a trace. The probability of a label is its share among the samples.

    `said` maps the number of sub-steps shown to the verdicts of each sample. It must contain at least one sample
    for each of `counts`.
    """
    size = len(trace.substeps)
    shares = {count: _shares(samples) for count, samples in said.items()}
    result: StepScores | Hindsight
    if not READINGS[preset.reading].of_all:
        scores = StepScores(np.concatenate([shares[count] for count in range(1, size + 1)]))
        result = Hindsight.constant(scores) if mode == Mode.HINDSIGHT else scores
    elif mode == Mode.HINDSIGHT:
        result = Hindsight(tuple(shares[count] for count in range(1, size + 1)))
    else:
        shown = [size if mode == Mode.OFFLINE else int(end) + 1 for end in trace.step_ends]
        result = StepScores(np.stack([shares[count][place] for place, count in enumerate(shown)]))
    return Judgment(trace, mode, result, rationale=_rationale(preset, trace, mode, said), spent=spent)


def _shares(samples: Sequence[Verdicts]) -> Floats32:
    """Return the share of each label among the samples, with one row per step and one column per label."""
    labels = np.array([verdicts.labels for verdicts in samples])
    return np.stack([(labels == label).mean(axis=0) for label in Label], axis=1).astype(np.float32)


def _rationale(preset: Preset, trace: Trace, mode: Mode, said: Mapping[int, Sequence[Verdicts]]) -> str:
    """Write a Markdown paragraph of the critic's reasons for each sub-step.

    In hindsight mode it explains the verdict given when the whole solution was shown. If the verdict was different
    when nothing after the step was shown, a paragraph on that earlier verdict comes first.
    """
    size, paragraphs = len(trace.substeps), []
    for place, end in enumerate(trace.step_ends.tolist()):
        name = _name(trace, place)
        if not READINGS[preset.reading].of_all:
            paragraphs.append(_paragraph(name, said[place + 1], 0))
            continue
        last = size if mode != Mode.ONLINE else end + 1
        label, _ = _word(said[last], place)
        if mode == Mode.HINDSIGHT and _word(said[end + 1], place)[0] != label:
            paragraphs.append(_paragraph(f"{name}, before later steps", said[end + 1], place))
        paragraphs.append(_paragraph(name, said[last], place))
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
