"""The consensus of a campaign's annotators on each step, traces labelled by consensus or by one annotator, and the
votes of all campaigns on the validity of a dataset's steps."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from sqlalchemy import select

from stepsight.core.trace import LABEL_NAMES, Label, Step, Trace
from stepsight.storage.database.labelling_schema import CampaignRow, ItemRow
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.columns import Gold, starts
from stepsight.storage.labelling.campaigns import Campaign, load_campaign
from stepsight.storage.labelling.ordering import GOLD
from stepsight.storage.labelling.results.adjudication import Decision, past_decisions, read_decisions
from stepsight.storage.labelling.results.annotations import (
    NONE,
    SubmittedAnnotation,
    iterate_annotations,
    read_annotations,
    vote,
)
from stepsight.storage.traces.queries import StoredTrace, load_traces, traces

ADJUDICATED = "adjudicated"

# The reasons for leaving out traces and annotations.
HIDDEN_GOLD = "hidden gold items"
CHANGED = "traces that changed since they were labelled"
# Traces held in memory at once.
_BATCH = 200


@dataclass(frozen=True)
class Consensus:
    """The labels that the annotators of a trace agree on.

    `labels` has `neg`, `neu`, `pos` or None for each step. `how` says how each label came about:

    - `adjudicated`: an adjudicator decided, possibly to leave the step unlabelled.
    - `majority`: more annotators gave this label than any other.
    - `tie`: several labels have equally many votes, so the step is unlabelled.
    - `unsure`: more annotators were unsure than gave any one label, so the step is unlabelled.
    - `none`: nobody labelled the step, or it follows the agreed first error in a campaign that labels no
      steps after that. In the latter case, annotators who did not see that error may have labelled it.

    `chosen` says how the trace came into the campaign, as in `ItemRow`. `digest` is the digest of the trace as it
    was labelled.
    """

    trace_id: int
    digest: str
    labels: tuple[str | None, ...]
    how: tuple[str, ...]
    chosen: str
    annotations: tuple[SubmittedAnnotation, ...]
    decisions: tuple[Decision, ...]


def iterate_annotated_items(
    store: Store, campaign_id: int
) -> Iterator[tuple[list[SubmittedAnnotation], dict[int, Decision]]]:
    """Yield (annotations, decisions) for each annotated trace of a campaign, with decisions keyed by step."""
    decisions = read_decisions(store, campaign_id)
    annotations = iterate_annotations(store, campaign_id)
    for item_id, group in groupby(annotations, key=lambda annotation: annotation.item_id):
        of_item = list(group)
        steps = range(len(of_item[0].labels))
        yield of_item, {step: decisions[item_id, step] for step in steps if (item_id, step) in decisions}


def find_consensus(
    about: SubmittedAnnotation,
    annotations: Sequence[SubmittedAnnotation],
    decided: Mapping[int, Decision],
    after_error: bool,
) -> Consensus:
    """Derive the consensus on one trace from its annotations and from the decisions, which are keyed by 0-based
    step.

    `about` is any annotation of the trace. `after_error` is True if the campaign labels the steps after the first
    error.
    """
    settled: list[tuple[str | None, str]] = []
    ended = False
    for step in range(len(about.labels)):
        if step in decided:
            settled.append((decided[step].label, ADJUDICATED))
        else:
            settled.append((None, NONE) if ended else vote([annotation.labels[step] for annotation in annotations]))
        ended = ended or (not after_error and settled[-1][0] == "neg")
    return Consensus(
        trace_id=about.trace_id,
        digest=about.digest,
        labels=tuple(label for label, _ in settled),
        how=tuple(how for _, how in settled),
        chosen=about.chosen,
        annotations=tuple(annotations),
        decisions=tuple(decided[step] for step in sorted(decided)),
    )


@dataclass(frozen=True)
class LabelledTrace:
    """A trace with labels from people.

    `labels` has `neg`, `neu` or `pos` for each step, or None if the step is unlabelled, unsure or not agreed on.
    `how` is as in `Consensus`. If the labels are those of a single annotator, `how` is None, and `annotations` has
    only that person's annotation.
    """

    trace: StoredTrace
    labels: tuple[str | None, ...]
    how: tuple[str, ...] | None
    chosen: str
    annotations: tuple[SubmittedAnnotation, ...]
    decisions: tuple[Decision, ...] = ()

    @property
    def annotator(self) -> str | None:
        return self.annotations[0].user if self.how is None else None

    @property
    def first_error(self) -> int | None:
        """The 0-based index of the first neg step, or None."""
        return self.labels.index("neg") if "neg" in self.labels else None

    @property
    def flags(self) -> tuple[str, ...]:
        """The problems that annotators reported with the trace, one for each annotator who flagged it."""
        return tuple(annotation.flag for annotation in self.annotations if annotation.flag)

    def relabelled(self) -> Trace:
        """Return a copy of the trace that has these labels as its gold labels."""
        steps = (
            Step(step.substeps, None if label is None else Label[label.upper()])
            for step, label in zip(self.trace.steps, self.labels, strict=True)
        )
        return Trace(self.trace.id, self.trace.problem, tuple(steps), self.trace.meta)


class LabelledTraces:
    """The labelled traces of a campaign, read again for each iteration, a few at a time.

    The traces have the consensus of all annotators or, with `per_annotator`, the labels of one annotator at a time.
    Hidden gold items are included only with `with_gold`. `only` lists database ids of traces; None means all
    traces. After an iteration, `left_out` counts the omitted annotations or traces by reason.
    """

    def __init__(
        self,
        store: Store,
        campaign: Campaign,
        *,
        per_annotator: bool = False,
        with_gold: bool = False,
        only: Collection[int] | None = None,
    ) -> None:
        self._store, self._campaign, self._only = store, campaign, only
        self._per_annotator, self._with_gold = per_annotator, with_gold
        self.left_out: Counter[str] = Counter()

    def __iter__(self) -> Iterator[LabelledTrace]:
        self.left_out = Counter()
        results: Iterator[Consensus | SubmittedAnnotation] = self._consensus()
        if self._per_annotator:
            results = self._each()
        if self._only is not None:
            results = (result for result in results if result.trace_id in self._only)
        while batch := list(islice(results, _BATCH)):
            wanted = traces({result.trace_id for result in batch})
            with self._store.read() as session:
                stored = {trace.trace_id: trace for trace in load_traces(session, wanted)}
            for result in batch:
                trace = stored[result.trace_id]
                if trace.digest == result.digest:
                    yield _labelled(trace, result)
                else:
                    self.left_out[CHANGED] += 1

    def _consensus(self) -> Iterator[Consensus]:
        for annotations, decided in iterate_annotated_items(self._store, self._campaign.id):
            if annotations[0].chosen == GOLD and not self._with_gold:
                self.left_out[HIDDEN_GOLD] += 1
                continue
            yield find_consensus(annotations[0], annotations, decided, self._campaign.after_error)

    def _each(self) -> Iterator[SubmittedAnnotation]:
        for annotation in iterate_annotations(self._store, self._campaign.id):
            if annotation.chosen == GOLD and not self._with_gold:
                self.left_out[HIDDEN_GOLD] += 1
            else:
                yield annotation


def _labelled(trace: StoredTrace, result: Consensus | SubmittedAnnotation) -> LabelledTrace:
    if isinstance(result, Consensus):
        about = (result.chosen, result.annotations, result.decisions)
        return LabelledTrace(trace, result.labels, result.how, *about)
    labels = tuple(label if label in LABEL_NAMES else None for label in result.labels)
    return LabelledTrace(trace, labels, None, result.chosen, (result,))


@dataclass(frozen=True)
class TraceLabels:
    """A campaign's consensus on a trace, with all annotations of the trace."""

    campaign: Campaign
    consensus: Consensus
    annotations: tuple[SubmittedAnnotation, ...]


