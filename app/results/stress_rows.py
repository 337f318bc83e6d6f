"""The picture of a stress test, its examples, and a variant beside its original, as the page shows them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, groupby

from markupsafe import Markup

from stepsight.app.web.step_bars import bar_html, change_html
from stepsight.core.scores import Outputs, StepScores, Thresholds
from stepsight.core.stress.failures import step_change, telling_step
from stepsight.core.stress.measure import StressedTrace, StressFigures


def picture_groups(
    figures: Sequence[StressFigures], baselines: Mapping[str, Sequence[StressFigures]]
) -> list[dict[str, object]]:
    """Return the template's variables for each demand: a row for each transform with the share of steps that moved
    as they must, its interval, and the shares of the baselines."""
    places = range(len(figures))
    return [
        {"demand": demand, "rows": [_row(figures[place], place, baselines) for place in group]}
        for demand, group in groupby(places, key=lambda place: figures[place].transform.demand)
    ]


def _row(one: StressFigures, place: int, baselines: Mapping[str, Sequence[StressFigures]]) -> dict[str, object]:
    known = [(name, of[place].as_demanded.number) for name, of in baselines.items() if of[place].steps]
    return {
        "transform": one.transform,
        "value": one.as_demanded,
        "variants": one.variants,
        "unchanged": one.unchanged,
        "baselines": known,
    }


class StressBars:
    """Renders the steps of variants with the bars of an evaluator with these outputs. A step is valid if its
    validity reaches `validity`."""

    def __init__(self, outputs: Outputs, validity: float, redundancy: float) -> None:
        self._outputs, self._thresholds = outputs, Thresholds(validity, redundancy)

    def example(self, one: StressedTrace) -> dict[str, object]:
        """Return the template's variables for an example: a description of the change, and the bars of the step
        that best shows the evaluator's reaction."""
        place = telling_step(one, self._thresholds.validity)
        return {"one": one, "step": place + 1, **self._bars(one, place)}

    def compare(self, one: StressedTrace, original: Sequence[str]) -> Iterator[dict[str, object]]:
        """Yield the template's variables for each step of a variant, beside the step of the original that it came
        from. `original` holds the texts of the original."""
        moved = set(one.moved(self._thresholds.validity))
        in_order = count()
        for place, (origin, text) in enumerate(zip(one.variant.origins, one.variant.trace.substeps, strict=True)):
            was = None if origin is None else original[origin]
            has_moved = origin is not None and origin != next(in_order)
            yield {
                "number": place + 1,
                "origin": None if origin is None else origin + 1,
                "was": was,
                "now": text,
                "changed": was != text or has_moved,
                "target": place in one.variant.targets,
                "moved": place in moved,
                "change": Markup() if origin is None else change_html(step_change(one, place)),
                **self._bars(one, place),
            }

    def _bars(self, one: StressedTrace, place: int) -> dict[str, Markup]:
        origin = one.variant.origins[place]
        before = Markup() if origin is None else self._bar("before", one.before, origin)
        return {"before": before, "after": self._bar("after", one.after, place)}

    def _bar(self, name: str, scores: StepScores, i: int) -> Markup:
        if not scores.probs[i].any():
            return Markup('<span class="none">no verdict</span>')
        return bar_html(name, scores, i, self._thresholds, outputs=self._outputs)
