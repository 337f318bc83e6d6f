"""Training an evaluator.

stepsight train training/configs/mini-bidir.yaml --output runs/mini-bidir
torchrun --nproc-per-node 4 -m app.cli train CONFIG.yaml --output FOLDER
"""

import argparse
import os
import sys
from pathlib import Path

from core.errors import UserError


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "train",
        help="train an evaluator from a configuration file",
        description="Train an evaluator. On several devices: torchrun --nproc-per-node N -m app.cli train ..., or "
        "accelerate launch; a step's traces are shared out, and the result is that of one device.",
    )
    parser.add_argument("config", help="a YAML file; training/configs holds the shipped ones")
    parser.add_argument("--output", metavar="FOLDER", help="default: runs/ and the file's name")
    parser.add_argument("--threads", type=int, metavar="N", help="processor threads to use")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Train, or go on with a run that was stopped, and print where the evaluator is."""
    from training.config import read_config

    config = read_config(args.config)
    if args.threads is not None and args.threads < 1:
        raise UserError(f"--threads is {args.threads}, expected 1 or more.")
    import torch

    from training.run import train

    if args.threads:
        torch.set_num_threads(args.threads)
    output = Path(args.output or Path("runs") / Path(args.config).stem)
    # Of processes launched together the first one speaks.
    speaks = os.environ.get("RANK", "0") == "0"
    if speaks:
        print(f"Training into {output}; stop it whenever you like, the same command goes on.", file=sys.stderr)
    train(config, output, Path(args.config).parent)
    if speaks:
        print(output)
