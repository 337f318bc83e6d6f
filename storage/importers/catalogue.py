"""The catalogue of public benchmarks and of the scores that authors of evaluators have published for them.

`assets/catalogue.json` describes each benchmark, its source and its licence. Files are identified by their hash.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import read_json
from stepsight.core.paths import asset
from stepsight.storage.importers import find_kind


@dataclass(frozen=True)
class PublicFile:
    """A published benchmark file. `sha256` is the hash of its content, or None if unknown. In that case, the
    content is checked against `git_blob`, the file's id in a Git repository, if that is known."""

    name: str
    url: str
    sha256: str | None = None
    git_blob: str | None = None

    @property
    def digest(self) -> str | None:
        """The digest by which the content is checked, or None if no digest is known."""
        return self.sha256 or self.git_blob


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
    licence: str
    source: str
    scores: tuple[ScoreFile, ...]
    traces: int | None = None
    size: int | None = None
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
    return tuple(map(_benchmark, _content()["benchmarks"]))


@cache
def published_files(kind: str) -> tuple[PublicFile, ...]:
    """Return the published files of a kind whose addresses are known."""
    return tuple(PublicFile(**values) for values in _content()["files"].get(kind, ()))


def public_file(kind: str, name: str | None = None, sha256: str | None = None) -> PublicFile:
    """Return the published file of a kind with this name. `name` may be omitted if there is only one.

    `sha256` overrides the file's own hash. Raises `UserError`, with a message that lists the published files, if no
    published file has this name, and if there is no such kind.
    """
    kind = find_kind(kind).name
    files = published_files(kind)
    if not files:
        raise UserError(
            f"No public address of {kind} is known.", "Fetch the file by hand and import it by its path."
        )
    matches = [file for file in files if name in (None, file.name)]
    if len(matches) != 1:
        names = ", ".join(file.name for file in files)
        raise UserError(f"{kind} is published as {names}.", "Name one of them in place of the path.")
    return replace(matches[0], sha256=sha256) if sha256 else matches[0]


def find_benchmark(dataset: str) -> Benchmark:
    """Return the benchmark whose dataset has this name. Raises `UserError`, with a message that lists all
    benchmarks, if no benchmark does."""
    for benchmark in benchmarks():
        if benchmark.dataset == dataset:
            return benchmark
    names = ", ".join(other.dataset for other in benchmarks())
    raise UserError(f"There is no benchmark {dataset!r:.60} in the catalogue.", f"It has {names}.")


def find_file(sha256: str) -> tuple[Benchmark, ScoreFile | None] | None:
    """Return the benchmark and the score file with a given hash, or None if the hash is unknown. If the hash is
    that of the benchmark's own file, the score file is None."""
    return _by_hash().get(sha256)


def find_published(kind: str, name: str | None) -> Benchmark | None:
    """Return the benchmark to which a published file of a kind belongs, or None if the file is not in the
    catalogue. Raises `UserError` in the same cases as `public_file`."""
    url = public_file(kind, name).url
    return next((benchmark for benchmark in benchmarks() if benchmark.file.url == url), None)


def list_parts(benchmark: Benchmark, content: str) -> list[PublicFile]:
    """Return the files that contain the traces of a benchmark with `parts`. `content` is the content of the
    benchmark's index file. Raises `UserError` if no file in the index belongs to one of the parts."""
    root = benchmark.file.url.removesuffix(f"/{benchmark.file.name}")
    pairs = [line.split(maxsplit=1) for line in content.splitlines() if line.strip()]
    listed = {path.strip().removeprefix("./"): sha256 for sha256, path in pairs}
    files: list[PublicFile] = []
    for part in benchmark.parts:
        paths = sorted(path for path in listed if path.startswith(part))
        if not paths:
            raise UserError(f"{benchmark.file.name}: lists no file of {part}.", "Report it to StepSight.")
        files += [PublicFile(path.rsplit("/", 1)[-1], f"{root}/{path}", listed[path]) for path in paths]
    return files


@cache
def _content() -> dict[str, Any]:
    return read_json(asset("catalogue.json"))


@cache
def _by_hash() -> dict[str | None, tuple[Benchmark, ScoreFile | None]]:
    files: dict[str | None, tuple[Benchmark, ScoreFile | None]] = {}
    for benchmark in benchmarks():
        files[benchmark.file.sha256] = benchmark, None
        files |= {score.file.sha256: (benchmark, score) for score in benchmark.scores}
    files.pop(None, None)
    return files


def _benchmark(values: dict[str, Any]) -> Benchmark:
    root = values.get("scores_root", _content()["scores_root"])
    scores = []
    for score in values["scores"]:
        path = score["path"]
        digests = {name: score.get(name) for name in ("sha256", "git_blob")}
        file = PublicFile(path.rsplit("/", 1)[-1], f"{root}/{path}", **digests)
        scores.append(ScoreFile(score["evaluator"], file, score.get("size")))
    of_other_types = {
        "file": public_file(values["kind"], values["file"]),
        "scores": tuple(scores),
        "parts": tuple(values.get("parts", ())),
    }
    return Benchmark(**{key: value for key, value in values.items() if key != "scores_root"} | of_other_types)
