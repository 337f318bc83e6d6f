"""Small traces and rows that the tests of the store share."""

import json

import numpy as np

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Hindsight, StepScores
from stepsight.core.trace import Label, Step, Trace
from stepsight.storage.judgments.evaluators import list_evaluators, register_evaluator
from stepsight.storage.judgments.judgments import read_many, standing
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from stepsight.storage.traces.writer import TraceWriter

ERROR = Trace.of("What is 1 + 1?", ["It is a sum.", ["So 1 + 1 = 3.", "Done."]], ["pos", "neg"], id="error")
CLEAN = Trace.of("What is 2 + 2?", ["It is 4."], ["pos"], id="clean", meta={"generator": "hand"})
MISSING = Trace.of("What is 3 + 3?", ["It is 6.", "Yes."], id="missing")
# Valid before the error, wrong at it, unlabelled after it.
FIRST_ERROR = Trace(
    "first", "What is 4 + 4?", (Step(("a",), valid=True), Step(("b", "c"), Label.NEG), Step(("d",)))
)
SAMPLES = (ERROR, CLEAN, MISSING, FIRST_ERROR)


def add(store, traces=SAMPLES, dataset="sums"):
    """Put traces into a dataset and read all of it."""
    with store.write() as session:
        writer = TraceWriter(session, dataset, "plain", "test.jsonl")
        writer.add([(f"row {number}", trace) for number, trace in enumerate(traces, start=1)])
        writer.finish("test.jsonl", "0" * 64)
    return list(iterate_traces(store, find_dataset(store, dataset).id))


def many(count):
    """Traces with ids "0", "1", …; every third has an error, every third none, every third no gold."""
    labels = (["neg"], ["pos"], None)
    return [Trace.of(f"Problem {i}", [f"Step of {i}"], labels[i % 3], id=str(i)) for i in range(count)]


def evaluator(store, name="mini"):
    return register_evaluator(store, name=name, fingerprint=f"of {name}", format="stepsight", attention="causal")


def scores(n, seed=0):
    return StepScores(np.random.default_rng(seed).dirichlet([1, 1, 1], n).astype(np.float32))


def triangle(n, seed=0):
    """Rows of all lengths up to `n`."""
    return Hindsight(tuple(scores(j + 1, seed + j).probs for j in range(n)))


def judge(trace, mode, seed=0):
    n = len(trace.substeps)
    return Judgment(trace, Mode(mode), triangle(n, seed) if mode == "hindsight" else scores(n, seed))


def by_mode(judgment):
    """A judgment by each mode that it gives."""
    return {mode: judgment for mode in Mode if judgment.mode in (mode, Mode.HINDSIGHT)}


def same(left, right):
    """Whether two results agree to the bit."""
    return type(left) is type(right) and np.array_equal(_array(left), _array(right))


def _array(result):
    return result.packed if isinstance(result, Hindsight) else result.probs


def write_lines(path, rows):
    """A JSON Lines file; a text is written as it is."""
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def plain_row(number, **other):
    return {"id": number, "problem": f"Problem {number}", "steps": ["One.", ["Two.", "Three."]]} | other


def invalid_row(**other):
    return {
        "id": 7,
        "question": "What is 1 + 1?",
        "ground_truth_answer": "2",
        "generator": "Abel13B-001",
        "model_output": "1. A sum. 2. So 3.",
        "model_output_step_format": [["A sum."], ["So 3.", "Yes."], ["Done."]],
        "model_output_answer_correctness": "correct",
        "model_output_solution_correctness": "wrong",
        "model_output_solution_first_error_step": 2,
    } | other


def redundant_row(**other):
    return {
        "id": 7,
        "question": "What is 1 + 1?",
        "ground_truth_answer": "2",
        "generator": "GPT-4 (PRM800K)",
        "model_output_step_format": [["A sum."], ["Sums are nice.", "Yes."], ["So 3."]],
        "rating": [1, 0, -1],
    } | other


def find_evaluator(store, fingerprint):
    """The evaluator with that fingerprint, which there has to be."""
    return next(evaluator for evaluator in list_evaluators(store) if evaluator.fingerprint == fingerprint)


def find_judgment(store, trace, evaluator_id, mode):
    """The judgment that stands in a mode."""
    return standing(read_many(store, [trace], evaluator_id)[0], mode)
