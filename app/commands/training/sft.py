"""Fine-tune a causal language model on a subset of a pool.

stepsight sft training/configs/mistral-7b-sft.yaml --data subsets/red.jsonl --seed 42 --output runs/red-42
stepsight sft training/configs/mistral-7b-sft.yaml --plan --gpu 80
torchrun --nproc-per-node 4 -m stepsight sft RECIPE.yaml --data FILE --output FOLDER
"""

import argparse
import sys
from pathlib import Path

import torch

from stepsight.app.options.shared import add_resources, check_resources
from stepsight.core.validation import update
from stepsight.training.experiments.finetuning.recipe import Recipe, read_recipe
from stepsight.training.experiments.finetuning.run import (
    FineTuning,
    check_installed,
    estimate_fine_tuning,
    fine_tune,
)
from stepsight.training.runs.processes import is_main_process


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Fine-tune a causal language model, with TRL. On several devices: torchrun --nproc-per-node N "
        "-m stepsight sft .... Stop it when you like; the same command resumes. Needs stepsight[sft]."
    )
    parser.add_argument("config", type=Path, help="a YAML file, such as training/configs/mistral-7b-sft.yaml")
    parser.add_argument("--init", metavar="MODEL", help="a folder or a hub's OWNER/NAME (default: the recipe's)")
    parser.add_argument("--data", metavar="FILE", help="JSON Lines with query and response (default: the recipe's)")
    parser.add_argument("--seed", type=int, metavar="N", help="default: the recipe's")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="default: runs/, the recipe, subset and seed")
    add_resources(parser)


def run(args: argparse.Namespace) -> None:
    """Fine-tune, or resume an interrupted run, and print the path of the model."""
    check_resources(args)
    recipe = _recipe(args)
    if args.plan:
        _plan(recipe, args)
    else:
        _fine_tune(recipe, args)


def _recipe(args: argparse.Namespace) -> Recipe:
    """Return the recipe of the config file, updated with the values given on the command line."""
    # A path on the command line is relative to the current folder, not to the recipe.
    data = None if args.data is None else str(Path(args.data).absolute())
    options = {"init": args.init, "seed": args.seed, "data": data}
    return update(read_recipe(args.config), **{key: value for key, value in options.items() if value is not None})


def _plan(recipe: Recipe, args: argparse.Namespace) -> None:
    estimate = estimate_fine_tuning(recipe, args.config.parent, args.gpu, args.devices)
    print(estimate)
    estimate.check()


def _fine_tune(recipe: Recipe, args: argparse.Namespace) -> None:
    # A model may have to be fetched first, which takes a while.
    check_installed()
    if args.threads:
        torch.set_num_threads(args.threads)
    job = FineTuning.of(recipe, args.config.parent)
    output = args.output or Path("runs") / f"{args.config.stem}-{job.subset.name}-{recipe.seed}"
    if is_main_process():
        print(f"Fine-tuning into {output}; stop it whenever you like, the same command goes on.", file=sys.stderr)
    fine_tune(job, output)
    if is_main_process():
        print(output)
