"""The traces that a run trains on: those of all its sources, except traces whose problem occurs in a benchmark.

A run uses a mixture in this order:

    mixture = Mixture(config.data, root, config.truncation, config.seed)
    tokenizer = train_tokenizer(texts of mixture.heads(4000), …)      if it has none yet
    examples, left_out = build_examples(mixture, encoder, config.truncation, config.seed, longest)
    provenance["data"] = mixture.record
    for line in mixture.notices(): print(line, file=sys.stderr)

PRM800K, PRMBench and MR-MATH all draw on MATH, so a model trained on one of them may have seen problems of the
rest. Problems are compared by their normalised text, so that copies that differ only in typesetting count as the
same problem.
"""

import random
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from stepsight.core.errors import UserError, counted, located
from stepsight.core.files.row_conditions import from_mapping
from stepsight.core.trace import LABEL_NAMES, Trace
from stepsight.storage.importers.benchmarks.prm800k import KIND, beside_the_paper
from stepsight.training.data.sources import SourceReading, open_origin, open_problems
from stepsight.training.data.sources_config import (
    CONTINUED,
    GENERATED,
    PROBLEMS,
    Data,
    TraceOrigin,
    describe,
    file_kind,
)
from stepsight.training.data.transforms import (
    COMPLETE,
    NOT_CONTINUED,
    continue_trace,
    corrupt,
    is_balanced,
    settle,
    stop_at_a_step,
    valid_part,
)

# A shorter beginning, such as "Find the value of x", does not identify a problem.
_HEAD = 50

# Some copies of MATH spell a line break as a backslash and an n; LaTeX's own commands are left alone.
_LINE_BREAK = re.compile(
    r"\\n(?!(?:abla|atural|e|eq|earrow|eg|ewline|exists|geq|i|leq|mid|onumber|ot|otin|u|warrow)(?![A-Za-z]))"
)
_DASHES = re.compile(r"[−–—]|-{2,3}")
_HYPHEN = re.compile(r"(?<=[a-z]{2})-(?=[a-z]{2})")
_SPELLINGS = tuple(
    (re.compile(rf"\\(?:{written})(?![a-z])"), rf"\\{meant}")
    for written, meant in (("[dt]frac", "frac"), ("leq", "le"), ("geq", "ge"), ("neq", "ne"), ("[lc]dots", "dots"))
)
_REMOVED = re.compile(
    r"\\(?:begin|end)\{(?:align|aligned|equation|gather|gathered|eqnarray)\*?\}"
    r"|\\(?:left|right|quad|qquad|newline|displaystyle|textstyle|(?:text|math)(?:bf|it|rm)?)(?![a-z])"
    r"|\\\\|\\[,;:!>()\[\] ]|[$~&]|\s"
)
_THOUSANDS = re.compile(r"(?<=\d)\{?,\}?(?=\d{3}(?!\d))")
_MARKS = re.compile(r"""[\\{}"'`:;?“”‘’]""")
_POINTS = re.compile(r"(?<!\d)[.,]|[.,](?!\d)")
_WORDS = re.compile(r"\(?[a-z]{3}.{7}")


def normalise(problem: str) -> str:
    r"""Return the text of a problem without the details in which copies of a problem tend to differ.

    The text becomes lower case. These are removed: white space and LaTeX for it (`\,`, `\quad`, `~`, `\\`); `$`,
    `\(`, `\[`, `\left`, `\right`, `\displaystyle`, `\text`, bold type and alignment; backslashes, braces and
    quotation marks; commas in numbers such as 10,000 and hyphens between words; and punctuation, except a point or
    comma between digits (1.5 is not 15). `\dfrac` becomes `\frac`, and `\leq` becomes `\le`. Operators, parentheses
    and digits are kept, so that problems that differ in them remain different.
    """
    text = _LINE_BREAK.sub(" ", unicodedata.normalize("NFKC", problem)).lower()
    text = _DASHES.sub("-", text)
    for spelling, meant in _SPELLINGS:
        text = spelling.sub(meant, text)
    text = _THOUSANDS.sub("", _REMOVED.sub("", _HYPHEN.sub("", text)))
    return _POINTS.sub("", _MARKS.sub("", text)) or problem


