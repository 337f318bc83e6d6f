"""The address of the Evidence page: everything that the page shows follows from it."""

from dataclasses import dataclass
from typing import ClassVar

from stepsight.app.web.page_address import PageAddress, Query, choice_reader, number_reader
from stepsight.core.evidence import Flip
from stepsight.core.label import LABEL_NAMES

STAYED = "stayed"
"""The kind of the traces in which no verdict turned."""

KINDS = (*(turn.value for turn in Flip), STAYED)
VALUES = ("validity", *LABEL_NAMES)
"""What the hindsight matrix can show."""


@dataclass(frozen=True)
class EvidenceAddress(PageAddress):
    """What the query string asks for.

    One trace: `trace`, a database id, or `s`, a token of the Score page; else the gallery of a `dataset`.
    `evaluator` is the name that it is offered under. `kind` is one of `KINDS`, `page` counts from 1. Of one trace:
    `step`, the name of the sub-step that is looked at, `after`, that of the last one that is revealed, `value`, one
    of `VALUES`.
    """

    PATH: ClassVar[str] = "/evidence"

    trace: int | None = None
    s: str = ""
    dataset: str = ""
    evaluator: str = ""
    kind: str = ""
    page: int = 1
    step: str = ""
    after: str = ""
    value: str = "validity"

    @property
    def opens(self) -> bool:
        """Whether it is of one trace."""
        return bool(self.s) or self.trace is not None


_READERS = {
    "trace": number_reader("trace"),
    "page": number_reader("page", least=1),
    "kind": choice_reader("kind", KINDS),
    "value": choice_reader("value", VALUES),
}


def read_address(query: Query) -> tuple[EvidenceAddress, tuple[str, ...]]:
    """The address that a query spells, and a message for each part of it that makes no sense and is passed over."""
    return EvidenceAddress.spelled(query, _READERS)
