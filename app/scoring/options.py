"""Options that several commands share."""

import argparse
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, TypeVar

from tqdm import tqdm

from stepsight.core.atomic import atomic_file
from stepsight.core.errors import UserError
from stepsight.core.models.placement import DTYPES, SPREADS, Placement

Item = TypeVar("Item")

_DEVICE = re.compile(r"cpu|cuda(:\d{1,3})?|auto")


def add_db(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--db",
        metavar="URL",
        help="the store: a path, sqlite:///PATH or postgresql://… (default: STEPSIGHT_DB, else a file of yours)",
    )


def fraction(text: str) -> float:
    """A number from 0 to 1, as the `type` of an option."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} found, expected a number from 0 to 1")
    return value


def add_placement(parser: argparse.ArgumentParser) -> None:
    """`--device`, `--dtype` and `--device-map`, for `read_placement`."""
    group = parser.add_argument_group("where the weights go, and in which type")
    devices = group.add_mutually_exclusive_group()
    devices.add_argument(
        "--device",
        type=_device,
        metavar="DEVICE",
        help="cpu, cuda, cuda:N, or auto: a GPU where there is one (default: cpu)",
    )
    devices.add_argument(
        "--device-map",
        type=_device_map,
        metavar="MAP",
        help=f"spread its layers over the GPUs, by Accelerate: {', '.join(SPREADS)}; or JSON, a device per module",
    )
    group.add_argument(
        "--dtype", choices=DTYPES, help="the type of its weights (default: float32); others are other scores"
    )


def read_placement(args: argparse.Namespace, local_rank: int | None = None) -> Placement:
    """What the options of `add_placement` say. Of processes launched together, each gets the GPU of its
    `local_rank`. Raises `UserError` where a device is not there or cannot compute in the type."""
    # It brings PyTorch, which a command line is read without.
    from stepsight.core.models.devices import check_placement

    dtype = args.dtype or "float32"
    place = check_placement(Placement(args.device or "cpu", dtype, args.device_map))
    if local_rank is None or not (args.device_map or place.device == "cuda"):
        return place
    if args.device_map:
        raise UserError(
            "--device-map gives the GPUs to one process, and several were launched.",
            "Launch one, or leave --device-map out: each process then has a GPU of its own.",
        )
    return check_placement(Placement(f"cuda:{local_rank}", dtype))


def is_placed(args: argparse.Namespace) -> bool:
    """Whether one of the options of `add_placement` was given."""
    return bool(args.device or args.dtype or args.device_map)


def placement_arguments(args: argparse.Namespace) -> list[str]:
    """The options of `add_placement` as they were given, for another process."""
    spread = args.device_map if isinstance(args.device_map, str | None) else json.dumps(args.device_map)
    given = {"--device": args.device, "--dtype": args.dtype, "--device-map": spread}
    return [f"{name}={value}" for name, value in given.items() if value is not None]


def _device(text: str) -> str:
    if not _DEVICE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r:.40} found, expected cpu, cuda, cuda:N or auto")
    return text


def _device_map(text: str) -> "str | dict[str, str | int]":
    if text in SPREADS or (_DEVICE.fullmatch(text) and text != "auto"):
        return text
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not found or not all(_is_place(place) for place in found.values()):
        raise argparse.ArgumentTypeError(
            f"{text!r:.60} found, expected {', '.join(SPREADS)}, or a JSON object of a device for each module"
        )
    return found


def _is_place(value: object) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and value >= 0
    return isinstance(value, str) and (value == "disk" or (value != "auto" and bool(_DEVICE.fullmatch(value))))


def progress(items: Iterable[Item], total: int | None, unit: str) -> Iterator[Item]:
    """Go through `items` under a bar on stderr that appears after two seconds, and only in a terminal."""
    yield from tqdm(items, total=total, unit=f" {unit}", delay=2, disable=not sys.stderr.isatty(), file=sys.stderr)


@contextmanager
def open_output(path: str) -> Iterator[IO[str]]:
    """Standard output for `-`, or a file that appears whole at the end or not at all.

    What is no file, such as /dev/null, is written to and not replaced. Raises `UserError` where it cannot be.
    """
    if path == "-":
        yield sys.stdout
        return
    replaced = os.path.isfile(path) or not os.path.exists(path)
    target = atomic_file(path) if replaced else nullcontext(Path(path))
    try:
        with target as place, open(place, "w", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}).", "Check the path.") from None
