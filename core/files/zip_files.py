"""ZIP archives that come from outside: their files are read one at a time, each within a bound.

Inspect compresses the files of its logs by zstd, a ZIP method that the standard library supports from Python 3.14
on; they are unpacked by the same reader as other files.
"""

import io
import struct
import zipfile
import zlib
from dataclasses import dataclass

from stepsight.core.errors import UserError
from stepsight.core.files.compression import unpacked

_ZSTANDARD = 93
_HEADER = struct.Struct("<26xHH")
_MOST_FILES = 1_000_000
# zipfile raises RuntimeError for an encrypted file, and a kind of it for a method that it does not know.
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
        if info.file_size > self.most:
            raise UserError(f"{self.name}: {member} unpacks to over {self.most / 1e6:,.0f} MB.")
        try:
            if info.compress_type != _ZSTANDARD:
                with self.archive.open(info) as file:
                    return self._bounded(file.read(self.most + 1), member)
            names, extra = _HEADER.unpack_from(self.content, info.header_offset)
            start = info.header_offset + _HEADER.size + names + extra
            packed = self.content[start : start + info.compress_size]
            return self._bounded(b"".join(unpacked([packed], f"{self.name}: {member}", self.most)), member)
        except (*_UNREADABLE, zlib.error, EOFError, struct.error) as error:
            raise UserError(f"{self.name}: {member} is damaged ({error}).", "Fetch the archive again.") from None

    def _bounded(self, content: bytes, member: str) -> bytes:
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
        raise UserError(f"{name}: an archive of over {_MOST_FILES:,} files.")
    return ZipFiles(name, content, most, archive, entries)
