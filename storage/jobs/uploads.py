"""Files that browsers send in parts, kept in the database until a job has read them.

An incomplete upload can be resumed. The parts that have arrived are kept even if the page is closed, the server is
restarted, or a different server takes over the database.
"""

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.files.compression import split_lines, unpacked
from stepsight.core.files.text_lines import check_beginning
from stepsight.core.paths import format_bytes
from stepsight.storage.database.jobs_schema import UploadPartRow, UploadRow
from stepsight.storage.database.schema import check_name, in_range, now
from stepsight.storage.database.store import ConflictError, NotFoundError, Store

LARGEST = 256_000_000
"""The largest file, in bytes, as sent and unpacked."""
MOST_STORED = 4 * LARGEST
"""The most bytes that the traces of a file take."""
PART = 512 * 1024
"""The number of bytes that a browser sends at a time."""
LASTS = timedelta(days=1)
"""The time for which an abandoned upload is kept."""

# The largest size of all files of a person together.
_ROOM = 4 * LARGEST
# The copies of a file on the disk while it is imported: as sent, in the journal, and as traces.
_WRITTEN = 3
# The bytes to be left free for other writes.
_RESERVE = 20_000_000
_LARGEST_PART = 2 * PART
_BY_COMMAND = "Import it on the machine that StepSight runs on: stepsight import auto FILE"


@dataclass(frozen=True)
class Upload:
    """A file that a browser sends in parts. `received` of its `size` bytes have arrived.

    `sha256` is empty until the file is complete.
    """

    id: int
    name: str
    size: int
    received: int
    sha256: str

    @property
    def is_whole(self) -> bool:
        return self.received == self.size


def begin_upload(store: Store, user_id: int, name: str, size: int, modified: str = "") -> Upload:
    """Start an upload, or resume one if the same user is already uploading the same file.

    Files count as the same if their names, sizes and modification times are equal. Raises `UserError` if the file
    is empty or too large, or if the disk or the user's quota has no room for it.
    """
    check_name(name, "the name of the file")
    modified = modified[:40] if modified.isprintable() else ""
    if size <= 0:
        raise UserError(f"{name}: the file is empty.", "Choose another file.")
    if size > LARGEST:
        raise UserError(
            f"{name}: {size / 1e6:,.0f} MB; this page takes files of up to {LARGEST / 1e6:,.0f} MB.",
            _BY_COMMAND,
        )
    check_disk(store, name, size)
    with store.write() as session:
        _sweep(session)
        same = (UploadRow.user_id == user_id, UploadRow.name == name, UploadRow.size == size)
        row = session.scalars(select(UploadRow).where(*same, UploadRow.modified == modified)).first()
        if row is None:
            mine = select(func.coalesce(func.sum(UploadRow.size), 0)).where(UploadRow.user_id == user_id)
            taken = session.scalar(mine) or 0
            if taken + size > _ROOM:
                raise ConflictError(
                    "Too many of your files wait to be added.", "Add or remove them first; each is kept for a day."
                )
            row = UploadRow(user_id=user_id, name=name, size=size, modified=modified)
            session.add(row)
        row.touched = now()
        session.flush()
        return _upload(row)


def check_disk(store: Store, name: str, size: int) -> None:
    """Raise `UserError` if the store is a file and its disk has no room for another upload, or its traces, of
    `size` bytes.

    On a full disk nothing could be deleted either, because SQLite has to write in order to delete.
    """
    if store.engine.dialect.name != "sqlite":
        return
    folder = os.path.dirname(os.path.abspath(store.name))
    free = shutil.disk_usage(folder).free
    if free < _WRITTEN * size + _RESERVE:
        raise UserError(
            f"{name}: {format_bytes(size)}, and {format_bytes(free)} are free in {folder}.",
            f"Make room there: adding it takes {format_bytes(_WRITTEN * size + _RESERVE)} for a while.",
        )


def add_part(store: Store, upload_id: int, user_id: int, start: int, content: bytes) -> Upload:
    """Append the bytes that begin at the offset `start` to an upload. They are ignored unless they continue it.

    The field `received` of the returned upload says where to continue. Raises `NotFoundError` if the upload does
    not exist, and `UserError` if the part is too long. If the first part shows that the file cannot be imported,
    the upload is removed and `UserError` is raised.
    """
    if len(content) > _LARGEST_PART:
        raise UserError(f"A part of {len(content):,} bytes.", f"Send at most {_LARGEST_PART:,}.")
    with store.write() as session:
        row = _get(session, upload_id, user_id, lock=True)
        if start != row.received or not content:
            return _upload(row)
        if start + len(content) > row.size:
            raise UserError(f"{row.name}: more bytes than the {row.size:,} that were announced.", "Send it again.")
        refusal = _refusal(content, row.name) if start == 0 else None
        if refusal is None:
            session.add(UploadPartRow(upload_id=row.id, start=start, content=content))
            row.received, row.touched = start + len(content), now()
            session.flush()
            if row.received == row.size:
                row.sha256 = _sha256(session, row)
            return _upload(row)
        session.delete(row)
    raise refusal


