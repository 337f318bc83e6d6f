"""Encoding traces as token ids, with the position at which each step is read, as a whole or in windows of whole
steps.

An evaluator reads a solution that is too long to read at once in windows. The steps of a trace are divided into
blocks of at most a third of a window, and each block is judged in a window of its own. This holds the problem,
whole steps before the block that fill at most another third (half a window if no later step can change a verdict),
the block, and as many whole steps after it as fit. A window is encoded as a trace of its own, which has only its
steps; their numbers, where a template writes them, begin anew. The first block also fills the room that its window
has for earlier steps.

Neither the blocks nor the starts of the windows depend on later steps. So a prefix is read like the beginning of a
longer trace, the online scores are the last row of each prefix, and down a column of the hindsight matrix a verdict
changes only because a later step comes into view, never because an earlier one drops out of it. Once the window of
a step is full, its verdict is final.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cached_property
from itertools import accumulate

import numpy as np
from tokenizers import Tokenizer

from stepsight.core.arrays import Floats32, Ints
from stepsight.core.errors import UserError
from stepsight.core.prompts.template import Lines, PromptTemplate, Read, Separator
from stepsight.core.prompts.vocabulary import Vocabulary
from stepsight.core.trace import Trace

# The most cached pieces, and their greatest length in characters: 10 MB in total, 1 MB if steps are short.
_MOST_KEPT, _LONGEST_KEPT = 1_000, 1_000


class Pieces:
    """A tokenizer for the pieces of an input that gives the same tokens as for one long text.

    A SentencePiece tokenizer puts a space mark at the start of a text, and a byte-level tokenizer may do so.
    Depending on tokenizer.json, the mark is set once for the whole input, or for each stretch between added tokens.
    A piece that continues another piece must not get a mark. The most recent pieces are cached, since candidates
    for a step share all earlier steps.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._kept: dict[tuple[str, bool], list[int]] = {}

    def encode(self, texts: Sequence[str], continues: Sequence[bool]) -> list[list[int]]:
        """Return the token ids of each text. `continues[i]` is True if text `i` continues the text before it and
        must not get a space mark."""
        keys = list(zip(texts, continues, strict=True))
        # Read once, since another thread may replace it.
        cached = self._kept
        pieces = {piece: cached[piece] for piece in keys if piece in cached}
        for bare in (False, True):
            missing = list({text: None for text, flag in keys if flag == bare and (text, bare) not in pieces})
            if missing:
                encoded = self._vocabulary.encode(missing, bare=bare)
                pieces |= {(text, bare): ids for text, ids in zip(missing, encoded, strict=True)}
        short = {piece: ids for piece, ids in pieces.items() if len(piece[0]) <= _LONGEST_KEPT}
        if len(self._kept) + len(short) > _MOST_KEPT:
            self._kept = {}
        self._kept.update(short)
        return [pieces[piece] for piece in keys]


@dataclass(frozen=True, eq=False)
class Encoded:
    """A trace as token ids.

    `ids` has the shape (tokens,) and holds all token ids. `ends` holds the last position of each sub-step, in
    ascending order. `reads` holds `e_i`, the position at which each sub-step is read, usually its last.

    The prefix ending with sub-step `i` is `ids[: ends[i] + 1]`, token for token. If an evaluator is queried about
    each sub-step separately, `calls` holds the inputs for each sub-step, with the positions that are read in them,
    and `ids` is the longest of these inputs.

    If the trace is read in `windows`, the windows hold the inputs. `ids` holds their tokens, one window after
    another, and `ends` and `reads` the position at which each sub-step ends in the window in which it is judged.
    """

    ids: Ints
    ends: Ints
    reads: Ints
    calls: tuple[tuple["Encoded", ...], ...] = ()
    windows: tuple["Window", ...] = ()

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class Window:
    """The part of a long trace in which some of its sub-steps are judged.

    The sub-steps from `start` to the one before `end` are in view, and those from `first` to the one before `stop`
    are judged. `encoded` is the encoding of those in view, in which they are counted from 0. If one pass gives all
    verdicts, its `reads` or `calls` are only those of the sub-steps that are judged.
    """

    start: int
    first: int
    stop: int
    end: int
    encoded: Encoded

    def judged(self, bounds: tuple[int, int]) -> tuple[int, int] | None:
        """Return the bounds of the sub-steps in this range that the window judges, or None if there are none."""
        start, stop = max(bounds[0], self.first), min(bounds[1], self.stop)
        return (start, stop) if start < stop else None

    def local(self, bounds: tuple[int, int]) -> tuple[int, int]:
        """Convert the bounds of a prefix of the trace to those of a prefix of the window. The window must judge a
        sub-step of the prefix."""
        return max(bounds[0], self.first) - self.start, min(bounds[1], self.end) - self.start


class Mark(Enum):
    """A mark between the parts of an input.

    LEFT_OUT stands for a separator token that the template leaves out, and END for the end of a step.
    """

    LEFT_OUT = auto()
    END = auto()


_Part = int | str | Mark


