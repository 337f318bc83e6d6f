"""What the annotators of a campaign, taken together, say of each step."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from core.label import LABEL_NAMES
from storage.labelling.answers import Answer, iterate_answers
from storage.labelling.campaigns import get_campaign
from storage.labelling.decisions import Decision, read_decisions
from storage.store import Store

ADJUDICATED, MAJORITY, TIE, UNSURE, NONE = "adjudicated", "majority", "tie", "unsure", "none"
HOW = (ADJUDICATED, MAJORITY, TIE, UNSURE, NONE)


@dataclass(frozen=True)
class Consensus:
    """A trace as its annotators label it. `labels`, one per step, are `neg`, `neu`, `pos` or None, and `how` says
    where each comes from:

    - `adjudicated`: somebody decided, maybe that the step stays unlabelled;
    - `majority`: more annotators gave this label than any other;
    - `tie`: as many gave another one, so that the step is unlabelled;
    - `unsure`: more were unsure than gave any one label, so that it is unlabelled;
    - `none`: nobody labelled it, or the campaign does not label steps after the first error, and it is after that
      on which they agree, which some had not seen.

    `chosen` is why the trace is in the campaign, as in `storage.labelling.tables.ItemRow`; `annotators` is how many
    answers count, of which are the `answers`.
    """

    item_id: int
    trace_id: int
    external_id: str
    dataset: str
    labels: tuple[str | None, ...]
    how: tuple[str, ...]
    annotators: int
    chosen: str
    answers: tuple[Answer, ...]
    decisions: tuple[Decision, ...]


def iterate_consensus(store: Store, campaign_id: int, exposed: bool = False) -> Iterator[Consensus]:
    """The traces of a campaign that somebody labelled, in the order of the queue, one trace's answers at a time.

    Answers whose makers had seen scores, gold or others' labels of the trace count only where `exposed` is true;
    a trace without another answer or a decision is left out.
    """
    after_error = get_campaign(store, campaign_id).after_error
    for answers, decided in iterate_items(store, campaign_id):
        counted = [answer for answer in answers if exposed or not answer.exposed]
        if counted or decided:
            yield agree(answers[0], counted, decided, after_error)


def iterate_items(store: Store, campaign_id: int) -> Iterator[tuple[list[Answer], dict[int, Decision]]]:
    """The answers to each trace of a campaign that somebody labelled, with the decisions by 0-based step."""
    decisions = read_decisions(store, campaign_id)
    for item_id, group in groupby(iterate_answers(store, campaign_id), key=lambda answer: answer.item_id):
        answers = list(group)
        steps = range(len(answers[0].labels))
        yield answers, {step: decisions[item_id, step] for step in steps if (item_id, step) in decisions}


def agree(
    about: Answer, answers: Sequence[Answer], decided: Mapping[int, Decision], after_error: bool
) -> Consensus:
    """The consensus of answers to one trace, of which `about` is any, and of decisions by 0-based step;
    `after_error`: whether the campaign labels steps after the first error."""
    settled: list[tuple[str | None, str]] = []
    ended = False
    for step in range(len(about.labels)):
        if step in decided:
            settled.append((decided[step].label, ADJUDICATED))
        else:
            settled.append((None, NONE) if ended else vote([answer.labels[step] for answer in answers]))
        ended = ended or (not after_error and settled[-1][0] == "neg")
    return Consensus(
        item_id=about.item_id,
        trace_id=about.trace_id,
        external_id=about.external_id,
        dataset=about.dataset,
        labels=tuple(label for label, _ in settled),
        how=tuple(how for _, how in settled),
        annotators=len(answers),
        chosen=about.chosen,
        answers=tuple(answers),
        decisions=tuple(decided[step] for step in sorted(decided)),
    )


def vote(labels: Sequence[str | None]) -> tuple[str | None, str]:
    """The label of a step and how it came about, from what each annotator called it; None takes no part."""
    counts = Counter(label for label in labels if label is not None)
    if not counts:
        return None, NONE
    most = max(counts.values())
    first = [label for label, count in counts.items() if count == most]
    if len(first) > 1:
        return None, TIE
    return (first[0], MAJORITY) if first[0] in LABEL_NAMES else (None, UNSURE)
