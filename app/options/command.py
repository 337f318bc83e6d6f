"""Commands and their options, declared above the function that carries a command out:

    @command(option("--seed N", "the same seed gives the same traces", type=int), DB)
    def synth(args: Namespace) -> None:
        '''Write synthetic traces with planted errors.'''

An option is a function that adds itself to a parser, so that several commands share it. The docstring of a command
is the description in its help. A function with a parameter `store` gets the store that `--db` names, open, and need
not declare that option.
"""

import argparse
import inspect
import json
import os
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from enum import EnumType
from math import inf
from pathlib import Path
from types import NoneType
from typing import IO, Annotated, Any, Literal, get_args, get_origin, get_type_hints

from stepsight.core.critics.settings import list_presets, with_options
from stepsight.core.errors import UserError
from stepsight.core.evaluator_summary import Reading, split_reading
from stepsight.core.files.whole_files import atomic_file, parse_json
from stepsight.core.inference_servers.address import is_critic
from stepsight.core.models.placement import DTYPES, SPREADS, STORED, Placement
from stepsight.storage.database.store import open_store

Parser = Any
"""A parser, or a group of its options; argparse has no public type for both."""

Option = Callable[[Parser], object]
Run = Callable[..., None]

# The placeholder of a value in the help of an option, by its type.
_METAVARS = {int: "N", float: "P", Path: "PATH"}


def option(spec: str, about: str | None = None, **rest: Any) -> Option:
    """Return an option, or a positional argument. `spec` is its name and the placeholder of its value, as in
    `--seed N`; `about` is its help, and `rest` goes to `add_argument`."""
    name, _, metavar = spec.partition(" ")
    if metavar:
        rest["metavar"] = metavar
    return lambda parser: parser.add_argument(name, help=about, **rest)


def flag(name: str, about: str) -> Option:
    """Return an option without a value."""
    return option(name, about, action="store_true")


def repeated(spec: str, about: str, **rest: Any) -> Option:
    """Return an option that may be given several times."""
    return option(spec, about, action="append", **rest)


def group(title: str, *options: Option, about: str | None = None) -> Option:
    """Return options that have a title of their own in the help."""

    def add(parser: Parser) -> None:
        below = parser.add_argument_group(title, about)
        for each in options:
            each(below)

    return add


def described(kind: Any) -> dict[str, tuple[Any, str, object]]:
    """Return the types, the help texts and the defaults of the fields of `kind` that have a help text: of a
    pydantic model those with a description, of a dataclass those annotated as in `Annotated[int, "the seed"]`."""
    if hasattr(kind, "model_fields"):
        return {
            name: (each.annotation, each.description, each.default)
            for name, each in kind.model_fields.items()
            if each.description
        }
    hints = get_type_hints(kind, include_extras=True)
    annotated = [each for each in fields(kind) if get_origin(hints[each.name]) is Annotated]
    return {each.name: (*get_args(hints[each.name]), each.default) for each in annotated}


def fields_of(kind: type, **spelled: str) -> Option:
    """Return options for the fields of `kind` that are `described`. They have the names of the fields, except those
    in `spelled`."""

    def add(parser: Parser) -> None:
        for name, about in described(kind).items():
            words = spelled.get(name, f"--{name.replace('_', '-')}")
            parser.add_argument(words, dest=name, **describe(words, *about))

    return add


def describe(words: str, kind: Any, about: str, default: object) -> dict[str, Any]:
    """Return the keyword arguments of `add_argument` for the option `words` with values of type `kind`.

    `kind` is a literal, an enum, a number, a text, a boolean, or a tuple, which makes the option repeatable. The
    option defaults to None; `default` only appears in the help, whose text is `about`.
    """
    if NoneType in get_args(kind):
        (kind,) = (member for member in get_args(kind) if member is not NoneType)
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
        values |= {"type": kind, "metavar": _METAVARS.get(kind, words.removeprefix("--").upper())}
    shown = ", ".join(map(str, default)) if isinstance(default, tuple) else default
    if shown not in (None, "") and shown is not False:
        about += f" (default: {shown})"
    return values | {"help": about.replace("%", "%%")}


