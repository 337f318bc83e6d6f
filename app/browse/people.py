"""People's labels of a trace and the disputes of its gold labels, for users who may see them."""

from collections.abc import Sequence

from markupsafe import Markup

from stepsight.app.access.rights import Right, may
from stepsight.app.markup.text import counted
from stepsight.app.web.html import macro
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.disputes import Dispute, DisputeFilter, DisputeState, list_disputes
from stepsight.storage.labelling.results.annotations import SubmittedAnnotation
from stepsight.storage.labelling.results.consensus import TraceLabels, read_trace_labels
from stepsight.storage.people.users import User
from stepsight.storage.traces.queries import StoredTrace

_TEMPLATE = "browse/people.html"
_REASONS = {
    "adjudicated": "decided",
    "majority": "majority",
    "tie": "a tie",
    "unsure": "unsure",
    "none": "nobody",
}
_ALIVE = (DisputeState.OPEN, DisputeState.ACCEPTED)


class PeopleLabels:
    """The labels that people gave to a trace, as far as `user` may see them.

    `user` is None for a visitor who is not logged in. Everybody who sees the trace may see the consensus, except
    visitors while a campaign is open. Individual labels are visible once their campaign is closed. Its manager can
    see them earlier.
    """

    def __init__(self, store: Store, trace_id: int, user: User | None) -> None:
        labels = read_trace_labels(store, trace_id)
        self._shown = [one for one in labels if user is not None or one.campaign.closed is not None]
        self._manages = user is not None and may(user, Right.MANAGE, store)
        self._logged_in = user is not None

    @property
    def labels(self) -> tuple[str | None, ...]:
        """The consensus labels of the newest campaign, one per step, or an empty tuple if there are no labels to
        show."""
        return self._shown[0].consensus.labels if self._shown else ()

    @property
    def words(self) -> str:
        """A short summary of the labels, shown below the trace."""
        if not self._shown:
            return "none yet"
        return ", ".join(
            f"{counted(len(one.annotations), 'annotator')} in {one.campaign.name}" for one in self._shown
        )

    def html(self) -> Markup:
        """A table for each campaign, with the consensus and every annotator's label for each step."""
        if not self._shown:
            return Markup()
        return macro(_TEMPLATE, "tables", [(one, self._annotations(one)) for one in self._shown], _REASONS)

    def _annotations(self, labels: TraceLabels) -> Sequence[SubmittedAnnotation]:
        closed = labels.campaign.closed is not None
        return labels.annotations if self._logged_in and (self._manages or closed) else ()


def dispute_links(store: Store, trace: StoredTrace, user: User | None) -> tuple[Markup, ...]:
    """Return, for each step, the links below its gold label: to its disputes and, if `user` may label, to
    a form to file one. Returns an empty tuple if the trace has no gold labels."""
    if not trace.has_gold:
        return ()
    disputes = _alive_disputes(store, trace.trace_id)
    labels = user is not None and may(user, Right.LABEL, store)
    return tuple(
        macro(
            _TEMPLATE, "disputes", [one for one in disputes if one.step == step], trace.trace_id, step + 1, labels
        )
        for step in range(len(trace.steps))
    )


def _alive_disputes(store: Store, trace_id: int) -> list[Dispute]:
    return [one for one in list_disputes(store, DisputeFilter(trace_id=trace_id)) if one.state in _ALIVE]
