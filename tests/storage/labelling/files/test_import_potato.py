"""Process rewards of Potato: written, read back, and what its exporter may have put into them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepsight.storage.database.store import Store
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.people.users import local_user
from tests.messages import refused
from tests.storage.labelling.files.test_import_tools import other, read, written  # noqa: F401
from tests.storage.labelling.samples import DATASET


def rewards(*values: Any, **more: Any) -> dict[str, Any]:
    """A row as Potato's exporter writes it, of the trace `two`."""
    steps = [value if isinstance(value, dict) else {"index": i, "reward": value} for i, value in enumerate(values)]
    return {"instance_id": "two", "annotator": "ada", "steps": steps, "mode": "per_step"} | more


def save(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "prm_training_data.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_labels_are_written_as_rewards_and_read_back(other: Store, written: Callable[..., Path]) -> None:  # noqa: F811
    path = written("potato", per_annotator=True)
    first, second = map(json.loads, path.read_text().splitlines())
    assert [step["reward"] for step in first["steps"]] == [1, -1]
    assert [step["reward"] for step in second["steps"]] == [None, -1]
    assert (first["instance_id"], first["annotator"], first["mode"]) == ("two", "annotator 1", "per_step")
    assert read(other, path) == {"annotator 1": ["pos", "neg"], "annotator 2": [None, "neg"]}
    again = import_labels(other, path, local_user(other), campaign="again", dataset=DATASET)
    assert (again.added, again.repeated) == (0, 2)


@pytest.mark.parametrize(
    ("row", "labels"),
    [
        (rewards(1, -1), ["pos", "neg"]),
        (rewards(None, 0), [None, "neu"]),
        (rewards(-1, -1, mode="first_error"), ["neg", None]),
        (rewards(0, -1, mode="first_error"), [None, "neg"]),
        (rewards({"index": 1, "reward": -1}), [None, "neg"]),
        (rewards(1, {"index": 1, "reward": -1, "source": "ai", "verified": False}), ["pos", None]),
        (rewards(1, {"index": 1, "reward": -1, "source": "ai", "verified": True}), ["pos", "neg"]),
    ],
)
def test_rewards_are_labels(
    other: Store,  # noqa: F811
    tmp_path: Path,
    row: dict[str, Any],
    labels: list[str | None],
) -> None:
    assert read(other, save(tmp_path, row)) == {"ada": labels}
    assert read(other, save(tmp_path, row), annotator="eve")["eve"] == labels


@pytest.mark.parametrize(
    "row",
    [
        rewards(1, 0),
        rewards(1, 2),
        rewards(1, True),
        rewards(1, -1, 1),
        rewards(1, -1, instance_id="none"),
        rewards(1, -1, annotator=""),
        rewards({"index": -1, "reward": 1}),
    ],
)
def test_rewards_that_cannot_be_read_are_told_and_nothing_is_stored(
    other: Store,  # noqa: F811
    tmp_path: Path,
    row: dict[str, Any],
) -> None:
    with refused():
        read(other, save(tmp_path, rewards(1, -1), row))
