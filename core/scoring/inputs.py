"""Inputs of a forward pass: prefixes of encoded traces, with the positions to read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from stepsight.core.arrays import Floats32, Ints


@dataclass(frozen=True, eq=False)
class Input:
    """The first `length` tokens of `ids`, read at the positions `reads`, shape (k,).

    Prefixes of one trace share the same `ids` array, which lets a forward pass share work between them.
    """

    ids: Ints
    length: int
    reads: Ints

    @property
    def key(self) -> bytes:
        """Equal for equal token sequences."""
        return self.ids[: self.length].tobytes()


class Forward(Protocol):
    """Runs inputs through a step model."""

    def run(self, inputs: Sequence[Input]) -> list[Floats32]:
        """Probabilities of shape (k, 3) for each input, in the order given."""
        ...


def chunks(inputs: Sequence[tuple[int, Input]], budget: int, *, padded: bool) -> Iterator[list[tuple[int, Input]]]:
    """Cut numbered inputs, in order, into batches of at most `budget` tokens; a longer input stands alone.

    `padded` counts each input as long as the longest of its batch.
    """
    batch: list[tuple[int, Input]] = []
    total = longest = 0
    for number, item in inputs:
        widest = max(longest, item.length)
        size = widest * (len(batch) + 1) if padded else total + item.length
        if batch and size > budget:
            yield batch
            batch, total, widest = [], 0, item.length
        batch.append((number, item))
        total, longest = total + item.length, widest
    if batch:
        yield batch
