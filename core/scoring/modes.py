"""What each mode asks of an evaluator that reads tokens, and the judgment that its answers make."""

import numpy as np

from stepsight.core.arrays import Floats32
from stepsight.core.judgment import Mode
from stepsight.core.prompts.encoding import Encoded
from stepsight.core.scores import Hindsight, StepScores
from stepsight.core.scoring.forward import Input, call_inputs
from stepsight.core.trace import Trace


def mode_inputs(trace: Trace, encoded: Encoded, mode: Mode, *, causal: bool) -> list[Input]:
    """The inputs that are needed for one trace: of a causal evaluator the whole; of a bidirectional one offline the
    whole, online each step with what is before it, in hindsight each sub-step with what is before it."""
    if encoded.calls:
        return call_inputs(encoded.calls)
    if causal or mode == Mode.OFFLINE:
        return [Input(encoded.ids, len(encoded), encoded.reads)]
    if mode == Mode.HINDSIGHT:
        return [Input(encoded.ids, int(end) + 1, encoded.reads[: i + 1]) for i, end in enumerate(encoded.ends)]
    last = np.unique(trace.step_ends)
    first = np.concatenate([[0], last[:-1] + 1])
    return [
        Input(encoded.ids, int(encoded.ends[stop]) + 1, encoded.reads[start : stop + 1])
        for start, stop in zip(first, last, strict=True)
    ]


def assemble(rows: tuple[Floats32, ...], mode: Mode, *, causal: bool) -> StepScores | Hindsight:
    """The scores by the rows that each of `mode_inputs` came to, shape (reads, 3), or (reads, 4) with a spread.

    They are a copy: the rows are parts of what a whole batch came to, which whoever keeps scores would keep too.
    """
    together = np.concatenate(rows)
    if causal:
        scores = StepScores.from_rows(together)
        return Hindsight.constant(scores) if mode == Mode.HINDSIGHT else scores
    return Hindsight.from_packed(together) if mode == Mode.HINDSIGHT else StepScores(together)
