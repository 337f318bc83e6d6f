"""The lines of a text file as UTF-8, and the files of ZIP archives, each within a bound.

Files compressed by gzip or zstd are unpacked as they are read, wherever uncompressed ones are accepted, and UTF-16
is converted. Files that are not text are refused by name. A small file that unpacks to a huge one is refused before
it fills the memory or the disk. Inspect compresses the files of its logs by zstd, a ZIP method that the standard
library supports from Python 3.14 on; they are unpacked by the same reader as other files.
"""

import codecs
import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePath
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files.arrow import load_pyarrow
from stepsight.core.files.whole_files import LARGEST

_GZIP, _ZSTD = b"\x1f\x8b", b"(\xb5/\xfd"
_NAMES = {_GZIP: "gzip", _ZSTD: "zstd"}
_BLOCK = 1 << 18
_SHOWN = 4096
# Texts and tables shrink to between a tenth and a fiftieth; only endless repetition shrinks more than this.
_MOST_TIMES = 200
_FREE = 1 << 24


def compression_of(content: bytes) -> str:
    """Return "gzip" or "zstd" if the first bytes of a file show this compression, and "" otherwise."""
    return next((name for magic, name in _NAMES.items() if content.startswith(magic)), "")


def unpacked(chunks: Iterable[bytes], name: str, most: int | None = None, hint: str = "") -> Iterator[bytes]:
    """Yield the lines of a compressed file, or the chunks of any other file as they are.

    `most` bounds the unpacked size in bytes, and `hint` says what to do with a larger file. Raises `UserError` if a
    compressed file is damaged, ends too early, has a line of more than `LARGEST` bytes or exceeds a bound, or if
    pyarrow is missing, which zstd needs.
    """
    source = iter(chunks)
    first = next(source, b"")
    kind = compression_of(first)
    all_chunks = chain([first] if first else [], source)
    yield from split_lines(_unpack(all_chunks, kind, name, most, hint), name) if kind else all_chunks


def unpacked_beginning(content: bytes) -> bytes:
    """Return the first bytes of the unpacked content of a file, given its own first bytes `content`.

    They are `content` itself if the file is not compressed, and b"" if nothing can be unpacked.
    """
    kind = compression_of(content)
    if not kind:
        return content
    try:
        return _open(_Chunks([content]), kind).read(_SHOWN)
    except (OSError, EOFError, zlib.error):
        return b""


def split_lines(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Yield the lines of a file that is read in blocks. Raises `UserError` if a line has over `LARGEST` bytes."""
    # The pieces of a line that spans several blocks, joined only once, however many there are.
    parts: list[bytes] = []
    size = 0
    for block in blocks:
        first, *others = block.split(b"\n")
        parts.append(first)
        size += len(first)
        if size > LARGEST:
            raise UserError(f"{name}: a line has over {LARGEST:,} bytes.", "Write one JSON object per line.")
        for other in others:
            yield b"".join(parts) + b"\n"
            parts, size = [other], len(other)
    if rest := b"".join(parts):
        yield rest


def _unpack(chunks: Iterable[bytes], kind: str, name: str, most: int | None, hint: str) -> Iterator[bytes]:
    source, size = _Chunks(chunks), 0
    stream = _open(source, kind)
    while True:
        try:
            block = stream.read(_BLOCK)
        except (OSError, EOFError, zlib.error) as error:
            reason = (str(error).splitlines() or [""])[0].rstrip(".")
            raise UserError(f"{name}: damaged {kind} compression ({reason}).", "Fetch it again.") from None
        if not block:
            return
        size += len(block)
        if most is not None and size > most:
            raise UserError(f"{name}: it unpacks to over {most / 1e6:,.0f} MB.", hint)
        if size > _FREE and size > _MOST_TIMES * source.taken:
            raise UserError(
                f"{name}: it unpacks to over {_MOST_TIMES} times its size, which real data never does.",
                "Check the file; if it is sound, unpack it first.",
            )
        yield block


class _Chunks(io.RawIOBase):
    """A readable file that wraps an iterable of bytes. `taken` counts the bytes read so far."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._held = memoryview(b"")
        self.taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._held:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._held = memoryview(chunk)
        count = min(len(buffer), len(self._held))
        buffer[:count] = self._held[:count]
        self._held = self._held[count:]
        self.taken += count
        return count


def _open(source: _Chunks, kind: str) -> Any:
    if kind == _NAMES[_GZIP]:
        return gzip.GzipFile(fileobj=io.BufferedReader(source, _BLOCK), mode="rb")
    arrow = load_pyarrow("A file compressed by zstd")
    return arrow.CompressedInputStream(arrow.PythonFile(source, mode="r"), kind)


_ZSTANDARD = 93
_HEADER = struct.Struct("<26xHH")
_MOST_FILES = 1_000_000
# zipfile raises RuntimeError for an encrypted file, and a subclass of it for an unknown compression method.
_UNREADABLE = (zipfile.BadZipFile, RuntimeError)


@dataclass(frozen=True)
class ZipFiles:
    """The files of an archive. `names` are in the order of the archive, each once; if a name is there several
    times, the last file counts. `most` bounds the unpacked size of a file in bytes."""

    name: str
    content: bytes
    most: int
    archive: zipfile.ZipFile
    entries: dict[str, zipfile.ZipInfo]

    @property
    def names(self) -> list[str]:
        return list(self.entries)

    def read(self, member: str) -> bytes:
        """Return the content of a file. Raises `UserError` if it is damaged or larger than `most`."""
        info = self.entries[member]
        try:
            if info.compress_type == _ZSTANDARD:
                names, extra = _HEADER.unpack_from(self.content, info.header_offset)
                start = info.header_offset + _HEADER.size + names + extra
                packed = self.content[start : start + info.compress_size]
                content = b"".join(unpacked([packed], f"{self.name}: {member}", self.most))
            else:
                with self.archive.open(info) as file:
                    content = file.read(self.most + 1)
        except (*_UNREADABLE, zlib.error, EOFError, struct.error) as error:
            raise UserError(f"{self.name}: {member} is damaged ({error}).", "Fetch the archive again.") from None
        if len(content) > self.most:
            raise UserError(f"{self.name}: {member} unpacks to over {self.most / 1e6:,.0f} MB.")
        return content


def read_zip(content: bytes, name: str, most: int) -> ZipFiles:
    """Return the files of an archive. Raises `UserError` if it is damaged or cut off, or has too many files."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except (*_UNREADABLE, ValueError) as error:
        raise UserError(f"{name}: a damaged archive ({error}).", "Fetch it again.") from None
    entries = {info.filename: info for info in archive.infolist() if not info.is_dir()}
    if len(entries) > _MOST_FILES:
        raise UserError(f"{name}: an archive with more than {_MOST_FILES:,} files.")
    return ZipFiles(name, content, most, archive, entries)


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
