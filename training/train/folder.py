"""The folder of a run: whose configuration it holds, and whether it is done."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files import read_json, write_json
from stepsight.core.models.location import CARD
from stepsight.training.runs.checkpoints import Checkpoints
from stepsight.training.train.config import TrainConfig

_RECORD = "config.used.json"
# Keys that may differ when a run goes on, for they change nothing of what is learnt; what the tokenizer in another
# place makes of the traces is told by their hash.
_FREE = ("notes", "accumulation", "activation_checkpointing", "plan", "tokenizer")
# Beside the configuration, a hash of what it gave to learn from.
_EXAMPLES = "examples_sha256"


class RunFolder:
    """`path` with the configuration used, the checkpoints and, in the end, the evaluator."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = Checkpoints(path / "checkpoints")

    def check(self, config: TrainConfig) -> None:
        """Raises `UserError` where the folder holds a run with another configuration, naming what differs."""
        if not (self.path / _RECORD).is_file():
            return
        used, ours = read_json(self.path / _RECORD), settings(config)
        compared = set(used | ours) - {*_FREE, _EXAMPLES}
        keys = sorted(key for key in compared if used.get(key) != ours.get(key))
        if keys:
            raise UserError(
                f"{self.path} holds a run with another configuration ({', '.join(keys)}).",
                "Choose another --output.",
            )

    def is_done(self) -> bool:
        """Whether the evaluator is there."""
        return (self.path / CARD).is_file() and (self.path / _RECORD).is_file()

    def claim(self, config: TrainConfig, examples: str) -> None:
        """Make it this run's, `examples` being a hash of what is learnt from.

        Raises `UserError` where it cannot be written, or the run began on other examples.
        """
        record = self.path / _RECORD
        if record.is_file() and read_json(record).get(_EXAMPLES, examples) != examples:
            raise UserError(
                f"{self.path} holds a run on other traces: a file, or the code that reads them, has changed.",
                "Choose another --output.",
            )
        try:
            self.checkpoints.folder.mkdir(parents=True, exist_ok=True)
            self.checkpoints.clear()
        except OSError as error:
            raise UserError(
                f"{self.path}: cannot be written ({error.strerror}).", "Choose another --output."
            ) from None
        write_json(record, settings(config) | {_EXAMPLES: examples})

    def adopt(self, made: Path) -> None:
        """Move a finished evaluator's files here from the folder `made`; last the card, which says it is whole."""
        for path in sorted(made.iterdir(), key=lambda path: (path.name == CARD, path.name)):
            path.replace(self.path / path.name)
        shutil.rmtree(made)


def settings(config: TrainConfig) -> dict[str, Any]:
    """A configuration as JSON gives it back."""
    values: dict[str, Any] = json.loads(json.dumps(asdict(config)))
    return values
