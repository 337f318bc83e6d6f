"""Loading the tokenizer of a folder, checked and completed with the help of the files beside tokenizer.json."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import read_json
from stepsight.core.hubs.checkpoint_files import CARD, SENTENCEPIECE, SLOW_TOKENIZERS, TOKENIZER
from stepsight.core.prompts.sentencepiece import SPACE, SentencePiece

_SETTINGS, _ADDED, _SPECIAL, _CONFIG = (
    "tokenizer_config.json", "added_tokens.json", "special_tokens_map.json", "config.json",
)  # fmt: skip
# How many signs the replacements of a tokenizer may make of one; those of public models make one of each.
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
            tokenizer = _converted(self.folder)
        else:
            try:
                with panics_explained(TOKENIZER):
                    tokenizer = Tokenizer.from_file(str(path))
            except UserError:
                raise
            except Exception as error:  # the library raises plain Exception on a damaged file
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
        raise UserError(f"{TOKENIZER} may write {growth:,} signs for each sign of a text.", "Choose another model.")


def _converted(folder: Path) -> Tokenizer:
    if (folder / SENTENCEPIECE).is_file():
        return sentencepiece_tokenizer(folder)
    slow = next((name for name in SLOW_TOKENIZERS if (folder / name).is_file()), None)
    if slow:
        raise UserError(
            f"{TOKENIZER} is missing, there is only {slow}.",
            "Transformers makes it, once: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER).",
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
    """Raise `UserError` if a tokenizer, loaded from a folder's tokenizer.json, treats spaces differently than the
    folder's tokenizer.model.

    If the folder has no tokenizer.model, only tokenizers with Llama's or Mistral's vocabulary are checked.
    Transformers 5 writes wrong files for these: the first word has no space before it, or two spaces make one
    token.
    """
    if (folder / SENTENCEPIECE).is_file():
        state = (folder / SENTENCEPIECE).stat()
        own = _probed(folder, (state.st_size, state.st_mtime_ns))
        wrong = own is not None and [_tokens(tokenizer, text) for text in _PROBES] != own
        hint = f"Delete it: StepSight makes one of {SENTENCEPIECE}. If that is another model's, delete that."
    elif all(tokenizer.token_to_id(token) == number for token, number in _LLAMA.items()):
        marked = _read(folder / _SETTINGS).get("add_prefix_space") is not False
        first = f"{SPACE}a" if marked else "a"
        wrong = _tokens(tokenizer, _PROBES[0]) != [first, SPACE, f"{SPACE}a"]
        hint = f"Delete it, and copy the {SENTENCEPIECE} of its model there: StepSight makes another of that."
    else:
        return
    if wrong:
        raise UserError(
            f"{TOKENIZER} gives other tokens at spaces than its model, as Transformers 5 writes it.", hint
        )


@lru_cache(maxsize=16)
def _probed(folder: Path, state: tuple[int, int]) -> list[list[str]] | None:
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
        for number, token in _declared(folder).items()
        if tokenizer.token_to_id(token["content"]) is None
        and tokenizer.id_to_token(number) is None
        and not (isinstance(rows, int) and number >= rows)
    }
    parts = json.loads(tokenizer.to_str()) if missing else {}
    if not missing or not isinstance(parts["model"].get("vocab"), dict):
        return tokenizer
    # Named in the vocabulary, a token keeps its id even if ids before it are free. The tokens that are there need
    # that too: others get the ids behind the vocabulary, which is larger now.
    parts["model"]["vocab"] |= {token["content"]: token["id"] for token in parts["added_tokens"]}
    parts["model"]["vocab"] |= {token["content"]: number for number, token in missing.items()}
    whole = Tokenizer.from_str(json.dumps(parts))
    whole.add_tokens([AddedToken(**token) for _, token in sorted(missing.items())])
    return whole


def _declared(folder: Path) -> dict[int, dict[str, Any]]:
    """Return the added tokens that the files beside tokenizer.json name. Maps each id to the arguments of
    `AddedToken`."""
    special = {_content(value) for value in _read(folder / _SPECIAL).values()}
    found: dict[int, dict[str, Any]] = {}
    for text, number in _read(folder / _ADDED).items():
        if isinstance(number, int):
            found[number] = {"content": text, "special": text in special, "normalized": text not in special}
    listed = _read(folder / _SETTINGS).get("added_tokens_decoder")
    for number, token in listed.items() if isinstance(listed, dict) else ():
        if number.isdecimal() and isinstance(token, dict) and isinstance(token.get("content"), str):
            flags = {name: token[name] for name in _FLAGS if isinstance(token.get(name), bool)}
            found[int(number)] = {"content": token["content"], **flags}
    return found


def _content(value: object) -> object:
    """Return the text of a token, which files give as a string or as an object with a `content`. None for anything
    else."""
    content = value.get("content") if isinstance(value, dict) else value
    return content if isinstance(content, str) else None


def _tokens(tokenizer: Tokenizer, text: str) -> list[str]:
    tokens: list[str] = tokenizer.encode(text, add_special_tokens=False).tokens
    return tokens


def _read(path: Path) -> Mapping[str, Any]:
    """Return the content of a file beside tokenizer.json, or an empty mapping if there is no such file."""
    return read_json(path) if path.is_file() else {}


def normalizing_steps(part: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return the steps of a normalizer or pre-tokenizer as a list, whether it is a single step or a sequence. Empty
    for None."""
    if part is None:
        return []
    inner: list[dict[str, Any]] = part.get("normalizers") or part.get("pretokenizers") or []
    return [step for one in inner for step in normalizing_steps(one)] if inner else [part]
