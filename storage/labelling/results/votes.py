"""The labels that people gave to the steps of a dataset in any campaign, counted as votes on validity."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select

from stepsight.storage.database.labelling_schema import ItemRow
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.columns import Gold, starts
from stepsight.storage.labelling.results.consensus import iterate_annotated_items

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
