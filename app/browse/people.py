"""What people say of a trace, for those who may see it: labels of campaigns, and disputes of its gold."""

from collections.abc import Sequence

from markupsafe import Markup

from stepsight.app.access.rights import Right, may
from stepsight.app.markup.text import counted
from stepsight.app.web.html import macro
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.disputes import DisputeFilter, DisputeState, list_disputes
from stepsight.storage.labelling.results.annotations import SubmittedAnnotation
from stepsight.storage.labelling.results.consensus import TraceLabels, read_trace_labels
from stepsight.storage.people.exposures import LABELS, note_exposure
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
    """People's labels of a trace as `user` may see them, None: somebody who is not logged in.

    What annotators agree on is for all who see the trace, save for who has begun to label it in a blind campaign;
    while a campaign is open, not for somebody unknown. Each one's labels are shown once the campaign is closed, and
    before that to who runs it. That a person sees them is noted before they are shown.
    """

    def __init__(self, store: Store, trace_id: int, user: User | None) -> None:
        labels = read_trace_labels(store, trace_id, user)
        self.hidden = any(one.ahead for one in labels)
        self._shown = [
            one for one in labels if not self.hidden and (user is not None or one.campaign.closed is not None)
        ]
        self._manages = user is not None and may(user, Right.MANAGE, store)
        self._logged_in = user is not None
        if user is not None and self._shown:
            note_exposure(store, user, [trace_id], LABELS)

    @property
    def labels(self) -> tuple[str | None, ...]:
        """What the annotators of the newest campaign agree on, one per step; () where there is nothing to show."""
        return self._shown[0].consensus.labels if self._shown else ()

    @property
    def words(self) -> str:
        """In a few words, for the line below the trace."""
        if self.hidden:
            return "hidden until you have submitted yours"
        if not self._shown:
            return "none yet"
        return ", ".join(
            f"{counted(len(one.annotations), 'annotator')} in {one.campaign.name}" for one in self._shown
        )

    def html(self) -> Markup:
        """A table for each campaign: a row per step, what is agreed on, and each one's label."""
        if not self._shown:
            return Markup()
        return macro(_TEMPLATE, "tables", [(one, self._annotations(one)) for one in self._shown], _REASONS)

    def _annotations(self, labels: TraceLabels) -> Sequence[SubmittedAnnotation]:
        closed = labels.campaign.closed is not None
        return labels.annotations if self._logged_in and (self._manages or closed) else ()


def dispute_links(store: Store, trace: StoredTrace, user: User | None) -> tuple[Markup, ...]:
    """Links to the disputes of each step's gold and, for a `user` who labels, to open one; () where the trace has
    no gold."""
    if not trace.has_gold:
        return ()
    disputes = [one for one in list_disputes(store, DisputeFilter(trace_id=trace.trace_id)) if one.state in _ALIVE]
    labels = user is not None and may(user, Right.LABEL, store)
    return tuple(
        macro(
            _TEMPLATE, "disputes", [one for one in disputes if one.step == step], trace.trace_id, step + 1, labels
        )
        for step in range(len(trace.steps))
    )
