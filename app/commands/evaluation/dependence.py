"""What the steps of a dataset's solutions rest on: every trace scored without each of its steps.

stepsight dependence --dataset gallery --evaluator mini-causal
stepsight dependence --dataset gallery --evaluator mini-bidir --gap placeholder --output left-out.jsonl
stepsight dependence --dataset strict-prmbench --against-gold
"""

import argparse
import json
from itertools import chain

from stepsight.app.commands.evaluation.critic_options import add_critic, as_asked
from stepsight.app.commands.evaluation.critics import confirm_calls, report
from stepsight.app.commands.options import add_db, add_evaluator, open_output, positive, print_left_out, progress
from stepsight.app.scoring.placement_options import add_placement, read_placement
from stepsight.core.critics.critic_prompts import CallEstimate
from stepsight.core.critics.evaluator import Critic
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.left_out import NOTABLE, Gap, check_outputs, shortened
from stepsight.core.metrics.needed_steps import NeededSteps, measure_falls
from stepsight.core.models.location import can_load
from stepsight.core.scoring.scorer import Scorer
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.judgments.evaluators import StoredEvaluator, list_evaluators, register_loaded
from stepsight.storage.judgments.left_outs import (
    count_missing_left_out,
    iterate_left_out,
    labelled_falls,
    left_out_rows,
    missing_left_out,
    score_left_out,
)
from stepsight.storage.judgments.step_falls import (
    MOST_COUNTED,
    Need,
    StepFall,
    count_falls,
    left_out_evaluators,
    list_falls,
)
from stepsight.storage.traces.queries import Dataset, find_dataset, get_trace
from stepsight.training.runs.ray_scoring import open_scorer

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
    add_critic(parser)
    add_placement(parser)
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Score what is missing, then print both lists; or compare existing scores with the gold."""
    gap = Gap(args.gap)
    with open_store(args.db) as store:
        dataset = find_dataset(store, args.dataset)
        if args.against_gold:
            print(_against_gold(store, dataset, gap))
            return
        (spec,) = as_asked(args, [args.evaluator])
        evaluator = _complete(store, dataset, args, spec, gap) if can_load(spec) else _find(store, args.evaluator)
        lists = {need: list_falls(store, dataset.id, evaluator.id, gap, need, args.list) for need in Need}
        if not any(lists.values()):
            raise UserError(
                f"{evaluator.name} has no scores of {dataset.name} with a step left out ({gap}).",
                "Import them, or name an evaluator that can run here.",
            )
        if args.output is not None:
            found = iterate_left_out(store, dataset.id, evaluator.id, gap)
            with open_output(args.output) as out:
                out.writelines(json.dumps(row) + "\n" for row in left_out_rows(found, evaluator.outputs))
        if args.output != "-":
            counts = {need: count_falls(store, dataset.id, evaluator.id, gap, need) for need in Need}
            print(_lists(store, gap, lists, counts))


def _complete(store: Store, dataset: Dataset, args: argparse.Namespace, spec: str, gap: Gap) -> StoredEvaluator:
    """Score the missing traces, and name those that the evaluator cannot take."""
    scorer = open_scorer(spec, read_placement(args), None)
    assert isinstance(scorer, Scorer)
    check_outputs(scorer.evaluator.name, scorer.evaluator.outputs)
    evaluator = register_loaded(store, scorer.evaluator)
    _confirm(scorer, store, dataset, evaluator.id, gap, yes=args.yes)
    missing = count_missing_left_out(store, dataset.id, evaluator.id, gap)
    done = score_left_out(store, scorer, dataset.id, evaluator.id, gap, print_left_out)
    try:
        for _ in progress(done, missing, "traces"):
            pass
    finally:
        report(scorer.evaluator)
    return evaluator


def _confirm(scorer: Scorer, store: Store, dataset: Dataset, evaluator_id: int, gap: Gap, *, yes: bool) -> None:
    """Ask before a critic is called: every trace takes the calls of each of its shortened forms."""
    if not isinstance(scorer.evaluator, Critic):
        return
    takes = CallEstimate()
    for trace in missing_left_out(store, dataset.id, evaluator_id, gap):
        passes = chain([trace], shortened(trace, gap))
        whole = sum((scorer.evaluator.estimate(one, Mode.OFFLINE) for one in passes), CallEstimate())
        takes += CallEstimate(1, whole.calls, whole.tokens)
    confirm_calls(scorer.evaluator.name, "leaving out each step", takes, "score fewer traces", yes=yes)


def _find(store: Store, name: str) -> StoredEvaluator:
    stored = {one.name: one for one in list_evaluators(store)}
    if name not in stored:
        raise UserError(
            f"There is no evaluator {name!r}.", f"The stored ones are: {', '.join(sorted(stored)) or 'none'}."
        )
    return stored[name]


def _against_gold(store: Store, dataset: Dataset, gap: Gap) -> str:
    ids = left_out_evaluators(store, gap).get(dataset.id, ())
    chosen = [one for one in list_evaluators(store) if one.id in ids]
    measured = {
        one.name: measure_falls(labelled_falls(iterate_left_out(store, dataset.id, one.id, gap))) for one in chosen
    }
    known = {name: found for name, found in measured.items() if found.auc.exists}
    if not known:
        raise UserError(
            f"{dataset.name} has no scores with a step left out ({gap}) of needed steps and of others.",
            "A step is needed if its gold is pos, and not if it is neu; StrictPRMBench names them.",
        )
    width = max(map(len, known))
    head = (
        "AUC of the largest fall of a later step, needed against other steps, with its 95 % interval over problems"
    )
    return "\n".join([f"{head} ({gap}):", *(f"  {name:{width}}  {_figure(one)}" for name, one in known.items())])


def _figure(found: NeededSteps) -> str:
    value = found.auc
    counts = f"{found.needed:,} needed, {found.others:,} others, {found.problems:,} problems"
    return f"{value.number:.3f} [{value.low:.3f}, {value.high:.3f}]  {counts}"


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
