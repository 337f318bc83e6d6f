"""Measure the accuracy of causal language models on MATH-500.

stepsight math500 runs/red-42 runs/red-43 runs/red-44 --output runs/red-math500
stepsight math500 mistralai/Mistral-7B-v0.1 --problems math500/test.jsonl --output runs/base --device cuda
"""

import argparse
from dataclasses import replace
from pathlib import Path

from stepsight.app.options.shared import add_placement, positive, read_placement
from stepsight.core.errors import UserError
from stepsight.core.models.checkpoint import model_name
from stepsight.training.evaluate.grading import Grader
from stepsight.training.experiments.finetuning.language_model import model_folder
from stepsight.training.experiments.finetuning.math500 import MATH500, Exam, measure
from stepsight.training.experiments.finetuning.report import result_tables
from stepsight.training.report.table_files import to_markdown
from stepsight.training.runs.progress import progress_bars


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Let models answer problems greedily, grade the answers with math-verify, and print pass@1 and "
        "the mean length. Stop it when you like; the same command resumes. Needs stepsight[sft]."
    )
    parser.add_argument("models", nargs="+", metavar="MODEL", help="a folder or a hub's OWNER/NAME")
    parser.add_argument(
        "--problems",
        default=MATH500,
        metavar="FILE",
        help="JSON Lines with problem and answer, here or in the folder that STEPSIGHT_DATA names (default: "
        "%(default)s)",
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="FOLDER", help="for the results, a folder per model"
    )
    parser.add_argument(
        "--tokens",
        type=positive(int),
        default=2048,
        metavar="N",
        help="the most tokens of an answer (default: %(default)s)",
    )
    parser.add_argument(
        "--batch", type=positive(int), default=32, metavar="N", help="problems at once (default: %(default)s)"
    )
    parser.add_argument(
        "--prompt",
        metavar="TEXT",
        help="the prompt, with {query} in it (default: the one that the model was fine-tuned with)",
    )
    add_placement(parser)


def run(args: argparse.Namespace) -> None:
    """Measure each model, or resume an interrupted run, and print tables of the results."""
    place = replace(read_placement(args), dtype=args.dtype or "float32")
    exam = Exam.read(args.problems, tokens=args.tokens, batch=args.batch, prompt=args.prompt, place=place)
    models = [model_folder(model) for model in args.models]
    outputs = [args.output / model_name(model) for model in models]
    if len(set(outputs)) < len(outputs):
        raise UserError("two of the models have the same name.", "Measure them into different folders.")
    with Grader() as grader, progress_bars() as watch:
        results = [
            measure(exam, model, output, grader, watch) for model, output in zip(models, outputs, strict=True)
        ]
    print("\n".join(map(to_markdown, reversed(result_tables(results)))), end="")
