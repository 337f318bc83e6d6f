"""The consensus of a campaign's annotators on each step, traces labelled by consensus or by one annotator, and the
votes of all campaigns on the validity of a dataset's steps."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from sqlalchemy import select

from stepsight.core.trace import LABEL_NAMES, Label, Step, Trace
from stepsight.storage.database.labelling_schema import CampaignRow, ItemRow
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.columns import Gold, starts
from stepsight.storage.labelling.adjudication import AnnotatedItem, iterate_items, past_decisions
from stepsight.storage.labelling.campaigns import Campaign, load_campaign
from stepsight.storage.labelling.plan import GOLD
from stepsight.storage.labelling.submissions import NONE, SubmittedAnnotation, read_annotations, vote
from stepsight.storage.traces.queries import StoredTrace, load_traces, traces

ADJUDICATED = "adjudicated"
CONSENSUS = "consensus"
"""The name that files give to the annotator of a consensus."""

# The reasons for leaving out traces and annotations.
HIDDEN_GOLD = "hidden gold items"
CHANGED = "traces that changed since they were labelled"
# The number of traces held in memory at once.
_BATCH = 200
# A decision counts as much as the labels of two people, since it was based on them.
_DECISION = 2

Labels = tuple[str | None, ...]


@dataclass(frozen=True)
class LabelledTrace:
    """A trace with labels from people.

    `labels` has `neg`, `neu`, `pos` or None for each step. If they are those of a single annotator, `how` is None,
    and `annotated` has only that person's annotation. Otherwise `how` says how each label came about:

    - `adjudicated`: an adjudicator decided, possibly to leave the step unlabelled.
    - `majority`: more annotators gave this label than any other.
    - `tie`: several labels have equally many votes, so the step is unlabelled.
    - `unsure`: more annotators were unsure than gave any one label, so the step is unlabelled.
    - `none`: nobody labelled the step, or it follows the agreed first error in a campaign that labels no
      steps after that. In the latter case, annotators who did not see that error may have labelled it.
    """

    trace: StoredTrace
    annotated: AnnotatedItem
    labels: Labels
    how: tuple[str, ...] | None

    @property
    def annotations(self) -> tuple[SubmittedAnnotation, ...]:
        return self.annotated.annotations

    @property
    def annotator(self) -> str | None:
        return self.annotations[0].user if self.how is None else None

    @property
    def moment(self) -> datetime:
        """The time of the last submission or decision."""
        submissions = [annotation.moment for annotation in self.annotations]
        return max([*submissions, *(decision.moment for decision in self.annotated.decisions.values())])

    @property
    def seconds(self) -> float:
        """The total time that the annotators took."""
        return sum(annotation.seconds for annotation in self.annotations)

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


def find_consensus(item: AnnotatedItem, after_error: bool) -> tuple[Labels, tuple[str, ...]]:
    """Return the labels of a trace on which its annotators agree, and how each came about, as in `LabelledTrace`.
    `after_error` is True if the campaign labels the steps after the first error."""
    labels: list[str | None] = []
    origins: list[str] = []
    for step in range(len(item.annotations[0].labels)):
        if step in item.decisions:
            label, origin = item.decisions[step].label, ADJUDICATED
        elif "neg" in labels and not after_error:
            label, origin = None, NONE
        else:
            label, origin = vote([annotation.labels[step] for annotation in item.annotations])
        labels.append(label)
        origins.append(origin)
    return tuple(labels), tuple(origins)


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
        items = self._items()
        while batch := list(islice(items, _BATCH)):
            statement = traces({item.item.trace_id for item in batch})
            with self._store.read() as session:
                stored = {trace.trace_id: trace for trace in load_traces(session, statement)}
            for item in batch:
                trace = stored[item.item.trace_id]
                if trace.digest == item.item.digest:
                    yield from self._label_trace(trace, item)
                else:
                    self._leave_out(item, CHANGED)

    def _items(self) -> Iterator[AnnotatedItem]:
        for item in iterate_items(self._store, self._campaign.id):
            if item.item.chosen == GOLD and not self._with_gold:
                self._leave_out(item, HIDDEN_GOLD)
            elif self._only is None or item.item.trace_id in self._only:
                yield item

    def _leave_out(self, item: AnnotatedItem, reason: str) -> None:
        self.left_out[reason] += len(item.annotations) if self._per_annotator else 1

    def _label_trace(self, trace: StoredTrace, item: AnnotatedItem) -> Iterator[LabelledTrace]:
        if not self._per_annotator:
            yield LabelledTrace(trace, item, *find_consensus(item, self._campaign.after_error))
            return
        for annotation in item.annotations:
            labels = tuple(label if label in LABEL_NAMES else None for label in annotation.labels)
            yield LabelledTrace(trace, AnnotatedItem((annotation,), {}), labels, None)


def read_trace_labels(store: Store, trace_id: int) -> list[tuple[Campaign, AnnotatedItem]]:
    """Return a trace with its labels in each campaign in which somebody labelled it, newest campaign first.

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
    return [
        (campaign, AnnotatedItem(annotations, {past.step: past for past in past_decisions(store, item_id)}))
        for campaign, item_id, annotations in items
        if annotations
    ]


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


def read_votes(store: Store, gold: Gold, *, only_closed: bool = False) -> dict[int, StepVotes]:
    """Return the votes on the steps of a dataset in all campaigns, keyed by the index of the step in `gold`.

    Labels of hidden gold items and of traces that have changed since do not count and, with `only_closed`, neither
    do those of open campaigns. A decision replaces every vote. Steps without a vote are left out.
    """
    places = {id: place for place, id in enumerate(gold.trace_ids.tolist())}
    first = starts(gold.counts)
    campaigns = select(CampaignRow.id).join(ItemRow).join(TraceRow).where(TraceRow.dataset_id == gold.dataset.id)
    if only_closed:
        campaigns = campaigns.where(CampaignRow.closed.is_not(None))
    with store.read() as session:
        ids = session.scalars(campaigns.distinct()).all()
    counted: dict[int, StepVotes] = {}
    for item in (item for campaign_id in sorted(ids) for item in iterate_items(store, campaign_id)):
        place = places.get(item.item.trace_id)
        if place is None or item.item.chosen == GOLD or gold.digests[place] != item.item.digest:
            continue
        for step in range(len(item.annotations[0].labels)):
            decided = step in item.decisions
            labels = [annotation.labels[step] for annotation in item.annotations]
            if decided:
                labels = [item.decisions[step].label] * _DECISION
            votes = StepVotes(sum(label in ("neu", "pos") for label in labels), labels.count("neg"), decided)
            row = int(first[place]) + step
            before = counted.get(row)
            if before is not None and before.decided == votes.decided:
                votes = StepVotes(before.valid + votes.valid, before.wrong + votes.wrong, votes.decided)
            if before is None or votes.decided or not before.decided:
                counted[row] = votes
    return {row: votes for row, votes in counted.items() if votes.valid or votes.wrong}
