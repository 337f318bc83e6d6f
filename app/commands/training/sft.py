"""Fine-tune a causal language model on a subset of a pool.

stepsight sft training/configs/mistral-7b-sft.yaml --data subsets/red.jsonl --seed 42 --output runs/red-42
stepsight sft training/configs/mistral-7b-sft.yaml --plan --gpu 80
torchrun --nproc-per-node 4 -m stepsight sft RECIPE.yaml --data FILE --output FOLDER
"""

import argparse
from pathlib import Path

import torch

from stepsight.app.options.shared import add_resources, check_resources
from stepsight.core.validation import update
from stepsight.training.experiments.finetuning.recipe import read_recipe
from stepsight.training.experiments.finetuning.sft import estimate_fine_tuning, fine_tune
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
    # A path on the command line is relative to the current folder, not to the recipe.
    data = None if args.data is None else str(Path(args.data).absolute())
    options = {"init": args.init, "seed": args.seed, "data": data}
    recipe = update(read_recipe(args.config), **{key: value for key, value in options.items() if value is not None})
    if args.plan:
        estimate = estimate_fine_tuning(recipe, args.config.parent, args.gpu, args.devices)
        print(estimate)
        estimate.check()
        return
    if args.threads:
        torch.set_num_threads(args.threads)
    output = args.output or Path("runs") / f"{args.config.stem}-{Path(recipe.data or '').stem}-{recipe.seed}"
    fine_tune(recipe, args.config.parent, output)
    if is_main_process():
        print(output)
