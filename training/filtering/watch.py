"""Telling how far something is that takes long."""

from collections.abc import Callable

Watch = Callable[[str, int, int | None], None]
"""Called with what is counted, such as `solutions scored`, how many are done, and of how many where it is known."""


def unwatched(what: str, done: int, total: int | None) -> None:
    """Tell nobody."""
