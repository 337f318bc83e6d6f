"""Importing a benchmark file into the store.

stepsight import mr-math-invalid mr-math_invalid_errors.json
"""

import argparse
import sys

from tqdm import tqdm

from app.commands.options import add_db


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("import", help="store the traces of a file")
    parser.add_argument("kind", help="such as mr-math-invalid or jsonl; an unknown one lists them all")
    parser.add_argument("path", help="the file")
    parser.add_argument("--dataset", metavar="NAME", help="the dataset's name (default: its kind)")
    add_db(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Import the file; a bad row leaves the store as it was."""
    from storage.imports import import_file
    from storage.store import open_store

    with (
        open_store(args.db) as store,
        tqdm(
            total=1.0, delay=2, disable=not sys.stderr.isatty(), bar_format="{percentage:3.0f}%|{bar}| {desc}"
        ) as bar,
    ):

        def show(traces: int, fraction: float) -> None:
            bar.set_description_str(f"{traces:,} traces", refresh=False)
            bar.update(fraction - bar.n)

        summary = import_file(store, args.kind, args.path, args.dataset or args.kind, show)
    print(summary)
