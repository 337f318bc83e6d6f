"""One run of a grid: trained, measured, its result written.

python -m stepsight.training.experiments.grid.run GRID.yaml FOLDER CELL [--db URL]

is what `stepsight grid` starts for each run.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from stepsight.core.errors import UserError
from stepsight.core.files import write_json
from stepsight.core.formats.loading import load_evaluator
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.metrics.baselines import BASELINES
from stepsight.core.metrics.table import build_table
from stepsight.core.models.evaluator import Evaluator
from stepsight.core.scores import StepScores
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.judgments.evaluators import register_loaded
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from stepsight.training.experiments.grid.design import Cell, Design, Held, read_design
from stepsight.training.experiments.grid.figures import Figures, figures_of
from stepsight.training.experiments.grid.results import RUNS, Key, RunResult, read_run
from stepsight.training.runs.processes import is_main_process
from stepsight.training.train.run import train

TOKENIZER, TRAINED = "tokenizer", "runs"
_ABOUT = ("parameters", "examples", "left_out", "steps", "tokens", "final_loss", "seconds", "devices")


def run_cell(design: Design, cell: Cell, folder: Path, root: Path, store: Store | None) -> RunResult | None:
    """Train the run, or go on with it, measure it and write its result; one that is done is read.

    Where there is a store, the judgments go into it too. Of processes launched together all train, and the first
    does the rest; the others get None. Raises `UserError` where the run cannot be done, or another process is at
    it.
    """
    result, output = result_path(folder, cell), folder / TRAINED / cell.name
    if result.is_file():
        return read_run(result)
    torch.set_num_threads(design.threads)
    tokenizer = str((folder / TOKENIZER).resolve()) if design.learn_tokenizer else None
    train(design.config(cell, tokenizer), output, root)
    if not is_main_process():
        return None
    device = "cuda" if torch.cuda.is_available() else "cpu"
    evaluator = replace(load_evaluator(output, device), name=f"{design.name} {cell.name}")
    run = RunResult(cell, _measure(evaluator, design, root, store), _about(evaluator))
    write_json(result, run.as_json())
    # They are large, and the run is done.
    shutil.rmtree(output / "checkpoints", ignore_errors=True)
    return run


def result_path(folder: Path, cell: Cell) -> Path:
    """The file of a run's result."""
    return folder / RUNS / f"{cell.name}.json"


def dataset_name(design: Design, held: Held) -> str:
    """The dataset of the store that holds the traces of a test."""
    return f"{design.name} {held.name}"


def measure_baselines(design: Design, root: Path) -> dict[str, dict[Key, Figures]]:
    """What the trivial evaluators reach on each test and in each mode."""
    measured: dict[str, dict[Key, Figures]] = {name: {} for name in BASELINES}
    for held in design.tests:
        traces = held.traces(root)
        for name, baseline in BASELINES.items():
            for mode in held.modes:
                table = build_table((trace, baseline.score(trace, Mode(mode))) for trace in traces)
                measured[name][held.name, mode] = figures_of(table)
    return measured


def _measure(evaluator: Evaluator, design: Design, root: Path, store: Store | None) -> dict[Key, Figures]:
    scorer = Scorer(evaluator)
    measured: dict[Key, Figures] = {}
    for held in design.tests:
        traces = held.traces(root)
        judgments: list[Judgment] = []
        for mode in held.modes:
            judgments = _judge(scorer, traces, Mode(mode), judgments)
            if store is not None:
                _save(store, evaluator, dataset_name(design, held), judgments)
            table = build_table((judgment.trace, _scores(judgment)) for judgment in judgments)
            measured[held.name, mode] = figures_of(table)
    return measured


def _judge(scorer: Scorer, traces: Sequence[Trace], mode: Mode, before: list[Judgment]) -> list[Judgment]:
    """Judgments in a mode; a causal evaluator's are the same in every one."""
    if scorer.evaluator.attention == "causal" and before:
        return [replace(judgment, mode=mode) for judgment in before]
    return list(scorer.score(traces, mode))


def _scores(judgment: Judgment) -> StepScores | None:
    return judgment.online if judgment.mode == Mode.ONLINE else judgment.offline


def _save(store: Store, evaluator: Evaluator, dataset: str, judgments: Sequence[Judgment]) -> None:
    """Store the judgments of a test's traces; a trace that it has twice is once in the store."""
    stored = {trace.id: trace for trace in iterate_traces(store, find_dataset(store, dataset).id)}
    by_id = {judgment.trace.id: judgment for judgment in judgments if judgment.trace.id in stored}
    of_stored = (replace(judgment, trace=stored[id]) for id, judgment in by_id.items())
    save_judgments(store, register_loaded(store, evaluator).id, of_stored)


def _about(evaluator: Evaluator) -> dict[str, object]:
    about = {name: evaluator.provenance[name] for name in _ABOUT}
    return about | {"fingerprint": evaluator.fingerprint}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one cell; returns 0, or 2 where the user can fix it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("design", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("cell")
    parser.add_argument("--db")
    parser.add_argument("--no-store", action="store_true")
    args = parser.parse_args(argv)
    try:
        design = read_design(args.design)
        cell = design.cell(args.cell)
        if args.no_store:
            run_cell(design, cell, args.folder, args.design.parent, None)
        else:
            with open_store(args.db) as store:
                run_cell(design, cell, args.folder, args.design.parent, store)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