def get_upload(store: Store, upload_id: int, user_id: int | None = None) -> Upload:
    """Return the upload with this id, provided that it belongs to the user `user_id`, if that is given. Raises
    `NotFoundError` if there is no such upload."""
    with store.read() as session:
        return _upload(_get(session, upload_id, user_id))


def list_uploads(store: Store, user_id: int) -> list[Upload]:
    """List a user's uploads, oldest first."""
    with store.read() as session:
        rows = session.scalars(select(UploadRow).where(UploadRow.user_id == user_id).order_by(UploadRow.id))
        return [_upload(row) for row in rows]


def keep_upload(store: Store, upload_id: int) -> None:
    """Postpone the deletion of an upload to a day from now."""
    with store.write() as session:
        session.execute(update(UploadRow).where(UploadRow.id == in_range(upload_id)).values(touched=now()))


def remove_upload(store: Store, upload_id: int, user_id: int | None = None) -> None:
    """Remove an upload if it exists and, if `user_id` is given, belongs to that user."""
    with store.write() as session:
        session.execute(delete(UploadRow).where(*_wanted(upload_id, user_id)))


class UploadSource:
    """The lines of a complete upload, as a `storage.traces.imports.LineSource`. Raises `UserError` if the upload is
    incomplete, and `NotFoundError` if it is removed while being read."""

    def __init__(self, store: Store, upload: Upload) -> None:
        if not upload.is_whole:
            raise UserError(
                f"{upload.name}: {upload.received:,} of {upload.size:,} bytes are here.", "Send the rest."
            )
        self.name = self.file_name = upload.name
        self.sha256, self.size = upload.sha256, upload.size
        self._store, self._upload = store, upload
        self.read = 0

    @property
    def fraction(self) -> float:
        return min(1.0, self.read / self._upload.size)

    def __iter__(self) -> Iterator[bytes]:
        return _unpacked(self._counted(split_lines(self.parts(), self.name)), self.name)

    def _counted(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        self.read = 0
        for line in lines:
            self.read += len(line)
            yield line

    def parts(self) -> Iterator[bytes]:
        """Yield the content as it was sent, in parts."""
        start = 0
        while start < self._upload.size:
            # A session for each part, since a reader may stop anywhere.
            with self._store.read() as session:
                content = _part(session, self._upload.id, start)
            start += len(content)
            yield content


def upload_lines(parts: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Yield the lines of an upload that comes in parts."""
    return _unpacked(split_lines(parts, name), name)


def _unpacked(lines: Iterable[bytes], name: str) -> Iterator[bytes]:
    # A compressed file is unpacked here, where its size is bounded.
    return unpacked(lines, name, LARGEST, _BY_COMMAND)


def _part(session: Session, upload_id: int, start: int) -> bytes:
    """Return the part that begins at the offset `start`. Raises `NotFoundError` if the upload was removed."""
    part = select(UploadPartRow.content).where(UploadPartRow.upload_id == upload_id, UploadPartRow.start == start)
    content = session.scalar(part)
    if content is None:
        raise _gone()
    return content


def _sha256(session: Session, row: UploadRow) -> str:
    digest, start = hashlib.sha256(), 0
    while start < row.size:
        content = _part(session, row.id, start)
        digest.update(content)
        start += len(content)
    return digest.hexdigest()


def _gone() -> NotFoundError:
    return NotFoundError("This file is no longer here.", "Choose it again.")


def _refusal(content: bytes, name: str) -> UserError | None:
    try:
        check_beginning(content, name)
    except UserError as error:
        return error
    return None


def _sweep(session: Session) -> None:
    session.execute(delete(UploadRow).where(UploadRow.touched < now() - LASTS))


def _wanted(upload_id: int, user_id: int | None) -> list[ColumnElement[bool]]:
    wanted: list[ColumnElement[bool]] = [UploadRow.id == in_range(upload_id)]
    return wanted if user_id is None else [*wanted, UploadRow.user_id == user_id]


def _get(session: Session, upload_id: int, user_id: int | None, *, lock: bool = False) -> UploadRow:
    statement = select(UploadRow).where(*_wanted(upload_id, user_id))
    row = session.scalars(statement.with_for_update() if lock else statement).one_or_none()
    if row is None:
        raise _gone()
    return row


def _upload(row: UploadRow) -> Upload:
    return Upload(row.id, row.name, row.size, row.received or 0, row.sha256 or "")
