"""The address of the Evidence page: everything that the page shows follows from it."""

from typing import Annotated, ClassVar

from stepsight.app.web.page_query import Number, PageNumber, PageQuery
from stepsight.core.evidence import Flip
from stepsight.core.label import LABEL_NAMES
from stepsight.core.validation import choice

STAYED = "stayed"
"""The kind of the traces in which no verdict turned."""

KINDS = (*(flip.value for flip in Flip), STAYED)
VALUES = ("validity", *LABEL_NAMES)
"""What the hindsight matrix can show."""

PROBLEM = "problem"
"""Where a presentation begins."""


class EvidenceAddress(PageQuery):
    """The query of the Evidence page.

    One trace: `trace`, a database id, or `s`, a token of the Score page; else the gallery of a `dataset`.
    `evaluator` is the name that it is offered under. `kind` is one of `KINDS`, `page` counts from 1. Of one trace:
    `step`, the name of the sub-step that is looked at, `after`, that of the last one that is revealed, `value`, one
    of `VALUES`; `present`, how far it is presented: `PROBLEM`, a sub-step's name, or a
    conclusion of `app.evidence.presentation`.
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
    present: str = ""

    @property
    def opens(self) -> bool:
        """True if it opens one trace."""
        return bool(self.s) or self.trace is not None
