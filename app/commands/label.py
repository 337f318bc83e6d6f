"""The commands `campaign` and `agreement`: people label traces, and how far they agree.

stepsight campaign create "MR-MATH again" mr-math-invalid --guideline guideline.md --overlap 3
stepsight agreement "MR-MATH again" --against "MR-MATH step by step" --json
"""

import json
from argparse import Namespace
from pathlib import Path

from stepsight.app.annotate.agreement import CampaignAgreement, measure_agreement
from stepsight.app.commands.export import add_conditions, read_conditions
from stepsight.app.commands.store import NAME, NEW, delete, rename
from stepsight.app.options.command import (
    DB,
    DRAWS,
    YES,
    Command,
    Option,
    command,
    fields_of,
    flag,
    option,
    read_fields,
    repeated,
)
from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import read_bytes
from stepsight.core.validation import validate
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.campaigns import (
    Campaign,
    ChangeableCampaign,
    add_guideline,
    close_campaign,
    create_campaign,
    find_campaign,
    get_campaign,
    list_campaigns,
    set_annotators,
)
from stepsight.storage.labelling.files.label_formats import EVENTS, export_labels
from stepsight.storage.labelling.plan import LONGEST_GUIDELINE, CampaignPlan, Shows
from stepsight.storage.labelling.progress import annotator_progress, campaign_progress
from stepsight.storage.people.users import find_user, local_user
from stepsight.training.report.tables import rows_as_json, to_text

# The options of `create` whose names differ from the fields of the plan.
_SPELLED = {"suggests": "--suggest", "shows_equations": "--mark-equations", "error_kinds": "--error-kind"}


def _switch(name: str, about: str, field: str, value: object) -> Option:
    """Return an option that sets a field of the plan to another value than the default."""
    return option(name, about, dest=field, action="store_const", const=value)


campaign_command = Command(None, (DB,), "Create and follow labelling campaigns, rename and delete them.")


@campaign_command.action(
    "create",
    "create a campaign of the traces of a dataset that meet the conditions now",
    NAME,
    option("dataset DATASET"),
    option("--guideline FILE", "the instructions for annotators, UTF-8", required=True),
    fields_of(CampaignPlan, **_SPELLED),
    _switch("--to-first-error", "have steps labelled only up to the first wrong one", "after_error", False),
    _switch("--show-scores", "show the scores of --evaluator before submission", "shows", Shows.SCORES),
    _switch("--hide-answer", "do not show the reference answer", "shows_answer", False),
    repeated(
        "--annotator USER",
        "only this person labels in it; may be repeated (default: everybody who may label)",
    ),
    option(
        "--lease MINUTES",
        "how long a trace is reserved for its annotator (default: 30)",
        type=int,
        default=30,
    ),
    add_conditions,
)
def _create_campaign(args: Namespace, store: Store) -> None:
    # A missing annotator is an error before anything is created.
    annotators = [find_user(store, name).id for name in args.annotator or ()]
    where, evaluator = read_conditions(args, store)
    options = read_fields(args, [name for name in CampaignPlan.model_fields if name in args])
    about = {"guideline": _read_guideline(args.guideline), "conditions": where.pruned(), "evaluator": evaluator}
    plan = validate(CampaignPlan, options | about | {"lease": args.lease * 60}, "the plan")
    campaign = create_campaign(store, plan, local_user(store))
    if annotators:
        set_annotators(store, campaign.id, annotators, local_user(store))
    _print_campaign(store, get_campaign(store, campaign.id))


@campaign_command.action("list", "list campaigns, open ones first")
def _list_campaigns(args: Namespace, store: Store) -> None:
    campaigns = list_campaigns(store)
    if not campaigns:
        print("There are no campaigns. Create one: stepsight campaign create NAME DATASET --guideline FILE")
    width = max((len(campaign.name) for campaign in campaigns), default=0)
    for campaign in campaigns:
        print(f"{campaign.name.ljust(width)}  {_summary(store, campaign)}")


@campaign_command.action("show", "show the progress of a campaign and of each annotator", NAME)
def _show_campaign(args: Namespace, store: Store) -> None:
    campaign = find_campaign(store, args.name)
    _print_campaign(store, campaign)
    annotators = annotator_progress(store, campaign.id)
    width = max((len(annotator.user) for annotator in annotators), default=0)
    for annotator in annotators:
        counts = f"{annotator.submitted:,} submitted, {annotator.leased:,} under way, {annotator.skipped:,} skipped"
        counts += "" if annotator.qualification is None else f"; qualification: {annotator.qualification}"
        print(f"{annotator.user.ljust(width)}  {counts}")


