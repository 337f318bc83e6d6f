"""Find out what the steps of a dataset's solutions rest on, by scoring every trace without each of its steps.

stepsight dependence --dataset gallery --evaluator mini-causal
stepsight dependence --dataset gallery --evaluator mini-bidir --gap placeholder --output left-out.jsonl
stepsight dependence --dataset strict-prmbench --against-gold
"""

import argparse

from stepsight.app.commands.evaluation.completion import complete_left_out
from stepsight.app.commands.evaluation.evaluator_options import add_critic, add_reading, as_asked
from stepsight.app.options.shared import add_db, add_evaluator, add_placement, open_output, positive, read_placement
from stepsight.core.left_out import NOTABLE, Gap
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.judgments.left_outs import list_both, measure_needed
from stepsight.storage.judgments.records import left_out_records
from stepsight.storage.judgments.step_falls import (
    MOST_COUNTED,
    Need,
    StepFall,
    count_falls,
)
from stepsight.storage.traces.queries import Dataset, find_dataset, get_trace

# Characters of a step that a list shows.
_SHOWN = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Score the traces of a dataset without each of their steps, keep the scores in the store, and list the"
        " steps that carry a solution and those that nothing needs. Without a model here, list those of imported"
        " scores."
    )
    parser.add_argument("--dataset", required=True, metavar="NAME", help="a dataset of the store")
    add_evaluator(parser, ("vllm", "critic"))
    parser.add_argument(
        "--gap",
        choices=[gap.value for gap in Gap],
        default=Gap.DELETED.value,
        help="what stands where a step is left out: nothing, or an empty phrase (default: %(default)s)",
    )
    parser.add_argument(
        "--list", type=positive(int), default=10, metavar="N", help="the steps of each list (default: %(default)s)"
    )
    parser.add_argument(
        "--output", metavar="FILE", help="write all of the scores there, as stepsight import-scores reads them"
    )
    parser.add_argument(
        "--against-gold",
        action="store_true",
        help="score nothing; for every evaluator with such scores of the dataset, print how well the largest fall"
        " of a later step tells needed steps from others: an AUC with its 95%% interval over problems",
    )
    add_reading(parser)
    add_critic(parser)
    add_placement(parser)
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Score the traces that lack scores, then list the steps that carry a solution and those that no later step
    needs. With `--against-gold`, nothing is scored, and the stored scores are compared with the gold labels."""
    gap = Gap(args.gap)
    with open_store(args.db) as store:
        dataset = find_dataset(store, args.dataset)
        if args.against_gold:
            print(_against_gold(store, dataset, gap))
            return
        (spec,) = as_asked(args, [args.evaluator])
        evaluator = complete_left_out(store, dataset, spec, gap, read_placement(args), yes=args.yes)
        lists = list_both(store, dataset, evaluator.id, evaluator.name, gap, args.list)
        if args.output is not None:
            records = left_out_records(store, dataset.id, evaluator, gap)
            with open_output(args.output) as out:
                out.writelines(f"{record.model_dump_json()}\n" for record in records)
        if args.output != "-":
            counts = {need: count_falls(store, dataset.id, evaluator.id, gap, need) for need in Need}
            print(_lists(store, gap, lists, counts))


def _against_gold(store: Store, dataset: Dataset, gap: Gap) -> str:
    known = measure_needed(store, dataset, gap)
    width = max(map(len, known))
    head = (
        "AUC of the largest fall of a later step, needed against other steps, with its 95 % interval over problems"
    )
    return "\n".join([f"{head} ({gap}):", *(f"  {name:{width}}  {one}" for name, one in known.items())])


def _lists(store: Store, gap: Gap, lists: dict[Need, list[StepFall]], counts: dict[Need, int]) -> str:
    carries, unused = (
        f"{count:,}{' or more' if count == MOST_COUNTED else ''}"
        for count in (counts[Need.CARRIES], counts[Need.UNUSED])
    )
    lines = [
        f"Steps before the last were left out one at a time ({gap}). Without {carries} of them a later step loses"
        f" {NOTABLE} or more of its validity, without {unused} none does.",
        "",
        "Most is lost without",
        *(_line(store, one) for one in lists[Need.CARRIES]),
        "",
        "Least is lost without",
        *(_line(store, one) for one in lists[Need.UNUSED]),
    ]
    return "\n".join(lines)


def _line(store: Store, one: StepFall) -> str:
    trace = get_trace(store, one.trace_id)
    text = " ".join(trace.substeps[one.step].split())
    shown = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    change = round(-one.fall, 2) + 0.0
    return f"  {change:+.2f}  {trace.id}, sub-step {one.step + 1} of {len(trace.substeps)}: {shown}"
