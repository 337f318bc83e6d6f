"""The design of a grid: a YAML file with what its runs share and what each size and amount of data changes.

name: toy
base: {truncation: random, epochs: 3, …}            keys of a training configuration
sizes:
  1B: {backbone: {…}, batch_size: 24}               the same, for one size
data:
  1k: {data: {sources: [{kind: prm800k, path: …, sample: 1000}]}}
masks: [bidirectional, causal]
seeds: [13, 42, 7]
tests:
  - {name: PRM800K, source: {kind: prm800k, path: …, rho: 0.5}}
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.models.evaluator import ATTENTIONS
from stepsight.core.trace import Trace
from stepsight.core.yaml_config import above_zero, build, one_of, read_yaml
from stepsight.training.data.mixture import Mixture
from stepsight.training.data.sources_config import Data, Origin, Source, check_data
from stepsight.training.train.config import TrainConfig, config_of

# What a cell sets itself.
_OWN = ("attention", "seed")
_NAME = re.compile(r"[\w.]+")


@dataclass(frozen=True)
class Held:
    """Traces that every run is measured on, in each of the `modes`. `note` is what a reader has to know of them.
    Their problems are left out of the training data."""

    name: str
    source: Source
    modes: tuple[str, ...] = (Mode.OFFLINE.value, Mode.ONLINE.value)
    note: str = ""

    def traces(self, root: Path) -> list[Trace]:
        """The traces that pass the source's conditions, in its order."""
        return list(Mixture(Data((replace(self.source, weight=1.0),)), root, "as-labelled", 0))


@dataclass(frozen=True)
class Cell:
    """One run of a grid."""

    size: str
    data: str
    mask: str
    seed: int

    @property
    def name(self) -> str:
        """The name of its files, such as `1B-1k-causal-13`."""
        return f"{self.size}-{self.data}-{self.mask}-{self.seed}"


@dataclass(frozen=True)
class Design:
    """A whole grid, in the order in which it is read.

    A run takes `processes` processes, each with `threads` threads; one process where it is not given as several
    devices. `learn_tokenizer` learns one for all runs from the last entry of `data`; without it, every run has the
    one that its configuration names, or learns its own.
    """

    name: str
    base: dict[str, Any]
    sizes: dict[str, dict[str, Any]]
    data: dict[str, dict[str, Any]]
    tests: tuple[Held, ...]
    masks: tuple[str, ...] = ATTENTIONS
    seeds: tuple[int, ...] = (13, 42, 7)
    processes: int = 1
    threads: int = 1
    learn_tokenizer: bool = False
    notes: str = field(default="", compare=False)

    def cells(self) -> Iterator[Cell]:
        """Every run; those that differ in the mask alone come together."""
        for size in self.sizes:
            for data in self.data:
                for seed in self.seeds:
                    yield from (Cell(size, data, mask, seed) for mask in self.masks)

    def cell(self, name: str) -> Cell:
        """The run of that name. Raises `UserError` where there is none."""
        for cell in self.cells():
            if cell.name == name:
                return cell
        raise UserError(f"{self.name} has no run {name!r}.", "See the folder's grid.json.")

    def config(self, cell: Cell, tokenizer: str | None = None) -> TrainConfig:
        """The configuration of a run; `tokenizer` is the folder of the one that all share. The problems of the
        tests are among its benchmarks."""
        own = {"attention": cell.mask, "seed": cell.seed} | ({"tokenizer": tokenizer} if tokenizer else {})
        config = config_of(self.base | self.sizes[cell.size] | self.data[cell.data] | own)
        tests = dict.fromkeys(_origin(held.source) for held in self.tests)
        known = config.data.benchmarks
        data = replace(config.data, benchmarks=known + tuple(one for one in tests if one not in known))
        check_data(data, config.truncation)
        return replace(config, data=data)

    @property
    def sha256(self) -> str:
        """A hash of all that its results depend on."""
        values = dataclasses.asdict(self) | {"notes": None}
        for held in values["tests"]:
            del held["note"]
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def read_design(path: str | Path) -> Design:
    """Read and check a YAML file; raises `UserError` naming the file and key."""
    values = read_yaml(path)
    try:
        design: Design = build(Design, values)
        _check(design)
    except UserError as error:
        raise error.at(str(path)) from None
    return design


def _check(design: Design) -> None:
    above_zero(design, ("processes", "threads"))
    for key in ("sizes", "data", "masks", "seeds", "tests"):
        _check_names(key, list(getattr(design, key)))
    for mask in design.masks:
        one_of("masks", mask, ATTENTIONS)
    for number, held in enumerate(design.tests):
        for mode in held.modes:
            one_of(f"tests[{number}].modes", mode, (Mode.OFFLINE.value, Mode.ONLINE.value))
    taken = [f"{part}.{key}" for part, values in _parts(design) for key in _OWN if key in values]
    if taken:
        raise UserError(f"{taken[0]} is what the grid itself sets.", "Remove it.")
    for cell in design.cells():
        try:
            design.config(cell)
        except UserError as error:
            raise error.at(cell.name) from None


def _check_names(key: str, values: Sequence[Any]) -> None:
    if not values:
        raise UserError(f"{key} is empty.", "Give at least one.")
    names = [value.name if isinstance(value, Held) else str(value) for value in values]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{key} has {name!r} twice.")
        # They make the names of folders, and of tables.
        if not _NAME.fullmatch(name):
            raise UserError(f"{key}: {name!r} found, expected letters, digits, points and underscores.")


def _parts(design: Design) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "base", design.base
    for key in ("sizes", "data"):
        for name, values in getattr(design, key).items():
            yield f"{key}.{name}", values


def _origin(source: Source) -> Origin:
    return Origin(**{item.name: getattr(source, item.name) for item in dataclasses.fields(Origin)})
