import random
from collections import Counter

from stepsight.core.trace import Trace
from stepsight.training.data.transforms import stop_at_a_step


def test_a_trace_stops_at_the_one_step_that_stays_labelled():
    trace = Trace.of("q", ["a", "b", "c"], ["pos", "neg", None], id="t", meta={"source": "s"})
    ends = Counter()
    for seed in range(300):
        cut = stop_at_a_step(trace, random.Random(seed))
        assert [step.text for step in cut.steps] == ["a", "b"][: len(cut.steps)]
        assert cut.labels[:-1] == (None,) * (len(cut.steps) - 1)
        assert cut.labels[-1] == trace.labels[len(cut.steps) - 1]
        assert (cut.id, cut.meta) == ("t", {"source": "s"})
        ends[len(cut.steps)] += 1
    # Either labelled step of two, each with probability one half: 150, standard deviation 8.7.
    assert set(ends) == {1, 2}
    assert abs(ends[1] - 150) < 45
