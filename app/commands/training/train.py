"""Train an evaluator.

stepsight train training/configs/mini-bidir.yaml --output runs/mini-bidir
stepsight train training/configs/llada-prm-8b.yaml --plan --gpu 80
torchrun --nproc-per-node 4 -m stepsight train CONFIG.yaml --output FOLDER
"""

import argparse
import sys
from pathlib import Path

import torch

from stepsight.app.options.shared import add_resources, check_resources
from stepsight.training.runs.processes import is_main_process
from stepsight.training.train.config import TrainConfig, read_config
from stepsight.training.train.estimate import check_devices, estimate_run
from stepsight.training.train.run import train


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Train an evaluator. On several devices: torchrun --nproc-per-node N -m stepsight train ..., "
        "or accelerate launch; a step's traces are divided among them, and the result is that of one device."
    )
    parser.add_argument("config", help="a YAML file; training/configs holds the shipped ones")
    parser.add_argument("--output", metavar="FOLDER", help="default: runs/ and the file's name")
    add_resources(parser)


def run(args: argparse.Namespace) -> None:
    """Train an evaluator, or resume an interrupted run, and print the path of the evaluator."""
    config = read_config(args.config)
    check_resources(args)
    if args.plan:
        _plan(config, args)
    else:
        _train(config, args)


def _plan(config: TrainConfig, args: argparse.Namespace) -> None:
    estimate = estimate_run(config, Path(args.config).parent, args.gpu, args.devices)
    print(estimate)
    estimate.check()


def _train(config: TrainConfig, args: argparse.Namespace) -> None:
    check_devices(config, Path(args.config).parent)
    if args.threads:
        torch.set_num_threads(args.threads)
    output = Path(args.output or Path("runs") / Path(args.config).stem)
    if is_main_process():
        print(f"Training into {output}; stop it whenever you like, the same command goes on.", file=sys.stderr)
    train(config, output, Path(args.config).parent)
    if is_main_process():
        print(output)
