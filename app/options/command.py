"""Commands and their options, declared above the function that carries a command out:

    @command(option("--seed N", "the same seed gives the same traces", type=int), DB)
    def synth(args: Namespace) -> None:
        '''Write synthetic traces with planted errors.'''

An option is a function that adds itself to a parser, so that several commands share it. The docstring of a command
is the description in its help.
"""

import argparse
import inspect
from argparse import Namespace
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from enum import EnumType
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

Parser = Any
"""A parser, or a group of its options; argparse has no public type for both."""

Option = Callable[[Parser], object]
Run = Callable[[Namespace], None]

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
# It may stand before or after an action; a default there would override a value before it.
_DB_OF_ACTION = option("--db URL", argparse.SUPPRESS, default=argparse.SUPPRESS)


@dataclass(frozen=True)
class Command:
    """A command, or an action of one: the function that carries it out, its options, what its help says of it, and
    its actions by name, each with a line of help.

    A command without a function of its own needs an action. `noun` is what its help calls an action.
    """

    run: Run | None
    options: tuple[Option, ...]
    description: str | None
    noun: str = "action"
    actions: dict[str, "tuple[str, Command]"] = field(default_factory=dict)

    def action(
        self, name: str, about: str, *options: Option, description: str | None = None
    ) -> Callable[[Run], Run]:
        """Return a decorator that makes a function the action `name`. `about` is its line in the command's help,
        and `description` what its own help says, where "" stands for nothing and None for the same."""
        described = f"{about.capitalize()}." if description is None else description or None

        def add(run: Run) -> Run:
            self.actions[name] = (about, Command(run, options, described))
            return run

        return add

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Add the options and actions to a parser."""
        parser.description = self.description
        parser.set_defaults(run=self.run)
        for each in self.options:
            each(parser)
        if self.actions:
            below = parser.add_subparsers(dest=self.noun, required=self.run is None, metavar=self.noun.upper())
            for name, (about, action) in self.actions.items():
                inner = below.add_parser(name, help=about)
                action.add_to(inner)
                if DB in self.options:
                    _DB_OF_ACTION(inner)


def command(*options: Option, noun: str = "action") -> Callable[[Run], Command]:
    """Return a decorator that makes a function a command. The first paragraph of its docstring is the help."""

    def make(run: Run) -> Command:
        return Command(run, options, (inspect.getdoc(run) or "").partition("\n\n")[0], noun)

    return make
