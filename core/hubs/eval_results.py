"""A result in the hub's format for `.eval_results/*.yaml`, as a model repository holds it.

    - dataset: {id: Qwen/ProcessBench, task_id: gsm8k}
      value: 61.2
      notes: offline

The schema is that of the hub's client, `EvalResultEntry`, and of the hub's documentation (eval_results.yaml in
huggingface/hub-docs). The hub lists the result on the model's page and on the leaderboard of the dataset, if the
dataset is registered there as a benchmark with such a task, which cannot be checked here.
"""

import math
import re
from datetime import datetime

import yaml
from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml, parse_eval_result_entries

from stepsight.core.errors import UserError
from stepsight.core.hubs.checkpoint_files import is_hub_id

_COMMIT = re.compile(r"[0-9a-f]{40}")


def eval_results_yaml(entry: EvalResultEntry) -> str:
    """Return the content of a file with one result. Raises `UserError` if the schema refuses a value."""
    for problem, hint in _problems(entry):
        raise UserError(f"the hub refuses this result: {problem}.", hint)
    rows = eval_result_entries_to_yaml([entry])
    text: str = yaml.safe_dump(rows, sort_keys=False, allow_unicode=True, width=10_000)
    if parse_eval_result_entries(yaml.safe_load(text)) != [entry]:
        raise UserError("the result reads differently once it is written.", "Leave out unusual characters.")
    return text


def make_entry(dataset: str, task: str, value: float, **more: str | None) -> EvalResultEntry:
    """Return an entry. `more` holds other fields of `EvalResultEntry`. Raises `UserError` if the client refuses
    them."""
    try:
        return EvalResultEntry(dataset_id=dataset, task_id=task, value=value, **more)
    except ValueError as error:
        message = " ".join(str(error).split()).rstrip(".")
        raise UserError(f"the hub refuses this result: {message}.", "Name the address of the source too.") from None


def _problems(entry: EvalResultEntry) -> list[tuple[str, str]]:
    """Return (problem, hint) for everything in an entry that the schema refuses."""
    checks = [
        (
            is_hub_id(entry.dataset_id),
            f"the dataset is {entry.dataset_id!r:.60}, expected OWNER/NAME",
            "Name the benchmark's dataset on the hub, such as Qwen/ProcessBench.",
        ),
        (
            bool(entry.task_id) and entry.task_id == entry.task_id.strip(),
            f"the task is {entry.task_id!r:.60}, expected a name",
            "The eval.yaml of the benchmark's dataset lists its tasks.",
        ),
        (
            isinstance(entry.value, float) and math.isfinite(entry.value),
            f"the value is {entry.value!r:.30}, expected a number",
            "Choose a figure that the evaluator has on this dataset.",
        ),
        (
            entry.dataset_revision is None or bool(_COMMIT.fullmatch(entry.dataset_revision)),
            f"the revision is {entry.dataset_revision!r:.60}, expected a commit of 40 hexadecimal digits",
            "Copy it from the dataset's history on the hub.",
        ),
        (
            entry.date is None or _is_date(entry.date),
            f"the date is {entry.date!r:.40}, expected one as in 2026-11-26",
            "Write it as YEAR-MONTH-DAY.",
        ),
        (
            entry.source_url is None or entry.source_url.startswith(("https://", "http://")),
            f"the address of the source is {entry.source_url!r:.60}, expected a web address",
            "Begin it with https://.",
        ),
    ]
    return [(problem, hint) for is_right, problem, hint in checks if not is_right]


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
