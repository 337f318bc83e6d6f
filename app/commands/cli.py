"""The `stepsight` command: its subcommands and its error handling.

stepsight --help
"""

import argparse
import atexit
import gc
import io
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from tempfile import gettempdir
from typing import TYPE_CHECKING

import stepsight
from stepsight.core.errors import UserError

if TYPE_CHECKING:
    from stepsight.app.options.command import Command

COMMANDS = {
    "app": ("serve", "deployment.md", "serve the pages on this machine"),
    "demo": ("serve", "score.md", "serve a Gradio interface that scores solutions"),
    "score": ("score", "score.md", "score a file, or a dataset of the store"),
    "import": ("data", "datasets.md", "store the traces of a file, or people's labels"),
    "import-scores": ("data", "datasets.md", "store the scores of a file as judgments of a dataset"),
    "campaign": ("label", "annotate.md", "create and follow labelling campaigns, rename and delete them"),
    "export": ("export", "browse.md", "write labels, judgments or traces of the store into a file"),
    "agreement": ("label", "annotate.md", "measure how far the annotators of a campaign agree"),
    "datasets": ("store", "datasets.md", "list the datasets of the store, rename and delete them"),
    "evaluators": ("evaluators", "evaluators.md", "list and fetch evaluators, and verify published figures"),
    "evaluate": ("measure", "measure.md", "measure evaluators on a dataset of the store"),
    "calibrate": ("evaluators", "measure.md", "choose a threshold of an evaluator on a validation dataset"),
    "patch": ("export", "annotate.md", "export accepted disputes as a label patch, and show one"),
    "report": ("report", "measure.md", "write a report of stored judgments: a page and tables"),
    "doubtful": ("measure", "measure.md", "list the gold labels that judgments and equations speak against"),
    "stress": ("score", "measure.md", "change solutions by rule, and measure whether verdicts move as they must"),
    "rerank": ("report", "choose.md", "choose among candidate solutions of a problem"),
    "train": ("train", "training.md", "train an evaluator from a configuration file"),
    "grid": ("train", "training.md", "train and measure a grid of evaluators"),
    "filter": ("train", "choose.md", "choose solutions of a pool by an evaluator's scores"),
    "sft": ("train", "choose.md", "fine-tune a causal language model on a subset"),
    "math500": ("train", "choose.md", "measure causal language models on MATH-500"),
    "filter-study": ("train", "choose.md", "filter a pool, fine-tune on each subset and measure"),
    "synth": ("data", "datasets.md", "write synthetic traces with planted errors as JSON Lines"),
    "user": ("store", "deployment.md", "add, list and change the people who may log in"),
    "work": ("serve", "deployment.md", "run the jobs that wait in the store"),
    "jobs": ("store", "score.md", "list the jobs of the store, cancel them, and delete those that have ended"),
    "backup": ("store", "deployment.md", "copy the whole store into one file, while it is in use"),
    "restore": ("store", "deployment.md", "replace a store's content by a backup"),
}
"""The module of each command, its page in the manual, and its line of help."""


class _ShowVersion(argparse.Action):
    """The action of `--version`, which looks up the version only when the option is used, because the look-up is
    slow."""

    def __call__(self, parser: argparse.ArgumentParser, *given: object) -> None:
        print(stepsight.__version__)
        parser.exit()


def build_parser(loaded: Collection[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Build the parser for the `stepsight` command.

    Only the subcommands in `loaded` get their arguments; the others are merely listed, so their modules are not
    imported.
    """
    whole = argparse.ArgumentParser(
        prog="stepsight", description="Judge every step of a worked solution, with and without its later steps."
    )
    whole.add_argument("--version", action=_ShowVersion, nargs=0, help="show the version and exit")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, _, help_line) in COMMANDS.items():
        parser = commands.add_parser(name, help=help_line)
        if name in loaded:
            _check_temporary_folder()
            # Its options import NumPy and pydantic, which `stepsight --help` does not need.
            command: Command = getattr(
                import_module(f"{__package__}.{module}"), f"{name.replace('-', '_')}_command"
            )
            command.add_to(parser)
    return whole


# Otherwise garbage collection at exit goes through all objects of PyTorch, which takes half a second.
atexit.register(gc.freeze)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Suspend garbage collection while modules are imported. Imports create many objects for the collector to scan,
    but no garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _check_temporary_folder() -> None:
    """Raise `UserError` if nothing temporary can be stored: PyTorch cannot even be imported then."""
    try:
        gettempdir()
    except FileNotFoundError:
        raise UserError(
            "no folder for temporary files can be written to.",
            "Free some space, mount one as with --tmpfs /tmp, or name another one with TMPDIR.",
        ) from None


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit code. The exit code is 0 on success, 2 for an error that the user can
    correct, 130 after an interrupt, and 1 if the reader of the output has gone."""
    for stream in (sys.stdout, sys.stderr):
        # Traces contain characters that the terminal's encoding may lack, and paths bytes that are not characters.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        with _without_garbage_collection():
            args, unknown = build_parser(words[:1]).parse_known_args(words)
        if unknown:
            hint = f"Look at stepsight {args.command} --help."
            raise UserError(f"there is no option or argument {' '.join(unknown)}.", hint)
        args.run(args)
    except UserError as error:
        print(f"stepsight {words[0]}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\nstepsight {words[0]}: stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output has gone; keep Python from complaining again as it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        # Such as a path that is too long for the system, or a disk that is full.
        fault = f"{error.filename or 'a file'} cannot be used ({error.strerror or error})."
        refusal = UserError(fault, "Check the path, its permissions and the disk.")
        print(f"stepsight {words[0]}: {refusal}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
