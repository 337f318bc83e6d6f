"""Files that browsers send, which are kept beside the store until a job has read them.

A file is received as one stream, under a random name that ends in `.partial` until it is whole. Files that nobody
adds are deleted after a day, and partial files of a killed server after an hour, by the next upload or server.
"""

import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import TracebackType

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.files.text_lines import check_beginning, split_lines, unpacked
from stepsight.core.paths import cache_folder, format_bytes
from stepsight.storage.database.jobs_schema import UploadRow
from stepsight.storage.database.schema import check_name, in_range, now
from stepsight.storage.database.store import ConflictError, NotFoundError, Store

LARGEST = 256_000_000
"""The largest file, in bytes, as sent and unpacked."""
MOST_STORED = 4 * LARGEST
"""The largest number of bytes that the traces of a file may take."""
LASTS = timedelta(days=1)
"""The time for which an abandoned upload is kept."""

# The largest total size of a person's files.
_ROOM = 4 * LARGEST
# The number of copies of a file on disk while it is imported: as uploaded, in the journal, and as traces.
_WRITTEN = 3
# The number of bytes to leave free for other writes.
_RESERVE = 20_000_000
_PIECE = 512 * 1024
_AGAIN = "Send it again."
_BY_COMMAND = "Import it on the machine that StepSight runs on: stepsight import auto FILE"


@dataclass(frozen=True)
class Upload:
    """A file that a browser has sent, and where it is stored."""

    id: int
    name: str
    size: int
    sha256: str
    path: Path