def read_fields(args: Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Return the values of these fields' options, without options that were not given. Repeated options become
    tuples."""
    given = {name: getattr(args, name) for name in names}
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in given.items()
        if value is not None
    }


DB = option(
    "--db URL", "the store: a path, sqlite:///PATH or postgresql://… (default: STEPSIGHT_DB, else one in your home)"
)
# The option may come before or after an action. A default for the action would override a value given before it.
_DB_OF_ACTION = option("--db URL", argparse.SUPPRESS, default=argparse.SUPPRESS)


@dataclass(frozen=True)
class Command:
    """A command, or an action of one: the function that carries it out, its options, its description in the help,
    and its actions by name, each with a line of help.

    A command without a function of its own needs an action. `noun` is what its help calls an action.
    """

    run: Run | None
    options: tuple[Option, ...]
    description: str | None
    noun: str = "action"
    actions: dict[str, "tuple[str, Command]"] = field(default_factory=dict)

    def action(self, name: str, about: str, *options: Option, description: str = "") -> Callable[[Run], Run]:
        """Return a decorator that makes a function the action `name`. `about` is its line in the command's help,
        and the text of its own help unless there is a `description`."""
        described = description or f"{about[:1].upper()}{about[1:]}."

        def add(run: Run) -> Run:
            self.actions[name] = (about, Command(run, options, described))
            return run

        return add

    def add_to(self, parser: argparse.ArgumentParser, *, has_db: bool = False) -> None:
        """Add the options and actions to a parser. `has_db` is True for an action of a command with `DB`."""
        run, options = self.run, self.options

        def run_with_store(args: Namespace) -> None:
            assert run is not None
            with open_store(args.db) as store:
                run(args, store)

        needs_store = run is not None and "store" in inspect.signature(run).parameters
        if needs_store and not has_db:
            options = (*options, DB)
        parser.description = self.description
        parser.set_defaults(run=run_with_store if needs_store else run)
        for each in options:
            each(parser)
        if self.actions:
            below = parser.add_subparsers(dest=self.noun, required=self.run is None, metavar=self.noun.upper())
            for name, (about, action) in self.actions.items():
                inner = below.add_parser(name, help=about)
                action.add_to(inner, has_db=DB in options)
                if DB in options:
                    _DB_OF_ACTION(inner)


def command(*options: Option, noun: str = "action") -> Callable[[Run], Command]:
    """Return a decorator that makes a function a command. The first paragraph of its docstring is the help."""

    def make(run: Run) -> Command:
        return Command(run, options, (inspect.getdoc(run) or "").partition("\n\n")[0], noun)

    return make


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
        "else float32); with another type, scores differ",
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
        # The default, the processor with the stored types, always works.
        return place
    # This import loads PyTorch, which parsing a command line does not need.
    from stepsight.core.models.devices import check_placement

    place = check_placement(place)
    if local_rank is None or not (args.device_map or place.device == "cuda"):
        return place
    if args.device_map:
        raise UserError(
            "--device-map gives all GPUs to one process, but several were launched.",
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


READING = group(
    "how an evaluator reads a solution",
    option(
        "--reading",
        "both-orders lets later steps change a causal evaluator's verdicts on earlier ones; none is trained for it"
        " (default: the evaluator's own)",
        choices=["once", "both-orders"],
    ),
    option(
        "--window TOKENS",
        "judge the steps of a long solution in windows of whole steps with at most this many tokens, including the"
        " problem (default: read it as a whole, or refuse it)",
        type=positive(int),
    ),
)
CRITIC = group(
    "if the evaluator is a critic, a chat model behind a server",
    option(
        "--critic PRESET", f"its prompt: {', '.join(list_presets())}, or a YAML file (default: by the model's name)"
    ),
    option("--samples N", "answers to each question; their shares are probabilities", type=positive(int)),
    option("--temperature T", "the temperature of the answers", type=float),
    flag("--yes", "do not ask for confirmation before many calls"),
)


def read_evaluators(args: Namespace, specs: Sequence[str], unread: Collection[str] = ()) -> list[str]:
    """Return the evaluators' names with the options in `CRITIC` and `READING`: critic options are appended to the
    names of critics, and the reading and windows to all names that are not `unread` and do not include their own.

    Raises `UserError` if there are critic options but no critic.
    """
    options = {"preset": args.critic, "samples": args.samples, "temperature": args.temperature}
    given = {name: value for name, value in options.items() if value is not None}
    if given and not any(map(is_critic, specs)):
        raise UserError(
            "--critic, --samples and --temperature require a critic.",
            "Give --evaluator critic:http://HOST/v1#MODEL.",
        )
    named = [with_options(spec, given) if given and is_critic(spec) else spec for spec in specs]
    reading = args.reading if args.reading == "both-orders" else None

    def spelt(spec: str) -> str:
        bare, own = split_reading(spec)
        return f"{bare}{Reading(own.reading or reading, own.window or args.window)}"

    return [spec if spec in unread else spelt(spec) for spec in named]
