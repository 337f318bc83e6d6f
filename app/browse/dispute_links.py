"""What people dispute of a trace's gold, beside it, and the way to dispute it for those who label."""

from stepsight.app.web.rights import Right, may
from stepsight.app.web.text import MARKS
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.disputes import Dispute, DisputeFilter, DisputeState, list_disputes
from stepsight.storage.people.users import User
from stepsight.storage.traces.queries import StoredTrace

_ALIVE = {DisputeState.OPEN: "disputed", DisputeState.ACCEPTED: "dispute accepted"}


def dispute_links(store: Store, trace: StoredTrace, user: User | None) -> tuple[str, ...]:
    """HTML for each step, "" where there is nothing; () where the trace has no gold. `user` is who sees it."""
    if not trace.has_gold:
        return ()
    alive = [one for one in list_disputes(store, DisputeFilter(trace_id=trace.trace_id)) if one.state in _ALIVE]
    files = user is not None and may(user, Right.LABEL, store)
    return tuple(
        "".join(_known(one) for one in alive if one.step == step) + (_file(trace, step) if files else "")
        for step in range(len(trace.steps))
    )


def _known(dispute: Dispute) -> str:
    proposed = f"{MARKS[dispute.proposed]} {dispute.proposed}" if dispute.proposed else "unlabelled"
    title, text = f"should say {proposed}", _ALIVE[dispute.state]
    return f'<a class="dispute" href="/relabel/disputes/{dispute.id}" title="{title}">{text}</a>'


def _file(trace: StoredTrace, step: int) -> str:
    url = f"/relabel/dispute?trace={trace.trace_id}&amp;step={step + 1}"
    return f'<a class="dispute file" href="{url}" aria-label="Dispute the gold of step {step + 1}">Dispute</a>'