class Receiving:
    """A context manager that receives a file of `size` bytes from a user. What was received is deleted at the end
    of the `with` block unless `finish` was called.

    Raises `UserError` if the file is empty or too large, or if the disk or the user's quota has no room for it.
    """

    def __init__(self, store: Store, user_id: int, name: str, size: int) -> None:
        check_name(name, "the name of the file")
        if size <= 0:
            raise UserError(f"{name}: the file is empty.", "Choose another file.")
        if size > LARGEST:
            raise UserError(
                f"{name}: {size / 1e6:,.0f} MB; this page takes files of up to {LARGEST / 1e6:,.0f} MB.",
                _BY_COMMAND,
            )
        check_disk(store, name, size, uploads_folder(store))
        sweep_uploads(store)
        with store.read() as session:
            _check_quota(session, user_id, size)
        self._store, self._user_id, self._name, self._size = store, user_id, name, size
        self._path = uploads_folder(store) / secrets.token_hex(16)
        self._partial = self._path.with_suffix(".partial")
        self._file = os.fdopen(os.open(self._partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")
        self._hash, self._received = hashlib.sha256(), 0

    def add(self, content: bytes) -> None:
        """Append bytes. Raises `UserError` if the first ones show that the file cannot be imported, if there are
        too many, or if the disk is full."""
        if not self._received:
            check_beginning(content, self._name)
        self._received += len(content)
        if self._received > self._size:
            raise UserError(f"{self._name}: more bytes than the {self._size:,} announced.", _AGAIN)
        self._hash.update(content)
        try:
            self._file.write(content)
        except OSError as fault:
            raise UserError(
                f"{self._path.parent}: cannot be written ({fault.strerror}).", "Free some space there."
            ) from None

    def finish(self) -> Upload:
        """Keep the file, and return it. Raises `UserError` if bytes are missing."""
        if self._received < self._size:
            raise UserError(f"{self._name}: {self._received:,} of {self._size:,} bytes have arrived.", _AGAIN)
        self._file.close()
        with self._store.write() as session:
            _check_quota(session, self._user_id, self._size)
            row = UploadRow(user_id=self._user_id, name=self._name, size=self._size, file=self._path.name)
            row.sha256 = self._hash.hexdigest()
            session.add(row)
            session.flush()
            os.replace(self._partial, self._path)
            return _upload(row, self._path.parent)

    def __enter__(self) -> "Receiving":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._partial.unlink(missing_ok=True)


def uploads_folder(store: Store) -> Path:
    """Return the folder of the uploaded files, beside a store on SQLite and otherwise in the cache folder, creating
    it for its owner alone. Raises `UserError` if it cannot be created."""
    on_sqlite = store.engine.dialect.name == "sqlite"
    folder = Path(f"{os.path.realpath(store.name)}.uploads") if on_sqlite else cache_folder() / "uploads"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as fault:
        what = f"{folder}: cannot be written ({fault.strerror})."
        raise UserError(what, "Free some space there, or allow writing.") from None
    return folder


def check_disk(store: Store, name: str, size: int, folder: Path | None = None) -> None:
    """Raise `UserError` if `folder`, by default that of a store on SQLite, has no room for another upload, or its
    traces, of `size` bytes.

    On a full disk nothing could be deleted either, because SQLite has to write in order to delete.
    """
    if folder is None:
        if store.engine.dialect.name != "sqlite":
            return
        folder = Path(os.path.abspath(store.name)).parent
    free = shutil.disk_usage(folder).free
    if free < _WRITTEN * size + _RESERVE:
        raise UserError(
            f"{name}: {format_bytes(size)}, but {folder} has only {format_bytes(free)}.",
            f"Free some space there: adding it takes {format_bytes(_WRITTEN * size + _RESERVE)} for a while.",
        )


def get_upload(store: Store, upload_id: int, user_id: int | None = None) -> Upload:
    """Return the upload with this id, provided that it belongs to the user `user_id`, if that is given. Raises
    `NotFoundError` if there is no such upload."""
    with store.read() as session:
        row = session.scalars(select(UploadRow).where(*_upload_conditions(upload_id, user_id))).one_or_none()
        if row is None:
            raise _gone_error()
        return _upload(row, uploads_folder(store))


def list_uploads(store: Store, user_id: int) -> list[Upload]:
    """List a user's uploads, oldest first."""
    with store.read() as session:
        rows = session.scalars(select(UploadRow).where(UploadRow.user_id == user_id).order_by(UploadRow.id))
        return [_upload(row, uploads_folder(store)) for row in rows]


def keep_upload(store: Store, upload: Upload) -> None:
    """Postpone the deletion of an upload to a day from now. Raises `NotFoundError` if its file is gone."""
    try:
        os.utime(upload.path)
    except OSError:
        raise _gone_error() from None
    with store.write() as session:
        session.execute(update(UploadRow).where(UploadRow.id == upload.id).values(touched=now()))


def remove_upload(store: Store, upload_id: int, user_id: int | None = None) -> None:
    """Remove an upload if it exists and, if `user_id` is given, belongs to that user."""
    removed = delete(UploadRow).where(*_upload_conditions(upload_id, user_id)).returning(UploadRow.file)
    with store.write() as session:
        file = session.scalar(removed)
    if file is not None:
        (uploads_folder(store) / file).unlink(missing_ok=True)


class UploadSource:
    """The lines of an upload, as a `storage.traces.imports.LineSource`. Raises `NotFoundError` while being read if
    its file is gone."""

    def __init__(self, upload: Upload) -> None:
        self.name = self.file_name = upload.name
        self.sha256, self.size = upload.sha256, upload.size
        self._path = upload.path
        self.read = 0

    @property
    def fraction(self) -> float:
        return min(1.0, self.read / self.size)

    def __iter__(self) -> Iterator[bytes]:
        def counted() -> Iterator[bytes]:
            self.read = 0
            for line in split_lines(self.parts(), self.name):
                self.read += len(line)
                yield line

        return _unpack_lines(counted(), self.name)

    def parts(self) -> Iterator[bytes]:
        """Yield the content as it was sent, in pieces."""
        try:
            with open(self._path, "rb") as file:
                while content := file.read(_PIECE):
                    yield content
        except FileNotFoundError:
            raise _gone_error() from None


def upload_lines(parts: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Yield the lines of an upload that comes in pieces."""
    return _unpack_lines(split_lines(parts, name), name)


def _unpack_lines(lines: Iterable[bytes], name: str) -> Iterator[bytes]:
    # A compressed file is unpacked here, where its size is bounded.
    return unpacked(lines, name, LARGEST, _BY_COMMAND)


def _gone_error() -> NotFoundError:
    return NotFoundError("This file is no longer here.", "Choose it again.")


def _check_quota(session: Session, user_id: int, size: int) -> None:
    taken = select(func.coalesce(func.sum(UploadRow.size), 0)).where(UploadRow.user_id == user_id)
    if session.scalars(taken).one() + size > _ROOM:
        raise ConflictError(
            "Too many of your files are waiting to be added.", "Add or remove them first; each is kept for a day."
        )


def sweep_uploads(store: Store) -> None:
    """Delete abandoned uploads with their files, and partial files that killed servers have left behind."""
    with store.write() as session:
        session.execute(delete(UploadRow).where(UploadRow.touched < now() - LASTS))
    for path in uploads_folder(store).iterdir():
        lasts = LASTS / 24 if path.suffix == ".partial" else LASTS
        if path.is_file() and path.stat().st_mtime < time.time() - lasts.total_seconds():
            path.unlink(missing_ok=True)


def _upload_conditions(upload_id: int, user_id: int | None) -> list[ColumnElement[bool]]:
    chosen: list[ColumnElement[bool]] = [UploadRow.id == in_range(upload_id)]
    return chosen if user_id is None else [*chosen, UploadRow.user_id == user_id]


def _upload(row: UploadRow, folder: Path) -> Upload:
    return Upload(row.id, row.name, row.size, row.sha256, folder / row.file)
