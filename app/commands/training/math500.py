"""Measure the accuracy of causal language models on MATH-500.

stepsight math500 runs/red-42 runs/red-43 runs/red-44 --output runs/red-math500
stepsight math500 mistralai/Mistral-7B-v0.1 --problems math500/test.jsonl --output runs/base --device cuda
"""

import argparse
from dataclasses import replace
from pathlib import Path

from stepsight.app.options.shared import add_placement, read_placement
from stepsight.training.evaluate.grading import Grader
from stepsight.training.experiments.finetuning.math500 import (
    Math500Settings,
    measure,
    output_names,
    problems_path,
    read_problems,
)
from stepsight.training.experiments.finetuning.tables import model_table
from stepsight.training.report.table_files import to_markdown
from stepsight.training.runs.progress import progress_bars

_ENGINES = ("auto", "vllm", "transformers")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Let models answer problems greedily, grade the answers with math-verify, and print pass@1 and "
        "the mean length. Stop it when you like; the same command resumes. Needs stepsight[sft]."
    )
    parser.add_argument("models", nargs="+", metavar="MODEL", help="a folder or a hub's OWNER/NAME")
    parser.add_argument(
        "--problems",
        type=Path,
        metavar="FILE",
        help="JSON Lines with problem and answer (default: MATH-500 in the folder that STEPSIGHT_DATA names)",
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="FOLDER", help="for the results, a folder per model"
    )
    parser.add_argument(
        "--engine", choices=_ENGINES, default="auto", help="default: vLLM if it and a GPU are there"
    )
    parser.add_argument(
        "--tokens", type=int, default=2048, metavar="N", help="the most tokens of an answer (default: %(default)s)"
    )
    parser.add_argument(
        "--batch", type=int, default=32, metavar="N", help="problems at once (default: %(default)s)"
    )
    parser.add_argument(
        "--prompt",
        metavar="TEXT",
        help="the prompt, with {query} in it (default: the one that the model was fine-tuned with)",
    )
    add_placement(parser)


def run(args: argparse.Namespace) -> None:
    """Measure each model, or resume an interrupted run, and print a table of the results."""
    place = read_placement(args)
    place = replace(place, dtype=args.dtype or "float32")
    settings = Math500Settings(args.engine, args.tokens, args.batch, args.prompt, place)
    problems = read_problems(problems_path(args.problems))
    names = output_names(args.models)
    with Grader() as grader, progress_bars() as watch:
        results = [
            measure(model, problems, args.output / name, settings, grader, watch)
            for model, name in zip(args.models, names, strict=True)
        ]
    print(to_markdown(model_table(results)), end="")
