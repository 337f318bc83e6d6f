"""The evidence gallery: the traces of a dataset in which later steps changed a verdict, largest change first."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from stepsight.app.browse.evaluator_choice import EvaluatorChoice, find_choice, list_choices
from stepsight.app.evidence.evidence import KINDS, STAYED, EvidenceAddress
from stepsight.app.evidence.sentences import jump_sentence
from stepsight.app.markup.marking import excerpt
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.html import render
from stepsight.app.web.step_bars import change_html
from stepsight.core.errors import UserError
from stepsight.core.evidence import Flip, Revision, largest_revision, revisions
from stepsight.core.judgment import Mode
from stepsight.core.scores import Hindsight, Thresholds
from stepsight.storage.browse.outcomes import Flips, find_flips, hindsight_evaluators
from stepsight.storage.database.store import NotFoundError, Store
from stepsight.storage.judgments.evaluators import find_thresholds
from stepsight.storage.judgments.judgments import StoredJudgment, read_many, standing
from stepsight.storage.traces.queries import Dataset, StoredTrace, list_datasets, trace_batches
from stepsight.training.evaluate.strength import DATASET

_PER_PAGE = 20
_PREVIEW = 180
_TITLES = {
    Flip.RIGHTED.value: "Wrong to right",
    Flip.MISLED.value: "Right to wrong",
    Flip.UNJUDGED.value: "On steps without gold",
    STAYED: "No verdict changed",
}
_LEADS = {
    Flip.RIGHTED.value: "Later steps changed the verdict on a step, and gold agrees with the new verdict.",
    Flip.MISLED.value: "Later steps changed the verdict on a step, and gold agrees with the old verdict.",
    Flip.UNJUDGED.value: "Later steps changed the verdict on a step that has no gold label.",
    STAYED: "In the end every step has the verdict that it had online, even if later steps moved its score.",
}


@dataclass(frozen=True, eq=False)
class Gallery:
    """The traces of a dataset, grouped by the effect of later steps on an evaluator's verdicts. `datasets` and
    `offers` are the datasets and evaluators to choose from, and `offer` is the chosen evaluator. `note` says which
    evaluator was asked for, if it has not judged the dataset."""

    dataset: Dataset
    datasets: Sequence[Dataset]
    offers: Sequence[EvaluatorChoice]
    offer: EvaluatorChoice
    thresholds: Thresholds
    flips: Flips
    note: str

    def count(self, kind: str) -> int:
        return len(self.flips.of(flip_of(kind)))

    def here(self, address: EvidenceAddress) -> EvidenceAddress:
        """Return the address of a gallery page with its defaults filled in. The kind defaults to the first kind
        that has traces."""
        named = address.kind if address.kind in KINDS else ""
        kind = named or next((kind for kind in KINDS if self.count(kind)), KINDS[0])
        return EvidenceAddress(dataset=self.dataset.name, evaluator=self.offer.key, kind=kind, page=address.page)

    def shown(self, here: EvidenceAddress) -> list[int]:
        """Return the database ids of the traces on the gallery page with the address `here`."""
        first = (here.page - 1) * _PER_PAGE
        ids: list[int] = self.flips.of(flip_of(here.kind))[first : first + _PER_PAGE].tolist()
        return ids


class NotJudgedError(UserError):
    """Raised if there is no evidence, because no trace has been judged in hindsight mode. `dataset` names the
    dataset concerned, or is "" if no dataset has hindsight judgments."""

    def __init__(self, message: str, dataset: str = "") -> None:
        super().__init__(message, "Have an evaluator judge it, in hindsight mode.")
        self.dataset = dataset


def open_gallery(store: Store, evaluators: Evaluators, dataset: str, evaluator: str) -> Gallery:
    """Open the gallery of a dataset and an evaluator.

    A `dataset` of "" stands for the shipped gallery if it has been judged, or else for the first dataset. An
    `evaluator` of "", or one that has not judged the dataset, stands for the first that has. Raises `NotFoundError`
    if the dataset or evaluator does not exist, and `NotJudgedError` if no trace has been judged in hindsight mode.
    """
    by_dataset = hindsight_evaluators(store)
    datasets = list_datasets(store)
    chosen = _choose(datasets, dataset, by_dataset)
    evaluator_ids = by_dataset.get(chosen.id, ())
    choices = list_choices(store, evaluators, chosen.id)
    offers = [offer for offer in choices if offer.id in evaluator_ids]
    if not offers:
        raise NotJudgedError(f"Nobody has judged {chosen.name} in hindsight mode yet.", dataset=chosen.name)
    named = find_choice(choices, evaluator) if evaluator else offers[0]
    offer = named if named in offers else offers[0]
    note = "" if offer is named else f"{named.key} has not judged {chosen.name} in hindsight mode. {offer.key} has."
    assert offer.id is not None
    thresholds = find_thresholds(store, offer.id)
    judged = [dataset for dataset in datasets if dataset.id in by_dataset]
    flips = find_flips(store, chosen.id, offer.id, thresholds.validity)
    return Gallery(chosen, judged, offers, offer, thresholds, flips, note)


def flip_of(kind: str) -> Flip | None:
    """Convert one of `KINDS` to a `Flip`. `STAYED` becomes None."""
    return None if kind == STAYED else Flip(kind)


def page_of(number: int | None) -> int:
    """Return the gallery page that shows trace number `number`, counted from 1. If `number` is None, return the
    first page."""
    return 1 if number is None else (number - 1) // _PER_PAGE + 1


def gallery_html(
    store: Store,
    gallery: Gallery,
    here: EvidenceAddress,
    problems: Sequence[str],
    baseline_check: Markup,
    hidden: Collection[int],
) -> Markup:
    """Render a gallery page: the traces of the kind that `here` names, with links to the remaining kinds.

    `problems` are messages shown above the page, and `baseline_check` is the line about evaluators that do not beat
    the baselines. `hidden` are the ids of traces that are left out.
    """
    ids, shown = gallery.flips.of(flip_of(here.kind)), gallery.shown(here)
    visible = [trace_id for trace_id in shown if trace_id not in hidden]
    first = (here.page - 1) * _PER_PAGE
    place = f"{first + 1:,}–{first + len(shown):,} of {len(ids):,}" if shown else f"0 of {len(ids):,}"
    return render(
        "evidence/gallery.html",
        problems=[*problems, gallery.note] if gallery.note else problems,
        baseline_check=baseline_check,
        here=here,
        datasets=[(dataset.name, f"{dataset.name} ({dataset.traces:,})") for dataset in gallery.datasets],
        evaluators=[(offer.key, offer.key) for offer in gallery.offers],
        kinds=[_kind(gallery, here, kind) for kind in KINDS],
        lead=_LEADS[here.kind],
        total=len(ids),
        rows=[_row(gallery, judgment, here) for judgment in _read(store, gallery, visible)],
        pager={"place": place, "more": first + _PER_PAGE < len(ids)} if len(ids) > _PER_PAGE or first else None,
    )


def _choose(datasets: Sequence[Dataset], name: str, by_dataset: dict[int, tuple[int, ...]]) -> Dataset:
    if name:
        dataset = next((row for row in datasets if row.name == name), None)
        if dataset is None:
            raise NotFoundError(f"There is no dataset {name!r:.80}.", "Choose one of those in the store.")
        return dataset
    judged = [row for row in datasets if row.id in by_dataset]
    if not judged:
        raise NotJudgedError("No dataset has been judged in hindsight mode.")
    return next((row for row in judged if row.name == DATASET), judged[0])


def _read(store: Store, gallery: Gallery, ids: Sequence[int]) -> list[StoredJudgment]:
    """Read the hindsight judgments of these traces, in order. Traces that no longer exist are left out."""
    traces = [trace for batch in trace_batches(store, ids) for trace in batch]
    return [
        judgment
        for judgments in read_many(store, traces, gallery.offer.id)
        if (judgment := standing(judgments, Mode.HINDSIGHT)) is not None
    ]


def _kind(gallery: Gallery, here: EvidenceAddress, kind: str) -> dict[str, object]:
    return {
        "title": _TITLES[kind],
        "count": f"{gallery.count(kind):,}",
        "url": here.url(kind=kind, page=1),
        "current": kind == here.kind,
    }


def _row(gallery: Gallery, judgment: StoredJudgment, here: EvidenceAddress) -> dict[str, object]:
    """Return the template's variables for a trace, which is shown by its largest revision of the chosen kind."""
    trace, hindsight = judgment.trace, judgment.hindsight
    assert hindsight is not None
    assert isinstance(trace, StoredTrace)
    of_steps = revisions(hindsight, trace, gallery.thresholds.validity)
    revision = largest_revision(of_steps, flip_of(here.kind)) or largest_revision(of_steps)
    assert revision is not None
    step = trace.step_name(revision.substep)
    title = trace.meta.get("title")
    sentence = "No later step changed a verdict."
    if revision.jump is not None:
        final = float(hindsight.offline.validity[revision.substep])
        sentence = jump_sentence([trace.step_name(i) for i in range(len(hindsight))], revision.jump, final)
    return {
        "name": title if isinstance(title, str) and title else trace.id,
        "url": EvidenceAddress(trace=trace.trace_id, evaluator=here.evaluator, kind=here.kind, step=step).url(),
        "problem": excerpt(trace.problem, _PREVIEW),
        "sentence": sentence,
        "curve": _curve(hindsight, revision, gallery.thresholds.validity),
        "change": change_html(revision.change),
    }


def _curve(hindsight: Hindsight, revision: Revision, threshold: float) -> dict[str, object]:
    """Return the template's variables for a sub-step's reveal curve: its points, and the height of the threshold in
    pixels."""
    column = hindsight.reveal(revision.substep).validity
    places = np.flatnonzero(~np.isnan(column))
    width, height = 96, 30
    across, up = (width - 6) / max(1, len(column) - 1), height - 6
    return {
        "width": width,
        "height": height,
        "kind": "fell" if revision.change < 0 else "rose",
        "level": 3 + (1 - threshold) * up,
        "points": [(3 + i * across, 3 + (1 - float(column[i])) * up) for i in places.tolist()],
    }
