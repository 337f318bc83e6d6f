"""Loading the tokenizer of a folder, checked and completed with the help of the files beside tokenizer.json.

Without tokenizer.json, the tokenizer is made of tokenizer.model, the file of a SentencePiece model, as used by
Llama, Mistral and Gemma. The file is a Protocol Buffers message, `ModelProto` of google/sentencepiece. Its pieces
have a text, a score and a type, and its other parts say how the model was trained and how it treats spaces. Llama
2, Mistral and Gemma have BPE models that write rare characters as bytes. Such a model is converted to a
`tokenizers.Tokenizer` that gives the same tokens. Models of other kinds are refused.

The file does not contain the merges of BPE. Two pieces merge if their joined text is a piece as well, and merges
whose result has the highest score come first. Transformers 4 does the same, whereas version 5 orders merges by id.
The runs of spaces in Llama's and Mistral's vocabulary, which have the lowest scores but the first ids, then merge
too early.
"""

import json
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import read_json
from stepsight.core.hubs.checkpoint_files import CARD, SENTENCEPIECE, SLOW_TOKENIZERS, TOKENIZER

SPACE = "▁"
"""The sign that stands for a space in a piece."""

_BPE = 2
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED = 1, 2, 3, 4
_OTHER_KIND = (
    "Add a tokenizer.json. Transformers 4 writes one (version 5 may write a different one): "
    "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER), with the packages sentencepiece and protobuf."
)

# A field of a message: its field number, and the number or bytes that it holds.
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
            model = cls._parse(path.read_bytes())
        except (ValueError, IndexError, struct.error, UnicodeDecodeError):
            raise UserError(f"{path.name} is not a SentencePiece model.", "Copy it again.") from None
        if not model.is_plain:
            raise UserError(f"{path.name} is not a BPE model with byte fallback, like those of Llama.", _OTHER_KIND)
        return model

    @classmethod
    def _parse(cls, data: bytes) -> "SentencePiece":
        model = cls()
        parts: dict[int, dict[int, int | bytes]] = {2: {}, 3: {}}
        for number, value in _fields(data):
            if number == 1 and isinstance(value, bytes):
                model.pieces.append(_piece(dict(_fields(value))))
            elif number in parts and isinstance(value, bytes):
                parts[number] = dict(_fields(value))
        trained, normalized = parts[2], parts[3]
        model.marks_start = bool(normalized.get(3, 1))
        changes = normalized.get(2, b"") != b"" or bool(normalized.get(4, 1)) or not normalized.get(5, 1)
        model.is_plain = trained.get(3, 1) == _BPE and bool(trained.get(35, 0)) and not changes
        if not model.pieces:
            raise ValueError("no pieces")
        return model

    def merges(self) -> list[tuple[str, str]]:
        """Return the pairs of pieces that merge, in the order in which merges are applied.

        Among pairs with the same score, those with a longer first part come first, as in Transformers 4.
        """
        kinds = (_NORMAL, _USER_DEFINED)
        own = {piece.text: place for place, piece in enumerate(self.pieces) if piece.kind in kinds}
        pairs = []
        for place, piece in enumerate(self.pieces):
            if own.get(piece.text) != place:
                continue
            for cut in range(1, len(piece.text)):
                first, second = piece.text[:cut], piece.text[cut:]
                if first in own and second in own:
                    key = (-piece.score, -len(first), -len(second), place, own[first], own[second])
                    pairs.append((key, (first, second)))
        return [pair for _, pair in sorted(pairs)]

    def tokenizer(self, settings: Mapping[str, Any]) -> Tokenizer:
        """Convert the model to a tokenizer. `settings` is the content of tokenizer_config.json.

        A space is added at the start of a text if `marks_start` is True. Unless `legacy` in the settings is False,
        a space is then also added after each special token.
        """
        texts = [piece.text for piece in self.pieces]
        unknown = next((piece.text for piece in self.pieces if piece.kind == _UNKNOWN), None)
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
        tokenizer.add_special_tokens([_token(piece) for piece in self.pieces if piece.kind in (_UNKNOWN, _CONTROL)])
        tokenizer.add_tokens([_token(piece) for piece in self.pieces if piece.kind == _USER_DEFINED])
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


def _token(piece: Piece) -> AddedToken:
    return AddedToken(piece.text, special=piece.kind != _USER_DEFINED, normalized=False)


def _piece(fields: Mapping[int, int | bytes]) -> Piece:
    text, score, kind = fields.get(1, b""), fields.get(2, b"\0\0\0\0"), fields.get(3, _NORMAL)
    if not isinstance(text, bytes) or not isinstance(score, bytes) or not isinstance(kind, int):
        raise ValueError("a malformed piece")
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
            raise ValueError("a truncated field")
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
    raise ValueError("a number without an end")


