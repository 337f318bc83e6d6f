"""The part of the store that a Browse URL selects: a dataset, the evaluators to choose from, and the matching
traces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from stepsight.app.browse.address import Address
from stepsight.app.browse.evaluator_choice import EvaluatorChoice, default_choice, find_choice, list_choices
from stepsight.app.browse.facets import ActiveFilters
from stepsight.app.markup.marking import has_hit
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.background_cache import LARGEST
from stepsight.app.web.step_bars import words_of
from stepsight.core.errors import UserError
from stepsight.storage.browse.browse import (
    BrowsePage,
    BrowseRow,
    Distribution,
    FieldCounts,
    asks_redundancy,
    browse,
    count_field,
    list_matching,
    read_distribution,
)
from stepsight.storage.browse.filters import Sort, TraceFilter
from stepsight.storage.browse.outcomes import (
    OutcomePairs,
    outcome_table,
    pair_outcomes,
)
from stepsight.storage.database.store import Store
from stepsight.storage.traces.queries import Dataset, Neighbours, load_traces, traces
from stepsight.training.evaluate.doubtful import LabelRanking, rank_traces, version_of_doubts


@dataclass(frozen=True)
class ListPlace:
    """The position of a trace in a list. `near` holds the trace's neighbours. `number` counts from 1 to `total`,
    and is None if the list does not contain the trace."""

    near: Neighbours
    number: int | None = None
    total: int = 0

    @property
    def words(self) -> str:
        """Return the position as text, such as `12 of 83`, or "" if the list does not contain the trace."""
        return "" if self.number is None else f"{self.number:,} of {self.total:,}"


@dataclass(frozen=True)
class Selection:
    """The part of the store that an address selects. `about` is the evaluator that the list shows. Unknown
    evaluators have been removed from `address`. `ranking` is behind the order `doubt`, if it is known."""

    store: Store
    address: Address
    dataset: Dataset
    choices: Sequence[EvaluatorChoice]
    about: EvaluatorChoice
    ranking: LabelRanking | None = None

    @classmethod
    def of(
        cls, store: Store, evaluators: Evaluators, dataset: Dataset, address: Address
    ) -> tuple["Selection", list[UserError]]:
        """Return the selection for an address, and the errors found in the address. The errors are unknown
        evaluators, filters or sort orders by verdicts or redundancy that the evaluator does not provide, and an
        order by doubt of more than `LARGEST` traces."""
        choices = list_choices(store, evaluators, dataset.id)
        offered: set[str] = set()
        problems: list[UserError] = []
        for key in dict.fromkeys((address.evaluator, address.against, address.other, *address.beside)):
            try:
                offered.add(key and find_choice(choices, key).key)
            except UserError as error:
                problems.append(error)
        address = address.changed(
            evaluator=address.evaluator if address.evaluator in offered else "",
            against=address.against if address.against in offered else "",
            other=address.other if address.other in offered else "",
            other_mistake=address.other_mistake if address.other and address.other in offered else "any",
            beside=tuple(key for key in address.beside if key in offered),
        )
        about = find_choice(choices, address.evaluator) if address.evaluator else default_choice(choices)
        if not about.judged and address != address.without_verdicts():
            reason = "has not judged any trace of this dataset, so it has no verdicts to filter or sort by."
            problems.append(UserError(f"{about.key} {reason}"))
            address = address.without_verdicts()
        elif not about.outputs.has_redundancy and address != address.without_redundancy():
            problems.append(UserError(f"{about.key} gives no redundancy to filter or sort by."))
            address = address.without_redundancy()
        if address.order.by == "doubt" and dataset.traces > LARGEST:
            reason = f"{dataset.name} has {dataset.traces:,} traces; at most {LARGEST:,} can be sorted by doubt."
            problems.append(UserError(reason, "The command `stepsight doubtful` ranks more."))
            address = address.without("sort")
        return cls(store, address, dataset, choices, about), problems

    @classmethod
    def exact(cls, store: Store, evaluators: Evaluators, dataset: Dataset, address: Address) -> "Selection":
        """Like `of`, but raise the first error instead of returning the errors. An unknown evaluator raises
        `NotFoundError`."""
        selection, problems = cls.of(store, evaluators, dataset, address)
        if problems:
            raise problems[0]
        return selection

    @cached_property
    def where(self) -> TraceFilter:
        against, other = (
            find_choice(self.choices, key).id if key else None for key in (self.address.against, self.address.other)
        )
        return self.address.with_ids(self.about.id, against, other)

    @cached_property
    def order(self) -> Sort:
        """The order of the list. Raises the errors of `rank_traces` if it is `doubt`."""
        order = self.address.order
        if order.by != "doubt":
            return order
        store, dataset = self.store, self.dataset
        ranking = self.ranking or store.cache.get(
            ("doubtful traces", dataset.id),
            version_of_doubts(store, dataset),
            lambda: rank_traces(store, dataset),
            lambda ranking: 1_000 * len(ranking.labels),
        )
        return replace(order, ranked=tuple(label.trace_id for label in ranking.labels))

    @property
    def words(self) -> Mapping[str, str] | None:
        """The evaluator's words for its verdicts, keyed by label, or None if the evaluator gives numbers."""
        return words_of(self.about.outputs) if self.about.outputs.in_words else None

    @cached_property
    def on_redundancy(self) -> bool:
        """True if outcomes concern redundant errors."""
        return asks_redundancy(self.store, self.dataset.id, self.where)

    @property
    def conditions(self) -> ActiveFilters:
        """The active filters in words."""
        return ActiveFilters(self.address, self.words, self.on_redundancy)

    @property
    def pairs(self) -> OutcomePairs | None:
        """The cross-tabulated outcomes of the two evaluators in the address, or None if the address names only one
        evaluator."""
        return pair_outcomes(self.store, self.dataset.id, self.where)

    def outcomes(self, trace_ids: Sequence[int], key: str = "") -> tuple[dict[str, type], list[dict[str, object]]]:
        """Return the columns and rows of a table of outcomes with a row per trace: those of all evaluators that
        have judged the dataset, or of the one with this key."""
        choices = [find_choice(self.choices, key)] if key else self.choices
        judged = {choice.key: choice.id for choice in choices if choice.judged and choice.id is not None}
        return outcome_table(self.store, self.dataset.id, self.where, trace_ids, judged)

    @property
    def values(self) -> FieldCounts:
        """The values of the metadata field that is open in the sidebar, with their counts."""
        return count_field(self.store, self.dataset.id, self.where, self.address.field)

    @property
    def distribution(self) -> Distribution | None:
        """The distribution of steps' validities by gold label, or None if the evaluator has not judged steps of
        this dataset. Verdicts given in words count as 0 or 1."""
        if not self.about.judged or not self.about.outputs.has_steps:
            return None
        return read_distribution(self.store, self.dataset.id, self.where)

    def page(self, size: int) -> BrowsePage:
        """Return a page of the list with `size` rows, the total number of rows, and the counts for every filter."""
        offset = (self.address.page - 1) * size
        return browse(self.store, self.dataset.id, self.where, self.order, size, offset)

    def place(self, trace_id: int) -> ListPlace:
        """Return a trace's position in the list."""
        ids = list_matching(self.store, self.dataset.id, self.where, self.order)
        if trace_id not in ids:
            return ListPlace(Neighbours(None, None))
        index = ids.index(trace_id)
        near = Neighbours(ids[index - 1] if index else None, ids[index + 1] if index + 1 < len(ids) else None)
        return ListPlace(near, index + 1, len(ids))

    def hits_in_steps(self, rows: Sequence[BrowseRow]) -> dict[int, tuple[int, str]]:
        """Map trace ids to the first step with a search hit: its number, counted from 1, and its text.

        Only rows without a hit in the problem are searched, and traces without a hit are left out.
        """
        text = self.address.text
        ids = [row.trace_id for row in rows if text and not has_hit(row.problem, text)]
        if not ids:
            return {}
        with self.store.read() as session:
            opened = load_traces(session, traces(ids))
        hits = {
            trace.trace_id: [
                (number, step.text) for number, step in enumerate(trace.steps, 1) if has_hit(step.text, text)
            ]
            for trace in opened
        }
        return {trace_id: steps[0] for trace_id, steps in hits.items() if steps}
