"""The inputs for an evaluator that reads a solution twice or in both orders, and the scores computed from them."""

from collections.abc import Iterable

import numpy as np

from stepsight.core.arrays import Floats32
from stepsight.core.judgment import Mode
from stepsight.core.label import Label
from stepsight.core.prompts.encoding import Encoded, Encoder
from stepsight.core.scoring.forward import Input, prefixes, verdicts, whole_inputs
from stepsight.core.trace import Trace


def reread_inputs(trace: Trace, encoded: Encoded, mode: Mode) -> list[Input]:
    """Return the inputs for one trace in a mode: one per prefix, preceded by the whole trace if both orders are
    read."""
    assert encoded.prefix is not None
    first = whole_inputs(encoded) if encoded.in_reverse else []
    return first + [item for _, stop in prefixes(trace, mode) for item in whole_inputs(encoded.prefix(stop))]


def reread_rows(
    encoder: Encoder, trace: Trace, encoded: Encoded, mode: Mode, rows: Iterable[Floats32]
) -> tuple[Floats32, ...]:
    """Return the probabilities of the sub-steps judged with each prefix, computed from the rows for
    `reread_inputs`.

    Each result has the shape (sub-steps, 3). The spread of an ensemble differs between prefixes and is left out.
    """
    assert encoded.prefix is not None
    outputs = iter(rows)

    def read(one: Encoded) -> Floats32:
        return verdicts(encoder, one.calls, outputs) if one.calls else next(outputs)[:, : len(Label)]

    forward = read(encoded) if encoded.in_reverse else None
    found = []
    for start, stop in prefixes(trace, mode):
        probs = read(encoded.prefix(stop))
        found.append((probs if forward is None else (forward[:stop] + probs[::-1]) / np.float32(2))[start:])
    return tuple(found)
