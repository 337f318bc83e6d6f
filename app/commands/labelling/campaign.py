"""Create, inspect, close and delete campaigns, in which people label traces.

stepsight campaign create "MR-MATH again" mr-math-invalid --guideline guideline.md --overlap 3
"""

import argparse
from pathlib import Path

from stepsight.app.commands.changing import add_action, change_found
from stepsight.app.commands.labelling.conditions import add_conditions, read_conditions
from stepsight.app.options.shared import add_db, describe_option, read_fields
from stepsight.core.errors import UserError
from stepsight.core.files.json_values import read_bytes
from stepsight.core.validation import validate
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.labelling.annotators import set_annotators
from stepsight.storage.labelling.campaigns import (
    Campaign,
    add_guideline,
    close_campaign,
    create_campaign,
    find_campaign,
    get_campaign,
    list_campaigns,
)
from stepsight.storage.labelling.files.export_labels import EVENTS, export_labels
from stepsight.storage.labelling.plan import LONGEST_GUIDELINE, CampaignPlan, Shows
from stepsight.storage.labelling.progress import annotator_progress, campaign_progress
from stepsight.storage.people.users import find_user, local_user

_ACTIONS = {
    "create": "make a campaign of the traces of a dataset that meet the conditions now",
    "list": "list campaigns, open ones first",
    "show": "show the progress of a campaign and of each annotator",
    "close": "close a campaign for good; its labels stay",
    "guideline": "publish a new version of the guideline",
    "rename": "give a campaign another name",
    "delete": "delete a campaign with all labels in it, of which there must be a complete export",
}

# The options of `create` that are not called as the fields of the plan.
_SPELLED = {"suggests": "--suggest", "shows_equations": "--mark-equations", "error_kinds": "--error-kind"}
# Those that set another value than the default, by field.
_SWITCHES = {
    "after_error": ("--to-first-error", False, "have steps labelled only up to the first wrong one"),
    "shows": ("--show-scores", Shows.SCORES, "show the scores of --evaluator before submission"),
    "shows_answer": ("--hide-answer", False, "do not show the reference answer"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_db(parser)
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for action, does in _ACTIONS.items():
        one = add_action(actions, action, does, "" if action == "list" else "NAME")
        if action == "delete":
            one.add_argument("--export", metavar="FILE", help="first write every event into this file")
        if action == "create":
            one.add_argument("dataset", metavar="DATASET")
            _add_plan(one)
            add_conditions(one)
        if action == "guideline":
            one.add_argument("file", metavar="FILE", help="the text, UTF-8")


def _add_plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--guideline", required=True, metavar="FILE", help="the instructions for annotators, UTF-8")
    for name, field in CampaignPlan.model_fields.items():
        if field.description:
            option = _SPELLED.get(name, f"--{name.replace('_', '-')}")
            about = describe_option(option, field.annotation, field.description, field.default)
            parser.add_argument(option, dest=name, **about)
    for name, (option, value, does) in _SWITCHES.items():
        parser.add_argument(option, dest=name, action="store_const", const=value, help=does)
    parser.add_argument(
        "--annotator",
        action="append",
        metavar="USER",
        help="only this person labels in it; may be repeated (default: everybody who may label)",
    )
    parser.add_argument(
        "--lease",
        type=int,
        default=30,
        metavar="MINUTES",
        help="the time for which a trace is held for its annotator (default: 30)",
    )


def run(args: argparse.Namespace) -> None:
    """Carry out one of `_ACTIONS` and print the resulting state of the campaigns."""
    with open_store(args.db) as store:
        if args.action == "list":
            _print_campaigns(store)
            return
        campaign = _create(args, store) if args.action == "create" else find_campaign(store, args.name)
        if args.action in ("rename", "delete"):
            if args.action == "delete" and args.export:
                print(export_labels(store, campaign.name, args.export, EVENTS))
            change_found(store, args, "campaign", campaign=campaign.id)
            return
        if args.action == "close":
            campaign = close_campaign(store, campaign.id)
        elif args.action == "guideline":
            add_guideline(store, campaign.id, _read(args.file), local_user(store))
            campaign = get_campaign(store, campaign.id)
        _print_campaign(store, campaign, people=args.action == "show")


def _create(args: argparse.Namespace, store: Store) -> Campaign:
    # A missing annotator is an error before anything is created.
    annotators = [find_user(store, name).id for name in args.annotator or ()]
    campaign = create_campaign(store, _plan(args, store), local_user(store))
    if annotators:
        set_annotators(store, campaign.id, annotators, local_user(store))
    return get_campaign(store, campaign.id)


def _plan(args: argparse.Namespace, store: Store) -> CampaignPlan:
    where, evaluator = read_conditions(args, store)
    options = read_fields(args, *(name for name in CampaignPlan.model_fields if name in args))
    about = {"guideline": _read(args.guideline), "conditions": where.pruned(), "evaluator": evaluator}
    return validate(CampaignPlan, options | about | {"lease": args.lease * 60}, "the plan")


def _read(path: str) -> str:
    try:
        return read_bytes(Path(path), 4 * LONGEST_GUIDELINE).decode("utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}).", "Check the path.") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8 text.", "Save it as UTF-8.") from None
    except ValueError as error:
        raise UserError(f"{path}: {error}.", f"Use at most {LONGEST_GUIDELINE:,} characters.") from None


def _print_campaigns(store: Store) -> None:
    campaigns = list_campaigns(store)
    if not campaigns:
        print("There is no campaign. Make one: stepsight campaign create NAME DATASET --guideline FILE")
    width = max((len(campaign.name) for campaign in campaigns), default=0)
    for campaign in campaigns:
        print(f"{campaign.name.ljust(width)}  {_summary(store, campaign)}")


def _summary(store: Store, campaign: Campaign) -> str:
    progress = campaign_progress(store, campaign.id)
    state = "open" if campaign.closed is None else "closed"
    traces = f"{campaign.items:,} {'trace' if campaign.items == 1 else 'traces'} of {campaign.dataset}"
    return f"{state}, {traces}, {progress.submitted:,} of {progress.slots:,} annotations"


def _print_campaign(store: Store, campaign: Campaign, people: bool) -> None:
    shown = {"scores": campaign.shows == Shows.SCORES, "marked equations": campaign.shows_equations}
    seen = " and ".join(words for words, is_shown in shown.items() if is_shown)
    kind = f"with {seen}" if seen else "blind"
    extent = "every step" if campaign.after_error else "steps up to the first error"
    print(f"{campaign.name}: {_summary(store, campaign)}")
    print(f"{campaign.view} view, {kind}, {extent}, {campaign.ordering} order, guideline {campaign.guideline}")
    if campaign.qualification_items:
        print(f"qualification: {campaign.qualification_items} gold items first")
    annotators = annotator_progress(store, campaign.id) if people else []
    width = max((len(one.user) for one in annotators), default=0)
    for one in annotators:
        counts = f"{one.submitted:,} submitted, {one.leased:,} under way, {one.skipped:,} skipped"
        counts += "" if one.qualification is None else f"; qualification: {one.qualification}"
        print(f"{one.user.ljust(width)}  {counts}")
