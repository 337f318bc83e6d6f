"""The view of the Results page that shows an evaluator's card, and the card as files."""

from typing import Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends
from fastapi.responses import Response

from stepsight.app.access.rights import RequiresRight, Right
from stepsight.app.results.measurements import Measurements
from stepsight.app.scoring.batcher import ShortError
from stepsight.training.report.card.files import CARD_WRITERS
from stepsight.training.report.html import content_html

# Seconds that a file waits for a card, which the page that links to it has shown already.
_PATIENCE = 60.0
_TITLES = {"markdown": "Markdown", "json": "JSON"}
_KINDS = {"markdown": ("md", "text/markdown"), "json": ("json", "application/json")}


def card_values(measurements: Measurements, dataset: str, evaluator: str) -> dict[str, Any]:
    """Return the variables of the template `results/card.html`. `card` is None while it is being measured. Raises
    `UserError` if there is no such evaluator or dataset, or if the evaluator has not judged it."""
    found = measurements.find_card(evaluator, dataset)
    own = {"dataset": found.dataset.name, "card": found.evaluator.fingerprint}
    return {
        "evaluator": found.evaluator,
        "name": found.evaluator.name,
        "dataset": found.dataset,
        "datasets": [(one.name, one.name) for one in found.judged],
        "card": found.card,
        "downloads": [
            (title, f"/results/card?{urlencode({**own, 'format': format})}") for format, title in _TITLES.items()
        ],
        "sections": [
            (section.title, [content_html(content) for content in section.contents])
            for section in (found.card.sections if found.card else ())
        ],
    }


def card_files(measurements: Measurements) -> APIRouter:
    """Build the route of the card's files."""
    router = APIRouter(include_in_schema=False)

    @router.get("/results/card", dependencies=[Depends(RequiresRight(Right.READ))])
    def card(dataset: str = "", card: str = "", format: Literal["markdown", "json"] = "markdown") -> Response:
        found = measurements.find_card(card, dataset, _PATIENCE).card
        if found is None:
            raise ShortError("This is still being measured.", "Try again in a minute.")
        suffix, kind = _KINDS[format]
        headers = {"content-disposition": f'attachment; filename="{found.file_name}.{suffix}"'}
        return Response(CARD_WRITERS[format](found), media_type=kind, headers=headers)

    return router
