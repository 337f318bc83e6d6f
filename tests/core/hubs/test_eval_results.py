"""Files for `.eval_results` on the hub, read by the hub's own client, and what its schema refuses."""

import pytest
import yaml
from huggingface_hub import parse_eval_result_entries

from stepsight.core.hubs.eval_results import eval_results_yaml, make_entry
from tests.messages import refused


def test_a_result_is_read_by_the_hubs_client_as_it_was_made():
    more = {"dataset_revision": "a" * 40, "source_url": "https://example.org", "notes": "offline: ü"}
    entry = make_entry("Qwen/ProcessBench", "gsm8k", 61.25, date="2026-11-26", **more)
    text = eval_results_yaml(entry)
    assert parse_eval_result_entries(yaml.safe_load(text)) == [entry]
    assert text.startswith("- dataset:\n    id: Qwen/ProcessBench\n    task_id: gsm8k\n")


@pytest.mark.parametrize(
    ("changed"),
    [
        {"dataset": "processbench"},
        {"task": ""},
        {"value": float("nan")},
        {"dataset_revision": "main"},
        {"date": "yesterday"},
        {"source_url": "example.org"},
        {"source_name": "Somebody"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_what_the_schema_refuses_is_named(changed):
    with refused():
        eval_results_yaml(make_entry(**{"dataset": "Qwen/ProcessBench", "task": "gsm8k", "value": 1.0} | changed))
