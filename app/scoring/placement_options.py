"""Options for the device and type of evaluators' weights, shared by commands and by the worker process."""

import argparse
import json
import re

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import parse_json
from stepsight.core.models.placement import DTYPES, SPREADS, STORED, Placement

_DEVICE = re.compile(r"cpu|cuda(:\d{1,3})?|auto")


def add_placement(parser: argparse.ArgumentParser) -> None:
    """Add the options `--device`, `--dtype` and `--device-map`, which `read_placement` reads."""
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
        "--dtype",
        choices=DTYPES,
        help="the type of its weights (default: the one they are stored in where the device computes it well, "
        "else float32); another type gives other scores",
    )


def read_placement(args: argparse.Namespace, local_rank: int | None = None) -> Placement:
    """Return the placement given by the options of `add_placement`.

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


def is_placed(args: argparse.Namespace) -> bool:
    """True if any of the options of `add_placement` was given."""
    return bool(args.device or args.dtype or args.device_map)


def placement_arguments(args: argparse.Namespace) -> list[str]:
    """Return the options of `add_placement` that were given, as command-line arguments for starting a second
    process."""
    spread = args.device_map if isinstance(args.device_map, str | None) else json.dumps(args.device_map)
    options = {"--device": args.device, "--dtype": args.dtype, "--device-map": spread}
    return [f"{name}={value}" for name, value in options.items() if value is not None]


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
