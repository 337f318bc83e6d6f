"""Traces as people labelled them, by one annotator or by all of them together: what is exported and trained on."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from core.label import LABEL_NAMES, Label
from core.trace import Trace
from storage.labelling.answers import Answer, iterate_answers
from storage.labelling.campaigns import Campaign
from storage.labelling.consensus import Consensus, agree, iterate_items
from storage.labelling.decisions import Decision
from storage.labelling.gold_items import GOLD
from storage.queries import StoredTrace, load_traces, traces
from storage.schema import TraceRow
from storage.store import Store

# Traces held in memory at once.
_BATCH = 200
EXPOSED = "answers by people who had seen scores, gold or others' labels (--exposed keeps them)"
HIDDEN_GOLD = "hidden gold items"
CHANGED = "traces that changed since they were labelled"


@dataclass(frozen=True)
class LabelledTrace:
    """A trace with `labels` by people, one per step: `neg`, `neu`, `pos`, or None where unlabelled, unsure or not
    agreed on. `how` is as in `storage.labelling.consensus`, None where one annotator's labels stand alone; these
    are then those of the only one of the `answers`."""

    trace: StoredTrace
    labels: tuple[str | None, ...]
    how: tuple[str, ...] | None
    chosen: str
    answers: tuple[Answer, ...]
    decisions: tuple[Decision, ...] = ()

    @property
    def annotator(self) -> str | None:
        return self.answers[0].user if self.how is None else None

    @property
    def first_error(self) -> int | None:
        """0-based index of the first step called neg."""
        return self.labels.index("neg") if "neg" in self.labels else None

    @property
    def flags(self) -> tuple[str, ...]:
        """What annotators said is bad about the problem."""
        return tuple(answer.flag for answer in self.answers if answer.flag)

    def relabelled(self) -> Trace:
        """The trace with these labels in the place of its gold."""
        steps = (
            replace(step, label=None if label is None else Label[label.upper()], valid=None)
            for step, label in zip(self.trace.steps, self.labels, strict=True)
        )
        return Trace(self.trace.id, self.trace.problem, tuple(steps), self.trace.meta)


class Labelled:
    """The labelled traces of a campaign, read anew each time it is iterated, a few at a time.

    All annotators together, or with `alone` one by one. `exposed` answers count only where asked for, and hidden
    gold items are there only `with_gold`. After an iteration `left_out` says what is not in it, and how often.
    """

    def __init__(
        self,
        store: Store,
        campaign: Campaign,
        *,
        alone: bool = False,
        exposed: bool = False,
        with_gold: bool = False,
    ) -> None:
        self._store, self._campaign = store, campaign
        self._alone, self._exposed, self._with_gold = alone, exposed, with_gold
        self.left_out: Counter[str] = Counter()

    def __iter__(self) -> Iterator[LabelledTrace]:
        self.left_out = Counter()
        found: Iterator[tuple[Consensus | Answer, Answer]] = self._each() if self._alone else self._together()
        while batch := list(islice(found, _BATCH)):
            wanted = traces().where(TraceRow.id.in_({one.trace_id for one, _ in batch}))
            with self._store.read() as session:
                stored = {trace.trace_id: trace for trace in load_traces(session, wanted)}
            for one, about in batch:
                trace = stored[one.trace_id]
                if trace.digest == about.digest:
                    yield _labelled(trace, one) if isinstance(one, Consensus) else _alone(trace, one)
                else:
                    self.left_out[CHANGED] += 1

    def _together(self) -> Iterator[tuple[Consensus, Answer]]:
        for answers, decided in iterate_items(self._store, self._campaign.id):
            about, kept = answers[0], [answer for answer in answers if self._exposed or not answer.exposed]
            if about.chosen == GOLD and not self._with_gold:
                self.left_out[HIDDEN_GOLD] += 1
                continue
            self.left_out[EXPOSED] += len(answers) - len(kept)
            if kept or decided:
                yield agree(about, kept, decided, self._campaign.after_error), about

    def _each(self) -> Iterator[tuple[Answer, Answer]]:
        for answer in iterate_answers(self._store, self._campaign.id):
            if answer.chosen == GOLD and not self._with_gold:
                self.left_out[HIDDEN_GOLD] += 1
            elif answer.exposed and not self._exposed:
                self.left_out[EXPOSED] += 1
            else:
                yield answer, answer


def _labelled(trace: StoredTrace, one: Consensus) -> LabelledTrace:
    return LabelledTrace(trace, one.labels, one.how, one.chosen, one.answers, one.decisions)


def _alone(trace: StoredTrace, answer: Answer) -> LabelledTrace:
    labels = tuple(label if label in LABEL_NAMES else None for label in answer.labels)
    return LabelledTrace(trace, labels, None, answer.chosen, (answer,))
