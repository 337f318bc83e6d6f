"""Options of the store, the output and the device and type of evaluators' weights, and printing for commands."""

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from enum import EnumType
from math import inf
from pathlib import Path
from types import NoneType
from typing import IO, Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from tqdm import tqdm

from stepsight.core.errors import UserError
from stepsight.core.files.atomic import atomic_file
from stepsight.core.files.json_values import parse_json
from stepsight.core.models.placement import DTYPES, SPREADS, STORED, Placement

Item = TypeVar("Item")
_DEVICE = re.compile(r"cpu|cuda(:\d{1,3})?|auto")
# The placeholder of a value in the help of an option, by its type.
_METAVARS = {int: "N", float: "P", Path: "PATH"}


def add_db(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--db",
        metavar="URL",
        help="the store: a path, sqlite:///PATH or postgresql://… (default: STEPSIGHT_DB, else one in your home)",
    )


def confirm(told: str, *, yes: bool) -> None:
    """Print what is about to happen and, unless `yes` is True, ask whether to continue. Raises `UserError` if the
    user declines, or if nobody can be asked."""
    if not yes and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError(told, "Give --yes to go on.")
    print(told, "" if yes else "Go on? [y/N] ", end="\n" if yes else "", file=sys.stderr, flush=True)
    if not yes and sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UserError("cancelled, nothing was done.")


def add_evaluator(parser: argparse.ArgumentParser, servers: Iterable[str] = ("vllm",)) -> None:
    """Add `--evaluator`. Its help mentions addresses of evaluators behind these kinds of `servers`."""
    addresses = " or ".join(f"{server}:http://HOST:8000/v1#MODEL" for server in servers)
    parser.add_argument(
        "--evaluator",
        default="mini-bidir",
        help=f"a shipped name, a folder, a model hub's OWNER/NAME, or behind a server {addresses}"
        " (default: %(default)s)",
    )


def add_fields(parser: argparse.ArgumentParser, kind: type, **options: str) -> None:
    """Add options for fields of the dataclass `kind`.

    `options` maps the name of a field to its option; "" stands for an option with the name of the field. The
    field's type is annotated with the option's help, as in `overlap: Annotated[int, "people per trace"]`.
    """
    hints = get_type_hints(kind, include_extras=True)
    defaults = {field.name: field.default for field in fields(kind)}
    for name, option in options.items():
        annotation, about = get_args(hints[name])
        option = option or f"--{name.replace('_', '-')}"
        parser.add_argument(option, dest=name, **describe_option(option, annotation, about, defaults[name]))


def describe_option(option: str, kind: Any, about: str, default: object) -> dict[str, Any]:
    """Return the keyword arguments of `add_argument` for an option with values of type `kind`.

    `kind` is a literal, an enum, a number, a text, a boolean, or a tuple, which makes the option repeatable. The
    option defaults to None; `default` only appears in the help, whose text is `about`.
    """
    if NoneType in get_args(kind):
        (kind,) = (one for one in get_args(kind) if one is not NoneType)
    values: dict[str, Any] = {"default": None}
    if get_origin(kind) is tuple:
        values["action"], kind = "append", get_args(kind)[0]
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if kind is bool:
        values["action"] = "store_true"
    elif get_origin(kind) is Literal or isinstance(kind, EnumType):
        values["choices"] = get_args(kind) or tuple(kind)
    else:
        values |= {"type": kind, "metavar": _METAVARS.get(kind, option.removeprefix("--").upper())}
    shown = ", ".join(map(str, default)) if isinstance(default, tuple) else default
    if shown not in (None, "") and shown is not False:
        about += f" (default: {shown})"
    return values | {"help": about.replace("%", "%%")}


def read_fields(args: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return the values of these fields' options, without options that were not given. Repeated options become
    tuples."""
    given = {name: getattr(args, name) for name in names}
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in given.items()
        if value is not None
    }


def add_resources(parser: argparse.ArgumentParser) -> None:
    """Add `--threads`, `--plan`, `--gpu` and `--devices`, which `check_resources` checks."""
    parser.add_argument("--threads", type=int, metavar="N", help="processor threads to use")
    parser.add_argument("--plan", action="store_true", help="print the estimated needs, and load nothing")
    parser.add_argument(
        "--gpu",
        type=positive(float),
        metavar="GIB",
        help="with --plan: the memory of a GPU (default: the recipe's)",
    )
    parser.add_argument("--devices", type=int, metavar="N", help="with --plan: on N GPUs (default: the recipe's)")


def check_resources(args: argparse.Namespace) -> None:
    """Raise `UserError` if a number is below 1, or if --gpu or --devices is given without --plan."""
    for name in ("threads", "devices"):
        if getattr(args, name) is not None and getattr(args, name) < 1:
            raise UserError(f"--{name} is {getattr(args, name)}, expected 1 or more.")
    if not args.plan and (args.gpu or args.devices):
        raise UserError(
            "--gpu and --devices go with --plan.", "Otherwise torchrun's processes determine the devices."
        )


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


def progress(items: Iterable[Item], total: int | None, unit: str) -> Iterator[Item]:
    """Iterate over `items` with a progress bar on stderr. It appears after two seconds, and only in a terminal."""
    yield from tqdm(items, total=total, unit=f" {unit}", delay=2, disable=not sys.stderr.isatty(), file=sys.stderr)


def print_left_out(trace: object, error: UserError) -> None:
    """Print why a trace is left out, for example because it exceeds the evaluator's context."""
    print(f"left out: {error.message}", file=sys.stderr)


def print_note(note: str) -> None:
    """Print a note on stderr, unless it is empty."""
    if note:
        print(note, file=sys.stderr)


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