_SETTINGS, _ADDED, _SPECIAL, _CONFIG = (
    "tokenizer_config.json", "added_tokens.json", "special_tokens_map.json", "config.json",
)  # fmt: skip
# How many characters a tokenizer's replacements may produce from one; in public models they produce one each.
_GROWTH = 100
_FLAGS = ("special", "lstrip", "rstrip", "single_word", "normalized")
# A word at the start, and another after two spaces.
_PROBES = ("a  a", "What is 2 + 3?")
# Two ids that the vocabularies of Llama 1 and 2, CodeLlama and Mistral share: the last byte and the first run of
# spaces. Their model merges runs of spaces last.
_LLAMA = {"<0xFF>": 258, SPACE * 2: 259}


@dataclass(frozen=True)
class TokenizerFiles:
    """The files of a checkpoint's tokenizer, in one folder.

    `rows` is the vocabulary size in the config of the checkpoint, or None for the one in the folder. `added` lists
    tokens that the authors' code adds to the tokenizer when it loads the model.
    """

    folder: Path
    rows: int | None = None
    added: tuple[str, ...] = ()

    @property
    def read(self) -> list[Path]:
        """The file from which the tokenizer is made, or an empty list if there is none."""
        paths = (self.folder / name for name in (TOKENIZER, SENTENCEPIECE))
        return [path for path in paths if path.is_file()][:1]

    def load(self) -> Tokenizer:
        """Load the tokenizer from its tokenizer.json, or else convert its tokenizer.model.

        Tokens that only other files name are added (`tokenizer_files.add_declared`), and then those in `added`.
        Raises `UserError` if both files are missing, if the file is damaged or of an unsupported kind, or if
        tokenizer.json and tokenizer.model treat spaces differently.
        """
        path = self.folder / TOKENIZER
        if not path.is_file():
            tokenizer = _convert_slow(self.folder)
        else:
            try:
                with panics_explained(TOKENIZER):
                    tokenizer = Tokenizer.from_file(str(path))
            except UserError:
                raise
            except Exception as error:  # the library raises a plain Exception for a damaged file
                raise UserError(f"{TOKENIZER} is not a tokenizer ({' '.join(str(error).split())}).") from None
            _check_growth(tokenizer)
            check_spaces(tokenizer, self.folder)
        tokenizer = add_declared(tokenizer, self.folder, self.rows)
        tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in self.added])
        return tokenizer


def _check_growth(tokenizer: Tokenizer) -> None:
    """Raise `UserError` if a tokenizer's successive replacements may make a text much longer."""
    growth = 1
    for step in normalizing_steps(json.loads(tokenizer.normalizer.__getstate__())) if tokenizer.normalizer else ():
        pattern, content = step.get("pattern"), step.get("content", step.get("prepend"))
        if isinstance(content, str):
            text = pattern.get("String", ".") if isinstance(pattern, dict) else "."
            growth *= max(1, ceil(len(content) / max(1, len(text))))
    if growth > _GROWTH:
        raise UserError(f"{TOKENIZER} may replace each character with {growth:,} others.", "Choose another model.")


def _convert_slow(folder: Path) -> Tokenizer:
    if (folder / SENTENCEPIECE).is_file():
        return sentencepiece_tokenizer(folder)
    slow = next((name for name in SLOW_TOKENIZERS if (folder / name).is_file()), None)
    if slow:
        raise UserError(
            f"{TOKENIZER} is missing; there is only {slow}.",
            "Create it with Transformers: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER).",
        )
    raise UserError(
        f"{TOKENIZER} is missing.",
        f'Copy it there, or name the folder or OWNER/NAME that has it in {CARD}: {{"tokenizer": "a/b"}}.',
    )