class Encoder:
    """An encoder that turns traces into token ids.

    `closing` holds the tokens of the separator, and `separator` is the last of these tokens. Raises `UserError` if
    the tokenizer lacks tokens of the template.
    """

    asks_each_step = False
    """True if its encodings have `calls`."""

    def __init__(self, tokenizer: Tokenizer | Vocabulary, template: PromptTemplate) -> None:
        vocabulary = tokenizer if isinstance(tokenizer, Vocabulary) else Vocabulary(tokenizer)
        self.vocabulary = vocabulary
        self.template = template
        self.bos = [] if template.bos is None else [self._token(template.bos)]
        self.closing = self._closing()
        self._prompt = vocabulary.split(template.prompt)
        self._between = vocabulary.split(template.between)
        parts = (*self.bos, *self.closing, *self._prompt, *self._between)
        # Text in a problem or step is never encoded as one of these tokens.
        vocabulary.guard([part for part in parts if isinstance(part, int)])
        self._pieces = Pieces(vocabulary)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer itself, for code that changes or saves it."""
        return self.vocabulary.tokenizer

    @property
    def separator(self) -> int:
        return self.closing[-1]

    def encode(self, trace: Trace) -> Encoded:
        """Return the token ids of a trace and the position at which each sub-step is read."""
        return self._encode_parts(self._parts(trace))

    def verdict(self, probs: Floats32) -> Floats32:
        """Combine the probabilities read in all calls about a sub-step into the probabilities of that sub-step.

        `probs` has the shape (reads, 3), in the order of the calls. The result has the shape (3,). By default, it
        is the last row.
        """
        return probs[-1]

    def _encode_parts(self, parts: Iterable[_Part]) -> Encoded:
        parts = self._merge_texts(parts)
        texts = [part for part in parts if isinstance(part, str)]
        pieces = iter(self._pieces.encode(texts, self._continues(parts)))
        ids: list[int] = []
        ends: list[int] = []
        for part in parts:
            if isinstance(part, int):
                ids.append(part)
            elif isinstance(part, str):
                ids += next(pieces)
            elif part is Mark.END:
                ends.append(len(ids) - 1)
        last = np.asarray(ends, dtype=np.int64)
        reads = np.maximum(last - 1, 0) if self.template.read == Read.SECOND_TO_LAST else last
        return Encoded(np.asarray(ids, dtype=np.int64), last, reads)

    def _opening(self, trace: Trace) -> Iterable[_Part]:
        """Yield the tokens and texts that precede the first sub-step."""
        yield from self.bos
        for part in self._prompt:
            problem = self.template.problem_text(trace.problem)
            yield part.replace("{problem}", problem) if isinstance(part, str) else part

    def _parts(self, trace: Trace) -> Iterable[_Part]:
        """Yield the tokens and texts of an input in order, with a mark at the end of each sub-step."""
        template = self.template
        reads_separator = template.read == Read.SEPARATOR
        separator: list[_Part] = [*self.closing] if reads_separator else [Mark.LEFT_OUT] * len(self.closing)
        yield from self._opening(trace)
        if template.opening:
            yield from separator
        for number, text in enumerate(trace.substeps, start=1):
            *leading, last = self._between if number > 1 and self._between else [""]
            yield from leading if isinstance(last, str) else [*leading, last]
            yield from self._lines(
                (last if isinstance(last, str) else "") + template.step_text(number, text), separator
            )
            yield from [*separator, Mark.END] if reads_separator else [Mark.END, *separator]

    def _lines(self, text: str, separator: list[_Part]) -> Iterable[_Part]:
        """Yield the text of a step. If the template says so, the separator replaces the line breaks in it."""
        if self.template.lines != Lines.SEPARATORS:
            yield text
            return
        for place, line in enumerate(text.split("\n")):
            yield from separator if place else []
            yield from [line] if line else []

    def _merge_texts(self, parts: Iterable[_Part]) -> list[_Part]:
        """Return the parts, joining adjacent texts if the template sets `joined`."""
        merged: list[_Part] = []
        for part in parts:
            if self.template.joined and isinstance(part, str) and merged and isinstance(merged[-1], str):
                merged[-1] += part
            else:
                merged.append(part)
        return merged

    def _continues(self, parts: list[_Part]) -> list[bool]:
        """Return a flag for each text among the parts: True if it continues the text before it, so that it gets no
        space mark."""
        continues = []
        before: _Part | None = None
        for part in parts[len(self.bos) :]:
            if isinstance(part, str):
                continues.append(self.template.joined and before is not None and not self._restarts(before))
            if part is not Mark.END:
                before = part
        return continues

    def _restarts(self, before: _Part) -> bool:
        """True if a text that follows the part `before` gets a space mark, like a text at the start of an input.
        This is the case after most added tokens."""
        added = before is Mark.LEFT_OUT or (isinstance(before, int) and self.vocabulary.is_added(before))
        return added and not self.vocabulary.marks_once()

    def _token(self, token: str) -> int:
        token_id = self.vocabulary.token_id(token)
        if token_id is None:
            raise UserError(
                f"the tokenizer has no token {token!r}, which the template needs.",
                "Add it to the tokenizer or name another one in stepsight.json.",
            )
        return token_id

    def _closing(self) -> list[int]:
        separator = self.template.separator
        if self.template.separator_is == Separator.TOKEN or not separator:
            return [self._token(separator)] if separator else []
        (ids,) = self.vocabulary.encode([separator])
        if not ids:
            raise UserError(
                f"the tokenizer gives no token for the separator {separator!r}.",
                'Name another separator in the template of stepsight.json, or leave it out: {"separator": "", '
                '"read": "last"} reads each step at its own last token.',
            )
        return ids


_SHARES = 3
"""The inverse of the largest part of a window that a block may fill, and so may the steps before it."""


def encode_in_windows(encoder: Encoder, trace: Trace, size: int, *, one_pass: bool) -> Encoded:
    """Encode a trace in windows of at most `size` tokens, or as a whole if one window holds it.

    `one_pass` is True if later steps never change a verdict, so that a window ends with its block. Raises
    `UserError` if a step does not fit into a window with the problem.
    """
    cutter = _Cutter(encoder, trace, size, one_pass)
    windows = tuple(cutter.windows())
    if len(windows) == 1:
        return windows[0].encoded
    begins = np.cumsum([0, *(len(window.encoded.ids) for window in windows[:-1])])
    own = [slice(window.first - window.start, window.stop - window.start) for window in windows]
    ends = [begin + window.encoded.ends[part] for begin, window, part in zip(begins, windows, own, strict=True)]
    return Encoded(
        np.concatenate([window.encoded.ids for window in windows]),
        np.concatenate(ends),
        np.concatenate(ends),
        windows=windows,
    )


@dataclass(frozen=True)
class _Cutter:
    """Divides a trace into windows. Its steps are counted from 0, and lengths are in tokens."""

    encoder: Encoder
    trace: Trace
    size: int
    one_pass: bool

    def windows(self) -> Iterator[Window]:
        """Yield the windows in the order of their blocks."""
        share = self._room // _SHARES
        first, total = 0, 0
        for step, length in enumerate(self._lengths):
            if step > first and total + length > (share if first else share + self._most_before):
                yield self._window(first, step)
                first, total = step, 0
            total += length
        yield self._window(first, len(self._lengths))

    def _window(self, first: int, stop: int) -> Window:
        """Return the window of the block from step `first` to the one before `stop`."""
        lengths, start, end = self._lengths, first, stop
        before = min(self._most_before, self._room - sum(lengths[first:stop]))
        while start > 0 and lengths[start - 1] <= before:
            start -= 1
            before -= lengths[start]
        left = 0 if self.one_pass else self._room - sum(lengths[start:stop])
        while end < len(lengths) and lengths[end] <= left:
            left -= lengths[end]
            end += 1
        # A tokenizer may need more tokens for several steps together than for each of them separately.
        while len(encoded := self.encoder.encode(self._trace_part(start, end))) > self.size:
            if end == stop and start == first:
                raise self._too_long_error(first, len(encoded))
            start, end = (start, end - 1) if end > stop else (start + 1, end)
        bounds = self._bounds
        skipped = bounds[first] - bounds[start]
        if self.one_pass:
            encoded = replace(encoded, reads=encoded.reads[skipped:], calls=encoded.calls[skipped:])
        return Window(bounds[start], bounds[first], bounds[stop], bounds[end], encoded)

    def _trace_part(self, start: int, end: int) -> Trace:
        steps = [step.substeps for step in self.trace.steps[start:end]]
        return Trace.of(self.trace.problem, steps, id=self.trace.id)

    def _too_long_error(self, step: int, tokens: int) -> UserError:
        return UserError(
            f"step {step + 1} and the problem have {tokens:,} tokens, but a window has at most {self.size:,}.",
            "Use larger windows if the evaluator can read them, or divide the step (or use --skip-too-long).",
        )

    @cached_property
    def _single_lengths(self) -> list[int]:
        """The length of the problem with each step."""
        lengths = [len(self.encoder.encode(self._trace_part(i, i + 1))) for i in range(len(self.trace.steps))]
        for step, tokens in enumerate(lengths):
            if tokens > self.size:
                raise self._too_long_error(step, tokens)
        return lengths

    @cached_property
    def _opening(self) -> int:
        """The length of the input before the first step."""
        first, *others = self._single_lengths[:2]
        return first + others[0] - len(self.encoder.encode(self._trace_part(0, 2))) if others else 0

    @cached_property
    def _lengths(self) -> list[int]:
        """The length of each step, including the separation from the step before it."""
        return [tokens - self._opening for tokens in self._single_lengths]

    @property
    def _room(self) -> int:
        return self.size - self._opening

    @property
    def _most_before(self) -> int:
        """The maximum length of the steps before a block."""
        return self._room // (2 if self.one_pass else _SHARES)

    @cached_property
    def _bounds(self) -> list[int]:
        """The first sub-step of each step, and the number of all sub-steps."""
        return [0, *accumulate(len(step.substeps) for step in self.trace.steps)]