class Benchmarks:
    """The problems of the benchmarks named in a configuration. The constructor reads all problems, and raises
    `UserError` if a benchmark cannot be read."""

    def __init__(self, origins: Iterable[TraceOrigin], root: Path, db: str | None = None) -> None:
        self._whole: dict[str, set[int]] = defaultdict(set)
        self._by_head: dict[str, list[str]] = defaultdict(list)
        self.records: list[dict[str, Any]] = []
        for number, origin in enumerate(origins):
            self._add(number, origin, root, db)

    def _add(self, number: int, origin: TraceOrigin, root: Path, db: str | None) -> None:
        reading, texts = _open(origin, root, f"data.benchmarks[{number}]", db)
        problems = {normalise(problem) for problem in texts}
        for problem in sorted(problems):
            if problem not in self._whole:
                self._by_head[problem[:_HEAD]].append(problem)
            self._whole[problem].add(number)
        self.records.append(reading.record | {"problems": len(problems)})

    def overlaps(self, trace: Trace) -> set[int]:
        """Return the indices, in the configuration, of the benchmarks that contain the trace's problem.

        Two problems count as the same if their normalised texts are equal, or if one text has at least 50
        characters and the other begins with it, adding for example a hint or the first step of a solution.
        """
        if not self.records:
            return set()
        overlapping: set[int] = set()
        for problem in map(normalise, problems_of(trace)):
            overlapping |= self._whole.get(problem, set())
            for other in self._by_head.get(problem[:_HEAD], ()) if len(problem) >= _HEAD else ():
                if _extends(problem, other) or _extends(other, problem):
                    overlapping |= self._whole[other]
        return overlapping


def _open(origin: TraceOrigin, root: Path, key: str, db: str | None) -> tuple[SourceReading[Any], Iterable[str]]:
    """Open a benchmark. Return its reading, which has a `record`, and the texts of its problems."""
    if origin.kind == PROBLEMS:
        listed = open_problems(origin, root, key)
        return listed, listed
    reading = open_origin(origin, root, key, db)
    return reading, (text for trace in reading for text in problems_of(trace))


def _extends(longer: str, shorter: str) -> bool:
    return longer.startswith(shorter) and _WORDS.match(longer, len(shorter)) is not None


def problems_of(trace: Trace) -> Iterator[str]:
    """Yield the problem of a trace and any original problems that its meta contains, as in PRMBench."""
    yield trace.problem
    for key in ("original_question", "question"):
        text = trace.meta.get(key)
        if isinstance(text, str):
            yield text


PRM800K = KIND.name
# The reasons for leaving a trace out, in the order in which they are checked, and in words.
_MEANING = {
    "unwanted": "by `where`",
    "overlapping": "with a benchmark's problem",
    "unlabelled": "without a label",
    "unbalanced": "unbalanced",
    "not_drawn": "beyond the sample",
}
_LEFT_OUT = tuple(_MEANING)