def read_trace_labels(store: Store, trace_id: int) -> list[TraceLabels]:
    """Return a trace's labels in each campaign in which somebody labelled it, newest campaign first.

    Campaigns in which the trace is a hidden gold item are left out.
    """
    of_trace = (
        select(ItemRow.id, ItemRow.campaign_id)
        .join(CampaignRow, CampaignRow.id == ItemRow.campaign_id)
        .where(ItemRow.trace_id == trace_id, ItemRow.chosen != GOLD)
        .order_by(CampaignRow.id.desc())
    )
    with store.read() as session:
        items = [
            (load_campaign(session, campaign), item, tuple(read_annotations(session, campaign, item)))
            for item, campaign in session.execute(of_trace)
        ]
    return [_labels(store, *item) for item in items if item[2]]


def _labels(
    store: Store, campaign: Campaign, item_id: int, annotations: tuple[SubmittedAnnotation, ...]
) -> TraceLabels:
    decided = {decision.step: decision for decision in past_decisions(store, item_id)}
    consensus = find_consensus(annotations[0], annotations, decided, campaign.after_error)
    return TraceLabels(campaign, consensus, annotations)


# A decision counts as much as two people, on whose labels it was taken.
_DECISION = 2
_VALID = ("neu", "pos")


@dataclass(frozen=True)
class StepVotes:
    """The numbers of people who call a step valid and wrong. If an adjudicator has decided on the label, `decided`
    is True, and only the decision counts."""

    valid: int
    wrong: int
    decided: bool = False

    @property
    def net(self) -> int:
        """The number of people who call the step valid minus the number of people who call it wrong."""
        return self.valid - self.wrong

    def against(self, valid: bool) -> str:
        """Return in words how many people contradict the label `valid`, or "" if nobody does."""
        number, word = (self.wrong, "wrong") if valid else (self.valid, "valid")
        if not number:
            return ""
        if self.decided:
            return f"an adjudicator calls it {word}"
        total = self.valid + self.wrong
        if total == 1:
            return f"the person who labelled it calls it {word}"
        return f"{number} of {total} people call{'s' if number == 1 else ''} it {word}"


