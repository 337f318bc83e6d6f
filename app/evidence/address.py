"""The query string of the Evidence page, which determines everything that the page shows."""

from typing import Annotated, ClassVar

from stepsight.app.web.page_query import Number, PageNumber, PageQuery
from stepsight.core.evidence import Flip
from stepsight.core.label import LABEL_NAMES
from stepsight.core.left_out import Gap
from stepsight.core.validation import choice

STAYED = "stayed"
"""The kind of traces in which no verdict changed."""

KINDS = (*(flip.value for flip in Flip), STAYED)
"""The kinds of traces in the gallery."""

VALUES = ("validity", *LABEL_NAMES)
"""The values that the hindsight matrix can show."""

PROBLEM = "problem"
"""The place at which a presentation begins, before any step is revealed."""


class EvidenceAddress(PageQuery):
    """The query of the Evidence page, for one trace or for the gallery of a `dataset`.

    A trace is given as `trace`, a database id, or as `s`, the token of a permalink to the Score page. `evaluator`
    is the evaluator's key (see `EvaluatorChoice`), `kind` is one of `KINDS`, and `page` counts from 1.

    The remaining fields apply to one trace. `step` names the selected sub-step, and `after` the last sub-step
    revealed. `value` is one of `VALUES`, and `gap` says what replaces a step that is left out. `present` opens the
    page as a presentation, at `PROBLEM`, at the name of the last sub-step revealed, or, as `evidence`, at its end.
    """

    PATH: ClassVar[str] = "/evidence"

    trace: Number | None = None
    s: str = ""
    dataset: str = ""
    evaluator: str = ""
    kind: Annotated[str, choice(KINDS)] = ""
    page: PageNumber = 1
    step: str = ""
    after: str = ""
    value: Annotated[str, choice(VALUES)] = "validity"
    gap: Annotated[str, choice(tuple(Gap))] = Gap.DELETED.value
    present: str = ""

    @property
    def left_out(self) -> Gap:
        """The value of `gap` as a `Gap`."""
        return Gap(self.gap)

    @property
    def opens(self) -> bool:
        """True if the query names a trace."""
        return bool(self.s) or self.trace is not None