class Mixture:
    """An iterable over the traces of one source after another, in which each trace is repeated by its source's
    weight.

    Every iteration gives the same traces. `root` is the folder of the configuration, and `db` the address of the
    store that holds its datasets. Traces without any label are left out. The constructor reads the benchmarks and
    locates all files, and raises `UserError` if a file is missing. Iterating raises `UserError` at a bad row, and
    at the end of a source that yielded no trace.
    """

    def __init__(self, data: Data, root: Path, truncation: str, seed: int, db: str | None = None) -> None:
        self._sources, self._seed = data.sources, seed
        self._continued = truncation == CONTINUED
        self._readings = [
            open_origin(source, root, f"data.sources[{number}]", db) for number, source in enumerate(data.sources)
        ]
        self._benchmarks = Benchmarks(data.benchmarks, root, db)
        self._tallies: list[Counter[str]] = []
        self._overlaps: Counter[int] = Counter()
        self._samples: dict[int, frozenset[int]] = {}

    def __iter__(self) -> Iterator[Trace]:
        self._tallies, self._overlaps = [Counter() for _ in self._sources], Counter()
        for i, tally in enumerate(self._tallies):
            for number, trace in self._kept_traces(i, tally, self._overlaps):
                for copy in range(self._copies(i, number)):
                    altered = self._alter(i, trace, random.Random(f"{self._seed}:{i}:{number}:{copy}"))
                    tally["copies"] += altered is not None
                    yield from [altered] if altered else []
            if not tally["kept"]:
                raise UserError(f"{self._notice(i)}; nothing is left to learn from.", "Check the source.")

    def heads(self, count: int) -> Iterator[Trace]:
        """Yield the first `count` traces of each source, for example to train a tokenizer on them. The traces
        alternate between the sources, and each trace occurs once, whatever the weight of its source."""
        streams = [islice(self._kept_traces(i, Counter(), Counter()), count) for i in range(len(self._sources))]
        for of_each in zip_longest(*streams):
            yield from (numbered[1] for numbered in of_each if numbered is not None)

    @property
    def expected(self) -> int | None:
        """The approximate number of traces, or None if any source is not synthetic, so that its size is unknown."""
        if any(source.kind not in GENERATED for source in self._sources):
            return None
        return round(sum(source.weight * (source.size or 0) for source in self._sources))

    @property
    def record(self) -> dict[str, Any]:
        """A description of the data that was read, as JSON values. It is complete once iteration has ended.

        `sources` has an entry for each source, with its origin, the hashes of its data and these counts:

        - `read`: all traces of the source
        - `unwanted` (excluded by `where`), `overlapping` (in a benchmark), `unlabelled`, `unbalanced` and
          `not_drawn` (outside the sample): the traces left out, each counted under the first reason that applies
        - `kept`: the remaining traces; `copies`: the copies yielded of these; `labels`: the labels of the copies;
          `shares`: the steps with a share and no label, if there are any
        - `continued`, `complete`, `not_continued`: the outcomes of `continue_trace`, if `truncation` is `continued`

        `benchmarks` has an entry for each benchmark, with the number of its `problems` and the number of
        `overlapping` traces. A trace that overlaps two benchmarks is counted for both. `traces` is the total number
        of copies.
        """
        return {
            "sources": [self._readings[i].record | self._counts(i) for i in range(len(self._tallies))],
            "benchmarks": [
                record | {"overlapping": self._overlaps[number]}
                for number, record in enumerate(self._benchmarks.records)
            ],
            "traces": sum(tally["copies"] for tally in self._tallies),
        }

    def notices(self) -> list[str]:
        """Return a line for each source that lost traces, is PRM800K, or has traces that could not be continued.
        The lines are complete once iteration has ended."""
        return [
            self._notice(i) + "."
            for i, tally in enumerate(self._tallies)
            if self._bad_rows(i)
            or any(tally[name] for name in (*_LEFT_OUT, NOT_CONTINUED))
            or file_kind(self._sources[i]) == PRM800K
        ]

    def _kept_traces(self, at: int, tally: Counter[str], overlapping: Counter[int]) -> Iterator[tuple[int, Trace]]:
        """Yield the traces of a source to train on, each with its index in the source."""
        return self._pool(at, tally, overlapping, self._sample(at) if self._sources[at].sample else None)

    def _sample(self, at: int) -> frozenset[int]:
        """Choose the indices of the traces in a source's sample at random. Raises `UserError` if there are too few
        traces."""
        if at not in self._samples:
            size = self._sources[at].sample or 0
            numbers = [number for number, _ in self._pool(at, Counter(), Counter(), None)]
            if len(numbers) < size:
                raise UserError(
                    f"{self._name(at)}: a sample of {size:,} traces is requested, but there are only"
                    f" {len(numbers):,}.",
                    f"Lower data.sources[{at}].sample.",
                )
            random.Random("sample").shuffle(numbers)
            self._samples[at] = frozenset(numbers[:size])
        return self._samples[at]

    def _pool(
        self, at: int, tally: Counter[str], overlapping: Counter[int], drawn: frozenset[int] | None
    ) -> Iterator[tuple[int, Trace]]:
        """Yield the traces that meet their source's conditions, each with its index in the source.

        If `drawn` is given, only the traces with these indices are yielded.
        """
        source = self._sources[at]
        where = from_mapping(source.where)
        for number, read in enumerate(self._readings[at]):
            tally["read"] += 1
            if not where.hold(read.meta):
                tally["unwanted"] += 1
                continue
            overlaps = self._benchmarks.overlaps(read)
            overlapping.update(overlaps)
            if overlaps:
                tally["overlapping"] += 1
                continue
            with located(self._name(at)):
                trace = settle(read, source.valid)
            if not trace.has_shares and not any(label is not None for label in trace.labels):
                tally["unlabelled"] += 1
            elif not is_balanced(trace, source.rho, source.every_label):
                tally["unbalanced"] += 1
            elif drawn is not None and number not in drawn:
                tally["not_drawn"] += 1
            else:
                tally["kept"] += 1
                tally.update(label.text for label in trace.labels if label is not None)
                tally["shares"] += sum(step.label is None and step.share is not None for step in trace.steps)
                if self._continued:
                    with located(self._name(at)):
                        trace, outcome = continue_trace(trace)
                    tally[outcome] += 1
                yield number, trace
        with located(self._name(at)):
            where.check()

    def _alter(self, at: int, trace: Trace, rng: random.Random) -> Trace | None:
        """Return the trace in the form that its source asks for: stopping at one step, with a planted error, or
        unchanged.

        Returns None if no error can be planted, for example because the trace has fewer than two valid steps.
        """
        source = self._sources[at]
        if source.online:
            return stop_at_a_step(trace, rng)
        if not source.corrupt:
            return trace
        valid = valid_part(trace)
        if valid is None or rng.random() >= source.corrupt:
            return valid
        return corrupt(valid, rng)

    def _copies(self, at: int, number: int) -> int:
        """Return how often to yield a trace: its source's weight, with the fraction rounded at random."""
        weight = self._sources[at].weight
        fraction = weight % 1
        # The draw depends only on the trace's number, whatever else is left out.
        return int(weight) + int(
            fraction > 0 and np.random.default_rng((self._seed, at, number)).random() < fraction
        )

    def _counts(self, at: int) -> dict[str, Any]:
        tally = self._tallies[at]
        source = self._sources[at]
        conditions = {"not_drawn": source.sample, "unwanted": source.where}
        left_out = [name for name in _LEFT_OUT if conditions.get(name, True)]
        names = ("read", *left_out, "kept", *((CONTINUED, COMPLETE, NOT_CONTINUED) if self._continued else ()))
        return {
            "weight": source.weight,
            **{name: tally[name] for name in (*names, "copies")},
            "labels": {name: tally[name] for name in LABEL_NAMES},
            **({"shares": tally["shares"]} if tally["shares"] else {}),
        }

    def _notice(self, at: int) -> str:
        tally, bad = self._tallies[at], self._bad_rows(at)
        parts = [f"{counted(tally['read'], 'trace')} read"]
        parts += [f"{counted(bad, 'bad row')} left out"] if bad else []
        parts += [f"{tally[name]:,} {_MEANING[name]} left out" for name in _LEFT_OUT if tally[name]]
        if self._continued:
            parts.append(f"{tally[CONTINUED]:,} continued, {tally[NOT_CONTINUED]:,} could not be")
        if file_kind(self._sources[at]) == PRM800K:
            parts.append(f"left are {beside_the_paper(tally['kept'], sum(tally[name] for name in LABEL_NAMES))}")
        return f"{self._name(at)}: {', '.join(parts)}"

    def _name(self, at: int) -> str:
        return f"data.sources[{at}] ({describe(self._sources[at])})"

    def _bad_rows(self, at: int) -> int:
        return sum(len(file["bad"]) for file in self._readings[at].record.get("files", ()))
