"""The prefixes that are read in hindsight within a budget."""

import numpy as np
import pytest

from stepsight.core.arrays import Floats32
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.evidence import largest_revision, revisions
from stepsight.core.judgment import Mode
from stepsight.core.scores import Hindsight
from stepsight.core.scoring.sampling import PrefixChoice
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.messages import refused

N = 80
TRACE = Trace.of("q", [f"Step {i}." for i in range(N)], id="long")
COSTS = np.arange(10, 10 * N + 10, 10)


def triangle(validity: dict[tuple[int, int], float]) -> list[Floats32]:
    """Rows in which a sub-step has validity 0.95, or from the given row on the given one."""
    rows = []
    for j in range(N):
        valid = np.full(j + 1, 0.95, np.float32)
        for (after, i), value in sorted(validity.items()):
            if i <= j and after <= j:
                valid[i] = value
        rows.append(np.stack([1 - valid, 0 * valid, valid], axis=1))
    return rows


def sample(rows: list[Floats32], share: int) -> Hindsight:
    choice, found = PrefixChoice(TRACE, COSTS, 0.5), {N - 1: rows[-1]}
    left = COSTS.sum() / share - COSTS[-1]
    while (row := choice.next_row(found, left)) is not None:
        assert row not in found
        assert COSTS[row] <= left
        found[row], left = rows[row], left - COSTS[row]
    return Hindsight.from_rows(N, found)


@pytest.mark.parametrize(
    ("validity", "evidence", "share"),
    [
        # Exposed by the next step, and by one far later, which takes more prefixes.
        ({(21, 20): 0.1}, (20, 21), 8),
        ({(37, 20): 0.1}, (20, 37), 6),
        # Several flags, of which one was wrong from the beginning.
        ({(21, 20): 0.05, (30, 30): 0.01, (43, 40): 0.2}, (20, 21), 8),
        # A rise near the beginning leaves no flag, and late steps of low validity did not move.
        ({(3, 3): 0.6, (7, 3): 0.95, (72, 72): 0.6, (76, 76): 0.6}, (3, 7), 8),
        # The verdict stays.
        ({(33, 30): 0.6}, (30, 33), 8),
    ],
)
def test_a_share_of_the_tokens_finds_the_step_that_moved_the_most(
    validity: dict[tuple[int, int], float], evidence: tuple[int, int], share: int
) -> None:
    largest = largest_revision(revisions(sample(triangle(validity), share), TRACE, 0.5))
    assert largest is not None
    assert largest.jump is not None
    assert (largest.substep, largest.jump.revealed, largest.jump.skipped) == (*evidence, 0)


def test_a_scorer_reads_the_whole_and_some_prefixes_with_the_scores_that_it_gives_otherwise() -> None:
    scorer = Scorer(load_evaluator("mini-bidir"))
    trace = Trace.of(
        "What is 2 + 3 + 4?", ["2 + 3 = 6.", ["6 + 4 = 10.", "So 10."], "But 2 + 3 = 5.", "So it is 9."]
    )
    (whole,) = scorer.score([trace], Mode.HINDSIGHT)
    tokens = scorer.tokens(trace, scorer.evaluator.encode(trace), Mode.HINDSIGHT)
    (same,) = scorer.score([trace], Mode.HINDSIGHT, budget=tokens)
    (least,) = scorer.score([trace], Mode.HINDSIGHT, budget=1)
    assert not same.is_sampled
    assert least.hindsight is not None
    assert whole.hindsight is not None
    assert least.hindsight.read.tolist() == [4]
    known: list[int] = []
    encoded = [(trace, scorer.evaluator.encode(trace))]
    (some,) = scorer.score_encoded(
        encoded, Mode.HINDSIGHT, on_step=lambda _, i, row: known.append(i), budget=tokens - 1
    )
    assert some.hindsight is not None
    assert some.hindsight.sampled is not None
    assert some.online is None
    assert known == [0, 1, 2, 3, 4]
    for row in some.hindsight.read:
        np.testing.assert_allclose(some.hindsight.rows[row], whole.hindsight.rows[row], atol=1e-5)
    # A causal evaluator reads once, whatever the budget.
    (once,) = Scorer(load_evaluator("mini-causal")).score([trace], Mode.HINDSIGHT, budget=1)
    assert not once.is_sampled


@pytest.mark.parametrize(("mode", "budget"), [(Mode.OFFLINE, 5), (Mode.HINDSIGHT, 0)])
def test_a_budget_is_one_of_hindsight_and_positive(mode: Mode, budget: int) -> None:
    with refused():
        list(Scorer(load_evaluator("mini-bidir")).score([TRACE], mode, budget=budget))