@contextmanager
def panics_explained(what: str) -> Iterator[None]:
    """Turn a panic of the library, which is not an `Exception`, into a `UserError` about `what`."""
    try:
        yield
    except (Exception, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise UserError(f"{what} fails ({' '.join(str(error).split()):.200}).", "Copy it again.") from None


def sentencepiece_tokenizer(folder: Path) -> Tokenizer:
    """Convert a folder's tokenizer.model to a tokenizer. Raises `UserError` if the file is damaged or of an
    unsupported kind."""
    return SentencePiece.read(folder / SENTENCEPIECE).tokenizer(_read(folder / _SETTINGS))


def check_spaces(tokenizer: Tokenizer, folder: Path) -> None:
    """Raise `UserError` if a tokenizer, loaded from a folder's tokenizer.json, treats spaces differently from the
    folder's tokenizer.model.

    If the folder has no tokenizer.model, only tokenizers with Llama's or Mistral's vocabulary are checked.
    Transformers 5 writes wrong files for these: the first word has no space before it, or two spaces make one
    token.
    """
    if (folder / SENTENCEPIECE).is_file():
        state = (folder / SENTENCEPIECE).stat()
        own = _probe_model(folder, (state.st_size, state.st_mtime_ns))
        wrong = own is not None and [_tokens(tokenizer, text) for text in _PROBES] != own
        hint = f"Delete it, so that {SENTENCEPIECE} is used. If that is from another model, delete that instead."
    elif all(tokenizer.token_to_id(token) == number for token, number in _LLAMA.items()):
        marked = _read(folder / _SETTINGS).get("add_prefix_space") is not False
        first = f"{SPACE}a" if marked else "a"
        wrong = _tokens(tokenizer, _PROBES[0]) != [first, SPACE, f"{SPACE}a"]
        hint = f"Replace it with the {SENTENCEPIECE} of its model."
    else:
        return
    if wrong:
        raise UserError(
            f"{TOKENIZER} treats spaces differently from its model, as files written by Transformers 5 do.", hint
        )


@lru_cache(maxsize=16)
def _probe_model(folder: Path, state: tuple[int, int]) -> list[list[str]] | None:
    """Return the tokens that a folder's tokenizer.model gives for each text in `_PROBES`, or None if the file
    cannot be converted. `state`, the file's size and time of change, is a cache key, since converting takes half a
    second."""
    try:
        own = sentencepiece_tokenizer(folder)
    except UserError:
        return None
    return [_tokens(own, text) for text in _PROBES]


def add_declared(tokenizer: Tokenizer, folder: Path, rows: int | None = None) -> Tokenizer:
    """Return the tokenizer with the tokens that are named only in added_tokens.json or tokenizer_config.json.

    A token whose id is beyond the vocabulary size, `rows` or that in the folder's config.json, is left out, since
    the weights have no row for it.
    """
    rows = rows if rows is not None else _read(folder / _CONFIG).get("vocab_size")
    missing = {
        number: token
        for number, token in _declared_tokens(folder).items()
        if tokenizer.token_to_id(token["content"]) is None
        and tokenizer.id_to_token(number) is None
        and not (isinstance(rows, int) and number >= rows)
    }
    parts = json.loads(tokenizer.to_str()) if missing else {}
    if not missing or not isinstance(parts["model"].get("vocab"), dict):
        return tokenizer
    # A token listed in the vocabulary keeps its id even if lower ids are free. Existing tokens must be listed too:
    # all others get the ids after the vocabulary, which is larger now.
    parts["model"]["vocab"] |= {token["content"]: token["id"] for token in parts["added_tokens"]}
    parts["model"]["vocab"] |= {token["content"]: number for number, token in missing.items()}
    whole = Tokenizer.from_str(json.dumps(parts))
    whole.add_tokens([AddedToken(**token) for _, token in sorted(missing.items())])
    return whole


def _declared_tokens(folder: Path) -> dict[int, dict[str, Any]]:
    """Return the added tokens that the files beside tokenizer.json name. Maps each id to the arguments of
    `AddedToken`."""
    # Files write a token as a string, or as an object with a `content`.
    values = _read(folder / _SPECIAL).values()
    named = [value.get("content") if isinstance(value, dict) else value for value in values]
    special = {value for value in named if isinstance(value, str)}
    declared: dict[int, dict[str, Any]] = {}
    for text, number in _read(folder / _ADDED).items():
        if isinstance(number, int):
            declared[number] = {"content": text, "special": text in special, "normalized": text not in special}
    listed = _read(folder / _SETTINGS).get("added_tokens_decoder")
    for number, token in listed.items() if isinstance(listed, dict) else ():
        if number.isdecimal() and isinstance(token, dict) and isinstance(token.get("content"), str):
            flags = {name: token[name] for name in _FLAGS if isinstance(token.get(name), bool)}
            declared[int(number)] = {"content": token["content"], **flags}
    return declared


def _tokens(tokenizer: Tokenizer, text: str) -> list[str]:
    return tokenizer.encode(text, add_special_tokens=False).tokens


def _read(path: Path) -> Mapping[str, Any]:
    """Return the content of a file beside tokenizer.json, or an empty mapping if there is no such file."""
    return read_json(path) if path.is_file() else {}


def normalizing_steps(part: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return the steps of a normalizer or pre-tokenizer as a list, whether it is a single step or a sequence. Empty
    for None."""
    if part is None:
        return []
    inner: list[dict[str, Any]] = part.get("normalizers") or part.get("pretokenizers") or []
    return [step for inner_part in inner for step in normalizing_steps(inner_part)] if inner else [part]
