"""The catalogue of public benchmarks, and of the scores that authors of evaluators have published for them.

`assets/catalogue.json` describes each benchmark with its source and licence. Files are identified by their hash.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import read_json
from stepsight.core.paths import asset
from stepsight.storage.importers import find_kind
from stepsight.storage.importers.kind import PublicFile


@dataclass(frozen=True)
class ScoreFile:
    """An evaluator's scores on a benchmark, as published by its authors. `size` is in bytes, or None if unknown."""

    evaluator: str
    file: PublicFile
    size: int | None


@dataclass(frozen=True)
class Benchmark:
    """A benchmark in the catalogue, with what one should know before fetching it.

    `dataset` is the name of the dataset that it becomes, and `kind` is the kind of its file. `traces` and `size`,
    in bytes, are None if unknown. If `parts` are given, `file` only lists other files with their SHA-256. The
    traces are then in the files whose paths begin with one of the parts, in the order of the parts.
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
        """True if the hash of the file's content is known."""
        return self.file.digest is not None

    @property
    def evaluators(self) -> tuple[str, ...]:
        """The evaluators whose scores were published, each once."""
        return tuple(dict.fromkeys(score.evaluator for score in self.scores))

    @property
    def whole_size(self) -> int:
        """The total size in bytes of the file and its scores, counting only known sizes."""
        return (self.size or 0) + sum(score.size or 0 for score in self.scores)


@cache
def benchmarks() -> tuple[Benchmark, ...]:
    """Return all benchmarks in display order."""
    content = read_json(asset("catalogue.json"))
    return tuple(_benchmark(values, content["scores_root"]) for values in content["benchmarks"])


def find_benchmark(dataset: str) -> Benchmark:
    """Return the benchmark that becomes the dataset of this name.

    Raises `UserError`, listing all benchmarks, if there is none.
    """
    for benchmark in benchmarks():
        if benchmark.dataset == dataset:
            return benchmark
    names = ", ".join(one.dataset for one in benchmarks())
    raise UserError(f"There is no benchmark {dataset!r:.60} in the catalogue.", f"It has {names}.")


def find_file(sha256: str) -> tuple[Benchmark, ScoreFile | None] | None:
    """Return the benchmark whose file has this hash, or whose published scores of an evaluator do.

    The second value is the score file, or None for the benchmark's own file. Returns None if the hash is unknown.
    """
    return _known().get(sha256)


def find_published(kind: str, name: str | None) -> Benchmark | None:
    """Return the benchmark whose file a kind's published file of that name is, or None if there is none.

    Raises `UserError` as `FileKind.public_file` does.
    """
    url = find_kind(kind).public_file(name).url
    return next((one for one in benchmarks() if one.file.url == url), None)


def list_parts(benchmark: Benchmark, content: str) -> list[PublicFile]:
    """Return the files that hold the traces of a benchmark with `parts`.

    `content` is the content of the benchmark's file, which lists them. Raises `UserError` if it lists no file for a
    part.
    """
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
