"""The `data` section of a configuration: the sources of training traces, and the benchmarks that they must not
overlap.

data:
  sources:
    - {kind: synthetic, size: 76000, seed: 1}
    - {kind: prm800k, path: prm800k/train.jsonl, weight: 2.5, rho: 0.5, every_label: true}
    - {kind: prmbench, path: prmbench/prm800k_train_*.jsonl, skip_bad: true, valid: pos}
    - {kind: store, dataset: my-labels}
    - {kind: store, dataset: mr-math-invalid, labels: relabel, campaign: second-look}
  benchmarks:
    - {kind: prm800k, path: prm800k/test.jsonl}
    - {kind: problems, path: math500/test.jsonl}
"""

from dataclasses import KW_ONLY, field, fields
from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator
from pydantic.dataclasses import dataclass

from stepsight.core.errors import UserError
from stepsight.core.files.row_conditions import Scalar
from stepsight.core.validation import STRICT, ListOf, Record, choice, invalid
from stepsight.storage.importers import ALIASES, KINDS
from stepsight.storage.importers.column_mapping import NAME as COLUMNS
from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.training.synth.corpus import generate

SYNTHETIC, DRILLS, STORE, PROBLEMS = "synthetic", "drills", "store", "problems"
GENERATED = (SYNTHETIC, DRILLS)
CONTINUED, RELABEL = "continued", "relabel"
Share = Annotated[float, Field(ge=0, le=1)]

_SOURCES = (*GENERATED, STORE, *KINDS, *ALIASES, COLUMNS)
# The keys for the origin of each kind of traces, the required one first; files have the last entry.
_PLACES = {
    SYNTHETIC: ("size", "seed", "families", "consequences"),
    DRILLS: ("size", "seed", "wrong"),
    STORE: ("dataset", "labels", "campaign"),
    COLUMNS: ("path", "skip_bad", "columns"),
    "": ("path", "skip_bad"),
}
# The kinds whose traces may include the rest of the solution, beyond the labelled steps.
_CONTINUABLE = ("prm800k", "plain", STORE)


@dataclass(frozen=True, config=STRICT)
class TraceOrigin(Record):
    """The origin of traces. `kind` decides which of the other keys apply.

    - `kind: synthetic` generates `size` traces from `seed` (default 0) and `families` (default all). `consequences`
      also labels the steps after the first error.
    - `kind: drills` generates `size` short traces with a single equation (`training.synth.drills`). `wrong` is the
      share of wrong ones (default one half).
    - `kind: store` reads `dataset` from the store with its gold labels. With `labels: relabel` it reads only the
      traces labelled in `campaign` (default: the only campaign over the dataset), with the annotators' consensus.
    - `kind: columns` reads a table file, and `columns` names its columns for problem, steps and optionally labels.
    - `kind: problems`, for benchmarks only, reads `problem` or `question` from JSON Lines and ignores the rest.
    - Every other kind is the name of a benchmark format.

    Kinds that read files take them from `path`, a glob that is resolved in the folder of the configuration, then in
    `STEPSIGHT_DATA`. `skip_bad` skips rows that are not valid traces of their kind.
    """

    kind: Annotated[str, choice((*_SOURCES, PROBLEMS))]
    _: KW_ONLY
    path: str | None = None
    skip_bad: bool = False
    dataset: str | None = None
    labels: Literal["gold", "relabel"] | None = None
    campaign: str | None = None
    size: PositiveInt | None = None
    seed: int | None = None
    families: ListOf[str] | None = None
    consequences: bool = False
    wrong: Share | None = None
    columns: ColumnMap | None = None

    @model_validator(mode="after")
    def _check_keys(self) -> "TraceOrigin":
        allowed = _PLACES.get(self.kind, _PLACES[""])
        if getattr(self, allowed[0]) in (None, ""):
            raise invalid(f"{allowed[0]} is missing; a source of kind {self.kind} needs it.")
        for name in (name for names in _PLACES.values() for name in names):
            value = getattr(self, name)
            # 0 is a valid seed, though it equals False.
            if name not in allowed and value is not None and value is not False:
                raise invalid(f"{name} cannot be used with kind {self.kind}.", f"It takes {', '.join(allowed)}.")
        if self.kind == COLUMNS and self.columns is None:
            raise invalid(
                "columns is missing; a source of kind columns needs it.", "Name those of problem and steps."
            )
        if self.campaign is not None and self.labels != RELABEL:
            raise invalid(f"campaign requires labels: {RELABEL}.", "Give labels too.")
        if self.families is not None:
            try:
                # This generates no trace, but checks the names.
                list(generate(0, 0, self.families))
            except UserError as error:
                raise invalid(error.message, error.hint) from None
        return self


