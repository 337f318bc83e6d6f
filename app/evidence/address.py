"""The address of the Evidence page, which determines everything that the page shows."""

from typing import Annotated, ClassVar

from stepsight.app.web.page_query import Number, PageNumber, PageQuery
from stepsight.core.evidence import Flip
from stepsight.core.label import LABEL_NAMES
from stepsight.core.left_out import Gap
from stepsight.core.validation import choice

STAYED = "stayed"
"""The kind of traces in which no verdict changed."""

KINDS = (*(flip.value for flip in Flip), STAYED)
VALUES = ("validity", *LABEL_NAMES)
"""The values that the hindsight matrix can show."""

PROBLEM = "problem"
"""The place at which a presentation begins."""


class EvidenceAddress(PageQuery):
    """The query of the Evidence page, for one trace or for the gallery of a `dataset`.

    A trace is `trace`, a database id, or `s`, a permalink's token of the Score page. `evaluator` is the key of the
    evaluator (see `EvaluatorChoice`), `kind` is one of `KINDS`, and `page` counts from 1. For one trace, `step` is
    the name of the selected sub-step, `after` that of the last one revealed, and `value` is one of `VALUES`; `gap`
    is what stands where a step is left out; `present` is the place of its presentation: `PROBLEM`, a sub-step's
    name, or a conclusion of `app.evidence.presentation`.
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
        """`gap` as what it is."""
        return Gap(self.gap)

    @property
    def opens(self) -> bool:
        """True if the address opens a trace."""
        return bool(self.s) or self.trace is not None