def read_votes(store: Store, gold: Gold) -> dict[int, StepVotes]:
    """Return the votes on the steps of a dataset, keyed by the index of the step in `gold`.

    Labels of hidden gold items and of traces that have changed since do not count. Steps without a vote are left
    out.
    """
    places = {id: place for place, id in enumerate(gold.trace_ids.tolist())}
    first = starts(gold.counts)
    counted: dict[int, StepVotes] = {}
    for campaign_id in _campaign_ids(store, gold.dataset.id):
        for annotations, decided in iterate_annotated_items(store, campaign_id):
            about = annotations[0]
            place = places.get(about.trace_id)
            if place is None or about.chosen == "gold" or gold.digests[place] != about.digest:
                continue
            votes = [one.labels for one in annotations]
            for step in range(len(about.labels)):
                if step in decided:
                    found = _votes([decided[step].label] * _DECISION, decided=True)
                else:
                    found = _votes([labels[step] for labels in votes])
                row = int(first[place]) + step
                counted[row] = _joined(counted.get(row), found)
    return {row: votes for row, votes in counted.items() if votes.valid or votes.wrong}


def _campaign_ids(store: Store, dataset_id: int) -> list[int]:
    of_dataset = TraceRow.dataset_id == dataset_id
    ids = select(ItemRow.campaign_id).join(TraceRow, TraceRow.id == ItemRow.trace_id).where(of_dataset).distinct()
    with store.read() as session:
        return sorted(session.scalars(ids))


def _votes(labels: Sequence[str | None], *, decided: bool = False) -> StepVotes:
    """Count the labels that call a step valid, and those that call it wrong."""
    return StepVotes(sum(label in _VALID for label in labels), sum(label == "neg" for label in labels), decided)


def _joined(before: StepVotes | None, found: StepVotes) -> StepVotes:
    """Add the votes of a campaign to those of others. A decision replaces every vote."""
    if before is None or (found.decided and not before.decided):
        return found
    if before.decided and not found.decided:
        return before
    return StepVotes(before.valid + found.valid, before.wrong + found.wrong, before.decided)
