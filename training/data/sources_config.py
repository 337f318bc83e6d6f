"""The `data` of a configuration: where training traces come from and what they must not overlap, checked.

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

import dataclasses
import difflib
import math
from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass

from stepsight.core.errors import UserError
from stepsight.storage.importers import ALIASES, KINDS
from stepsight.training.synth.corpus import generate

SYNTHETIC, DRILLS, STORE, PROBLEMS = "synthetic", "drills", "store", "problems"
GENERATED = (SYNTHETIC, DRILLS)
CONTINUED = "continued"
TRUNCATIONS = ("random", "as-labelled", CONTINUED)
VALID_AS = ("pos", "unlabelled")
RELABEL = "relabel"
LABELS = ("gold", RELABEL)

# The keys that say where traces of a kind come from, that which must be there first; files have the last.
_PLACES = {
    SYNTHETIC: ("size", "seed", "families"),
    DRILLS: ("size", "seed"),
    STORE: ("dataset", "labels", "campaign"),
    "": ("path", "skip_bad"),
}
# Those whose traces may keep the rest of the solution beyond their labels.
_CONTINUABLE = ("prm800k", "plain", STORE)


@dataclass(frozen=True)
class Origin:
    """Where traces come from.

    `kind` synthetic: `size` traces of the generator with `seed` (0 where not given) and `families` (all). drills:
    `size` short traces of single equations (`training.synth.drills`). store: `dataset` of the store, with its gold;
    with `labels` relabel, those of its traces that people labelled in `campaign`, or in the only one over it, with
    what they agree on. Otherwise a kind of benchmark file, at `path`: a glob, looked up in the folder of the
    configuration, then in `STEPSIGHT_DATA`; `skip_bad` leaves out rows that are no trace of that kind. problems,
    for a benchmark alone: JSON Lines of which only `problem` or `question` is read.
    """

    kind: str
    _: KW_ONLY
    path: str | None = None
    skip_bad: bool = False
    dataset: str | None = None
    labels: str | None = None
    campaign: str | None = None
    size: int | None = None
    seed: int | None = None
    families: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Source(Origin):
    """Traces to train on.

    `weight`: how often each is met in an epoch, on average. `rho`: the least balance ratio, and `every_label`
    whether neg, neu and pos must all occur (`training.data.transforms`). `valid`: what a step counts as which the
    gold calls valid without saying whether it is redundant, pos or unlabelled; needed where there are such steps.
    `corrupt`: in which share of its traces an error is planted, in the part before their own
    (`training.data.corruption`). `online`: each trace stops at one labelled step, the only one it supervises
    (`training.data.transforms`). `sample`: how many of the traces that are left are learnt from, drawn at random,
    whatever the seed of the run; a smaller sample is a part of a larger one.
    """

    weight: float = 1.0
    rho: float = 0.0
    every_label: bool = False
    valid: str | None = None
    corrupt: float = 0.0
    online: bool = False
    sample: int | None = None


@dataclass(frozen=True)
class Data:
    """Training traces, and the benchmarks of whose problems none may be among theirs."""

    sources: tuple[Source, ...]
    benchmarks: tuple[Origin, ...] = ()


def check_data(data: Data, truncation: str) -> None:
    """Raises `UserError` naming the key on what cannot be; no file is looked at."""
    if not data.sources:
        raise UserError("data.sources is empty.", "Give it a source, such as {kind: synthetic, size: 1000}.")
    for number, source in enumerate(data.sources):
        _check_origin(source, f"data.sources[{number}]", [*GENERATED, STORE, *KINDS, *ALIASES])
        _check_source(source, f"data.sources[{number}]")
    for number, benchmark in enumerate(data.benchmarks):
        key = f"data.benchmarks[{number}]"
        _check_origin(benchmark, key, [*GENERATED, STORE, PROBLEMS, *KINDS, *ALIASES])
        same = [i for i, source in enumerate(data.sources) if _place(source) == _place(benchmark)]
        if same:
            raise UserError(f"{key} is data.sources[{same[0]}], of which nothing would be left.", "Remove one.")
    if truncation == CONTINUED and not any(file_kind(s) in _CONTINUABLE for s in data.sources):
        raise UserError(
            "truncation is 'continued', but no source can hold the rest of a solution.",
            f"Expected a source of kind {', '.join(_CONTINUABLE)}, or truncation random.",
        )


def file_kind(origin: Origin) -> str:
    """The kind by its own name, not by an alias."""
    return ALIASES.get(origin.kind, origin.kind)


def _check_origin(origin: Origin, key: str, kinds: Collection[str]) -> None:
    if origin.kind not in kinds:
        near = difflib.get_close_matches(origin.kind, kinds, 1, 0.5)
        hint = f"Did you mean {near[0]}?" if near else ""
        raise UserError(f"{key}.kind is {origin.kind!r}, expected one of {', '.join(kinds)}.", hint)
    allowed = _PLACES.get(origin.kind, _PLACES[""])
    if getattr(origin, allowed[0]) in (None, ""):
        raise UserError(f"{key}.{allowed[0]} is missing; a source of kind {origin.kind} needs it.")
    for name in (name for names in _PLACES.values() for name in names):
        value = getattr(origin, name)
        # 0 was given, though it equals False.
        if name not in allowed and value is not None and value is not False:
            raise UserError(
                f"{key}.{name} means nothing for kind {origin.kind}.", f"It takes {', '.join(allowed)}."
            )
    if origin.kind in GENERATED:
        _check_generated(origin, key)
    if origin.labels is not None and origin.labels not in LABELS:
        raise UserError(f"{key}.labels is {origin.labels!r}, expected one of {', '.join(LABELS)}.")
    if origin.campaign is not None and origin.labels != RELABEL:
        raise UserError(f"{key}.campaign goes with labels: {RELABEL}.", f"Give {key}.labels too.")


def _check_generated(origin: Origin, key: str) -> None:
    if origin.size is None or origin.size <= 0:
        raise UserError(f"{key}.size is {origin.size}, expected more than 0.")
    try:
        # No trace is made, but the names of the families are looked up.
        list(generate(0, 0, origin.families))
    except UserError as error:
        raise error.at(key) from None


def _check_source(source: Source, key: str) -> None:
    if not (source.weight > 0 and math.isfinite(source.weight)):
        raise UserError(f"{key}.weight is {source.weight}, expected more than 0.")
    if not 0 <= source.corrupt <= 1:
        raise UserError(f"{key}.corrupt is {source.corrupt}, expected 0 to 1.")
    if source.corrupt and source.online:
        raise UserError(f"{key}.corrupt and {key}.online do not go together.", "Make two sources of it.")
    if not 0 <= source.rho <= 1:
        raise UserError(f"{key}.rho is {source.rho}, expected 0 to 1.")
    if source.sample is not None and source.sample < 1:
        raise UserError(f"{key}.sample is {source.sample}, expected 1 or more.")
    if source.valid is not None and source.valid not in VALID_AS:
        raise UserError(f"{key}.valid is {source.valid!r}, expected one of {', '.join(VALID_AS)}.")


def _place(origin: Origin) -> tuple[object, ...]:
    """What two origins of the same traces agree in."""
    own = {field.name: getattr(origin, field.name) for field in dataclasses.fields(Origin)}
    if origin.kind in GENERATED:
        # The generator's first traces are the same whatever the size.
        return origin.kind, own["seed"] or 0, own["families"]
    return (STORE, own["dataset"]) if origin.kind == STORE else ("", own["path"])


def describe(origin: Origin) -> str:
    """An origin in a few words, such as `prm800k prm800k/train.jsonl`."""
    if origin.kind in GENERATED:
        return f"{origin.kind} seed {origin.seed or 0}"
    if origin.kind != STORE:
        return f"{origin.kind} {origin.path}"
    return f"{origin.kind} {origin.dataset}" + (" relabelled" if origin.labels == RELABEL else "")
