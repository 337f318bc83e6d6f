"""The clock of this machine, set forward and back."""

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from stepsight.storage.database import schema

HOUR = timedelta(hours=1)


class Clock:
    """Tells the real time, by as much later as it was set."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def set(self, by: timedelta) -> None:
        """Forward, or back where it is negative; time goes on."""
        self.ahead += by


@contextmanager
def clock():
    """The clock that the store goes by."""
    made = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "_clock", made)
        yield made
