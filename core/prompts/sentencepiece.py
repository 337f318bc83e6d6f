"""Tokenizers from tokenizer.model, the file of a SentencePiece model, as used by Llama, Mistral and Gemma.

The file is a Protocol Buffers message, `ModelProto` of google/sentencepiece. Its pieces have a text, a score and a
type, and its other parts say how the model was trained and how it treats spaces. Llama 2, Mistral and Gemma have
BPE models that write rare characters as bytes. Such a model is converted to a `tokenizers.Tokenizer` that gives the
same tokens. Models of other kinds are refused.

The file does not contain the merges of BPE. Two pieces merge if their joined text is a piece as well, and merges
whose result has the highest score come first. Transformers 4 does the same, whereas version 5 orders merges by id.
The runs of spaces in Llama's and Mistral's vocabulary, which have the lowest scores but the first ids, then merge
too early.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from stepsight.core.errors import UserError

SPACE = "▁"
"""The sign that stands for a space in a piece."""

_BPE = 2
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED = 1, 2, 3, 4
_OTHER_KIND = (
    "Put a tokenizer.json beside it. Transformers 4 makes one (version 5 may make another): "
    "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER), with the packages sentencepiece and protobuf."
)

# A field of a message: its number, and the number or the bytes that it holds.
_Field = tuple[int, int | bytes]


@dataclass(frozen=True)
class Piece:
    """A piece of a vocabulary. `kind` is the number that the file uses for the type of the piece."""

    text: str
    score: float = 0.0
    kind: int = _NORMAL


@dataclass
class SentencePiece:
    """The content of a tokenizer.model.

    `marks_start` is True if a space is added at the start of a text. `is_plain` is True if the model is BPE with
    bytes and does not otherwise change characters or spaces.
    """

    pieces: list[Piece] = field(default_factory=list)
    marks_start: bool = True
    is_plain: bool = False

    @classmethod
    def read(cls, path: Path) -> "SentencePiece":
        """Read a tokenizer.model. Raises `UserError` if the file is damaged or the model is not BPE with bytes."""
        try:
            found = cls._parse(path.read_bytes())
        except (ValueError, IndexError, struct.error, UnicodeDecodeError):
            raise UserError(f"{path.name} is not a SentencePiece model.", "Copy it again.") from None
        if not found.is_plain:
            raise UserError(f"{path.name} is not a BPE model with bytes, as those of Llama are.", _OTHER_KIND)
        return found

    @classmethod
    def _parse(cls, data: bytes) -> "SentencePiece":
        found = cls()
        parts: dict[int, dict[int, int | bytes]] = {2: {}, 3: {}}
        for number, value in _fields(data):
            if number == 1 and isinstance(value, bytes):
                found.pieces.append(_piece(dict(_fields(value))))
            elif number in parts and isinstance(value, bytes):
                parts[number] = dict(_fields(value))
        trained, normalized = parts[2], parts[3]
        found.marks_start = bool(normalized.get(3, 1))
        changes = normalized.get(2, b"") != b"" or bool(normalized.get(4, 1)) or not normalized.get(5, 1)
        found.is_plain = trained.get(3, 1) == _BPE and bool(trained.get(35, 0)) and not changes
        if not found.pieces:
            raise ValueError("no pieces")
        return found

    def merges(self) -> list[tuple[str, str]]:
        """Return the pairs of pieces that merge, in the order in which merges are applied.

        Among pairs with the same score, those with a longer first part come first, as in Transformers 4.
        """
        own = {one.text: place for place, one in enumerate(self.pieces) if one.kind in (_NORMAL, _USER_DEFINED)}
        pairs = []
        for place, one in enumerate(self.pieces):
            if own.get(one.text) != place:
                continue
            for cut in range(1, len(one.text)):
                first, second = one.text[:cut], one.text[cut:]
                if first in own and second in own:
                    key = (-one.score, -len(first), -len(second), place, own[first], own[second])
                    pairs.append((key, (first, second)))
        return [pair for _, pair in sorted(pairs)]

    def tokenizer(self, settings: Mapping[str, Any]) -> Tokenizer:
        """Convert the model to a tokenizer. `settings` is the content of tokenizer_config.json.

        A space is added at the start of a text if `marks_start` is True. Unless `legacy` in the settings is False,
        a space is then also added after each special token.
        """
        texts = [one.text for one in self.pieces]
        unknown = next((one.text for one in self.pieces if one.kind == _UNKNOWN), None)
        vocabulary = {text: place for place, text in enumerate(texts)}
        model = models.BPE(vocabulary, self.merges(), unk_token=unknown, fuse_unk=True, byte_fallback=True)
        tokenizer = Tokenizer(model)
        marked = self.marks_start and settings.get("add_prefix_space") is not False
        if settings.get("legacy") is False:
            scheme = "first" if marked else "never"
            tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prepend_scheme=scheme, split=False)
        else:
            replaced = [normalizers.Prepend(SPACE)] * marked + [normalizers.Replace(" ", SPACE)]
            tokenizer.normalizer = normalizers.Sequence(replaced)
        back = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
        tokenizer.decoder = decoders.Sequence(back + [decoders.Strip(" ", 1, 0)] * marked)
        tokenizer.add_special_tokens([_added(one) for one in self.pieces if one.kind in (_UNKNOWN, _CONTROL)])
        tokenizer.add_tokens([_added(one) for one in self.pieces if one.kind == _USER_DEFINED])
        self._begin(tokenizer, settings)
        return tokenizer

    def _begin(self, tokenizer: Tokenizer, settings: Mapping[str, Any]) -> None:
        """Make the tokenizer add its first token (`bos_token`) before every text, unless the settings say
        otherwise."""
        named = settings.get("bos_token", "<s>")
        named = named.get("content") if isinstance(named, dict) else named
        number = tokenizer.token_to_id(named) if isinstance(named, str) else None
        if number is not None and settings.get("add_bos_token") is not False:
            ids = [(named, number)]
            tokenizer.post_processor = processors.TemplateProcessing(f"{named} $A", special_tokens=ids)


def _added(piece: Piece) -> AddedToken:
    return AddedToken(piece.text, special=piece.kind != _USER_DEFINED, normalized=False)


def _piece(fields: Mapping[int, int | bytes]) -> Piece:
    text, score, kind = fields.get(1, b""), fields.get(2, b"\0\0\0\0"), fields.get(3, _NORMAL)
    if not isinstance(text, bytes) or not isinstance(score, bytes) or not isinstance(kind, int):
        raise ValueError("a piece of another form")
    (number,) = struct.unpack("<f", score)
    return Piece(text.decode("utf-8"), number, kind)


def _fields(data: bytes) -> Iterator[_Field]:
    """Yield the number and value of each field of a Protocol Buffers message. Raises `ValueError` or `IndexError`
    if the message is malformed."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        kind = tag & 7
        if kind == 0:
            value, place = _varint(data, place)
            yield tag >> 3, value
            continue
        if kind == 2:
            length, place = _varint(data, place)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError("a field of an unknown kind")
        if place + length > len(data):
            raise ValueError("a field that is cut")
        yield tag >> 3, data[place : place + length]
        place += length


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """Return the variable-length number that begins at index `place`, and the index after its last byte."""
    number = 0
    for shift in range(0, 70, 7):
        byte = data[place]
        place += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, place
    raise ValueError("a number that does not end")