@dataclass(frozen=True, config=STRICT)
class Source(TraceOrigin):
    """A source of traces to train on. `training.data.transforms` has what `rho`, `every_label`, `corrupt` and
    `online` do, and `core.files.row_conditions` the syntax of `where`."""

    kind: Annotated[str, choice(_SOURCES)]
    weight: Annotated[PositiveFloat, Field(allow_inf_nan=False)] = 1.0
    rho: Share = 0.0
    every_label: bool = False
    valid: Literal["pos", "unlabelled"] | None = None
    where: dict[str, Scalar | tuple[Scalar, ...]] = field(default_factory=dict)
    corrupt: Share = 0.0
    online: bool = False
    sample: PositiveInt | None = None

    @model_validator(mode="after")
    def _check_corrupt(self) -> "Source":
        if self.corrupt and self.online:
            raise invalid("corrupt and online cannot be used together.", "Split it into two sources.")
        return self


@dataclass(frozen=True, config=STRICT)
class Data(Record):
    """The sources of training traces, and the benchmarks whose problems must not occur in these traces."""

    sources: Annotated[ListOf[Source], Field(min_length=1)]
    benchmarks: ListOf[TraceOrigin] = ()

    @model_validator(mode="after")
    def _check_benchmarks(self) -> "Data":
        places = [_place(source) for source in self.sources]
        for number, benchmark in enumerate(self.benchmarks):
            if _place(benchmark) in places:
                source = places.index(_place(benchmark))
                raise invalid(
                    f"benchmarks[{number}] is sources[{source}], and nothing of it would be left.", "Remove one."
                )
        return self


def check_continued(data: Data) -> None:
    """Raise an error for pydantic validators unless at least one source can supply the rest of a solution."""
    if not any(file_kind(source) in _CONTINUABLE for source in data.sources):
        raise invalid(
            "truncation is 'continued', but no source can hold the rest of a solution.",
            f"Expected a source of kind {', '.join(_CONTINUABLE)}, or truncation random.",
        )


def file_kind(origin: TraceOrigin) -> str:
    """Return the kind of an origin, with aliases resolved."""
    return ALIASES.get(origin.kind, origin.kind)


def _place(origin: TraceOrigin) -> tuple[object, ...]:
    """Return a key that is equal for origins that draw on the same traces."""
    own = {key.name: getattr(origin, key.name) for key in fields(TraceOrigin)}
    if origin.kind in GENERATED:
        # The generator's first traces are the same whatever the size.
        return origin.kind, own["seed"] or 0, own["families"]
    return (STORE, own["dataset"]) if origin.kind == STORE else ("", own["path"])


def describe(origin: TraceOrigin) -> str:
    """Describe an origin in a few words, such as `prm800k prm800k/train.jsonl`."""
    if origin.kind in GENERATED:
        return f"{origin.kind} seed {origin.seed or 0}"
    if origin.kind != STORE:
        return f"{origin.kind} {origin.path}"
    return f"{origin.kind} {origin.dataset}" + (" relabelled" if origin.labels == RELABEL else "")
