"""Files compressed by gzip or zstd, unpacked as they are read, and the files of ZIP archives, each within a bound.

Compressed files are accepted wherever uncompressed files are. A small file that unpacks to a huge one is refused
before it fills the memory or the disk. Inspect compresses the files of its logs by zstd, a ZIP method that the
standard library supports from Python 3.14 on; they are unpacked by the same reader as other files.
"""

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
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
