"""Options that several commands share, the types of their values, and the file that a command writes."""

import argparse
import json
import os
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from math import inf
from pathlib import Path
from typing import IO

from stepsight.app.options.command import Option, Parser, flag, group, option
from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import atomic_file, parse_json
from stepsight.core.models.placement import DTYPES, SPREADS, STORED, Placement

_DEVICE = re.compile(r"cpu|cuda(:\d{1,3})?|auto")


def one_evaluator(*servers: str) -> Option:
    """Return `--evaluator`. Its help mentions addresses of evaluators behind these kinds of `servers`."""
    addresses = " or ".join(f"{server}:http://HOST:8000/v1#MODEL" for server in servers)
    about = (
        f"a shipped name, a folder, a model hub's OWNER/NAME, or behind a server {addresses} (default: %(default)s)"
    )
    return option("--evaluator", about, default="mini-bidir")


def fraction(text: str) -> float:
    """Parse a number from 0 to 1, for use as the `type` of an option."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} found, expected a number from 0 to 1")
    return value


def positive(kind: Callable[[str], int] | Callable[[str], float]) -> Callable[[str], float]:
    """Return a `type` for options that take a number above 0. The number has to be whole if `kind` is `int`."""

    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if not 0 < value < inf:
            whole = "whole number" if kind is int else "number"
            raise argparse.ArgumentTypeError(f"{text!r:.40} found, expected a {whole} above 0")
        return value

    return read


def _device(text: str) -> str:
    if not _DEVICE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r:.40} found, expected cpu, cuda, cuda:N or auto")
    return text


def _device_map(text: str) -> "str | dict[str, str | int]":
    if text in SPREADS or (_DEVICE.fullmatch(text) and text != "auto"):
        return text
    try:
        places = parse_json(text)
    except ValueError:
        places = None
    if not isinstance(places, dict) or not places or not all(_is_place(place) for place in places.values()):
        raise argparse.ArgumentTypeError(
            f"{text!r:.60} found, expected {', '.join(SPREADS)}, or a JSON object of a device for each module"
        )
    return places


def _is_place(value: object) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and value >= 0
    return isinstance(value, str) and (value == "disk" or (value != "auto" and bool(_DEVICE.fullmatch(value))))


def _exclusive(*options: Option) -> Option:
    def add(parser: Parser) -> None:
        below = parser.add_mutually_exclusive_group()
        for each in options:
            each(below)

    return add


DATASET = option("--dataset NAME", "a dataset of the store", required=True)
DRAWS = option("--draws", "bootstrap draws (default: %(default)s)", type=positive(int), default=1000)
JSON = flag("--json", "as JSON")
MODES = ("offline", "online")
VALIDITY = option("--validity T", "valid if s_val >= T (default: the evaluator's)", type=fraction)
REDUNDANCY = option("--redundancy T", "redundant if s_red >= T", type=fraction)
YES = flag("--yes", "do not ask for confirmation")
FORCE = flag("--force", "replace an existing file")
PLACEMENT = group(
    "where the weights go, and in which type",
    _exclusive(
        option(
            "--device DEVICE", "cpu, cuda, cuda:N, or auto: a GPU where there is one (default: cpu)", type=_device
        ),
        option(
            "--device-map MAP",
            f"spread its layers over the GPUs, by Accelerate: {', '.join(SPREADS)}; or JSON, a device per module",
            type=_device_map,
        ),
    ),
    option(
        "--dtype",
        "the type of its weights (default: the one they are stored in where the device computes it well, "
        "else float32); another type gives other scores",
        choices=DTYPES,
    ),
)
"""Read by `read_placement`."""


@contextmanager
def open_output(path: str) -> Iterator[IO[str]]:
    """Open standard output for `-`, or else a file that appears under its name once it is complete.

    A path that is not a regular file, such as /dev/null, is written to directly. Raises `UserError` if the file
    cannot be written.
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


def read_placement(args: Namespace, local_rank: int | None = None) -> Placement:
    """Return the placement given by the options in `PLACEMENT`.

    If several processes were launched together, each uses the GPU with the number `local_rank`. Raises `UserError`
    if a device does not exist or cannot compute in the requested type.
    """
    dtype = args.dtype or STORED
    place = Placement(args.device or "cpu", dtype, args.device_map)
    if place == Placement():
        # The default, a processor and the stored types, always works.
        return place
    # This import brings PyTorch, which parsing a command line does not need.
    from stepsight.core.models.devices import check_placement

    place = check_placement(place)
    if local_rank is None or not (args.device_map or place.device == "cuda"):
        return place
    if args.device_map:
        raise UserError(
            "--device-map gives the GPUs to one process, and several were launched.",
            "Launch one, or leave --device-map out: each process then has a GPU of its own.",
        )
    return check_placement(Placement(f"cuda:{local_rank}", dtype))


def is_placed(args: Namespace) -> bool:
    """True if any of the options in `PLACEMENT` was given."""
    return bool(args.device or args.dtype or args.device_map)


def placement_arguments(args: Namespace) -> list[str]:
    """Return the options in `PLACEMENT` that were given, as command-line arguments for starting a second
    process."""
    spread = args.device_map if isinstance(args.device_map, str | None) else json.dumps(args.device_map)
    options = {"--device": args.device, "--dtype": args.dtype, "--device-map": spread}
    return [f"{name}={value}" for name, value in options.items() if value is not None]
