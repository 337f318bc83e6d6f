"""Write accepted disputes to a file as a label patch, or show the content of such a file.

stepsight patch export mr-math-invalid fixes.json
stepsight patch show fixes.json
"""

import argparse
import sys
from pathlib import Path

from stepsight.app.options.shared import add_db, open_output
from stepsight.core.files.label_patch import format_patch, read_patch
from stepsight.storage.database.store import open_store
from stepsight.storage.labelling.disputes import DisputeState
from stepsight.storage.labelling.patches import make_patch
from stepsight.storage.traces.queries import find_dataset

_STATES = [state.value for state in DisputeState]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    export = actions.add_parser("export", help="write the disputes of a dataset as a label patch")
    export.add_argument("dataset", metavar="DATASET")
    export.add_argument("file", metavar="FILE", help="- is standard output")
    export.add_argument(
        "--state", choices=_STATES, default="accepted", help="the state of the disputes (default: %(default)s)"
    )
    add_db(export)
    show = actions.add_parser("show", help="show the changes of a label patch")
    show.add_argument("file", metavar="FILE")


def run(args: argparse.Namespace) -> None:
    (_export if args.action == "export" else _show)(args)


def _export(args: argparse.Namespace) -> None:
    """Write the patch, all or nothing, and print its size and the disputes left out of it."""
    with open_store(args.db) as store:
        dataset = find_dataset(store, args.dataset)
        patch, changed = make_patch(store, dataset, DisputeState(args.state), Path(args.file).name)
    with open_output(args.file) as file:
        file.write(format_patch(patch))
    for dispute in changed:
        print(f"left out: dispute {dispute.id}, whose trace {dispute.trace!r} has changed since", file=sys.stderr)
    print(f"{dataset.name}: {patch.size}, digest {patch.digest}", file=sys.stderr)


def _show(args: argparse.Namespace) -> None:
    """Print where a patch comes from and each label that it changes."""
    patch = read_patch(args.file)
    print(f"{patch.name}: {patch.size}")
    print(f"dataset {patch.dataset} (SHA-256 {patch.sha256[:12]}…), written {patch.moment}")
    print(f"digest {patch.digest}")
    for change in patch.changes:
        print(f"\n{change.place}: {change.old or 'unlabelled'} -> {change.new or 'unlabelled'}")
        by = [f"dispute {change.dispute}"] if change.dispute is not None else []
        print(f"  {change.reason}")
        print(f"  {', '.join([*by, change.by, change.moment])}")
