"""The content of an agent's log other than texts, calls and results, counted while the log is read and reported
afterwards."""

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

from stepsight.core.trace import Trace


class Unread(StrEnum):
    """The fate of a part of a log that is not plain text. The values are the beginnings of sentences."""

    LINE = "Kept as a line with their kind, type and size"
    JSON = "Of a kind that is not known, and kept as JSON"
    ROLE = "Messages of roles that are not known, kept under their own name"
    FIELD = "Fields of messages that are not kept"
    ENDLESS = "Thinking that never ends, judged with all of its turn"
    SPAN = "Spans without messages, passed over"


# The most kinds that a sentence names.
_MOST = 12


class UnreadParts:
    """The counts of several traces, by the fate and the kind of a part."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, trace: Trace) -> None:
        """Count the unread parts of a trace."""
        if trace.context is not None:
            self._counts.update(trace.context.unread)

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for each fate, which names the kinds with their numbers, most frequent first."""
        return tuple(note for fate in Unread if (note := _note(fate, self._counts)))


def _note(fate: Unread, counts: Mapping[tuple[str, str], int]) -> str:
    kinds = sorted(
        ((count, kind) for (of, kind), count in counts.items() if of == fate), key=lambda one: (-one[0], one[1])
    )
    named = ", ".join(f"{kind:.40} ({count:,})" for count, kind in kinds[:_MOST])
    more = len(kinds) - _MOST
    return f"{fate}: {named}{f' and {more:,} more kinds' if more > 0 else ''}." if kinds else ""
