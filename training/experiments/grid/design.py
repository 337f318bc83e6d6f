"""The design of a grid: a YAML file with the settings that all runs share and those for each size and amount of
data.

    name: toy
    base: {truncation: random, epochs: 3, …}            keys of a training configuration
    sizes:
      1B: {backbone: {…}, batch_size: 24}               further keys for this size
    data:
      1k: {data: {sources: [{kind: prm800k, path: …, sample: 1000}]}}
    masks: [bidirectional, causal]
    seeds: [13, 42, 7]
    tests:
      - {name: PRM800K, source: {kind: prm800k, path: …, rho: 0.5}}
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PositiveInt, model_validator
from pydantic.dataclasses import dataclass

from stepsight.core.errors import UserError, located
from stepsight.core.files.yaml_files import validate_yaml
from stepsight.core.judgment import Mode
from stepsight.core.trace import Trace
from stepsight.core.validation import STRICT, ListOf, Record, distinct, invalid, update, validate
from stepsight.training.data.mixture import Mixture
from stepsight.training.data.sources_config import CONTINUED, Data, Source, TraceOrigin
from stepsight.training.data.transforms import NOT_CONTINUED, beginning, continue_trace
from stepsight.training.train.config import Attention, TrainConfig, Truncation

# Keys that each run sets.
_OWN = ("attention", "seed")
_NAME = re.compile(r"[\w.]+")


def _check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise invalid(f"{name!r} found, expected letters, digits, points and underscores.")
    return name


Name = Annotated[str, AfterValidator(_check_name)]
"""A part of the names of folders and tables."""
Parts = Annotated[dict[Name, dict[str, Any]], Field(min_length=1)]
Masks = Annotated[ListOf[Attention], AfterValidator(distinct)]
Seeds = Annotated[ListOf[int], AfterValidator(distinct)]


@dataclass(frozen=True, config=STRICT)
class HeldOutSet(Record):
    """A test set: traces on which every run is measured. `docs/training.md` says what each key means."""

    name: Name
    source: Source
    modes: ListOf[Literal["offline", "online"]] = (Mode.OFFLINE.value, Mode.ONLINE.value)
    note: str = ""
    truncation: Truncation = "as-labelled"

    def traces(self, root: Path, db: str | None = None) -> list[Trace]:
        """Return the traces of the test set, in the order of its source, which may be in the store at `db`. A trace
        that occurs again counts again, and gets an id of its own. Raises `UserError` if the set is empty."""
        seen = Counter[str]()
        traces = list(Mixture(Data((replace(self.source, weight=1.0),)), root, "as-labelled", 0, db))
        for place, trace in enumerate(traces):
            seen[trace.id] += 1
            if seen[trace.id] > 1:
                traces[place] = replace(trace, id=f"{trace.id} ({seen[trace.id]})")
        if self.truncation == "random":
            return [beginning(trace, 0, place) for place, trace in enumerate(traces)]
        if self.truncation == CONTINUED:
            done = [continue_trace(trace) for trace in traces]
            traces = [trace for trace, outcome in done if outcome != NOT_CONTINUED]
            if not traces:
                raise UserError(f"no trace of {self.name} has the rest of its solution.", "Leave truncation out.")
        return traces


@dataclass(frozen=True, config=STRICT)
class RunSettings(Record):
    """The settings that distinguish one run of a grid. `mask` is the attention, such as `causal`."""

    size: str
    data: str
    mask: str
    seed: int

    @property
    def name(self) -> str:
        """The name of the run, such as `1B-1k-causal-13`."""
        return f"{self.size}-{self.data}-{self.mask}-{self.seed}"


@dataclass(frozen=True, config=STRICT)
class Design(Record):
    """The design of a grid, whose keys `docs/training.md` explains. Its sizes and amounts of data keep the order of
    the file. Problems of the data's own `benchmarks` are always left out of training."""

    name: str
    base: dict[str, Any]
    sizes: Parts
    data: Parts
    tests: ListOf[HeldOutSet]
    masks: Masks = ("bidirectional", "causal")
    seeds: Seeds = (13, 42, 7)
    processes: PositiveInt = 1
    threads: PositiveInt = 1
    learn_tokenizer: bool = False
    leave_out_tests: bool = True
    notes: str = field(default="", compare=False)

    @model_validator(mode="after")
    def _check(self) -> "Design":
        distinct(tuple(held.name for held in self.tests))
        parts = {"base": self.base}
        parts |= {f"sizes.{name}": values for name, values in self.sizes.items()}
        parts |= {f"data.{name}": values for name, values in self.data.items()}
        for part, key in ((part, key) for part, values in parts.items() for key in _OWN if key in values):
            raise invalid(f"{part}.{key} is set by the grid itself.", "Remove it.")
        return self

    def runs(self) -> Iterator[RunSettings]:
        """Yield every run. Runs that differ only in the mask are adjacent."""
        for size in self.sizes:
            for data in self.data:
                for seed in self.seeds:
                    yield from (RunSettings(size, data, mask, seed) for mask in self.masks)

    def run_named(self, name: str) -> RunSettings:
        """Return the run called `name`. Raises `UserError` if the design has no such run."""
        for run in self.runs():
            if run.name == name:
                return run
        raise UserError(f"{self.name} has no run {name!r}.", "See the folder's grid.json.")

    def config(self, run: RunSettings, tokenizer: str | None = None) -> TrainConfig:
        """Return the training configuration of a run. `tokenizer` is the folder of a shared tokenizer, if any. With
        `leave_out_tests`, the test sets are added to the benchmarks of the configuration."""
        own = {"attention": run.mask, "seed": run.seed} | ({"tokenizer": tokenizer} if tokenizer else {})
        shared = self.base | self.sizes[run.size] | self.data[run.data]
        if isinstance(shared.get("init"), str):
            shared["init"] = shared["init"].replace("{mask}", run.mask)
        config = validate(TrainConfig, shared | own)
        held_out = self.tests if self.leave_out_tests else ()
        tests = tuple(dict.fromkeys(_origin(held.source) for held in held_out))
        benchmarks = config.data.benchmarks
        added = tuple(origin for origin in tests if origin not in benchmarks)
        return replace(config, data=update(config.data, benchmarks=benchmarks + added))

    def identity(self) -> dict[str, Any]:
        """Return everything in the design that affects the results, as JSON values."""
        values = dataclasses.asdict(self)
        del values["notes"]
        for held in values["tests"]:
            del held["note"]
        return values


def read_design(path: str | Path) -> Design:
    """Read and check the design in a YAML file. Raises `UserError`, naming file and key, if it is invalid."""
    design = validate_yaml(Design, path)
    for run in design.runs():
        with located(f"{path}: {run.name}"):
            design.config(run)
    return design


def _origin(source: Source) -> TraceOrigin:
    return TraceOrigin(**{item.name: getattr(source, item.name) for item in dataclasses.fields(TraceOrigin)})
