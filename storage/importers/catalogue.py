"""The catalogue of public benchmarks and of the scores that authors of evaluators have published for them.

`assets/catalogue.json` describes each benchmark, its source and its licence. Files are identified by their hash.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import read_json
from stepsight.core.paths import asset
from stepsight.storage.importers import find_kind
from stepsight.storage.importers.rows.kind import PublicFile


@dataclass(frozen=True)
class ScoreFile:
    """Scores for a benchmark that the authors of an evaluator published. `size` is in bytes, or None if unknown."""

    evaluator: str
    file: PublicFile
    size: int | None


@dataclass(frozen=True)
class Benchmark:
    """A benchmark in the catalogue, described for users who consider fetching it.

    `dataset` is the name that the dataset gets on import, and `kind` is the kind of its file. `traces` and `size`
    (in bytes) are None if unknown. If `parts` is set, `file` is an index that only lists other files and their
    SHA-256. The traces are then in the listed files whose paths begin with one of the parts, in the order of the
    parts.
    """

    dataset: str
    kind: str
    file: PublicFile
    title: str
    about: str
    traces: int | None
    size: int | None
    licence: str
    source: str
    scores: tuple[ScoreFile, ...]
    parts: tuple[str, ...] = ()

    @property
    def can_be_fetched(self) -> bool:
        """True if a digest is known by which a downloaded file can be verified."""
        return self.file.digest is not None

    @property
    def evaluators(self) -> tuple[str, ...]:
        """The evaluators with published scores, without duplicates."""
        return tuple(dict.fromkeys(score.evaluator for score in self.scores))

    @property
    def whole_size(self) -> int:
        """The total size in bytes of the file and all score files. Unknown sizes count as 0."""
        return (self.size or 0) + sum(score.size or 0 for score in self.scores)


@cache
def benchmarks() -> tuple[Benchmark, ...]:
    """Return all benchmarks in display order."""
    content = read_json(asset("catalogue.json"))
    return tuple(_benchmark(values, content["scores_root"]) for values in content["benchmarks"])


def find_benchmark(dataset: str) -> Benchmark:
    """Return the benchmark whose dataset has this name. Raises `UserError`, with a message that lists all
    benchmarks, if no benchmark does."""
    for benchmark in benchmarks():
        if benchmark.dataset == dataset:
            return benchmark
    names = ", ".join(one.dataset for one in benchmarks())
    raise UserError(f"There is no benchmark {dataset!r:.60} in the catalogue.", f"It has {names}.")


def find_file(sha256: str) -> tuple[Benchmark, ScoreFile | None] | None:
    """Return the benchmark and the score file with a given hash, or None if the hash is unknown. If the hash is
    that of the benchmark's own file, the score file is None."""
    return _known().get(sha256)


def find_published(kind: str, name: str | None) -> Benchmark | None:
    """Return the benchmark to which a published file of a kind belongs, or None if the file is not in the
    catalogue. Raises `UserError` in the same cases as `FileKind.public_file`."""
    url = find_kind(kind).public_file(name).url
    return next((one for one in benchmarks() if one.file.url == url), None)


def list_parts(benchmark: Benchmark, content: str) -> list[PublicFile]:
    """Return the files that contain the traces of a benchmark with `parts`. `content` is the content of the
    benchmark's index file. Raises `UserError` if no file in the index belongs to one of the parts."""
    root = benchmark.file.url.removesuffix(f"/{benchmark.file.name}")
    pairs = [line.split(maxsplit=1) for line in content.splitlines() if line.strip()]
    listed = {path.strip().removeprefix("./"): sha256 for sha256, path in pairs}
    found: list[PublicFile] = []
    for part in benchmark.parts:
        paths = sorted(path for path in listed if path.startswith(part))
        if not paths:
            raise UserError(f"{benchmark.file.name}: lists no file of {part}.", "Report it to StepSight.")
        found += [PublicFile(path.rsplit("/", 1)[-1], f"{root}/{path}", listed[path]) for path in paths]
    return found


@cache
def _known() -> dict[str, tuple[Benchmark, ScoreFile | None]]:
    return dict(_pairs())


def _pairs() -> Iterator[tuple[str, tuple[Benchmark, ScoreFile | None]]]:
    for benchmark in benchmarks():
        if benchmark.file.sha256:
            yield benchmark.file.sha256, (benchmark, None)
        for score in benchmark.scores:
            if score.file.sha256:
                yield score.file.sha256, (benchmark, score)


def _benchmark(values: dict[str, Any], root: str) -> Benchmark:
    return Benchmark(
        dataset=values["dataset"],
        kind=values["kind"],
        file=find_kind(values["kind"]).public_file(values["file"]),
        title=values["title"],
        about=values["about"],
        traces=values.get("traces"),
        size=values.get("size"),
        licence=values["licence"],
        source=values["source"],
        scores=tuple(_scores(score, values.get("scores_root", root)) for score in values["scores"]),
        parts=tuple(values.get("parts", ())),
    )


def _scores(values: dict[str, Any], root: str) -> ScoreFile:
    path = values["path"]
    name = path.rsplit("/", 1)[-1]
    file = PublicFile(name, f"{root}/{path}", values.get("sha256"), values.get("git_blob"))
    return ScoreFile(values["evaluator"], file, values.get("size"))
