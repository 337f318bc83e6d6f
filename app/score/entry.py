"""What the script of the Score page holds beside the fields of the form, as it comes with every event."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from stepsight.app.score.permalink import ScoreForm, steps_text
from stepsight.app.web.text import text_key
from stepsight.core.errors import UserError
from stepsight.core.scores import Thresholds
from stepsight.storage.traces.writer import SAVED


@dataclass(frozen=True)
class Entry:
    """The state of the page.

    `steps` are those in view, of the text with the key `key`, and `corrected` where a person made them differ from
    its split. `before` is the permalink of the result to compare with, `kept` whether a person chose it; `token` is
    that of the result in view, and `dataset` where it is to be saved.
    """

    steps: list[list[str]] = field(default_factory=list)
    corrected: bool = False
    key: str = ""
    thresholds: Thresholds = field(default_factory=Thresholds)
    before: str = ""
    kept: bool = False
    token: str = ""
    dataset: str = SAVED

    @classmethod
    def read(cls, text: str) -> "Entry":
        """Raises `UserError` where the text is no state of the page."""
        try:
            values = json.loads(text) if text else {}
            return cls(
                [[str(part) for part in step] for step in values.get("steps", [])],
                bool(values.get("corrected", False)),
                str(values.get("key", "")),
                Thresholds.from_dict({k: values[k] for k in ("validity", "redundancy") if k in values}),
                str(values.get("before", "")),
                bool(values.get("kept", False)),
                str(values.get("token", "")),
                str(values.get("dataset", SAVED)),
            )
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise UserError("The page sent what is no state of it.", "Reload the page.") from None

    def form(self, problem: str, solution: str, evaluators: Sequence[str]) -> ScoreForm:
        """The form that is meant. Corrected steps count while the text is the one that they were made from."""
        corrected = self.corrected and self.key == text_key(solution or "")
        text = steps_text(self.steps) if corrected else solution
        return ScoreForm(
            problem or "", text or "", tuple(evaluators), self.thresholds.validity, self.thresholds.redundancy
        )