@campaign_command.action("close", "close a campaign permanently; its labels stay", NAME)
def _close_campaign(args: Namespace, store: Store) -> None:
    _print_campaign(store, close_campaign(store, find_campaign(store, args.name).id))


@campaign_command.action(
    "guideline", "publish a new version of the guideline", NAME, option("file FILE", "the text, UTF-8")
)
def _publish_guideline(args: Namespace, store: Store) -> None:
    campaign = find_campaign(store, args.name)
    add_guideline(store, campaign.id, _read_guideline(args.file), local_user(store))
    _print_campaign(store, get_campaign(store, campaign.id))


@campaign_command.action("rename", "rename a campaign", NAME, NEW)
def _rename_campaign(args: Namespace, store: Store) -> None:
    rename(store, ChangeableCampaign(find_campaign(store, args.name).id), args.new)


@campaign_command.action(
    "delete",
    "delete a campaign with all its labels, which must have been exported completely",
    NAME,
    YES,
    option("--export FILE", "first write all events to this file"),
)
def _delete_campaign(args: Namespace, store: Store) -> None:
    campaign = find_campaign(store, args.name)
    if args.export:
        print(export_labels(store, campaign.name, args.export, EVENTS))
    delete(store, ChangeableCampaign(campaign.id), yes=args.yes)


def _read_guideline(path: str) -> str:
    try:
        return read_bytes(Path(path), 4 * LONGEST_GUIDELINE).decode("utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}).", "Check the path.") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8 text.", "Save it as UTF-8.") from None
    except ValueError as error:
        raise UserError(f"{path}: {error}.", f"Use at most {LONGEST_GUIDELINE:,} characters.") from None


def _summary(store: Store, campaign: Campaign) -> str:
    progress = campaign_progress(store, campaign.id)
    state = "open" if campaign.closed is None else "closed"
    traces = f"{campaign.items:,} {'trace' if campaign.items == 1 else 'traces'} of {campaign.dataset}"
    return f"{state}, {traces}, {progress.submitted:,} of {progress.slots:,} annotations"


def _print_campaign(store: Store, campaign: Campaign) -> None:
    shown = {"scores": campaign.shows == Shows.SCORES, "marked equations": campaign.shows_equations}
    seen = " and ".join(words for words, is_shown in shown.items() if is_shown)
    kind = f"with {seen}" if seen else "blind"
    extent = "every step" if campaign.after_error else "steps up to the first error"
    print(f"{campaign.name}: {_summary(store, campaign)}")
    print(f"{campaign.view} view, {kind}, {extent}, {campaign.ordering} order, guideline {campaign.guideline}")
    if campaign.qualification_items:
        print(f"qualification: {campaign.qualification_items} gold items first")


@command(
    option("campaign CAMPAIGN", "its name"),
    option("--against OTHER", "a campaign on the same traces to compare with"),
    DRAWS,
    flag("--json", "as JSON, with fractions and null"),
)
def agreement_command(args: Namespace, store: Store) -> None:
    """Measure how far the annotators of a campaign agree: Krippendorff's alpha, Cohen's kappa by pairs, first
    errors, each person with the others and with the gold, by step number, and what changes once more steps are in
    view."""
    campaign = find_campaign(store, args.campaign)
    against = find_campaign(store, args.against) if args.against else None
    agreement = measure_agreement(store, campaign, against, draws=args.draws)
    if args.json:
        print(json.dumps(_as_json(agreement), indent=1, allow_nan=False))
        return
    ratings = agreement.ratings
    print(
        f"{campaign.name}: {ratings.annotations:,} annotations; {len(ratings.queue.traces):,} traces and"
        f" {len(ratings.hidden.traces):,} hidden gold items"
    )
    for table in agreement.tables:
        print(f"\n{to_text(table)}", end="")


def _as_json(agreement: CampaignAgreement) -> dict[str, object]:
    ratings = agreement.ratings
    return {
        "campaign": ratings.campaign.name,
        "against": agreement.against.campaign.name if agreement.against else None,
        "answers": ratings.annotations,
        "traces": len(ratings.queue.traces),
        "hidden_gold_items": len(ratings.hidden.traces),
        "changed_traces": ratings.changed,
        "tables": {table.name: rows_as_json(table) for table in agreement.tables},
    }
