"""The form for having an evaluator judge a dataset, also used on pages that have nothing to show before that."""

from markupsafe import Markup

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.html import render
from stepsight.core.judgment import Mode
from stepsight.storage.database.store import Store
from stepsight.storage.traces.queries import list_datasets

_MODES = ((Mode.HINDSIGHT, "hindsight (online and offline)"), (Mode.OFFLINE, "offline"),
          (Mode.ONLINE, "online"))  # fmt: skip


def judge_form(
    store: Store, evaluators: Evaluators, dataset: str = "", evaluator: str = "", *, leads: bool = False
) -> Markup:
    """The form, with `dataset` and `evaluator` chosen. With `leads`, a job that it starts is shown on the Jobs
    page. Only a hint if the store is empty."""
    return render(
        "jobs/start.html",
        datasets=[(row.name, f"{row.name} ({row.traces:,})") for row in list_datasets(store)],
        evaluators=[(name, name) for name in evaluators.all_names],
        modes=_MODES,
        chosen=dataset,
        evaluator=evaluator,
        leads=leads,
    )
