"""Two lists on the Evidence page: the steps of a dataset that carry their solution, and those that no later step
needs.

The lists are derived from an evaluator's scores with each step left out, and are sorted and paged in the database.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from stepsight.app.browse.evaluator_choice import EvaluatorChoice, list_choices
from stepsight.app.browse.hits import excerpt
from stepsight.app.evidence.address import EvidenceAddress
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.html import render
from stepsight.app.web.step_bars import change_html
from stepsight.core.left_out import NOTABLE, Gap
from stepsight.storage.database.store import NotFoundError, Store
from stepsight.storage.judgments.step_falls import (
    MOST_COUNTED,
    Need,
    StepFall,
    count_falls,
    gaps_of,
    left_out_evaluators,
    list_falls,
)
from stepsight.storage.traces.queries import Dataset, StoredTrace, list_datasets, trace_batches

_PER_PAGE = 20
_PREVIEW = 180
_TITLES = {Need.CARRIES: "Steps that carry a solution", Need.UNUSED: "Steps that nothing needs"}
_LEADS = {
    Need.CARRIES: f"Without one, a later step loses {NOTABLE:.2f} or more of its validity. "
    "The largest loss comes first.",
    Need.UNUSED: f"Without one, no later step loses {NOTABLE:.2f} of its validity. The smallest loss comes first.",
}
_GAPS = {Gap.DELETED: "left out", Gap.PLACEHOLDER: "replaced"}


@dataclass(frozen=True, eq=False)
class StepList:
    """A page of one of the two lists of steps, and its address `here`.

    `datasets` and `offers` are the datasets and evaluators to choose from. `rows` pairs each step with its trace,
    and `more` is True if there is a next page. `notices` say which of the things that the address names do not
    exist.
    """

    here: EvidenceAddress
    dataset: Dataset
    datasets: Sequence[Dataset]
    offers: Sequence[EvaluatorChoice]
    offer: EvaluatorChoice
    rows: Sequence[tuple[StepFall, StoredTrace]]
    more: bool
    notices: Sequence[str]

    @property
    def trace_ids(self) -> list[int]:
        return [fall.trace_id for fall, _ in self.rows]


def open_steps(store: Store, evaluators: Evaluators, address: EvidenceAddress) -> StepList | None:
    """Open the list of steps that an address names. Returns None if the dataset has no scores with steps left out.

    If the address names no dataset, the first dataset with these scores is used. If the evaluator or the gap in the
    address has no such scores, the first evaluator or gap that has them is used instead, with a notice. Raises
    `NotFoundError` if the dataset does not exist.
    """
    ids = left_out_evaluators(store)
    scored = [one for one in list_datasets(store) if one.id in ids]
    dataset = next((one for one in scored if address.dataset in ("", one.name)), None)
    if dataset is None:
        if address.dataset and all(one.name != address.dataset for one in list_datasets(store)):
            raise NotFoundError(
                f"There is no dataset {address.dataset!r:.80}.", "Choose one of those in the store."
            )
        return None
    offers = [one for one in list_choices(store, evaluators, dataset.id) if one.id in ids[dataset.id]]
    offer = next((one for one in offers if one.key == address.evaluator), offers[0] if offers else None)
    if offer is None or offer.id is None:
        return None
    gaps = gaps_of(store, dataset.id, offer.id)
    gap = address.left_out if address.left_out in gaps else gaps[0]
    need = Need(address.kind) if address.kind in set(Need) else Need.CARRIES
    here = EvidenceAddress(
        dataset=dataset.name, evaluator=offer.key, kind=need.value, gap=gap.value, page=address.page
    )
    found = list_falls(store, dataset.id, offer.id, gap, need, _PER_PAGE + 1, (here.page - 1) * _PER_PAGE)
    falls = found[:_PER_PAGE]
    batches = trace_batches(store, list(dict.fromkeys(fall.trace_id for fall in falls)))
    traces = {trace.trace_id: trace for batch in batches for trace in batch}
    rows = [(fall, traces[fall.trace_id]) for fall in falls if fall.trace_id in traces]
    notices = []
    if address.evaluator not in ("", offer.key):
        notices.append(
            f"{address.evaluator:.60} has no scores of {dataset.name} without its steps. These are of {offer.key}."
        )
    elif address.left_out not in (gap, Gap.DELETED):
        notices.append(f"{offer.key} has no scores of {dataset.name} with its steps {_GAPS[address.left_out]}.")
    return StepList(here, dataset, scored, offers, offer, rows, len(found) > _PER_PAGE, notices)


def list_links(store: Store, found: StepList) -> list[dict[str, object]]:
    """Return the template's variables for the links to both lists, each with its number of steps."""
    assert found.offer.id is not None
    counts = {
        need: count_falls(store, found.dataset.id, found.offer.id, found.here.left_out, need) for need in Need
    }
    return [
        {
            "title": _TITLES[need],
            "count": f"{count:,}{'+' if count == MOST_COUNTED else ''}",
            "url": found.here.url(kind=need.value, page=1),
            "current": need == found.here.kind,
        }
        for need, count in counts.items()
    ]


def steps_html(store: Store, found: StepList, problems: Sequence[str], gallery: str) -> Markup:
    """Render a list of steps. `problems` are messages shown above the list. `gallery` is the URL of the dataset's
    gallery, or "" if the dataset has none."""
    here, first = found.here, (found.here.page - 1) * _PER_PAGE
    last = first + len(found.rows)
    kinds = list_links(store, found)
    (total,) = (kind["count"] for kind in kinds if kind["current"])
    assert found.offer.id is not None
    return render(
        "evidence/steps.html",
        problems=[*problems, *found.notices],
        here=here,
        datasets=[(one.name, f"{one.name} ({one.traces:,})") for one in found.datasets],
        evaluators=[(offer.key, offer.key) for offer in found.offers],
        gaps=[(gap.value, _GAPS[gap]) for gap in gaps_of(store, found.dataset.id, found.offer.id)],
        kinds=kinds,
        gallery=gallery,
        lead=_LEADS[Need(here.kind)],
        rows=[_row(fall, trace, here) for fall, trace in found.rows],
        place=f"{first + 1:,}–{last:,} of {total}" if found.rows else f"0 of {total}",
        more=found.more,
    )


def _row(fall: StepFall, trace: StoredTrace, here: EvidenceAddress) -> dict[str, object]:
    """Return the template's variables for a step in the list."""
    step = trace.step_name(fall.step)
    return {
        "name": f"{trace.id}, step {step}",
        "url": here.url(dataset="", page=1, trace=trace.trace_id, step=step),
        "text": excerpt(trace.substeps[fall.step], _PREVIEW),
        "sentence": _sentence(step, fall.fall),
        "change": change_html(-fall.fall),
    }


def _sentence(step: str, fall: float) -> str:
    if fall < 0.005:
        return f"Without step {step}, no later step loses any of its validity."
    return f"Without step {step}, a later step loses {fall:.2f} of its validity."
