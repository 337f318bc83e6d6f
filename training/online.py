"""Traces that stop at the one step they supervise: the online task itself.

Where labels stop at the first error, as in PRM800K, cutting traces at random is not enough: a step with labelled
steps after it is never wrong, so that a bidirectional evaluator still learns from the ending. Here every trace ends
at the step it supervises, drawn among the labelled ones, and its ending says nothing.
"""

import random
from dataclasses import replace

from core.trace import Step, Trace


def stop_at_a_step(trace: Trace, rng: random.Random) -> Trace:
    """`trace` up to a labelled step drawn uniformly, the only one that stays labelled. It must have one."""
    place = rng.choice([i for i, label in enumerate(trace.labels) if label is not None])
    before = tuple(Step(step.substeps) for step in trace.steps[:place])
    return replace(trace, steps=(*before, trace.steps[place]))
