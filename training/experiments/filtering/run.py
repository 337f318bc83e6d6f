"""Filtering runs, which score a pool and choose subsets by the scores. An interrupted run can be resumed.

FOLDER/run.json        the record that identifies the run
FOLDER/scores.jsonl    a line for each row of the pool
FOLDER/NAME.jsonl      the subsets
FOLDER/manifest.json   counts, thresholds and fingerprints; written last
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.files.json_values import read_json, write_json
from stepsight.core.judgment import Mode
from stepsight.core.models.evaluator_base import Evaluator
from stepsight.core.models.placement import Placement
from stepsight.core.scores import Outputs, Thresholds
from stepsight.core.scoring.scorer import Scorer
from stepsight.training.experiments.filtering.drawing import Draw
from stepsight.training.experiments.filtering.output import MANIFEST, make_manifest, subset_path, write_subsets
from stepsight.training.experiments.filtering.pool import Fields, Pool
from stepsight.training.experiments.filtering.scores import ChunkedScores, UnscoredRow, copy_scores
from stepsight.training.experiments.filtering.scoring import CHUNK, SHOWN, ChunkScorer, check_pool, refusal
from stepsight.training.experiments.filtering.subsets import (
    BOTH,
    RANDOM,
    SUBSETS,
    VALIDITY,
    PoolScores,
    SubsetRule,
    choose,
)
from stepsight.training.runs.folder import RECORD, RunFolder
from stepsight.training.runs.progress import Watch, unwatched

_ROWS = "rows"
# The keys of a run's record on which its scores depend; the others concern the choice of subsets.
_SCORING = ("pool", "draw", "fields", "benchmarks", "evaluator", "mode", "chunk")


@dataclass(frozen=True)
class Filtering:
    """The options of a filtering run: the pool, the evaluator that scores it, and how subsets are chosen.

    `output` is the folder to write to. `by`, `match` and `seed` are explained in `SubsetRule`. `validity` and
    `redundancy` are thresholds, which default to the evaluator's own. `fields` gives the names of the query and
    response fields; if it is None, they are recognised. `chunk` is the number of rows scored together. `where`
    holds conditions in the syntax of `core.files.row_conditions`. The remaining options are described by their
    annotations, which also serve as help texts of the command.
    """

    pool: tuple[Path, ...]
    output: Path
    evaluator: str = "mini-bidir"
    by: tuple[str, ...] = SUBSETS
    match: int | None = None
    seed: Annotated[int, "seed of the random choices"] = 0
    validity: float | None = None
    redundancy: float | None = None
    fields: Fields | None = None
    skip_bad: Annotated[bool, "leave out, and count, rows that cannot be scored"] = False
    benchmarks: Annotated[
        tuple[Path, ...],
        "leave out rows whose query is a problem of this file, such as MATH-500's; may be repeated",
    ] = ()
    scores: Annotated[Path | None, "take the scores of another run on the same pool, from its folder"] = None
    place: Placement = Placement()  # noqa: RUF009 (it is frozen)
    chunk: int = CHUNK
    where: Annotated[
        tuple[str, ...], "only rows with FIELD=VALUE, FIELD=VALUE,VALUE or FIELD!=VALUE; may be repeated"
    ] = ()
    sample: Annotated[int | None, "only so many of those rows, drawn by --seed before any is scored"] = None

    @property
    def draw(self) -> Draw:
        """The rule that says which rows of the files belong to the pool."""
        # Without a sample the seed does not affect the rows, so scores are valid for every seed.
        return Draw(self.where, self.sample, 0 if self.sample is None else self.seed)

    def rule(self, own: Thresholds) -> SubsetRule:
        """Return the rule for choosing subsets. It has the evaluator's thresholds `own` unless the options override
        them."""
        validity = own.validity if self.validity is None else self.validity
        redundancy = own.redundancy if self.redundancy is None else self.redundancy
        by = tuple(name for name in SUBSETS if name in self.by)
        return SubsetRule(by, self.match, self.seed, Thresholds(validity, redundancy))


def filter_pool(wanted: Filtering, watch: Watch = unwatched) -> dict[str, Any]:
    """Score the pool, write the subsets and return the manifest. If called again, resume the run.

    Raises `UserError` if an option, the pool or one of its rows is invalid, if the rule needs redundancy but the
    evaluator gives none, or if the folder belongs to a different run.
    """
    _check(wanted)
    pool = Pool.open(wanted.pool, wanted.fields, wanted.benchmarks, wanted.draw)
    place = wanted.place
    evaluator = load_evaluator(wanted.evaluator, place.device, place.dtype, place.device_map)
    rule = wanted.rule(evaluator.thresholds)
    _check_outputs(evaluator, rule)
    values = _identity(pool, evaluator, rule, wanted.chunk)
    folder = RunFolder(wanted.output, free=[_ROWS])
    folder.check(values)
    if _is_done(wanted.output, rule):
        return _done(wanted)
    with folder.lock():
        _begin(wanted, folder, pool, evaluator, values, watch)
        with ChunkedScores(wanted.output, wanted.chunk, folder.record()[_ROWS]) as scores:
            _score(pool, evaluator, scores, watch)
            pool_scores = PoolScores.read(scores.scores())
            _check_left_out(scores, wanted.skip_bad)
            subsets = choose(pool_scores, rule)
            hashes = write_subsets(wanted.output, pool, scores, subsets, watch)
            manifest = make_manifest(pool, evaluator, rule, scores, pool_scores, subsets, hashes)
        write_json(wanted.output / MANIFEST, manifest)
    return manifest


def _check(wanted: Filtering) -> None:
    """Raise `UserError` if an option is invalid. This does not read any files."""
    unknown = sorted(set(wanted.by) - set(SUBSETS))
    if unknown or not wanted.by:
        raise UserError(f"there is no subset {unknown[0] if unknown else ''!r}.", f"Expected {', '.join(SUBSETS)}.")
    if wanted.sample is not None and wanted.sample < 1:
        raise UserError(f"a sample of {wanted.sample} rows is requested, expected 1 or more.")
    if wanted.match is not None and wanted.match < 1:
        raise UserError(f"{wanted.match} solutions per subset are requested, expected 1 or more.")


def _check_outputs(evaluator: Evaluator, rule: SubsetRule) -> None:
    if evaluator.outputs != Outputs.THREE_WAY and rule.needs_redundancy:
        raise UserError(
            f"{evaluator.name} judges validity, but not redundancy.",
            f"Give --by {VALIDITY} --by {RANDOM} and --match N.",
        )


def _identity(pool: Pool, evaluator: Evaluator, rule: SubsetRule, chunk: int) -> dict[str, Any]:
    return {
        "pool": pool.sha256,
        "fields": [list(file.fields) for file in pool.files],
        "benchmarks": list(pool.benchmarks),
        "evaluator": evaluator.fingerprint,
        "mode": str(Mode.OFFLINE),
        # A run of a whole pool has the record of earlier versions.
        **({} if pool.draw.takes_all else {"draw": pool.draw.as_json()}),
        "chunk": chunk,
        "subsets": list(rule.by),
        "match": BOTH if rule.match is None else rule.match,
        "seed": rule.seed,
        "thresholds": [rule.thresholds.validity, rule.thresholds.redundancy],
    }


def _is_done(folder: Path, rule: SubsetRule) -> bool:
    return (folder / MANIFEST).is_file() and all(subset_path(folder, name).is_file() for name in rule.by)


def _done(wanted: Filtering) -> dict[str, Any]:
    """Return the manifest of the finished run.

    Raises `UserError` if rows were left out although `skip_bad` is not set.
    """
    manifest = read_json(wanted.output / MANIFEST)
    left_out = manifest["left_out"]
    if left_out["rows"] and not wanted.skip_bad:
        raise refusal(manifest["pool"]["rows"], left_out["rows"], left_out["first"][:SHOWN])
    return manifest


def _begin(
    wanted: Filtering, folder: RunFolder, pool: Pool, evaluator: Evaluator, values: Mapping[str, Any], watch: Watch
) -> None:
    """Claim the folder for this run, after checking every row of the pool. If the scores of an earlier run are
    reused, copy them instead of checking the rows."""
    if folder.has_run():
        return
    if wanted.scores is None:
        rows = check_pool(pool, evaluator, wanted.skip_bad, watch)
    else:
        rows = _rows_of(wanted.scores, values)
    folder.begin({**values, _ROWS: rows})
    if wanted.scores is not None:
        copy_scores(wanted.scores, wanted.output)


def _rows_of(folder: Path, values: Mapping[str, Any]) -> int:
    """Return the number of rows in the pool of the run in `folder`, whose scores are to be reused. Raises
    `UserError` if those scores are not the ones that this run needs."""
    other = RunFolder(folder)
    if not other.has_run():
        raise UserError(f"{folder}: there is no {RECORD}.", "Give the --output of another stepsight filter.")
    theirs = other.record()
    if keys := [key for key in _SCORING if theirs.get(key) != values.get(key)]:
        raise UserError(
            f"the scores in {folder} are of a run that differs in {' and '.join(keys)}.", "Leave --scores out."
        )
    return int(theirs[_ROWS])


def _score(pool: Pool, evaluator: Evaluator, scores: ChunkedScores, watch: Watch) -> None:
    if scores.is_whole:
        return
    scorer = ChunkScorer(pool, Scorer(evaluator), scores.size)
    for number in range(scores.chunks, scores.planned):
        scores.add_chunk(scorer(number))
        watch("solutions scored", scores.rows, scores.total)
    if not scores.is_whole:
        raise UserError(
            f"{scores.total - scores.rows:,} rows of the pool were not scored.", "The same command goes on."
        )


def _check_left_out(scores: ChunkedScores, skip_bad: bool) -> None:
    """Raise `UserError` if the run to be resumed has left out bad rows although `skip_bad` is not set."""
    if skip_bad:
        return
    bad, first = 0, []
    for row in scores.scores():
        if isinstance(row, UnscoredRow):
            bad += 1
            first += [row.left_out] if bad <= SHOWN else []
    if bad:
        raise refusal(scores.rows, bad, first)
