"""The lines of a text file as UTF-8.

Compressed files are unpacked and UTF-16 is converted. Files that are not text are refused by name.
"""

import codecs
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import PurePath

from stepsight.core.errors import UserError
from stepsight.core.files.compression import compression_of, split_lines, unpacked, unpacked_beginning

PARQUET = b"PAR1"
COMPRESSED = (".gz", ".zst")
"""The suffixes of compressed files that are read."""
MOST_BLANK = 1_000_000
"""The most consecutive blank lines; a larger file of blank lines would occupy its reader for minutes."""
ZIP = b"PK\x03\x04"
"""The first bytes of a ZIP archive."""
# The position of the first file's name, and the names with which Inspect logs begin.
_FIRST_NAME, _OF_LOGS = 30, (b"_journal/", b"samples/", b"header.json", b"summaries.json", b"reductions.json")
_UTF8, _UTF16 = codecs.BOM_UTF8, (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_IMPORTS = "Expected JSON Lines, a JSON array, CSV or Parquet."
_AS_TABLE = "Import it as a table (stepsight import any FILE --fields problem=NAME,steps=NAME)."
_PAGES = (b"<!DOCTYPE", b"<!doctype", b"<html")
# The position of the word ustar in a tar archive.
_TAR = 257
# The first bytes of files that people mistake for data.
_OTHER_FILES = (
    (ZIP, "a ZIP archive or an Office document", "Unpack it, or save the table as CSV."),
    (b"%PDF", "a PDF", _IMPORTS),
    (b"\x1f\x8b", "compressed twice", "Unpack it once."),
    (b"(\xb5/\xfd", "compressed twice", "Unpack it once."),
    (b"BZh", "compressed by bzip2", "Unpack it first."),
    (b"\xfd7zXZ\x00", "compressed by xz", "Unpack it first."),
    (b"SQLite format 3", "a SQLite database", "Restore a backup on the command line: stepsight restore FILE"),
    (b"\xd0\xcf\x11\xe0", "an Office document", "Save the table as CSV."),
    (b"\x89PNG", "a picture", _IMPORTS),
    (b"\xff\xd8\xff", "a picture", _IMPORTS),
    *((start, "an Arrow file", _AS_TABLE) for start in (b"ARROW1", b"\xff\xff\xff\xff")),
    (b"version https://git-lfs", "a Git LFS pointer in place of the file", "Fetch the file itself: git lfs pull"),
    *((start, "a web page", "Fetch the file itself; its site may ask for a login.") for start in _PAGES),
)


def without_suffix(name: str) -> str:
    """Return the name that a file has once it is unpacked: `a.csv` for `a.csv.gz`."""
    return name[: name.rindex(".")] if name.lower().endswith(COMPRESSED) else name


def stem_of(path: PurePath) -> str:
    """Return the name of a file without its suffix: `a` for `a.csv` and `a.csv.gz`."""
    return PurePath(without_suffix(path.name)).stem


def check_beginning(content: bytes, name: str) -> None:
    """Raise `UserError` if the first bytes of a file show that it is neither text nor Parquet nor an Inspect log.
    The text may be compressed."""
    if is_log(content):
        return
    compression, content = compression_of(content), unpacked_beginning(content)
    _check_magic(content, name)
    if compression and content.startswith(PARQUET):
        raise UserError(f"{name}: a Parquet file compressed by {compression}.", "Unpack it first.")
    if b"\0" in content[:1000] and not content.startswith((PARQUET, *_UTF16)):
        raise UserError(f"{name}: neither text nor Parquet.", _IMPORTS)


def is_log(content: bytes) -> bool:
    """True if the first bytes of a file are those of an Inspect log: an archive whose first file belongs to one."""
    return content.startswith(ZIP) and content[_FIRST_NAME:].startswith(_OF_LOGS)


def first_sign(content: bytes) -> str:
    """Return the first character that is not white space, given the first bytes of a text file. It may be
    compressed."""
    content = unpacked_beginning(content)
    if content.startswith(_UTF16):
        content = content[: len(content) // 2 * 2].decode("utf-16", "replace").encode()
    return content.removeprefix(_UTF8).lstrip()[:1].decode("utf-8", "replace")


def decode_line(raw: bytes, number: int, name: str) -> str:
    """Return a line of a UTF-8 file as text, the first one without the byte order mark that a file may begin with.
    Raises `UserError` if the line is not UTF-8. The message gives `name` and the line number, or the compression if
    the file is compressed."""
    try:
        return raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        if compression := compression_of(raw):
            raise UserError(f"{name}: compressed by {compression}.", "Unpack it first.") from None
        where = f"{name} line {number}"
        raise UserError(f"{where}: byte {error.start + 1} is not UTF-8.", "Save the file as UTF-8.") from None


def utf8_lines(lines: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Yield the lines of a text file as UTF-8.

    Lines end with line feeds, or with carriage returns if the file has no line feeds. Raises `UserError` if the
    file is Parquet or otherwise not text, if it only begins as UTF-16, if it is compressed and cannot be unpacked,
    or if it has more than `MOST_BLANK` blank lines in a row.
    """
    source = unpacked(lines, name)
    first = next(source, b"")
    _check_magic(first, name)
    if first.startswith(PARQUET):
        raise UserError(f"{name}: a Parquet file, expected JSON Lines or a JSON array.", _AS_TABLE)
    chunks = chain([first] if first else [], source)
    lines = _split_at_returns(_utf16_lines(chunks, name) if first.startswith(_UTF16) else chunks)
    blank = 0
    for line in lines:
        blank = 0 if line.strip() else blank + 1
        if blank > MOST_BLANK:
            raise UserError(f"{name}: over {MOST_BLANK:,} blank lines in a row.", "Remove them.")
        yield line


def _split_at_returns(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Split a file at its carriage returns if it has no line feeds, as older programs write it."""
    first = next(lines, b"")
    yield from first.splitlines(keepends=True) if b"\r" in first and not first.endswith(b"\n") else [first]
    yield from lines


def _check_magic(content: bytes, name: str) -> None:
    for magic, what, hint in _OTHER_FILES:
        if content.startswith(magic):
            raise UserError(f"{name}: {what}.", hint)
    if content[_TAR : _TAR + 5] == b"ustar":
        raise UserError(f"{name}: a tar archive.", "Unpack it first.")


def _utf16_lines(chunks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Yield the lines of a file in UTF-16. Its chunks are split at line feeds, which are only halves of
    characters."""
    decoder = codecs.getincrementaldecoder("utf-16")()
    blocks = (decoder.decode(chunk, final=not chunk).encode() for chunk in chain(chunks, [b""]))
    try:
        yield from split_lines(blocks, name)
    except UnicodeDecodeError:
        raise UserError(f"{name}: it begins like UTF-16, but is not valid.", "Save the file as UTF-8.") from None
