"""Disagreements: the steps on which the annotators of a campaign differ and an adjudicator has to decide.

Annotators disagree on a step if two of them gave it different labels, or if somebody was unsure about it. Leaving a
step unlabelled does not count as an opinion. A person who stopped at an error that another person did not see
disagrees on that step, but not on later ones. Hidden gold items are not adjudicated, because they serve to measure
annotators.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from sqlalchemy import func, select

from stepsight.core.label import LABEL_NAMES
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.annotation import UNSURE
from stepsight.storage.labelling.ordering import GOLD
from stepsight.storage.labelling.results.annotations import SubmittedAnnotation, iterate_annotations
from stepsight.storage.labelling.results.decisions import Decision, read_decisions


@dataclass(frozen=True)
class Disagreement:
    """A trace of a campaign, the 0-based steps on which its annotators disagree, and their annotations."""

    item_id: int
    trace_id: int
    digest: str
    steps: tuple[int, ...]
    annotations: tuple[SubmittedAnnotation, ...]

    def undecided(self, decisions: dict[tuple[int, int], Decision]) -> tuple[int, ...]:
        """Return the steps on which no decision has been made."""
        return tuple(step for step in self.steps if (self.item_id, step) not in decisions)


@dataclass(frozen=True)
class Adjudication:
    """The state of a campaign's adjudication. `disagreements` are in the order of the queue. `decisions` holds the
    decisions in force, keyed by item id and step."""

    disagreements: tuple[Disagreement, ...]
    decisions: dict[tuple[int, int], Decision]

    @property
    def steps(self) -> int:
        return sum(len(one.steps) for one in self.disagreements)

    @property
    def decided(self) -> int:
        return self.steps - sum(len(one.undecided(self.decisions)) for one in self.disagreements)

    def find(self, item_id: int) -> Disagreement | None:
        return next((one for one in self.disagreements if one.item_id == item_id), None)

    def next_open(self, after: int | None = None) -> Disagreement | None:
        """Return the first disagreement with an undecided step after the item `after`, continuing from the start at
        the end."""
        places = [one.item_id for one in self.disagreements]
        start = places.index(after) + 1 if after in places else 0
        turned = self.disagreements[start:] + self.disagreements[:start]
        return next((one for one in turned if one.undecided(self.decisions)), None)


def disagreed_steps(labels: Sequence[Sequence[str | None]]) -> tuple[int, ...]:
    """Return the 0-based steps on which annotators disagree.

    `labels` has one sequence of labels per annotator, all of the same length.
    """
    return tuple(i for i, of_step in enumerate(zip(*labels, strict=True)) if _disagreed(of_step))


def _disagreed(labels: Iterable[str | None]) -> bool:
    return UNSURE in labels or len(set(labels) & set(LABEL_NAMES)) > 1


def read_adjudication(store: Store, campaign_id: int) -> Adjudication:
    """Return the state of a campaign's adjudication, cached until the log has a new event."""
    with store.read() as session:
        # Counted as well, since of simultaneous events the one with the greater id may be stored first.
        newest = select(func.count(), func.max(EventRow.id)).where(EventRow.campaign_id == campaign_id)
        version = tuple(session.execute(newest).one())
    key = ("adjudication", campaign_id)
    return store.cache.get(key, version, lambda: _read(store, campaign_id), _size)


def _read(store: Store, campaign_id: int) -> Adjudication:
    return Adjudication(tuple(_disagreements(store, campaign_id)), read_decisions(store, campaign_id))


def _disagreements(store: Store, campaign_id: int) -> Iterator[Disagreement]:
    for item_id, group in groupby(
        iterate_annotations(store, campaign_id), key=lambda annotation: annotation.item_id
    ):
        annotations = tuple(group)
        steps = disagreed_steps([annotation.labels for annotation in annotations])
        if steps and annotations[0].chosen != GOLD:
            yield Disagreement(item_id, annotations[0].trace_id, annotations[0].digest, steps, annotations)


def _size(adjudication: Adjudication) -> int:
    """Estimate the size of an adjudication in bytes from its texts and labels."""
    annotations = [annotation for one in adjudication.disagreements for annotation in one.annotations]
    texts = [text for one in annotations for text in (*one.comments.values(), *one.corrections.values())]
    reasons = [decision.reason for decision in adjudication.decisions.values()]
    return sum(map(sys.getsizeof, texts + reasons)) + sum(1000 + 16 * len(one.labels) for one in annotations)
