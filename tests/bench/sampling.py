"""How often a budget of prefixes shows the same top evidence as all prefixes, and how long a sampled trace takes.

    python -m tests.bench.sampling [EVALUATOR] [TRACES] [SEED]

A trace is a chain of gallery and synthetic solutions, 45 to 75 steps long: in a short solution, an eighth of the
tokens of all prefixes is less than one pass over the whole. Top evidence is the step with the largest revision, and
the later step at which it moved most (`core.evidence`).
"""

import random
import sys
import time
from collections.abc import Iterator

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.evidence import largest_revision, revisions
from stepsight.core.judgment import Mode
from stepsight.core.models.memory import keep_freed_memory
from stepsight.core.scores import Hindsight
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.training.evaluate.gallery import read_gallery
from stepsight.training.synth.corpus import generate

TRACES = 20
SHARE = 8
STEPS = (45, 75)


def main() -> None:
    """Measure and print a line per trace, and then the shares."""
    given = sys.argv[1:]
    name, size, seed = (
        given[at] if at < len(given) else usual for at, usual in enumerate(("mini-bidir", TRACES, 1))
    )
    keep_freed_memory()
    evaluator = load_evaluator(str(name), dtype="float32")
    scorer = Scorer(evaluator)
    same = read = whole = 0
    for number, trace in zip(range(int(size)), long_traces(int(seed)), strict=False):
        encoded = evaluator.encode(trace)
        tokens = scorer.tokens(trace, encoded, Mode.HINDSIGHT)
        found = []
        for budget in (None, tokens // SHARE):
            start = time.process_time()
            (judgment,) = scorer.score_encoded([(trace, encoded)], Mode.HINDSIGHT, budget=budget)
            assert judgment.hindsight is not None
            found.append((judgment.hindsight, time.process_time() - start))
        (full, slow), (sampled, fast) = found
        tops = [top_evidence(matrix, trace, evaluator.thresholds.validity) for matrix in (full, sampled)]
        same, read, whole = same + (tops[0] == tops[1]), read + len(sampled.read), whole + len(full)
        print(f"{len(full)} steps, {tokens:,} tokens: {tops[0]}, sampled {tops[1]}, {slow:.1f} s and {fast:.1f} s")
        print(f"  so far the same in {same} of {number + 1}; {read} of {whole} prefixes read", flush=True)


def long_traces(seed: int) -> Iterator[Trace]:
    """Yield chains of solutions, in which a sentence with the next problem follows each solution."""
    rng = random.Random(seed)
    pool = [*read_gallery(), *generate(seed, 400)]
    rng.shuffle(pool)
    while pool:
        least = rng.randint(*STEPS)
        problem, steps = "", list[str]()
        while len(steps) < least and pool:
            trace = pool.pop()
            steps += [f"Next question: {trace.problem}"] if steps else []
            problem = problem or trace.problem
            steps += trace.substeps
        if len(steps) >= least:
            yield Trace.of(problem, steps)


def top_evidence(hindsight: Hindsight, trace: Trace, threshold: float) -> tuple[int, int | None, int]:
    """Return the sub-step with the largest revision, the one that moved it, and how many before that were
    skipped."""
    largest = largest_revision(revisions(hindsight, trace, threshold))
    assert largest is not None
    jump = largest.jump
    return largest.substep, None if jump is None else jump.revealed, 0 if jump is None else jump.skipped


if __name__ == "__main__":
    main()
