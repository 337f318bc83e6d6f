"""Making label patches from accepted disputes and applying them to the gold labels that a measurement uses.

A patch is applied in memory and never changes stored gold labels. A changed step gets exactly the value in the
patch:

- `neg` makes the step wrong. `neu` and `pos` make it valid with that label, `valid` makes it valid
  without a label, and null removes both.
- The first error may change as a result. If a former first error is no longer an error, the steps after
  it keep their gold labels. If the benchmark does not label these steps (MR-MATH-invalid, ProcessBench),
  the steps up to the former error count, but the solution does not, because it is unknown whether it is
  free of errors. It counts once the patch makes every step valid. If the trace itself ends at the former
  error (PRM800K), it counts as a solution without errors.
- If steps are rated (MR-MATH-redundant), a step labelled neu (rating 0) is redundant. A step labelled
  neg is wrong and not redundant.
"""

from dataclasses import replace

import numpy as np

from stepsight.core.errors import UserError
from stepsight.core.files.label_patch import LabelChange, Patch
from stepsight.core.metrics.table import codes_of_gold, gold_of_codes
from stepsight.storage.database.labelling_schema import Dispute
from stepsight.storage.database.schema import now
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.columns import Gold, read_gold
from stepsight.storage.labelling.disputes import DisputeFilter, DisputeState, list_disputes
from stepsight.storage.traces.queries import Dataset

FILE = "label-patch.json"
"""The name of a patch that is made of accepted disputes, and of its file."""


def make_patch(
    store: Store, dataset: Dataset, state: DisputeState = DisputeState.ACCEPTED, name: str = ""
) -> tuple[Patch, list[Dispute]]:
    """Make a patch from a dataset's disputes in the given state. Return the patch and the disputes that were left
    out.

    Disputes whose trace has changed since are left out. If several disputes propose the same value for a step, only
    the oldest becomes a change. Raises `UserError` if two disputes propose different values for a step, or if there
    are no disputes.
    """
    disputes = list_disputes(store, DisputeFilter(dataset=dataset.name, state=state))
    changed = [dispute for dispute in disputes if dispute.changed]
    chosen: dict[tuple[str, int], Dispute] = {}
    for dispute in sorted((one for one in disputes if not one.changed), key=lambda one: one.id):
        first = chosen.setdefault((dispute.trace, dispute.step), dispute)
        if first.proposed != dispute.proposed:
            raise UserError(
                f"Disputes {first.id} and {dispute.id} of one step are {state}, and say"
                f" {first.proposed or 'nothing'} and {dispute.proposed or 'nothing'}.",
                "Reject one of them first.",
            )
    if not chosen:
        others = f", but for {len(changed)} whose traces have changed" if changed else ""
        raise UserError(f"No dispute of {dataset.name} is {state}{others}.", "See the page Disputes.")
    moment = now().isoformat(timespec="seconds")
    changes = tuple(map(_change, chosen.values()))
    return Patch(dataset.name, dataset.sha256, moment, changes, name), changed


def find_accepted(store: Store, dataset: Dataset) -> tuple[Patch, frozenset[int]] | None:
    """Return the patch of a dataset's accepted disputes and the database ids of the traces that it changes, or None
    if no dispute is accepted whose trace is unchanged."""
    disputes = list_disputes(store, DisputeFilter(dataset=dataset.name, state=DisputeState.ACCEPTED))
    trace_ids = frozenset(dispute.trace_id for dispute in disputes if not dispute.changed)
    return (make_patch(store, dataset, name=FILE)[0], trace_ids) if trace_ids else None


def _change(dispute: Dispute) -> LabelChange:
    return LabelChange(
        trace=dispute.trace,
        digest=dispute.digest,
        step=dispute.step,
        old=dispute.gold,
        new=dispute.proposed,
        reason=dispute.reason,
        dispute=dispute.id,
        by=dispute.user,
        moment=dispute.moment.isoformat(timespec="seconds"),
    )


def check_patch(store: Store, dataset: Dataset, patch: Patch) -> None:
    """Raise `UserError` in the same cases as `apply_patch`, that is, if the patch does not fit the dataset."""
    apply_patch(read_gold(store, dataset), patch)


def apply_patch(gold: Gold, patch: Patch) -> Gold:
    """Return a copy of the gold labels with the patch applied.

    Raises `UserError`, with a message that names the change, if its trace is missing or the digest does not match,
    if the trace has no such step, or if the current gold label is not the one that the patch replaces.
    """
    places = {id: place for place, id in enumerate(gold.ids)}
    starts = np.cumsum(gold.counts) - gold.counts
    label, valid = gold.label.copy(), gold.valid.copy()
    for change in patch.changes:
        where = f"{patch.name or 'the patch'}, {change.place}"
        place = places.get(change.trace)
        if place is None:
            raise UserError(
                f"{where}: {gold.dataset.name} has no such trace.", f"It is a patch of {patch.dataset}."
            )
        digest = gold.digests[place]
        if digest != change.digest:
            raise UserError(
                f"{where}: the trace in {gold.dataset.name} differs ({digest:.12}…) from the one"
                f" that the patch was made for ({change.digest:.12}…).",
                "Import the file that the patch was made for, or export the patch again.",
            )
        if change.step >= gold.counts[place]:
            raise UserError(f"{where}: the trace has {gold.counts[place]} steps.", "Export the patch again.")
        row = int(starts[place]) + change.step
        value = gold_of_codes(label[row], valid[row])
        if value != change.old:
            raise UserError(
                f"{where}: the gold says {value or 'nothing'}, the patch changes {change.old or 'nothing'}.",
                "Export the patch again.",
            )
        label[row], valid[row] = codes_of_gold(change.new)
    return replace(gold, label=label, valid=valid)
